package suggest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/query"
)

// fake is a node with two repositories. A guest sees one of them.
type fake struct {
	symbols.Searcher
	browse.Reader
	trees int
}

func (f *fake) Repos(_ context.Context, v catalog.Viewer, req browse.ReposRequest) (*browse.ReposResponse, error) {
	r := &browse.ReposResponse{}
	for _, name := range []string{"acme/app", "acme/secret"} {
		if strings.Contains(name, req.Query) && (v.All || name == "acme/app") {
			r.Repos = append(r.Repos, browse.RepoInfo{Name: name, Revisions: []browse.RevisionInfo{{Name: "HEAD"}, {Name: "refs/heads/main"}}})
		}
	}
	r.Total = len(r.Repos)
	return r, nil
}

func (f *fake) Repo(ctx context.Context, v catalog.Viewer, name string) (*browse.RepoInfo, error) {
	if r, _ := f.Repos(ctx, v, browse.ReposRequest{Query: name}); len(r.Repos) == 1 && r.Repos[0].Name == name {
		return &r.Repos[0], nil
	}
	return nil, fmt.Errorf("no such repository")
}

func (f *fake) Source(_ context.Context, v catalog.Viewer, req browse.SourceRequest) (*browse.SourceResponse, error) {
	if req.Repo == "acme/secret" && !v.All || req.Path != "cmd/main.go" || req.Ref != "" && req.Ref != "release/1" {
		return nil, fmt.Errorf("no such file")
	}
	return &browse.SourceResponse{Content: []byte("func main() {\n"), Language: "Go", Total: 20}, nil
}

func (f *fake) Search(_ context.Context, _ catalog.Viewer, req search.Request) (*search.Response, error) {
	if _, err := query.Parse(req.Query, query.Options{}); err != nil {
		return nil, err
	}
	r := &search.Response{Files: []search.File{{Repository: "acme/app", Path: "cmd/main.go"}}}
	if strings.Contains(req.Query, " file:") || !strings.Contains(req.Query, "type:file") {
		return r, nil
	}
	r.Files = nil
	for _, name := range []string{"Go", "C", "GraphQL", "Erlang", "Objective-C", "Objective-C++", "Emacs Lisp"} {
		if !strings.Contains(req.Query, "lang:") || strings.HasSuffix(req.Query, " lang:"+languageValue(name)) {
			r.Files = append(r.Files, search.File{Repository: "acme/app", Path: "x", Language: name})
		}
	}
	return r, nil
}

func (f *fake) Definitions(_ context.Context, _ catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	return &symbols.SymbolResponse{Coverage: coverage.Of(coverage.Parts, 1, 1), Commits: map[string]string{req.Repo: "c0ffee"}, Files: []symbols.SymbolFile{{Path: "greet.go", Matches: []symbols.SymbolMatch{{Name: req.Symbol + "ing", Kind: "func"}}}}}, nil
}

func (f *fake) Tree(context.Context, catalog.Viewer, browse.TreeRequest) (*browse.TreeResponse, error) {
	f.trees++
	blob := func(path string) browse.TreeNode { return browse.TreeNode{Type: "blob", Path: path} }
	return &browse.TreeResponse{Root: browse.TreeNode{Type: "tree", Children: []browse.TreeNode{
		{Type: "tree", Path: "api", Children: []browse.TreeNode{blob("api/routes.go"), blob("api/routes_test.go")}}, blob("rotten/gone.txt"), blob("README.md"), blob("docs/Übersicht.md"),
	}}}, nil
}

func (f *fake) Commit(_ context.Context, v catalog.Viewer, req browse.CommitRequest) (*browse.CommitInfo, error) {
	if req.Repo == "acme/secret" && !v.All {
		return nil, fmt.Errorf("no such repository")
	}
	return &browse.CommitInfo{Hash: "c0ffee"}, nil
}

func (f *fake) Branches(_ context.Context, _ catalog.Viewer, req browse.RefsRequest) (*browse.RefsResponse, error) {
	return &browse.RefsResponse{Refs: []browse.RefInfo{{Name: "main", Indexed: true}, {Name: "feature/x"}}}, nil
}

func (f *fake) Tags(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error) {
	return &browse.RefsResponse{}, nil
}

func suggester(f *fake) *Suggester {
	return New(Deps{Search: f, Browse: f, Within: Within, Contexts: func(context.Context, catalog.Viewer) ([]Context, error) {
		return []Context{{"web", "the pages"}, {"infra", "the rest"}}, nil
	}})
}

func TestQueryCompletion_offersOnlyQueriesThatParse(t *testing.T) {
	t.Parallel()
	s := suggester(&fake{})
	for _, c := range []struct{ text, want string }{ // | is the cursor
		{"re|", "repo: rev: reposet:"},
		{"fo|", `fork:`},
		{"x case:|", "yes no auto"},
		{"lang:gr|", "GraphQL"},
		{"lang:c|", "C"},
		{"repo:ac| x", "acme/app"},
		{"-r:app|", "acme/app"},
		{"repo:^acme/app$ rev:|", "* main feature/x"},
		{"rev:ma|", "main"},
		{"context:in|", "infra"},
		{"(file:ma|", "cmd/main.go"},
		{"sym:Greet|", "Greeting"},
		{`"re|`, ""},
		{`x "a b" ty|`, "type:"},
	} {
		before, after, _ := strings.Cut(c.text, "|")
		got, err := s.Complete(t.Context(), catalog.Guest(), before+after, len(before))
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, g := range got {
			labels = append(labels, g.Label)
			whole := before + after
			whole = whole[:g.Start] + g.Insert + whole[g.End:]
			if _, err := query.Parse(strings.TrimSuffix(strings.TrimLeft(whole, "("), ")"), query.Options{}); err != nil && g.Kind != Filter && g.Kind != ContextOf {
				t.Errorf("%s: %q makes a bad query: %v", c.text, whole, err)
			}
		}
		for _, want := range strings.Fields(c.want) {
			if !slices.Contains(labels, want) {
				t.Errorf("%s: %q lacks %q", c.text, labels, want)
			}
		}
		if c.want == "" && len(labels) > 0 {
			t.Errorf("%s: %q, want nothing", c.text, labels)
		}
		if slices.Contains(labels, "acme/secret") {
			t.Errorf("%s: a hidden repository is suggested", c.text)
		}
	}
	if _, err := s.Complete(t.Context(), catalog.Guest(), "x", 2); err == nil {
		t.Error("a cursor behind the end is taken")
	}
}

func TestFileSuggestions_matchByTheirLetters(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := suggester(f)
	for _, c := range []struct{ query, want string }{
		{"routes", "api/routes.go"}, {"artest", "api/routes_test.go"}, {"routesgo", "api/routes.go"}, {"readme", "README.md"}, {"Über", "docs/Übersicht.md"}, {"gone", "rotten/gone.txt"},
	} {
		r, err := s.Files(t.Context(), catalog.Guest(), FilesRequest{Repo: "acme/app", Query: c.query})
		if err != nil || len(r.Paths) == 0 || r.Paths[0].Path != c.want {
			t.Errorf("%s: %+v, %v; want %s first", c.query, r, err, c.want)
		}
	}
	if f.trees != 1 {
		t.Errorf("the tree of one commit was read %d times", f.trees)
	}
	if r, _ := s.Files(t.Context(), catalog.Guest(), FilesRequest{Repo: "acme/app", Query: "rgo"}); !slices.Equal(r.Paths[0].At, []int{4, 11, 12}) && len(r.Paths[0].At) != 3 {
		t.Errorf("places %v", r.Paths[0].At)
	}

	// The list cached for one viewer is not shown to another without access.
	if _, err := s.Files(t.Context(), catalog.Operator(), FilesRequest{Repo: "acme/secret"}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Files(t.Context(), catalog.Guest(), FilesRequest{Repo: "acme/secret"}); err == nil {
		t.Errorf("a guest sees %+v", r)
	}
}

// Symbols of hidden repositories are not found, and bad requests are refused.
func TestSymbolSuggestions_hideHiddenRepositories(t *testing.T) {
	t.Parallel()
	s := suggester(&fake{})
	r, err := s.Symbols(t.Context(), catalog.Guest(), SymbolsRequest{Repo: "acme/app", Query: "Greet"})
	if err != nil || len(r.Symbols) != 1 || r.Symbols[0].Name != "Greeting" || r.Symbols[0].Path != "greet.go" || r.Commit != "c0ffee" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, req := range []SymbolsRequest{
		{Repo: "acme/secret", Query: "Greet"}, {Repo: "acme/app", Query: " "}, {Repo: "acme/app", Query: strings.Repeat("a", MaxName+1)}, {Repo: "acme/app", Query: "a", Limit: MaxSymbols + 1},
	} {
		if r, err := s.Symbols(t.Context(), catalog.Guest(), req); err == nil {
			t.Errorf("%.60v: %+v", req, r)
		}
	}
}
