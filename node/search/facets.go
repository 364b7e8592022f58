package search

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/query"
)

// Limits of counting files.
const (
	MaxFacetValues = 100              // values that are returned for a property
	countedFiles   = 50_000           // files that are counted
	countTime      = 10 * time.Second // time limit if the query has none
)

// HasEveryFile reports whether an answer has every matching file, so that counting its files is
// exact.
func (r *Response) HasEveryFile() bool {
	return r.Coverage.Exhaustive() && r.Stats.Files == len(r.Files)
}

// CountFiles counts the files of an answer by their properties.
func (r *Response) CountFiles() *Facets {
	t := newTally()
	t.add(r.Files)
	return t.facets(r.HasEveryFile())
}

// Counting returns a request for every file of another request, without lines. The files of its
// answer can be counted.
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

// countEveryFile makes a query list all of its files. The type and count of the query are about its answer,
// not about the count of files. Its time limit applies to both.
func countEveryFile(q *query.Query) {
	q.Type, q.Count = query.FileType, query.CountAll
	if q.Timeout == 0 {
		q.Timeout = countTime
	}
}

// tally counts files by their properties.
type tally struct {
	files                                     int
	repositories, languages, paths, revisions map[string]int // number of files by value; "" means none
}

func newTally() *tally {
	return &tally{repositories: map[string]int{}, languages: map[string]int{}, paths: map[string]int{}, revisions: map[string]int{}}
}

// add counts files by their properties.
func (t *tally) add(files []File) {
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

// facets returns the counts, the most frequent values first.
func (t *tally) facets(exact bool) *Facets {
	return &Facets{
		Repositories: byFrequency(t.repositories),
		Languages:    byFrequency(t.languages),
		Paths:        byFrequency(t.paths),
		Revisions:    byFrequency(t.revisions),
		Exact:        exact,
	}
}

// byFrequency sorts values by their counts. It leaves out files without a value, such as those of
// no known language.
func byFrequency(counts map[string]int) []FacetValue {
	delete(counts, "")
	values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })

	out := make([]FacetValue, len(values))
	for i, v := range values {
		out[i] = FacetValue{v, counts[v]}
	}
	return out
}

// topOf returns the first directory of a path; "" if there is none.
func topOf(path string) string {
	top, _, deep := strings.Cut(path, "/")
	if !deep {
		return ""
	}
	return top + "/"
}

// revisionsOf returns the names of the revisions that have a file. It leaves out HEAD if there are
// others, because HEAD is another name for one of them.
func revisionsOf(f *File) []string {
	out := make([]string, 0, len(f.Branches))
	for _, name := range f.Branches {
		if short := query.ShortRev(name); short != "HEAD" || len(f.Branches) == 1 {
			out = append(out, short)
		}
	}
	return out
}
