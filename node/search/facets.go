package search

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/query"
)

// The bounds of a count of files.
const (
	MaxFacetValues = 100              // values of a property that are told
	countedFiles   = 50_000           // files that are looked at
	countTime      = 10 * time.Second // where the query sets no time of its own
)

// Facets tell how many files have each value of a property. A file in several
// revisions counts for each of them.
type Facets struct {
	Repositories []FacetValue
	Languages    []FacetValue
	Paths        []FacetValue // first directories, each with its slash
	Revisions    []FacetValue

	Exact bool // every file was counted; else there may be more of each value, and other values
}

// FacetValue is a value of a property, and the files that have it. In a list the
// most frequent stands first, among equals the first by name.
type FacetValue struct {
	Value string
	Files int
}

// HasEveryFile reports whether an answer has every file that matches, so that what
// is counted by file is exact.
func (r *Response) HasEveryFile() bool {
	return r.Coverage.Exhaustive() && r.Stats.Files == len(r.Files)
}

// CountFiles counts the files of an answer by their properties.
func (r *Response) CountFiles() *Facets {
	t := newTally()
	t.take(r.Files)
	return t.facets(r.HasEveryFile())
}

// Counting is a request for every file of another one, without its lines: what is
// counted of its answer is counted of all.
func (r Request) Counting() Request {
	return Request{
		Query:           r.Query,
		Matches:         countedFiles,
		Regexp:          r.Regexp,
		CaseSensitive:   r.CaseSensitive,
		RequireComplete: r.RequireComplete,
		counting:        true,
	}
}

// count makes a query one for every file of it. What it says itself of how much is
// returned is about its answer, not about the count; its time holds for both.
func count(q *query.Query) {
	q.Type, q.Count = query.FileType, query.CountAll
	if q.Timeout == 0 {
		q.Timeout = countTime
	}
}

// addFacets counts the files of an answer, whose own were counted already. Where it
// does not have every file they are counted by a search of their own.
func (s *Searcher) addFacets(ctx context.Context, v catalog.Viewer, req Request, out *Response, own *tally) error {
	if out.Coverage.Exhaustive() && out.Stats.Files == own.files {
		out.Facets = own.facets(true)
		return nil
	}

	all, err := s.Search(ctx, v, req.Counting())
	if err != nil {
		return err
	}

	// A count for which hardly any time was left knows less than the answer does.
	out.Facets = all.CountFiles()
	if len(all.Files) < own.files {
		out.Facets = own.facets(false)
	}
	return nil
}

// tally counts files by their properties as they come.
type tally struct {
	files                                     int
	repositories, languages, paths, revisions map[string]int // files by value; "" is none
}

func newTally() *tally {
	return &tally{repositories: map[string]int{}, languages: map[string]int{}, paths: map[string]int{}, revisions: map[string]int{}}
}

func (t *tally) take(files []File) {
	t.files += len(files)
	for i := range files {
		f := &files[i]
		t.repositories[f.Repository]++
		t.languages[f.Language]++
		t.paths[topOf(f.Path)]++

		for _, name := range revisionsOf(f) {
			t.revisions[name]++
		}
	}
}

func (t *tally) facets(exact bool) *Facets {
	return &Facets{
		Repositories: byFrequency(t.repositories),
		Languages:    byFrequency(t.languages),
		Paths:        byFrequency(t.paths),
		Revisions:    byFrequency(t.revisions),
		Exact:        exact,
	}
}

// byFrequency is counted values in their order. Files without a value, as those of
// no known language, are none of them.
func byFrequency(counts map[string]int) []FacetValue {
	delete(counts, "")
	values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })

	out := make([]FacetValue, len(values))
	for i, v := range values {
		out[i] = FacetValue{v, counts[v]}
	}
	return out
}

// topOf is the first directory of a path; "" for none.
func topOf(path string) string {
	top, _, deep := strings.Cut(path, "/")
	if !deep {
		return ""
	}
	return top + "/"
}

// revisionsOf is the names of the revisions that have a file. HEAD is another name
// of one of them, where there are others.
func revisionsOf(f *File) []string {
	out := make([]string, 0, len(f.Branches))
	for _, name := range f.Branches {
		if short := query.ShortRev(name); short != "HEAD" || len(f.Branches) == 1 {
			out = append(out, short)
		}
	}
	return out
}
