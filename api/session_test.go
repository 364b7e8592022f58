package api

import (
	"net/http"
	"strings"
	"testing"
)

// A script signs in and out like the form: with the same cookie and refusals, and no secret in an
// answer.
func TestSessionAPI_signsInAndOutLikeTheForm(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{base: "https://shoal.example.com"}).parts())
	for _, body := range []string{`{"key":" ` + memberKey + `\n"}`, `{"email":"ann@example.com","password":"correct horse"}`} {
		resp, text := visit(t, s, "POST", sessionPath, body, nil)
		c := cookieOf(t, resp)
		if resp.StatusCode != 201 || !strings.HasPrefix(text, `{"expiresAt":"2`) || strings.Contains(text, memberToken) || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("signed in: %d %v %s", resp.StatusCode, resp.Header, text)
		}
		if c.Name != "__Host-shoal" || c.Value != memberToken || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge <= 0 {
			t.Errorf("the cookie is %v", c)
		}
	}

	// The session opens pages. Signing out ends it at the server, and can be repeated.
	cookie := map[string]string{"Cookie": "__Host-shoal=" + memberToken, "Sec-Fetch-Site": "same-origin"}
	if resp, _ := visit(t, s, "GET", "/repos", "", cookie); resp.StatusCode != 200 {
		t.Errorf("a page of who is signed in: %d", resp.StatusCode)
	}
	if resp, _ := visit(t, s, "DELETE", sessionPath, "", map[string]string{"Cookie": cookie["Cookie"], "Sec-Fetch-Site": "cross-site"}); resp.StatusCode != 403 {
		t.Errorf("signed out by another site: %d", resp.StatusCode)
	}
	for range 2 {
		resp, text := visit(t, s, "DELETE", sessionPath, "", cookie)
		if c := cookieOf(t, resp); resp.StatusCode != 200 || text != `{"isSignedIn":false}` || c.Value != "" || c.MaxAge >= 0 || resp.Header.Get("Clear-Site-Data") == "" {
			t.Errorf("signed out: %d %v %s", resp.StatusCode, resp.Header, text)
		}
	}
	if resp, _ := visit(t, s, "GET", "/repos", "", cookie); resp.StatusCode != 303 {
		t.Errorf("with the cookie of before: %d", resp.StatusCode)
	}
}

func TestSessionAPI_refusesLikeTheForm(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	good := `{"key":"` + memberKey + `"}`
	answers := map[string]string{}
	for what, c := range map[string]struct {
		body   string
		header map[string]string
		status int
	}{
		"a key of nobody":                {`{"key":"shoal_0"}`, nil, 401},
		"a wrong password":               {`{"email":"ann@example.com","password":"hunter2hunter2"}`, nil, 401},
		"an address of nobody":           {`{"email":"nobody@example.com","password":"hunter2hunter2"}`, nil, 401},
		"too many attempts":              {`{"email":"tired@example.com","password":"hunter2hunter2"}`, nil, 429},
		"neither":                        {`{}`, nil, 400},
		"a password alone":               {`{"password":"hunter2hunter2"}`, nil, 400},
		"both":                           {`{"key":"shoal_0","email":"ann@example.com","password":"hunter2hunter2"}`, nil, 400},
		"a password that is a number":    {`{"email":"ann@example.com","password":22222222}`, nil, 400},
		"another member":                 {`{"key":"shoal_0","next":"/"}`, nil, 400},
		"a form":                         {"key=shoal_0", nil, 400},
		"sent by another site":           {good, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"sent by a sister site":          {good, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"an old browser, another origin": {good, map[string]string{"Sec-Fetch-Site": "", "Origin": "https://evil.example"}, 403},
		"from nowhere":                   {good, map[string]string{"Sec-Fetch-Site": ""}, 403},
	} {
		resp, text := visit(t, s, "POST", sessionPath, c.body, c.header)
		if resp.StatusCode != c.status || len(resp.Cookies()) != 0 || strings.Contains(text, "hunter2") || strings.Contains(text, "shoal_0") || strings.Contains(text, "22222222") {
			t.Errorf("%s: %d, cookies %v, want %d without: %s", what, resp.StatusCode, resp.Cookies(), c.status, text)
		}
		if c.status == 429 && resp.Header.Get("Retry-After") != "7" {
			t.Errorf("%s: Retry-After is %q", what, resp.Header.Get("Retry-After"))
		}
		answers[what] = text
	}

	// The answer does not reveal whether an address has an account.
	if answers["a wrong password"] != answers["an address of nobody"] {
		t.Errorf("they differ:\n%s\n%s", answers["a wrong password"], answers["an address of nobody"])
	}

	// A program that is no browser sends this site as Origin.
	header := map[string]string{"Sec-Fetch-Site": "", "Origin": "http://" + s.Addr().String()}
	if resp, text := visit(t, s, "POST", sessionPath, good, header); resp.StatusCode != 201 {
		t.Errorf("by a program: %d %s", resp.StatusCode, text)
	}
}
