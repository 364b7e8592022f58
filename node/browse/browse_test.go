package browse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard/git"
)

// gitRun runs git for a test, with a fixed identity and no configuration.
func gitRun(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent",
		"GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org", "GIT_COMMITTER_DATE=1700000000 +0000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// testSite returns the mirror of a small repository.
func testSite(t *testing.T) *site {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "source.git")
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	var script strings.Builder
	commit := func(ref string, minute int, author, message string, files ...string) {
		fmt.Fprintf(&script, "commit %s\nauthor %s <%s@example.org> %d +0000\ncommitter %s <x@example.org> %d +0000\ndata %d\n%s\n",
			ref, author, strings.ToLower(author), 1_700_000_000+60*minute, author, 1_700_000_000+60*minute, len(message), message)
		for i := 0; i < len(files); i += 2 {
			if files[i+1] == "D" {
				fmt.Fprintf(&script, "D %s\n", files[i])
			} else {
				fmt.Fprintf(&script, "M 100644 inline %s\ndata %d\n%s\n", files[i], len(files[i+1]), files[i+1])
			}
		}
		script.WriteString("\n")
	}
	commit("refs/heads/main", 1, "Ann", "Begin\n\nthe body", "src/server/main.go", "package main\n\nfunc main() {}\n", "README.md", "# hello\n")
	commit("refs/heads/main", 2, "Bob", "Change", "src/server/main.go", "package main\n\nfunc main() { run() }\n", "src/util.go", "package src\n")
	commit("refs/heads/feature/search", 3, "Cleo", "Feature", "x.txt", "x\n", "bin", "a\x00b", "wide.sql", "\xff\xfea\x00\n\x00")
	gitRun(t, script.String(), "-C", dir, "fast-import", "--quiet")
	gitRun(t, "", "-C", dir, "tag", "-a", "-m", "t", "v1.0", "main")
	m := git.Open(filepath.Join(t.TempDir(), "1.git"))
	t.Cleanup(func() { m.Close() })
	if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(dir)}, git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	return &site{mirror: m, repo: &catalog.Repo{ID: 1, Name: "example.org/app", Revisions: []catalog.Revision{{Name: "HEAD"}, {Name: "refs/tags/v1.0"}}}}
}

// ask runs an operation as for another node: request and response are encoded.
func ask[Req, Resp any](t *testing.T, s *site, op operation[Req, Resp], req Req) (*Resp, error) {
	t.Helper()
	net := loop{}
	op.method().Serve(net, func(ctx context.Context, at *readAt[Req]) (*Resp, error) { return op.run(ctx, s, at.Req) })
	return op.method().Ask(t.Context(), net, "self", &readAt[Req]{Req: req})
}

// loop is a network of one node.
type loop map[string]cluster.Handler

func (l loop) Self() string { return "self" }

func (loop) Lacks(string) bool { return false }

func (l loop) Handle(method string, h cluster.Handler) { l[method] = h }

func (l loop) Call(ctx context.Context, _, method string, in []byte) ([]byte, error) {
	return l[method](ctx, cluster.Peer{}, in)
}

func TestSourceAndTree_readBranchesTagsAndCommits(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	for _, ref := range []string{"", "main", "v1.0", "HEAD", "refs/heads/main"} {
		r, err := ask(t, s, sourceOperation, SourceRequest{Ref: ref, Path: "src/server/main.go"})
		if err != nil || string(r.Content) != "package main\n\nfunc main() { run() }\n" || r.Total != 3 || r.Language != "Go" {
			t.Errorf("%q: %+v, %v", ref, r, err)
		}
	}
	r, err := ask(t, s, sourceOperation, SourceRequest{Ref: "HEAD~1", Path: "src/server/main.go", FirstLine: 3, Lines: 1})
	if err != nil || string(r.Content) != "func main() {}\n" || r.FirstLine != 3 || r.Total != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, tt := range []struct {
		paths     []string
		recursive bool
		want      string
	}{
		{[]string{""}, false, "src/ README.md"},
		{[]string{""}, true, "src/(server/(main.go) util.go) README.md"},
		{[]string{"src/server"}, false, "src/(server/(main.go))"},
		{[]string{"", "src"}, false, "src/(server/ util.go) README.md"},
		{[]string{"src/util.go"}, false, "src/(util.go)"},
	} {
		r, err := ask(t, s, treeOperation, TreeRequest{Paths: tt.paths, Recursive: tt.recursive, Max: 100})
		if err != nil {
			t.Errorf("%q: %v", tt.paths, err)
		} else if got := showTree(r.Root.Children); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.paths, got, tt.want)
		}
	}
	if r, err := ask(t, s, treeOperation, TreeRequest{Paths: []string{""}, Recursive: true, Max: 2}); err != nil || !r.Cut {
		t.Errorf("a bounded tree: %+v, %v", r, err)
	}
}

func showTree(nodes []TreeNode) string {
	var parts []string
	for _, n := range nodes {
		s := n.Name
		if n.Type == "tree" {
			s += "/"
		}
		if len(n.Children) > 0 {
			s += "(" + showTree(n.Children) + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

func TestHistory_isReadFromAMirror(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	r, err := ask(t, s, commitsOperation, CommitsRequest{Page: 1, PerPage: 1})
	for err == nil && r.AtLeast { // until the count is there
		r, err = ask(t, s, commitsOperation, CommitsRequest{Page: 1, PerPage: 1})
	}
	if err != nil || len(r.Commits) != 1 || r.Total != 2 || r.Commits[0].Message != "Change" || r.Commits[0].Refs != "HEAD -> main, tag: v1.0" {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = ask(t, s, commitsOperation, CommitsRequest{Page: 1, PerPage: 50, Until: time.Unix(1_700_000_000+90, 0).UTC().Format(time.RFC3339)})
	if err != nil || len(r.Commits) != 1 || r.Commits[0].Body != "the body" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, ref := range []string{"main~1..main", "main~1..", "HEAD~1..v1.0", "v1.0~1..HEAD"} {
		r, err := ask(t, s, commitsOperation, CommitsRequest{Ref: ref, Page: 1, PerPage: 50})
		if err != nil || len(r.Commits) != 1 || r.Total != 1 || r.Commits[0].Message != "Change" {
			t.Errorf("%q: %+v, %v", ref, r, err)
		}
	}
	c, err := ask(t, s, commitOperation, CommitRequest{Ref: "feature/search"})
	if err != nil || c.Message != "Feature" || c.Refs != "feature/search" || len(c.Parents) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	a, err := ask(t, s, authorsOperation, AuthorsRequest{Page: 2, PerPage: 1})
	if err != nil || a.Total != 2 || len(a.Authors) != 1 || a.Authors[0] != (AuthorInfo{"Bob", "bob@example.org", 1}) {
		t.Errorf("%+v, %v", a, err)
	}
	b, err := ask(t, s, branchesOperation, RefsRequest{Page: 1, PerPage: 50})
	if err != nil || b.Total != 2 || b.DefaultBranch != "main" || b.Refs[0].Name != "feature/search" || b.Refs[0].Indexed || !b.Refs[1].Default || !b.Refs[1].Indexed {
		t.Errorf("%+v, %v", b, err)
	}
	if b, err = ask(t, s, branchesOperation, RefsRequest{Query: "SEARCH", Page: 1, PerPage: 50}); err != nil || b.Total != 1 {
		t.Errorf("%+v, %v", b, err)
	}
	if b, err = ask(t, s, tagsOperation, RefsRequest{Page: 1, PerPage: 50}); err != nil || b.Total != 1 || !b.Refs[0].Indexed {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestDiffAndBlame_areReadFromAMirror(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	d, err := ask(t, s, diffOperation, DiffRequest{Base: "HEAD~1", Head: "HEAD"})
	if err != nil || len(d.Files) != 2 || d.Files[0].Hunks[0].Body != " package main\n \n-func main() {}\n+func main() { run() }\n" || d.Files[1].OldPath != "" {
		t.Errorf("%+v, %v", d, err)
	}

	// On request the answer has the message; the difference is the change of one commit.
	for _, tt := range []struct {
		req  DiffRequest
		want string
	}{
		{DiffRequest{Base: "HEAD~1", Head: "HEAD", Message: true}, "Change"},
		{DiffRequest{Base: "HEAD^", Head: "v1.0", Message: true, Stat: true}, "Change"},
		{DiffRequest{Base: "HEAD~1", Head: "HEAD"}, ""},
		{DiffRequest{Base: "HEAD", Head: "HEAD~1", Message: true}, ""},
		{DiffRequest{Base: "HEAD", Head: "HEAD", Message: true}, ""},
	} {
		d, err := ask(t, s, diffOperation, tt.req)
		if err != nil || d.Commit.Message != tt.want {
			t.Fatalf("%+v: %+v, %v", tt.req, d, err)
		}
		// It also has the first tag with the commit.
		if told := d.FirstTag != nil; told != (tt.want != "") || told && *d.FirstTag != (FirstTag{Name: "v1.0"}) {
			t.Errorf("%+v: first in %+v", tt.req, d.FirstTag)
		}
	}

	b, err := ask(t, s, blameOperation, BlameRequest{Path: "src/server/main.go"})
	if err != nil || len(b.Ranges) != 2 || b.Ranges[1].StartLine != 3 || b.Commits[b.Ranges[1].Hash].AuthorName != "Bob" {
		t.Errorf("%+v, %v", b, err)
	}

	// For a few lines the texts and full messages can be requested.
	few := BlameRequest{Path: "src/server/main.go", First: 1, Lines: 1, Texts: true}
	if b, err = ask(t, s, blameOperation, few); err != nil || string(b.Texts) != "package main\n" || b.Total != 3 || b.Commits[b.Ranges[0].Hash].Body != "the body" {
		t.Errorf("%+v, %v", b, err)
	}
	few.Texts = false
	if b, err = ask(t, s, blameOperation, few); err != nil || b.Texts != nil || b.Commits[b.Ranges[0].Hash].Body != "" {
		t.Errorf("%+v, %v", b, err)
	}

	// Blame of a binary file is an error of the caller, not an answer that is too large.
	for _, req := range []BlameRequest{{Path: "bin", Ref: "feature/search"}, {Path: "bin", Ref: "feature/search", First: 1, Lines: 1}} {
		if _, err := ask(t, s, blameOperation, req); !errors.Is(err, call.ErrInvalid) || !strings.Contains(err.Error(), "is a binary file: it has no lines") {
			t.Errorf("blame of a binary file: %v", err)
		}
	}
}

// Lines are only followed in a file that git and Shoal decode alike.
func TestFollowLines_refusesFilesThatGitDecodesOtherwise(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	for path, says := range map[string]string{"bin": "is a binary file: it has no lines", "wide.sql": "is in utf-16le"} {
		if _, err := ask(t, s, traceOperation, TraceRequest{Path: path, Ref: "feature/search", First: 1, Last: 1}); !errors.Is(err, call.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if r, err := ask(t, s, traceOperation, TraceRequest{Path: "x.txt", Ref: "feature/search", First: 1, Last: 1}); err != nil || len(r.Commits) != 1 {
		t.Errorf("a text: %+v, %v", r, err)
	}
}

// The error for a wrong range names the wrong part.
func TestFollowLines_errorNamesTheWrongPartOfTheRange(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	for ref, want := range map[string]string{
		"v1.0...main": `"v1.0...main" has three dots: write "v1.0..main" for the commits that "main" has and "v1.0" has not`,
		"...main":     `write "..main" for the commits that "main" has and "HEAD" has not`,
		"v1.0..mian":  `has no branch, tag or commit "mian"; did you mean "main"?`,
		"v9..main":    `has no branch, tag or commit "v9"`,
		"v1.0..a..b":  `"a..b" is a range of commits, and one is wanted: "a" or "b"`,
		"main..--all": `"--all" is not a valid name`,
	} {
		if _, err := ask(t, s, commitsOperation, CommitsRequest{Ref: ref, Page: 1, PerPage: 50}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", ref, err, want)
		}
		if _, err := ask(t, s, traceOperation, TraceRequest{Ref: ref, Text: "run"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", ref, err, want)
		}
	}
}

// A difference compares the two named revisions, or the second with the merge base.
func TestDiff_canStartAtTheMergeBase(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	back := DiffRequest{Base: "HEAD", Head: "HEAD~1", Stat: true}
	d, err := ask(t, s, diffOperation, back)
	if err != nil || len(d.Files) != 2 || d.Files[1].Status != 'D' {
		t.Errorf("directly: %+v, %v", d, err)
	}

	// If the base contains the head, the difference is empty.
	back.MergeBase = true
	d, err = ask(t, s, diffOperation, back)
	if err != nil || len(d.Files) != 0 || d.BaseCommit != d.HeadCommit {
		t.Errorf("since they parted: %+v, %v", d, err)
	}
	on := DiffRequest{Base: "HEAD~1", Head: "HEAD", MergeBase: true}
	if d, err = ask(t, s, diffOperation, on); err != nil || len(d.Files) != 2 || d.Files[0].Added != 1 {
		t.Errorf("what came: %+v, %v", d, err)
	}

	_, err = ask(t, s, diffOperation, DiffRequest{Base: "HEAD", Head: "feature/search", MergeBase: true})
	if want := `"HEAD" and "feature/search" in repository "example.org/app" have no commit in common`; !errors.Is(err, call.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("nothing in common: %v", err)
	}
}

// A difference has pages, with the total number of files.
func TestDiff_isReturnedInPages(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	for page, want := range map[int]string{1: "src/server/main.go", 2: "src/util.go", 3: ""} {
		d, err := ask(t, s, diffOperation, DiffRequest{Base: "HEAD~1", Head: "HEAD", Page: page, PerPage: 1})
		if err != nil || d.Total != 2 || d.AtLeast || want == "" && len(d.Files) != 0 || want != "" && (len(d.Files) != 1 || d.Files[0].NewPath != want || len(d.Files[0].Hunks) != 1) {
			t.Errorf("page %d: %+v, %v", page, d, err)
		}
	}
	if d, err := ask(t, s, diffOperation, DiffRequest{Base: "HEAD~1", Head: "HEAD"}); err != nil || d.Total != 0 || len(d.Files) != 2 {
		t.Errorf("all: %+v, %v", d, err)
	}

	for _, tt := range []struct {
		req, want DiffRequest
		bad       bool
	}{
		{DiffRequest{Stat: true}, DiffRequest{Stat: true}, false},
		{DiffRequest{Page: 2}, DiffRequest{Page: 2, PerPage: 50}, false},
		{DiffRequest{PerPage: 7}, DiffRequest{Page: 1, PerPage: 7}, false},
		{DiffRequest{PerPage: 101}, DiffRequest{}, true},
		{DiffRequest{Page: -1}, DiffRequest{}, true},
		{DiffRequest{Page: 1, Stat: true}, DiffRequest{}, true},
	} {
		got := tt.req
		if err := got.checkPages(); (err != nil) != tt.bad || err != nil && !errors.Is(err, call.ErrInvalid) || err == nil && got != tt.want {
			t.Errorf("%+v: %+v, %v", tt.req, got, err)
		}
	}
}

// A ref is a branch, a tag or a commit, by any of its names. An unknown one is not found.
func TestRef_mayBeABranchTagOrCommit(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	id := func(ref string) string {
		commit, err := s.mirror.Resolve(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	head, first, side := id("main"), id("main~1"), id("feature/search")
	s.repo.Revisions[0].Commit, s.repo.Revisions[1].Commit = head, head
	for ref, want := range map[string]RefResponse{
		"": {head, RefBranch, "main", true}, "HEAD": {head, RefBranch, "main", true}, "main": {head, RefBranch, "main", true}, "refs/heads/main": {head, RefBranch, "main", true},
		"feature/search": {side, RefBranch, "feature/search", false}, "heads/feature/search": {side, RefBranch, "feature/search", false},
		"v1.0": {head, RefTag, "v1.0", true}, "refs/tags/v1.0": {head, RefTag, "v1.0", true},
		head: {head, RefCommit, head, true}, strings.ToUpper(head[:8]): {head, RefCommit, head, true}, first[:7]: {first, RefCommit, first, false},
		"main~1": {first, RefCommit, first, false}, "v1.0^": {first, RefCommit, first, false},
	} {
		if r, err := ask(t, s, refOperation, RefRequest{Ref: ref}); err != nil || *r != want {
			t.Errorf("%q: %+v, %v, want %+v", ref, r, err, want)
		}
	}

	s.now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	if r, err := ask(t, s, refOperation, RefRequest{Ref: "main@{2025-01-01}"}); err != nil || *r != (RefResponse{head, RefCommit, head, true}) {
		t.Errorf("a time: %+v, %v", r, err)
	}
	for ref, want := range map[string]error{
		"mian": call.ErrNotFound, "0000000": call.ErrNotFound, "main~9": call.ErrNotFound, "mian@{2025-01-01}": call.ErrNotFound,
		"--all": call.ErrRef, "a..b": call.ErrRef, "main@{soon}": call.ErrRef, "main@{1990}": call.ErrRef,
	} {
		_, err := ask(t, s, refOperation, RefRequest{Ref: ref})
		if !errors.Is(err, want) || strings.HasPrefix(ref, "mian") && !strings.Contains(err.Error(), `did you mean "main"?`) {
			t.Errorf("%q: %v, want %v", ref, err, want)
		}
	}
}

func TestMissingRefsAndPaths_areNotFound(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	for _, tt := range []struct {
		ref, path string
		kind      error
		want      string
	}{
		{"search", "x.txt", call.ErrRef, `Repository "example.org/app" has no branch, tag or commit "search"; did you mean "feature/search"?`},
		{"mian", "x", call.ErrRef, `; did you mean "main"?`},
		{"release", "x", call.ErrRef, `; its default branch is "main"`},
		{"v1.1", "x", call.ErrRef, `; did you mean "v1.0"?`},
		{"--upload-pack=x", "x", call.ErrRef, "is not a valid name"},
		{"v1.0..main", "x", call.ErrRef, `is a range of commits, and one is wanted: "v1.0" or "main"`},
		{"v1.0...", "x", call.ErrRef, `is a range of commits, and one is wanted: "v1.0" or "HEAD"`},
		{"", "server/main.go", call.ErrFileNotFound, `; did you mean "src/server/main.go"?`},
		{"", "src/utils.go", call.ErrFileNotFound, `; did you mean "src/util.go"?`},
		{"", "src", call.ErrFileNotFound, `"src" in repository "example.org/app" is a directory, not a file`},
		{"", "../../etc/passwd", call.ErrFileNotFound, "one or two dots"},
		{"", "a\x00b", call.ErrFileNotFound, "not found"},
	} {
		_, err := ask(t, s, sourceOperation, SourceRequest{Ref: tt.ref, Path: tt.path})
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q %q: %v", tt.ref, tt.path, err)
		}
	}
}

func TestDate_isReadInEachFormat(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 31, 12, 30, 0, 0, time.UTC)
	for _, tt := range []struct {
		text string
		end  bool
		want string
	}{
		{"2026-01-02", false, "2026-01-02T00:00:00Z"},
		{"2026-01-02", true, "2026-01-02T23:59:59Z"},
		{"2025", true, "2025-12-31T23:59:59Z"},
		{"2026-01-02T03:04:05+02:00", false, "2026-01-02T01:04:05Z"},
		{"2026-01-02 03:04:05", false, "2026-01-02T03:04:05Z"},
		{"30 days ago", false, "2026-03-01T12:30:00Z"},
		{"2.weeks.ago", false, "2026-03-17T12:30:00Z"},
		{"an hour ago", false, "2026-03-31T11:30:00Z"},
		{"1 Year ago", false, "2025-03-31T12:30:00Z"},
		{"Yesterday", false, "2026-03-30T12:30:00Z"},
		{"last month", false, "2026-03-03T12:30:00Z"},
		{"now", false, "2026-03-31T12:30:00Z"},
		{"today", false, "2026-03-31T00:00:00Z"},
		{"today", true, "2026-03-31T23:59:59Z"},
		{"when pigs fly", false, ""},
		{"--all", false, ""},
		{"9999999999999 days ago", false, ""},
	} {
		got := ""
		if m, ok := parseDate(tt.text, now, tt.end); ok {
			got = m.UTC().Format(time.RFC3339)
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestNearestNames_suggestSimilarPaths(t *testing.T) {
	t.Parallel()
	names := []string{"main", "release/1.0", "release/1.1", "feature/login"}
	for text, want := range map[string][]string{
		"login": {"feature/login"}, "maim": {"main"}, "release": {"release/1.0", "release/1.1"}, "re": {"release/1.0", "release/1.1"}, "zzz": nil, "": nil,
	} {
		if got := nearest(text, names, 2); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestConcurrentReads_aReaderWaitsOnlyForItsOwnReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReaders()
		var leaves []func()
		for range readsAtOnce {
			leave, err := r.enter(t.Context(), catalog.Viewer{KeyID: "a"})
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		if leave, err := r.enter(t.Context(), catalog.Viewer{KeyID: "b"}); err != nil {
			t.Error(err)
		} else {
			leave()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.enter(ctx, catalog.Viewer{KeyID: "a"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beyond the bound: %v", err)
		}
		for _, leave := range leaves {
			leave()
		}
		if len(r.byViewer) != 0 {
			t.Errorf("%d readers are remembered", len(r.byViewer))
		}
	})
}

func TestGitScan_ordersFilesLikeTheIndex(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	scan := func(req ScanRequest) *ScanResponse {
		t.Helper()
		r, err := ask(t, s, scanOperation, req)
		if err != nil {
			t.Fatalf("%+v: %v", req, err)
		}
		return r
	}
	r := scan(ScanRequest{Pattern: `package (main|src)$|hello`, Limit: 10, Ref: "HEAD~0"})
	var got []string
	for _, f := range r.Files {
		got = append(got, fmt.Sprintf("%s:%d:%s", f.Path, f.Lines[0].Number, f.Lines[0].Text))
	}
	if want := "src/server/main.go:1:package main src/util.go:1:package src README.md:1:# hello"; strings.Join(got, " ") != want || r.Found != 3 {
		t.Errorf("got %q of %d, want %q", got, r.Found, want)
	}
	if r = scan(ScanRequest{Pattern: "package", Limit: 1, Paths: in(`\.go$`)}); r.Found != 2 || len(r.Files) != 1 || r.Files[0].Path != "src/server/main.go" {
		t.Errorf("%+v", r)
	}
	if r = scan(ScanRequest{Pattern: "package", Limit: 1, Counts: true}); len(r.Files) != 1 || r.Files[0].Lines != nil || r.Found != 2 || r.Matches != 2 {
		t.Errorf("%+v", r)
	}
	if r = scan(ScanRequest{Pattern: "^$", Limit: 10, Paths: in("^src/server/")}); len(r.Files) != 1 || len(r.Files[0].Lines) != 1 || r.Files[0].Lines[0].Number != 2 {
		t.Errorf("%+v", r)
	}
	if r = scan(ScanRequest{Paths: in(`^src/.*\.go$`), Limit: 10}); r.Found != 2 || r.Files[0].Path != "src/server/main.go" || r.Files[1].Path != "src/util.go" {
		t.Errorf("%+v", r)
	}
}

func TestGitScan_readsOnlyWhatDiffersFromTheIndex(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	head, err := s.mirror.Resolve(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	req := ScanRequest{Pattern: "main|src|hello", Limit: 10, Ref: "HEAD~1", Beside: []catalog.Revision{{Name: "HEAD", Commit: head}, {Name: "gone", Commit: strings.Repeat("0", 40)}}}
	r, err := ask(t, s, scanOperation, req)
	if err != nil || r.Beside != req.Beside[0] || r.Found != 1 || r.Files[0].Path != "src/server/main.go" || strings.Join(r.Without, " ") != "src/server/main.go src/util.go" {
		t.Errorf("%+v, %v", r, err)
	}
	req.Paths = in("^src/server/")
	if r, err = ask(t, s, scanOperation, req); err != nil || strings.Join(r.Without, " ") != "src/server/main.go" {
		t.Errorf("%+v, %v", r, err)
	}
}

func in(expr string) paths.Exprs { return paths.Exprs{Must: []string{expr}} }

// A commit that was written long ago and applied lately, as from a mailing list, is a new commit.
// since and until, the order and the returned date all use the time of the commit.
func TestCommitList_usesTheCommitDateNotTheAuthorDate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "source.git")
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	day := func(month int) time.Time { return time.Date(2020, time.Month(month), 1, 12, 0, 0, 0, time.UTC) }
	var script strings.Builder
	for _, c := range []struct {
		message             string
		authored, committed int // months
	}{{"first", 1, 2}, {"old work", -11, 6}, {"last", 7, 8}} {
		fmt.Fprintf(&script, "commit refs/heads/main\nauthor Ann <a@example.org> %d +0000\ncommitter Bob <b@example.org> %d +0000\ndata %d\n%s\nM 100644 inline a.txt\ndata %d\n%s\n\n",
			day(c.authored).Unix(), day(c.committed).Unix(), len(c.message), c.message, len(c.message), c.message)
	}
	gitRun(t, script.String(), "-C", dir, "fast-import", "--quiet")
	m := git.Open(filepath.Join(t.TempDir(), "1.git"))
	t.Cleanup(func() { m.Close() })
	if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(dir)}, git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &site{mirror: m, repo: &catalog.Repo{ID: 1, Name: "example.org/app"}}

	for _, tt := range []struct{ since, until, want string }{
		{"", "", "last 2020-08, old work 2020-06, first 2020-02"},
		{"2020-05-01T00:00:00Z", "", "last 2020-08, old work 2020-06"},
		{"", "2020-07-01T00:00:00Z", "old work 2020-06, first 2020-02"},
		{"2019-01-01T00:00:00Z", "2019-12-31T00:00:00Z", ""}, // when it was written
	} {
		r, err := ask(t, s, commitsOperation, CommitsRequest{Page: 1, PerPage: 50, Path: "a.txt", Since: tt.since, Until: tt.until})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range r.Commits {
			got = append(got, c.Message+" "+c.Committed.UTC().Format("2006-01"))
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("since %q, until %q: %s, want %s", tt.since, tt.until, text, tt.want)
		}

		// A trace uses the same dates.
		traced, err := ask(t, s, traceOperation, TraceRequest{Path: "a.txt", Expr: ".", Since: tt.since, Until: tt.until, Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, c := range traced.Commits {
			got = append(got, c.Message+" "+c.Committed.UTC().Format("2006-01"))
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("traced since %q, until %q: %s, want %s", tt.since, tt.until, text, tt.want)
		}
	}
}
