package api

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/oauth"
)

var everyFault = flag.Bool("faults", false, "each flow of sign-in meets each fault at each of its steps")

// gauntlet has three nodes behind one address. Each request goes to the next running node, and
// one request of a flow meets a fault.
type gauntlet struct {
	*front
	client string // id of a client registered by an owner

	mu    sync.Mutex // guards the fields below
	doors []*porch   // nil for a stopped node
	last  int        // node of the last request
	count int        // requests since arm
	at    int        // number of the request that meets the fault; -1 for none
	fault *fault
	met   *passing // the request that met the fault
}

// porch is the API of a node.
type porch struct {
	addr  string
	close func()
}

// passing is a request in transit.
type passing struct {
	method, uri, host string
	header            http.Header
	body              []byte
}

// echo is a node's answer.
type echo struct {
	status int
	header http.Header
	body   []byte
}

var badGateway = &echo{status: 502, header: http.Header{}, body: []byte("the node is gone")}

// fault handles a request for node i.
type fault struct {
	name string
	pass func(g *gauntlet, i int, p *passing) *echo
}

var faults = []fault{
	{"none", func(g *gauntlet, i int, p *passing) *echo { return g.send(i, p) }},
	{"killed at it", func(g *gauntlet, i int, p *passing) *echo {
		var both sync.WaitGroup
		both.Go(func() { g.send(i, p) })
		g.kill(i)
		both.Wait()
		return badGateway
	}},
	{"answer lost", func(g *gauntlet, i int, p *passing) *echo {
		g.send(i, p)
		g.kill(i)
		return badGateway
	}},
	{"killed after", func(g *gauntlet, i int, p *passing) *echo {
		r := g.send(i, p)
		g.kill(i)
		return r
	}},
	{"leader killed", func(g *gauntlet, i int, p *passing) *echo {
		if leader := g.leader(); leader >= 0 {
			g.kill(leader)
		}
		return g.send(g.next(), p)
	}},
	{"submitted twice", func(g *gauntlet, i int, p *passing) *echo {
		// A browser shows the second answer and drops the first.
		var both sync.WaitGroup
		var second *echo
		other := g.next()
		both.Go(func() { g.send(i, p) })
		both.Go(func() { second = g.send(other, p) })
		both.Wait()
		return second
	}},
	{"replayed", func(g *gauntlet, i int, p *passing) *echo { return g.send(i, p) }}, // repeated after the end of the flow
}

// openGauntlet starts the nodes and the proxy before them.
func openGauntlet(t *testing.T, env map[string]string, file string) *gauntlet {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gauntlet{front: &front{t: t, base: "http://" + ln.Addr().String()}, doors: make([]*porch, 3), at: -1}
	g.fleet = nodetest.StartFleet(t, 3, nodetest.Config{Env: env, Edit: func(o *node.Options) { o.BaseURL, o.Documents = g.base, noWeb{} }})
	for i := range g.fleet.Nodes {
		g.open(i)
	}
	proxy := &http.Server{Handler: g}
	go proxy.Serve(ln)
	t.Cleanup(func() { proxy.Close() })

	g.settle()
	g.configure(file)
	registered, err := g.node().OAuth().RegisterFor(t.Context(), account.Operator(), "Agent", []string{"http://localhost/cb"})
	if err != nil {
		t.Fatal(err)
	}
	g.client = registered.ClientID
	return g
}

// open sends requests to a running node again.
func (g *gauntlet) open(i int) {
	s, err := newServer(partsOf(g.fleet.Nodes[i].Node), Options{Listen: "127.0.0.1:0", Version: "v1"})
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	g.t.Cleanup(func() { cancel(); <-done })

	g.mu.Lock()
	defer g.mu.Unlock()
	g.doors[i] = &porch{s.Addr().String(), cancel}
}

// kill stops a node without notice to the others.
func (g *gauntlet) kill(i int) {
	g.mu.Lock()
	d := g.doors[i]
	g.doors[i] = nil
	g.mu.Unlock()
	if d != nil {
		g.fleet.Crash(i)
		d.close()
	}
}

// revive starts the killed nodes again.
func (g *gauntlet) revive() {
	for i, n := range g.fleet.Nodes {
		g.mu.Lock()
		down := g.doors[i] == nil
		g.mu.Unlock()
		if down {
			n.Start()
			g.open(i)
		}
	}
}

// next returns the node for the next request, another one than the last.
func (g *gauntlet) next() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for range g.doors {
		if g.last = (g.last + 1) % len(g.doors); g.doors[g.last] != nil {
			break
		}
	}
	return g.last
}

// up returns a running node.
func (g *gauntlet) up() *nodetest.Node { return g.fleet.Nodes[g.next()] }

// leader returns the leading node, -1 for none.
func (g *gauntlet) leader() int {
	id := g.up().Status().Leader
	return slices.IndexFunc(g.fleet.Nodes, func(n *nodetest.Node) bool { return n.Node != nil && n.ID() == id })
}

// send sends a request to a node.
func (g *gauntlet) send(i int, p *passing) *echo {
	g.mu.Lock()
	d := g.doors[i]
	g.mu.Unlock()
	if d == nil {
		return badGateway
	}
	req, err := http.NewRequest(p.method, "http://"+d.addr+p.uri, bytes.NewReader(p.body))
	if err != nil {
		return badGateway
	}
	req.Header, req.Host, req.Close = p.header.Clone(), p.host, true
	resp, err := http.DefaultTransport.RoundTrip(req) // does not follow redirects
	if err != nil {
		return badGateway
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return badGateway
	}
	return &echo{resp.StatusCode, resp.Header, body}
}

// ServeHTTP passes a request on.
func (g *gauntlet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p := &passing{r.Method, r.URL.RequestURI(), r.Host, r.Header.Clone(), body}
	i := g.next()

	g.mu.Lock()
	f := &faults[0]
	if g.count == g.at {
		f, g.met = g.fault, p
	}
	g.count++
	g.mu.Unlock()

	answer := f.pass(g, i, p)
	for name, values := range answer.header {
		if name != "Connection" && name != "Transfer-Encoding" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.status)
	w.Write(answer.body)
}

// arm makes a request meet a fault; -1 for none.
func (g *gauntlet) arm(f *fault, at int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault, g.at, g.count, g.met = f, at, 0, nil
}

// view returns the leader's catalog.
func (g *gauntlet) view() *catalog.View {
	g.t.Helper()
	var view *catalog.View
	g.up().Wait("a snapshot", func() error {
		var saved bytes.Buffer
		if err := g.up().Operate.Snapshot(g.t.Context(), account.Operator(), &saved); err != nil {
			return err
		}
		state, err := catalog.Load(&saved)
		if err == nil {
			view = state.View()
		}
		return err
	})
	return view
}

// insists is do with retries if no node answers.
func (p *person) insists(method, path string, form url.Values) (resp *http.Response, page string) {
	nodetest.Eventually(nodetest.Patience, func() bool {
		resp, page = p.do(method, path, form)
		return resp.StatusCode < 500
	})
	return resp, page
}

// insistsOn is insists for a program.
func (g *gauntlet) insistsOn(method, path, key, kind, body string) (status int, text string) {
	g.t.Helper()
	nodetest.Eventually(nodetest.Patience, func() bool {
		req, err := http.NewRequest(method, g.base+path, strings.NewReader(body))
		if err != nil {
			g.t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			g.t.Fatal(err)
		}
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		status, text = resp.StatusCode, string(raw)
		return status < 500
	})
	return status, text
}

// everywhere waits until a request has the same status at every node.
func (g *gauntlet) everywhere(what string, status int, p passing) (wrong string) {
	p.host = strings.TrimPrefix(g.base, "http://")
	for i := range g.doors {
		got := 0
		if !nodetest.Eventually(nodetest.Patience, func() bool { got = g.send(i, &p).status; return got == status }) {
			wrong = fmt.Sprintf("%s: %d at node %d, want %d", what, got, i+1, status)
		}
	}
	return wrong
}

// asAgent returns a request of an agent with an access token.
func asAgent(token string) passing {
	return passing{method: "POST", uri: "/api/mcp", body: []byte(listTools), header: http.Header{
		"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}}
}

// withCookies returns a browser's request for a page.
func (p *person) withCookies(path string) passing {
	u, _ := url.Parse(p.base)
	var all []string
	for _, c := range p.http.Jar.Cookies(u) {
		all = append(all, c.Name+"="+c.Value)
	}
	return passing{method: "GET", uri: path, header: http.Header{"Cookie": {strings.Join(all, "; ")}}}
}

// trip is one flow of one person. Its functions return "" if it reached its end, else the message
// for a person who must begin again.
type trip struct {
	run   func() string
	again func() string   // from the beginning, after a failure; nil means run
	holds func() []string // broken promises
	after func(again *echo) string
}

// flow is a kind of sign-in. Each has its own people, so that trips do not meet.
type flow struct {
	name  string
	hard  int      // the most critical request
	words []string // allowed messages for a person who must begin again
	begin func(g *gauntlet, w *providersOfFlows, email string) *trip
}

// providersOfFlows are the identity providers of the flows.
type providersOfFlows struct{ corp, host *company }

const goodPassword = "correct horse battery"

// told returns the message of a failed answer.
func told(status int, text string) string {
	if said := alert(text); said != "" {
		return said
	}
	if m := regexp.MustCompile(`"(?:message|error_description)":"((?:[^"\\]|\\.)*)"`).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if m := regexp.MustCompile(`(?s)<h1>.*?</h1>\s*<p[^>]*>(.*?)</p>`).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return fmt.Sprintf("%d %s", status, text)
}

// isIn opens a page with the name of the signed-in user.
func (p *person) isIn(email string) string {
	resp, page := p.insists("GET", "/repos", nil)
	if resp.StatusCode != 200 || !strings.Contains(page, email) {
		return fmt.Sprintf("not signed in as %s: %s", email, told(resp.StatusCode, page))
	}
	return ""
}

// ledBy follows the way through a provider, from the form at its begin.
func (p *person) ledBy(path string, form url.Values, leads string) string {
	resp, page := p.insists("POST", path, form)
	to, ok := strings.CutPrefix(resp.Header.Get("Refresh"), "0; url=")
	if !ok {
		return told(resp.StatusCode, page)
	}
	resp, _ = p.do("GET", to, nil)
	resp, page = p.insists("GET", resp.Header.Get("Location"), nil)
	if resp.StatusCode != 303 || resp.Header.Get("Location") != leads {
		return told(resp.StatusCode, page)
	}
	return ""
}

func (g *gauntlet) mustMake(email string, role catalog.Role) {
	g.t.Helper()
	if _, err := g.up().People.CreateUser(g.t.Context(), account.Operator(), account.CreateUserRequest{Email: email, Role: role}); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gauntlet) mustSetPassword(email string) {
	g.t.Helper()
	if _, err := g.up().Passwords.SetPassword(g.t.Context(), account.Operator(), account.SetPasswordRequest{User: email, Password: goodPassword}); err != nil {
		g.t.Fatal(err)
	}
}

// has returns an error text if the catalog does not reach the wanted count.
func (g *gauntlet) has(want int, what string, count func(view *catalog.View) int) (wrong string) {
	g.t.Helper()
	got := 0
	if !nodetest.Eventually(nodetest.Patience/9, func() bool { got = count(g.view()); return got == want }) {
		return fmt.Sprintf("%d %s, want %d", got, what, want)
	}
	return ""
}

// oneIdentity returns an error text unless a person has exactly one identity at a provider.
func (g *gauntlet) oneIdentity(email, provider string) string {
	return g.has(1, "identities", func(view *catalog.View) (n int) {
		if a := view.AccountByEmail(email); a != nil {
			for _, x := range view.IdentitiesOf(a.ID) {
				if x.Provider == provider {
					n++
				}
			}
		}
		return n
	})
}

// token exchanges a grant for tokens.
func (g *gauntlet) token(form url.Values) (oauth.Tokens, string) {
	form.Set("client_id", g.client)
	status, text := g.insistsOn("POST", "/oauth/token", "", "application/x-www-form-urlencoded", form.Encode())
	var got oauth.Tokens
	if err := json.Unmarshal([]byte(text), &got); status != 200 || err != nil {
		return got, told(status, text)
	}
	return got, ""
}

// consented returns a form for the tokens of an authorized agent.
func (g *gauntlet) consented(p *person) (form url.Values, said string) {
	a := &agent{person: p, id: g.client}
	resp, page := p.insists("GET", a.authorizeURL(), nil)
	m := hiddenRequest.FindStringSubmatch(page)
	if resp.StatusCode != 200 || m == nil {
		return nil, told(resp.StatusCode, page)
	}
	resp, page = p.insists("POST", "/oauth/authorize", url.Values{"request": {m[1]}, "decision": {"allow"}})
	back, err := url.Parse(resp.Header.Get("Location"))
	if resp.StatusCode != 303 || err != nil || back.Query().Get("code") == "" {
		return nil, told(resp.StatusCode, page)
	}
	return url.Values{"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "redirect_uri": {"http://localhost:4711/cb"}, "code_verifier": {agentVerifier}}, ""
}

// oneConsent returns an error text unless an account has exactly one consent, of a generation.
func (g *gauntlet) oneConsent(email string, generation uint64) string {
	return g.has(1, "consents of the right generation", func(view *catalog.View) (n int) {
		for c := range view.Consents() {
			if a := view.AccountByEmail(email); a != nil && c.Account == a.ID && c.Ended.IsZero() {
				n++
				if c.Generation != generation {
					n += 100
				}
			}
		}
		return n
	})
}

func lacks(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

var flows = []flow{
	{"password", 0, nil, func(g *gauntlet, w *providersOfFlows, email string) *trip {
		g.mustMake(email, catalog.RoleMember)
		g.mustSetPassword(email)
		p := g.browser()
		var page passing
		return &trip{run: func() string {
			resp, text := p.insists("POST", "/login", url.Values{"email": {email}, "password": {goodPassword}})
			if resp.StatusCode != 303 {
				return told(resp.StatusCode, text)
			}
			if said := p.isIn(email); said != "" {
				return said
			}
			page = p.withCookies("/settings/account")
			if resp, text := p.insists("POST", "/logout", nil); resp.StatusCode != 303 {
				return told(resp.StatusCode, text)
			}
			return ""
		}, holds: func() []string {
			return lacks(g.everywhere("the session that was ended", 303, page))
		}}
	}},

	{"OpenID provider", 1, []string{"used or has ended. Begin again", "Begin again"}, func(g *gauntlet, w *providersOfFlows, email string) *trip {
		p := g.browser()
		return &trip{run: func() string {
			w.corp.is(email, email, true)
			if said := p.ledBy("/login", url.Values{"with": {"corp"}, "next": {"/repos"}}, "/repos"); said != "" {
				return said
			}
			return p.isIn(email)
		}, holds: func() []string {
			return lacks(g.oneIdentity(email, w.corp.URL), g.everywhere("the session", 200, p.withCookies("/repos")))
		}}
	}},

	{"link a code host", 1, []string{"used or has ended. Begin again", "Begin again"}, func(g *gauntlet, w *providersOfFlows, email string) *trip {
		p := g.person(email)
		return &trip{run: func() string {
			w.host.is(email, "", false)
			return p.ledBy("/settings/account", url.Values{"link": {"host"}}, "/settings/account?linked")
		}, holds: func() []string {
			return lacks(g.oneIdentity(email, w.host.URL))
		}}
	}},

	{"consent and code", 2, nil, func(g *gauntlet, w *providersOfFlows, email string) *trip {
		p := g.person(email)
		var got oauth.Tokens
		return &trip{run: func() (said string) {
			form, said := g.consented(p)
			if said == "" {
				got, said = g.token(form)
			}
			return said
		}, holds: func() []string {
			return lacks(g.oneConsent(email, 1), g.everywhere("the token", 200, asAgent(got.Access)), g.everywhere("a token of nobody", 401, asAgent(got.Access[:len(got.Access)-8]+"AAAAAAAA")))
		}, after: func(again *echo) string {
			var t oauth.Tokens
			if json.Unmarshal(again.body, &t); again.status == 200 && t.Refresh != "" && t.Refresh != got.Refresh {
				return "the code gave other tokens"
			}
			return ""
		}}
	}},

	{"two refresh", 0, nil, func(g *gauntlet, w *providersOfFlows, email string) *trip {
		form, said := g.consented(g.person(email))
		old, more := g.token(form)
		if said+more != "" {
			g.t.Fatal(said + more)
		}
		var got [2]oauth.Tokens
		return &trip{run: func() string {
			var both sync.WaitGroup
			var said [2]string
			for i := range got {
				both.Go(func() {
					got[i], said[i] = g.token(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}})
				})
			}
			both.Wait()
			return said[0] + said[1]
		}, holds: func() []string {
			wrong := lacks(g.everywhere("the token", 200, asAgent(got[0].Access)), g.everywhere("the other's", 200, asAgent(got[1].Access)))
			if got[0].Refresh != got[1].Refresh || got[0].Refresh == old.Refresh {
				wrong = append(wrong, "the two have different tokens")
			}
			return append(wrong, lacks(g.oneConsent(email, 2))...)
		}, after: func(again *echo) string {
			var t oauth.Tokens
			if json.Unmarshal(again.body, &t); again.status == 200 && t.Refresh != got[0].Refresh {
				return "the old token gave other tokens"
			}
			return ""
		}}
	}},

	{"revocation", 0, nil, func(g *gauntlet, w *providersOfFlows, email string) *trip {
		form, said := g.consented(g.person(email))
		got, more := g.token(form)
		if said+more != "" {
			g.t.Fatal(said + more)
		}
		return &trip{run: func() string {
			status, text := g.insistsOn("POST", "/oauth/revoke", "", "application/x-www-form-urlencoded", url.Values{"token": {got.Refresh}}.Encode())
			if status != 200 {
				return told(status, text)
			}
			return ""
		}, holds: func() []string {
			wrong := lacks(g.everywhere("the revoked token", 401, asAgent(got.Access)))
			if t, said := g.token(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {got.Refresh}}); said == "" {
				wrong = append(wrong, "the revoked grant gave "+t.Type)
			}
			return wrong
		}}
	}},

	{"key", 0, []string{"already"}, func(g *gauntlet, w *providersOfFlows, email string) *trip {
		p := g.person(email)
		made := ""
		make := func() string {
			status, text := g.insistsOn("POST", "/api/keys", p.key, "application/json", `{"name":"laptop"}`)
			var k struct{ Key string }
			if err := json.Unmarshal([]byte(text), &k); status != 201 || err != nil {
				return told(status, text)
			}
			made = k.Key
			return ""
		}
		return &trip{run: make, again: func() string {
			if status, text := g.insistsOn("DELETE", "/api/keys/laptop", p.key, "application/json", ""); status != 200 {
				return told(status, text)
			}
			return make()
		}, holds: func() []string {
			one := g.has(1, "keys", func(view *catalog.View) (n int) {
				for k := range view.Keys() {
					if a := view.AccountByEmail(email); a != nil && k.Account == a.ID && k.Name == "laptop" {
						n++
					}
				}
				return n
			})
			return lacks(one, g.everywhere("the key", 200, passing{method: "GET", uri: "/api/repos", header: http.Header{"Authorization": {"Bearer " + made}}}))
		}}
	}},

	{"invitation", 1, []string{"already", "sign in with it"}, func(g *gauntlet, w *providersOfFlows, email string) *trip {
		owner, guest := g.browser(), g.browser()
		g.mustMake("owner-"+email, catalog.RoleOwner)
		g.mustSetPassword("owner-" + email)
		if resp, page := owner.do("POST", "/login", url.Values{"email": {"owner-" + email}, "password": {goodPassword}}); resp.StatusCode != 303 {
			g.t.Fatal(told(resp.StatusCode, page))
		}
		link, joined := "", false
		invite := func(do string) string {
			resp, page := owner.insists("POST", "/settings/people", url.Values{"do": {do}, "user": {email}})
			m := regexp.MustCompile(`/join\?link=([0-9a-f]+)`).FindStringSubmatch(page)
			if resp.StatusCode != 200 || m == nil {
				return told(resp.StatusCode, page)
			}
			link = m[1]
			return ""
		}
		join := func() string {
			joined = true
			resp, page := guest.insists("POST", "/join", url.Values{"link": {link}, "password": {goodPassword}, "again": {goodPassword}})
			if resp.StatusCode != 303 {
				return told(resp.StatusCode, page)
			}
			return guest.isIn(email)
		}
		return &trip{run: func() string {
			if said := invite("invite"); said != "" {
				return said
			}
			return join()
		}, again: func() string {
			if joined {
				resp, page := guest.insists("POST", "/login", url.Values{"email": {email}, "password": {goodPassword}})
				if resp.StatusCode != 303 {
					return told(resp.StatusCode, page)
				}
				return guest.isIn(email)
			}
			if said := invite("link"); said != "" {
				return said
			}
			return join()
		}, holds: func() []string {
			return lacks(g.everywhere("the session", 200, guest.withCookies("/repos")), g.everywhere("the used link", 404, passing{method: "GET", uri: "/join?link=" + link, header: http.Header{}}))
		}}
	}},
}

// cell is a flow with a fault at one of its requests.
type cell struct {
	flow  *flow
	fault *fault
	at    int
}

// shortCells returns the cells of every run: the faults that kill no node, and one of each kind
// that does, at the most critical request.
func shortCells() (all []cell) {
	kills := map[string]string{"consent and code": "answer lost", "two refresh": "leader killed", "invitation": "answer lost", "key": "killed after"}
	for i := range flows {
		f := &flows[i]
		for j := range faults {
			switch x := &faults[j]; x.name {
			case "submitted twice", "replayed", kills[f.name]:
				all = append(all, cell{f, x, f.hard})
			}
		}
	}
	return all
}

func allCells(steps map[string]int) (all []cell) {
	for i := range flows {
		for j := range faults[1:] {
			for at := range steps[flows[i].name] {
				all = append(all, cell{&flows[i], &faults[j+1], at})
			}
		}
	}
	return all
}

// Flows keep their promises during faults: they continue, or can begin again with a message. No
// token counts that was not issued, and nothing is duplicated.
func TestSignInFlows_continueOrRestartAfterFaults(t *testing.T) {
	t.Parallel()
	w := &providersOfFlows{newCompany(t), newCompany(t)}
	env := map[string]string{"ID": "client", "SECRET": "hush", "CORP": w.corp.URL, "REQUIRE_APPROVAL_NEW_MEMBERS": "false"}
	g := openGauntlet(t, env, `{"identityProviders": {
		"corp": {"provider": "oidc", "purpose": "sso", "displayName": "Corp", "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}, "issuer": {"env": "CORP"}},
		"host": {"provider": "gitlab", "purpose": "account_linking", "displayName": "Host", "baseUrl": "`+w.host.URL+`", "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}},
	}}`)

	// First run each flow without faults, to count its steps.
	steps := map[string]int{}
	for i := range flows {
		f := &flows[i]
		outcome := g.travel(w, cell{f, &faults[0], -1}, fmt.Sprintf("plain%d@example.com", i), &steps)
		if outcome != "goes on" {
			t.Fatalf("%s: %s", f.name, outcome)
		}
	}

	cells := shortCells()
	if *everyFault {
		cells = allCells(steps)
	}
	table := map[[2]string][]string{}
	for i, c := range cells {
		outcome := g.travel(w, c, fmt.Sprintf("p%d@example.com", i), nil)
		key := [2]string{c.flow.name, c.fault.name}
		table[key] = append(table[key], outcome)
		g.revive()
	}
	t.Log("\n" + drawn(table))
}

// travel makes one trip, and returns its outcome.
func (g *gauntlet) travel(w *providersOfFlows, c cell, email string, steps *map[string]int) (outcome string) {
	g.t.Helper()
	wrong := func(format string, args ...any) {
		g.t.Helper()
		outcome = "WRONG"
		g.t.Errorf("%s, %s at request %d: %s", c.flow.name, c.fault.name, c.at+1, fmt.Sprintf(format, args...))
	}
	trip := c.flow.begin(g, w, email)
	g.arm(c.fault, c.at)
	said := trip.run()
	g.mu.Lock()
	met, made := g.met, g.count
	g.mu.Unlock()
	if steps != nil {
		(*steps)[c.flow.name] = made
	} else if met == nil {
		wrong("the flow had only %d requests", made)
	}
	g.arm(nil, -1)

	outcome = "goes on"
	if said != "" {
		outcome = "begun again"
		if !slices.ContainsFunc(c.flow.words, func(word string) bool { return strings.Contains(said, word) }) {
			wrong("somebody reads %q", said)
		}
		if trip.again == nil {
			trip.again = trip.run
		}
		if said := trip.again(); said != "" {
			wrong("begun again: %q", said)
			return outcome
		}
	}

	g.revive()
	if c.fault.name == "replayed" && met != nil {
		again := g.send(g.next(), met)
		if trip.after != nil {
			if said := trip.after(again); said != "" {
				wrong("replayed: %s", said)
			}
		}
	}
	for _, x := range trip.holds() {
		wrong("%s", x)
	}
	return outcome
}

// drawn returns the table of flows and faults with the outcomes.
func drawn(table map[[2]string][]string) string {
	var out strings.Builder
	for i := range flows {
		fmt.Fprintf(&out, "%s\n", flows[i].name)
		for j := range faults {
			if all := table[[2]string{flows[i].name, faults[j].name}]; all != nil {
				fmt.Fprintf(&out, "  %-16s %s\n", faults[j].name, strings.Join(all, ", "))
			}
		}
	}
	return out.String()
}
