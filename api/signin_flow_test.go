package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// company is an identity provider at which the test chooses who signs in.
type company struct {
	*httptest.Server
	key *ecdsa.PrivateKey

	mu    sync.Mutex // guards the fields below
	says  map[string]any
	codes map[string]string // nonces by unused code
	given int
}

func newCompany(t *testing.T) *company {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &company{key: key, codes: map[string]string{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *company) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.URL.Path {
	case "/authorize":
		q := r.URL.Query()
		code := fmt.Sprint("code", c.given)
		c.given++
		c.codes[code] = q.Get("nonce")
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	case "/token":
		// It takes a code once, as providers do.
		nonce, good := c.codes[r.FormValue("code")]
		delete(c.codes, r.FormValue("code"))
		if !good {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(map[string]any{"error": "invalid_grant", "error_description": "the code was used"})
			return
		}
		claims := map[string]any{"iss": c.URL, "aud": "client", "nonce": nonce, "exp": time.Now().Add(time.Hour).Unix()}
		for k, v := range c.says {
			claims[k] = v
		}
		raw, _ := json.Marshal(claims)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"access_token": "at", "token_type": "Bearer", "id_token": oidctest.SignIDToken(c.key, "k", oidc.ES256, string(raw))})
	case "/userinfo":
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(c.says)
	case "/keys":
		(&oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: c.key.Public(), KeyID: "k", Algorithm: oidc.ES256}}}).ServeHTTP(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{
			"issuer": c.URL, "authorization_endpoint": c.URL + "/authorize", "token_endpoint": c.URL + "/token", "jwks_uri": c.URL + "/keys", "userinfo_endpoint": c.URL + "/userinfo",
		})
	}
}

// is sets who signs in next.
func (c *company) is(subject, email string, verified bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.says = map[string]any{"sub": subject, "email": email, "email_verified": verified, "preferred_username": subject}
}

// configure applies a configuration with identity providers at every node.
func (f *front) configure(text string) {
	f.t.Helper()
	f.node().Configure(text)
	for _, n := range f.fleet.Nodes {
		n.Wait("the providers", func() error {
			if len(n.SignIn().Providers()) == 0 {
				return fmt.Errorf("none yet")
			}
			return nil
		})
	}
}

// browser returns a browser without a session.
func (f *front) browser() *person {
	jar, _ := cookiejar.New(nil)
	return &person{front: f, http: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// through sends a form that leads to a provider, and follows to the answer of the redirect
// address.
func (p *person) through(path string, form url.Values) (*http.Response, string) {
	p.t.Helper()
	resp, page := p.do("POST", path, form)
	to, ok := strings.CutPrefix(resp.Header.Get("Refresh"), "0; url=")
	if !ok {
		return resp, page
	}
	resp, _ = p.do("GET", to, nil)
	return p.do("GET", resp.Header.Get("Location"), nil)
}

// alert returns the error message of a page.
func alert(page string) string {
	m := regexp.MustCompile(`role="alert">([^<]*)<`).FindStringSubmatch(page)
	if m == nil {
		return ""
	}
	return m[1]
}

// Each request goes to another of three nodes: sign-in, approval, linking by address and by hand,
// unlinking, and suspension.
func TestProviderSignIn_worksWithEachRequestAtAnotherNode(t *testing.T) {
	t.Parallel()
	ctx, by := t.Context(), account.Operator()
	corp, host := newCompany(t), newCompany(t)
	f := openFront(t, 3, map[string]string{"ID": "client", "SECRET": "hush", "CORP": corp.URL, "HOST": host.URL})
	f.configure(`{"identityProviders": {
		"corp": {"provider": "oidc", "purpose": "sso", "displayName": "Corp", "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}, "issuer": {"env": "CORP"}},
		"host": {"provider": "gitlab", "purpose": "account_linking", "displayName": "Host", "baseUrl": "` + host.URL + `", "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}},
	}}`)
	corpForm := url.Values{"with": {"corp"}, "next": {"/repos"}}
	n := f.node()

	// A new person waits for an owner's approval.
	corp.is("7", "Ann@Example.com", true)
	ann := f.browser()
	if resp, page := ann.through("/login", corpForm); resp.StatusCode != 403 || !strings.Contains(alert(page), "waits for an owner") {
		t.Fatalf("somebody new: %d %q %s", resp.StatusCode, alert(page), page)
	}
	if _, err := n.People.ChangeUser(ctx, by, account.ChangeUserRequest{User: "ann@example.com", State: catalog.AccountActive}); err != nil {
		t.Fatal(err)
	}
	if resp, page := ann.through("/login", corpForm); resp.StatusCode != 303 || resp.Header.Get("Location") != "/repos" {
		t.Fatalf("approved: %d %s", resp.StatusCode, alert(page))
	}
	for range 3 {
		if resp, page := ann.do("GET", "/repos", nil); resp.StatusCode != 200 || !strings.Contains(page, "ann@example.com") {
			t.Errorf("signed in: %d", resp.StatusCode)
		}
	}

	// A renamed person stays the same. Another person with the address does not get the account.
	corp.is("7", "ann.b@example.com", true)
	if resp, _ := f.browser().through("/login", corpForm); resp.StatusCode != 303 {
		t.Errorf("with another address: %d", resp.StatusCode)
	}
	corp.is("8", "ann@example.com", true)
	if resp, page := f.browser().through("/login", corpForm); resp.StatusCode != 403 || !strings.Contains(alert(page), "in use here") {
		t.Errorf("somebody else with the address: %d %q", resp.StatusCode, alert(page))
	}

	// An invited person needs a verified address.
	if _, err := n.People.CreateUser(ctx, by, account.CreateUserRequest{Email: "bob@example.com"}); err != nil {
		t.Fatal(err)
	}
	corp.is("9", "bob@example.com", false)
	if resp, _ := f.browser().through("/login", corpForm); resp.StatusCode != 403 {
		t.Errorf("by an address that is not proven: %d", resp.StatusCode)
	}
	corp.is("9", "bob@example.com", true)
	bob := f.browser()
	if resp, page := bob.through("/login", corpForm); resp.StatusCode != 303 {
		t.Errorf("invited: %d %q", resp.StatusCode, alert(page))
	}

	// A code host is linked, but does not sign in. The last way to sign in stays.
	host.is("70", "bob@home.example", true)
	if resp, _ := f.browser().through("/login", url.Values{"with": {"host"}}); resp.StatusCode != 403 {
		t.Errorf("signed in by a provider that only links: %d", resp.StatusCode)
	}
	if resp, page := bob.through("/settings/account", url.Values{"link": {"host"}}); resp.StatusCode != 303 || resp.Header.Get("Location") != "/settings/account?linked" {
		t.Errorf("linked: %d %q", resp.StatusCode, alert(page))
	}
	if resp, page := ann.through("/settings/account", url.Values{"link": {"host"}}); resp.StatusCode != 400 || !strings.Contains(alert(page), "another account") {
		t.Errorf("linked twice: %d %q", resp.StatusCode, alert(page))
	}
	unlink := func(authority, subject string) (int, string) {
		resp, page := bob.do("POST", "/settings/account", url.Values{"unlink": {authority}, "subject": {subject}})
		return resp.StatusCode, alert(page)
	}
	if status, said := unlink(corp.URL, "9"); status != 400 || !strings.Contains(said, "only way") {
		t.Errorf("the last way in: %d %q", status, said)
	}
	if status, said := unlink(host.URL, "70"); status != 200 {
		t.Errorf("unlinked: %d %q", status, said)
	}

	// A suspended person cannot sign in, and sessions end at once.
	if _, err := n.People.ChangeUser(ctx, by, account.ChangeUserRequest{User: "bob@example.com", State: catalog.AccountSuspended}); err != nil {
		t.Fatal(err)
	}
	if resp, page := f.browser().through("/login", corpForm); resp.StatusCode != 403 || !strings.Contains(alert(page), "suspended") {
		t.Errorf("suspended: %d %q", resp.StatusCode, alert(page))
	}
	if resp, _ := bob.do("GET", "/repos", nil); resp.StatusCode != 303 {
		t.Errorf("the session of who was suspended: %d", resp.StatusCode)
	}
}

// The environment variables for who may sign in, and for accounts that must be linked first.
func TestProviderSignIn_obeysTheSignUpAndLinkingSettings(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	corp, host := newCompany(t), newCompany(t)
	env := map[string]string{
		"ID": "client", "SECRET": "hush", "CORP": corp.URL,
		"REQUIRE_APPROVAL_NEW_MEMBERS": "false", "SHOAL_ALLOWED_EMAIL_DOMAINS": "Example.com, example.org", "AUTH_EE_ALLOW_EMAIL_ACCOUNT_LINKING": "false",
	}
	f := openFront(t, 1, env)
	f.configure(`{"identityProviders": {
		"corp": {"provider": "keycloak", "purpose": "sso", "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}, "issuer": {"env": "CORP"}},
		"host": {"provider": "gitlab", "purpose": "account_linking", "accountLinkingRequired": true, "baseUrl": "` + host.URL + `", "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}},
	}}`)
	form := url.Values{"with": {"corp"}}
	if _, err := f.node().People.CreateUser(ctx, account.Operator(), account.CreateUserRequest{Email: "invited@example.com"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		subject, email string
		verified       bool
		status         int
		said           string
	}{
		{"1", "ann@example.com", true, 303, ""},
		{"2", "eve@example.net", true, 403, "example.net"},
		{"3", "eve@notexample.com", true, 403, "notexample.com"},
		{"4", "dan@example.com", false, 403, "does not prove"},
		{"5", "", true, 403, "no e-mail address"},
		{"6", "not an address", true, 403, "no e-mail address"},
		{"7", "invited@example.com", true, 403, "in use here"},
	} {
		corp.is(c.subject, c.email, c.verified)
		if resp, page := f.browser().through("/login", form); resp.StatusCode != c.status || !strings.Contains(alert(page), c.said) {
			t.Errorf("%s: %d %q, want %d %q", c.email, resp.StatusCode, alert(page), c.status, c.said)
		}
	}

	// A link proves the owner's intent, whatever the address.
	l, err := f.node().Passwords.NewLink(ctx, account.Operator(), account.NewLinkRequest{User: "invited@example.com", Join: true})
	if err != nil {
		t.Fatal(err)
	}
	corp.is("7", "private@elsewhere.net", false)
	invited := f.browser()
	if resp, page := invited.through("/join", url.Values{"with": {"corp"}, "link": {l.Token}}); resp.StatusCode != 303 {
		t.Errorf("with a link: %d %q", resp.StatusCode, alert(page))
	}
	if resp, _ := f.browser().through("/join", url.Values{"with": {"corp"}, "link": {l.Token}}); resp.StatusCode != 404 {
		t.Errorf("with a used link: %d", resp.StatusCode)
	}

	// Until the code host is linked no other page opens.
	if resp, _ := invited.do("GET", "/repos", nil); resp.Header.Get("Location") != "/settings/account?missing" {
		t.Errorf("without a linked account: %d to %q", resp.StatusCode, resp.Header.Get("Location"))
	}
	host.is("70", "", false)
	if resp, page := invited.through("/settings/account", url.Values{"link": {"host"}}); resp.StatusCode != 303 {
		t.Errorf("linking: %d %q", resp.StatusCode, alert(page))
	}
	if resp, _ := invited.do("GET", "/repos", nil); resp.StatusCode != 200 {
		t.Errorf("with a linked account: %d to %q", resp.StatusCode, resp.Header.Get("Location"))
	}
}

// Failed sign-ins at a provider write nothing to the raft log.
func TestProviderSignIn_failuresWriteNothingToTheRaftLog(t *testing.T) {
	t.Parallel()
	corp := newCompany(t)
	f := openFront(t, 1, map[string]string{"ID": "client", "SECRET": "hush", "CORP": corp.URL})
	f.configure(`{"identityProviders": {"corp": {"provider": "oidc", "purpose": "sso", "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}, "issuer": {"env": "CORP"}}}}`)
	before := f.index()
	for i := range 30 {
		b := f.browser()
		b.do("POST", "/login", url.Values{"with": {"corp"}, "next": {strings.Repeat("/x", i)}})
		b.do("GET", "/api/auth/callback/corp?state=12345678901234567890&code=x", nil)
		b.do("GET", "/api/auth/callback/none?error=x", nil)
		corp.is("", "", false)
		b.through("/login", url.Values{"with": {"corp"}})
	}
	if after := f.index(); after != before {
		t.Errorf("the log grew from %d to %d", before, after)
	}
}
