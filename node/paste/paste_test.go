package paste

import (
	"fmt"
	"strings"
	"testing"
)

// placeText returns a place for a table: path:line-end:column in name.
func placeText(p Place) string {
	text := p.Path
	if p.Line > 0 {
		text += fmt.Sprintf(":%d", p.Line)
	}
	if p.End > 0 {
		text += fmt.Sprintf("-%d", p.End)
	}
	if p.Column > 0 {
		text += fmt.Sprintf(":%d", p.Column)
	}
	if p.Name != "" {
		text += " in " + p.Name
	}
	return text
}

func placesText(m *Meaning) string {
	var out []string
	for _, p := range m.Places {
		out = append(out, placeText(p))
	}
	return strings.Join(out, "; ")
}

// placeForms has a text and its places for each form.
var placeForms = []struct{ form, text, want string }{
	{"compiler", "src/dict.c:500", "src/dict.c:500"},
	{"compiler", "src/errors.go:6:9", "src/errors.go:6:9"},
	{"compiler", "dict.c:473:12: error: expected ';' before '}' token", "dict.c:473:12"},
	{"compiler", "/home/x/go/src/github.com/redis/redis/src/dict.c:500", "home/x/go/src/github.com/redis/redis/src/dict.c:500"},
	{"compiler", `C:\work\redis\src\dict.c:500:1: warning: unused`, "C:/work/redis/src/dict.c:500:1"},
	{"compiler", "./store/store.go:412", "store/store.go:412"},
	{"compiler", "../../lib/router/index.js:12:5", "lib/router/index.js:12:5"},
	{"compiler", "  --> src/runtime/park.rs:3:4", "src/runtime/park.rs:3:4"},
	{"compiler", "make: *** [Makefile:12: all] Error 2", ""},
	{"compiler", "src/Makefile:12", "src/Makefile:12"},
	{"compiler", "app/[id]/page.tsx:4:7", "app/[id]/page.tsx:4:7"},
	{"compiler", "tests/test_basic.py:27: AssertionError", "tests/test_basic.py:27"},
	{"compiler", "    store_test.go:52: got 3, want 4", "store_test.go:52"},
	{"compiler", "lib/foo/bar.ex:12: Foo.Bar.baz/2", "lib/foo/bar.ex:12"},
	{"compiler", "src/größe.c:5", "src/größe.c:5"},
	{"compiler", "settle webpack://[name]/./lib/core/settle.js?:17", "[name]/lib/core/settle.js:17"},
	{"Maven", "[ERROR] /build/acme/src/Cart.java:[12,34] error: cannot find symbol", "build/acme/src/Cart.java:12:34"},
	{"lines", "src/dict.c:10-20", "src/dict.c:10-20"},
	{"fragment", "src/dict.c#L10", "src/dict.c:10"},
	{"fragment", "src/dict.c#L10-L20", "src/dict.c:10-20"},
	{"fragment", "src/dict.c#L10C3-L20C5", "src/dict.c:10-20"},
	{"fragment", "src/dict.c#L10-20", "src/dict.c:10-20"},
	{"parentheses", `src\Cart.cs(12,34): error CS1002: ; expected`, "src/Cart.cs:12:34"},
	{"parentheses", "src/cart.ts(12,5): error TS2304", "src/cart.ts:12:5"},
	{"parentheses", "dict.c(12): fatal error C1083", "dict.c:12"},
	{"said", "src/dict.c, line 12", "src/dict.c:12"},
	{"said", `"src/dict.c" line 12`, "src/dict.c:12"},
	{"said", "look at src/dict.c lines 12-14", "src/dict.c:12-14"},
	{"line before", "line 12 of src/dict.c", "src/dict.c:12"},
	{"line before", "line 12 in file src/dict.c", "src/dict.c:12"},
	{"Python", `File "/usr/lib/python3.11/site-packages/flask/app.py", line 1498, in __call__`, "usr/lib/python3.11/site-packages/flask/app.py:1498 in __call__"},
	{"Python", `  File "C:\Python\Lib\a b\x.py", line 3`, "C:/Python/Lib/a b/x.py:3"},
	{"Go frame", "\t/go/src/github.com/rqlite/rqlite/store/store.go:412 +0x1d", "go/src/github.com/rqlite/rqlite/store/store.go:412"},
	{"Go frame", "github.com/rqlite/rqlite/v8/store.(*Store).Open(0xc0001b2000)\n\t/go/store/store.go:412 +0x1d", "go/store/store.go:412 in github.com/rqlite/rqlite/v8/store.(*Store).Open"},
	{"Go frame", "main.main() /app/main.go:9 +0x25", "app/main.go:9 in main.main"},
	{"JavaScript", "at Layer.handle [as handle_request] (node_modules/express/lib/router/layer.js:95:5)", "node_modules/express/lib/router/layer.js:95:5 in Layer.handle"},
	{"JavaScript", "at async run (file:///app/src/server.mjs:1:2)", "app/src/server.mjs:1:2 in run"},
	{"JavaScript", "at eval (webpack:///./src/draw.js?:12:3)", "src/draw.js:12:3 in eval"},
	{"JavaScript", "at new Cart (/app/cart.js:4:9)", "app/cart.js:4:9 in Cart"},
	{"JavaScript without a name", "    at /app/server.js:1:2", "app/server.js:1:2"},
	{"Firefox", "draw@http://localhost:3000/static/app.js:1:2", "localhost:3000/static/app.js:1:2 in draw"},
	{"Rust panic", "thread 'main' panicked at 'called `Result::unwrap()` on an `Err` value', tokio/src/runtime/scheduler/mod.rs:12:5", "tokio/src/runtime/scheduler/mod.rs:12:5"},
	{"Rust panic", "thread 'main' panicked at src/main.rs:2:5:", "src/main.rs:2:5"},
	{"Java", "at a.b.C.m(C.java:3)", "a/b/C.java:3 in a.b.C.m"},
	{"Java", "\tat java.base/java.util.ArrayList$Itr.next(ArrayList.java:1013) ~[na:na]", "java/util/ArrayList.java:1013 in java.util.ArrayList$Itr.next"},
	{"Java", "at Main.main(Main.java:5)", "Main.java:5 in Main.main"},
	{"Java", "at app//org.x.Y.lambda$go$0(Y.kt:7)", "org/x/Y.kt:7 in org.x.Y.lambda$go$0"},
	{".NET", `   at Acme.Shop.Cart.Add(Item item) in C:\src\Shop\Cart.cs:line 42`, "C:/src/Shop/Cart.cs:42 in Acme.Shop.Cart.Add"},
	{".NET", "in X.cs:line 3", "X.cs:3"},
	{"sanitizer", "    #0 0x4a3b1c in dictAdd(dict*, void*) /build/redis/src/dict.cc:473:12", "build/redis/src/dict.cc:473:12 in dictAdd(dict*, void*)"},
	{"sanitizer", "#0 0x55 in f /x/y.cc:1:2", "x/y.cc:1:2 in f"},
	{"gdb", "#1  0x00005555 in dictAdd (d=0x0, key=0x1) at dict.c:473", "dict.c:473 in dictAdd"},
	{"gdb", "#0  main () at src/main.c:3", "src/main.c:3 in main"},
	{"PHP frame", "#0 /var/www/app/Cart.php(12): Cart->add()", "var/www/app/Cart.php:12 in Cart->add"},
	{"PHP", "PHP Fatal error: x in /var/www/app/Cart.php on line 12", "var/www/app/Cart.php:12"},
	{"Ruby", "app/models/cart.rb:12:in `add'", "app/models/cart.rb:12 in add"},
	{"Ruby", "app/models/cart.rb:12:in 'Cart#add': no (RuntimeError)", "app/models/cart.rb:12 in Cart#add"},
	{"Perl", "Can't locate x at lib/Cart.pm line 12.", "lib/Cart.pm:12"},
	{"Erlang", `{file,"src/cart.erl"},{line,12}`, "src/cart.erl:12"},
	{"pytest", "FAILED tests/test_cart.py::TestCart::test_add - AssertionError", "tests/test_cart.py in TestCart::test_add"},
	{"shell", "/usr/lib/shop/install: line 12: add_item: command not found", "usr/lib/shop/install:12 in add_item"},
	{"shell", "./build.sh: line 3: syntax error near unexpected token", "build.sh:3"},
	{"git header", "+++ b/src/dict.c", "src/dict.c"},
	{"git header", "--- a/src/dict.c", "src/dict.c"},
	{"git header", "diff --git a/src/dict.c b/src/dict.c", "src/dict.c"},
	{"git header", "+++ b/src/dict.c\n@@ -12,3 +14,4 @@ int f()", "src/dict.c:14"},
	{"git header", "rename from src/old.c", "src/old.c"},
	{"path", "src/dict.c", "src/dict.c"},
	{"path", "errors.go", "errors.go"},
	{"path", "./src/dict.c", "src/dict.c"},
	{"path", `src\dict.c`, "src/dict.c"},
	{"path", `#include "server.h"`, "server.h"},
	{"path", "a/src/dict.c and b/x.h, c/d.e, f/g.h", ""},
	{"path", "a sentence without any", ""},
	{"path", "Build Error: none of the twelve words of this message is the file of its place, /pages/cart.html", ""},
	{"path", "10.0.0.5:4002", ""},
}

func TestStackTrace_positionsAreFoundInEveryForm(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{"path": true}
	for _, c := range placeForms {
		m := Read(c.text)
		if got := placesText(m); got != c.want {
			t.Errorf("%s: %q\n got %s\nwant %s", c.form, c.text, got, c.want)
		}
		if len(m.Places) == 1 && m.Places[0].Form != c.form {
			t.Errorf("%q is of form %s, want %s", c.text, m.Places[0].Form, c.form)
		}
		tried[c.form] = true
	}

	if len(formOrder) != len(forms) {
		t.Errorf("the order has %d forms, the table %d", len(formOrder), len(forms))
	}
	for _, name := range formOrder {
		if !tried[name] {
			t.Errorf("form %s has no row here", name)
		}
	}
}

// A single-line input turns line breaks into spaces, or removes them in some browsers.
func TestStackTrace_isReadWithoutLineBreaks(t *testing.T) {
	t.Parallel()
	traces := map[string]string{
		"Go":         "panic: boom\n\ngoroutine 1 [running]:\ngithub.com/a/b.(*T).Open(0xc0)\n\t/go/a/b/open.go:12 +0x1d\nmain.main()\n\t/app/main.go:9 +0x25\n",
		"Python":     "Traceback (most recent call last):\n  File \"a/open.py\", line 12, in open\n    f()\n  File \"main.py\", line 9, in main\nValueError: boom\n",
		"Java":       "java.lang.IllegalStateException: boom\n\tat a.b.Open.open(Open.java:12)\n\tat a.Main.main(Main.java:9)\n",
		"JavaScript": "Error: boom\n    at open (/app/open.js:12:1)\n    at /app/main.js:9:1\n",
		"Rust":       "   0: a::open\n             at ./src/open.rs:12:5\n   1: main\n             at ./src/main.rs:9:5\n",
		"C#":         "   at A.Open.Do(Int32 x) in /src/Open.cs:line 12\n   at A.Main.Run() in /src/Main.cs:line 9\n",
		"ASan":       "    #0 0x1 in open(int) /x/open.cc:12:1\n    #1 0x2 in main /x/main.cc:9:1\n",
	}
	for name, text := range traces {
		for _, text := range []string{text, strings.ReplaceAll(text, "\n", " ")} {
			m := Read(text)
			if len(m.Places) != 2 || m.Places[0].Line != 12 || m.Places[1].Line != 9 {
				t.Errorf("%s: %q has the places %s", name, text, placesText(m))
			}
			if !m.Trace() {
				t.Errorf("%s: %q is no trace", name, text)
			}
		}
	}
	if Read("src/a.c:1 src/b.c:2").Trace() {
		t.Error("two places are a trace")
	}
}

func TestPastedURL_ofEveryCodeHostIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"https://github.com/redis/redis/blob/unstable/src/dict.c#L500", "file github.com/redis/redis unstable/src/dict.c 500-0"},
		{"https://github.com/redis/redis/blob/unstable/README.md?plain=1#L5-L9", "file github.com/redis/redis unstable/README.md 5-9"},
		{"https://github.com/redis/redis/tree/7.2/src", "file github.com/redis/redis 7.2/src 0-0"},
		{"https://github.com/redis/redis/commit/c18ff05665cb", "commit github.com/redis/redis c18ff05665cb 0-0"},
		{"https://github.com/redis/redis/pull/12/commits/c18ff05665cb", "commit github.com/redis/redis c18ff05665cb 0-0"},
		{"https://github.com/redis/redis/compare/7.0...7.2", "compare github.com/redis/redis 7.0...7.2 0-0"},
		{"https://github.com/redis/redis", "repository github.com/redis/redis  0-0"},
		{"https://github.com/redis/redis.git", "repository github.com/redis/redis  0-0"},
		{"git@github.com:redis/redis.git", "repository github.com/redis/redis  0-0"},
		{"https://github.com/redis/redis/issues/13609", "repository github.com/redis/redis  0-0"},
		{"see https://raw.githubusercontent.com/redis/redis/unstable/src/dict.c.", "file github.com/redis/redis unstable/src/dict.c 0-0"},
		{"https://gitlab.example/a/b/c/-/blob/main/x/y.rb#L10-20", "file gitlab.example/a/b/c main/x/y.rb 10-20"},
		{"https://gitlab.example/a/b/-/commit/0a1b2c3d", "commit gitlab.example/a/b 0a1b2c3d 0-0"},
		{"https://gitea.example:3000/o/r/src/branch/main/a.go#L3", "file gitea.example:3000/o/r main/a.go 3-0"},
		{"https://gitea.example/o/r/src/commit/0a1b2c3d/a.go", "file gitea.example/o/r 0a1b2c3d/a.go 0-0"},
		{"https://bitbucket.org/w/r/src/main/a/b.py#lines-10:20", "file bitbucket.org/w/r main/a/b.py 10-20"},
		{"https://bitbucket.org/w/r/commits/0a1b2c3d", "commit bitbucket.org/w/r 0a1b2c3d 0-0"},
		{"https://bb.example/projects/P/repos/r/browse/a/b.py?at=refs%2Fheads%2Fx%2Fy#10-20", "file bb.example/P/r a/b.py@x/y 10-20"},
		{"https://bb.example/projects/P/repos/r/browse/a/b.py", "file bb.example/P/r a/b.py@HEAD 0-0"},
		{"https://dev.azure.com/o/p/_git/r?path=/a/b.cs&version=GBmain&line=10&lineEnd=12", "file dev.azure.com/o/p/r a/b.cs@main 10-12"},
		{"https://ado.example.com/tfs/c/p/_git/r", "repository ado.example.com/c/p/r  0-0"},
		{"https://dev.azure.com/o/p/_git/r/commit/0a1b2c3d", "commit dev.azure.com/o/p/r 0a1b2c3d 0-0"},
		{"https://gerrit.example/plugins/gitiles/a/b/+/refs/heads/main/x.java#10", "file gerrit.example/a/b main/x.java 10-0"},
		{"https://shoal.example/browse/github.com/redis/redis@7.2/-/blob/src/dict.c#L5-L9", "file github.com/redis/redis src/dict.c@7.2 5-9"},
		{"https://shoal.example/browse/github.com/redis/redis/-/commit/0a1b2c3d", "commit github.com/redis/redis 0a1b2c3d 0-0"},
		{"github.com/rqlite/rqlite/v8/store", "module  github.com/rqlite/rqlite/v8/store 0-0"},
		{`import "github.com/rqlite/rqlite";`, "module  github.com/rqlite/rqlite 0-0"},
		{"go get github.com/rqlite/rqlite/v8@v8.1.0", "module  github.com/rqlite/rqlite/v8 0-0"},
		{"http://localhost:3000/static/app.js:1:2", ""},
		{"nothing", ""},
	} {
		got := ""
		if m := Read(c.text); len(m.Addresses) == 1 {
			a := m.Addresses[0]
			rest := a.Rest
			if a.Rev != "" {
				rest += "@" + a.Rev
			}
			got = fmt.Sprintf("%s %s %s %d-%d", a.Kind, a.Repo, rest, a.Line, a.End)
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestPastedText_tellsNamesCommitsAndGlobsApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"github.com/rqlite/rqlite/v8/store.(*Store).Open(0xc0001b2000)", "name github.com.rqlite.rqlite.v8.store.Store > Open"},
		{"(*Store).Close", "name Store > Close"},
		{"fmt.Println", "name fmt > Println"},
		{"store.New()", "name store > New"},
		{"Class::method", "name Class > method"},
		{"Class#method", "name Class > method"},
		{"std::sync::Arc", "name std.sync > Arc"},
		{"ns::Map<int>::find(key)", "name ns.Map > find"},
		{"a.b.C.m", "name a.b.C > m"},
		{"cart->add()", "name cart > add"},
		{`\Acme\Shop\Cart::add()`, "name Acme.Shop.Cart > add"},
		{"Acme.Cart.add/3", "name Acme.Cart > add"},
		{"{@link acme.Cart#add(int)}", "name acme.Cart > add"},
		{":py:meth:`~acme.Cart.add`", "name acme.Cart > add"},
		{"`acme::Cart::add`", "name acme.Cart > add"},
		{`<see cref="M:Acme.Cart.Add"/>`, "name Acme.Cart > Add"},
		{"main.cc:(.text+0x1f): undefined reference to `acme::Cart::add(std::basic_string<char>, int)'", "name acme.Cart > add"},
		{`error LNK2019: unresolved external symbol "public: void __cdecl acme::Cart::add(int)"`, "name acme.Cart > add"},
		{"ImportError: cannot import name 'add' from 'acme.cart' (/x/acme)", "name acme.cart > add"},
		{"AttributeError: module 'acme.cart' has no attribute 'add'", "name acme.cart > add"},
		{"acme.shop.cart:Cart", "name acme.shop.cart > Cart"},
		{"acme:12", ""},
		{"tokio::spawn::{{closure}}", ""},
		{"SUMMARY: ThreadSanitizer: data race (/srv/shop+0x38b) in acme::cart::Cart::add::h0123456789abcdef", "name acme.cart.Cart > add"},
		{"/usr/bin/redis-server *:6379(dictAdd+0x45)[0x55a1]\nredis-server(zfree+0x1b) [0x4147]", "name redis.server > dictAdd; name redis.server > zfree"},
		{"3   redis-server   0x0000000104a3 dictAdd + 123", "name redis.server > dictAdd"},
		{"Acme.Shop.Cart.Add (Acme.Item item) [0x00397] in <d32db49e>:0", "name Acme.Shop.Cart > Add"},
		{"Acme.Cart.Add(Acme.Item, System.Object)+a8\nAcme.Cart.Sum(Acme.Item)+170", "name Acme.Cart > Add; name Acme.Cart > Sum"},
		{"   at Acme.Cart.Add(Item item)\n   at Acme.Cart.Add(Item item)", "name Acme.Cart > Add"},
		{"\tat sun.reflect.Invoker.invoke0(Native Method)", "name sun.reflect.Invoker > invoke0"},
		{" [<ffffffff8117>] vfs_read+0x9a/0x140", "name  > vfs_read"},
		{"#13609", "change #13609"},
		{"PR #12", "change #12"},
		{"(!7)", "change !7"},
		{"see #12 and #13", ""},
		{"dictAddRaw(d,key,NULL)", ""},
		{"c18ff05665cb195190fbbd37235e15b2b86ebb63", "commit c18ff05665cb195190fbbd37235e15b2b86ebb63"},
		{"4F8CDC2A1E", "commit 4f8cdc2a1e"},
		{"1234567", "commit 1234567"},
		{"deadbeef", "commit deadbeef"},
		{"commit 4f8cdc2a1e", "commit 4f8cdc2a1e"},
		{"Fixes: 4f8cdc2a1e (\"dict: fix\")", "commit 4f8cdc2a1e"},
		{"it waits for 1234567 seconds", ""},
		{"4f8cdc", ""},
		{"src/**/*.go", "glob src/**/*.go"},
		{"*.go", "glob *.go"},
		{"src/*.c", "glob src/*.c"},
		{"**/test_*.py", "glob **/test_*.py"},
		{"/* a comment */", ""},
		{"*foo", ""},
		{".*", ""},
		{"a * b", ""},
	} {
		m, got := Read(c.text), []string(nil)
		for _, n := range m.Names {
			got = append(got, "name "+strings.Join(n.Scope, ".")+" > "+n.Name)
		}
		for _, x := range m.Commits {
			got = append(got, "commit "+x)
		}
		for _, x := range m.Globs {
			got = append(got, "glob "+x)
		}
		if m.Change != "" {
			got = append(got, "change "+m.Change)
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%q: got %s, want %s", c.text, text, c.want)
		}
	}
}

// Read of any text does not panic, and takes time proportional to the length.
func FuzzRead_neverPanicsAndTakesLinearTime(f *testing.F) {
	for _, c := range placeForms {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := Read(text)
		if len(m.Places) > MaxPlaces {
			t.Errorf("%d places", len(m.Places))
		}
		for _, p := range m.Places {
			if p.Path == "" || p.Line < 0 || p.End != 0 && p.End <= p.Line {
				t.Errorf("%q has the place %+v", text, p)
			}
		}
	})
}

// The source line of a message matches one of the patterns, and not a later one than expected.
func TestMessagePattern_findsTheSourceOfAMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ message, source string }{
		{`failed to open "/tmp/x.db" (attempt 3): permission denied`, `"failed to open %q (attempt %d): permission denied"`},
		{`failed to open /tmp/x.db (attempt 3): permission denied`, "`failed to open ${path} (attempt ${n}): permission denied`"},
		{`failed to open /tmp/x.db (attempt 3): permission denied`, `f"failed to open {path} (attempt {n}): permission denied"`},
		{`failed to open /tmp/x.db (attempt 3): permission denied`, `"failed to open {0} (attempt {1}): permission denied"`},
		{"dial tcp 10.0.0.5:4002: connect: connection refused", `"dial tcp %s: connect: connection refused"`},
		{"dial tcp 10.0.0.5:4002: connect: connection refused", `ECONNREFUSED: "connection refused",`},
		{"panic: runtime error: index out of range [5] with length 3", `"index out of range [%x] with length %y"`},
		{"TypeError: app.use() requires a middleware function", `throw new TypeError('app.use() requires a middleware function')`},
		{"(error) WRONGTYPE Operation against a key holding the wrong kind of value", `"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"`},
		{`2026/01/02 15:04:05 [ERROR] cannot reach node 4 after 12ms`, `log.Printf("[ERROR] cannot reach node %d after %s", id, took)`},
		{`time=2026-01-02T15:04:05Z level=error msg="cannot reach the other node" id=4`, `slog.Error("cannot reach the other node", "id", id)`},
		{"user bob may not read it", `"user %s may not read it"`},
		{"open config: read /etc/x: no such file or directory", `[ENOENT] = "no such file or directory",`},
		{"Expected 3 arguments, got 2", `raise TypeError(f"Expected {n} arguments, got {len(args)}")`},
		{"error: value too large: 70000 > 65535", `return fmt.Errorf("value too large: %d > %d", n, max)`},
		{"1234:M 05 Jan 2026 10:11:12.345 * Background saving started by pid 4321", `"Background saving started by pid %ld"`},
		{"1:C 01 Jan 2026 00:00:00.000 # WARNING Memory overcommit must be enabled!", `"Memory overcommit must be enabled!"`},
		{"Could not create server TCP listening socket *:6379: bind: Address already in use", `"Could not create server TCP listening socket %s:%d: %s"`},
		{"# Can't open the append-only file x.aof.1: Permission denied", `"Can't open the append-only file %s: %s"`},
		{"requests.exceptions.MissingSchema: Invalid URL 'x': No scheme supplied. Perhaps you meant https://x?", `f"Invalid URL {url!r}: No scheme supplied. "`},
		{"failed to open store: set log info: failed to get last index", `fmt.Errorf("set log info: %s", err)`},
		{"ERR value is not an integer or out of range", `addReplyError(c,"value is not an integer or out of range");`},
		{"E_LIMIT this plan has no room for another one", `fail(E_LIMIT, "this plan has no room for another one")`},
		// The source has the text in pieces.
		{"TypeError: The view function for 'index' did not return a valid response. The function either returned None or ended without a return statement.", `" return a valid response. The function either returned"`},
		{"Error: Failed to find the application in module 'wsgi'. Use 'wsgi:name' to specify one.", `"Failed to find the application in module"`},
		{"RuntimeError: Working outside of it.\n\nThis typically means that you used something that needed\nthe current application.", "This typically means that you used something that needed"},
		{"RuntimeError: Working outside of it. This typically means that you used something that needed the current application. To solve this, read the manual.", "Working outside of it."},
		{"acme deprecated app.send(status): Use app.sendStatus(status) instead at routes/index.js:12:9", "deprecate('app.send(status): Use app.sendStatus(status) instead')"},
		{"1:C 12 Mar 2023 10:11:12.131 # Failed opening the temp RDB file temp-42.rdb (in server root dir /data) for saving: Permission denied", `"Failed opening the temp RDB file %s (in server root dir %s) "`},
		{"com.acme.MalformedJsonException: Unterminated string at line 1 column 327 path $._argTypes[0]", `throw syntaxError("Unterminated string");`},
		{"error: src/main.c: patch does not apply", `error(_("%s: patch does not apply"), name)`},
		{"Build Warning: Layout 'post' requested in about.md does not exist.", `"Layout '#{name}' requested in #{path} does not exist."`},
		{"InvalidURL: Invalid address 'a/b': No scheme supplied. Perhaps you meant another one?", `f"Invalid address {url!r}: No scheme supplied. "`},
		{`{"level":"warn","message":"failed to reach [10.0.0.4:4002 10.0.0.5:4002], sleeping 3s before retry"}`, `Printf("failed to reach %s, sleeping %s before retry", all, wait)`},
		{"[E 260102 15:04:05 web:1590] Unexpected end GET /cart?id=7 (192.0.2.1)", `log.error("Unexpected end %s", summary)`},
		// Flags and settings are looked for by their names.
		{"-raft-addr", `fs.StringVar(&c.RaftAddr, "raft-addr", "localhost:4002", "")`},
		{"serverd -node-id 1 -raft-addr 127.0.0.1:4002 ~/node.1", `RaftAddrFlag = "raft-addr"`},
		{"$ tool sub --dry-run=client", `cmd.Flags().Bool('dry-run', false)`},
		{"-DUSE_JEMALLOC", "CFLAGS+= -DUSE_JEMALLOC"},
		{"maxmemory-policy allkeys-lru", `createEnumConfig("maxmemory-policy", NULL)`},
		{"cart_options = {'visibility_timeout': 7200}", `cart_options = {}`},
		{`CART_OPEN_COMMAND="fd --type f"`, "${CART_OPEN_COMMAND:-find}"},
		{"server.http.port = 8080", "server.http.port: 80"},
		{"Could not find module 'left-pad' in 3 places", `Error("Could not find module '%s' in %zu places")`},
	} {
		found := false
		patterns := Literal(c.message)
		for _, p := range patterns {
			found = found || re("(?i)"+p.Expr).MatchString(c.source)
		}
		if !found {
			t.Errorf("no pattern of %q finds %s: %+v", c.message, c.source, patterns)
		}
	}
}

// What a protocol, a client or a log puts before a message is left out before any other part is.
func TestMessagePattern_leavesOutWhatPrecedesTheMessageFirst(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"ERR ", "(error) ", "E_LIMIT ", "[WARN] ", "TypeError: "} {
		const message = "value is not an integer or out of range"
		if patterns := Literal(before + message); len(patterns) < 2 || patterns[1].Text != message {
			t.Errorf("after %q: %+v", before, patterns)
		}
	}
}

// A text without words has no patterns, and every pattern is a valid expression.
func TestMessagePattern_compilesAndHasALimitedLength(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "  ", "12 34", `"x"`, "a b", "0xdeadbeef", "%s %d", "(((", "it's"} {
		if got := Literal(text); len(got) > 0 {
			t.Errorf("%q has the patterns %+v", text, got)
		}
	}
	long := Literal(strings.Repeat("some [words (of a long* message: ", 4000))
	if len(long) == 0 || len(long) > mostPatterns {
		t.Errorf("%d patterns", len(long))
	}
	for _, p := range long {
		if re(p.Expr); len(p.Expr) > 4000 {
			t.Errorf("an expression of %d bytes", len(p.Expr))
		}
	}
}
