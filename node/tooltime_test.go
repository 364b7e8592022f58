package node_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

// With no time at all each search of a tool answers that it ran out of time and may be
// incomplete.
func TestToolSearches_sayThatTheyRanOutOfTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"heron.go": "package heron\n\nfunc Heron() { Heron() }\n"})
	for _, tt := range []struct {
		name string
		time time.Duration
		want coverage.Kind
	}{
		{"with time enough", 0, ""},
		{"with no time", time.Nanosecond, coverage.Late},
	} {
		n := nodetest.Start(t, nodetest.Config{File: still(dir), Edit: func(o *node.Options) { o.ToolTime = tt.time }})
		n.WaitIndexed(1)

		for name, ask := range map[string]func() (coverage.Coverage, error){
			"grep": func() (coverage.Coverage, error) {
				r, err := n.Search.Grep(t.Context(), catalog.Operator(), search.GrepRequest{Pattern: "(?s).*"})
				return cutOf(r, err, func() coverage.Coverage { return r.Coverage })
			},
			"grep in one repository": func() (coverage.Coverage, error) {
				r, err := n.Search.Grep(t.Context(), catalog.Operator(), search.GrepRequest{Pattern: "heron", Repo: "local/app"})
				return cutOf(r, err, func() coverage.Coverage { return r.Coverage })
			},
			"glob": func() (coverage.Coverage, error) {
				r, err := n.Search.Glob(t.Context(), catalog.Operator(), search.GlobRequest{Pattern: "**/*.go"})
				return cutOf(r, err, func() coverage.Coverage { return r.Coverage })
			},
			"definitions": func() (coverage.Coverage, error) {
				r, err := n.Search.Definitions(t.Context(), catalog.Operator(), symbols.SymbolRequest{Symbol: "Heron"})
				return cutOf(r, err, func() coverage.Coverage { return r.Coverage })
			},
			"references": func() (coverage.Coverage, error) {
				r, err := n.Search.References(t.Context(), catalog.Operator(), symbols.SymbolRequest{Symbol: "Heron"})
				return cutOf(r, err, func() coverage.Coverage { return r.Coverage })
			},
			"search": func() (coverage.Coverage, error) {
				r, err := n.Search.Ranked(t.Context(), catalog.Operator(), search.RankedRequest{Query: "heron package", Limit: 10})
				return cutOf(r, err, func() coverage.Coverage { return r.Coverage })
			},
		} {
			cut, err := ask()
			if err != nil {
				t.Errorf("%s, %s: %v", name, tt.name, err)
			}
			// There is no ctags here, so symbols are missing.
			if cut.Worst() != tt.want && !(tt.want == "" && cut.Worst() == coverage.Symbols) {
				t.Errorf("%s, %s: cut for %q, want %q", name, tt.name, cut.Worst(), tt.want)
			}
		}
	}
}

// cutOf returns the coverage of an answer if there was no error.
func cutOf[R any](r *R, err error, cut func() coverage.Coverage) (coverage.Coverage, error) {
	if err != nil {
		return coverage.Coverage{}, err
	}
	return cut(), nil
}
