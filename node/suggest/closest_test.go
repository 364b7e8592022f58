package suggest

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/paste"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
)

// matchIn returns a file with one line, in which text matches.
func matchIn(path, line, text string) search.File {
	at := uint32(strings.Index(strings.ToLower(line), text))
	return search.File{Path: path, Chunks: []shard.Chunk{{
		Content: []byte(line), Start: shard.Position{Offset: 100},
		Ranges: []shard.Range{{Start: shard.Position{Offset: 100 + at}, End: shard.Position{Offset: 100 + at + uint32(len(text))}}},
	}}}
}

func in(repo, path string) search.File {
	f := matchIn(path, `"took too long"`, "took too long")
	f.Repository = repo
	return f
}

func TestNearestMatch_listsTheFileThatPrintsTheMessageFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message, expr string
		files         []search.File // the first is the one wanted
	}{
		{"unknown word: proxi - are you sure?", "are you sure", []search.File{
			matchIn("words.go", `errorf("unknown word: %s - are you sure?")`, "are you sure"),
			matchIn("import.go", `errorf("- are you sure?")`, "are you sure"),
		}},
		{"transfer error 28: took too long", "transfer error", []search.File{
			matchIn("send.php", `'transfer error %s: %s'`, "transfer error"),
			matchIn("handle.php", "@var int transfer error, if any", "transfer error"),
		}},
		{`unknown command "x" for "y"`, "unknown command.*for", []search.File{
			matchIn("args.go", `"unknown command %q for %q"`, "unknown command %q for"),
			matchIn("patch.c", `"unknown command '%s' (use '?' for help)"`, "unknown command '%s' (use '?' for"),
		}},
		{"transfer error 28", "transfer error", []search.File{
			matchIn("send.go", `"a transfer error"`, "transfer error"),
			matchIn("send_test.go", `"transfer error 28"`, "transfer error"),
		}},
		{"httpx.ReadTimeout: took too long", "took too long", []search.File{in("host/encode/httpx", "wait.py"), in("host/celery", "wait.py")}},
		{"transfer error 28", "transfer error", []search.File{matchIn("send.go", `"a transfer error"`, "transfer error"), matchIn("send.shoptest", `"transfer error 28"`, "transfer error")}},
		{"transfer error 28", "transfer error", []search.File{matchIn("send.go", `"a transfer error"`, "transfer error"), matchIn("po/de.po", `"transfer error 28"`, "transfer error")}},
		{"[E 260102 15:04:05 web:1590] unexpected end", "unexpected end", []search.File{matchIn("web.py", `"unexpected end"`, "unexpected end"), matchIn("stream.py", `"unexpected end"`, "unexpected end")}},
		{"(fail) transfer error 28", "transfer error", []search.File{matchIn("send.c", `"-transfer error"`, "transfer error"), matchIn("api.h", `#define FAIL_28 "-transfer error"`, "transfer error")}},
		{"transfer error 28", "transfer error", []search.File{matchIn("send.py", `raise("a transfer error")`, "transfer error"), matchIn("use.py", `# after "a transfer error"`, "transfer error")}},
		{"transfer error 28", "transfer error", []search.File{matchIn("api.h", `E("transfer error")`, "transfer error"), matchIn("use.c", `/* a transfer error */`, "transfer error")}},
		{"where is the table resized", "is the table|the table resized", []search.File{matchIn("table.c", "* as the table resized where it is", "the table resized"), matchIn("help.c", `"this is the table of keys"`, "is the table")}},
		{"all of it or some", "all of it|some", []search.File{
			matchIn("all.go", `"all of it"`, "all of it"),
			matchIn("some.go", `"some or it"`, "some"),
		}},
	} {
		for _, turned := range []bool{false, true} {
			files := []search.File{c.files[0], c.files[1]}
			if turned {
				files[0], files[1] = files[1], files[0]
			}
			closestFirst(files, &paste.Pattern{Expr: c.expr}, c.message)
			if files[0].Path != c.files[0].Path || files[0].Repository != c.files[0].Repository {
				t.Errorf("%s: first is %s, want %s", c.message, files[0].Path, c.files[0].Path)
			}
		}
	}
}

func TestNearestMatch_listsWhereASettingIsDefinedFirst(t *testing.T) {
	t.Parallel()
	files := []search.File{
		matchIn("config_test.go", "cookie-path = /cart", "cookie-path"),
		matchIn("config.md", "the cookie-path of a site", "cookie-path"),
		matchIn("read.go", `config["cookie-path"]`, `"cookie-path"`),
		matchIn("flags.go", `String("cookie-path", "/")`, `"cookie-path"`),
	}
	closestFirst(files, &paste.Pattern{Expr: "cookie-path", Text: "cookie-path", Name: true}, "cookie-path /cart")
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
	}
	if text := strings.Join(got, " "); text != "flags.go read.go config.md config_test.go" {
		t.Errorf("got %s", text)
	}
}
