package api

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// visit sends a request as a browser does, without following redirects.
func visit(t *testing.T, s *Server, method, path, form string, header map[string]string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+s.Addr().String()+path, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	if method == "POST" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Host = cmp.Or(header["Host"], req.Host)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
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

func cookieOf(t *testing.T, resp *http.Response) *http.Cookie {
	t.Helper()
	all := resp.Cookies()
	if len(all) != 1 {
		t.Fatalf("%d cookies, want one: %v", len(all), resp.Header)
	}
	return all[0]
}

func TestSignIn_withAKeySetsASessionCookie(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{base: "https://shoal.example.com"}).parts())
	resp, body := visit(t, s, "POST", "/login", url.Values{"key": {memberKey}, "next": {"/repos"}}.Encode(), nil)
	c := cookieOf(t, resp)
	if resp.StatusCode != 303 || resp.Header.Get("Location") != "/repos" {
		t.Errorf("signed in: %d to %q: %s", resp.StatusCode, resp.Header.Get("Location"), body)
	}
	if c.Name != "__Host-shoal" || c.Value != memberToken || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge <= 0 {
		t.Errorf("the cookie is %v", c)
	}
	if all := resp.Header; strings.Contains(all.Get("Set-Cookie"), memberKey) {
		t.Error("the key stands in the cookie")
	}

	// The session opens pages, but in the API only /api/me.
	cookie := map[string]string{"Cookie": c.Name + "=" + c.Value}
	if resp, body := visit(t, s, "GET", "/repos", "", cookie); resp.StatusCode != 200 || !strings.Contains(body, "alice") {
		t.Errorf("a page of who is signed in: %d %s", resp.StatusCode, body)
	}
	if resp, _ := visit(t, s, "GET", "/api/repos", "", cookie); resp.StatusCode != 401 {
		t.Errorf("the API with a cookie: %d, want 401", resp.StatusCode)
	}

	// Only its own site learns whose session it is.
	if resp, body := visit(t, s, "GET", "/api/me", "", cookie); resp.StatusCode != 200 || !strings.Contains(body, `"name":"alice"`) || !strings.Contains(body, `"by":"session"`) {
		t.Errorf("who is signed in: %d %s", resp.StatusCode, body)
	}
	for site, status := range map[string]int{"same-origin": 200, "cross-site": 403} {
		header := map[string]string{"Cookie": cookie["Cookie"], "Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"}
		if resp, body := visit(t, s, "GET", "/api/me", "", header); resp.StatusCode != status || strings.Contains(body, "alice") != (status == 200) {
			t.Errorf("who is signed in, asked %s: %d %s, want %d", site, resp.StatusCode, body, status)
		}
	}

	// Signing out ends the session at the server too.
	resp, _ = visit(t, s, "POST", "/logout", "", cookie)
	if c := cookieOf(t, resp); c.Value != "" || c.MaxAge >= 0 {
		t.Errorf("the cookie after signing out is %v", c)
	}
	if resp, _ := visit(t, s, "GET", "/repos", "", cookie); resp.StatusCode != 303 || !strings.HasPrefix(resp.Header.Get("Location"), "/login") {
		t.Errorf("with the cookie of before: %d to %q", resp.StatusCode, resp.Header.Get("Location"))
	}
}

func TestSignIn_refusalSetsNoCookieAndLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	form := url.Values{"key": {memberKey}}.Encode()
	for what, c := range map[string]struct {
		form   string
		header map[string]string
		status int
	}{
		"a key of nobody":                {"key=shoal_0", nil, 401},
		"no key":                         {"", nil, 401},
		"sent by another site":           {form, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"sent by a sister site":          {form, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"an old browser, another origin": {form, map[string]string{"Sec-Fetch-Site": "", "Origin": "https://evil.example"}, 403},
	} {
		resp, body := visit(t, s, "POST", "/login", c.form, c.header)
		if resp.StatusCode != c.status || len(resp.Cookies()) != 0 || strings.Contains(body, "shoal_0") {
			t.Errorf("%s: %d, cookies %v, want %d without", what, resp.StatusCode, resp.Cookies(), c.status)
		}
	}
	for _, next := range []string{"//evil.example", `/\evil.example`, "https://evil.example", "javascript:x"} {
		resp, _ := visit(t, s, "POST", "/login", url.Values{"key": {memberKey}, "next": {next}}.Encode(), nil)
		if got := resp.Header.Get("Location"); got != "/" {
			t.Errorf("led on to %q by %q", got, next)
		}
	}
}

// With anonymous access, an ended session would otherwise lock its user out.
func TestSignInPage_deletesTheCookieOfAnEndedSession(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts())
	dead := map[string]string{"Cookie": "shoal=" + strings.Repeat("9", 64)}
	if resp, _ := visit(t, s, "GET", "/repos", "", dead); resp.StatusCode != 303 {
		t.Errorf("a page with a dead cookie: %d, want 303", resp.StatusCode)
	}
	resp, _ := visit(t, s, "GET", "/login?next=/repos", "", dead)
	if c := cookieOf(t, resp); c.Value != "" || c.MaxAge >= 0 {
		t.Errorf("the cookie is %v", c)
	}
	if resp, _ := visit(t, s, "GET", "/login", "", map[string]string{"Cookie": "shoal=" + memberToken}); len(resp.Cookies()) != 0 {
		t.Errorf("a good cookie was replaced: %v", resp.Cookies())
	}
}

func TestSignIn_withAPasswordIsRateLimited(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	form := func(email, password string) string {
		return url.Values{"email": {email}, "password": {password}, "next": {"/repos"}}.Encode()
	}
	resp, _ := visit(t, s, "POST", "/login", form("ann@example.com", "correct horse"), nil)
	if resp.StatusCode != 303 || cookieOf(t, resp).Value != memberToken || resp.Header.Get("Location") != "/repos" {
		t.Errorf("the right password: %d %v", resp.StatusCode, resp.Header)
	}
	for email, status := range map[string]int{"ann@example.com": 401, "nobody@example.com": 401, "tired@example.com": 429} {
		resp, body := visit(t, s, "POST", "/login", form(email, "hunter2hunter2"), nil)
		if resp.StatusCode != status || len(resp.Cookies()) != 0 || strings.Contains(body, "hunter2") || !strings.Contains(body, `role="alert"`) {
			t.Errorf("%s: %d, want %d: %s", email, resp.StatusCode, status, body)
		}
		if status == 429 && resp.Header.Get("Retry-After") != "7" {
			t.Errorf("Retry-After is %q", resp.Header.Get("Retry-After"))
		}
	}
	if _, body := visit(t, start(t, (&fake{guests: true}).parts()), "GET", "/login", "", nil); strings.Contains(body, `name="password"`) {
		t.Error("a form for passwords where nobody signs in by them")
	}
}

func TestInvitationLink_worksOnce(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	resp, body := visit(t, s, "GET", "/join?link="+memberToken, "", nil)
	if resp.StatusCode != 200 || !strings.Contains(body, "ann@example.com") || resp.Header.Get("Referrer-Policy") != "same-origin" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page: %d %v %s", resp.StatusCode, resp.Header, body)
	}
	if resp, _ := visit(t, s, "GET", "/join?link=used", "", nil); resp.StatusCode != 404 {
		t.Errorf("a used link: %d", resp.StatusCode)
	}
	form := func(link, again string) string {
		return url.Values{"link": {link}, "password": {"correct horse"}, "again": {again}}.Encode()
	}
	if resp, _ := visit(t, s, "POST", "/join", form(memberToken, "other horse"), nil); resp.StatusCode != 400 {
		t.Errorf("two passwords: %d", resp.StatusCode)
	}
	if resp, _ := visit(t, s, "POST", "/join", form("used", "correct horse"), nil); resp.StatusCode != 404 {
		t.Errorf("a used link is posted: %d", resp.StatusCode)
	}
	resp, _ = visit(t, s, "POST", "/join", form(memberToken, "correct horse"), nil)
	if resp.StatusCode != 303 || cookieOf(t, resp).Value != memberToken {
		t.Errorf("joined: %d %v", resp.StatusCode, resp.Header)
	}
}

func TestPeoplePages_manageAccountsOnlyForOwners(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	member := map[string]string{"Cookie": "shoal=" + memberToken}
	owner := map[string]string{"Authorization": "Bearer " + ownerKey}

	if resp, body := visit(t, s, "GET", "/settings/account", "", member); resp.StatusCode != 200 || !strings.Contains(body, "192.0.2.1") {
		t.Errorf("one's own account: %d %s", resp.StatusCode, body)
	}
	if resp, body := visit(t, s, "POST", "/settings/account", "old=wrong&password=aaaaaaaaaab&again=aaaaaaaaaab", member); resp.StatusCode != 400 || !strings.Contains(body, "present password") {
		t.Errorf("a wrong old password: %d %s", resp.StatusCode, body)
	}
	if resp, _ := visit(t, s, "POST", "/settings/account", "end=others", map[string]string{"Cookie": member["Cookie"], "Sec-Fetch-Site": "cross-site"}); resp.StatusCode != 403 {
		t.Errorf("a form of another site: %d", resp.StatusCode)
	}
	for _, method := range []string{"GET", "POST"} {
		if resp, body := visit(t, s, method, "/settings/people", "do=link&user=u1", member); resp.StatusCode != 403 || strings.Contains(body, "/join") {
			t.Errorf("%s of people by a member: %d", method, resp.StatusCode)
		}
	}
	if resp, body := visit(t, s, "POST", "/settings/people", "do=invite&user=new@example.com", owner); resp.StatusCode != 200 || !strings.Contains(body, "http://shoal.example.com/join?link="+memberToken) {
		t.Errorf("an invitation: %d %s", resp.StatusCode, body)
	}
	for _, do := range []string{"approve", "suspend", "reactivate", "owner", "member", "logout", "delete"} {
		if resp, body := visit(t, s, "POST", "/settings/people", "user=u1&do="+do, owner); resp.StatusCode != 200 || !strings.Contains(body, `role="status"`) {
			t.Errorf("%s: %d", do, resp.StatusCode)
		}
	}
	if resp, _ := visit(t, s, "POST", "/settings/people", "user=u1&do=nothing", owner); resp.StatusCode != 400 {
		t.Errorf("something else: %d", resp.StatusCode)
	}
}
