package node_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/change"
)

// commitsOf lists an answer: commits by repository and subject, and the hunks of their files.
func commitsOf(r *search.CommitsResponse) (all []string) {
	for _, c := range r.Commits {
		if len(c.Files) == 0 {
			all = append(all, c.Repository+" "+c.Message)
		}
		for _, f := range c.Files {
			text := c.Repository + " " + c.Message + " " + f.Path
			for _, h := range f.Hunks {
				text += fmt.Sprintf(" %d,%d %q", h.Old.Start, h.New.Start, h.Body)
			}
			all = append(all, text)
		}
	}
	return all
}

// Commits of all repositories are found on every node, by what they changed; a push is found
// once it is indexed, and an answer without it does not claim to be whole.
func TestCommitSearch_findsCommitsOnEveryNode(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(root, "app"), map[string]string{"a.go": "package a\n\nvar kraken = 1\n"})
	lib := nodetest.NewRepo(t, filepath.Join(root, "lib"), map[string]string{"lib.py": "kraken = 2\nwhale = 3\n"})
	lib.Commit(map[string]string{"lib.py": "whale = 3\n"})
	fleet := nodetest.StartFleet(t, 3, nodetest.Config{File: still(root), Edit: func(o *node.Options) { o.History = change.Bound{All: true} }})
	for _, n := range fleet.Nodes {
		n.WaitIndexed(2)
		n.WaitHistory()
	}
	find := func(n *nodetest.Node, query string) *search.CommitsResponse {
		t.Helper()
		r, err := n.Node.Search.SearchCommits(t.Context(), catalog.Operator(), search.Request{Query: query})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return r
	}

	for _, n := range fleet.Nodes {
		r := find(n, "type:diff kraken")
		if got := commitsOf(r); len(got) != 3 || !r.Coverage.Complete() || r.Total != 3 {
			t.Errorf("%q, complete %t, %d in all", got, r.Coverage.Complete(), r.Total)
		}
		r = find(n, "type:diff removed:kraken lang:python")
		if got := commitsOf(r); len(got) != 1 || !slices.Equal(got, []string{fmt.Sprintf("local/lib %s lib.py 1,0 %q", r.Commits[0].Message, "-kraken = 2\n")}) {
			t.Errorf("%q", got)
		}
		if r := find(n, "type:diff kraken count:1"); r.Total != 3 || len(r.Commits) != 1 || r.Coverage.Worst() != coverage.Limit {
			t.Errorf("with a limit: %+v", r)
		}
	}

	for _, req := range []search.Request{{Query: "type:commit", Facets: true}, {Query: "type:commit", Best: true}, {Query: "type:diff kraken"}} {
		whole, err := fleet.Nodes[0].Node.Search.SearchCommits(t.Context(), catalog.Operator(), req)
		if err != nil {
			t.Fatal(err)
		}
		req.Matches = 1
		var paged []string
		for i := range 10 {
			r, err := fleet.Nodes[i%3].Node.Search.SearchCommits(t.Context(), catalog.Operator(), req)
			if err != nil {
				t.Fatal(err)
			}
			if paged, req.After = append(paged, commitsOf(r)...), r.Next; req.After == "" {
				break
			}
			if r.Total != whole.Total || r.Coverage.Worst() != coverage.Limit {
				t.Errorf("%s: a page of %d has %d, %v", req.Query, whole.Total, r.Total, r.Coverage.Gaps())
			}
		}
		if !slices.Equal(paged, commitsOf(whole)) {
			t.Errorf("%s: pages have %q, not %q", req.Query, paged, commitsOf(whole))
		}
		if f := whole.Facets; req.Facets && (!f.Exact || len(f.Months) == 0 || !slices.Equal(f.Repositories, []search.FacetValue{{Value: "local/lib", Files: 2}, {Value: "local/app", Files: 1}})) {
			t.Errorf("%+v", f)
		}
	}
	first := find(fleet.Nodes[0], "type:commit count:1").Next
	for query, best := range map[string]bool{"type:commit": true, "type:diff": false} {
		if _, err := fleet.Nodes[0].Node.Search.SearchCommits(t.Context(), catalog.Operator(), search.Request{Query: query, Best: best, After: first}); !errors.Is(err, call.ErrInvalid) {
			t.Errorf("a place in another answer: %v", err)
		}
	}

	// After a push every answer either has it or says that something is missing.
	app.Commit(map[string]string{"a.go": "package a\n"})
	for id := range catalog.RepoID(2) {
		if _, err := fleet.Nodes[0].Node.Operate.Reindex(t.Context(), account.Operator(), id+1); err != nil {
			t.Fatal(err)
		}
	}
	fleet.Nodes[1].Wait("the push", func() error {
		indexed := fleet.Nodes[1].Find("kraken repo:app")
		r := find(fleet.Nodes[1], "type:diff removed:kraken repo:app")
		if len(indexed) == 0 && r.Total == 0 && r.Coverage.Exhaustive() {
			t.Error("an answer without the push claims to be whole")
		}
		if r.Total != 1 || !r.Coverage.Exhaustive() {
			return fmt.Errorf("%d found, %+v", r.Total, r.Coverage.Gaps())
		}
		return nil
	})
}

// What is not indexed of one repository is read from git: a bound leaves out the older commits, and off all.
// Of several repositories the answer names what it lacks.
func TestCommitSearch_readsFromGitWhatIsNotIndexed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(root, "app"), map[string]string{"a.go": "kraken\n"})
	for i := range 5 {
		app.Commit(map[string]string{"a.go": fmt.Sprintf("kraken %d\n", i)})
	}
	nodetest.NewRepo(t, filepath.Join(root, "lib"), map[string]string{"b.go": "kraken\n"})
	for _, bound := range []change.Bound{{}, {Commits: 2}} {
		fleet := nodetest.StartFleet(t, 1, nodetest.Config{File: still(root), Edit: func(o *node.Options) { o.History = bound }})
		n := fleet.Nodes[0]
		n.WaitIndexed(2)
		if !bound.Off() {
			n.WaitHistory()
		}
		find := func(query string) *search.CommitsResponse {
			t.Helper()
			r, err := n.Node.Search.SearchCommits(t.Context(), catalog.Operator(), search.Request{Query: query})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := find("type:diff added:kraken repo:app"); r.Total != 6 || !r.Coverage.Exhaustive() {
			t.Errorf("with %s: %d are found, %v", bound, r.Total, r.Uncovered)
		}
		r := find("type:diff added:kraken")
		if r.Coverage.Exhaustive() || len(r.Uncovered) == 0 || r.Uncovered[0].Repository != "local/app" || !bound.Off() && r.Uncovered[0].Before.IsZero() {
			t.Errorf("with %s: %d are found, %+v", bound, r.Total, r.Uncovered)
		}
	}
}

// A stream sends what a search answers, in its order, also more than one search may return.
func TestCommitStream_sendsAllCommitsInOrder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(root, "app"), map[string]string{"a.go": "kraken\n"})
	for i := range 30 {
		app.Commit(map[string]string{"a.go": fmt.Sprintf("kraken %d\n", i)})
	}
	n := nodetest.StartFleet(t, 1, nodetest.Config{File: still(root), Edit: func(o *node.Options) { o.History = change.Bound{All: true} }}).Nodes[0]
	n.WaitIndexed(1)
	n.WaitHistory()
	for _, query := range []string{"type:commit", "type:diff kraken", "type:diff kraken count:25", "type:commit count:all"} {
		whole, err := n.Node.Search.SearchCommits(t.Context(), catalog.Operator(), search.Request{Query: query, Matches: 1000})
		if err != nil {
			t.Fatal(err)
		}
		var parts search.CommitsResponse
		end, err := n.Node.Search.StreamCommits(t.Context(), catalog.Operator(), search.Request{Query: query, Matches: 1000, Facets: true}, func(part []search.FoundCommit) error {
			parts.Commits = append(parts.Commits, part...)
			return nil
		})
		if err != nil || !slices.Equal(commitsOf(&parts), commitsOf(whole)) || end.Total != whole.Total || end.Coverage.Exhaustive() != whole.Coverage.Exhaustive() || end.Facets == nil {
			t.Errorf("%s: %d of %d commits, %v, %+v", query, len(parts.Commits), len(whole.Commits), err, end)
		}
	}
}

// A rule leaves repositories out, deletes what is indexed of them, and takes them in again.
func TestHistoryRules_leaveOutAndTakeIn(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"app", "lib"} {
		nodetest.NewRepo(t, filepath.Join(root, name), map[string]string{"a.go": "kraken\n"})
	}
	n := nodetest.StartFleet(t, 1, nodetest.Config{File: still(root), Edit: func(o *node.Options) { o.History = change.Bound{All: true} }}).Nodes[0]
	n.WaitIndexed(2)
	n.WaitHistory()
	set := func(req operate.HistoryRequest, rules, covered, excluded int) {
		t.Helper()
		r, err := n.Node.Operate.SetHistory(t.Context(), account.Operator(), req)
		if err != nil || len(r.Rules) != rules {
			t.Fatalf("%+v: %+v, %v", req, r, err)
		}
		n.Wait("the rule", func() error {
			if h := n.Status().Storage.History; h.Covered != covered || h.Excluded != excluded || h.Commits != covered {
				return fmt.Errorf("%+v", h)
			}
			return nil
		})
	}
	set(operate.HistoryRequest{Glob: "local/a*"}, 1, 1, 1)
	r, err := n.Node.Search.SearchCommits(t.Context(), catalog.Operator(), search.Request{Query: "type:diff kraken"})
	if err != nil || r.Total != 1 || len(r.Uncovered) != 1 || r.Uncovered[0].Repository != "local/app" {
		t.Errorf("%+v, %v", r, err)
	}
	set(operate.HistoryRequest{Glob: "local/app", Include: true}, 2, 2, 0)
	set(operate.HistoryRequest{Glob: "local/app", Remove: true}, 1, 1, 1)
	set(operate.HistoryRequest{Glob: "local/a*", Remove: true}, 0, 2, 0)
	if _, err := n.Node.Operate.SetHistory(t.Context(), account.Operator(), operate.HistoryRequest{Glob: "local/a*", Remove: true}); !errors.Is(err, call.ErrNotFound) {
		t.Errorf("a rule that is not there: %v", err)
	}
}
