package signin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

func TestOpenID_signsAPersonInOnce(t *testing.T) {
	t.Parallel()
	i := newIDP(t)
	d := newOpenIDServer(t, i)
	x := d.begin(t, Start{Next: "/repos"})
	for name, want := range map[string]string{
		"client_id": client, "response_type": "code", "scope": "openid profile email", "code_challenge_method": "S256",
		"redirect_uri": "https://code.example.com/api/auth/callback/corp",
	} {
		if got := x.sent.Get(name); got != want {
			t.Errorf("the provider is sent %s=%q, want %q", name, got, want)
		}
	}
	if len(x.sent.Get("nonce")) < 20 || len(x.sent.Get("state")) < 20 || strings.Contains(x.begun.Address, secret) {
		t.Errorf("the provider is sent %s", x.begun.Address)
	}

	i.setClaims(x.sent.Get("nonce"), nil)
	done, err := d.back(t, x, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := account.Proof{Method: "corp", Title: "Single sign-on", Authority: i.url(), Subject: "7", Login: "ann", Name: "Ann", Email: "Ann@Example.com", Proven: true}
	if d.book.who != want || done.Session == nil || done.Next != "/repos" {
		t.Errorf("came in as %+v to %q, want %+v", d.book.who, done.Next, want)
	}

	// The same code and state again are refused: the provider gives out each code once.
	if _, err := d.back(t, x, nil); !errors.Is(err, call.ErrUnauthenticated) || d.book.calls != 1 {
		t.Errorf("replayed: %v, %d came in", err, d.book.calls)
	}

	// A link is in the sealed flow. The provider never sees it.
	i.code = "good"
	x = d.begin(t, Start{Link: "thelink"})
	i.setClaims(x.sent.Get("nonce"), nil)
	if _, err := d.back(t, x, nil); err != nil || d.book.link != "thelink" || strings.Contains(x.begun.Address, "thelink") {
		t.Errorf("by a link: %v, %+v", err, d.book)
	}
}

// A sign-in fails for each wrong id token, provider error or unsafe document.
func TestOpenID_refusesForgedOrMisdirectedAnswers(t *testing.T) {
	t.Parallel()
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		claims map[string]any
		lie    func(*idp)
		query  url.Values
		kind   error
		logged string
	}{
		"another nonce":             {claims: map[string]any{"nonce": "other"}, kind: call.ErrUnavailable, logged: "of another sign-in"},
		"no nonce":                  {claims: map[string]any{"nonce": nil}, kind: call.ErrUnavailable, logged: "of another sign-in"},
		"another audience":          {claims: map[string]any{"aud": "somebody"}, kind: call.ErrUnavailable, logged: "expected audience"},
		"no audience":               {claims: map[string]any{"aud": nil}, kind: call.ErrUnavailable, logged: "expected audience"},
		"two audiences without azp": {claims: map[string]any{"aud": []string{client, "b"}}, kind: call.ErrUnavailable, logged: "another application"},
		"another azp":               {claims: map[string]any{"azp": "b"}, kind: call.ErrUnavailable, logged: "another application"},
		"another issuer":            {claims: map[string]any{"iss": "https://evil.example"}, kind: call.ErrUnavailable, logged: "different provider"},
		"no subject":                {claims: map[string]any{"sub": nil}, kind: call.ErrUnavailable, logged: "of nobody"},
		"ended":                     {claims: map[string]any{"exp": time.Now().Add(-2 * time.Minute).Unix()}, kind: call.ErrUnavailable, logged: "expired"},
		"another key":               {lie: func(i *idp) { i.signer = other }, kind: call.ErrUnavailable, logged: "verify"},
		"userinfo of somebody else": {claims: map[string]any{"email": nil}, lie: func(i *idp) { i.info = map[string]any{"sub": "8", "email": "b@example.com"} }, kind: call.ErrUnavailable, logged: "somebody else"},
		"huge userinfo": {claims: map[string]any{"email": nil}, lie: func(i *idp) {
			i.info = map[string]any{"sub": "7", "email": strings.Repeat("a", 2*maxAnswer)}
		}, kind: call.ErrUnavailable, logged: "more than"},
		"a code that has ended":          {lie: func(i *idp) { i.code = "" }, kind: call.ErrUnauthenticated, logged: "invalid_grant"},
		"another verifier":               {lie: func(i *idp) { i.asked.Set("code_challenge", "x") }, kind: call.ErrUnauthenticated, logged: "invalid_grant"},
		"an answer of another issuer":    {query: url.Values{"iss": {"https://evil.example"}}, kind: call.ErrUnavailable, logged: "came from"},
		"an empty issuer":                {query: url.Values{"iss": {""}}, kind: call.ErrUnavailable, logged: "came from"},
		"no code":                        {query: url.Values{"code": {""}}, kind: call.ErrUnauthenticated, logged: "no code"},
		"somebody who did not consent":   {query: url.Values{"error": {"access_denied"}, "error_description": {"no\nway"}}, kind: call.ErrUnauthenticated, logged: "access_denied: no way"},
		"another state":                  {query: url.Values{"state": {"123456789012345678901"}}, kind: call.ErrInvalid},
		"a state that only begins alike": {query: url.Values{"state": {"x"}}, kind: call.ErrInvalid},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			i := newIDP(t)
			d := newOpenIDServer(t, i)
			x := d.begin(t, Start{})
			i.setClaims(x.sent.Get("nonce"), c.claims)
			if c.lie != nil {
				c.lie(i)
			}
			if what == "a state that only begins alike" {
				c.query = url.Values{"state": {x.sent.Get("state")[:stateDigits] + "rest"}}
			}

			_, err := d.back(t, x, c.query)
			if !errors.Is(err, c.kind) || d.book.calls != 0 {
				t.Errorf("%v, want %v; %d came in", err, c.kind, d.book.calls)
			}
			if c.logged != "" && !strings.Contains(d.log.String(), c.logged) {
				t.Errorf("the log says %s, want %q", d.log.String(), c.logged)
			}
			if strings.Contains(d.log.String(), secret) || strings.Contains(d.log.String(), "code=good") {
				t.Errorf("a secret stands in the log: %s", d.log.String())
			}
		})
	}
}

func TestSignIn_refusesAnotherBrowserProviderOrALateReturn(t *testing.T) {
	t.Parallel()
	i := newIDP(t)
	d := newOpenIDServer(t, i)
	x := d.begin(t, Start{})
	i.setClaims(x.sent.Get("nonce"), nil)
	for what, b := range map[string]Back{
		"another browser":    {Provider: "corp", Carried: func(string) string { return "" }},
		"a made up cookie":   {Provider: "corp", Carried: func(string) string { return strings.TrimPrefix(x.begun.Value, "mine") }},
		"another provider's": {Provider: "other", Carried: func(string) string { return x.begun.Value }},
	} {
		b.Query = url.Values{"state": {x.sent.Get("state")}, "code": {"good"}}
		if _, err := d.Finish(t.Context(), b); !errors.Is(err, call.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.now = d.now.Add(FlowLife)
	if _, err := d.back(t, x, nil); !errors.Is(err, call.ErrInvalid) || d.book.calls != 0 {
		t.Errorf("too late: %v", err)
	}

	// The configuration changes during the sign-in: the old provider may not answer for the new
	// one.
	x = d.begin(t, Start{})
	i.setClaims(x.sent.Get("nonce"), nil)
	d.env["ISSUER"] = newIDP(t).url()
	if _, err := d.back(t, x, nil); !errors.Is(err, call.ErrUnavailable) || d.book.calls != 0 {
		t.Errorf("after the issuer changed: %v", err)
	}
}

// The operator reads in the log what to configure. Others get only a reference.
func TestOpenID_wrongConfigurationIsExplainedInTheLog(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		lie    func(*idp, *testServer)
		logged string
	}{
		"a slash too many":            {func(i *idp, d *testServer) { d.env["ISSUER"] += "/" }, "write that, to the letter"},
		"no secret":                   {func(i *idp, d *testServer) { d.env["SECRET"] = "" }, "it is not set"},
		"no issuer":                   {func(i *idp, d *testServer) { d.env["ISSUER"] = "okta" }, "no address"},
		"down":                        {func(i *idp, d *testServer) { i.down = true }, "502"},
		"sends people to a script":    {func(i *idp, d *testServer) { i.discover["authorization_endpoint"] = "javascript:alert(1)" }, "none of http"},
		"sends secrets to a file":     {func(i *idp, d *testServer) { i.discover["token_endpoint"] = "file:///etc/passwd" }, "none of http"},
		"has keys nowhere":            {func(i *idp, d *testServer) { i.discover["jwks_uri"] = "" }, "none of http"},
		"says more than it may":       {func(i *idp, d *testServer) { i.discover["x"] = strings.Repeat("a", 2*maxAnswer) }, "more than"},
		"gives an address of a thing": {func(i *idp, d *testServer) { i.discover["userinfo_endpoint"] = "https://user:pw@host/" }, "none of http"},
	} {
		i := newIDP(t)
		d := newOpenIDServer(t, i)
		c.lie(i, d)
		_, err := d.Begin(t.Context(), Start{Provider: "corp"})
		if !errors.Is(err, call.ErrUnavailable) || !strings.Contains(d.log.String(), c.logged) || strings.Contains(err.Error(), c.logged) {
			t.Errorf("%s: %v; logged %s", what, err, d.log.String())
		}
	}

	// It retries soon, but not at each sign-in.
	i := newIDP(t)
	i.down = true
	d := newOpenIDServer(t, i)
	if _, err := d.Begin(t.Context(), Start{Provider: "corp"}); err == nil {
		t.Error("begun at a provider that is down")
	}
	i.down = false
	if _, err := d.Begin(t.Context(), Start{Provider: "corp"}); err == nil {
		t.Error("asked again at once")
	}
	d.now = d.now.Add(foundFailed)
	d.begin(t, Start{})
}

// The client secret changed at the provider and in the secrets manager, but this node has cached
// the old one. It reads the secret again, and the person is signed in.
func TestOpenID_refusedClientSecretIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manager string
		comesIn bool
	}{"changed": {secret, true}, "not changed": {"old", false}, "wrong too": {"older", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIDP(t)
			d := newOpenIDServer(t, i)
			d.env["SECRET"] = "old"
			d.d.Hosts.Forget = func() { d.env["SECRET"] = c.manager }
			x := d.begin(t, Start{})
			i.setClaims(x.sent.Get("nonce"), nil)
			if _, err := d.back(t, x, nil); (err == nil) != c.comesIn {
				t.Errorf("%v; the log says %s", err, d.log.String())
			}
		})
	}
}

// The node fetches a provider's new key. Clocks may differ by less than a minute.
func TestOpenID_fetchesANewKeyAndToleratesSmallClockSkew(t *testing.T) {
	t.Parallel()
	i := newIDP(t)
	d := newOpenIDServer(t, i)
	sign := func() error {
		i.code = "good"
		x := d.begin(t, Start{})
		i.setClaims(x.sent.Get("nonce"), map[string]any{"exp": time.Now().Add(-30 * time.Second).Unix()})
		_, err := d.back(t, x, nil)
		return err
	}
	if err := sign(); err != nil {
		t.Fatal(err)
	}
	fresh, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	i.key, i.signer = fresh, fresh
	i.mu.Unlock()
	if err := sign(); err != nil {
		t.Errorf("after the key was exchanged: %v", err)
	}
}

// Which providers' e-mail addresses are proven, and which claim is the stable id.
func TestOpenID_emailProofDependsOnTheProviderKind(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		provider string
		claims   map[string]any
		subject  string
		proven   bool
	}{
		"verified":                      {"okta", nil, "7", true},
		"verified, as a text":           {"keycloak", map[string]any{"email_verified": "true"}, "7", true},
		"not verified":                  {"authentik", map[string]any{"email_verified": false}, "7", false},
		"nothing said":                  {"oidc", map[string]any{"email_verified": nil}, "7", false},
		"Entra says it is verified":     {"microsoft-entra-id", map[string]any{"oid": "o-1"}, "o-1", false},
		"Entra says the domain is ours": {"microsoft-entra-id", map[string]any{"oid": "o-1", "xms_edov": "1"}, "o-1", true},
		"every account of Gitea":        {"gitea", nil, "7", false},
		"every account of Forgejo":      {"forgejo", nil, "7", false},
		"GitLab":                        {"gitlab", nil, "7", true},
	} {
		i := newIDP(t)
		p := config.IdentityProvider{Provider: c.provider, Purpose: "sso", Issuer: &config.Token{Env: "ISSUER"}}
		if kindNamed(c.provider).base != "" {
			p.BaseURL, p.Issuer = i.url()+"/", nil
		}
		d := newTestServer(t, i, p)
		x := d.begin(t, Start{})
		i.setClaims(x.sent.Get("nonce"), c.claims)
		if _, err := d.back(t, x, nil); err != nil || d.book.who.Subject != c.subject || d.book.who.Proven != c.proven {
			t.Errorf("%s: %v, %+v", what, err, d.book.who)
		}
	}

	// Without an object id, people of Entra cannot be told apart.
	i := newIDP(t)
	d := newTestServer(t, i, config.IdentityProvider{Provider: "microsoft-entra-id", Purpose: "sso", Issuer: &config.Token{Env: "ISSUER"}})
	x := d.begin(t, Start{})
	i.setClaims(x.sent.Get("nonce"), nil)
	if _, err := d.back(t, x, nil); !errors.Is(err, call.ErrUnavailable) || d.book.calls != 0 {
		t.Errorf("without an object id: %v", err)
	}
}

// Name and address may be at the userinfo endpoint only. The client authenticates by a method that
// the provider supports.
func TestOpenID_acceptsProviderVariants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		methods any
		basic   bool
	}{{nil, true}, {[]string{"client_secret_post"}, false}, {[]string{"client_secret_basic"}, true}, {[]string{"client_secret_post", "client_secret_basic"}, true}} {
		i := newIDP(t)
		if c.methods != nil {
			i.discover["token_endpoint_auth_methods_supported"] = c.methods
		}
		i.info = map[string]any{"sub": "7", "email": "b@example.com", "email_verified": true}
		d := newOpenIDServer(t, i)
		x := d.begin(t, Start{})
		i.setClaims(x.sent.Get("nonce"), map[string]any{"email": nil, "email_verified": nil})
		if _, err := d.back(t, x, nil); err != nil || d.book.who.Email != "b@example.com" || !d.book.who.Proven || i.basic != c.basic {
			t.Errorf("methods %v: %v, %+v, in the header: %t", c.methods, err, d.book.who, i.basic)
		}
	}

	// A provider that announces the iss parameter must send it.
	i := newIDP(t)
	i.discover["authorization_response_iss_parameter_supported"] = true
	d := newOpenIDServer(t, i)
	x := d.begin(t, Start{})
	i.setClaims(x.sent.Get("nonce"), nil)
	if _, err := d.back(t, x, nil); !errors.Is(err, call.ErrUnavailable) {
		t.Errorf("without its name: %v", err)
	}
	if _, err := d.back(t, x, url.Values{"iss": {i.url()}}); err != nil {
		t.Errorf("with its name: %v", err)
	}
}
