package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

// shallow answers like a search that stops early: with a higher limit it finds better files.
type shallow struct {
	symbols.Searcher
	files, each int // existing files and matches
	asked       []search.Request
}

func (s *shallow) Search(_ context.Context, _ catalog.Viewer, r search.Request) (*search.Response, error) {
	s.asked = append(s.asked, r)
	resp := &search.Response{Coverage: coverage.Of(coverage.Parts, 1, 1), Stats: search.Stats{FlushReason: search.FlushFinal}}

	most := s.each
	if r.PerFile > 0 {
		most = min(most, r.PerFile)
	}

	// It searches twice as many files as it shows, and the last is the best.
	looks := min(s.files, 2*(r.Matches/most+1))
	if countsAll(r.Query) {
		looks = s.files
	}
	left := r.Matches
	for i := looks - 1; i >= 0 && left > 0; i-- {
		n := min(most, left)
		left -= n
		resp.Files = append(resp.Files, search.File{RepoID: 1, Repository: "r", Path: fmt.Sprintf("f%d", i), Matches: s.each, Chunks: lined(n)})
	}

	resp.Stats.Files, resp.Stats.TotalMatches, resp.Stats.ActualMatches = looks, looks*s.each, r.Matches-left
	if r.Matches-left < s.files*most && !countsAll(r.Query) {
		resp.Coverage, resp.Stats.FlushReason = resp.Coverage.With(coverage.Gap{Kind: coverage.Limit}), search.FlushLimit
	}
	return resp, nil
}

// lined returns a chunk with a match on each of its lines.
func lined(n int) []shard.Chunk {
	c := shard.Chunk{Content: []byte(strings.Repeat("x\n", n)), Start: shard.Position{Line: 1, Column: 1}}
	for i := range uint32(n) {
		c.Ranges = append(c.Ranges, shard.Range{
			Start: shard.Position{Offset: 2 * i, Line: i + 1, Column: 1},
			End:   shard.Position{Offset: 2*i + 1, Line: i + 1, Column: 2},
		})
	}
	return []shard.Chunk{c}
}

// walk reads all pages of a query in order.
func walk(t *testing.T, s symbols.Searcher, box layout.Box) (pages []*results) {
	t.Helper()
	p := New(Deps{Search: s, Now: time.Now})
	for from := ""; len(pages) < 100; {
		r := &results{Box: box, now: time.Now}
		req, err := r.request()
		if err != nil {
			t.Fatal(err)
		}
		r.begin(from, &req)
		h, err := p.searching.findFiles(t.Context(), catalog.Guest(), r, req)
		if err != nil {
			t.Fatal(err)
		}
		r.fill(h)
		if pages = append(pages, r); r.Next == "" {
			return pages
		}
		u, err := url.Parse(r.Next)
		if err != nil {
			t.Fatal(err)
		}
		from = u.Query().Get("from")
	}
	t.Fatal("pages without an end")
	return nil
}

// Each file is on one page, also if a search with a higher limit puts others before it, and if a
// page's limit falls within it.
func TestSearchPages_showEachFileOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ files, each int }{{1, 7}, {3, 49}, {11, 50}, {700, 7}, {300, 400}, {2500, 3}} {
		for _, query := range []string{"x", "count:all x"} {
			t.Run(fmt.Sprintf("%s in %d files of %d", query, tt.files, tt.each), func(t *testing.T) {
				t.Parallel()
				seen := map[string]int{}
				pages := walk(t, &shallow{files: tt.files, each: tt.each}, layout.Box{Query: query})
				for _, r := range pages {
					if n := strings.Count(string(r.Files), "<article"); n == 0 && len(pages) > 1 && r != pages[len(pages)-1] {
						t.Error("a page without a file")
					}
					for _, part := range strings.Split(string(r.Files), `class="path"`)[1:] {
						_, name, _ := strings.Cut(part, "<bdi>")
						name, _, _ = strings.Cut(name, "<")
						seen[name]++
					}
				}
				if len(seen) != tt.files {
					t.Errorf("%d pages have %d files of %d", len(pages), len(seen), tt.files)
				}
				for name, n := range seen {
					if n != 1 {
						t.Fatalf("%s is there %d times", name, n)
					}
				}
			})
		}
	}
}

// The first page needs one search, also if the limit falls within a file. The same holds for each
// page of a search that counts everything.
func TestSearchPages_firstPageTakesOneSearch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ files, each int }{{700, 7}, {300, 49}, {300, 400}, {2500, 3}, {9000, 3}} {
		s := &shallow{files: tt.files, each: tt.each}
		r := &results{Box: layout.Box{Query: "x"}, now: time.Now}
		req, err := r.request()
		if err != nil {
			t.Fatal(err)
		}
		r.begin("", &req)
		if _, err := New(Deps{Search: s, Now: time.Now}).searching.findFiles(t.Context(), catalog.Guest(), r, req); err != nil || len(s.asked) != 1 {
			t.Errorf("%d files of %d: the first page takes %d searches, %v", tt.files, tt.each, len(s.asked), err)
		}

		s = &shallow{files: tt.files, each: tt.each}
		if pages := walk(t, s, layout.Box{Query: "count:all x"}); len(pages) < 2 || len(s.asked) != len(pages) {
			t.Errorf("%d files of %d, all counted: %d pages take %d searches", tt.files, tt.each, len(pages), len(s.asked))
		}
	}
}

// The matches of a single file span several pages, and the first page needs one search.
func TestSearchPages_splitTheMatchesOfOneFile(t *testing.T) {
	t.Parallel()
	s := &shallow{files: 1, each: 1234}
	alone := walk(t, s, layout.Box{Query: "x"})
	if len(alone) != 1 || len(s.asked) != 1 || !strings.Contains(string(alone[0].Files), "+1,209 more in this file") {
		t.Errorf("%d pages by %d searches, the first has %.3000s", len(alone), len(s.asked), alone[0].Files)
	}

	marks := 0
	pages := walk(t, s, inFile(layout.Box{Query: "x"}, &search.File{Repository: "r", Path: "f0"}))
	for i, r := range pages {
		if strings.Contains(string(r.Files), "more in this file") || r.Summary != "1,234 matches in 1 file" || strings.Contains(r.Proof.Text, "lower bounds") {
			t.Errorf("page %d: %q, %q, %.300s", i, r.Summary, r.Proof.Text, r.Files)
		}
		marks += strings.Count(string(r.Files), "<mark")
	}

	// The line before a page's first match is shown again.
	if len(pages) != 5 || marks != 1234+4 || len(s.asked) != 1+5 {
		t.Errorf("%d pages by %d searches have %d marks", len(pages), len(s.asked)-1, marks)
	}
}

// It separates queries for one file from queries that may find many.
func TestIsOneFile_recognizesQueriesForOneFile(t *testing.T) {
	t.Parallel()
	for q, want := range map[string]bool{
		inFile(layout.Box{Query: "a or b"}, &search.File{Repository: "r", Path: "a b/c+.go"}).Query: true,
		inFile(layout.Box{Query: "x"}, &search.File{Repository: "r", Path: "caf\xe9.txt"}).Query:    true,
		`repo:^local/app$ file:^main\.go$ x`:                                                        true,
		`reposet:r file:^main\.go$`:                                                                 false, // no place in it
		`reposet:r file:main\.go x`:                                                                 false,
		`reposet:r,s file:^main\.go$ x`:                                                             false,
		`file:^main\.go$ x`:                                                                         false,
		`repo:app file:^main\.go$ x`:                                                                false,
		`repo:^app$ file:^.*$ x`:                                                                    false,
		`reposet:r -file:^main\.go$ x`:                                                              false,
		`type:file reposet:r file:^main\.go$ x`:                                                     false,
		`(reposet:r file:^main\.go$ x) or (reposet:s x)`:                                            false,
		`count:3 reposet:r file:^main\.go$ x`:                                                       false,
	} {
		if got := isOfOneFile(search.Request{Query: q}); got != want {
			t.Errorf("%s: %t", q, got)
		}
	}
}

// A filter of another code search is marked in its place, with the suggested query if there is
// one.
func TestFiltersOfOtherTools_areMarkedWithASuggestion(t *testing.T) {
	t.Parallel()
	got := hintsOf(layout.Box{Query: "(é language:go) author:joe x", Case: true})
	if len(got) != 2 || got[0].Before != "(é " || got[0].Word != "language:go" || got[0].After != ") author:joe x" || got[1].Before != "(é language:go) " || got[1].URL != "" {
		t.Fatalf("%+v", got)
	}
	u, err := url.Parse(got[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	if box := boxOf(u.Query()); box.Query != "(é lang:go) author:joe x" || !box.Case {
		t.Errorf("what was meant is %+v", box)
	}
}
