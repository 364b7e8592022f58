package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// FlowLife is how long a person may take at a provider.
const FlowLife = 10 * time.Minute

const (
	stateDigits = 8    // digits of the state in the cookie's name, so that each tab has its own cookie
	maxNext     = 1500 // bytes of the URL to continue at: a cookie holds four kilobytes
	maxSent     = 4096 // bytes of what a provider sends back
)

// flow is the state of a sign-in while the person is at the provider.
type flow struct {
	Provider  string `json:"p"`
	Authority string `json:"a"` // when the flow began
	State     string `json:"s"`
	Nonce     string `json:"n"`
	Verifier  string `json:"v"`
	Next      string `json:"x,omitempty"`
	Link      string `json:"l,omitempty"` // token of a link that signs in for the first time
	Session   string `json:"i,omitempty"` // id of the session that links an identity; "": sign in
	Ends      int64  `json:"e"`
}

// Start is a request to send a browser to a provider: to sign in, to use a link, or to link an
// identity.
type Start struct {
	Provider string          // name in the configuration
	Next     string          // where to continue, a URL of this site
	Link     string          // token of a link; "": none
	By       *account.Person // who links an identity; nil: sign in

	Assertion string // header of a proxy in front of this service
	SignIn    account.SignIn
}

// Begun tells where to send the browser, and its cookie; or Session is set, and the person is
// signed in.
type Begun struct {
	Title   string // of the provider
	Address string
	Cookie  string // end of the cookie's name
	Value   string

	Session *account.BegunSession // set if a proxy has already authenticated the person
}

// Begin starts a sign-in at a provider. It returns ErrNotFound for an unknown provider,
// ErrForbidden if it is not for signing in, and ErrUnavailable if it cannot be reached now.
func (s *Server) Begin(ctx context.Context, req Start) (*Begun, error) {
	p, err := s.providerNamed(req.Provider)
	if err != nil {
		return nil, err
	}

	// A signed-in person may also link providers that are only for linking.
	if req.By == nil && !p.signsIn() {
		return nil, call.Fail(call.ErrForbidden, "Nobody signs in by %s here: it is there to be linked.", p.label())
	}

	// Three secrets: state ties the answer to this browser, nonce ties the token to this flow, and
	// without the verifier nobody can exchange the code.
	f := flow{
		Provider: p.ID,
		State:    random(),
		Nonce:    random(),
		Verifier: oauth2.GenerateVerifier(),
		Link:     req.Link,
		Ends:     s.d.Now().Add(FlowLife).Unix(),
	}

	// The proxy has already authenticated the person.
	if p.way == (proxied{}) {
		return s.beginThroughProxy(ctx, p, req)
	}

	// If it is too long, the person continues at the start page.
	if len(req.Next) <= maxNext {
		f.Next = req.Next
	}
	if req.By != nil {
		// Check now, or the person would sign in at the provider in vain.
		if err := s.d.Accounts.MayLink(*req.By); err != nil {
			return nil, err
		}
		f.Session = req.By.Viewer().Session
	}

	// Limit calls to providers: the person is still unknown.
	leave, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	at, err := p.way.reach(ctx, s, p)
	if err != nil {
		return nil, s.logFailure(p, err)
	}
	cfg, err := s.oauthConfig(ctx, p, at)
	if err != nil {
		return nil, s.logFailure(p, err)
	}

	// The answer must come from the same authority, even if the configuration changes.
	f.Authority = at.authority
	value, err := s.d.Sealer.Seal(ctx, f)
	if err != nil {
		return nil, err
	}
	address := cfg.AuthCodeURL(f.State, oauth2.S256ChallengeOption(f.Verifier), oidc.Nonce(f.Nonce))
	return &Begun{Title: p.label(), Address: address, Cookie: f.State[:stateDigits], Value: value}, nil
}

func random() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Back is the request by which a browser returns from a provider.
type Back struct {
	Provider string                   // of the callback URL
	Query    url.Values               // parameters from the provider
	Carried  func(name string) string // returns the value of the cookie with this end of its name, or ""
	By       *account.Person          // who is signed in in the browser; nil: nobody
	SignIn   account.SignIn
}

// CookieOf returns the end of the cookie's name that belongs to the state parameter, or "" if that
// is malformed.
func (b *Back) CookieOf() string {
	state := b.Query.Get("state")
	if len(state) < stateDigits || len(state) > 64 {
		return ""
	}
	return state[:stateDigits]
}

// Finished is the result of a sign-in.
type Finished struct {
	Session *account.BegunSession // nil if an identity was linked
	Title   string                // of the provider
	Next    string                // where to continue; "": anywhere
}

// errStale returns the error for a browser that did not begin this sign-in, or comes back too late.
func errStale() error {
	return call.Fail(call.ErrInvalid, "This sign-in was not begun in this browser, or it took too long. Begin again.")
}

// Finish authenticates a person who returns from a provider, and signs them in or links their
// identity. It returns ErrInvalid if the browser did not begin the flow, ErrUnauthenticated if the
// provider refused, ErrForbidden if the account may not sign in, and ErrUnavailable if the provider
// cannot be reached.
func (s *Server) Finish(ctx context.Context, b Back) (*Finished, error) {
	f, err := s.openFlow(ctx, &b)
	if err != nil {
		return nil, err
	}

	p, err := s.providerNamed(f.Provider)
	if err != nil {
		return nil, err
	}

	leave, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	who, err := s.fetchProof(ctx, p, f, b.Query)
	// Free the slot: no provider is called from here on.
	leave()
	if err != nil {
		return nil, s.logFailure(p, err)
	}

	done := &Finished{Title: p.label(), Next: f.Next}
	if f.Session != "" {
		// The same person must still be signed in.
		if b.By == nil || b.By.Viewer().Session != f.Session {
			return nil, errStale()
		}
		return done, s.d.Accounts.Link(ctx, *b.By, who)
	}

	done.Session, err = s.signInPerson(ctx, f.Link, who, b.SignIn)
	return done, err
}

// signInPerson signs in an authenticated person, with a link if there is one.
func (s *Server) signInPerson(ctx context.Context, link string, who account.Proof, in account.SignIn) (*account.BegunSession, error) {
	if link != "" {
		return s.d.Accounts.EnterWithLink(ctx, link, who, in)
	}
	return s.d.Accounts.Enter(ctx, who, in)
}

// openFlow returns the flow in the browser's cookie. State and provider must match, and the flow must
// not have expired.
func (s *Server) openFlow(ctx context.Context, b *Back) (*flow, error) {
	// The cookie's name contains the state, so that two tabs do not overwrite each other's.
	name := b.CookieOf()
	if name == "" {
		return nil, errStale()
	}

	var f flow
	// A cookie that is not sealed by this cluster is refused below.
	ours, err := s.d.Sealer.Open(ctx, b.Carried(name), &f)
	if err != nil {
		return nil, err
	}

	// Compare in constant time: the state is a secret.
	same := subtle.ConstantTimeCompare([]byte(f.State), []byte(b.Query.Get("state"))) == 1
	if !ours || !same || f.Provider != b.Provider || s.d.Now().Unix() >= f.Ends {
		return nil, errStale()
	}
	return &f, nil
}

// fetchProof exchanges the code for the provider's proof of the person.
func (s *Server) fetchProof(ctx context.Context, p *provider, f *flow, sent url.Values) (who account.Proof, err error) {
	// Check for an error first: then there is no code.
	if code := sent.Get("error"); code != "" {
		return who, &refusal{code, sent.Get("error_description")}
	}

	// The configuration may have changed meanwhile.
	if !p.signsIn() && f.Session == "" {
		return who, mistake("it does not sign people in any more")
	}

	at, err := p.way.reach(ctx, s, p)
	if err != nil {
		return who, err
	}

	// Check before sending the code: another provider must not get it.
	if err := at.check(f, sent); err != nil {
		return who, err
	}

	// A stranger may have sent this URL.
	code := sent.Get("code")
	if code == "" || len(code) > maxSent {
		return who, &refusal{"no code", ""}
	}

	// The verifier makes a stolen code useless.
	ctx = oidc.ClientContext(ctx, s.client)
	token, err := s.callWithSecret(ctx, p, at, func(cfg *oauth2.Config) (*oauth2.Token, error) {
		return cfg.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	})
	if err != nil {
		return who, err
	}

	if who, err = p.way.who(ctx, s, p, at, token, f.Nonce); err != nil {
		return who, err
	}

	// An empty subject would make different people equal.
	if who.Subject == "" {
		return who, mistake("it tells no lasting id of the person")
	}

	who.Method, who.Title, who.Authority = p.ID, p.label(), at.authority
	// Keep the token only if it is used.
	if s.asksAt(p) {
		who.Token = &account.HostToken{Access: token.AccessToken, Refresh: token.RefreshToken, Expires: token.Expiry}
	}
	return who, nil
}

// check compares the provider's answer with the beginning of the flow: a provider must not answer
// for another.
func (at *reached) check(f *flow, sent url.Values) error {
	// A subject is only meaningful at its authority.
	if f.Authority != at.authority {
		return mistake("it was another provider when the sign-in began")
	}
	iss, given := sent.Get("iss"), sent.Has("iss")
	// By RFC 9207, a provider that announces it must name itself, and a named issuer must be right.
	if at.issuer != "" && (given || at.sendsIssuer) && iss != at.issuer {
		return mistake("the answer came from %q, not from %q", iss, at.issuer)
	}
	return nil
}
