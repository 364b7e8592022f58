package signin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/node/call"
)

// errNoSecret is of a provider that lacks a property.
var errNoSecret = errors.New("the configuration does not name its client, secret or issuer")

// refusal is a provider's word that somebody does not come in.
type refusal struct{ code, description string }

// Error says it in the provider's words.
func (r *refusal) Error() string { return strings.TrimSuffix(r.code+": "+r.description, ": ") }

// setup is what only an operator can mend, here or at the provider.
type setup struct{ what string }

// Error says what.
func (e *setup) Error() string { return e.what }

func mistake(format string, args ...any) error { return &setup{fmt.Sprintf(format, args...)} }

// failed is what the person is told of a failure. The log has all of it, by the
// same reference; what a provider sends is cut, and no secret of ours is in it.
func (s *Server) failed(p *provider, err error) error {
	// Who may come in is decided here: what is said of that is meant for the person.
	var ours *call.Error
	if errors.As(err, &ours) {
		return err // of this service, not of the provider
	}

	// It leads from what the person tells an owner to the line of the log, and says nothing by itself.
	reference := random()[:8]
	kind, said := call.ErrUnavailable, "%s cannot be asked now. Try again, or tell an owner of this service the reference %s."
	detail := err.Error()

	var no *refusal
	var answer *oauth2.RetrieveError
	var wrong *setup
	switch {
	// The one refusal that an owner mends, by the scopes of the application there.
	case errors.As(err, &no) && no.code == "invalid_scope" && s.asksAt(p):
		said = "%s does not give what is needed to see which repositories are yours. Tell an owner of this service the reference %s."
		detail += "; the application there needs the scopes " + strings.Join(s.scopes(p), " ") + ", since PERMISSION_SYNC_ENABLED=true"

	case errors.As(err, &no):
		// Its code alone, cut: anybody can send a browser back with a description of their own.
		kind, said = call.ErrUnauthenticated, "%s did not let you in ("+plain(no.code, 60)+"). Begin again. The reference is %s."

	case errors.As(err, &answer):
		status := 0
		if answer.Response != nil {
			status = answer.Response.StatusCode
		}
		detail = fmt.Sprintf("status %d, %s: %s", status, answer.ErrorCode, answer.ErrorDescription)
		// The second is GitHub's name for the first: a page that is loaded again sends the same code.
		if answer.ErrorCode == "invalid_grant" || answer.ErrorCode == "bad_verification_code" {
			kind, said = call.ErrUnauthenticated, "%s says that this sign-in was used or has ended. Begin again. The reference is %s."
		}

	// Trying again does not help the person, so that is not said.
	case errors.As(err, &wrong), errors.Is(err, errNoSecret):
		said = "%s is not set up right, or did not answer as it should. Tell an owner of this service the reference %s."
	}

	s.d.Log.Warn("nobody was signed in by a provider", "provider", p.ID, "reference", reference, "error", plain(detail, 400))
	return call.Fail(kind, said, p.label(), reference)
}

// plain is a text of a stranger on one line, cut.
func plain(text string, most int) string {
	// Into the log and a format, so that neither a line nor a verb of it can be forged.
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '%' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	// Once more: the cut may have gone through a character.
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// Bounds of one request to a provider.
const (
	answerTime = 15 * time.Second
	maxAnswer  = 1 << 20 // bytes
)

// newClient asks providers: no redirects, since what is sent is secret, and no
// more of an answer than it may have.
func newClient(t http.RoundTripper) *http.Client {
	if t == nil {
		t = http.DefaultTransport
	}
	return &http.Client{
		Transport: bounded{t}, Timeout: answerTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded is a transport whose answers end with an error where they are too long.
type bounded struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &limited{resp.Body, maxAnswer}
	}
	return resp, err
}

type limited struct {
	io.ReadCloser
	left int
}

// Read fails where the answer is too long.
func (l *limited) Read(p []byte) (int, error) {
	// Also for one that fills the bound to the byte: whether it had ended is not known here.
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
