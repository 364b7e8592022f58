package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/net/html"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host/giteatest"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/search"
)

// launchProvider runs the certified provider until the test ends.
func launchProvider(t *testing.T, issuer, redirect, secret string) {
	t.Helper()
	cmd := exec.Command("node", os.Getenv("SHOAL_OPENID_PROVIDER"), issuer, redirect)
	cmd.Env = append(os.Environ(), "CLIENT_SECRET="+secret)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "listening" {
			go io.Copy(io.Discard, out)
			return
		}
	}
	t.Fatal("the provider ended")
}

// form is a form of a page.
type form struct {
	action, method string
	values         url.Values
	names          map[string]bool // of fields and buttons
}

// forms returns the forms of a page.
func forms(t *testing.T, page string) (all []form) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(*html.Node, *form)
	walk = func(n *html.Node, in *form) {
		at := map[string]string{}
		for _, a := range n.Attr {
			at[a.Key] = a.Val
		}
		switch {
		case n.Type == html.ElementNode && n.Data == "form":
			all = append(all, form{at["action"], strings.ToUpper(at["method"]), url.Values{}, map[string]bool{}})
			in = &all[len(all)-1]
		case n.Type == html.ElementNode && in != nil && (n.Data == "input" || n.Data == "button") && at["name"] != "":
			in.names[at["name"]] = true
			if at["type"] == "hidden" {
				in.values.Add(at["name"], at["value"])
			}
		}
		for c := range n.ChildNodes() {
			walk(c, in)
		}
	}
	walk(root, nil)
	return all
}

// visits goes through a provider's forms as a person does. It returns the address of the
// redirect.
func (p *person) visits(address string, answers url.Values) string {
	p.t.Helper()
	req, err := http.NewRequest("GET", address, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	for range 20 {
		resp, err := p.http.Do(req)
		if err != nil {
			p.t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if to, err := resp.Location(); err == nil {
			if strings.HasPrefix(to.String(), p.base+"/") {
				return to.String()
			}
			if req, err = http.NewRequest("GET", to.String(), nil); err != nil {
				p.t.Fatal(err)
			}
			continue
		}
		if req = p.fill(resp, string(body), answers); req == nil {
			p.t.Fatalf("%s: %d, no form to go on with: %s", resp.Request.URL, resp.StatusCode, body)
		}
	}
	p.t.Fatal("the provider leads in a circle")
	return ""
}

// fill sends the form with a field for one of the answers, else the first form that changes
// something.
func (p *person) fill(resp *http.Response, page string, answers url.Values) *http.Request {
	p.t.Helper()
	var best *form
	for _, f := range forms(p.t, page) {
		asks := false
		for name := range answers {
			if f.names[name] {
				f.values[name] = answers[name]
				asks = true
			}
		}
		if f.method == "POST" && (best == nil || asks) {
			best = &f
		}
	}
	if best == nil {
		return nil
	}
	to, err := resp.Request.URL.Parse(best.action)
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequest("POST", to.String(), strings.NewReader(best.values.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", to.Scheme+"://"+to.Host)
	return req
}

// by signs in or links with a real provider.
func (p *person) by(path string, begin, answers url.Values) (*http.Response, string) {
	p.t.Helper()
	resp, page := p.do("POST", path, begin)
	to, ok := strings.CutPrefix(resp.Header.Get("Refresh"), "0; url=")
	if !ok {
		p.t.Fatalf("not sent to the provider: %d %s", resp.StatusCode, page)
	}
	return p.do("GET", p.visits(to, answers), nil)
}

// A certified provider, with each request at another of three nodes. The person then authorizes
// an agent.
func TestRealOpenIDProvider_signsAPersonInAtAnyNode(t *testing.T) {
	t.Parallel()
	if os.Getenv("SHOAL_OPENID_PROVIDER") == "" {
		t.Skip("SHOAL_OPENID_PROVIDER names no provider: make test-signin runs this test")
	}
	issuer := "http://127.0.0.1:" + freePort(t)
	f := openFront(t, 3, map[string]string{
		"ID": "shoal", "SECRET": "hush-hush-hush", "ISSUER": issuer, "REQUIRE_APPROVAL_NEW_MEMBERS": "false",
	})
	launchProvider(t, issuer, f.base+"/api/auth/callback/corp", "hush-hush-hush")
	f.configure(`{"identityProviders": {"corp": {"provider": "oidc", "purpose": "sso", "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}, "issuer": {"env": "ISSUER"}}}}`)

	begin := url.Values{"with": {"corp"}, "next": {"/repos"}}
	ann := f.browser()
	if resp, page := ann.by("/login", begin, url.Values{"login": {"ann"}, "password": {"any"}}); resp.StatusCode != 303 || resp.Header.Get("Location") != "/repos" {
		t.Fatalf("signed in: %d %s", resp.StatusCode, page)
	}
	if resp, page := ann.do("GET", "/repos", nil); resp.StatusCode != 200 || !strings.Contains(page, "ann@example.com") {
		t.Errorf("a page: %d", resp.StatusCode)
	}

	// The same session authorizes an agent.
	err := ann.connect(auth.AuthorizationCodeHandlerConfig{
		RedirectURL: "http://localhost:4711/callback",
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Agent", RedirectURIs: []string{"http://localhost:4711/callback"}, GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
	})
	if err != nil {
		t.Errorf("an agent: %v", err)
	}

	// The second sign-in makes no new account. A person with an unverified address does not get
	// the account with that address.
	if resp, _ := f.browser().by("/login", begin, url.Values{"login": {"ann"}, "password": {"any"}}); resp.StatusCode != 303 {
		t.Errorf("signed in again: %d", resp.StatusCode)
	}
	if _, err := f.node().People.CreateUser(t.Context(), account.Operator(), account.CreateUserRequest{Email: "eve@example.com"}); err != nil {
		t.Fatal(err)
	}
	if resp, page := f.browser().by("/login", begin, url.Values{"login": {"eve"}, "password": {"any"}}); resp.StatusCode != 403 {
		t.Errorf("by an address that is not proven: %d %s", resp.StatusCode, page)
	}
	if r, err := f.node().People.Users(t.Context(), account.Operator()); err != nil || len(r) != 2 {
		t.Errorf("accounts %+v, %v", r, err)
	}
}

// A real Gitea signs people in, and is linked, with each request at another of three nodes.
func TestRealGitea_signsPeopleInAtAnyNode(t *testing.T) {
	t.Parallel()
	g := giteatest.Start(t)
	g.User("ann")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	id, secret := g.Application("Shoal", "http://"+ln.Addr().String()+"/api/auth/callback/code")
	f := openFrontAt(t, ln, 3, map[string]string{"ID": id, "SECRET": secret})
	f.configure(fmt.Sprintf(`{"identityProviders": {"code": {"provider": "gitea", "purpose": "sso", "baseUrl": %q, "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}}}}`, g.URL))
	answers := url.Values{"user_name": {"ann"}, "password": {"not-a-secret-1"}, "granted": {"true"}}

	// A new person waits. An address that Gitea calls verified does not give access to an
	// account.
	begin := url.Values{"with": {"code"}}
	ann := f.browser()
	if resp, page := ann.by("/login", begin, answers); resp.StatusCode != 403 || !strings.Contains(alert(page), "waits for an owner") {
		t.Fatalf("somebody new: %d %q", resp.StatusCode, alert(page))
	}
	if _, err := f.node().People.ChangeUser(t.Context(), account.Operator(), account.ChangeUserRequest{User: "ann@example.com", State: catalog.AccountActive}); err != nil {
		t.Fatal(err)
	}
	if resp, page := ann.by("/login", begin, answers); resp.StatusCode != 303 {
		t.Fatalf("approved: %d %q", resp.StatusCode, alert(page))
	}
	if resp, page := ann.do("GET", "/settings/account", nil); resp.StatusCode != 200 || !strings.Contains(page, "Unlink Gitea") {
		t.Errorf("her account: %d %s", resp.StatusCode, page)
	}
	g.User("bob")
	if _, err := f.node().People.CreateUser(t.Context(), account.Operator(), account.CreateUserRequest{Email: "bob@example.com"}); err != nil {
		t.Fatal(err)
	}
	answers.Set("user_name", "bob")
	if resp, page := f.browser().by("/login", begin, answers); resp.StatusCode != 403 || !strings.Contains(alert(page), "in use here") {
		t.Errorf("by the address alone: %d %q", resp.StatusCode, alert(page))
	}

	// Signed in with a key he links the account, and then signs in with Gitea.
	k, err := f.node().Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "browser of bob", User: "bob@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	bob := f.browser()
	if resp, _ := bob.do("POST", "/login", url.Values{"key": {k.Key}}); resp.StatusCode != 303 {
		t.Fatalf("by a key: %d", resp.StatusCode)
	}
	if resp, page := bob.by("/settings/account", url.Values{"link": {"code"}}, answers); resp.StatusCode != 303 || resp.Header.Get("Location") != "/settings/account?linked" {
		t.Errorf("linking: %d %q", resp.StatusCode, alert(page))
	}
	if resp, page := f.browser().by("/login", begin, answers); resp.StatusCode != 303 {
		t.Errorf("by what is linked: %d %q", resp.StatusCode, alert(page))
	}
}

// After signing in with a real Gitea, people find what they may read there. They lose access with
// their rights there, or when they are suspended.
func TestRealGitea_permissionsFollowTheSignedInPerson(t *testing.T) {
	t.Parallel()
	g := giteatest.Start(t)
	g.User("ann")
	g.Org("acme")
	for _, name := range []string{"vault", "attic"} {
		g.Repo("acme", name, giteatest.Options{Private: true})
		g.Push("acme/"+name, map[string]string{"main.go": "package main // pangolin"})
	}
	g.Do("PUT", "/repos/acme/vault/collaborators/ann", map[string]any{"permission": "read"}, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	id, secret := g.Application("Shoal", "http://"+ln.Addr().String()+"/api/auth/callback/code")

	// Repositories are asked once a day, so faster changes come from asking for people.
	f := openFrontAt(t, ln, 3, map[string]string{"ID": id, "SECRET": secret, "GITEA_TOKEN": g.Token, "PERMISSION_SYNC_ENABLED": "true", "REQUIRE_APPROVAL_NEW_MEMBERS": "false"})
	f.configure(fmt.Sprintf(`{"settings": {"userDrivenPermissionSyncIntervalMs": 500, "reindexRepoPollingIntervalMs": 50},
		"connections": {"main": {"type": "gitea", "url": %q, "token": {"env": "GITEA_TOKEN"}, "orgs": ["acme"]}},
		"identityProviders": {"code": {"provider": "gitea", "purpose": "sso", "baseUrl": %q, "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}}}}`, g.URL, g.URL))
	n := f.node()
	n.WaitIndexed(2)

	answers := url.Values{"user_name": {"ann"}, "password": {"not-a-secret-1"}, "granted": {"true"}}
	if resp, page := f.browser().by("/login", url.Values{"with": {"code"}}, answers); resp.StatusCode != 303 {
		t.Fatalf("signing in: %d %q", resp.StatusCode, alert(page))
	}
	users, err := n.People.Users(t.Context(), account.Operator())
	if err != nil || len(users) != 1 {
		t.Fatalf("accounts %+v, %v", users, err)
	}
	ann := catalog.Viewer{Role: catalog.RoleMember, Account: users[0].ID}
	asked := func() operate.JobInfo {
		for _, state := range []string{"done", "failed", "running", "retrying", "waiting"} {
			jobs, err := n.Operate.Jobs(t.Context(), catalog.Operator(), operate.JobsRequest{Kind: "account_permissions", State: state})
			if err != nil {
				t.Fatal(err)
			}
			if len(jobs.Jobs) > 0 {
				return jobs.Jobs[0]
			}
		}
		return operate.JobInfo{}
	}
	sees := func(what string, want int) {
		t.Helper()
		n.Wait(what, func() error {
			found, err := n.Node.Search.Search(t.Context(), ann, search.Request{Query: "pangolin"})
			if err != nil || len(found.Files) != want || asked().Finished.IsZero() {
				return fmt.Errorf("she finds %+v, want %d, %v; %+v", found, want, err, asked())
			}
			return nil
		})
	}
	sees("what she may read", 1)
	g.Do("PUT", "/repos/acme/attic/collaborators/ann", map[string]any{"permission": "read"}, nil)
	sees("what she may read now, too", 2)
	g.Do("DELETE", "/repos/acme/attic/collaborators/ann", nil, nil)
	g.Do("DELETE", "/repos/acme/vault/collaborators/ann", nil, nil)
	sees("nothing any more", 0)
	g.Do("PUT", "/repos/acme/vault/collaborators/ann", map[string]any{"permission": "read"}, nil)
	sees("and again", 1)

	g.Do("PATCH", "/admin/users/ann", map[string]any{"login_name": "ann", "source_id": 0, "prohibit_login": true}, nil)
	sees("who is shut out", 0)
	if j := asked(); j.State != "failed" || j.Error == "" || !strings.HasPrefix(j.Subject, "gitea:") || strings.Contains(j.Subject, "\x00") {
		t.Errorf("it is told as %+v", j)
	}
	if job, err := n.Operate.Job(t.Context(), catalog.Operator(), asked().ID); err != nil || job.Kind != "account_permissions" {
		t.Errorf("the job is found as %+v, %v", job, err)
	}
}
