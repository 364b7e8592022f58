package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// shoals makes n repositories of similar files, so that most have the same score. Each has a
// number of files with up to five matches each.
func shoals(t *testing.T, dir string, n, files int) (repos []*nodetest.Repo) {
	t.Helper()
	for r := range n {
		tree := map[string]string{}
		for i := range files {
			// Each file has a unique line, because identical files are one document.
			tree[fmt.Sprintf("d%d/cod%03d.txt", i%3, i)] = lines("cod", 1+i%5) + fmt.Sprintf("no %d of %d\n", i, r)
		}
		repos = append(repos, nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprintf("r%d", r)), tree))
	}
	return repos
}

// itemsOf returns every match of an answer in order; of a listing its files or repositories.
func itemsOf(r *search.Response) (all []string) {
	for _, f := range r.Files {
		name := f.Repository + ":" + f.Path
		n := len(all)
		for _, c := range f.Chunks {
			for _, m := range c.Ranges {
				all = append(all, fmt.Sprintf("%s:%d", name, m.Start.Offset))
			}
		}
		for _, m := range f.NameRanges {
			all = append(all, fmt.Sprintf("%s:name:%d", name, m.Start.Offset))
		}
		if len(all) == n {
			all = append(all, name)
		}
	}
	if len(r.Files) == 0 {
		for _, repo := range r.Repositories {
			all = append(all, repo.Name)
		}
	}
	return all
}

// walked requests page after page from alternating nodes, up to the last one.
func walked(t *testing.T, nodes []*nodetest.Node, v catalog.Viewer, req search.Request) (items []string, answers int) {
	t.Helper()
	req.Pages = true
	for {
		r, err := nodes[answers%len(nodes)].Node.Search.Search(t.Context(), v, req)
		if err != nil {
			t.Fatalf("%q, answer %d: %v", req.Query, answers, err)
		}
		items, answers = append(items, itemsOf(r)...), answers+1
		if r.Coverage.Exhaustive() != (r.Next == "") {
			t.Fatalf("%q, answer %d: exhaustive %t, next %q, %+v", req.Query, answers, r.Coverage.Exhaustive(), r.Next, r.Stats)
		}
		if r.Next == "" {
			return items, answers
		}
		if answers > 1000 {
			t.Fatalf("%q does not end", req.Query)
		}
		req.After = r.Next
	}
}

// Pages have every match once, on any node and with any limit.
func TestSearchCursor_pagesHaveEveryMatchOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shoals(t, dir, 4, 90)
	fleet := nodetest.StartFleet(t, 3, nodetest.Config{File: still(dir)})
	for _, n := range fleet.Nodes {
		n.WaitIndexed(4)
	}

	for _, test := range []struct {
		query string
		sizes []int
	}{
		{"cod", []int{1000, 333, 17}},
		{"repo:r1 cod", []int{1, 2, 100}},
		{"repo:r1 file:cod00 cod", []int{1, 3}},
		{"type:file cod", []int{100, 7}},
		{"type:repo cod", []int{1, 3, 4}},
		{"lang:text", []int{50}},
		{"nothing", []int{1}},
	} {
		everything := search.Request{Query: "count:all " + test.query, Matches: search.MaxMatches}
		whole, err := fleet.Nodes[0].Node.Search.Search(t.Context(), catalog.Operator(), everything)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range test.sizes {
			got, answers := walked(t, fleet.Nodes, catalog.Operator(), search.Request{Query: test.query, Matches: size})
			want := itemsOf(whole)
			if least := (len(want) + size - 1) / size; answers < least || answers > least+1 {
				t.Errorf("%q by %d: %d answers for %d", test.query, size, answers, len(want))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q by %d: %d items, want %d", test.query, size, len(got), len(want))
			}
		}
	}

	first, err := fleet.Nodes[0].Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: "cod", Matches: 20, Pages: true})
	if err != nil {
		t.Fatal(err)
	}

	// Each page has the exact total.
	for _, after := range []string{"", first.Next} {
		r, err := fleet.Nodes[1].Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: "cod", Matches: 20, Pages: true, After: after})
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Stats; s.Files != 4*90 || s.TotalMatches != 4*18*15 || s.ActualMatches != 20 {
			t.Errorf("the page after %q counts %+v", after, s)
		}
	}
}

// A search of an unindexed commit has pages too.
func TestSearchCursor_pagesThroughAnUnindexedCommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := shoals(t, dir, 1, 40)[0]
	old := repo.Git("rev-parse", "HEAD")
	repo.Commit(map[string]string{"d0/cod000.txt": "gone\n", "d1/cod001.txt": "gone\n", "d2/new.txt": lines("cod", 2)})
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(1)

	query := "cod count:all rev:" + old
	want := itemsOf(n.Results(query))
	got, answers := walked(t, []*nodetest.Node{n}, catalog.Operator(), search.Request{Query: query, Matches: 13})
	if !slices.Equal(got, want) || answers < 5 || len(want) != 8*15 {
		t.Errorf("%d items in %d answers, want %d", len(got), answers, len(want))
	}
}

// Pages only continue while the order is the same.
func TestSearchCursor_endsWhenTheIndexChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repos := shoals(t, dir, 2, 30)
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"settings": {"reindexIntervalMs": 300}, "connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir)})
	n.WaitIndexed(2)

	begin := func(query string) search.Request {
		t.Helper()
		req := search.Request{Query: query, Matches: 10, Pages: true}
		r, err := n.Node.Search.Search(t.Context(), catalog.Operator(), req)
		if err != nil || r.Next == "" {
			t.Fatalf("%q: next %q, %v", query, r.Next, err)
		}
		req.After = r.Next
		return req
	}
	all, one := begin("cod"), begin("repo:r1 cod")
	if _, err := n.Node.Search.Search(t.Context(), catalog.Operator(), all); err != nil {
		t.Fatalf("nothing has changed: %v", err)
	}

	repos[0].Commit(map[string]string{"d0/cod000.txt": lines("cod", 9) + "func cod\n", "new.txt": "a whale\n"})
	n.Wait("the new commit to be indexed", func() error {
		if found := n.Find("whale"); len(found) == 0 {
			return errors.New("it is not")
		}
		return nil
	})

	_, err := n.Node.Search.Search(t.Context(), catalog.Operator(), all)
	if kind := call.KindOf(err); !errors.Is(err, call.ErrChanged) || kind.Status != 409 || !strings.Contains(err.Error(), "Start again") {
		t.Errorf("after a change: %v", err)
	}
	if r, err := n.Node.Search.Search(t.Context(), catalog.Operator(), one); err != nil || len(r.Files) == 0 {
		t.Errorf("after a change of another repository: %v", err)
	}
}

// A cursor fits one query; count:, timeout: and the size of the page may differ.
func TestSearchCursor_isRefusedForAnotherQuery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shoals(t, dir, 1, 30)
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(1)
	req := search.Request{Query: "cod", Matches: 10, Pages: true}
	r, err := n.Node.Search.Search(t.Context(), catalog.Operator(), req)
	if err != nil {
		t.Fatal(err)
	}

	ask := func(change func(*search.Request)) error {
		again := req
		again.After = r.Next
		change(&again)
		_, err := n.Node.Search.Search(t.Context(), catalog.Operator(), again)
		return err
	}
	for name, test := range map[string]struct {
		change func(*search.Request)
		kind   error
		says   string
	}{
		"as it is":     {func(*search.Request) {}, nil, ""},
		"other size":   {func(r *search.Request) { r.Matches, r.ContextLines, r.Whole = 3, 2, true }, nil, ""},
		"other time":   {func(r *search.Request) { r.Query = "timeout:1m cod count:all" }, nil, ""},
		"no place":     {func(r *search.Request) { r.After = "" }, nil, ""},
		"other query":  {func(r *search.Request) { r.Query = "lines" }, call.ErrInvalid, "another query"},
		"other toggle": {func(r *search.Request) { r.CaseSensitive = true }, call.ErrInvalid, "another query"},
		"other type":   {func(r *search.Request) { r.Query = "cod type:file" }, call.ErrInvalid, "another query"},
		"cut":          {func(r *search.Request) { r.After = r.After[:20] }, call.ErrInvalid, "not the `next`"},
		"no base64":    {func(r *search.Request) { r.After = "%" }, call.ErrInvalid, "not the `next`"},
		"too long":     {func(r *search.Request) { r.After = strings.Repeat("A", 1<<20) }, call.ErrInvalid, "not the `next`"},
		"out of time":  {func(r *search.Request) { r.Query = "cod timeout:1ns" }, call.ErrIncomplete, "same `after`"},
		"bad query":    {func(r *search.Request) { r.Query = "cod case:maybe" }, call.ErrQuery, ""},
		"no pages":     {func(r *search.Request) { r.Pages = false }, call.ErrInvalid, "needs pages"},
		"best lines":   {func(r *search.Request) { r.PerFile = 3 }, call.ErrInvalid, "best lines"},
	} {
		err := ask(test.change)
		if !errors.Is(err, test.kind) || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %v", name, err, test.kind)
		}
	}

	// The first page has the results in time, and no cursor.
	late, err := n.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: "cod timeout:1ns", Matches: 10, Pages: true})
	if err != nil || late.Next != "" || late.Coverage.Exhaustive() {
		t.Errorf("an answer that lacks something: %+v, %v", late, err)
	}

	_, err = n.Node.Search.StreamSearch(t.Context(), catalog.Operator(), search.Request{Query: "cod", Pages: true, After: r.Next}, func(*search.Chunk) error { return nil })
	if !errors.Is(err, call.ErrInvalid) {
		t.Errorf("a stream goes on: %v", err)
	}
}

// With another viewer's cursor, a viewer still sees only permitted results. Viewers with the same
// permissions can share cursors.
func TestSearchCursor_ofAnotherViewerShowsNothingHidden(t *testing.T) {
	t.Parallel()
	n := guarded(t, "app", "bay", "zhidden")
	viewer := func(name string, repos ...string) catalog.Viewer {
		t.Helper()
		_, key := user(t, n, name, catalog.RoleMember)
		if _, err := n.People.Grant(context.Background(), account.Operator(), account.GrantRequest{User: name, Add: repos}); err != nil {
			t.Fatal(err)
		}
		v, err := n.Keys.Authenticate(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ann, bob := viewer("ann@example.com", "local/app", "local/bay"), viewer("bob@example.com", "local/app", "local/bay")

	for _, query := range []string{"shark", "type:repo shark", "repo:app shark", "type:file shark"} {
		want, _ := walked(t, []*nodetest.Node{n}, ann, search.Request{Query: query, Matches: 1})
		for _, item := range want {
			if strings.Contains(item, "zhidden") {
				t.Fatalf("%q shows %s", query, item)
			}
		}

		req := search.Request{Query: query, Matches: 1, Pages: true}
		next := func(v catalog.Viewer) string {
			t.Helper()
			r, err := n.Node.Search.Search(t.Context(), v, req)
			if err != nil || r.Next == "" {
				t.Fatalf("%q: %v", query, err)
			}
			return r.Next
		}
		operators, anns := next(catalog.Operator()), next(ann)

		req.After = anns
		if r, err := n.Node.Search.Search(t.Context(), bob, req); err != nil || !slices.Equal(itemsOf(r), want[1:2]) {
			t.Errorf("%q: bob goes on from ann: %v, %v", query, r, err)
		}
		req.After = operators
		r, err := n.Node.Search.Search(t.Context(), ann, req)
		if hidden := query != "repo:app shark"; hidden != errors.Is(err, call.ErrChanged) {
			t.Errorf("%q: ann goes on from the operator: %v, %v", query, r, err)
		}
	}
}
