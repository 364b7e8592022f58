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

// FlowLife is how long somebody may take at a provider.
const FlowLife = 10 * time.Minute

const (
	stateDigits = 8    // of the state name the cookie, so that each tab has its own
	maxNext     = 1500 // bytes of an address to lead on to: a cookie holds four kilobytes
	maxSent     = 4096 // bytes of what a provider sends back
)

// flow is what has to be known when somebody comes back from a provider.
type flow struct {
	Provider  string `json:"p"`
	Authority string `json:"a"` // as it was when the flow began
	State     string `json:"s"`
	Nonce     string `json:"n"`
	Verifier  string `json:"v"`
	Next      string `json:"x,omitempty"`
	Link      string `json:"l,omitempty"` // that lets somebody in for the first time
	Session   string `json:"i,omitempty"` // id of the session that links; "" to sign in
	Ends      int64  `json:"e"`
}

// Start asks to send a browser to a provider: to sign in, to use a link that
// lets somebody in for the first time, or to link an account.
type Start struct {
	Provider string          // its name in the configuration
	Next     string          // where to lead on to, an address of this site
	Link     string          // token of a link; "" for none
	By       *account.Person // who links; nil for nobody

	Assertion string // of a proxy in front of this service, from the header of its name
	SignIn    account.SignIn
}

// Begun is where a browser is sent, and what it carries; or it is in already.
type Begun struct {
	Title   string // of the provider
	Address string
	Cookie  string // end of the name of its cookie
	Value   string

	Session *account.BegunSession // of who came through a proxy that says who it is
}

// Begin sends a browser to a provider. It fails with ErrNotFound where there is
// none of the name, with ErrForbidden where it does not sign people in, and with
// ErrUnavailable where it cannot be asked now.
func (s *Server) Begin(ctx context.Context, req Start) (*Begun, error) {
	p, err := s.named(req.Provider)
	if err != nil {
		return nil, err
	}

	// Whoever is signed in may link what nobody signs in by.
	if req.By == nil && !p.signsIn() {
		return nil, call.Fail(call.ErrForbidden, "Nobody signs in by %s here: it is there to be linked.", p.label())
	}

	// Three secrets, each for one thing: state ties the answer to this browser, nonce the token to
	// this flow, and with the verifier nobody else can exchange the code.
	f := flow{
		Provider: p.ID,
		State:    random(),
		Nonce:    random(),
		Verifier: oauth2.GenerateVerifier(),
		Link:     req.Link,
		Ends:     s.d.Now().Add(FlowLife).Unix(),
	}

	// The proxy has said already who it is: there is nothing to send the browser to.
	if p.way == (proxied{}) {
		return s.throughProxy(ctx, p, req)
	}

	// Where it is too long the person still gets in, at the first page.
	if len(req.Next) <= maxNext {
		f.Next = req.Next
	}
	if req.By != nil {
		// Before the browser leaves: else the person signs in there for nothing.
		if err := s.d.Accounts.MayLink(*req.By); err != nil {
			return nil, err
		}
		f.Session = req.By.Viewer().Session
	}

	// From here on a provider is asked, for somebody whom nobody knows.
	leave, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	at, err := p.way.reach(ctx, s, p)
	if err != nil {
		return nil, s.failed(p, err)
	}
	cfg, err := s.config(ctx, p, at)
	if err != nil {
		return nil, s.failed(p, err)
	}

	// What the answer must come from, also where the configuration has changed meanwhile.
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

// Back is what a browser brings back from a provider.
type Back struct {
	Provider string                   // of the address that it came to
	Query    url.Values               // that the provider sent it with
	Carried  func(name string) string // value of the cookie whose name ends so; "" without it
	By       *account.Person          // who is signed in in the browser; nil for nobody
	SignIn   account.SignIn
}

// CookieOf returns the suffix of the name of the sign-in cookie that belongs to the
// provider's state parameter; "" where that is malformed.
func (b *Back) CookieOf() string {
	state := b.Query.Get("state")
	if len(state) < stateDigits || len(state) > 64 {
		return ""
	}
	return state[:stateDigits]
}

// Finished is what came of a sign-in.
type Finished struct {
	Session *account.BegunSession // nil where an account was linked
	Title   string                // of the provider
	Next    string                // where to lead on to; "" for nowhere in particular
}

// errStale is of a browser that brings back what it did not get, or too late.
func errStale() error {
	return call.Fail(call.ErrInvalid, "This sign-in was not begun in this browser, or it took too long. Begin again.")
}

// Finish learns who somebody is that comes back from a provider, and signs them
// in or links them. It fails with ErrInvalid where the browser did not begin the
// flow, with ErrUnauthenticated where the provider does not vouch for anybody,
// with ErrForbidden where they may not come in, and with ErrUnavailable where the
// provider cannot be asked.
func (s *Server) Finish(ctx context.Context, b Back) (*Finished, error) {
	f, err := s.opened(ctx, &b)
	if err != nil {
		return nil, err
	}

	p, err := s.named(f.Provider)
	if err != nil {
		return nil, err
	}

	leave, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	who, err := s.proof(ctx, p, f, b.Query)
	// Left before the account is looked at: from here on no provider is waited for.
	leave()
	if err != nil {
		return nil, s.failed(p, err)
	}

	done := &Finished{Title: p.label(), Next: f.Next}
	if f.Session != "" {
		// Whoever began to link is still signed in, as the same.
		if b.By == nil || b.By.Viewer().Session != f.Session {
			return nil, errStale()
		}
		return done, s.d.Accounts.Link(ctx, *b.By, who)
	}

	done.Session, err = s.enter(ctx, f.Link, who, b.SignIn)
	return done, err
}

// enter signs in who has proven to be somebody, with a link where there is one.
func (s *Server) enter(ctx context.Context, link string, who account.Proof, in account.SignIn) (*account.BegunSession, error) {
	if link != "" {
		return s.d.Accounts.EnterWithLink(ctx, link, who, in)
	}
	return s.d.Accounts.Enter(ctx, who, in)
}

// opened is the flow that a browser brings back: it carries the cookie, the
// state is the same, the address is that of the provider, and time is left.
func (s *Server) opened(ctx context.Context, b *Back) (*flow, error) {
	// The name of the cookie comes from the state, so that two tabs do not overwrite each other's.
	name := b.CookieOf()
	if name == "" {
		return nil, errStale()
	}

	var f flow
	// A cookie that this cluster did not seal is no fault of its own: it is refused with the others.
	ours, err := s.d.Sealer.Open(ctx, b.Carried(name), &f)
	if err != nil {
		return nil, err
	}

	// In constant time: the state is a secret of the browser.
	same := subtle.ConstantTimeCompare([]byte(f.State), []byte(b.Query.Get("state"))) == 1
	if !ours || !same || f.Provider != b.Provider || s.d.Now().Unix() >= f.Ends {
		return nil, errStale()
	}
	return &f, nil
}

// proof exchanges the code for what the provider says of somebody.
func (s *Server) proof(ctx context.Context, p *provider, f *flow, sent url.Values) (who account.Proof, err error) {
	// First, since with an error there is no code.
	if code := sent.Get("error"); code != "" {
		return who, &refusal{code, sent.Get("error_description")}
	}

	// The configuration may have changed while the person was there.
	if !p.signsIn() && f.Session == "" {
		return who, mistake("it does not sign people in any more")
	}

	at, err := p.way.reach(ctx, s, p)
	if err != nil {
		return who, err
	}

	// Before the code is sent anywhere: a provider that somebody else runs
	// must not get the code of another.
	if err := at.check(f, sent); err != nil {
		return who, err
	}

	// The address is what a stranger has sent.
	code := sent.Get("code")
	if code == "" || len(code) > maxSent {
		return who, &refusal{"no code", ""}
	}

	// Without the verifier the code is worth nothing, so that one who has seen it cannot use it.
	ctx = oidc.ClientContext(ctx, s.client)
	token, err := s.atProvider(ctx, p, at, func(cfg *oauth2.Config) (*oauth2.Token, error) {
		return cfg.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	})
	if err != nil {
		return who, err
	}

	if who, err = p.way.who(ctx, s, p, at, token, f.Nonce); err != nil {
		return who, err
	}

	// Without it two people, or nobody and somebody, would be the same.
	if who.Subject == "" {
		return who, mistake("it tells no lasting id of the person")
	}

	who.Method, who.Title, who.Authority = p.ID, p.label(), at.authority
	// Kept only where it is used: a token is a secret of the person's.
	if s.asksAt(p) {
		who.Token = &account.HostToken{Access: token.AccessToken, Refresh: token.RefreshToken, Expires: token.Expiry}
	}
	return who, nil
}

// check compares what the provider sent with what the flow began with: a
// provider cannot answer for another one.
func (at *reached) check(f *flow, sent url.Values) error {
	// Subjects of one mean nothing at another, and an identity is both.
	if f.Authority != at.authority {
		return mistake("it was another provider when the sign-in began")
	}
	iss, given := sent.Get("iss"), sent.Has("iss")
	// As RFC 9207 has it: one that always names itself must, and what is named must be right.
	if at.issuer != "" && (given || at.sendsIssuer) && iss != at.issuer {
		return mistake("the answer came from %q, not from %q", iss, at.issuer)
	}
	return nil
}
