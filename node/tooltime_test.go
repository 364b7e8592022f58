package node_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// TestSearchesOfToolsEndInTime: with no time at all each of them answers, says that
// it ran out of time, and does not take what it has for the whole.
func TestSearchesOfToolsEndInTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"heron.go": "package heron\n\nfunc Heron() { Heron() }\n"})
	for _, tt := range []struct {
		name string
		time time.Duration
		want search.CutReason
	}{
		{"with time enough", 0, ""},
		{"with no time", time.Nanosecond, search.CutTime},
	} {
		n := nodetest.Start(t, nodetest.Config{File: still(dir), Edit: func(o *node.Options) { o.ToolTime = tt.time }})
		n.WaitIndexed(1)

		for name, ask := range map[string]func() (search.Cut, error){
			"grep": func() (search.Cut, error) {
				r, err := n.Grep(t.Context(), catalog.Operator(), search.GrepRequest{Pattern: "(?s).*"})
				return cutOf(r, err, func() search.Cut { return r.Cut })
			},
			"grep in one repository": func() (search.Cut, error) {
				r, err := n.Grep(t.Context(), catalog.Operator(), search.GrepRequest{Pattern: "heron", Repo: "local/app"})
				return cutOf(r, err, func() search.Cut { return r.Cut })
			},
			"glob": func() (search.Cut, error) {
				r, err := n.Glob(t.Context(), catalog.Operator(), search.GlobRequest{Pattern: "**/*.go"})
				return cutOf(r, err, func() search.Cut { return r.Cut })
			},
			"definitions": func() (search.Cut, error) {
				r, err := n.Definitions(t.Context(), catalog.Operator(), search.SymbolRequest{Symbol: "Heron"})
				return cutOf(r, err, func() search.Cut { return r.Cut })
			},
			"references": func() (search.Cut, error) {
				r, err := n.References(t.Context(), catalog.Operator(), search.SymbolRequest{Symbol: "Heron"})
				return cutOf(r, err, func() search.Cut { return r.Cut })
			},
			"search": func() (search.Cut, error) {
				r, err := n.Ranked(t.Context(), catalog.Operator(), search.RankedRequest{Query: "heron package", Limit: 10})
				return cutOf(r, err, func() search.Cut { return r.Cut })
			},
		} {
			cut, err := ask()
			if err != nil {
				t.Errorf("%s, %s: %v", name, tt.name, err)
			}
			// Symbols are not known here: there is no ctags.
			if cut.Why != tt.want && !(tt.want == "" && cut.Why == search.CutSymbols) {
				t.Errorf("%s, %s: cut for %q, want %q", name, tt.name, cut.Why, tt.want)
			}
		}
	}
}

// cutOf is the cut of an answer, which is there where nothing failed.
func cutOf[R any](r *R, err error, cut func() search.Cut) (search.Cut, error) {
	if err != nil {
		return search.Cut{}, err
	}
	return cut(), nil
}
