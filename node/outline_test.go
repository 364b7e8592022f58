package node_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// traced starts a node with a repository of three commits.
func traced(t *testing.T) *nodetest.Node {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "app")
	r := nodetest.NewRepo(t, dir, map[string]string{"src/a.go": "package a\n\nfunc One() int {\n\treturn 1\n}\n", "data.bin": "\x00"})
	r.Commit(map[string]string{"src/a.go": "package a\n\nfunc One() int {\n\treturn 2\n}\n\ntype T struct{ X int }\n"})
	r.Commit(map[string]string{"src/b.go": "package a\n\nfunc (t *T) Two(s string) {\n}\n"})
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"app": {"type": "git", "url": "file://%s"}}}`, dir),
		Edit: func(o *node.Options) { o.Ctags = "" },
	})
	n.WaitIndexed(1)
	return n
}

func TestOutline_hasTheEndOfEachDefinition(t *testing.T) {
	t.Parallel()
	n := traced(t)
	r, err := n.Browse.Outline(t.Context(), catalog.Operator(), browse.OutlineRequest{Repo: "local/app", Paths: []string{"src", "data.bin"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Files {
		got = append(got, fmt.Sprintf("%s %s %d %t", f.Path, f.Language, f.Lines, f.Binary))
		for _, s := range f.Symbols {
			got = append(got, fmt.Sprintf(" %d-%d %s %s%s of %q", s.First, s.Last, s.Kind, s.Name, s.Signature, s.ParentName))
		}
	}
	want := []string{
		"src/a.go Go 7 false", ` 1-1 package a of ""`, ` 3-5 function One() of "a"`, ` 7-7 struct T of "a"`, ` 7-7 member X of "a.T"`,
		"src/b.go Go 4 false", ` 1-1 package a of ""`, ` 3-4 function Two(s string) of "a.T"`,
		"data.bin  1 true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	old, err := n.Browse.Outline(t.Context(), catalog.Operator(), browse.OutlineRequest{Repo: "local/app", Ref: "HEAD~2", Paths: []string{"src/a.go"}})
	if err != nil || len(old.Files) != 1 || len(old.Files[0].Symbols) != 2 {
		t.Errorf("an old commit: %+v, %v", old, err)
	}
	if _, err := n.Browse.Outline(t.Context(), catalog.Operator(), browse.OutlineRequest{Repo: "local/app", Paths: []string{"src/c.go"}}); !errors.Is(err, call.ErrFileNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestTraceLines_findsTheCommitThatChangedThem(t *testing.T) {
	t.Parallel()
	n := traced(t)
	for _, req := range []browse.TraceRequest{
		{Text: "return 2"}, {Expr: `return\s+2`}, {Path: "src/a.go", First: 7, Last: 7},
	} {
		req.Repo = "local/app"
		r, err := n.Browse.Trace(t.Context(), catalog.Operator(), req)
		if err != nil || len(r.Commits) != 1 || r.AtLeast || !slices.Equal(r.Paths[r.Commits[0].Hash], []string{"src/a.go"}) || r.Commits[0].Committed.IsZero() {
			t.Errorf("%+v: %+v, %v", req, r, err)
		}
	}
	for _, req := range []browse.TraceRequest{
		{Path: "src/a.go", First: 8, Last: 9}, {Expr: "a("}, {Text: "x", Limit: 101},
	} {
		req.Repo = "local/app"
		if _, err := n.Browse.Trace(t.Context(), catalog.Operator(), req); !errors.Is(err, call.ErrInvalid) {
			t.Errorf("%+v: %v", req, err)
		}
	}
}

func TestBlame_canBeLimitedToSomeLines(t *testing.T) {
	t.Parallel()
	n := traced(t)
	r, err := n.Browse.Blame(t.Context(), catalog.Operator(), browse.BlameRequest{Repo: "local/app", Path: "src/a.go", First: 3, Lines: 500})
	if err != nil || r.Total != 7 || r.Late || len(r.Ranges) != 4 || r.Ranges[0].StartLine != 3 || r.Ranges[1].StartLine != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := n.Browse.Blame(t.Context(), catalog.Operator(), browse.BlameRequest{Repo: "local/app", Path: "src/a.go", First: 30, Lines: 5}); err != nil || r.Total != 7 || len(r.Ranges) != 0 {
		t.Errorf("behind the end: %+v, %v", r, err)
	}
	if _, err := n.Browse.Blame(t.Context(), catalog.Operator(), browse.BlameRequest{Repo: "local/app", Path: "data.bin", First: 1, Lines: 5}); !errors.Is(err, call.ErrInvalid) {
		t.Errorf("a binary file: %v", err)
	}
}
