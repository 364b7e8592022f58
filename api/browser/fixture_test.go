package browser

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/api"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
	watches "github.com/shoalsearch/shoal/node/watch"
	"github.com/shoalsearch/shoal/shard/change"
)

// site is a node with its pages, and a browser to look at them.
type site struct {
	chromium context.Context
	url      string
	node     *nodetest.Node
	owner    string // key of an owner
	watch    string // id of a watch of that owner
	invited  string // token of the link of somebody who is invited
	app      *nodetest.Repo
	hostile  *nodetest.Repo
}

// The repositories of the site, by name.
const (
	appRepo     = "local/app"
	largeRepo   = "local/large"
	hostileRepo = `local/a b<img src=x onerror=pwned()>&amp;'` // a directory may have such a name
)

// newSite starts a node with three repositories, and a connection whose host is
// not there, and waits until they are indexed.
func newSite(t *testing.T) *site {
	t.Helper()
	return siteOf(t, true)
}

// siteOf is newSite, of which the hostile repository may be left out.
func siteOf(t *testing.T, hostile bool) *site {
	t.Helper()
	s := &site{chromium: chromium(t)}
	dir := t.TempDir()
	s.app = appRepository(t, filepath.Join(dir, "app"))
	largeRepository(t, filepath.Join(dir, "large"))
	repos := 2
	if hostile {
		s.hostile = hostileRepository(t, filepath.Join(dir, strings.TrimPrefix(hostileRepo, "local/")))
		repos++
	}

	s.node = nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"work": {"type": "git", "url": "file://%s/*", "revisions": {"branches": ["**"], "tags": ["**"]}}, "gone": {"type": "git", "url": "file:///nosuch/gone.git"}}, "settings": {"maxFileSize": 8000000}}`, dir),
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
		Edit: func(o *node.Options) { o.Ctags, o.History = "", change.Bound{All: true} },
	})
	nodetest.Wait(t, "the repositories, and a connection that fails", func() error {
		if st := s.node.Status(); st.Repos.Indexed != repos || len(st.Failed) != 1 {
			return fmt.Errorf("repositories %+v, failed %+v", st.Repos, st.Failed)
		}
		return nil
	})
	s.node.WaitHistory()
	s.url = serve(t, s.node.Node)
	s.ownerWithWatch(t)

	// Somebody who has not come yet: for the pages about people, and that of their link.
	if _, err := s.node.People.CreateUser(t.Context(), account.Operator(), account.CreateUserRequest{Email: "ann@example.com"}); err != nil {
		t.Fatal(err)
	}
	link, err := s.node.Passwords.NewLink(t.Context(), account.Operator(), account.NewLinkRequest{User: "ann@example.com", Join: true})
	if err != nil {
		t.Fatal(err)
	}
	s.invited = link.Token
	return s
}

// ownerWithWatch makes an account of an owner, with a key and a watch.
func (s *site) ownerWithWatch(t *testing.T) {
	t.Helper()
	const email = "olga@example.com"
	if _, err := s.node.People.CreateUser(t.Context(), account.Operator(), account.CreateUserRequest{Email: email, Role: catalog.RoleOwner}); err != nil {
		t.Fatal(err)
	}
	made, err := s.node.Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "owner", Role: catalog.RoleOwner, User: email})
	if err != nil {
		t.Fatal(err)
	}
	s.owner = made.Key
	v, err := s.node.Keys.Authenticate(t.Context(), s.owner)
	if err != nil {
		t.Fatal(err)
	}
	query, shared := "type:diff added:<b>needle</b>", true
	w, err := s.node.Watches.CreateWatch(t.Context(), v, watches.Change{Query: &query, Shared: &shared})
	if err != nil {
		t.Fatal(err)
	}
	s.watch = w.ID
}

// serve opens the door of a node and returns the address of its pages.
func serve(t testing.TB, n *node.Node) string { return serveAt(t, n, "127.0.0.1:0") }

func serveAt(t testing.TB, n *node.Node, listen string, change ...func(*api.Options)) string {
	t.Helper()
	opt := api.Options{Listen: listen, Version: "test", Registerer: prometheus.NewRegistry()}
	for _, c := range change {
		c(&opt)
	}
	door, err := api.New(n, opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- door.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the door ended with: %v", err)
		}
	})
	return "http://" + door.Addr().String()
}

var day = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// appRepository is a small program with a history: branches, a tag, a merge, an
// image, a binary file and a pointer of LFS.
func appRepository(t testing.TB, dir string) *nodetest.Repo {
	r := nodetest.NewRepo(t, dir, map[string]string{"README.md": "# App\n\nA needle in a haystack.\n", "docs/guide.md": guide, "docs/README.md": "```\nplain = code\n```\n"})
	r.CommitAs("Ada Lovelace", day, "add the program", map[string]string{
		"main.go": "package main\n\nimport \"fmt\"\n\n// main says hello to the needle.\nfunc main() {\n\tfmt.Println(Greeting(\"needle\"))\n}\n",
		"greet/greet.go": "package greet\n\n// Greeting is what one says to somebody.\nfunc Greeting(name string) string {\n\treturn \"hello \" + name\n}\n\n" +
			"// Greeter greets.\ntype Greeter struct{ Name string }\n\nfunc (g *Greeter) Greet() string { return Greeting(g.Name) }\n",
		"greet/greet_test.go":    "package greet\n\nimport \"testing\"\n\nfunc TestGreeting(t *testing.T) {\n\tif Greeting(\"x\") != \"hello x\" {\n\t\tt.Error(\"needle\")\n\t}\n}\n",
		"web/app.js":             "// needle\nexport function draw(node) { return `needle ${node}`; }\n",
		"tools/deep/down/run.sh": "#!/bin/sh\n# needle\necho \"$1\"\n",
		"logo.png":               dot,
		"data.bin":               "\x00\x01\x02needle\x00",
		"model.bin":              "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 12345\n",
		"many.txt":               strings.Repeat("a needle\n\n\n\n", 60),
	})
	r.Git("tag", "v1.0")
	r.Git("checkout", "-q", "-b", "feature/x@y")
	r.CommitAs("Grace Hopper", day.AddDate(0, 1, 0), "greet louder\n\nSo that it is heard.", map[string]string{
		"greet/greet.go": "package greet\n\n// Greeting is what one says to somebody.\nfunc Greeting(name string) string {\n\treturn \"HELLO \" + name\n}\n",
	})
	r.Git("checkout", "-q", "main")
	r.CommitAs("Ada Lovelace", day.AddDate(0, 2, 0), "say it twice", map[string]string{
		"main.go": "package main\n\nimport \"fmt\"\n\n// main says hello to the needle, twice.\nfunc main() {\n\tfmt.Println(Greeting(\"needle\"))\n\tfmt.Println(Greeting(\"needle\"))\n}\n",
	})
	r.Git("branch", "old", "HEAD~1")
	r.Git("merge", "-q", "--no-ff", "-m", "merge feature/x@y", "feature/x@y")
	return r
}

// dot is an image of one point.
const dot = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND\xaeB`\x82"

// guide is a document with a bit of everything.
const guide = `<p align="center"><img src="../logo.png" alt="The logo" width="40"></p>

# Guide

See [the program](../main.go#L6-L8), [greetings](../greet), [the first page](../README.md#app), [below](#options--more) and https://example.com/docs.
![build](https://ci.example.com/badge.svg)

### Tasks

- [x] a pointer
- [ ] a barn
  1. with ~~stems~~ *hay*

## Options & more

| | option | what it does | since when it has been there |
|-|:------:|--------------|----:|
| 1 | ` + "`--pointer-in-a-barn`" + ` | looks for the pointer_in_a_barn_that_is_as_long_as_a_name_can_be | 1.0 |

` + "```go" + `
// Welcome is what one says, on a line that is longer than the window of a phone has room for.
func Welcome(name string) string { return "welcome " + name }
` + "```" + `

> Quoted <kbd>Ctrl</kbd>.

<details><summary>More</summary>

Folded **text**.

</details>
`

// The sizes of the large repository.
const (
	longLines = 50_000
	longLine  = 480_000 // bytes
	hayFiles  = 1000    // with ten matches each
	manyParts = 399     // methods of one class, five lines each
)

func largeRepository(t testing.TB, dir string) {
	files := map[string]string{"min.js": "var needles=1;" + strings.Repeat("x=y+1;", longLine/6) + "\n"}
	var b strings.Builder
	for i := range longLines {
		fmt.Fprintf(&b, "func line%d() int { return %d } // line \"%d\"\n", i+1, i, i)
	}
	files["long.go"] = b.String()

	b.Reset()
	b.WriteString("class Whole:\n")
	for i := range manyParts {
		fmt.Fprintf(&b, "    def part%d(self):\n        x = %d\n        y = x\n        return y\n\n", i, i)
	}
	files["parts.py"] = b.String()

	for i := range hayFiles {
		files[fmt.Sprintf("hay/%02d/file%d.c", i%50, i)] = strings.Repeat("int straw; /* straw */\n\n\n\n", 10)
	}
	nodetest.NewRepo(t, dir, files)
}

// rlo is the character that turns the direction of what follows it.
const rlo = "\u202e"

// hostileNames are paths that no page may take for anything but a name.
var hostileNames = []string{
	`<script>pwned()</script>`, `"><img src=x onerror=pwned()>.html`, "evil" + rlo + "gpj.sh", "line\nbreak.txt", "a%2Fb.txt", "q?x=1#frag.txt", "100%.txt",
	strings.Repeat("n", 251) + ".txt", "latin\xe9.txt", "javascript:pwned()", "back\\slash.txt", "tab\there.txt", "space at end ", "-dash.txt", "{{.Name}}.txt",
}

// hostileForms are lines that some parser of HTML takes for more than text.
var hostileForms = []string{
	`needle <script src=x/>`, `needle <script/src=//example.com/x></script>`, `needle <svg/onload=pwned()><svg><script>pwned()</script></svg>`,
	`needle <iframe srcdoc="<script>parent.pwned()</script>">`, `needle <object data=javascript:pwned()><embed src=//example.com/x>`,
	`needle <meta http-equiv=refresh content="0;url=//example.com"><base href=//example.com/>`, `needle <link rel=stylesheet href=//example.com/x.css>`,
	`needle <form action=//example.com><button formaction=javascript:pwned()>`, `needle <a href="java` + "\t" + `script:pwned()">x</a><a href=data:text/html,x>`,
	`needle <math><mtext><table><mglyph><style><img src=x onerror=pwned()></style></mglyph></table></mtext></math>`, `needle <template><img src=x onerror=pwned()></template>`,
	`needle </title></textarea></style></script></noscript></xmp><img src=x onerror=pwned()>`, `needle <plaintext><!--><img src=x onerror=pwned()>--!><![CDATA[<b>]]>`,
	`needle <img src="x` + "`" + `onerror=pwned()"><img src=x onerror='pwned()'//`, `needle <style>@import '//example.com/x.css';*{background:url(//example.com/x)}</style>`,
	`needle &lt;script&gt;pwned()&lt;/script&gt; &#x3C;script&#x3E; &NewLine; &nbsp`, `needle {{constructor.constructor('pwned()')()}} ${pwned()} #{pwned()} <%= pwned() %>`,
}

// hostileDocument is Markdown that is written to become more than a document.
var hostileDocument = strings.Join([]string{
	"# <script>pwned()</script>", "[x](javascript:pwned()) [x](JaVa&Tab;ScRiPt:pwned()) [x](&#106;avascript&colon;pwned()) [x](data:text/html,<script>pwned()</script>) [x](vbscript:x) [x](//example.com/x)",
	"![y](https://example.com/track.png) ![y](data:image/svg+xml,<svg/onload=pwned()>) ![y](javascript:pwned()) <img src=x onerror=pwned()> <img src=https://example.com/x.png>",
	"<a href='javascript:pwned()' onclick=pwned()>x</a> <a href=https://example.com target=_top>x</a> <a id=query name=main>x</a> [x](y \"' onmouseover='pwned()\")",
	"<div style=\"position:fixed;inset:0\" class=\"top quiet\" id=main onclick=pwned()>\n\n**x**\n\n</div></div></section></main></body></html>",
	"<svg onload=pwned()><script>pwned()</script><use href=//example.com/x></svg>", "<style>*{display:none}</style>", "<iframe srcdoc='<script>parent.pwned()</script>'></iframe>", "<form action=//example.com><input name=key><button>x</button></form>",
	"<table><tr><td><table></table></div></section>", "<select><option></div>", "<b><a href=x><a href=y><h1><h2><li>", "</b></h1></a>", "|<td></table>|</div>|\n|-|-|\n|<script>|`</code></td>`|",
	"```<script>\n</code></pre><script>pwned()</script>\n```", "needle " + rlo + "evil \x1b[31m \u200b", "- [ ] <input onfocus=pwned() autofocus>", "<http://example.com/'onclick='pwned()> <javascript:pwned()>", "[a]\n\n[a]: javascript:pwned() 'x'",
	"`" + strings.Join(hostileForms, "`\n\n`") + "`", strings.Join(hostileForms, "\n\n"), strings.Join(hostileForms, "\n"),
}, "\n\n")

// hostileRepository is made of what somebody might write who wants a page to do
// something else than show it.
func hostileRepository(t testing.TB, dir string) *nodetest.Repo {
	code := "needle <script>pwned()</script> <img src=x onerror=pwned()> </pre></code><style>*{display:none}</style>\n"
	files := map[string]string{
		"README.md":         hostileDocument,
		"x":                 dot, // which the forms name as an image
		"x`onerror=pwned()": dot,
		"nested.md":         strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "\n\n" + strings.Repeat("> ", 10_000) + "quoted\n",
		"huge.md":           "|a|\n|-|\n" + strings.Repeat("|cell|\n", 90_000),
		"bidi.go":           "package x\n\n/* needle" + rlo + " } \u2066if isAdmin\u2069 \u2066 begin admins only */\nvar a\u200bb = 1 // zero\u200dwidth\n",
		"ansi.txt":          "\x1b[31mneedle\x1b[0m \x07 \x7f \u0085 end\r\n",
		"latin1.txt":        "caf\xe9 needle caf\xe9\n",
		"utf16.txt":         utf16Text("needle in two bytes\n"),
		"nul.txt":           "needle\x00needle\n",
		"empty.txt":         " ",
		"image.svg":         `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>pwned()</script><circle r="9"/></svg>`,
		"page.html":         "<!doctype html><script>pwned()</script> needle",
		"mark.js":           "var s = \"</script><script>pwned()</script>\"; // needle --> <!-- x\n`${pwned()}`\n",
		"entities.md":       "&lt;script&gt; needle &amp;lt; &#60;\n",

		"forms.html":      strings.Join(hostileForms, "\n") + "\n",
		"<script src=x/>": code,
	}
	for _, name := range hostileNames {
		files[name] = code
	}
	r := nodetest.NewRepo(t, dir, files)
	r.CommitAs("Mallory", day, "forms", map[string]string{"mark.js": code + strings.Join(hostileForms, "\n") + "\n"})
	r.CommitAs(`Mallory<script>pwned()</script>"`, day, `<img src=x onerror=pwned()> & "quotes"`+rlo+"\n\n<script>pwned()</script>", map[string]string{"README.md": hostileDocument + "\n\n# changed <b>\n"})
	r.Git("branch", "<svg/onload=pwned()>")
	r.Git("branch", "feature/x@y")
	r.Git("tag", `"'><script>pwned()</script>`)
	return r
}

func utf16Text(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return string(b)
}

// browse is the page of a place of a repository.
func browse(repo, rev, kind, path string) string {
	out := "/browse/" + escaped(repo)
	if rev != "" {
		out += "@" + strings.ReplaceAll(url.PathEscape(rev), "@", "%40")
	}
	if kind == "" {
		return out
	}
	return out + "/-/" + kind + "/" + escaped(path)
}

func escaped(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(p), "@", "%40")
	}
	return strings.Join(parts, "/")
}

// find is the page of a search, with toggles.
func find(query string, toggles ...string) string {
	v := url.Values{"query": {query}}
	for _, t := range toggles {
		v.Set(t, "true")
	}
	return "/search?" + v.Encode()
}
