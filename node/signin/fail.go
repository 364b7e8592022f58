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

// errNoSecret is returned for a provider whose configuration lacks a property.
var errNoSecret = errors.New("the configuration does not name its client, secret or issuer")

// refusal is the provider's refusal of a person.
type refusal struct{ code, description string }

// Error returns the provider's text.
func (r *refusal) Error() string { return strings.TrimSuffix(r.code+": "+r.description, ": ") }

// setup is a mistake that only an operator can fix, here or at the provider.
type setup struct{ what string }

// Error returns the mistake.
func (e *setup) Error() string { return e.what }

func mistake(format string, args ...any) error { return &setup{fmt.Sprintf(format, args...)} }

// logFailure logs a failure, and returns the error for the person with a reference to the log line. It
// cuts what the provider sent. No secret of ours is in it.
func (s *Server) logFailure(p *provider, err error) error {
	// A refusal by this service is meant for the person: return it unchanged.
	var ours *call.Error
	if errors.As(err, &ours) {
		return err // of this service, not of the provider
	}

	// The reference leads an owner to the log line, and reveals nothing.
	reference := random()[:8]
	kind, said := call.ErrUnavailable, "%s cannot be asked now. Try again, or tell an owner of this service the reference %s."
	detail := err.Error()

	var no *refusal
	var answer *oauth2.RetrieveError
	var wrong *setup
	switch {
	// An owner can fix this refusal: the application at the provider lacks scopes.
	case errors.As(err, &no) && no.code == "invalid_scope" && s.asksAt(p):
		said = "%s does not give what is needed to see which repositories are yours. Tell an owner of this service the reference %s."
		detail += "; the application there needs the scopes " + strings.Join(s.scopes(p), " ") + ", since PERMISSION_SYNC_ENABLED=true"

	case errors.As(err, &no):
		// Only the code, cut: anybody can send a browser back with a made-up description.
		kind, said = call.ErrUnauthenticated, "%s did not let you in ("+plainLine(no.code, 60)+"). Begin again. The reference is %s."

	case errors.As(err, &answer):
		status := 0
		if answer.Response != nil {
			status = answer.Response.StatusCode
		}
		detail = fmt.Sprintf("status %d, %s: %s", status, answer.ErrorCode, answer.ErrorDescription)
		// The second code is GitHub's. A reloaded page sends the same code again.
		if answer.ErrorCode == "invalid_grant" || answer.ErrorCode == "bad_verification_code" {
			kind, said = call.ErrUnauthenticated, "%s says that this sign-in was used or has ended. Begin again. The reference is %s."
		}

	// Do not suggest to try again: that would not help.
	case errors.As(err, &wrong), errors.Is(err, errNoSecret):
		said = "%s is not set up right, or did not answer as it should. Tell an owner of this service the reference %s."
	}

	s.d.Log.Warn("nobody was signed in by a provider", "provider", p.ID, "reference", reference, "error", plainLine(detail, 400))
	return call.Fail(kind, said, p.label(), reference)
}

// plainLine returns a stranger's text on one line, cut.
func plainLine(text string, maxBytes int) string {
	// It goes into the log and a format string, so it must forge neither a line nor a verb.
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '%' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	// The cut may have split a character.
	return strings.ToValidUTF8(text[:min(len(text), maxBytes)], "")
}

// Limits of one request to a provider.
const (
	answerTime = 15 * time.Second
	maxAnswer  = 1 << 20 // bytes
)

// newClient returns the client for providers. It follows no redirects, because requests contain
// secrets, and limits the answers.
func newClient(t http.RoundTripper) *http.Client {
	if t == nil {
		t = http.DefaultTransport
	}
	return &http.Client{
		Transport: bounded{t}, Timeout: answerTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded is a transport whose answers fail if they are too long.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &limited{resp.Body, maxAnswer}
	}
	return resp, err
}

type limited struct {
	io.ReadCloser
	bytesLeft int
}

// Read returns an error if the answer is too long.
func (l *limited) Read(p []byte) (int, error) {
	// Also if the limit is reached exactly: the answer may not have ended.
	if l.bytesLeft <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.bytesLeft)])
	l.bytesLeft -= n
	return n, err
}
