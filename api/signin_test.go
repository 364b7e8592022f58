package api

import (
	"net/url"
	"strings"
	"testing"
)

func TestProviderSignIn_refusesATripBegunByAnotherSite(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{base: "https://shoal.example.com"}).parts())
	if _, body := visit(t, s, "GET", "/login?next=/repos", "", nil); !strings.Contains(body, "Sign in with Corp &amp; Co") || strings.Contains(body, "Sign in with Host") {
		t.Errorf("the page: %s", body)
	}

	// A page of this site leads to the provider, because a form may not.
	resp, body := visit(t, s, "POST", "/login", "with=corp&next=/repos", nil)
	c := cookieOf(t, resp)
	if resp.StatusCode != 200 || resp.Header.Get("Refresh") != "0; url=https://corp.example/authorize?state=12345678abc&link=" || !strings.Contains(body, `href="https://corp.example/authorize?state=12345678abc&amp;link="`) {
		t.Errorf("sent to the provider: %d %v %s", resp.StatusCode, resp.Header, body)
	}
	if c.Name != "__Host-shoal-login-12345678" || c.Value != "sealed" || !c.HttpOnly || !c.Secure || c.Path != "/" || c.MaxAge != 600 {
		t.Errorf("the cookie is %v", c)
	}
	if resp, _ := visit(t, s, "POST", "/login", "with=corp", map[string]string{"Sec-Fetch-Site": "cross-site"}); resp.StatusCode != 403 {
		t.Errorf("begun by another site: %d", resp.StatusCode)
	}
	if resp, _ := visit(t, s, "POST", "/login", "with=host", nil); resp.StatusCode != 403 || len(resp.Cookies()) != 0 {
		t.Errorf("by a provider that only links: %d", resp.StatusCode)
	}

	// The way back: the cookie is always deleted.
	for what, x := range map[string]struct {
		target, cookie, to string
		status             int
	}{
		"good":            {"/api/auth/callback/corp?state=12345678abc&code=x", c.Name + "=sealed", "/repos", 303},
		"another browser": {"/api/auth/callback/corp?state=12345678abc&code=x", "", "", 400},
		"another tab":     {"/api/auth/callback/corp?state=abcdefgh123&code=x", c.Name + "=sealed", "", 400},
		"down":            {"/api/auth/callback/down?state=12345678abc&code=x", c.Name + "=sealed", "", 503},
		"linking":         {"/api/auth/callback/corp?state=12345678abc&code=x", c.Name + "=sealed; __Host-shoal=" + memberToken, "/settings/account?linked", 303},
	} {
		resp, body := visit(t, s, "GET", x.target, "", map[string]string{"Cookie": x.cookie, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
		if resp.StatusCode != x.status || resp.Header.Get("Location") != x.to {
			t.Errorf("%s: %d to %q: %s", what, resp.StatusCode, resp.Header.Get("Location"), body)
		}
		cookies := resp.Cookies()
		if len(cookies) == 0 || !strings.HasPrefix(cookies[0].Name, "__Host-shoal-login-") || cookies[0].MaxAge >= 0 {
			t.Errorf("%s: the cookie is not taken back: %v", what, cookies)
		}
		if in := len(cookies) == 2 && cookies[1].Value == memberToken; in != (what == "good") {
			t.Errorf("%s: cookies %v", what, cookies)
		}
	}

	// Abandoned sign-ins do not fill the browser's requests with cookies.
	many := ""
	for _, end := range []string{"a", "b", "c", "d"} {
		many += "__Host-shoal-login-" + end + "=x; "
	}
	if resp, _ := visit(t, s, "POST", "/login", "with=corp", map[string]string{"Cookie": many}); len(resp.Cookies()) != 5 {
		t.Errorf("four that were left: %v", resp.Cookies())
	}

	// An invitation can be accepted with a provider too.
	if _, body := visit(t, s, "GET", "/join?link="+memberToken, "", nil); !strings.Contains(body, "Sign in with Corp") {
		t.Errorf("the page of a link: %s", body)
	}
	if resp, _ := visit(t, s, "POST", "/join", url.Values{"with": {"corp"}, "link": {"thelink"}}.Encode(), nil); !strings.HasSuffix(resp.Header.Get("Refresh"), "link=thelink") {
		t.Errorf("to the provider with a link: %v", resp.Header)
	}
}

func TestLinkedAccountsPage_linksAndUnlinksOnlyByItsOwnForm(t *testing.T) {
	t.Parallel()
	member := map[string]string{"Cookie": "shoal=" + memberToken}
	s := start(t, (&fake{}).parts())
	_, body := visit(t, s, "GET", "/settings/account", "", member)
	for _, want := range []string{"Corp &amp; Co", "Unlink Corp", "Link Host", "has to be linked", "https://old.example"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	// A host without redirects is linked with a token, which no answer shows.
	for _, want := range []string{`name="at" value="azure"`, `name="at" value="gerrit"><label>User name`, `name="token" type="password"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	for form, status := range map[string]int{"at=gerrit&user=ann&token=hush": 200, "at=gerrit&user=ann&token=sekret": 400, "at=azure&token=sekret": 400} {
		resp, body := visit(t, s, "POST", "/settings/account", form, member)
		if resp.StatusCode != status || strings.Contains(body, "hush") || strings.Contains(body, "sekret") || strings.Contains(body, "It is linked.") != (status == 200) {
			t.Errorf("%s: %d %s", form, resp.StatusCode, body)
		}
		if resp, _ := visit(t, s, "POST", "/settings/account", form, map[string]string{"Cookie": "shoal=" + memberToken, "Sec-Fetch-Site": "cross-site"}); resp.StatusCode != 403 {
			t.Errorf("sent by another site: %d", resp.StatusCode)
		}
	}
	if resp, _ := visit(t, s, "POST", "/settings/account", "link=host", member); !strings.HasPrefix(resp.Header.Get("Refresh"), "0; url=https://corp.example/") {
		t.Errorf("linking: %d %v", resp.StatusCode, resp.Header)
	}
	for subject, status := range map[string]int{"7": 400, "9": 200} {
		form := url.Values{"unlink": {"https://corp.example"}, "subject": {subject}}.Encode()
		if resp, _ := visit(t, s, "POST", "/settings/account", form, member); resp.StatusCode != status {
			t.Errorf("unlink %s: %d, want %d", subject, resp.StatusCode, status)
		}
	}

	// A person who must link an account can only do that or sign out.
	s = start(t, (&fake{unlinked: true}).parts())
	for _, page := range []string{"/", "/repos", "/search?query=x", "/settings/keys", "/settings"} {
		if resp, _ := visit(t, s, "GET", page, "", member); resp.StatusCode != 303 || resp.Header.Get("Location") != "/settings/account?missing" {
			t.Errorf("%s: %d to %q", page, resp.StatusCode, resp.Header.Get("Location"))
		}
	}
	if resp, body := visit(t, s, "GET", "/settings/account?missing", "", member); resp.StatusCode != 200 || !strings.Contains(body, `role="alert"`) {
		t.Errorf("the page to link at: %d", resp.StatusCode)
	}
	if resp, _ := visit(t, s, "POST", "/settings/keys", "name=x", member); resp.StatusCode != 403 {
		t.Errorf("a form: %d", resp.StatusCode)
	}
	if resp, _ := visit(t, s, "POST", "/logout", "", member); resp.StatusCode != 303 {
		t.Errorf("signing out: %d", resp.StatusCode)
	}
}
