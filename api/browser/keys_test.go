package browser

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/shoalsearch/shoal/api"
	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/api/settings"
	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/shard/change"
)

var rewrite = flag.Bool("rewrite", false, "rewrite keyboard.md")

// keyList is the document that tells the steps of keyRows.
const keyList = "keyboard.md"

// noPage are routes that show nothing by themselves, and why.
var noPage = map[string]string{
	"GET /~/*":                          "leads on to the same address without it",
	"GET /cluster":                      "leads on to /settings",
	"GET /status":                       "leads on to /settings",
	"GET /settings/general":             "leads on to /settings",
	"GET /settings/apiKeys":             "leads on to /settings/keys",
	"GET /settings/mcp":                 "leads on to /settings/agents",
	"GET /chats":                        "leads on to /chat",
	"GET /suggest":                      "is the list below the box",
	"GET /chat/{id}/events":             "is what a thread's page listens to",
	"GET /authorize":                    "is /oauth/authorize",
	"GET /api/auth/callback/{provider}": "leads on to the page that was asked for",
	"GET /opensearch.xml":               "is for browsers",
	"GET /open":                         "leads to a file",
	"GET /browse/*/-/commits.atom":      "is for readers of feeds",
}

// pageRoutes is every route of a page; those below /browse/ by their kinds.
func pageRoutes() (out []string) {
	pages := web.New(web.Deps{})
	for _, r := range pages.Routes() {
		if r.Path != "/browse/*" {
			out = append(out, r.Method+" "+r.Path)
		}
	}
	for _, kind := range pages.Kinds() {
		out = append(out, "GET /browse/*/-/"+kind)
	}
	for _, r := range settings.New(settings.Deps{}).Routes() {
		out = append(out, r.Method+" "+r.Path)
	}
	for _, r := range people.New(people.Deps{}).Routes() {
		out = append(out, r.Method+" "+r.Path)
	}
	return append(out, "GET /embed/*")
}

// matches reports whether a request, as "GET /path", is one of a route.
func matches(route, request string) bool {
	if kind, ok := strings.CutPrefix(route, "GET /browse/*/-/"); ok {
		_, rest, deep := strings.Cut(request, "/-/")
		if !deep {
			return kind == "tree" && strings.HasPrefix(request, "GET /browse/")
		}
		return strings.HasPrefix(request, "GET /browse/") && (rest == kind || strings.HasPrefix(rest, kind+"/"))
	}

	if under, ok := strings.CutSuffix(route, "*"); ok {
		return strings.HasPrefix(request, under)
	}

	// A part in braces may be anything.
	want, got := strings.Split(route, "/"), strings.Split(request, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}

// Every route of a page is opened or sent by a row of keyRows, and keyboard.md
// tells the rows as they are.
func TestKeyboardRows_coverEveryPageAndEqualKeyboardMD(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, r := range keyRows {
		for _, route := range r.routes {
			covered[route] = true
		}
	}

	all := pageRoutes()
	for _, route := range all {
		if covered[route] == (noPage[route] != "") {
			t.Errorf("%s: want a row of keyRows that opens it, or a reason in noPage", route)
		}
	}
	for route := range covered {
		if !slices.Contains(all, route) {
			t.Errorf("a row is about %s, which is no route", route)
		}
	}

	text := listOfKeys()
	if *rewrite {
		if err := os.WriteFile(keyList, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(keyList); err != nil || string(got) != text {
		t.Errorf("keyboard.md differs from keyRows, %v: look at it and run go test ./api/browser -rewrite", err)
	}
}

// keyListHead is how the document begins.
const keyListHead = `# Every page by keyboard alone

§TestPages_workByKeyboardAlone§ (§make test-web§) does these steps in Chromium, in this order, by keys alone. It goes once around each page of an
owner by Tab, too, as §TestPages_workInChromium/EveryPageByKeyboard§ does with every page: all that a mouse can use is reached, is in sight then and has a
ring. Each list begins at an address that is opened; what is in braces is another value each time. "Tab to X" is Tab until the focus is
on what is named X, or begins so where dots follow. Keys of your own are set at §/help/keys§. §go test ./api/browser -rewrite§ writes this
page.
`

// listOfKeys is the document of keyRows.
func listOfKeys() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(keyListHead, "§", "`"))
	for _, r := range keyRows {
		fmt.Fprintf(&b, "\n## %s\n\n`%s`, %s\n\n| keys | what happens |\n|---|---|\n", r.page, r.path, r.who)
		for _, st := range r.steps {
			fmt.Fprintf(&b, "| %s | %s |\n", strings.ReplaceAll(st.keys, `\, `, ", "), st.then)
		}
	}

	b.WriteString("\n## Addresses without a page of their own\n\n| address | it |\n|---|---|\n")
	for _, route := range slices.Sorted(maps.Keys(noPage)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimPrefix(route, "GET "), noPage[route])
	}
	return b.String()
}

// The steps of keyRows are done in their order, by nothing but keys.
func TestPages_workByKeyboardAlone(t *testing.T) {
	t.Parallel()
	s, values := keySite(t)
	tabs := map[string]*keyTab{}
	for i, r := range keyRows {
		// The rows of the owner stand on one another.
		if testing.Short() && (r.who == anOwner || i%6 != 0) {
			continue
		}

		if tabs[r.who] == nil {
			tabs[r.who] = s.openForKeys(t)
		}
		b := tabs[r.who]
		t.Run(r.page, func(t *testing.T) {
			b.t = t
			defer func() { b.t = b.whole }()
			b.doRow(&r, values)
		})
	}
}

// keyTab is a tab that notes where the focus has been and what was asked for.
type keyTab struct {
	*tab
	whole testing.TB // the test of all rows

	sent []string // guarded by mu
}

// openForKeys opens such a tab.
func (s *site) openForKeys(t *testing.T) *keyTab {
	t.Helper()
	b := &keyTab{tab: s.open(t, ""), whole: t}
	b.noteStops()
	b.must(call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: nameOf}))
	b.must(chromedp.Listen(b.ctx, func(ev any) {
		request, ok := ev.(*network.EventRequestWillBeSent)
		if !ok || request.Type != network.ResourceTypeDocument {
			return
		}
		if u, err := url.Parse(request.Request.URL); err == nil {
			b.mu.Lock()
			b.sent = append(b.sent, request.Request.Method+" "+u.EscapedPath())
			b.mu.Unlock()
		}
	}))

	// A raw file runs no scripts, those of this test neither.
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.trouble = slices.DeleteFunc(b.trouble, func(w trouble) bool { return w.source == "security" && strings.Contains(w.url, "/-/raw/") })
	})
	return b
}

// doRow does the steps of a row.
func (b *keyTab) doRow(r *keyRow, values *strings.Replacer) {
	b.t.Helper()
	b.mu.Lock()
	b.sent = nil
	b.mu.Unlock()
	open := func() {
		b.t.Helper()
		b.do("open "+r.path, chromedp.Navigate(b.base+values.Replace(r.path)))
		b.until("scripts of "+r.path, drawn)
	}
	open()

	// Those of a guest are walked by everyPageByKeyboard.
	if r.who == anOwner {
		b.walk(r.page)
		open()
	}

	for _, st := range r.steps {
		holds := "(" + values.Replace(st.holds) + ")"
		if eval[bool](b.tab, "!!"+holds) {
			b.t.Errorf("%s holds before %s", holds, st.keys)
		}

		// A comma of a name has a stroke before it.
		for key := range strings.SplitSeq(strings.ReplaceAll(st.keys, `\, `, "\x00"), ", ") {
			b.key(values.Replace(strings.ReplaceAll(key, "\x00", ", ")))
		}
		b.until(st.keys+": "+st.then, holds+" && "+drawn)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	for _, route := range r.routes {
		if !slices.ContainsFunc(b.sent, func(request string) bool { return matches(route, request) }) {
			b.t.Errorf("nothing was sent to %s, but to %q", route, b.sent)
		}
	}
}

// drawn holds once a page hears keys; those without scripts hear them at once.
const drawn = `document.readyState === 'complete' && (document.documentElement.dataset.booted === '1' || !document.querySelector('script'))`

// nameOf is what somebody who does not see an element is told that it is.
const nameOf = `window.nameOf = e => {
  const label = e.labels && e.labels[0] && e.labels[0].cloneNode(true);
  if (label) label.querySelectorAll('select, input, textarea').forEach(x => x.remove());
  return (e.getAttribute('aria-label') || label && label.textContent || e.innerText || '').replace(/\s+/g, ' ').trim();
};`

// key presses what a row calls one: "Tab to X", "type X", or keys between blanks.
func (b *tab) key(key string) {
	b.t.Helper()
	if text, ok := strings.CutPrefix(key, "type "); ok {
		for _, r := range text {
			b.strike(r)
		}
		return
	}
	wanted, far := strings.CutPrefix(key, "Tab to ")
	if !far {
		for k := range strings.FieldsSeq(key) {
			b.press(map[string]string{"Esc": "Escape"}[k] + strings.TrimPrefix(k, "Esc"))
		}
		return
	}
	start, rest := strings.CutSuffix(wanted, "…")
	var passed []string
	for range mostStops {
		b.press("Tab")
		name := eval[string](b, `nameOf(document.activeElement)`)
		if name == wanted || rest && strings.HasPrefix(name, start) {
			return
		}
		passed = append(passed, name)
	}
	b.t.Fatalf("Tab does not come to %s, but to %q\n%s", wanted, passed, b.state())
}

// keySite is a node with all that a page can show, and the values of what is in
// braces in keyRows.
func keySite(t *testing.T) (*site, *strings.Replacer) {
	t.Helper()
	model := modeltest.Start(t, modeltest.Turn{Text: "It is seven @file:{local/app::main.go:3}."})

	// A connection whose listing takes until it is cancelled.
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)

	s, dir := &site{chromium: chromium(t)}, t.TempDir()
	s.app = appRepository(t, filepath.Join(dir, "app"))
	listen := "127.0.0.1:" + freePort(t)
	back := agentsEnd(t, "http://"+listen)
	s.node = nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"work": {"type": "git", "url": "file://%s/*", "revisions": {"branches": ["**"], "tags": ["**"]}}, "slow": {"type": "git", "url": "%s/slow.git"}},
			"contexts": {"ours": {"includeConnections": ["work"]}}, "models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}]}`, dir, silent.URL, model.URL),
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
		Edit: func(o *node.Options) { o.Ctags, o.BaseURL, o.History = "", "http://"+listen, change.Bound{All: true} },
	})
	s.node.Wait("the repository, and the model", func() error {
		if st := s.node.Status(); st.Repos.Indexed != 1 || !s.node.Ask.HasModel() {
			return fmt.Errorf("repositories %+v, a model: %v", st.Repos, s.node.Ask.HasModel())
		}
		return nil
	})
	s.node.WaitHistory()
	s.url = serveAt(t, s.node.Node, listen, func(o *api.Options) { o.EmbedAncestors = []string{"'self'"} })
	if _, err := s.node.People.CreateUser(t.Context(), account.Operator(), account.CreateUserRequest{Email: "ann@example.com", Role: catalog.RoleOwner}); err != nil {
		t.Fatal(err)
	}
	link, err := s.node.Passwords.NewLink(t.Context(), account.Operator(), account.NewLinkRequest{User: "ann@example.com", Join: true})
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.node.Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "made", Role: catalog.RoleOwner})
	if err != nil {
		t.Fatal(err)
	}
	return s, strings.NewReplacer("{link}", link.Token, "{key}", key.Key, "{node}", s.node.ID(), "{agent}", consentPage(t, s.url, back), "{commit}", s.app.Git("rev-parse", "feature/x@y"))
}

// agentsEnd is where an agent waits for the answer to whether it is let in. It
// fetches the tokens that it was promised, as agents do.
func agentsEnd(t *testing.T, base string) string {
	t.Helper()
	var back *httptest.Server
	back = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := http.PostForm(base+"/oauth/token", url.Values{
			"grant_type": {"authorization_code"}, "code": {r.FormValue("code")}, "redirect_uri": {back.URL}, "client_id": {r.FormValue("state")}, "resource": {base + "/api/mcp"},
			"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}, // of the challenge of consentPage
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()

		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!doctype html><link rel=icon href=data:,><title>Agent</title><p>The agent has %s</p>", resp.Status)
	}))
	t.Cleanup(back.Close)
	return back.URL
}
