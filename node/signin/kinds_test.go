package signin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Each provider kind that the configuration accepts can sign people in and has a label.
func TestProviderKinds_coverTheSchema(t *testing.T) {
	t.Parallel()
	var schema struct {
		Definitions map[string]struct {
			Properties struct{ Provider struct{ Enum []string } }
		}
	}
	if err := json.Unmarshal([]byte(config.Schema()), &schema); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/reference/sign-in.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, k := range kinds {
		rows = append(rows, k.name)
		if !strings.Contains(string(page), "\n| `"+k.name+"` |") {
			t.Errorf("docs/reference/sign-in.md has no row for %s", k.name)
		}
	}
	names := schema.Definitions["identityProvider"].Properties.Provider.Enum
	slices.Sort(rows)
	slices.Sort(names)
	if !slices.Equal(rows, names) {
		t.Errorf("rows %q, the schema has %q", rows, names)
	}
}

// answers is a transport with fixed answers, by URL.
type answers struct {
	at   map[string]string
	seen []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		a.seen = append(a.seen, r.URL.String(), string(body))
	}
	text, ok := a.at[r.URL.String()]
	if !ok {
		return &http.Response{StatusCode: 404, Status: "404 Not Found", Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
	}
	kind := "application/json"
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// Providers without OpenID Connect are asked who the token's owner is.
func TestCodeHosts_identifyTheTokenOwner(t *testing.T) {
	t.Parallel()
	const token = `{"access_token": "at", "token_type": "bearer"}`
	for what, c := range map[string]struct {
		provider, base, authorize string
		at                        map[string]string
		want                      account.Proof
		kind                      error
	}{
		"github.com": {"github", "", "https://github.com/login/oauth/authorize", map[string]string{
			"https://github.com/login/oauth/access_token": token,
			"https://api.github.com/user":                 `{"id": 7, "login": "ann", "name": "Ann", "email": "public@example.com"}`,
			"https://api.github.com/user/emails":          `[{"email": "old@example.com", "verified": true}, {"email": "ann@example.com", "primary": true, "verified": true}]`,
		}, account.Proof{Authority: "https://github.com", Subject: "7", Login: "ann", Name: "Ann", Email: "ann@example.com", Proven: true}, nil},
		"GitHub Enterprise Server": {"github", "https://git.corp/", "https://git.corp/login/oauth/authorize", map[string]string{
			"https://git.corp/login/oauth/access_token": token,
			"https://git.corp/api/v3/user":              `{"id": 7, "login": "ann"}`,
			"https://git.corp/api/v3/user/emails":       `[{"email": "ann@example.com", "primary": true, "verified": false}]`,
		}, account.Proof{Authority: "https://git.corp", Subject: "7", Login: "ann", Email: "ann@example.com"}, nil},
		"a code of GitHub that was used": {"github", "", "https://github.com/login/oauth/authorize", map[string]string{
			"https://github.com/login/oauth/access_token": `{"error": "bad_verification_code"}`,
		}, account.Proof{}, call.ErrUnauthenticated},
		"a GitHub that names nobody": {"github", "", "https://github.com/login/oauth/authorize", map[string]string{
			"https://github.com/login/oauth/access_token": token, "https://api.github.com/user": `{}`, "https://api.github.com/user/emails": `[]`,
		}, account.Proof{}, call.ErrUnavailable},
		"a GitHub that fails": {"github", "", "https://github.com/login/oauth/authorize", map[string]string{
			"https://github.com/login/oauth/access_token": token,
		}, account.Proof{}, call.ErrUnavailable},
		"Bitbucket Cloud": {"bitbucket-cloud", "", "https://bitbucket.org/site/oauth2/authorize", map[string]string{
			"https://bitbucket.org/site/oauth2/access_token": token,
			"https://api.bitbucket.org/2.0/user":             `{"uuid": "{u-1}", "nickname": "ann", "display_name": "Ann"}`,
			"https://api.bitbucket.org/2.0/user/emails":      `{"values": [{"email": "ann@example.com", "is_primary": true, "is_confirmed": true}]}`,
		}, account.Proof{Authority: "https://bitbucket.org", Subject: "{u-1}", Login: "ann", Name: "Ann", Email: "ann@example.com", Proven: true}, nil},
		"Bitbucket Data Center": {"bitbucket-server", "https://bb.corp", "https://bb.corp/rest/oauth2/latest/authorize", map[string]string{
			"https://bb.corp/rest/oauth2/latest/token":        token,
			"https://bb.corp/plugins/servlet/applinks/whoami": "ann\n",
			"https://bb.corp/rest/api/1.0/users/ann":          `{"id": 7, "name": "ann", "displayName": "Ann", "emailAddress": "ann@example.com"}`,
		}, account.Proof{Authority: "https://bb.corp", Subject: "7", Login: "ann", Name: "Ann", Email: "ann@example.com"}, nil},
		"Bitbucket Data Center takes the token for nobody": {"bitbucket-server", "https://bb.corp", "https://bb.corp/rest/oauth2/latest/authorize", map[string]string{
			"https://bb.corp/rest/oauth2/latest/token": token, "https://bb.corp/plugins/servlet/applinks/whoami": "",
		}, account.Proof{}, call.ErrUnauthenticated},
	} {
		i := newIDP(t)
		d := newTestServer(t, i, config.IdentityProvider{Provider: c.provider, Purpose: "sso", BaseURL: c.base, DisplayName: "Host"})
		hosts := &answers{at: c.at}
		d.client = newClient(hosts)
		x := d.begin(t, Start{})
		if !strings.HasPrefix(x.begun.Address, c.authorize+"?") {
			t.Errorf("%s: sent to %s", what, x.begun.Address)
		}
		_, err := d.back(t, x, nil)
		if c.kind == nil {
			c.want.Method, c.want.Title = "corp", "Host"
		}
		if !errors.Is(err, c.kind) || d.book.who != c.want {
			t.Errorf("%s: %v, %+v, want %+v", what, err, d.book.who, c.want)
		}
		if len(hosts.seen) < 2 || !strings.Contains(hosts.seen[1], "code_verifier=") {
			t.Errorf("%s: asked %q", what, hosts.seen)
		}
	}
}

// The proxy's statement must be signed, for this service, and valid now.
func TestProxySignIn_needsASignedValidStatement(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := httptest.NewRecorder()
	server := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: oidc.ES256}}}
	server.ServeHTTP(keys, httptest.NewRequest("GET", "/keys", nil))

	for what, c := range map[string]struct {
		over   map[string]any
		none   bool
		by     *account.Person
		kind   error
		proven bool
	}{
		"good":         {proven: true},
		"nothing":      {none: true, kind: call.ErrUnauthenticated},
		"for another":  {over: map[string]any{"aud": "other"}, kind: call.ErrUnavailable},
		"of another":   {over: map[string]any{"iss": "https://accounts.google.com"}, kind: call.ErrUnavailable},
		"of yesterday": {over: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, kind: call.ErrUnavailable},
		"of nobody":    {over: map[string]any{"sub": ""}, kind: call.ErrUnavailable},
		"to link it":   {by: &account.Person{}, kind: call.ErrForbidden},
	} {
		i := newIDP(t)
		d := newTestServer(t, i, config.IdentityProvider{Provider: "okta", Purpose: "sso"})
		d.env["AUTH_EE_GCP_IAP_ENABLED"], d.env["AUTH_EE_GCP_IAP_AUDIENCE"] = "true", "/projects/1/apps/x"
		d.proxy = oidc.NewRemoteKeySet(oidc.ClientContext(t.Context(), newClient(&answers{at: map[string]string{proxyKeys: keys.Body.String()}})), proxyKeys)
		claims := map[string]any{"iss": proxyIssuer, "aud": "/projects/1/apps/x", "sub": "accounts.google.com:7", "email": "ann@example.com", "exp": time.Now().Add(time.Minute).Unix()}
		for k, v := range c.over {
			claims[k] = v
		}
		raw, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		req := Start{Provider: "gcp-iap", By: c.by, Assertion: oidctest.SignIDToken(key, "k", oidc.ES256, string(raw))}
		if c.none {
			req.Assertion = ""
		}
		begun, err := d.Begin(t.Context(), req)
		if !errors.Is(err, c.kind) || (err == nil) != (begun != nil && begun.Session != nil) || d.book.who.Proven != c.proven {
			t.Errorf("%s: %+v, %v, %+v", what, begun, err, d.book.who)
		}
	}
	if d := newOpenIDServer(t, newIDP(t)); len(d.Providers()) != 1 {
		t.Errorf("the proxy is a provider though nobody turned it on: %+v", d.Providers())
	}
}
