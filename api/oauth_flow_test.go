package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/oauth"
)

// front has nodes behind one address, which sends each request to another one.
type front struct {
	t     *testing.T
	base  string
	fleet *nodetest.Fleet
	turn  atomic.Int64
}

// noWeb fetches no other site.
type noWeb struct{}

func (noWeb) Fetch(context.Context, string) ([]byte, error) {
	return nil, errors.New("it cannot be fetched")
}

// openFront starts nodes with an account ann. Each request goes to another node.
func openFront(t *testing.T, nodes int, env map[string]string) *front {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return openFrontAt(t, ln, nodes, env)
}

// openFrontAt is openFront at a known address.
func openFrontAt(t *testing.T, ln net.Listener, nodes int, env map[string]string) *front {
	t.Helper()
	f := &front{t: t, base: "http://" + ln.Addr().String()}
	f.fleet = nodetest.StartFleet(t, nodes, nodetest.Config{Env: env, Edit: func(o *node.Options) { o.BaseURL, o.Documents = f.base, noWeb{} }})

	var targets []*url.URL
	for _, n := range f.fleet.Nodes {
		s := start(t, partsOf(n.Node))
		targets = append(targets, &url.URL{Scheme: "http", Host: s.Addr().String()})
	}
	proxy := &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		host := r.In.Host
		r.SetURL(targets[int(f.turn.Add(1))%len(targets)])
		r.Out.Host = host
	}}}
	go proxy.Serve(ln)
	t.Cleanup(func() { proxy.Close() })

	f.settle()
	return f
}

// settle waits until a new cluster has written its own first entries.
func (f *front) settle() {
	f.t.Helper()
	for _, n := range f.fleet.Nodes {
		n.Wait("the configuration, which is an entry of the log", func() error {
			if c := n.Status().Config; c.Hash == "" || c.Differs {
				return fmt.Errorf("configuration %+v", c)
			}
			return nil
		})
	}
	f.node().Wait("what a young cluster writes by itself", f.grownUp)
}

// grownUp returns an error until the leader has made a secret for each kind of token.
func (f *front) grownUp() error {
	var saved bytes.Buffer
	if err := f.node().Operate.Snapshot(f.t.Context(), account.Operator(), &saved); err != nil {
		return err
	}
	state, err := catalog.Load(&saved)
	if err != nil {
		return err
	}

	kinds := map[string]bool{}
	for s := range state.View().Secrets() {
		kind, _, _ := strings.Cut(s.Name, "/")
		kinds[kind] = true
	}
	for _, kind := range []string{"oauth-clients", "oauth-access", "oauth-refresh"} {
		if !kinds[kind] {
			return fmt.Errorf("no secret %s yet, only %v", kind, kinds)
		}
	}
	return nil
}

func (f *front) node() *nodetest.Node { return f.fleet.Nodes[0] }

// person is a browser with a signed-in user.
type person struct {
	*front
	http *http.Client
	key  string
}

// person makes an account and signs it in.
func (f *front) person(email string) *person {
	f.t.Helper()
	ctx := context.Background()
	if _, err := f.node().People.CreateUser(ctx, account.Operator(), account.CreateUserRequest{Email: email}); err != nil {
		f.t.Fatal(err)
	}
	k, err := f.node().Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: "browser of " + email, User: email})
	if err != nil {
		f.t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil)
	p := &person{front: f, key: k.Key, http: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	resp, body := p.do("POST", "/login", url.Values{"key": {k.Key}})
	if resp.StatusCode != 303 {
		f.t.Fatalf("sign in: %d %s", resp.StatusCode, body)
	}
	return p
}

// do sends a request as a browser does.
func (p *person) do(method, path string, form url.Values) (*http.Response, string) {
	p.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = p.base + path
	}
	req, err := http.NewRequest(method, path, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	if method == "POST" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Header.Set("Origin", p.base)
	}
	resp, err := p.http.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

var hiddenRequest = regexp.MustCompile(`name="request" value="([^"]+)"`)

// consents opens the page of a request and decides.
func (p *person) consents(address, decision string) (back *url.URL, page string) {
	p.t.Helper()
	resp, page := p.do("GET", address, nil)
	m := hiddenRequest.FindStringSubmatch(page)
	if resp.StatusCode != 200 || m == nil {
		p.t.Fatalf("the page of consent: %d %s %s", resp.StatusCode, resp.Header.Get("Location"), page)
	}
	resp, text := p.do("POST", "/oauth/authorize", url.Values{"request": {m[1]}, "decision": {decision}})
	if resp.StatusCode != 303 {
		p.t.Fatalf("the decision: %d %s", resp.StatusCode, text)
	}
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		p.t.Fatal(err)
	}
	return back, page
}

// fetcher returns the function that the official client calls for a person's decision.
func (p *person) fetcher() auth.AuthorizationCodeFetcher {
	return func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		back, _ := p.consents(args.URL, "allow")
		q := back.Query()
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	}
}

// connect uses the tools as an agent of the person.
func (p *person) connect(cfg auth.AuthorizationCodeHandlerConfig) error {
	cfg.AuthorizationCodeFetcher = p.fetcher()
	handler, err := auth.NewAuthorizationCodeHandler(&cfg)
	if err != nil {
		return err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(p.t.Context(), &sdk.StreamableClientTransport{Endpoint: p.base + "/api/mcp", OAuthHandler: handler}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	for range 4 {
		r, err := session.CallTool(p.t.Context(), &sdk.CallToolParams{Name: "list_repos", Arguments: map[string]any{}})
		if err != nil || r.IsError {
			return fmt.Errorf("call a tool: %+v, %w", r, err)
		}
	}
	return nil
}

// The official Go client signs in with each kind of client registration, with each request at
// another of three nodes.
func TestOAuth_officialGoClientSignsInWithEachRegistration(t *testing.T) {
	t.Parallel()
	f := openFront(t, 3, nil)
	ann := f.person("ann@example.com")
	pre, err := f.node().OAuth().RegisterFor(t.Context(), account.Operator(), "Known editor", []string{"http://localhost/callback"})
	if err != nil {
		t.Fatal(err)
	}
	for what, cfg := range map[string]auth.AuthorizationCodeHandlerConfig{
		"registration": {DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Agent", RedirectURIs: []string{"http://localhost:4711/callback"}, GrantTypes: []string{"authorization_code", "refresh_token"},
		}}, RequestRefreshToken: true},
		"a document": {ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: "https://claude.ai/oauth/claude-code-client-metadata"}, RedirectURL: "http://localhost:4712/callback"},
		"an owner":   {PreregisteredClient: &oauthex.ClientCredentials{ClientID: pre.ClientID}, RedirectURL: "http://localhost:4713/callback"},
	} {
		if err := ann.connect(cfg); err != nil {
			t.Errorf("known by %s: %v", what, err)
		}
	}

	// The person sees all agents and removes one.
	_, page := ann.do("GET", "/settings/access", nil)
	for _, name := range []string{"Agent", "Claude Code", "Known editor", "localhost:4712"} {
		if !strings.Contains(page, name) {
			t.Errorf("the page of agents lacks %s", name)
		}
	}
}

// agent is a client made by hand.
type agent struct {
	*person
	id     string
	tokens oauth.Tokens
}

const agentVerifier = "a-verifier-of-a-test-that-is-long-enough-0123456789"

// agent registers a client and has the person authorize it.
func (p *person) agent() *agent {
	p.t.Helper()
	a := &agent{person: p}
	var registered struct {
		ClientID string `json:"client_id"`
	}
	if status := a.post("/oauth/register", "application/json", `{"client_name":"Agent","redirect_uris":["http://localhost/cb"]}`, &registered); status != 201 {
		p.t.Fatalf("registration: %d", status)
	}
	a.id = registered.ClientID
	back, _ := p.consents(a.authorizeURL(), "allow")
	form := url.Values{"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "client_id": {a.id}, "redirect_uri": {"http://localhost:4711/cb"}, "code_verifier": {agentVerifier}}
	if status := a.post("/oauth/token", "application/x-www-form-urlencoded", form.Encode(), &a.tokens); status != 200 {
		p.t.Fatalf("the code: %d", status)
	}
	return a
}

func (a *agent) authorizeURL() string {
	return a.base + "/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {a.id}, "redirect_uri": {"http://localhost:4711/cb"}, "state": {"st"},
		"code_challenge": {"cWe03uQVtIlxZ1m39bfQq3akJgApFc7NtYhFbcfolck"}, "code_challenge_method": {"S256"},
	}.Encode()
}

// post sends a request without credentials and decodes the answer.
func (f *front) post(path, kind, body string, into any) (status int) {
	f.t.Helper()
	resp, err := http.Post(f.base+path, kind, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			f.t.Fatalf("%s: %d %s", path, resp.StatusCode, raw)
		}
	}
	return resp.StatusCode
}

// refresh uses a refresh token and returns the tokens or the error.
func (a *agent) refresh(token string) (oauth.Tokens, string) {
	a.t.Helper()
	var got struct {
		oauth.Tokens
		Error string `json:"error"`
	}
	a.post("/oauth/token", "application/x-www-form-urlencoded", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {a.id}}.Encode(), &got)
	return got.Tokens, got.Error
}

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// asks sends a request with a credential and returns the response.
func (f *front) asks(method, path, token, body string, header ...string) *http.Response {
	f.t.Helper()
	req, err := http.NewRequest(method, f.base+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for pair := range slices.Chunk(header, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // does not follow redirects
	if err != nil {
		f.t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp
}

// call calls a tool and returns the status and the raw answer.
func (a *agent) call(tool, args string) (int, string) {
	a.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, args)
	req, err := http.NewRequest("POST", a.base+"/api/mcp", strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+a.tokens.Access)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, string(said)
}

func (a *agent) works(token string) int {
	a.t.Helper()
	return a.asks("POST", "/api/mcp", token, listTools).StatusCode
}
