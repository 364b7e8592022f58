package api

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/cluster/catalog"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// embedName is the route of files embedded in pages of other sites.
const embedName = "/embed/*"

// maxAncestors limits the sites that may embed files, because every answer lists them in a header.
const maxAncestors = 50

// originHost matches the host of an origin, with or without a port.
var originHost = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

// ParseAncestors parses the sites that may embed files: origins such as https://wiki.example.com,
// and 'self', separated by commas or white space. It drops repeated ones.
func ParseAncestors(text string) ([]string, error) {
	var all []string
	for site := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		if site = strings.ToLower(site); site != "'self'" && !isOrigin(site) {
			return nil, fmt.Errorf("%q: want the origin of a site, as https://wiki.example.com, without a path and without *, or 'self' in its quotes for pages of this site", site)
		}
		if !slices.Contains(all, site) {
			all = append(all, site)
		}
	}
	if len(all) > maxAncestors {
		return nil, fmt.Errorf("%d sites: want at most %d", len(all), maxAncestors)
	}
	return all, nil
}

// isOrigin reports whether a text is exactly a scheme and a host. Browsers could read anything else
// in a Content-Security-Policy as another rule, or as several sites.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && text == u.Scheme+"://"+u.Host && originHost.MatchString(u.Host)
}

// frameHeaders returns the headers of embedded files. They let the ancestors embed the files, and
// let no script run.
func frameHeaders(ancestors []string) [][2]string {
	return [][2]string{
		{"Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors " + strings.Join(ancestors, " ")},

		// A page that isolates itself embeds only answers that have these headers.
		{"Cross-Origin-Resource-Policy", "cross-origin"},
		{"Cross-Origin-Embedder-Policy", "require-corp"},
		{"Cross-Origin-Opener-Policy", "unsafe-none"},

		{"Cache-Control", "no-store"},
		{"Referrer-Policy", "no-referrer"},
		{"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
		{"Vary", "Accept-Encoding"},
	}
}

// embedHandler makes a handler that draws a page for embedding.
func (r *renderer) embedHandler(draw layout.Handler) handler {
	return func(ctx context.Context, c *call) error {
		v := r.visit(c)
		if err := draw(ctx, v); err != nil {
			return err
		}
		c.answerFrame(v, r.framing)
		return nil
	}
}

// answerFrame copies the drawn page and the headers for embedding into the answer.
func (c *call) answerFrame(v *layout.Visit, framing [][2]string) {
	c.status, c.mime, c.body = v.Status, v.Mime, v.Body
	c.header = append(append(c.header, v.Header...), framing...)
	c.compress()
}

// failFrame draws a failure in place of the embedded file. It offers no sign-in: the embedding
// page could have faked the form.
func (r *renderer) failFrame(c *call, f *failure) {
	c.fail(f)
	c.header = slices.DeleteFunc(c.header, func(kv [2]string) bool { return kv[0] != "Retry-After" && kv[0] != "Allow" })
	v := r.visit(c)
	if err := web.ShowTrouble(v, f.Status, f.Message); err != nil {
		r.log.Error("draw why nothing is embedded", "error", err)
		return
	}
	c.answerFrame(v, r.framing)
}

// makeAnonymous makes the caller anonymous, whatever cookie or key the request has: the reader of
// another site's page did not choose to send it. It fails if anonymous access is off.
func (s *Server) makeAnonymous(c *call) error {
	if !s.anonymous() {
		return nodecall.Fail(nodecall.ErrUnauthenticated, "Embedding needs anonymous access, which is off on this site.")
	}
	c.viewer = catalog.Guest()
	return nil
}
