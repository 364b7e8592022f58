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

// idp is an identity provider that a test makes lie.
type idp struct {
	t      *testing.T
	key    *ecdsa.PrivateKey
	server *httptest.Server

	mu       sync.Mutex // guards the fields below
	claims   map[string]any
	info     any            // answer to whom a token is of; nil: the claims
	discover map[string]any // over the usual document
	down     bool
	code     string     // the one that is good, "" for none
	asked    url.Values // the last request of a browser
	alg      string
	signer   *ecdsa.PrivateKey
	basic    bool // the client shows its secret in the header
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

// token gives an id token for a code, once.
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

// says sets the claims: those that are given over the usual ones; nil takes one away.
func (i *idp) says(nonce string, over map[string]any) {
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

// book is the accounts of a test: it notes who came.
type book struct {
	who   account.Proof
	link  string
	calls int
	own   []account.IdentityInfo
}

func (b *book) Enter(_ context.Context, who account.Proof, _ account.SignIn) (*account.BegunSession, error) {
	b.who, b.calls = who, b.calls+1
	return &account.BegunSession{Token: "t"}, nil
}
func (b *book) EnterWithLink(ctx context.Context, link string, who account.Proof, in account.SignIn) (*account.BegunSession, error) {
	b.link = link
	return b.Enter(ctx, who, in)
}
func (b *book) MayLink(account.Person) error { return nil }
func (b *book) Link(ctx context.Context, _ account.Person, who account.Proof) error {
	_, err := b.Enter(ctx, who, account.SignIn{})
	return err
}
func (b *book) IdentitiesOf(account.Person) []account.IdentityInfo { return b.own }
func (b *book) Unlink(context.Context, account.Person, string, string, []string) error {
	return nil
}

// unsealed seals nothing, but tells its own from what is made up.
type unsealed struct{}

func (unsealed) Seal(_ context.Context, v any) (string, error) {
	b, err := json.Marshal(v)
	return "mine" + string(b), err
}
func (unsealed) Open(_ context.Context, text string, v any) (bool, error) {
	text, ours := strings.CutPrefix(text, "mine")
	return ours && json.Unmarshal([]byte(text), v) == nil, nil
}

// purse is the tokens of a test: one person's.
type purse struct {
	wanted  bool
	token   account.HostToken
	renewed []account.HostToken
	fails   error
}

func (p *purse) Wanted() bool { return p.wanted }
func (p *purse) Of(context.Context, *catalog.HostToken) (account.HostToken, error) {
	return p.token, nil
}
func (p *purse) Renew(_ context.Context, _ *catalog.HostToken, _ string, _ uint64, token account.HostToken) error {
	if p.fails == nil {
		p.renewed = append(p.renewed, token)
	}
	return p.fails
}

// desk is a server with one provider, called corp, and a browser.
type desk struct {
	*Server
	book  *book
	purse *purse
	idp   *idp
	now   time.Time
	env   map[string]string
	log   strings.Builder
}

func newDesk(t *testing.T, i *idp, p config.IdentityProvider) *desk {
	t.Helper()
	d := &desk{book: &book{}, purse: &purse{}, idp: i, now: time.Now(), env: map[string]string{"ID": client, "SECRET": secret, "ISSUER": i.url()}}
	p.ID = "corp"
	p.ClientID, p.ClientSecret = &config.Token{Env: "ID"}, &config.Token{Env: "SECRET"}
	d.Server = New(Deps{
		Accounts: d.book, Tokens: d.purse, Sealer: unsealed{}, File: func() *config.File { return &config.File{IdentityProviders: []config.IdentityProvider{p}} },
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

func openIDDesk(t *testing.T, i *idp) *desk {
	return newDesk(t, i, config.IdentityProvider{Provider: "oidc", Purpose: "sso", Issuer: &config.Token{Env: "ISSUER"}})
}

// trip is a sign-in that has begun.
type trip struct {
	begun *Begun
	sent  url.Values // to the provider
}

func (d *desk) begin(t *testing.T, req Start) trip {
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
	return trip{begun, u.Query()}
}

// back is what the browser brings: what the provider sent, over the usual.
func (d *desk) back(t *testing.T, x trip, over url.Values) (*Finished, error) {
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
