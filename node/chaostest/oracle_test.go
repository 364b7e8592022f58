package chaostest

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// query is one of the queries whose answer is known.
type query struct {
	text string
	pair bool // only what is in the context "pair"
}

// answer is the part of a search response that is checked.
type answer struct {
	IsSearchExhaustive bool
	Files              []struct {
		Repository string
		FileName   struct{ Text string }
		Chunks     []struct{ Content string }
	}
	Cluster struct {
		CatalogIndex  uint64
		ShardsMissing []string
		ReposMissing  []string
		NodesFailed   []string
	}

	versions map[string]int // of each repository that it shows
}

// ask asks a node for every file of the repositories of a query and reports
// every lie. An answer, exhaustive or not, shows each repository as a whole
// and at one version, or not at all.
func (w *workload) ask(ctx context.Context, p *process, q query) (*answer, error) {
	tryCtx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	a := &answer{versions: map[string]int{}}
	if err := w.c.call(tryCtx, p, "POST", "/api/search", map[string]any{"query": q.text, "matches": 100000}, a); err != nil {
		return nil, err
	}
	found := map[string]map[string]string{} // repository, file, line
	for _, f := range a.Files {
		repo := path.Base(f.Repository)
		if found[repo] == nil {
			found[repo] = map[string]string{}
		}
		if _, twice := found[repo][f.FileName.Text]; twice {
			w.c.violation("node %d: %s of %s twice in one answer", p.index+1, f.FileName.Text, repo)
		}
		if len(f.Chunks) != 1 {
			w.c.violation("node %d: %s of %s has %d chunks, want one", p.index+1, f.FileName.Text, repo, len(f.Chunks))
			continue
		}
		found[repo][f.FileName.Text] = strings.TrimSpace(f.Chunks[0].Content)
	}
	for name, files := range found {
		w.mu.Lock()
		r := w.all[name]
		w.mu.Unlock()
		if r == nil {
			w.c.violation("node %d shows repository %s, which never was", p.index+1, name)
			continue
		}
		v, err := r.version(files)
		if err != nil {
			w.c.violation("node %d at index %d (exhaustive: %t): %v", p.index+1, a.Cluster.CatalogIndex, a.IsSearchExhaustive, err)
			continue
		}
		a.versions[name] = v
	}
	switch {
	case !w.settled.Load(): // repositories are still being found
	case a.IsSearchExhaustive:
		if err := w.complete(a, q); err != nil {
			w.c.violation("node %d at index %d: %v", p.index+1, a.Cluster.CatalogIndex, err)
		}
	case len(a.Cluster.ShardsMissing)+len(a.Cluster.ReposMissing) == 0:
		w.c.violation("node %d at index %d: not exhaustive, and nothing is named as missing", p.index+1, a.Cluster.CatalogIndex)
	}
	return a, nil
}

// complete checks the set of repositories of an exhaustive answer, and that
// every other answer of the same index is the same.
func (w *workload) complete(a *answer, q query) error {
	if q.pair {
		got := slices.Sorted(maps.Keys(a.versions))
		var forms [2][]string
		for i, p := range pairs {
			for _, r := range w.stable[p[0] : p[1]+1] {
				forms[i] = append(forms[i], r.name)
			}
		}
		if !slices.Equal(got, forms[0]) && !slices.Equal(got, forms[1]) {
			return fmt.Errorf("the context has %v, which it never was", got)
		}
	} else {
		for _, r := range w.stable {
			if a.versions[r.name] == 0 {
				return fmt.Errorf("an exhaustive answer lacks %s", r.name)
			}
		}
	}
	return w.history.note(a.Cluster.CatalogIndex, q, a.versions)
}

// history is what exhaustive answers have shown at each index of the catalog.
// Nodes agree on the order of changes, so the index says what is true.
type history struct {
	mu sync.Mutex
	at map[moment]map[string]int
}

type moment struct {
	index uint64
	pair  bool
}

// note fails when the same query had another answer at the same index.
func (h *history) note(index uint64, q query, versions map[string]int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[moment]map[string]int{}
	}
	m := moment{index, q.pair}
	if old := h.at[m]; old != nil && !maps.Equal(old, versions) {
		return fmt.Errorf("two answers at one index: %v and %v", old, versions)
	}
	h.at[m] = versions
	return nil
}

// check goes through all answers in the order of their indices: versions
// never go back, and a repository that has left does not come again.
func (h *history) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var indices []uint64
	for m := range h.at {
		if !m.pair {
			indices = append(indices, m.index)
		}
	}
	slices.Sort(indices)
	newest, left := map[string]int{}, map[string]uint64{}
	var before map[string]int
	for _, index := range indices {
		now := h.at[moment{index, false}]
		for name, v := range now {
			if left[name] > 0 {
				return fmt.Errorf("%s left at index %d and is there again at %d", name, left[name], index)
			}
			if v < newest[name] {
				return fmt.Errorf("%s went back from v%d to v%d at index %d", name, newest[name], v, index)
			}
			newest[name] = v
		}
		for name := range before {
			if now[name] == 0 {
				left[name] = index
			}
		}
		before = now
	}
	for m, versions := range h.at { // what the context shows is what all show
		all := h.at[moment{m.index, false}]
		for name, v := range versions {
			if all != nil && all[name] != v {
				return fmt.Errorf("at index %d %s is v%d in the context and v%d in all", m.index, name, v, all[name])
			}
		}
	}
	return nil
}
