package layout

import (
	"bufio"
	"bytes"
	"context"
	"html/template"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Handler answers one request for a page. An error becomes an error page. ctx ends when the answer
// is written, when the reader leaves, or at the route's deadline.
type Handler func(ctx context.Context, v *Visit) error

// Visit is one request for a page, and its answer. Only one goroutine at a time may use it.
type Visit struct {
	Method  string
	Path    string     // as the browser sent it: an encoded slash is part of a name
	Query   url.Values // parameters in the address
	Form    url.Values // parameters in the body of a POST
	Part    string     // header X-Shoal-Part: the part of the page that a script asks for; "" for a whole page
	Viewer  catalog.Viewer
	Secure  bool                     // the site is reached by TLS
	Sent    func(name string) string // returns a header of the request; "" without it
	Cookie  func(name string) string // returns a cookie of the request; "" without it
	Arrives bool                     // the reader comes from another site: embed the styles in the page
	Address string                   // IP address of the reader, for records
	In      *In                      // limit of searches from this page; nil for none

	// The answer. If Stream is set, it writes the answer after the handler has returned, and may
	// flush before a slow part. Otherwise the answer is Body.
	Status int
	Mime   string
	Header [][2]string
	Body   []byte
	Stream func(w *bufio.Writer) error
}

// Set adds a header to the answer.
func (v *Visit) Set(name, value string) { v.Header = append(v.Header, [2]string{name, value}) }

// Redirect sends the reader to another address of this site.
func (v *Visit) Redirect(status int, to string) error {
	v.Status = status
	v.Set("Location", to)
	return nil
}

// Show answers with a page: a template inside the frame, or alone if a script asks for a part.
func (v *Visit) Show(h Head, body *template.Template, data any) error {
	// Render to memory first, so that a failing template sends no half page.
	var b bytes.Buffer
	if v.Part == "" {
		v.Begin(&b, h)
	}

	if err := body.Execute(&b, data); err != nil {
		return err
	}
	if v.Part == "" {
		v.End(&b, h)
	}

	v.Mime, v.Body = MimeHTML, b.Bytes()
	return nil
}

// SameSite returns an error unless a request comes from a page of this site, or has an Authorization
// header, which no other site can make a browser send. Handlers that change something call it first.
func (v *Visit) SameSite() error {
	if v.Sent("Authorization") != "" {
		return nil
	}
	site, origin := v.Sent("Sec-Fetch-Site"), v.Sent("Origin")
	if site == "same-origin" {
		return nil
	}

	// Older browsers send only the origin of a form.
	if u, err := url.Parse(origin); site == "" && err == nil && u.Host != "" && strings.EqualFold(u.Host, v.Sent("Host")) {
		return nil
	}
	return call.Fail(call.ErrForbidden, "This form was not sent from a page of this site.")
}
