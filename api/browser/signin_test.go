package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// freePort is a port that nobody listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// provider runs a certified OpenID provider that is another site to a browser,
// and returns its issuer.
func provider(t *testing.T, redirect string) string {
	t.Helper()
	issuer := "http://localhost:" + freePort(t)
	cmd := exec.Command("node", os.Getenv("SHOAL_OPENID_PROVIDER"), issuer, redirect)
	cmd.Env = append(os.Environ(), "CLIENT_SECRET=hush-hush-hush")
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
			return issuer
		}
	}
	t.Fatal("the provider ended")
	return ""
}

// presses sends the form whose button has a name, and waits for what the next
// page shows.
func (b *tab) presses(button, next string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf(`[...document.querySelectorAll('button')].find(x => x.textContent.includes(%q)).click() || true`, button))
	b.until("the page after "+button, next)
}

// asWhoever signs in at the provider, where anybody may by any name, and lets
// the service know of it.
func (b *tab) asWhoever(name, next string) {
	b.t.Helper()
	b.until("the form of the provider", `document.querySelector('input[name=login]')`)
	eval[bool](b, fmt.Sprintf(`document.querySelector('input[name=login]').value = %q, document.querySelector('input[name=password]').value = 'any', document.querySelector('form').submit(), true`, name))
	b.until("the question of the provider", `document.querySelector('input[name=prompt][value=consent]')`)
	eval[bool](b, `document.querySelector('form').submit() || true`)
	b.until("the way back", next)
}

// forgetOthers forgets what pages of the provider lack.
func (b *tab) forgetOthers() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = slices.DeleteFunc(b.trouble, func(w trouble) bool { return w.source == "network" && !strings.HasPrefix(w.url, b.base+"/") })
}

// A browser keeps to what the pages and cookies say: the trip to a provider of
// another site and back works in it, to sign in and to link, under the policy of
// the pages.
func TestProviderSignIn_worksInChromium(t *testing.T) {
	t.Parallel()
	s := &site{chromium: chromium(t)}
	if os.Getenv("SHOAL_OPENID_PROVIDER") == "" {
		t.Skip("NOT RUN: SHOAL_OPENID_PROVIDER names no provider (make test-signin names it)")
	}
	listen := "127.0.0.1:" + freePort(t)
	base := "http://" + listen
	corp, host := provider(t, base+"/api/auth/callback/corp"), provider(t, base+"/api/auth/callback/host")
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"identityProviders": {
			"corp": {"provider": "oidc", "purpose": "sso", "displayName": "Corp", "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}, "issuer": {"env": "CORP"}},
			"host": {"provider": "gitlab", "purpose": "account_linking", "accountLinkingRequired": true, "baseUrl": %q, "clientId": {"env": "ID"}, "clientSecret": {"env": "SECRET"}},
		}}`, host),
		Env:  map[string]string{"ID": "shoal", "SECRET": "hush-hush-hush", "CORP": corp, "REQUIRE_APPROVAL_NEW_MEMBERS": "false"},
		Edit: func(o *node.Options) { o.Ctags, o.BaseURL = "off", base },
	})
	n.Wait("the providers", func() error {
		if len(n.SignIn().Providers()) != 2 {
			return fmt.Errorf("%+v", n.SignIn().Providers())
		}
		return nil
	})
	s.url = serveAt(t, n.Node, listen)

	// Whoever opens a page is led to the provider, and held until the host is linked.
	b := s.open(t, "")
	t.Cleanup(b.forgetOthers)
	b.goTo("/repos", 200)
	b.expect("the page to sign in", `location.pathname === '/login'`)
	b.presses("Sign in with Corp", `location.hostname === 'localhost' && document.readyState === 'complete'`)
	b.asWhoever("ann", `location.pathname === '/settings/account' && location.search === '?missing'`)
	b.presses("Link GitLab", `location.hostname === 'localhost' && document.readyState === 'complete'`)
	b.asWhoever("ann70", `location.pathname === '/settings/account' && location.search === '?linked' && document.readyState === 'complete'`)
	b.expect("what is linked", `document.body.innerText.includes('ann70')`)
	b.goTo("/repos", 200)
	b.expect("the page that was asked for", `location.pathname === '/repos' && document.body.innerText.includes('ann@example.com')`)
}

// The forms of the pages are sent from where a browser says that they are sent:
// without scripts too, and with no credential but the cookie.
func TestPasswordSignIn_worksInChromiumWithoutScripts(t *testing.T) {
	t.Parallel()
	s := &site{chromium: chromium(t)}
	listen := "127.0.0.1:" + freePort(t)
	n := nodetest.Start(t, nodetest.Config{Edit: func(o *node.Options) { o.Ctags, o.BaseURL = "off", "http://"+listen }})
	s.url = serveAt(t, n.Node, listen)
	by := account.Operator()
	if _, err := n.People.CreateUser(t.Context(), by, account.CreateUserRequest{Email: "ann@example.com"}); err != nil {
		t.Fatal(err)
	}
	l, err := n.Passwords.NewLink(t.Context(), by, account.NewLinkRequest{User: "ann@example.com", Join: true})
	if err != nil {
		t.Fatal(err)
	}

	const password = "correct horse battery"
	b := s.open(t, "")
	b.goTo("/join?link="+l.Token, 200)
	eval[bool](b, `document.querySelector('input[name=password]').value = document.querySelector('input[name=again]').value = '`+password+`', true`)
	b.presses("Sign in", `location.pathname === '/' && document.readyState === 'complete'`)
	b.goTo("/settings/account", 200)
	t.Run("NoBarrier", func(t *testing.T) {
		axe := axeCore(t)
		for _, look := range looks {
			b.wear(look)
			for name, path := range map[string]string{"one's own account": "/settings/account", "an agent that asks to be let in": consentPage(t, s.url, "http://localhost:9/back")} {
				b.goTo(path, 200)
				b.expect(name, `location.pathname + location.search === `+quote(path)+` && document.querySelector('main form')`)
				b.reports(name)
				b.hasNoBarrier(name+", "+look.name, "html", axe)
			}
		}
		b.wear(looks[0])
		b.goTo("/settings/account", 200)
	})
	b.presses("Sign out everywhere else", `document.querySelector('[role=status]')?.innerText.includes('Signed out')`)
	eval[bool](b, `document.querySelector('form[action="/logout"]').submit() || true`)
	b.until("the page after signing out", `!document.cookie && location.pathname !== '/settings/account'`)

	b.goTo("/login?next=/repos", 200)
	eval[bool](b, `document.querySelector('input[name=email]').value = 'ann@example.com', document.querySelector('input[name=password]').value = '`+password+`', true`)
	b.presses("Sign in", `location.pathname === '/repos' && document.body.innerText.includes('ann@example.com')`)
}

// consentPage registers an agent, and is the page on which somebody lets it in.
func consentPage(t *testing.T, base, back string) string {
	t.Helper()
	resp, err := http.Post(base+"/oauth/register", "application/json", strings.NewReader(`{"client_name": "An agent", "redirect_uris": [`+quote(back)+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var client struct {
		ID string `json:"client_id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&client); err != nil || client.ID == "" {
		t.Fatalf("registering gives %s, %v", resp.Status, err)
	}
	return "/oauth/authorize?" + url.Values{
		"response_type":         {"code"},
		"client_id":             {client.ID},
		"redirect_uri":          {back},
		"state":                 {client.ID},
		"resource":              {base + "/api/mcp"},
		"code_challenge":        {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, // the example of RFC 7636
		"code_challenge_method": {"S256"},
	}.Encode()
}
