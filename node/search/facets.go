package search

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/query"
)

// The bounds of a count of files.
const (
	MaxFacetValues = 100              // values of a property that are told
	countedFiles   = 50_000           // files that are looked at
	countTime      = 10 * time.Second // where the query sets no time of its own
)

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
		Words:           r.Words,
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
