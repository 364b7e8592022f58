package api

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// A site that may embed is part of a policy header. A text with another rule or more than one
// site is refused.
func TestEmbedSetting_becomesFrameAncestorsOfThePolicy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		" , ":                      "",
		"https://wiki.example.com": "https://wiki.example.com",
		"HTTPS://Wiki.Example.com:8443, http://10.0.0.1 'self'\nhttp://10.0.0.1": "https://wiki.example.com:8443 http://10.0.0.1 'self'",
	} {
		got, err := ParseAncestors(text)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"wiki.example.com", "self", "*", "'none'", "https:", "https://", "https://*.example.com", "https://wiki.example.com/", "https://wiki.example.com/docs", "https://a@wiki.example.com",
		"https://wiki.example.com?x", "https://wiki.example.com#x", "https://wiki.example.com;script-src", "ftp://wiki.example.com", "data:", "javascript:x", "https://[::1]", "https://wiki.example.com:", "https://wiki.example.com:123456",
		"https://bücher.example", "https://wiki_.example.com", "https://a\r", strings.Repeat("https://a.example ", 2) + "https://a.example/x", many(51),
	} {
		if got, err := ParseAncestors(text); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q is taken as %q, %v", text, got, err)
		}
	}
}

// many returns n sites.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("https://s" + strings.Repeat("x", i) + ".example ")
	}
	return b.String()
}

// embedServer serves one public repository and one that needs a sign-in.
func embedServer(t *testing.T, change ...func(*Options)) (s *Server, owner string) {
	t.Helper()
	dir, closed := t.TempDir(), t.TempDir()
	files := map[string]string{
		"main.go": "package main\n\n/* opened\nfunc inComment() {}\n*/\nfunc main() { print(\"<script>alert(1)</script>\") }\n", "x.bin": "\x00\x01",
		"long.txt": strings.Repeat("line\n", 1200), "wide.txt": strings.Repeat(strings.Repeat("w", 9_000)+"\n", 200), "guide.md": "# Guide\n\ntext\n", "a b\"'><i>.go": "package x\n",
	}
	nodetest.NewRepo(t, filepath.Join(dir, "app"), files)
	nodetest.NewRepo(t, filepath.Join(closed, "secret"), files)
	n := nodetest.Start(t, nodetest.Config{
		Edit: func(o *node.Options) { o.Ctags = "off" },
		File: `{"settings": {"enablePublicAccess": true}, "connections": {"open": {"type": "git", "url": "file://` + dir + `/*"},
			"closed": {"type": "git", "url": "file://` + closed + `/*", "enforcePermissions": true}}}`,
	})
	n.WaitIndexed(2)
	made, err := n.Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "owner", Role: catalog.RoleOwner, All: true})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, partsOf(n.Node), change...), made.Key
}

// Lines of a file are a page that allowed sites may embed: with colours, numbers and a link to
// the file, but no actions.
func TestEmbedPage_showsLinesWithoutActions(t *testing.T) {
	t.Parallel()
	s, _ := embedServer(t, func(o *Options) { o.EmbedAncestors = []string{"https://wiki.example.com", "'self'"} })
	got := fetch(t, s, "GET", "/embed/local/app@main/-/blob/main.go?lines=4-6")
	for name, want := range map[string]string{
		"Content-Type":            "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors https://wiki.example.com 'self'",
		"X-Frame-Options":         "", "Cross-Origin-Resource-Policy": "cross-origin", "Cross-Origin-Opener-Policy": "unsafe-none", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Set-Cookie": "",
	} {
		if have := got.header.Get(name); have != want {
			t.Errorf("%s %q, want %q", name, have, want)
		}
	}
	for _, want := range []string{
		`<span id="L4">4</span>`, `<span id="L6">6</span>`, `<i class="c">func inComment() {}</i>`, `<i class="k">func</i> main()`, "&lt;script&gt;alert(1)&lt;/script&gt;",
		`<a class="path" href="/browse/local/app@main/-/blob/main.go#L4-L6" target="_blank" rel="noopener"`, "lines 4 to 6 of 6",
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("there is no %s in\n%s", want, got.body)
		}
	}
	for _, bad := range []string{"<script", "<form", "<nav", "<input", "<button", `id="L3"`, "package main"} {
		if strings.Contains(got.body, bad) {
			t.Errorf("there is %s in\n%s", bad, got.body)
		}
	}

	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"local/app/-/blob/main.go?lines=6", 200, "line 6 of 6"},
		{"local/app/-/blob/main.go?lines=2-400", 200, "lines 2 to 6 of 6"},
		{"local/app/-/blob/main.go", 200, "lines 1 to 6 of 6"},
		{"local/app/-/blob/long.txt", 200, "lines 1 to 500 of 1,200"},
		{"local/app/-/blob/long.txt?lines=701-1200", 200, "lines 701 to 1200 of 1,200"},
		{"local/app/-/blob/wide.txt", 200, "These lines are very long"},
		{"local/app/-/blob/guide.md?lines=3", 200, `/-/blob/guide.md?plain=1#L3"`},
		{"local/app/-/blob/a%20b%22'%3E%3Ci%3E.go", 200, "a b&#34;&#39;&gt;&lt;i&gt;.go"},
		{"local/app/-/blob/main.go?lines=7", 404, "The file has 6 lines."},
		{"local/app/-/blob/long.txt?lines=700-1200", 400, "at most 500 can be embedded; these are 501"},
		{"local/app/-/blob/main.go?lines=6-4", 400, "want a line, as 12, or the first and the last, as 10-20"},
		{"local/app/-/blob/main.go?lines=0", 400, "want a line"},
		{"local/app/-/blob/main.go?lines=-3", 400, "want a line"},
		{"local/app/-/blob/main.go?lines=1-2-3", 400, "want a line"},
		{"local/app/-/blob/main.go?lines=99999999999999999999", 400, "want a line"},
		{"local/app/-/blob/x.bin", 404, "binary"},
		{"local/app/-/blob/none.go", 404, "none.go"},
		{"local/app@none/-/blob/main.go", 404, "none"},
		{"local/app/-/tree/", 404, "Only a file can be embedded"},
		{"local/app", 404, "Only a file can be embedded"},
		{"local/app/-/raw/main.go", 404, "Only a file can be embedded"},
		{"local/app/-/blob/main.go?blame=true", 404, "Only a file can be embedded"},
	} {
		got := fetch(t, s, "GET", "/embed/"+c.path)
		if got.status != c.status || !strings.Contains(got.body, c.want) || got.header.Get("X-Frame-Options") != "" || !strings.Contains(got.header.Get("Content-Security-Policy"), "frame-ancestors https://wiki.example.com 'self'") {
			t.Errorf("%s: %d, want %d with %q: %v\n%.600s", c.path, got.status, c.status, c.want, got.header, got.body)
		}
		if len(got.body) > 4*(512<<10) {
			t.Errorf("%s: %d bytes", c.path, len(got.body))
		}
	}
	if got := fetch(t, s, "POST", "/embed/local/app/-/blob/main.go"); got.status != 405 || got.header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("POST: %d, allowed %q", got.status, got.header.Get("Allow"))
	}
}

// No other page can be embedded. Pages only offer embedding if it is on.
func TestEmbedding_isOffByDefault(t *testing.T) {
	t.Parallel()
	const file = "/browse/local/app/-/blob/main.go"
	on, _ := embedServer(t)
	got := fetch(t, on, "GET", file)
	if got.header.Get("X-Frame-Options") != "DENY" || !strings.Contains(got.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || got.header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
		t.Errorf("the page of a file: %v", got.header)
	}
	if !strings.Contains(got.body, `id="copyEmbed" data-address="http`) || !strings.Contains(got.body, "/-/blob/main.go\" data-name=\"main.go\" data-lines=\"6\"") {
		t.Errorf("the page of a file tells of no frame:\n%s", got.body)
	}
	if got := fetch(t, on, "GET", "/browse/local/app/-/blob/x.bin"); strings.Contains(got.body, "copyEmbed") {
		t.Error("a binary file can be embedded")
	}

	off, _ := embedServer(t, func(o *Options) { o.EmbedAncestors = nil })
	if got := fetch(t, off, "GET", file); got.status != 200 || strings.Contains(got.body, "copyEmbed") {
		t.Errorf("the page of a file tells of a frame: %d", got.status)
	}
	for _, accept := range []string{"text/html", "*/*"} {
		unknown, got := fetch(t, off, "GET", "/unknown/local/app/-/blob/main.go", "Accept", accept), fetch(t, off, "GET", "/embed/local/app/-/blob/main.go", "Accept", accept)
		if got.status != 404 || strings.NewReplacer("/embed/", "/unknown/", "%2Fembed%2F", "%2Funknown%2F").Replace(got.body) != unknown.body {
			t.Errorf("%d %s, and of an unknown address %s", got.status, got.body, unknown.body)
		}
	}
}

// A visitor of another site did not ask for the frame's content. So a frame only shows public
// content, whatever cookie or key the browser sends.
func TestEmbedPage_showsOnlyPublicContentToAnyViewer(t *testing.T) {
	t.Parallel()
	s, owner := embedServer(t)
	if got := fetch(t, s, "GET", "/browse/local/secret/-/blob/main.go", "Authorization", "Bearer "+owner); got.status != 200 {
		t.Fatalf("the owner does not see the repository: %d %s", got.status, got.body)
	}
	hidden := fetch(t, s, "GET", "/embed/local/secret/-/blob/main.go", "Authorization", "Bearer "+owner)
	none := fetch(t, s, "GET", "/embed/local/nosuch/-/blob/main.go")
	if hidden.status != 404 || none.status != 404 || strings.ReplaceAll(hidden.body, "secret", "nosuch") != none.body {
		t.Errorf("hidden: %d %s\nnot there: %d %s", hidden.status, hidden.body, none.status, none.body)
	}

	// With and without anonymous access, a session, a key or a wrong key changes nothing.
	for _, guests := range []bool{true, false} {
		var mu sync.Mutex
		var noted []chronicle.Access
		s := start(t, &fake{guests: guests, noted: func(a chronicle.Access) {
			mu.Lock()
			defer mu.Unlock()
			noted = append(noted, a)
		}})
		want := map[bool]int{true: 200, false: 401}[guests]
		plain := fetch(t, s, "GET", "/embed/example.com/a/b/-/blob/dir/a.go?lines=1-2", "Accept", "text/html")
		if plain.status != want || plain.header.Get("Location") != "" || strings.Contains(plain.body, "dir/a.go") != guests {
			t.Errorf("guests %t: %d %v %s", guests, plain.status, plain.header, plain.body)
		}
		mu.Lock()
		if guests != (len(noted) == 1 && noted[0].Action == "code.browsed" && noted[0].Target == "example.com/a/b/-/blob/dir/a.go") {
			t.Errorf("guests %t: noted %+v", guests, noted)
		}
		mu.Unlock()
		for _, header := range [][]string{
			{"Cookie", people.CookieName(false) + "=" + memberToken}, {"Cookie", people.CookieName(false) + "=" + strings.Repeat("4", 64)}, {"Authorization", "Bearer " + ownerKey},
			{"X-Sourcebot-Api-Key", ownerKey}, {"Authorization", "Bearer " + account.KeyPrefix + strings.Repeat("9", 64)},
		} {
			got := fetch(t, s, "GET", "/embed/example.com/a/b/-/blob/dir/a.go?lines=1-2", append(header, "Accept", "text/html")...)
			if got.status != plain.status || got.body != plain.body || sameButTime(got.header) != sameButTime(plain.header) {
				t.Errorf("guests %t, %s: %d %v %s", guests, header[0], got.status, got.header, got.body)
			}
		}
		mu.Lock()
		for _, a := range noted {
			if a.Actor.Type != catalog.ActorGuest || a.Refusal {
				t.Errorf("guests %t: noted %+v", guests, a)
			}
		}
		mu.Unlock()
	}
}

// sameButTime returns headers without the date.
func sameButTime(h http.Header) string {
	var b strings.Builder
	for _, name := range []string{"Content-Type", "Content-Security-Policy", "Set-Cookie", "Location", "Www-Authenticate", "Cross-Origin-Resource-Policy", "X-Frame-Options"} {
		b.WriteString(name + ": " + strings.Join(h.Values(name), "|") + "\n")
	}
	return b.String()
}
