package suggest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/query"
)

var errMissing = errors.New("not there")

// library is a node with files. A guest only sees those of public repositories.
type library struct {
	fake
	files    []string          // repository:path, or repository@revision:path
	lines    map[string]string // content by repository:path
	commits  map[string]string // hash by repository
	subjects map[string]string // of that commit
	symbols  []symbols.SymbolFile
}

func (l *library) sees(v catalog.Viewer, repo string) bool {
	return v.All || !strings.Contains(repo, "secret")
}

// Search finds files by name, and lines by an expression, like the engine.
func (l *library) Search(_ context.Context, v catalog.Viewer, req search.Request) (*search.Response, error) {
	q, err := query.Parse(req.Query, query.Options{Regexp: req.Regexp})
	if err != nil {
		return nil, err
	}
	var name, text []*regexp.Regexp
	anyRev, missing := false, false
	query.Map(q.Q, func(n query.Q) query.Q {
		switch n := n.(type) {
		case *query.Text:
			expr := n.Pattern
			if !n.Regexp {
				expr = regexp.QuoteMeta(expr)
			}
			if n.Field == query.Name {
				name = append(name, regexp.MustCompile("(?i)"+expr))
			} else {
				text = append(text, regexp.MustCompile("(?i)"+expr))
			}
		case *query.Rev:
			anyRev, missing = n.Pattern == "*", n.Pattern != "*" && n.Pattern != "HEAD"
		}
		return n
	})

	r := &search.Response{}
	if missing {
		return r, nil
	}
	matches := func(all []*regexp.Regexp, s string) bool {
		return !slices.ContainsFunc(all, func(re *regexp.Regexp) bool { return !re.MatchString(s) })
	}
	for _, f := range l.files {
		where, path, _ := strings.Cut(f, ":")
		repo, rev, old := strings.Cut(where, "@")
		if !l.sees(v, repo) || old && !anyRev || !matches(name, path) || !matches(text, l.lines[repo+":"+path]) || req.Matches > 0 && len(r.Files) == req.Matches {
			continue
		}
		file := search.File{Repository: repo, Path: path, Branches: []string{"refs/tags/" + rev}}
		if !old {
			file.Branches = []string{"HEAD"}
		}
		r.Files = append(r.Files, file)
	}
	return r, nil
}

func (l *library) Repos(_ context.Context, v catalog.Viewer, _ browse.ReposRequest) (*browse.ReposResponse, error) {
	r := &browse.ReposResponse{}
	for repo := range l.commits {
		if l.sees(v, repo) {
			r.Repos = append(r.Repos, browse.RepoInfo{Name: repo, DefaultBranch: "main"})
		}
	}
	r.Total = len(r.Repos)
	return r, nil
}

func (l *library) Repo(_ context.Context, v catalog.Viewer, name string) (*browse.RepoInfo, error) {
	if _, ok := l.commits[name]; !ok || !l.sees(v, name) {
		return nil, errMissing
	}
	return &browse.RepoInfo{Name: name, DefaultBranch: "main"}, nil
}

func (l *library) Commit(_ context.Context, v catalog.Viewer, req browse.CommitRequest) (*browse.CommitInfo, error) {
	if hash := l.commits[req.Repo]; l.sees(v, req.Repo) && strings.HasPrefix(hash, req.Ref) {
		return &browse.CommitInfo{Hash: hash, Message: "a change"}, nil
	}
	return nil, errMissing
}

func (l *library) Commits(_ context.Context, v catalog.Viewer, req browse.CommitsRequest) (*browse.CommitsResponse, error) {
	r := &browse.CommitsResponse{}
	if hash := l.commits[req.Repo]; l.sees(v, req.Repo) && strings.Contains(l.subjects[req.Repo], req.Query) {
		r.Commits = append(r.Commits, browse.CommitInfo{Hash: hash, Message: l.subjects[req.Repo]})
	}
	return r, nil
}

func (l *library) Source(_ context.Context, v catalog.Viewer, req browse.SourceRequest) (*browse.SourceResponse, error) {
	where := req.Repo
	if req.Ref != "" {
		where += "@" + req.Ref
	}
	if !l.sees(v, req.Repo) || !slices.Contains(l.files, where+":"+req.Path) {
		return nil, errMissing
	}
	total := 500
	if req.Path == "src/flask/app.py" {
		total = 100
	}
	return &browse.SourceResponse{Content: bytes.Repeat([]byte("some code\n"), req.Lines), Total: total, Language: "C"}, nil
}

func (l *library) Tree(_ context.Context, v catalog.Viewer, req browse.TreeRequest) (*browse.TreeResponse, error) {
	under := req.Repo + ":" + req.Paths[0] + "/"
	if l.sees(v, req.Repo) && req.Ref == "" && slices.ContainsFunc(l.files, func(f string) bool { return strings.HasPrefix(f, under) }) {
		return &browse.TreeResponse{}, nil
	}
	return nil, errMissing
}

func (l *library) Definitions(_ context.Context, v catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	r := &symbols.SymbolResponse{}
	for _, f := range l.symbols {
		if l.sees(v, f.Repository) && f.Matches[0].Name == req.Symbol {
			r.Files = append(r.Files, f)
		}
	}
	return r, nil
}

func defined(repo, path, name, parent string) symbols.SymbolFile {
	return symbols.SymbolFile{Repository: repo, Path: path, Matches: []symbols.SymbolMatch{{Name: name, ParentName: parent, Kind: "function", Range: shard.Range{Start: shard.Position{Line: 7}}}}}
}

func newLibrary() *library {
	return &library{
		files: []string{
			"host/redis:src/dict.c", "host/redis:src/dict.h", "host/redis:tests/dict.c", "host/flask:src/flask/app.py", "host/flask:examples/app.py",
			"host/express:index.js", "host/express@4.18:lib/router/layer.js", "host/express@4.18:lib/router/index.js", "host/rqlite:store/store.go", "host/other:pkg/store/store.go",
			"host/secret:src/vault.c", "host/secret:src/dict.c", "host/redis@feature/x:src/new.c",
			"host/express:test/Layer.js", "ho.st/team/tool:cmd/main.go", "host/tests:test/message.c", "host/tests:docs/message.md",
			"host/redis:deps/dict.h", "host/rqlite:scripts/install.sh", "host/other:src/close.c", "host/tests:src/Close.c", "host/tests:src/close.c", "host/tests:src/closer.c",
			"host/grep:crates/matcher/src/lib.rs", "host/grep:crates/printer/src/lib.rs", "host/grep:crates/grep/src/lib.rs", "host/other:build/src/lib.rs",
		},
		lines: map[string]string{
			"host/redis:src/dict.c": `"failed to open %q (attempt %d): permission denied"`, "host/secret:src/vault.c": `"vault %d is sealed for %s"`,
			"host/express:lib/router/layer.js": "the old message of %d routers is gone", "host/redis:src/dict.h": `"key of either vault or of %d others is lost", "cache-policy", "test_keys_are_lost"`,
			"host/tests:test/message.c": `"failed to open 3 (attempt 4): permission denied, and more"`, "host/tests:docs/message.md": `an error: nobody repeats it`,
			"host/redis:deps/dict.h": "test_keysAreLost",
		},
		commits:  map[string]string{"host/redis": "c18ff05665cb195190fbbd37235e15b2b86ebb63", "host/secret": "5ec4e7000000000000000000000000000000beef", "host/rqlite": "aaaa111", "ho.st/team/tool": "dddd444", "host/flask": "bbbb222", "host/express": "cccc333"},
		subjects: map[string]string{"host/redis": "a change (#12)", "host/secret": "a change (#13)"},
		symbols: []symbols.SymbolFile{
			defined("host/rqlite", "store/store.go", "Open", "Store"), defined("host/rqlite", "db/db.go", "Open", "DB"), defined("host/secret", "store/store.go", "Unseal", "Store"),
			defined("host/rqlite", "vendor/store/all.go", "Vacuum", "Store"), defined("host/rqlite", "store/vacuum.go", "Vacuum", "Store"),
			defined("host/other", "vendor/lock/lock.go", "Unlock", ""), defined("host/rqlite", "store/lock.go", "Unlock", ""),
		},
	}
}

func (l *library) suggester() *Suggester {
	return New(Deps{Search: l, Browse: l, Within: Within})
}

func targetText(t Target) string {
	text := string(t.Kind) + " " + t.Repository
	if t.Revision != "" {
		text += "@" + t.Revision[:min(len(t.Revision), 10)]
	}
	if t.Path != "" {
		text += ":" + t.Path
	}
	if t.Line > 0 {
		text += fmt.Sprintf(":%d", t.Line)
	}
	if t.EndLine > 0 {
		text += fmt.Sprintf("-%d", t.EndLine)
	}
	return text + strings.TrimPrefix(" "+t.Query, " ")
}

func targetsText(list []Target) string {
	var out []string
	for _, t := range list {
		out = append(out, targetText(t))
	}
	return strings.Join(out, "; ")
}

func TestGoTo_findsTheFilesCommitsAndSymbolsThatATextNames(t *testing.T) {
	t.Parallel()
	s := newLibrary().suggester()
	for _, c := range []struct{ text, want string }{
		{"src/dict.c:500", "file host/redis:src/dict.c:500"},
		{"src/dict.c:501", "file host/redis:src/dict.c"}, // the file has 500 lines
		{"src/dict.c#L10-L20", "file host/redis:src/dict.c:10-20"},
		{"/home/x/go/src/github.com/redis/redis/src/dict.c:5", "file host/redis:src/dict.c:5"},
		{"dict.c:5", "file host/redis:src/dict.c:5; file host/redis:tests/dict.c:5"},
		{"Layer.js:5", "file host/express:test/Layer.js:5"}, // not layer.js of an older revision
		{"Close.c:5", "file host/tests:src/Close.c:5"},
		{"repo:flask app.py:5", "file host/flask:src/flask/app.py:5; file host/flask:examples/app.py:5"},
		{`File "/usr/lib/python3.11/site-packages/flask/app.py", line 14, in x`, "file host/flask:src/flask/app.py:14"},
		{"(node_modules/express/lib/router/layer.js:95:5)", "file host/express@4.18:lib/router/layer.js:95"},
		{"/go/src/github.com/rqlite/rqlite/store/store.go:41 +0x1d", "file host/rqlite:store/store.go:41"},
		{"/root/go/pkg/mod/github.com/rqlite/rqlite@v8.1.0/store/store.go:41", "file host/rqlite:store/store.go:41"},
		{`D:\work\node_modules\express\lib\router\index.js:458:13`, "file host/express@4.18:lib/router/index.js:458"},
		{"/srv/express/index.js:4", "file host/express:index.js:4"},
		{"lib/router/layer.js", "file host/express@4.18:lib/router/layer.js"},
		{"lib/nosuch/index.js", ""}, // the file at the root is another one
		{"a/src/app.py", "file host/flask:src/flask/app.py"},
		{"github.com/none/none/pkg/other.Open", ""},
		{"/elsewhere/lib/app.py:3", ""}, // only the name equals that of files here
		{"src/nosuch.c:1", ""},
		{"github.com/rqlite/rqlite/v8/store.(*Store).Open(0xc0001b2000)", "symbol host/rqlite:store/store.go:7"},
		{"/root/.cargo/registry/src/index.crates.io-6f17/grep-matcher-0.1.5/src/lib.rs:131:9", "file host/grep:crates/matcher/src/lib.rs:131"},
		{"/root/.cargo/registry/src/index.crates.io-6f17/elsewhere-0.1.5/src/lib.rs:131:9", ""}, // another package
		{"Store::Vacuum", "symbol host/rqlite:store/vacuum.go:7"},                               // not of the vendored one
		{"DB::Open", "symbol host/rqlite:db/db.go:7"},
		{"nothing.Open", ""},
		{"   at Acme.Store.Open(String name)\n   at Acme.Nothing.Open()", "symbol host/rqlite:store/store.go:7"},
		{"host.io/rqlite/v8/store", ""},
		{"ho.st/team/tool/v2/cmd", "directory ho.st/team/tool:cmd"},
		{"ho.st/team/tool", "repository ho.st/team/tool"},
		{"#12", "commit host/redis@c18ff05665"},
		{"#1", ""},
		{`C:\x\express\lib\router\layer.js:95`, "file host/express@4.18:lib/router/layer.js:95"},
		{"c18ff05", "commit host/redis@c18ff05665"},
		{"c18ff06", ""},
		{"https://host/redis/-/blob/main/src/dict.c#L50", "file host/redis:src/dict.c:50"},
		{"https://host/redis/-/blob/feature/x/src/new.c#L50", "file host/redis@feature/x:src/new.c:50"},
		{"https://host/redis/-/blob/long-gone/src/dict.c#L50", "file host/redis:src/dict.c:50"},
		{"https://host/redis/-/tree/main/src", "directory host/redis:src"},
		{"https://host/redis/-/commit/c18ff05", "commit host/redis@c18ff05665"},
		{"https://host/redis/-/compare/a...b", "compare host/redis@a...b"},
		{"https://elsewhere/redis/-/blob/main/src/dict.c#L50", ""},
		{"src/**/*.c", `files type:file file:"^src/(?:.*/)?[^/]*\.c$"`},
		{"plain words of a query", ""},
		{"repo:flask app.py:200", "file host/flask:examples/app.py:200; file host/flask:src/flask/app.py"}, // the other has 100 lines
		// The name of the test is in one of the files.
		{"FAIL: test_keys_are_lost\n dict.h:5: three keys", "file host/redis:src/dict.h:5; file host/redis:deps/dict.h:5"},
		{"FAIL: test_keysAreLost\n dict.h:5: three keys", "file host/redis:deps/dict.h:5; file host/redis:src/dict.h:5"},
		{"/usr/lib/shop/install: line 12: add_item: command not found", "file host/rqlite:scripts/install.sh:12"},
		{"RIP: 0010:Unlock+0x9a/0x140", "symbol host/rqlite:store/lock.go:7"}, // not of the vendored one
		{"No program was found: name it by the option, a variable, or a file app.py in this directory.", ""},
	} {
		got := strings.ReplaceAll(targetsText(s.GoTo(t.Context(), catalog.Guest(), c.text)), "files  ", "files ")
		if strings.HasPrefix(c.want, "files ") && strings.HasPrefix(got, "files ") {
			continue
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestGoTo_findsTheFramesOfAStackTrace(t *testing.T) {
	t.Parallel()
	s := newLibrary().suggester()
	trace := "Traceback (most recent call last):\n  File \"/srv/flask/app.py\", line 14, in a\n  File \"/usr/lib/python3/nosuch.py\", line 2, in b\n  File \"/srv/examples/app.py\", line 3, in c\n"
	want := "file host/flask:src/flask/app.py:14; file host/flask:examples/app.py:3"
	got := s.GoTo(t.Context(), catalog.Guest(), trace)
	if targetsText(got) != want || !got[0].Frame || got[0].Text != "some code" {
		t.Errorf("got %s, %+v", targetsText(got), got)
	}
}

// manyLibraries is a node with more repositories than histories are read of.
type manyLibraries struct{ *library }

func (l manyLibraries) Repos(context.Context, catalog.Viewer, browse.ReposRequest) (*browse.ReposResponse, error) {
	return &browse.ReposResponse{Total: readHistories + 1}, nil
}

func (l manyLibraries) SearchCommits(_ context.Context, v catalog.Viewer, req search.Request) (*search.CommitsResponse, error) {
	r := &search.CommitsResponse{}
	for _, repo := range slices.Sorted(maps.Keys(l.subjects)) {
		if l.sees(v, repo) && strings.HasPrefix(req.Query, "type:commit ") {
			for _, message := range []string{"later (#123)", "other\n\nafter #12", l.subjects[repo]} {
				r.Commits = append(r.Commits, search.FoundCommit{Repository: repo, CommitMatch: change.CommitMatch{ID: l.commits[repo], Message: message}})
			}
		}
	}
	return r, nil
}

func TestGoTo_findsIndexedCommitsByNumberInManyRepositories(t *testing.T) {
	t.Parallel()
	l := manyLibraries{newLibrary()}
	s := New(Deps{Search: l, Browse: l, Within: Within})
	got := s.GoTo(t.Context(), catalog.Guest(), "#12")
	if want := "commit host/redis@c18ff05665"; targetsText(got) != want || got[0].Text != "a change (#12)" {
		t.Errorf("got %s, want %s", targetsText(got), want)
	}
	if got := s.GoTo(t.Context(), catalog.Guest(), "#13"); len(got) > 0 {
		t.Errorf("a guest is led to %s", targetsText(got))
	}
}

// The same texts lead nowhere for a viewer without access.
func TestGoTo_hidesWhatTheViewerMayNotSee(t *testing.T) {
	t.Parallel()
	s := newLibrary().suggester()
	for _, text := range []string{
		"src/vault.c:5", "5ec4e70", "#13", "Store::Unseal", "https://host/secret/-/blob/main/src/vault.c", "https://host/secret", "https://host/secret/-/compare/a...b", "src/vault*.c", "**/vault.c",
	} {
		if got := s.GoTo(t.Context(), catalog.Guest(), text); len(got) > 0 {
			t.Errorf("a guest goes from %q to %s", text, targetsText(got))
		}
		if got := s.GoTo(t.Context(), catalog.Viewer{All: true}, text); len(got) == 0 {
			t.Errorf("%q leads nowhere for who sees all", text)
		}
	}
}

func TestNearestMatch_findsTheFormatStringOfAMessage(t *testing.T) {
	t.Parallel()
	s := newLibrary().suggester()
	for _, c := range []struct {
		text, parts, file string
		all               bool
	}{
		{`failed to open "/tmp/x.db" (attempt 3): permission denied`, "failed to open … (attempt … ): permission denied", "src/dict.c", false},
		{`repo:redis failed to open "/tmp/x.db" (attempt 3): permission denied`, "failed to open … (attempt … ): permission denied", "src/dict.c", false},
		{"vault 7 is sealed for bob", "", "", false},
		{"vault 7 is sealed for bob", "vault … is sealed for", "src/vault.c", true},
		{"nothing has this at all", "", "", true},
		{"failed to open 3 (attempt 4): permission denied, and more", "failed to open … (attempt", "src/dict.c", false}, // a test repeats all of it
		{"the old message of 3 routers is gone", "the old message of … routers is gone", "lib/router/layer.js", false},  // only an older revision has it
		{"key of either vault or of 3 others is lost", "key of either vault or of … others is lost", "src/dict.h", false},
		{"cache-policy lru", "cache-policy", "src/dict.h", false},
		{"an error: nobody repeats it but a document", "an error: nobody repeats", "docs/message.md", false},
	} {
		got := s.Nearest(t.Context(), catalog.Viewer{All: c.all}, search.Request{Query: c.text}, &search.Response{})
		switch {
		case c.parts == "" && got != nil:
			t.Errorf("%s: %q has most of it", c.text, got.Parts)
		case c.parts == "":
		case got == nil || got.Parts != c.parts && !strings.HasPrefix(got.Parts, c.parts) || got.Response.Files[0].Path != c.file:
			t.Errorf("%s: %+v", c.text, got)
		}
	}

	// If a file has the words side by side, or if they are an expression, there is no other
	// answer.
	found := &search.Response{Files: []search.File{{Score: 60_000}}}
	for _, req := range []search.Request{{Query: "failed to open"}, {Query: "failed to open", Regexp: true}} {
		if got := s.Nearest(t.Context(), catalog.Guest(), req, found); got != nil {
			t.Errorf("%+v is answered with %q", req, got.Parts)
		}
	}
	// A test repeats the message, and the source file that has its words has them apart.
	repeated := &search.Response{Files: []search.File{{Path: "test/message.c", Score: 60_000}, {Path: "src/dict.c", Score: 900}}}
	if got := s.Nearest(t.Context(), catalog.Guest(), search.Request{Query: "failed to open 3 (attempt 4): permission denied"}, repeated); got == nil || got.Response.Files[0].Path != "src/dict.c" {
		t.Errorf("a message that a test repeats is answered with %+v", got)
	}
	apart := &search.Response{Files: []search.File{{Score: 900}}}
	if got := s.Nearest(t.Context(), catalog.Guest(), search.Request{Query: "(error) failed to open"}, apart); got == nil || got.Parts != "failed to open" {
		t.Errorf("words that stand apart are answered with %+v", got)
	}
}
