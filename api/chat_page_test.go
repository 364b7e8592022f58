package api

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The page works without scripts: the answer with checked citations, and forms for all actions.
func TestThreadPage_showsAnswerCitationsAndFormsWithoutScripts(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	resp, body := ask(t, s, "GET", "/chat/c0ffee", "")
	if resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
	for _, want := range []string{
		`<noscript><meta http-equiv="refresh" content="3"></noscript>`, "/js/chat.js",
		"How?</h1>", "By <code>main</code> ", `href="/browse/example.com/a/b@c0ffee/-/blob/main.go#L3-L4" title="moved to where this stands">main.go:3-4</a>`,
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

// A page of another site cannot send the form.
func TestThreadForms_refuseSubmissionsFromOtherSites(t *testing.T) {
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

// The stream has rendered markup and numbered events. After an interruption it continues after
// the last event.
func TestThreadPage_eventStreamResumesAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	resp, body := ask(t, s, "GET", "/chat/c0ffee/events?after=1", "")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	want := `id: 2
data: {"kind":"text","step":2,"html":"By ` + "`main`" + ` "}

id: 3
data: {"kind":"cite","step":2,"html":"\u003ca class=\"cite\" href=\"/browse/example.com/a/b@c0ffee/-/blob/main.go#L3-L4\" title=\"moved to where this stands\"\u003emain.go:3-4\u003c/a\u003e"}

id: 4
data: {"kind":"done","html":"done"}

`
	if string(body) != want {
		t.Errorf("%s", body)
	}

	req, err := http.NewRequest("GET", "http://"+s.Addr().String()+"/chat/c0ffee/events?after=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+memberKey)
	req.Header.Set("Last-Event-ID", "3")
	again, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	rest, err := io.ReadAll(again.Body)
	if err != nil || !strings.HasPrefix(string(rest), "id: 4\n") {
		t.Errorf("after a break: %v %s", err, rest)
	}
}
