package paste

import (
	"regexp"
	"strings"
)

// form is a notation of programs for a place in a file. The groups of its expression are path,
// line, end, col and name. To add one, add a row here and a row to the test.
type form struct {
	expr   *regexp.Regexp
	frame  bool         // a frame of a call stack
	finish func(*Place) // changes the parsed place; may be nil
}

// Parts of expressions.
const (
	// anyPath matches a path with a slash, or with an extension that begins with a letter.
	anyPath = `(?:[A-Za-z]:[\\/])?[\pL\pN_.@~+$%\[\]\\/-]*(?:[\\/][\pL\pN_.@~+$%\[\]-]+|[\pL\pN_@~+$%\[\]-]\.[A-Za-z]\w*)`
	pathAt  = `(?P<path>` + anyPath + `)`
	lineAt  = `(?P<line>[0-9]{1,7})`
	before  = `(?:^|[\s("'` + "`" + `<=,|>]|\[)`
)

// formOrder is the order in which forms are tried. Forms with more text around the path come
// first.
var formOrder = []string{
	"Python", ".NET", "Java", "Go frame", "gdb", "sanitizer", "Rust panic", "JavaScript", "JavaScript without a name", "Firefox",
	"PHP frame", "PHP", "Ruby", "Perl", "Erlang", "pytest", "shell", "git header", "fragment", "parentheses", "said", "line before", "lines", "Maven", "compiler",
}

// forms has the forms in which texts name a place, by the name of the form.
var forms = map[string]*form{
	//   File "/usr/lib/python3.11/site-packages/flask/app.py", line 1498, in __call__
	"Python": {expr: re(`File "(?P<path>[^"\n]+)", line ` + lineAt + `(?:, in (?P<name>[\pL\pN_.<>]+))?`), frame: true},

	//   at Acme.Shop.Cart.Add(Item item) in C:\src\Shop\Cart.cs:line 42
	".NET": {expr: re(`(?:at (?P<name>[\pL\pN_.<>` + "`" + `\[\],+]+)\([^()\n]*\) )?in (?P<path>(?:[A-Za-z]:\\|/)?[^:*?"<>|\n]+?\.\w+):line ` + lineAt), frame: true},

	//   at java.base/a.b.C$D.run(C.java:33) ~[app.jar:1.0]
	"Java": {expr: re(`at (?:[\w.@-]*/)*(?P<name>[\pL\pN_.$<>-]+)\((?P<path>[\pL\pN_$.-]+\.(?:java|kt|kts|scala|groovy|clj|cljc)):` + lineAt + `\)`), frame: true, finish: javaPath},

	// github.com/a/b/store.(*Store).Open(0xc0001b2000)
	//	/go/src/github.com/a/b/store/store.go:412 +0x1d
	"Go frame": {expr: re(`(?:(?P<name>[\pL\pN_./%@~-]+(?:\.\(\*?[\pL\pN_]+(?:\[\.\.\.\])?\))?\.[\pL\pN_.\[\]-]+)\([^()\n]*\)\s+)?(?P<path>[^\s"'(]*\.go):` + lineAt + `(?: \+0x[0-9a-f]+|\s+created by)`), frame: true},

	//   #0 0x4a3b1c in dictAdd(dict*, void*) /build/redis/src/dict.c:473:12
	"sanitizer": {expr: re(`#[0-9]+ +0x[0-9a-f]+ in (?P<name>[^\n]*?) (?P<path>[^\s()]+?):` + lineAt + `(?::(?P<col>[0-9]+))?\b`), frame: true},

	// #1  0x00005555 in dictAdd (d=0x0, key=0x1) at dict.c:473
	"gdb": {expr: re(`#[0-9]+ +(?:0x[0-9a-f]+ in )?(?P<name>[\pL\pN_:~<>]+) ?\([^#\n]*?\) +at ` + pathAt + `:` + lineAt), frame: true},

	//   at Layer.handle [as handle_request] (node_modules/express/lib/router/layer.js:95:5)
	"JavaScript": {expr: re(`at (?:async |new )?(?P<name>[\pL\pN_.$<>#]+)(?: \[as [^\]]*\])? \((?P<path>[^()\n]+?):` + lineAt + `:(?P<col>[0-9]+)\)`), frame: true},

	//   at /app/server.js:1:2
	//   at async file:///app/server.mjs:1:2
	"JavaScript without a name": {expr: re(`\bat (?:async )?(?P<path>[^\s()'",]+?):` + lineAt + `:(?P<col>[0-9]+)`), frame: true},

	// draw@http://localhost:3000/static/app.js:1:2
	"Firefox": {expr: re(`(?P<name>[\pL\pN_.$/<]*)@(?P<path>[a-z-]+://[^\s()]+?):` + lineAt + `:(?P<col>[0-9]+)`), frame: true},

	// thread 'main' panicked at 'called …', tokio/src/runtime/scheduler/mod.rs:12:5
	"Rust panic": {expr: re(`panicked at (?:'[^\n]*?', )?` + pathAt + `:` + lineAt + `:(?P<col>[0-9]+)`), frame: true},

	// #0 /var/www/app/Cart.php(12): Cart->add()
	"PHP frame": {expr: re(`#[0-9]+ (?P<path>[^\s()]+\.\w+)\(` + lineAt + `\): (?P<name>[\pL\pN_\\:>-]*)`), frame: true},

	// in /var/www/app/Cart.php on line 12
	"PHP": {expr: re(`(?:in )?` + pathAt + ` on line ` + lineAt)},

	// app/models/cart.rb:12:in 'add'
	"Ruby": {expr: re(pathAt + `:` + lineAt + ":in [`'](?P<name>[^'\n]+)'"), frame: true},

	// at lib/Cart.pm line 12.
	"Perl": {expr: re(`\bat ` + pathAt + ` line ` + lineAt)},

	// {file,"src/cart.erl"},{line,12}
	"Erlang": {expr: re(`\{file, *"(?P<path>[^"\n]+)"\}, *\{line, *` + lineAt + `\}`), frame: true},

	// FAILED tests/test_cart.py::TestCart::test_add - AssertionError
	"pytest": {expr: re(`(?P<path>[\w.\\/-]+\.py)::(?P<name>\w+(?:::\w+)*)`)},

	// /usr/lib/shop/install: line 12: add_item: command not found
	"shell": {expr: re(`(?P<path>[\w.@+~/-]+): line ` + lineAt + `: (?:(?P<name>[\w.-]+): )?`)},

	// +++ b/src/dict.c      --- a/src/dict.c      diff --git a/src/dict.c b/src/dict.c
	"git header": {expr: re(`(?:\+\+\+ b/|--- a/|diff --git a/(?:\S+) b/|(?:rename|copy) (?:from|to) )(?P<path>[^\s]+)(?:\s+@@ -[0-9,]+ \+` + lineAt + `)?`)},

	// src/dict.c#L10-L20    src/dict.c#L10C3-L20C5    src/dict.c#lines-10:20
	"fragment": {expr: re(pathAt + `(?:\?plain=1)?#(?:L|lines-|l|n)` + lineAt + `(?:C[0-9]+)?(?:[-:]L?(?P<end>[0-9]{1,7})(?:C[0-9]+)?)?`)},

	// src/Cart.cs(12,34): error     src/cart.ts(12,34)     cart.c(12)
	"parentheses": {expr: re(pathAt + `\(` + lineAt + `(?:, ?(?P<col>[0-9]+)(?:,[0-9]+)*)?\)`)},

	// src/dict.c, line 12      "src/dict.c" line 12
	"said": {expr: re(pathAt + `["']?,? +(?:on |at )?lines? ` + lineAt + `(?: ?(?:-|–|to) ?(?P<end>[0-9]{1,7}))?`)},

	// line 12 of src/dict.c    line 12 in src/dict.c
	"line before": {expr: re(`lines? ` + lineAt + `(?: ?(?:-|–|to) ?(?P<end>[0-9]{1,7}))? (?:of|in) (?:file )?["']?` + pathAt)},

	// src/dict.c:10-20
	"lines": {expr: re(pathAt + `:` + lineAt + `[-–](?P<end>[0-9]{1,7})\b`)},

	// /build/src/Cart.java:[12,34] cannot find symbol
	"Maven": {expr: re(pathAt + `:\[` + lineAt + `,(?P<col>[0-9]+)\]`)},

	// a.c:12:3: error    --> src/x.rs:3:4    at ./src/x.rs:3:4    src/dict.c:500    ./x.js?:16
	"compiler": {expr: re(pathAt + `\??:` + lineAt + `(?::(?P<col>[0-9]+))?(?:\b|$)`)},
}

func re(expr string) *regexp.Regexp { return regexp.MustCompile(expr) }

// javaPath adds the directories of the package, because a Java frame only has the file's name:
// a.b.C$D.run in C.java becomes a/b/C.java.
func javaPath(p *Place) {
	parts := strings.Split(p.Name, ".")
	if len(parts) < 3 {
		return
	}
	p.Path = strings.Join(parts[:len(parts)-2], "/") + "/" + p.Path
}

// barePath matches a path without a line.
var barePath = re(before + pathAt + `(?:[\s)"'` + "`" + `>,:;]|\]|$)`)

// mostBare is the limit of paths without a line. A text with more of them is prose.
const mostBare = 3

// proseWords is how many words make a text prose. It may name a file without meaning its place.
const proseWords = 12

// reportsError matches the name of an error before its message.
var reportsError = re(`(?i:\b\w*(?:error|exception)): `)

// barePaths finds paths that no line number follows. A text with more than mostBare of them is no
// reference to a place: it returns none. In prose only a path with a directory counts, and in prose
// that reports an error none, because such a path is one of its values.
func (r *reader) barePaths() []Place {
	var out []Place
	isProse := len(strings.Fields(r.text)) >= proseWords
	if isProse && reportsError.MatchString(r.text) {
		return nil
	}
	for _, m := range barePath.FindAllStringSubmatchIndex(r.text, mostBare+1) {
		p := (&form{expr: barePath}).readPlace(r.text, m)
		if isProse && !strings.Contains(p.Path, "/") {
			continue
		}
		if p.Path != "" && !strings.Contains(r.text[m[2]:m[3]], "...") && r.claimRange(m[2], m[3]) {
			p.Form, p.at = "path", m[2]
			out = append(out, p)
		}
	}
	if len(out) > mostBare {
		return nil
	}
	return out
}

// glob matches a pattern of paths: a star next to a slash or a dot.
var glob = re(`(?:^|\s)([\pL\pN_.@{},/*?\[\]-]*(?:\*\*/|/\*|\*\.)[\pL\pN_.@{},/*?\[\]-]*)(?:\s|$)`)

// notGlob matches expressions and comments of code that look like a glob.
var notGlob = re(`^(?:/\*.*|\.\*.*|\*/|.*\*/)$`)

// findGlobs finds patterns of paths.
func (r *reader) findGlobs() []string {
	var out []string
	for _, m := range glob.FindAllStringSubmatchIndex(r.text, maxOthers) {
		text := r.text[m[2]:m[3]]
		if !notGlob.MatchString(text) && r.claimRange(m[2], m[3]) {
			out = append(out, text)
		}
	}
	return out
}

// change matches a text that is only the number of a change or an issue.
var change = re(`^\s*\(?(?i:(?:pr|pull|pull request|issue|mr|fixes|closes|see) ?)?([#!][0-9]{1,7})\)?\s*$`)

var (
	hash = re(`\b[0-9a-fA-F]{7,64}\b`)
	// onlyHash matches a text that is only a hash, perhaps with a word such as "commit" before
	// it.
	onlyHash = re(`^\s*(?:(?:commit|Commit|sha|rev|revision|fixes|in|@|from|reverts)[ :]*)?[0-9a-fA-F]{7,64}\s*$`)
)

// findCommits finds hashes. In longer text a hash must have both digits and letters, because numbers
// and words are more common.
func (r *reader) findCommits() []string {
	var out []string
	for _, m := range hash.FindAllStringIndex(r.text, maxOthers) {
		text := r.text[m[0]:m[1]]
		mixed := strings.ContainsAny(text, "0123456789") && strings.ContainsAny(strings.ToLower(text), "abcdef")
		if (mixed || onlyHash.MatchString(r.text)) && r.claimRange(m[0], m[1]) {
			out = append(out, strings.ToLower(text))
		}
	}
	return out
}
