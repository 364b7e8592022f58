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

// embedName is the route of files within pages of other sites.
const embedName = "/embed/*"

// mostAncestors bounds a header that goes with each of these answers.
const mostAncestors = 50

// originHost is the host of a site as a policy has it, perhaps with a port.
var originHost = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

// ParseAncestors reads which sites may show lines of files within their pages:
// origins such as https://wiki.example.com, and 'self' for pages of this site,
// between commas or blanks. None is nobody.
func ParseAncestors(text string) ([]string, error) {
	var all []string
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		if one = strings.ToLower(one); one != "'self'" && !isOrigin(one) {
			return nil, fmt.Errorf("%q: want the origin of a site, as https://wiki.example.com, without a path and without *, or 'self' in its quotes for pages of this site", one)
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	if len(all) > mostAncestors {
		return nil, fmt.Errorf("%d sites: want at most %d", len(all), mostAncestors)
	}
	return all, nil
}

// isOrigin reports whether a text is a scheme with a host: whatever else a policy
// could have in that place would be read as another rule, or as more sites than one.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && text == u.Scheme+"://"+u.Host && originHost.MatchString(u.Host)
}

// framing is what goes with lines of a file within a page of another site, in place
// of what goes with our pages: who may show them, and that nothing runs.
func framing(ancestors []string) [][2]string {
	return [][2]string{
		{"Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors " + strings.Join(ancestors, " ")},

		// A page that isolates itself from others shows only what says that it may.
		{"Cross-Origin-Resource-Policy", "cross-origin"},
		{"Cross-Origin-Embedder-Policy", "require-corp"},
		{"Cross-Origin-Opener-Policy", "unsafe-none"},

		{"Cache-Control", "no-store"},
		{"Referrer-Policy", "no-referrer"},
		{"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
		{"Vary", "Accept-Encoding"},
	}
}

// framed makes a handler of one that draws what is shown within pages of others.
func (r *renderer) framed(draw layout.Handler) handler {
	return func(ctx context.Context, c *call) error {
		v := r.visit(c)
		if err := draw(ctx, v); err != nil {
			return err
		}
		c.answerFrame(v, r.framing)
		return nil
	}
}

// answerFrame takes over the answer of what is shown within a page of another site.
func (c *call) answerFrame(v *layout.Visit, framing [][2]string) {
	c.status, c.mime, c.body = v.Status, v.Mime, v.Body
	c.header = append(append(c.header, v.Header...), framing...)
	c.pack()
}

// failFrame answers a failure where lines would stand. Nobody is led to signing in: a
// form within a page of another site is one that it could have faked.
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

// guest treats the caller as anonymous, whatever cookie or key the request carries: a visitor
// of another site did not ask to use it.
func (s *Server) guest(c *call) error {
	if !s.anonymous() {
		return nodecall.Fail(nodecall.ErrUnauthenticated, "Embedding needs anonymous access, which is off on this site.")
	}
	c.viewer = catalog.Guest()
	return nil
}
