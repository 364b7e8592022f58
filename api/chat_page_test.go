package api

import (
	"net/http"
	"strings"
	"testing"
)

// TestThePageOfAThread draws it without scripts: the answer with its checked
// citations, and forms for all that may be done.
func TestThePageOfAThread(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	resp, body := ask(t, s, "GET", "/chat/c0ffee", "")
	if resp.StatusCode != 200 || resp.Header.Get("Refresh") != "3" {
		t.Errorf("status %d, refresh %q: a question is being answered", resp.StatusCode, resp.Header.Get("Refresh"))
	}
	for _, want := range []string{
		"How?</h1>", "By `main` ", `href="/browse/example.com/a/b@c0ffee/-/blob/main.go#L3-L4" title="moved to where this stands">main.go:3-4</a>`,
		"1 citations could not be verified.", `name="do" value="stop"`, `name="do" value="unshare"`, `name="do" value="delete"`,
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}

	resp, body = ask(t, s, "GET", "/chat?q=%3Cb%3E", "")
	if resp.StatusCode != 200 || !strings.Contains(string(body), `href="/chat/c0ffee"`) || !strings.Contains(string(body), "&lt;b&gt;</textarea>") {
		t.Errorf("the list: %d %s", resp.StatusCode, body)
	}
}

// TestFormsOfThreadsAreOfThisSite: a page of another site asks nothing.
func TestFormsOfThreadsAreOfThisSite(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, tt := range []struct {
		path, form, leads string
	}{
		{"/chat", "query=How%3F", "/chat/c0ffee"}, {"/chat/c0ffee", "do=ask&query=And%3F", "/chat/c0ffee"}, {"/chat/c0ffee", "do=fork", "/chat/c0ffee2"},
		{"/chat/c0ffee", "do=share", "/chat/c0ffee"}, {"/chat/c0ffee", "do=delete", "/chat"}, {"/chat/c0ffee", "do=stop", "/chat/c0ffee"},
	} {
		for _, site := range []string{"same-origin", "cross-site"} {
			req, err := http.NewRequest("POST", "http://"+s.Addr().String()+tt.path, strings.NewReader(tt.form))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Sec-Fetch-Site", site)
			req.Header.Set("Cookie", "shoal="+ownerKey)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if site == "same-origin" && (resp.StatusCode != 303 || resp.Header.Get("Location") != tt.leads) {
				t.Errorf("%s %s: %d to %q, want %s", tt.path, tt.form, resp.StatusCode, resp.Header.Get("Location"), tt.leads)
			}
			if site == "cross-site" && resp.StatusCode != 403 {
				t.Errorf("%s %s from another site: %d", tt.path, tt.form, resp.StatusCode)
			}
		}
	}
}
