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

// Person is the person who is asked for consent. They are signed in by a browser.
type Person struct {
	Account string // account id
	Session string // id of the session: a consent page is valid only in its own session
	Key     string // id of the API key used to sign in; "": none
}

// Pending is a request that waits for a person's decision.
type Pending struct {
	Client   *Client
	Host     string // where the answer is sent: host and port, or a program's own URL scheme
	Local    bool   // Host is the person's own machine, where any program may listen
	Source   string // Host, for the directive form-action of a Content-Security-Policy
	Form     string // the sealed request, which the browser returns with the decision
	Redirect string
}

// Refusal is an error that a client gets through the redirect.
type Refusal struct {
	To  string // the whole redirect URL
	Err *Error
}

// Error returns the description for the client.
func (r *Refusal) Error() string { return r.Err.Description }

// pending is a checked request, as sealed into the consent page.
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

// code is the content of an authorization code.
type code struct {
	ID        string `json:"i"` // of the future consent
	Account   string `json:"a"`
	Since     uint64 `json:"s"` // the account's Changed at the time of the consent
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

// maxState limits the client's state parameter, which is returned unchanged.
const maxState = 8 << 10

// Authorize checks an authorization request. If the person cannot be sent back, it returns an
// *Error to show on a page. If the client gets the error, it returns a *Refusal.
func (s *Server) Authorize(ctx context.Context, who Person, q url.Values) (*Pending, error) {
	// A person with only a key has no account for which a program could act.
	if !s.Enabled() || who.Account == "" {
		return nil, newError(invalidRequest, "Agents are let in only where this service is reached by https, or on this machine.")
	}

	// If these appear twice, the person could be sent to a wrong address.
	for _, name := range []string{"client_id", "redirect_uri"} {
		if len(q[name]) > 1 {
			return nil, newError(invalidRequest, "The parameter "+name+" is there more than once.")
		}
	}

	client, err := s.findClient(ctx, q.Get("client_id"), who.Account)
	if err != nil {
		return nil, err
	}

	// Only a client with a single redirect URL may leave it out.
	redirect := q.Get("redirect_uri")
	if redirect == "" && len(client.Redirects) == 1 {
		redirect = client.Redirects[0]
	}
	if !matchRedirect(client.Redirects, redirect) {
		return nil, newError(invalidRedirect, "The client asks to be sent to an address that it has not named before.")
	}

	// Send errors only to clients that an owner has registered, and to programs on the person's own
	// machine. Anybody can register another client, and could use such an error to make this site
	// redirect people to theirs.
	_, local := withoutLoopbackPort(redirect)
	if refusal := s.checkParameters(q); refusal != nil {
		if client.Kind != ByOwner && !local {
			return nil, refusal
		}
		return nil, s.errorRedirect(redirect, q.Get("state"), q.Has("state"), refusal)
	}

	// Seal the checked request, so that the form cannot return another one.
	form, err := s.rings.seal(ctx, pendingBox, pending{
		Account:   who.Account,
		Session:   who.Session,
		Client:    client.ID,
		Name:      client.Name,
		Kind:      client.Kind,
		Redirect:  redirect,
		Challenge: q.Get("code_challenge"),
		Scope:     grantedScopes(q.Get("scope")),
		State:     q.Get("state"),
		HasState:  q.Has("state"),
		Until:     s.d.Now().Add(pendingLife).Unix(),
	})
	if err != nil {
		return nil, err
	}
	return &Pending{Client: client, Host: redirectHost(redirect), Local: local, Source: formActionSource(redirect), Form: form, Redirect: redirect}, nil
}

// checkParameters checks all parameters except client and redirect URL.
func (s *Server) checkParameters(q url.Values) *Error {
	// If a parameter appears twice, programs disagree about which value counts.
	for _, name := range []string{"response_type", "code_challenge", "code_challenge_method", "state", "scope", "response_mode"} {
		if len(q[name]) > 1 {
			return newError(invalidRequest, "The parameter "+name+" is there more than once.")
		}
	}

	// Reject unsupported values instead of ignoring them: the client would rely on them.
	switch mode := q.Get("response_mode"); {
	case q.Get("response_type") == "":
		return newError(invalidRequest, "The parameter response_type is missing.")
	case q.Get("response_type") != "code":
		return newError(unsupportedType, "The response_type is code.")
	case mode != "" && mode != "query":
		return newError(invalidRequest, "The response_mode is query.")

	// Without PKCE, whoever sees the code could use it. Only S256 hides the verifier.
	case q.Get("code_challenge") == "" || q.Get("code_challenge_method") != "S256":
		return newError(invalidRequest, "A code_challenge with code_challenge_method=S256 is needed.")
	case !isChallenge(q.Get("code_challenge")):
		return newError(invalidRequest, "The code_challenge is no SHA-256 in base64url.")

	case len(q.Get("state")) > maxState:
		return newError(invalidRequest, "The state is too long.")
	// A request by reference would make this node fetch a stranger's URL.
	case q.Has("request") || q.Has("request_uri"):
		return newError("request_not_supported", "Requests inside requests are not taken.")
	}
	return s.checkResources(q["resource"])
}

// isChallenge reports whether text is a SHA-256 in the form of PKCE.
func isChallenge(text string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(raw) == sha256.Size
}

// errorRedirect returns a Refusal whose URL tells the client the error.
func (s *Server) errorRedirect(redirect, state string, hasState bool, e *Error) *Refusal {
	// iss tells a client of several services which one has answered (RFC 9207).
	v := url.Values{"error": {e.Code}, "error_description": {e.Description}, "iss": {s.Issuer()}}
	// Return the state unchanged, and only if there was one.
	if hasState && len(state) <= maxState {
		v.Set("state", state)
	}
	return &Refusal{withParameters(redirect, v), e}
}

// Decide applies a person's decision about a request, and returns the URL to send them to. It
// returns an *Error if the form is not theirs, or too old.
func (s *Server) Decide(ctx context.Context, who Person, form string, allow bool) (to string, err error) {
	// The form is sealed by this cluster: its content was checked.
	var p pending
	switch err := s.rings.open(ctx, pendingBox, form, &p); {
	case errors.Is(err, errNotSealed):
		return "", newError(invalidRequest, "This form is none of this service: begin again in the client.")
	case err != nil:
		return "", err
	}

	// The form of another person or session could have been planted in this browser.
	if p.Account != who.Account || p.Session != who.Session || who.Account == "" {
		return "", newError(invalidRequest, "Somebody else was asked: begin again in the client.")
	}
	if !s.d.Now().Before(time.Unix(p.Until, 0)) {
		return "", newError(invalidRequest, "This form was open for too long: begin again in the client.")
	}

	if !allow {
		return s.errorRedirect(p.Redirect, p.State, p.HasState, newError(accessDenied, "The person has refused.")).To, nil
	}

	// Check again: the account may have been suspended meanwhile.
	a := s.d.Cluster.View().Account(who.Account)
	if a == nil || a.State != catalog.AccountActive {
		return "", newError(accessDenied, "This account may not let clients in.")
	}

	// Choose the consent's id now, so that a code can become only one consent.
	var id [16]byte
	rand.Read(id[:])

	// Use hashes, because client ids and redirect URLs may be long.
	client := Client{ID: p.Client}
	sealed, err := s.rings.seal(ctx, codeBox, code{
		ID:        hex.EncodeToString(id[:]),
		Account:   a.ID,
		Since:     a.Changed,
		Key:       who.Key,
		Client:    client.hash(),
		Name:      p.Name,
		Kind:      p.Kind,
		Redirect:  hashText(p.Redirect),
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
	return withParameters(p.Redirect, v), nil
}

func hashText(text string) []byte {
	h := sha256.Sum256([]byte(text))
	return h[:]
}

// isVerifier reports whether text can be a PKCE verifier.
func isVerifier(text string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	return len(text) >= 43 && len(text) <= 128 && strings.Trim(text, letters) == ""
}
