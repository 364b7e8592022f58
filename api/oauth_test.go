package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/model/modeltest"
)

func TestAgentToken_worksFromAuthorizationToRevocation(t *testing.T) {
	t.Parallel()
	f := openFront(t, 1, nil)
	ann := f.person("ann@example.com")

	// Without a token the answer says where to get one.
	resp := f.asks("POST", "/api/mcp", "", listTools)
	want := `Bearer realm="shoal", resource_metadata="` + f.base + `/.well-known/oauth-protected-resource/api/mcp", scope="mcp"`
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || got != want {
		t.Errorf("without a token: %d %s", resp.StatusCode, got)
	}
	resp = f.asks("POST", "/api/mcp", "shoal_at_x", listTools)
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || got != want+`, error="invalid_token"` {
		t.Errorf("with a bad token: %d %s", resp.StatusCode, got)
	}

	a := ann.agent()
	if status := a.works(a.tokens.Access); status != 200 {
		t.Fatalf("the token: %d", status)
	}
	for _, path := range []string{"/api/keys", "/api/repos", "/api/agents", "/settings/access"} {
		if resp := f.asks("GET", path, a.tokens.Access, ""); resp.StatusCode == 200 {
			t.Errorf("a token of an agent opens %s", path)
		}
	}

	// Repeating a refresh returns the same new token.
	next, _ := a.refresh(a.tokens.Refresh)
	again, wrong := a.refresh(a.tokens.Refresh)
	if next.Refresh == "" || again.Refresh != next.Refresh || wrong != "" || next.Refresh == a.tokens.Refresh {
		t.Errorf("refreshed to %q, then to %q (%s)", next.Refresh, again.Refresh, wrong)
	}

	// The person removes the agent on the page.
	var list []struct{ ID, Name, User string }
	if resp := f.asks("GET", "/api/agents", ann.key, ""); resp.StatusCode != 200 {
		t.Fatalf("list: %d", resp.StatusCode)
	}
	agents, err := f.node().OAuth().Agents(t.Context(), account.Operator())
	if err != nil || len(agents) != 1 {
		t.Fatalf("agents %+v, %v (%v)", agents, err, list)
	}
	if resp, page := ann.do("POST", "/settings/access", url.Values{"end": {agents[0].ID}}); resp.StatusCode != 200 || !strings.Contains(page, "Agent is ended") {
		t.Errorf("the end: %d %s", resp.StatusCode, page)
	}
	if status := a.works(next.Access); status != 401 {
		t.Errorf("after its end the agent gets %d", status)
	}
	if _, wrong := a.refresh(next.Refresh); wrong != "invalid_grant" {
		t.Errorf("after its end it refreshes with %q", wrong)
	}
}

// It checks what a person sees before deciding, and what a browser may send.
func TestConsentPage_showsTheAgentAndTakesOnlyItsOwnForm(t *testing.T) {
	t.Parallel()
	f := openFront(t, 1, nil)
	ann := f.person("ann@example.com")
	var registered struct {
		ClientID string `json:"client_id"`
	}
	f.post("/register", "application/json", `{"client_name":"<b>Agent</b>","redirect_uris":["http://localhost/cb"]}`, &registered)
	a := &agent{person: ann, id: registered.ClientID}
	address := a.authorizeURL()

	resp, page := ann.do("GET", address, nil)
	for _, want := range []string{"&lt;b&gt;Agent&lt;/b&gt;", "<strong id=\"host\">localhost:4711</strong>", "Unverified", "your own computer", "browser of ann@example.com"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	csp := resp.Header.Get("Content-Security-Policy")
	if !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "form-action 'self' http://localhost:4711;") || resp.Header.Get("X-Frame-Options") != "DENY" ||
		resp.Header.Get("Referrer-Policy") != "same-origin" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", resp.Header)
	}

	// A page of another site cannot decide, nor can a guessed request.
	form := url.Values{"request": {hiddenRequest.FindStringSubmatch(page)[1]}, "decision": {"allow"}}
	for what, site := range map[string]string{"another site": "cross-site", "a neighbour": "same-site", "nobody": ""} {
		req, _ := http.NewRequest("POST", f.base+"/oauth/authorize", strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if site != "" {
			req.Header.Set("Sec-Fetch-Site", site)
		}
		resp, err := ann.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 403 {
			t.Errorf("%s decides: %d", what, resp.StatusCode)
		}
	}
	if resp, _ := ann.do("POST", "/oauth/authorize", url.Values{"decision": {"allow"}}); resp.StatusCode != 400 {
		t.Errorf("a decision about nothing: %d", resp.StatusCode)
	}
	if resp, _ := f.person("bob@example.com").do("POST", "/oauth/authorize", form); resp.StatusCode != 400 {
		t.Errorf("somebody else decides: %d", resp.StatusCode)
	}

	// A denial redirects without a code. Without a session the person signs in first.
	back, _ := ann.consents(address, "deny")
	if q := back.Query(); q.Get("error") != "access_denied" || q.Get("state") != "st" || q.Get("iss") != f.base || q.Get("code") != "" {
		t.Errorf("refused: %s", back)
	}
	stranger := &person{front: f, http: &http.Client{CheckRedirect: ann.http.CheckRedirect}}
	if resp, _ := stranger.do("GET", address, nil); resp.StatusCode != 303 || !strings.HasPrefix(resp.Header.Get("Location"), "/login?next=%2Foauth%2Fauthorize") {
		t.Errorf("a stranger: %d %s", resp.StatusCode, resp.Header.Get("Location"))
	}

	// A key in a header is not a person, and an unknown key neither.
	if resp := f.asks("GET", strings.TrimPrefix(address, f.base), ann.key, ""); resp.StatusCode != 403 {
		t.Errorf("a key in a header: %d", resp.StatusCode)
	}

	// A client with a wrong redirect address is never redirected to it.
	for _, bad := range []string{"https://evil.example/", "http://localhost:4711/other", "javascript:alert(1)"} {
		u, _ := url.Parse(address)
		q := u.Query()
		q.Set("redirect_uri", bad)
		if resp, _ := ann.do("GET", "/oauth/authorize?"+q.Encode(), nil); resp.StatusCode != 400 || resp.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", bad, resp.StatusCode, resp.Header.Get("Location"))
		}
	}
}

func TestOAuthMetadata_namesTheServersOwnAddresses(t *testing.T) {
	t.Parallel()
	f := openFront(t, 1, map[string]string{"SHOAL_OAUTH_CIMD": "off", "FORCE_ENABLE_ANONYMOUS_ACCESS": "true"})
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/api/mcp"} {
		var got struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
		}
		f.get(path, &got)
		if got.Resource != f.base+"/api/mcp" || len(got.Servers) != 1 || got.Servers[0] != f.base {
			t.Errorf("%s: %+v", path, got)
		}
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/api/mcp"} {
		var got struct {
			Issuer    string
			Methods   []string `json:"code_challenge_methods_supported"`
			Iss       bool     `json:"authorization_response_iss_parameter_supported"`
			Documents bool     `json:"client_id_metadata_document_supported"`
			Help      string   `json:"service_documentation"`
		}
		f.get(path, &got)
		if got.Issuer != f.base || strings.Join(got.Methods, " ") != "S256" || !got.Iss || got.Documents {
			t.Errorf("%s: %+v", path, got)
		}

		// The help page is open to guests, and an unknown address is no sign-in page.
		page, err := http.Get(got.Help)
		if err != nil {
			t.Fatal(err)
		}
		page.Body.Close()
		if page.StatusCode != 200 {
			t.Errorf("%s sends people to %s: %s", path, got.Help, page.Status)
		}
	}
}

func (f *front) get(path string, into any) {
	f.t.Helper()
	resp, err := http.Get(f.base + path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != 200 {
		f.t.Errorf("%s: %d %v", path, resp.StatusCode, err)
	}
}

// Agents in browsers send requests from pages of other sites. Such a page learns nothing that
// needs a cookie or the visitor's network.
func TestCrossOriginPage_learnsNothingThatNeedsACookie(t *testing.T) {
	t.Parallel()
	for _, guests := range []bool{false, true} {
		s := start(t, (&fake{guests: guests, base: "http://shoal.example.com"}).parts())
		ask := func(method, path string, header ...string) *http.Response {
			t.Helper()
			req, _ := http.NewRequest(method, "http://"+s.Addr().String()+path, strings.NewReader("{}"))
			req.Header.Set("Origin", "http://inspector.example:6274")
			req.Header.Set("Sec-Fetch-Site", "cross-site")
			req.Header.Set("Sec-Fetch-Mode", "cors")
			for i := 0; i < len(header); i += 2 {
				req.Header.Set(header[i], header[i+1])
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp
		}
		for _, c := range []struct{ method, path string }{
			{"GET", "/.well-known/oauth-protected-resource/api/mcp"}, {"GET", "/.well-known/oauth-authorization-server"},
			{"POST", "/oauth/register"}, {"POST", "/oauth/token"}, {"POST", "/oauth/revoke"},
			{"OPTIONS", "/oauth/token"}, {"OPTIONS", "/oauth/register"}, {"OPTIONS", "/api/mcp"},
		} {
			resp := ask(c.method, c.path)
			if resp.StatusCode >= 300 || resp.Header.Get("Access-Control-Allow-Origin") != "*" || resp.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s %s: %d %v", c.method, c.path, resp.StatusCode, resp.Header)
			}
			if c.method == "OPTIONS" && (!strings.Contains(resp.Header.Get("Access-Control-Allow-Headers"), "Authorization") || !strings.Contains(resp.Header.Get("Access-Control-Allow-Methods"), "POST")) {
				t.Errorf("%s: %v", c.path, resp.Header)
			}
		}
		if resp := ask("POST", "/api/mcp", "Authorization", "Bearer shoal_at_bad"); resp.StatusCode != 401 || !strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
			t.Errorf("the tools with a bad token: %d %v", resp.StatusCode, resp.Header)
		}
		want := 401
		if guests {
			want = 403 // anonymous access is for clients that reach this node, not for pages that they visit
		}
		if resp := ask("POST", "/api/mcp", "Content-Type", "application/json"); resp.StatusCode != want {
			t.Errorf("the tools without a token, guests %t: %d, want %d", guests, resp.StatusCode, want)
		}
		for _, path := range []string{"/oauth/authorize?client_id=x", "/api/repos", "/login", "/settings/access"} {
			if resp := ask("GET", path, "Cookie", "shoal="+memberKey); resp.StatusCode != 403 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
			}
		}
	}
}

func TestAgentRegistration_isRateLimited(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	for _, path := range []string{"/oauth/register", "/register", "/oauth/token", "/token", "/oauth/revoke"} {
		if resp, _ := askAs(t, s, "", "POST", path, strings.Repeat("a", maxAgentBody+1)); resp.StatusCode != 413 {
			t.Errorf("%s takes a large body: %d", path, resp.StatusCode)
		}
		if resp, _ := askAs(t, s, "", "GET", path, ""); resp.StatusCode != 405 {
			t.Errorf("GET %s: %d", path, resp.StatusCode)
		}
	}
}

// An authorized program can ask questions without a key. When its authorization ends or the
// person is suspended, a running question ends.
func TestAgentToken_questionEndsWhenTheAuthorizationEnds(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(f *front, a *agent){
		"": nil,
		"let in no more": func(_ *front, a *agent) {
			a.post("/oauth/revoke", "application/x-www-form-urlencoded", url.Values{"token": {a.tokens.Refresh}, "client_id": {a.id}}.Encode(), nil)
		},
		"suspended": func(f *front, _ *agent) {
			ctx := catalog.WithActor(t.Context(), catalog.Actor{Type: catalog.ActorOperator})
			if _, err := f.node().People.ChangeUser(ctx, account.Operator(), account.ChangeUserRequest{User: "ann@example.com", State: catalog.AccountSuspended}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(cmp.Or(how, "let in"), func(t *testing.T) {
			t.Parallel()
			f := openFront(t, 1, nil)
			a := f.person("ann@example.com").agent()

			// The authorization ends during the answer: there is no further step.
			steps := 0
			model := modeltest.Play(t, func(*modeltest.Request) modeltest.Turn {
				if steps++; steps == 1 {
					if end != nil {
						end(f, a)
					}
					return modeltest.Turn{Calls: []modeltest.Call{{ID: "a", Name: "list_repos", Arguments: "{}"}}}
				}
				return modeltest.Turn{Text: "There are no repositories."}
			})
			f.node().Configure(fmt.Sprintf(`{"models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}]}`, model.URL))
			f.node().Wait("the model", func() error {
				if _, said := a.call("list_language_models", "{}"); !strings.Contains(said, "scripted") {
					return errors.New(said)
				}
				return nil
			})

			_, said := a.call("ask_codebase", `{"query":"Which repositories are there?"}`)
			if want := how == ""; strings.Contains(said, "There are no repositories.") != want {
				t.Errorf("the answer is %s", said)
			}
			if strings.Contains(said, "Try again in a few seconds") {
				t.Errorf("the advice does not help: %s", said)
			}
			if want := map[bool]int{true: 2, false: 1}[how == ""]; steps != want {
				t.Errorf("the model was asked %d times, want %d", steps, want)
			}
		})
	}
}

// Requests of strangers write nothing to the raft log.
func TestOAuthRequestsOfStrangers_writeNothingToTheRaftLog(t *testing.T) {
	t.Parallel()
	f := openFront(t, 1, nil)
	ann := f.person("ann@example.com")
	a := ann.agent()
	over, _ := a.refresh(a.tokens.Refresh)
	f.asks("POST", "/oauth/revoke", "", "token="+url.QueryEscape(over.Refresh), "Content-Type", "application/x-www-form-urlencoded")
	f.node().Wait("a quiet log", func() error {
		if status := a.works(over.Access); status != 401 {
			return fmt.Errorf("the revoked token gives %d", status)
		}
		return nil
	})
	good := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {over.Refresh}, "client_id": {a.id}}.Encode()
	before := f.index()

	var requests []func()
	for _, body := range []string{"", "{}", "[]", "null", "a=b", good, strings.Repeat("[", 9000), "\x00\xff", `{"redirect_uris":["https://x.y/"]}`, "grant_type=authorization_code&code=shoal_ac_x&code_verifier=" + agentVerifier, "token=shoal_rt_x"} {
		for _, path := range []string{"/oauth/register", "/oauth/token", "/oauth/revoke", "/token", "/register", "/login", "/oauth/authorize", "/api/mcp", "/settings/access", "/api/agents/clients"} {
			for _, kind := range []string{"application/json", "application/x-www-form-urlencoded"} {
				requests = append(requests, func() { f.asks("POST", path, "", body, "Content-Type", kind) })
			}
		}
	}
	for _, token := range []string{"shoal_at_x", over.Access, over.Refresh, "shoal_" + strings.Repeat("0", 64), "x"} {
		for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource", "/oauth/authorize?client_id=https://x.example/y", strings.TrimPrefix(a.authorizeURL(), f.base), "/api/agents", "/settings/access"} {
			requests = append(requests, func() { f.asks("GET", path, token, "") })
		}
		requests = append(requests, func() { f.asks("POST", "/api/mcp", token, listTools) }, func() { f.asks("DELETE", "/api/agents/x", token, "") })
	}

	const rounds = 12
	var wg sync.WaitGroup
	for range rounds {
		wg.Go(func() {
			for _, send := range requests {
				send()
			}
		})
	}
	wg.Wait()
	if after := f.index(); after != before {
		t.Errorf("%d requests of strangers are %d entries of the log", rounds*len(requests), after-before)
	}
	t.Logf("%d requests, index %d before and after", rounds*len(requests), before)
}

// index returns the length of the log.
func (f *front) index() uint64 { return f.node().Status().CatalogIndex }

// The page of consent says when the same person let the program in before, and nothing of others.
func TestConsentPage_saysWhenThePersonLetTheProgramIn(t *testing.T) {
	t.Parallel()
	f := openFront(t, 1, nil)
	ann, bob := f.person("ann@example.com"), f.person("bob@example.com")
	a := ann.agent()
	const before = "You let a program of this name in"
	if _, page := ann.do("GET", a.authorizeURL(), nil); !strings.Contains(page, before) {
		t.Errorf("the page says nothing of the consent before: %s", page)
	}
	if _, page := bob.do("GET", a.authorizeURL(), nil); strings.Contains(page, before) || !strings.Contains(page, "Agent") {
		t.Errorf("the page tells bob of the consent of ann: %s", page)
	}
}
