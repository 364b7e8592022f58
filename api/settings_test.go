package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"

	"github.com/shoalsearch/shoal/node/account"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/operate"
)

// settingsPages are the pages of the settings that a GET renders, and whether only owners see
// them.
var settingsPages = []struct {
	path   string
	owners bool
}{
	{"/settings", false}, {"/settings/repos", false}, {"/settings/nodes", false}, {"/settings/contexts", false}, {"/settings/agents", false},
	{"/settings/connections", true}, {"/settings/placement", true}, {"/settings/config", true}, {"/settings/jobs", true}, {"/settings/events", true}, {"/settings/audit", true}, {"/settings/do/retry?subject=index:7", true}, {"/settings/do/cancel?subject=index:7", true}, {"/settings/keys", true}, {"/settings/access", true}, {"/settings/people", true},
	{"/settings/rights", true}, {"/settings/rights?user=ann@example.com&repo=github.com%2Facme%2Fsecret", true},
	{"/settings/do/reindex?subject=example.com%2Fa%2Fb", true}, {"/settings/do/sync?subject=main", true}, {"/settings/do/accept?subject=main", true},
	{"/settings/do/drain?subject=n1", true}, {"/settings/do/undrain?subject=n1", true}, {"/settings/do/remove?subject=n1", true},
}

// Pages work with keyboard and screen reader, and do not violate their own policy for scripts and
// styles.
func TestSettingsPages_areAccessibleAndKeepTheirPolicy(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{})
	for _, p := range settingsPages {
		resp, body := ask(t, s, "GET", p.path, "")
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", p.path, resp.StatusCode, body)
			continue
		}
		doc, err := html.Parse(strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range unsound(doc, resp.Header.Get("Content-Security-Policy")) {
			t.Errorf("%s: %s", p.path, wrong)
		}
		if !strings.Contains(string(body), `<nav class="side"`) || strings.Count(string(body), `aria-current="page"`) != 2 {
			t.Errorf("%s: the navigation does not say where the reader is", p.path)
		}
	}
}

// unsound returns the mistakes of a page with a policy.
func unsound(doc *html.Node, policy string) (wrong []string) {
	ids, labelled, heads := map[string]int{}, map[string]bool{}, 0
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "label" {
			labelled[attr(n, "for")] = true
		}
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				wrong = append(wrong, "an attribute "+a.Key)
			}
		}
		if id := attr(n, "id"); id != "" {
			if ids[id]++; ids[id] == 2 {
				wrong = append(wrong, "two elements with the id "+id)
			}
		}
		switch n.Data {
		case "h1":
			heads++
		case "script":
			if attr(n, "src") == "" {
				wrong = append(wrong, "a script inside")
			}
		case "style":
			// Any other style has another hash.
			sum := sha256.Sum256([]byte(n.FirstChild.Data))
			if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
				wrong = append(wrong, "a style inside that the policy stops")
			}
		case "table":
			if !within(n, "caption") {
				wrong = append(wrong, "a table without a caption")
			}
		case "a", "button":
			if strings.TrimSpace(words(n)) == "" && attr(n, "aria-label") == "" {
				wrong = append(wrong, "a link or button without a name")
			}
		case "input", "select":
			if attr(n, "type") != "hidden" && attr(n, "aria-label") == "" && !labelled[attr(n, "id")] && !inside(n, "label") {
				wrong = append(wrong, "a field without a label: "+attr(n, "name"))
			}
		}
	}
	if heads != 1 {
		wrong = append(wrong, fmt.Sprintf("%d first headings", heads))
	}
	return wrong
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func within(n *html.Node, name string) bool {
	for c := range n.Descendants() {
		if c.Data == name {
			return true
		}
	}
	return false
}

func inside(n *html.Node, name string) bool {
	for p := range n.Ancestors() {
		if p.Data == name {
			return true
		}
	}
	return false
}

func words(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// Only owners see names of connections, paths of files and commands, and may change them.
func TestSettingsPages_showDetailsAndChangesOnlyToOwners(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{guests: true})
	for who, key := range map[string]string{"a member": memberKey, "a guest": ""} {
		for _, p := range settingsPages {
			resp, body := askAs(t, s, key, "GET", p.path, "")
			if want := map[bool]int{false: 200, true: 403}[p.owners]; resp.StatusCode != want {
				t.Errorf("%s, %s: %d, want %d", who, p.path, resp.StatusCode, want)
			}
			for _, secret := range []string{"/settings/do/", `href="/settings/connections"`, `href="/settings/config"`, "c.json"} {
				if strings.Contains(string(body), secret) {
					t.Errorf("%s is shown %s at %s", who, secret, p.path)
				}
			}
		}
	}
}

// changes records changes.
type changes struct {
	*fake
	mu   sync.Mutex // guards the field below
	done []string
}

func (c *changes) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, what)
}

func (c *changes) taken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := strings.Join(c.done, ", ")
	c.done = nil
	return out
}

func (c *changes) Reindex(ctx context.Context, by account.Owner, id uint32) (*operate.ReindexResponse, error) {
	c.note(fmt.Sprint("reindex ", id))
	return c.fake.Reindex(ctx, by, id)
}
func (c *changes) SyncConnection(ctx context.Context, by account.Owner, name string) (*operate.ConnectionStatus, error) {
	c.note("sync " + name)
	return c.fake.SyncConnection(ctx, by, name)
}
func (c *changes) AcceptListing(ctx context.Context, by account.Owner, name string) (*operate.ConnectionStatus, error) {
	c.note("accept " + name)
	return c.fake.AcceptListing(ctx, by, name)
}
func (c *changes) Drain(ctx context.Context, by account.Owner, node string) (*operate.DrainResponse, error) {
	c.note("drain " + node)
	return c.fake.Drain(ctx, by, node)
}
func (c *changes) Undrain(ctx context.Context, by account.Owner, node string) (*operate.NodeResponse, error) {
	c.note("undrain " + node)
	return c.fake.Undrain(ctx, by, node)
}
func (c *changes) Remove(ctx context.Context, by account.Owner, node string, acceptLoss bool) (*operate.RemoveResponse, error) {
	if !acceptLoss {
		return nil, nodecall.Fail(nodecall.ErrHeld, "node n1 has the last copy of 1 of the repositories (a/b)")
	}
	c.note("remove " + node)
	return c.fake.Remove(ctx, by, node, acceptLoss)
}

func (c *changes) RetryJob(ctx context.Context, by account.Owner, id string) (*operate.JobInfo, error) {
	c.note("retry " + id)
	return c.fake.RetryJob(ctx, by, id)
}
func (c *changes) CancelJob(ctx context.Context, by account.Owner, id string) (*operate.JobInfo, error) {
	c.note("cancel " + id)
	return c.fake.CancelJob(ctx, by, id)
}

func (c *changes) parts() parts {
	p := c.fake.parts()
	p.operate = c
	return p
}

// send posts a form like a browser with a session cookie.
func send(t *testing.T, s *Server, key, path, site string, form url.Values) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest("POST", "http://"+s.Addr().String()+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Cookie", "shoal="+key)
	if site != "" {
		req.Header.Set("Sec-Fetch-Site", site)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// A GET asks for confirmation: it changes nothing, and shows the equivalent command. Only a form
// of this site, sent by an owner, makes the change.
func TestSettingsChange_needsAConfirmedFormOfAnOwner(t *testing.T) {
	t.Parallel()
	f := &changes{fake: &fake{}}
	s := start(t, f)
	for _, c := range []struct {
		action, subject, command, done string
		more                           url.Values
	}{
		{"reindex", "example.com/a/b", "shoal repo reindex example.com/a/b", "reindex 7", nil},
		{"sync", "main", "shoal connection sync main", "sync main", nil},
		{"accept", "main", "shoal connection accept main", "accept main", nil},
		{"retry", "index:7", "shoal jobs retry index:7", "retry index:7", nil},
		{"cancel", "sync:main", "shoal jobs cancel sync:main", "cancel sync:main", nil},
		{"drain", "n1", "shoal drain n1", "drain n1", nil},
		{"undrain", "n1", "shoal undrain n1", "undrain n1", nil},
		{"remove", "n1", "shoal remove n1", "remove n1", url.Values{"typed": {"n1"}, "accept": {"1"}}},
	} {
		path := "/settings/do/" + c.action
		if _, page := ask(t, s, "GET", path+"?subject="+url.QueryEscape(c.subject), ""); !strings.Contains(string(page), c.command) {
			t.Errorf("%s does not show %q", path, c.command)
		}
		form := url.Values{"subject": {c.subject}}
		for name, values := range c.more {
			form[name] = values
		}
		for _, no := range []struct{ key, site string }{{ownerKey, "cross-site"}, {ownerKey, ""}, {ownerKey, "same-site"}, {memberKey, "same-origin"}} {
			if resp, _ := send(t, s, no.key, path, no.site, form); resp.StatusCode != 403 {
				t.Errorf("%s by %v: %d, want 403", path, no, resp.StatusCode)
			}
		}
		if did := f.taken(); did != "" {
			t.Fatalf("%s: %s was done before it was allowed", path, did)
		}

		resp, _ := send(t, s, ownerKey, path, "same-origin", form)
		if to := resp.Header.Get("Location"); resp.StatusCode != 303 || !strings.HasSuffix(to, "?did="+c.action) {
			t.Errorf("%s: %d, Location %q", path, resp.StatusCode, to)
		}
		if did := f.taken(); did != c.done {
			t.Errorf("%s did %q, want %q", path, did, c.done)
		}
	}
}

func TestRemoveNodePage_asksTwiceIfDataWouldBeLost(t *testing.T) {
	t.Parallel()
	f := &changes{fake: &fake{}}
	s := start(t, f)
	resp, body := send(t, s, ownerKey, "/settings/do/remove", "same-origin", url.Values{"subject": {"n1"}, "typed": {"n"}})
	if resp.StatusCode != 400 || !strings.Contains(body, "Type the name") {
		t.Errorf("another name was typed: %d", resp.StatusCode)
	}
	resp, body = send(t, s, ownerKey, "/settings/do/remove", "same-origin", url.Values{"subject": {"n1"}, "typed": {"n1"}})
	if resp.StatusCode != 409 || !strings.Contains(body, `name="accept"`) || !strings.Contains(body, "last copy") {
		t.Errorf("a loss was not asked about: %d %s", resp.StatusCode, body)
	}
	if did := f.taken(); did != "" {
		t.Errorf("%s was done", did)
	}
}

// Old addresses, and those of Sourcebot, lead to the page with that content.
func TestOldAddresses_redirect(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{guests: true})
	for from, to := range map[string]string{
		"/cluster": "/settings", "/status": "/settings", "/settings/general": "/settings", "/settings/apiKeys": "/settings/keys",
		"/settings/mcp": "/settings/agents", "/~/repos": "/repos", "/~/search?query=a+b&isRegexEnabled=true": "/search?isRegexEnabled=true&query=a+b",
		"/~/browse/example.com/a/b@main/-/blob/dir%2Fa.go?highlightRange=5%3A1%2C9%3A4": "/browse/example.com/a/b@main/-/blob/dir%2Fa.go?highlightRange=5%3A1%2C9%3A4",
		"/~//evil.example": "/", `/~/\\evil.example`: "/", "/~/%5Cevil.example": "/%5Cevil.example",
	} {
		resp := unfollowed(t, s, from)
		if got := resp.Header.Get("Location"); resp.StatusCode != 301 || got != to {
			t.Errorf("%s: %d to %q, want %q", from, resp.StatusCode, got, to)
		}
	}
	for _, same := range []string{"/", "/repos", "/search?query=main&isRegexEnabled=true&isCaseSensitivityEnabled=true", "/settings", "/login"} {
		if resp, body := askAs(t, s, "", "GET", same, ""); resp.StatusCode != 200 {
			t.Errorf("%s: %d %.200s", same, resp.StatusCode, body)
		}
	}
}

// unfollowed requests a page without following redirects.
func unfollowed(t *testing.T, s *Server, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+s.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = "//" + s.Addr().String() + path
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// Features for owners do not just vanish: others read that they are for owners, and which right
// is needed.
func TestSettingsPages_nameTheMissingRight(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{})
	_, member := visit(t, s, "GET", "/settings", "", map[string]string{"Cookie": "shoal=" + memberToken})
	if !strings.Contains(member, "Connections, jobs, placement and the configuration are for owners.") || strings.Contains(member, `href="/settings/connections"`) || strings.Contains(member, "Given up, tried again") {
		t.Errorf("a member is shown %s", member)
	}
	_, owner := ask(t, s, "GET", "/settings", "")
	if strings.Contains(string(owner), "are for owners.") || !strings.Contains(string(owner), `href="/settings/connections"`) || !strings.Contains(string(owner), "<strong>3, 1</strong>") {
		t.Errorf("an owner is shown %s", owner)
	}
}
