package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Person is who is asked for consent: somebody who is signed in by a browser.
type Person struct {
	Account string // id
	Session string // what names the session; a page of one is not taken from another
	Key     string // id of the API key that they signed in with; "" for other ways
}

// Pending is a request that a person has to decide.
type Pending struct {
	Client   *Client
	Host     string // where the answer is sent: host and port, or a scheme of a program's own
	Local    bool   // that is the reader's own machine, where any program could be listening
	Source   string // Host for the directive form-action of a Content-Security-Policy
	Form     string // the request, sealed for this person: it comes back with the decision
	Redirect string
}

// Refusal is what a client is told in the address that it is sent back to.
type Refusal struct {
	To  string // the whole address
	Err *Error
}

// Error is the sentence for the client.
func (r *Refusal) Error() string { return r.Err.Description }

// pending is a request that was checked, in the form of the consent page.
type pending struct {
	Account   string `json:"a"`
	Session   string `json:"s"`
	Client    string `json:"c"`
	Name      string `json:"n"`
	Kind      string `json:"k"`
	Redirect  string `json:"r"`
	Challenge string `json:"p"`
	Scope     string `json:"o"`
	State     string `json:"t"`
	HasState  bool   `json:"h"`
	Until     int64  `json:"u"`
}

// code is what an authorization code says.
type code struct {
	ID        string `json:"i"` // of the consent that it becomes
	Account   string `json:"a"`
	Since     uint64 `json:"s"` // Changed of the account when it consented
	Key       string `json:"y"`
	Client    []byte `json:"c"`
	Name      string `json:"n"`
	Kind      string `json:"k"`
	Redirect  []byte `json:"r"`
	Host      string `json:"d"`
	Challenge string `json:"p"`
	Scope     string `json:"o"`
	Until     int64  `json:"u"`
}

// maxState bounds what a client may give along; it comes back as it was.
const maxState = 8 << 10

// Authorize checks the request that a client sends a person with. It fails with
// an *Error where the reader cannot be sent back: that is shown on a page. It
// fails with a *Refusal where the client is told.
func (s *Server) Authorize(ctx context.Context, who Person, q url.Values) (*Pending, error) {
	// Somebody with a key alone has no account in whose name a program could act.
	if !s.Enabled() || who.Account == "" {
		return nil, refused(invalidRequest, "Agents are let in only where this service is reached by https, or on this machine.")
	}

	// Before either is used: whichever value is meant, the person would be
	// sent where the client did not say.
	for _, name := range []string{"client_id", "redirect_uri"} {
		if len(q[name]) > 1 {
			return nil, refused(invalidRequest, "The parameter "+name+" is there more than once.")
		}
	}

	client, err := s.client(ctx, q.Get("client_id"), who.Account)
	if err != nil {
		return nil, err
	}

	// Only a client with one address may leave it out.
	redirect := q.Get("redirect_uri")
	if redirect == "" && len(client.Redirects) == 1 {
		redirect = client.Redirects[0]
	}
	if !matchRedirect(client.Redirects, redirect) {
		return nil, refused(invalidRedirect, "The client asks to be sent to an address that it has not named before.")
	}

	// From here on the client can be told: one that an owner knows, and a program on the
	// reader's own machine. Anybody may register another, and would have here a link that
	// leads from this site to theirs.
	_, local := loopback(redirect)
	if refusal := s.check(q); refusal != nil {
		if client.Kind != ByOwner && !local {
			return nil, refusal
		}
		return nil, s.back(redirect, q.Get("state"), q.Has("state"), refusal)
	}

	// The request as it was checked, so that the form cannot bring another one back.
	form, err := s.rings.seal(ctx, pendingBox, pending{
		Account:   who.Account,
		Session:   who.Session,
		Client:    client.ID,
		Name:      client.Name,
		Kind:      client.Kind,
		Redirect:  redirect,
		Challenge: q.Get("code_challenge"),
		Scope:     granted(q.Get("scope")),
		State:     q.Get("state"),
		HasState:  q.Has("state"),
		Until:     s.d.Now().Add(pendingLife).Unix(),
	})
	if err != nil {
		return nil, err
	}
	return &Pending{Client: client, Host: redirectHost(redirect), Local: local, Source: redirectSource(redirect), Form: form, Redirect: redirect}, nil
}

// check looks at all of a request but who sends it and where it goes back to.
func (s *Server) check(q url.Values) *Error {
	// Two values are read differently by different programs: what is checked might not be what counts.
	for _, name := range []string{"response_type", "code_challenge", "code_challenge_method", "state", "scope", "response_mode"} {
		if len(q[name]) > 1 {
			return refused(invalidRequest, "The parameter "+name+" is there more than once.")
		}
	}

	// What is not taken is refused, never passed over: the client would rely on it.
	switch mode := q.Get("response_mode"); {
	case q.Get("response_type") == "":
		return refused(invalidRequest, "The parameter response_type is missing.")
	case q.Get("response_type") != "code":
		return refused(unsupportedType, "The response_type is code.")
	case mode != "" && mode != "query":
		return refused(invalidRequest, "The response_mode is query.")

	// Without PKCE whoever sees the code on its way could use it; S256 is its
	// only form that hides the verifier.
	case q.Get("code_challenge") == "" || q.Get("code_challenge_method") != "S256":
		return refused(invalidRequest, "A code_challenge with code_challenge_method=S256 is needed.")
	case !goodChallenge(q.Get("code_challenge")):
		return refused(invalidRequest, "The code_challenge is no SHA-256 in base64url.")

	case len(q.Get("state")) > maxState:
		return refused(invalidRequest, "The state is too long.")
	// A request by reference would make this node fetch what a stranger names.
	case q.Has("request") || q.Has("request_uri"):
		return refused("request_not_supported", "Requests inside requests are not taken.")
	}
	return s.targets(q["resource"])
}

// goodChallenge tells whether a text is a SHA-256 as PKCE writes it.
func goodChallenge(text string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(raw) == sha256.Size
}

// back is the address that tells a client of a refusal.
func (s *Server) back(redirect, state string, hasState bool, e *Error) *Refusal {
	// With iss, so that a client of several services knows which of them has answered (RFC 9207).
	v := url.Values{"error": {e.Code}, "error_description": {e.Description}, "iss": {s.Issuer()}}
	// Given back only where it was given, and as it was: by it the client knows its own request.
	if hasState && len(state) <= maxState {
		v.Set("state", state)
	}
	return &Refusal{with(redirect, v), e}
}

// Decide takes the decision of a person about a request that they were shown,
// and gives the address to send them to. It fails with an *Error where the
// form is not theirs, or too old.
func (s *Server) Decide(ctx context.Context, who Person, form string, allow bool) (to string, err error) {
	// The form is a box of this cluster: what it says was checked, and by
	// whom it was seen stands in it.
	var p pending
	switch err := s.rings.open(ctx, pendingBox, form, &p); {
	case errors.Is(err, errBox):
		return "", refused(invalidRequest, "This form is none of this service: begin again in the client.")
	case err != nil:
		return "", err
	}

	// A page of another person, or of another sign-in, could have been slipped into this browser.
	if p.Account != who.Account || p.Session != who.Session || who.Account == "" {
		return "", refused(invalidRequest, "Somebody else was asked: begin again in the client.")
	}
	if !s.d.Now().Before(time.Unix(p.Until, 0)) {
		return "", refused(invalidRequest, "This form was open for too long: begin again in the client.")
	}

	if !allow {
		return s.back(p.Redirect, p.State, p.HasState, refused(accessDenied, "The person has refused.")).To, nil
	}

	// Who was suspended since the form was drawn lets nobody in.
	a := s.d.Cluster.View().Account(who.Account)
	if a == nil || a.State != catalog.AccountActive {
		return "", refused(accessDenied, "This account may not let clients in.")
	}

	// The id is chosen before: what becomes a consent at most once must have one name.
	var id [16]byte
	rand.Read(id[:])

	// Ids and addresses may be long: of them the code has the hashes alone.
	client := Client{ID: p.Client}
	sealed, err := s.rings.seal(ctx, codeBox, code{
		ID:        hex.EncodeToString(id[:]),
		Account:   a.ID,
		Since:     a.Changed,
		Key:       who.Key,
		Client:    client.hash(),
		Name:      p.Name,
		Kind:      p.Kind,
		Redirect:  sum(p.Redirect),
		Host:      redirectHost(p.Redirect),
		Challenge: p.Challenge,
		Scope:     p.Scope,
		Until:     s.d.Now().Add(s.codeLife()).Unix(),
	})
	if err != nil {
		return "", err
	}

	v := url.Values{"code": {sealed}, "iss": {s.Issuer()}}
	if p.HasState {
		v.Set("state", p.State)
	}
	return with(p.Redirect, v), nil
}

func sum(text string) []byte {
	h := sha256.Sum256([]byte(text))
	return h[:]
}

// goodVerifier tells whether a text can be the verifier of PKCE.
func goodVerifier(text string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	return len(text) >= 43 && len(text) <= 128 && strings.Trim(text, letters) == ""
}
