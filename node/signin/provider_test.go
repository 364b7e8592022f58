package signin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host"
)

// idp is an identity provider. A test sets what it answers.
type idp struct {
	t      *testing.T
	key    *ecdsa.PrivateKey
	server *httptest.Server

	mu       sync.Mutex // guards the fields below
	claims   map[string]any
	info     any            // answer of the userinfo endpoint; nil: the claims
	discover map[string]any // overrides of the usual document
	down     bool
	code     string     // the valid code; "": none
	asked    url.Values // of the last browser request
	alg      string
	signer   *ecdsa.PrivateKey
	basic    bool // the client authenticates in the header
}

const (
	client = "shoal-client"
	secret = "hush-hush"
)

func newIDP(t *testing.T) *idp {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &idp{t: t, key: key, signer: key, alg: oidc.ES256, code: "good", discover: map[string]any{}}
	i.server = httptest.NewServer(i)
	t.Cleanup(i.server.Close)
	return i
}

func (i *idp) url() string { return i.server.URL }

func (i *idp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.down {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		doc := map[string]any{
			"issuer": i.url(), "authorization_endpoint": i.url() + "/authorize", "token_endpoint": i.url() + "/token",
			"jwks_uri": i.url() + "/keys", "userinfo_endpoint": i.url() + "/userinfo", "id_token_signing_alg_values_supported": []string{"ES256"},
		}
		for k, v := range i.discover {
			doc[k] = v
		}
		answer(doc)
	case "/keys":
		(&oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: i.key.Public(), KeyID: "k", Algorithm: oidc.ES256}}}).ServeHTTP(w, r)
	case "/token":
		i.token(w, r, answer)
	case "/userinfo":
		if i.info == nil {
			answer(i.claims)
			return
		}
		answer(i.info)
	default:
		http.NotFound(w, r)
	}
}

// token answers with an id token for a code. Each code works once.
func (i *idp) token(w http.ResponseWriter, r *http.Request, answer func(any)) {
	r.ParseForm()
	_, pass, basic := r.BasicAuth()
	i.basic = basic
	fits := oauth2.S256ChallengeFromVerifier(r.Form.Get("code_verifier")) == i.asked.Get("code_challenge")
	if pass != secret && r.Form.Get("client_secret") != secret {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		answer(map[string]any{"error": "invalid_client"})
		return
	}
	if r.Form.Get("code") != i.code || i.code == "" || !fits {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		answer(map[string]any{"error": "invalid_grant", "error_description": "no such code"})
		return
	}
	i.code = ""
	raw, err := json.Marshal(i.claims)
	if err != nil {
		i.t.Error(err)
	}
	answer(map[string]any{"access_token": "at", "token_type": "Bearer", "id_token": oidctest.SignIDToken(i.signer, "k", i.alg, string(raw))})
}

// setClaims sets the claims: the usual ones with some overridden. A nil value removes one.
func (i *idp) setClaims(nonce string, over map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.claims = map[string]any{
		"iss": i.url(), "aud": client, "sub": "7", "nonce": nonce, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"email": "Ann@Example.com", "email_verified": true, "name": "Ann", "preferred_username": "ann",
	}
	for k, v := range over {
		if i.claims[k] = v; v == nil {
			delete(i.claims, k)
		}
	}
}

// fakeAccounts implements Accounts and records who signed in.
type fakeAccounts struct {
	who   account.Proof
	link  string
	calls int
	own   []account.IdentityInfo
}

func (b *fakeAccounts) Enter(_ context.Context, who account.Proof, _ account.SignIn) (*account.BegunSession, error) {
	b.who, b.calls = who, b.calls+1
	return &account.BegunSession{Token: "t"}, nil
}
func (b *fakeAccounts) EnterWithLink(ctx context.Context, link string, who account.Proof, in account.SignIn) (*account.BegunSession, error) {
	b.link = link
	return b.Enter(ctx, who, in)
}
func (b *fakeAccounts) MayLink(account.Person) error { return nil }
func (b *fakeAccounts) Link(ctx context.Context, _ account.Person, who account.Proof) error {
	_, err := b.Enter(ctx, who, account.SignIn{})
	return err
}
func (b *fakeAccounts) IdentitiesOf(account.Person) []account.IdentityInfo { return b.own }
func (b *fakeAccounts) Unlink(context.Context, account.Person, string, string, []string) error {
	return nil
}

// plainSealer implements Sealer without sealing. It still refuses forged text.
type plainSealer struct{}

func (plainSealer) Seal(_ context.Context, v any) (string, error) {
	b, err := json.Marshal(v)
	return "mine" + string(b), err
}
func (plainSealer) Open(_ context.Context, text string, v any) (bool, error) {
	text, ours := strings.CutPrefix(text, "mine")
	return ours && json.Unmarshal([]byte(text), v) == nil, nil
}

// fakeTokens implements Tokens with the token of one person.
type fakeTokens struct {
	wanted  bool
	token   account.HostToken
	renewed []account.HostToken
	fails   error
}

func (p *fakeTokens) Wanted() bool { return p.wanted }
func (p *fakeTokens) Of(context.Context, *catalog.HostToken) (account.HostToken, error) {
	return p.token, nil
}
func (p *fakeTokens) Renew(_ context.Context, _ *catalog.HostToken, _ string, _ uint64, token account.HostToken) error {
	if p.fails == nil {
		p.renewed = append(p.renewed, token)
	}
	return p.fails
}

// testServer is a server with one provider, named corp, and a browser.
type testServer struct {
	*Server
	book  *fakeAccounts
	purse *fakeTokens
	idp   *idp
	now   time.Time
	env   map[string]string
	log   strings.Builder
}

func newTestServer(t *testing.T, i *idp, p config.IdentityProvider) *testServer {
	t.Helper()
	d := &testServer{book: &fakeAccounts{}, purse: &fakeTokens{}, idp: i, now: time.Now(), env: map[string]string{"ID": client, "SECRET": secret, "ISSUER": i.url()}}
	p.ID = "corp"
	p.ClientID, p.ClientSecret = &config.Token{Env: "ID"}, &config.Token{Env: "SECRET"}
	d.Server = New(Deps{
		Accounts: d.book, Tokens: d.purse, Sealer: plainSealer{}, File: func() *config.File { return &config.File{IdentityProviders: []config.IdentityProvider{p}} },
		Lookup: func(name string) (string, bool) { v, ok := d.env[name]; return v, ok },
		Secret: func(_ context.Context, t config.Token) (string, error) {
			if v := d.env[t.Env]; v != "" {
				return v, nil
			}
			return "", errors.New("it is not set")
		},
		Hosts:   host.Tools{Budgets: host.NewBudgets(time.Now)},
		BaseURL: func() string { return "https://code.example.com" }, Now: func() time.Time { return d.now },
		Log: slog.New(slog.NewTextHandler(&d.log, nil)),
	})
	return d
}

func newOpenIDServer(t *testing.T, i *idp) *testServer {
	return newTestServer(t, i, config.IdentityProvider{Provider: "oidc", Purpose: "sso", Issuer: &config.Token{Env: "ISSUER"}})
}

// begunSignIn is a sign-in that has begun.
type begunSignIn struct {
	begun *Begun
	sent  url.Values // query sent to the provider
}

func (d *testServer) begin(t *testing.T, req Start) begunSignIn {
	t.Helper()
	req.Provider = "corp"
	begun, err := d.Begin(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(begun.Address)
	if err != nil {
		t.Fatal(err)
	}
	d.idp.mu.Lock()
	d.idp.asked = u.Query()
	d.idp.mu.Unlock()
	return begunSignIn{begun, u.Query()}
}

// back returns from the provider: the usual query, with some values overridden.
func (d *testServer) back(t *testing.T, x begunSignIn, over url.Values) (*Finished, error) {
	t.Helper()
	q := url.Values{"state": {x.sent.Get("state")}, "code": {"good"}}
	for k, v := range over {
		q[k] = v
	}
	return d.Finish(t.Context(), Back{Provider: "corp", Query: q, Carried: func(end string) string {
		if end == x.begun.Cookie {
			return x.begun.Value
		}
		return ""
	}})
}
