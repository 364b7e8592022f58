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
	Path    string     // as it was sent: an encoded slash is part of a name
	Query   url.Values // of the address
	Form    url.Values // of the body of a POST
	Part    string     // header X-Shoal-Part: the part of the page that a script asks for; "" for a whole page
	Viewer  catalog.Viewer
	Secure  bool                     // the site is reached by TLS
	Sent    func(name string) string // a header of the request
	Cookie  func(name string) string // a cookie of the request, "" without it
	Arrives bool                     // the reader comes from elsewhere: the page carries its style
	Address string                   // where the reader comes from, for records
	In      *In                      // the place that the page is about, for the search box; nil for everywhere

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

// Show answers with a whole page: a template inside the frame.
func (v *Visit) Show(h Head, body *template.Template, data any) error {
	// Render to memory first, so that a failing template sends no half page.
	var b bytes.Buffer
	// A script that asks for a part has the frame already.
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

// SameSite returns an error unless a request comes from a page of this site. Handlers that change
// something call it first. Browsers send the origin themselves. An Authorization header is proof
// enough, because no other site can make a browser send one.
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
