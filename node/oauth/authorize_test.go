package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/account"
)

func TestClientRegistration_acceptsRealClients(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	before := w.entries()
	for what, c := range map[string]struct{ body, want string }{
		"an agent on this machine":  {`{"client_name":"Claude Code","redirect_uris":["http://localhost:51234/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","application_type":"native"}`, "http://localhost:51234/callback"},
		"an editor with three":      {`{"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback"],"application_type":"web"}`, "cursor://anysphere.cursor-mcp/oauth/callback https://www.cursor.com/agents/mcp/oauth/callback http://localhost:8787/callback"},
		"an editor":                 {`{"client_name":"Visual Studio Code","redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"],"grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"]}`, "https://insiders.vscode.dev/redirect https://vscode.dev/redirect http://127.0.0.1/ http://127.0.0.1:33418/"},
		"a hosted connector":        {`{"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector/oauth/abc"],"scope":"offline_access","token_endpoint_auth_method":"client_secret_post"}`, "https://chatgpt.com/connector/oauth/abc"},
		"no name and little else":   {`{"redirect_uris":["http://127.0.0.1:1/"]}`, "http://127.0.0.1:1/"},
		"bad ones among good ones":  {`{"redirect_uris":["javascript:alert(1)","http://evil.example/","https://good.example/cb","data:text/html,x"]}`, "https://good.example/cb"},
		"members that nobody knows": {`{"redirect_uris":["com.example.app:/cb"],"contacts":["a@b"],"jwks":{},"x":[[[]]]}`, "com.example.app:/cb"},
	} {
		got, err := w.nodes[0].Register(t.Context(), []byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		var asked Registration
		json.Unmarshal([]byte(c.body), &asked)
		if strings.Join(got.RedirectURIs, " ") != c.want || got.AuthMethod != "none" || got.ApplicationType != asked.ApplicationType || asked.Name != "" && got.Name != asked.Name || got.Name == "" {
			t.Errorf("%s: got %+v", what, got)
		}
		if found, err := w.nodes[0].findClient(t.Context(), got.ClientID, "ann"); err != nil || found.Name != got.Name || found.Kind != Registered {
			t.Errorf("%s: its id is of %+v, %v", what, found, err)
		}
	}
	if w.entries() != before {
		t.Error("registration writes to the log")
	}
}

func TestClientRegistration_refusesInvalidClients(t *testing.T) {
	t.Parallel()
	p := newTestCluster(t, 1).nodes[0]
	for body, want := range map[string]string{
		``:                                     invalidMetadata,
		`[]`:                                   invalidMetadata,
		`null`:                                 invalidMetadata,
		`{"redirect_uris":"https://x.y/"}`:     invalidMetadata,
		`{"redirect_uris":[1]}`:                invalidMetadata,
		`{"redirect_uris":[],"client_name":1}`: invalidMetadata,
		`{}`:                                   invalidRedirect,
		`{"redirect_uris":[]}`:                 invalidRedirect,
		`{"redirect_uris":["http://x.y/"]}`:    invalidRedirect,
		`{"redirect_uris":["https://a@x.y/"]}`: invalidRedirect,
		`{"redirect_uris":["https://x.y/#f"]}`: invalidRedirect,
		`{"redirect_uris":["https://x.y/` + strings.Repeat("a", maxRedirect) + `"]}`: invalidRedirect,
		strings.Repeat("[", 100000): invalidMetadata,
	} {
		_, err := p.Register(t.Context(), []byte(body))
		wants(t, body[:min(len(body), 60)], err, want)
	}
}

func TestClientName_losesUnsafeCharacters(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Claude Code":           "Claude Code",
		" a\n\tb ":              "a b",
		"Agent\u202Etxt.exe":    "Agent txt.exe",
		"x\x00y":                "x y",
		"z\u200B\u2066w":        "z w",
		"\xff\xfe":              "",
		strings.Repeat("é", 60): strings.Repeat("é", 32),
	} {
		if got := cleanName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

func TestRedirectURL_mustBeSafe(t *testing.T) {
	t.Parallel()
	named := []string{"http://localhost/callback", "http://127.0.0.1:33418/", "https://good.example/cb?x=1", "cursor://anysphere.cursor-mcp/oauth/callback", "http://[::1]/cb"}
	for asked, want := range map[string]bool{
		"http://localhost/callback":                    true,
		"http://localhost:1/callback":                  true,
		"http://localhost:65535/callback":              true,
		"http://127.0.0.1/":                            true,
		"http://127.0.0.1:5/":                          true,
		"http://[::1]:80/cb":                           true,
		"https://good.example/cb?x=1":                  true,
		"cursor://anysphere.cursor-mcp/oauth/callback": true,

		"http://localhost:0/callback":                   false,
		"http://localhost:65536/callback":               false,
		"http://localhost:01/callback":                  false,
		"http://localhost:/callback":                    false,
		"http://localhost:+1/callback":                  false,
		"http://localhost:1/callback/":                  false,
		"http://localhost:1/Callback":                   false,
		"http://localhost:1/callback?x":                 false,
		"http://localhost:1/%63allback":                 false,
		"http://LOCALHOST/callback":                     false,
		"http://127.0.0.1/callback":                     false,
		"http://localhost.evil.example/callback":        false,
		"http://localhost:1@evil.example/callback":      false,
		"http://localhost@evil.example/callback":        false,
		"http://localhost:1\\@evil.example/callback":    false,
		"https://localhost/callback":                    false,
		"http://127.0.0.2/":                             false,
		"http://2130706433/":                            false,
		"http://[::ffff:127.0.0.1]/cb":                  false,
		"https://good.example/cb?x=1&y":                 false,
		"https://good.example:443/cb?x=1":               false,
		"https://good.example/cb?x=1#":                  false,
		"https://GOOD.example/cb?x=1":                   false,
		"http://good.example/cb?x=1":                    false,
		"https://good.example./cb?x=1":                  false,
		"cursor://anysphere.cursor-mcp/oauth/callback/": false,
		"CURSOR://anysphere.cursor-mcp/oauth/callback":  false,
		"javascript:alert(1)":                           false,
		"":                                              false,
	} {
		if got := matchRedirect(named, asked); got != want {
			t.Errorf("%q: %t, want %t", asked, got, want)
		}
	}
	// A URL that is not acceptable does not match, even if it was registered.
	for _, bad := range []string{"javascript:alert(1)", "JavaScript:x", "data:,x", "file:///etc/passwd", "http://evil.example/", "https://evil.example;sandbox/", "//x.y/", "/cb", "https:x", "https://", "blob:https://x.y/z",
		"shell:startup", "ms-msdt:/id", "MS-Settings:x", "search-ms:query=x", "mk:@MSITStore:x"} {
		if matchRedirect([]string{bad}, bad) {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestAuthorize_refusesInvalidRequests(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p := w.nodes[0]
	client := p.registered()
	before := w.entries()
	for what, c := range map[string]struct {
		edit func(url.Values)
		page string // code of an error on a page
		told string // code of an error for the client
	}{
		"an unknown client":       {edit: func(q url.Values) { q.Set("client_id", "x") }, page: invalidClient},
		"no client":               {edit: func(q url.Values) { q.Del("client_id") }, page: invalidClient},
		"two clients":             {edit: func(q url.Values) { q.Add("client_id", client) }, page: invalidRequest},
		"another address":         {edit: func(q url.Values) { q.Set("redirect_uri", "https://evil.example/") }, page: invalidRedirect},
		"two addresses":           {edit: func(q url.Values) { q.Add("redirect_uri", "https://evil.example/") }, page: invalidRequest},
		"no challenge":            {edit: func(q url.Values) { q.Del("code_challenge") }, told: invalidRequest},
		"plain":                   {edit: func(q url.Values) { q.Set("code_challenge_method", "plain") }, told: invalidRequest},
		"no method":               {edit: func(q url.Values) { q.Del("code_challenge_method") }, told: invalidRequest},
		"a short challenge":       {edit: func(q url.Values) { q.Set("code_challenge", "abc") }, told: invalidRequest},
		"a token":                 {edit: func(q url.Values) { q.Set("response_type", "token") }, told: unsupportedType},
		"nothing":                 {edit: func(q url.Values) { q.Del("response_type") }, told: invalidRequest},
		"a foreign resource":      {edit: func(q url.Values) { q.Set("resource", "https://other.example/api/mcp") }, told: invalidTarget},
		"a resource too many":     {edit: func(q url.Values) { q.Add("resource", base+"/api/mcpx") }, told: invalidTarget},
		"a fragment for answers":  {edit: func(q url.Values) { q.Set("response_mode", "fragment") }, told: invalidRequest},
		"a request in a request":  {edit: func(q url.Values) { q.Set("request", "x") }, told: "request_not_supported"},
		"a state of 9 KiB":        {edit: func(q url.Values) { q.Set("state", strings.Repeat("s", 9<<10)) }, told: invalidRequest},
		"a challenge given twice": {edit: func(q url.Values) { q.Add("code_challenge", "x") }, told: invalidRequest},
	} {
		q := request(client)
		c.edit(q)
		_, err := p.Authorize(t.Context(), ann, q)
		var refusal *Refusal
		if c.page != "" {
			if errors.As(err, &refusal) {
				t.Errorf("%s: the reader is sent to %s", what, refusal.To)
			}
			wants(t, what, err, c.page)
			continue
		}
		if !errors.As(err, &refusal) || refusal.Err.Code != c.told {
			t.Errorf("%s: got %v, want the client told %s", what, err, c.told)
			continue
		}
		u, err := url.Parse(refusal.To)
		back := u.Query()
		if err != nil || u.Host != "localhost:4711" || back.Get("error") != c.told || back.Get("iss") != base || len(q.Get("state")) < 100 && back.Get("state") != "st" {
			t.Errorf("%s: sent to %s", what, refusal.To)
		}
	}
	if w.entries() != before {
		t.Error("it was written to the log")
	}
}

// A client that anybody can register does not get the person redirected before the decision. A
// client that an owner knows gets the error.
func TestAuthorize_isNoOpenRedirector(t *testing.T) {
	t.Parallel()
	p := newTestCluster(t, 1).nodes[0]
	const elsewhere = "https://phish.example/login"
	own, err := p.Register(t.Context(), []byte(`{"client_name":"Agent","redirect_uris":["`+elsewhere+`"]}`))
	if err != nil {
		t.Fatal(err)
	}
	known, err := p.RegisterFor(t.Context(), account.Operator(), "Agent", []string{elsewhere})
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(url.Values){
		"another type": func(q url.Values) { q.Set("response_type", "x") },
		"no challenge": func(q url.Values) { q.Del("code_challenge") },
		"two states":   func(q url.Values) { q.Add("state", "x") },
		"a resource":   func(q url.Values) { q.Set("resource", "https://other.example/") },
	} {
		for client, leaves := range map[string]bool{own.ClientID: false, known.ClientID: true} {
			q := request(client)
			q.Set("redirect_uri", elsewhere)
			edit(q)
			_, err := p.Authorize(t.Context(), ann, q)
			var refusal *Refusal
			if errors.As(err, &refusal) != leaves || err == nil {
				t.Errorf("%s: %v, want the reader sent away: %t", name, err, leaves)
			}
		}
	}
}

// Clients request scopes and resources in different ways.
func TestAuthorize_acceptsVariantsOfScopeAndResource(t *testing.T) {
	t.Parallel()
	p := newTestCluster(t, 1).nodes[0]
	client := p.registered()
	for what, edit := range map[string]func(url.Values){
		"no scope":             func(q url.Values) { q.Del("scope") },
		"foreign scopes":       func(q url.Values) { q.Set("scope", "openid profile email") },
		"no resource":          func(q url.Values) { q.Del("resource") },
		"a slash":              func(q url.Values) { q.Set("resource", base+"/api/mcp/") },
		"the base":             func(q url.Values) { q.Set("resource", base) },
		"letters and port":     func(q url.Values) { q.Set("resource", "HTTPS://CODE.example:443/api/mcp") },
		"twice the same":       func(q url.Values) { q.Add("resource", base+"/api/mcp") },
		"no state":             func(q url.Values) { q.Del("state") },
		"no address, only one": func(q url.Values) { q.Del("redirect_uri") },
		"a prompt":             func(q url.Values) { q.Set("prompt", "consent") },
	} {
		q := request(client)
		edit(q)
		if _, err := p.Authorize(t.Context(), ann, q); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for asked, want := range map[string]string{"": "mcp", "openid": "mcp", "offline_access": "mcp offline_access", "mcp mcp offline_access x": "mcp offline_access"} {
		if got := grantedScopes(asked); got != want {
			t.Errorf("of %q is granted %q, want %q", asked, got, want)
		}
	}
}

func TestConsent_isDecidedOnlyByThePersonAsked(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p := w.nodes[0]
	q := request(p.registered())
	state := "ä&=?#\x01 " + strings.Repeat("long", 1000)
	q.Set("state", state)
	asked, err := p.Authorize(t.Context(), ann, q)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		who  Person
		form string
	}{
		"somebody else":       {Person{Account: "olga", Session: "s1"}, asked.Form},
		"another session":     {Person{Account: "ann", Session: "s2"}, asked.Form},
		"nobody":              {Person{}, asked.Form},
		"a changed form":      {ann, asked.Form[:len(asked.Form)-2] + "AA"},
		"no form":             {ann, ""},
		"a code in its place": {ann, p.code(ann, p.registered())},
	} {
		_, err := p.Decide(t.Context(), c.who, c.form, true)
		wants(t, what, err, invalidRequest)
	}
	to, err := p.Decide(t.Context(), ann, asked.Form, false)
	if u, _ := url.Parse(to); err != nil || u.Query().Get("error") != accessDenied || u.Query().Get("state") != state || u.Query().Get("code") != "" {
		t.Errorf("who refuses is sent to %s, %v", to, err)
	}
	to, err = p.Decide(t.Context(), ann, asked.Form, true)
	if u, _ := url.Parse(to); err != nil || u.Query().Get("state") != state || u.Query().Get("code") == "" {
		t.Errorf("who allows is sent to %s, %v", to, err)
	}
	w.pass(pendingLife)
	_, err = p.Decide(t.Context(), ann, asked.Form, true)
	wants(t, "an old form", err, invalidRequest)
}

func TestOAuth_isEnabledOnlyWithTLSOrLocally(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://code.example": true, "http://localhost:7700": true, "http://127.0.0.1:7700": true, "http://[::1]:7700": true,
		"http://code.example": false, "http://10.0.0.1:7700": false, "http://localhost.example": false, "https://code.example/shoal": false, "": false,
	} {
		if got := New(Deps{BaseURL: func() string { return address }, Cluster: &place{}}).Enabled(); got != want {
			t.Errorf("%q: %t, want %t", address, got, want)
		}
	}
}

func TestClientHosts_outsideTheAllowedListAreRefused(t *testing.T) {
	t.Parallel()
	p := newTestCluster(t, 1).nodes[0]
	client := p.registered()
	p.d.Lookup = func(name string) (string, bool) {
		return map[string]string{"SHOAL_OAUTH_CLIENT_HOSTS": "*.good.example, claude.ai"}[name], true
	}
	_, err := p.Register(t.Context(), []byte(`{"redirect_uris":["https://evil.example/cb"]}`))
	wants(t, "another host", err, invalidRedirect)
	_, err = p.Authorize(t.Context(), ann, request(client))
	wants(t, "a client of before", err, invalidClient)
	for _, uri := range []string{"https://a.good.example/cb", "https://CLAUDE.ai/cb"} {
		if _, err := p.Register(context.Background(), []byte(`{"redirect_uris":["`+uri+`"]}`)); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
