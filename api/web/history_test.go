package web

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// The newest commit of a file has age 0 and the oldest the last age, whatever their times.
func TestBlame_coloursLinesByTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	at := func(days int) browse.BlameCommit {
		return browse.BlameCommit{Date: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, days)}
	}
	for _, c := range []struct {
		commits map[string]browse.BlameCommit
		want    map[string]int
	}{
		{map[string]browse.BlameCommit{}, map[string]int{}},
		{map[string]browse.BlameCommit{"a": at(0)}, map[string]int{"a": 0}},
		{map[string]browse.BlameCommit{"a": at(0), "b": at(900), "c": at(901)}, map[string]int{"c": 0, "b": 4, "a": 9}},
	} {
		if got := agesOf(c.commits); !maps.Equal(got, c.want) {
			t.Errorf("ages %v, want %v", got, c.want)
		}
	}
}

// The last page has no next one, also if the page number is so large that a multiple overflows.
func TestNextPage_doesNotOverflowForLargePageNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page, total int
		want        bool
	}{
		{1, 0, false}, {1, 1, false}, {1, 100, false}, {1, 101, true}, {2, 200, false}, {2, 201, true},
		{math.MaxInt, 101, false}, {math.MaxInt/100 + 2, 101, false}, {math.MaxInt / 2, 101, false},
	} {
		if got := hasNextPage(c.page, 100, c.total); got != c.want {
			t.Errorf("page %d of %d entries goes on: %t", c.page, c.total, got)
		}
	}
}

// pastOf answers every request for history with one answer.
type pastOf struct {
	browse.Reader
	commits browse.CommitsResponse
}

func (p pastOf) Commits(context.Context, catalog.Viewer, browse.CommitsRequest) (*browse.CommitsResponse, error) {
	return &p.commits, nil
}

// The page of a history says what it does not cover. The link without .mailmap keeps all filters.
func TestHistoryPage_saysWhatItDoesNotCover(t *testing.T) {
	t.Parallel()
	reached := time.Date(2022, 10, 31, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		query  url.Values
		r      browse.CommitsResponse
		want   []string
		absent []string
	}{
		"all of it":     {want: []string{"?author=Ann&amp;verbatim=1", "authors as commits have them"}, query: url.Values{"author": {"Ann"}, "page": {"2"}}, absent: []string{"took too long", "shallow"}},
		"verbatim":      {query: url.Values{"verbatim": {"1"}}, want: []string{"?verbatim=", "authors by .mailmap"}},
		"out of time":   {r: browse.CommitsResponse{AtLeast: true, Reached: reached}, want: []string{"2022-10-31 12:00 UTC", "until=2022-10-31T12%3A00%3A00Z"}},
		"shallow":       {r: browse.CommitsResponse{Shallow: true}, want: []string{"The repository is shallow", "≥ 0 commits"}},
		"without query": {want: []string{"?verbatim=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := New(Deps{Browse: pastOf{commits: tt.r}, Now: time.Now})
			v := &layout.Visit{Method: "GET", Query: tt.query}
			if err := p.reading.revisions.commits(t.Context(), v, place{Repo: "r", Kind: "commits"}); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(v.Body), want) {
					t.Errorf("no %q in\n%s", want, v.Body)
				}
			}
			for _, absent := range tt.absent {
				if strings.Contains(string(v.Body), absent) {
					t.Errorf("%q is in\n%s", absent, v.Body)
				}
			}
		})
	}
}

// The page of a blame says which lines have another commit than in git, and which may be older
// than their commit.
func TestBlamePage_saysWhichLinesDifferFromGit(t *testing.T) {
	t.Parallel()
	show := func(query url.Values, r browse.BlameResponse) string {
		t.Helper()
		r.Ranges = []browse.BlameRange{{Hash: "c0ffee", Path: "a", StartLine: 1, LineCount: 1}}
		p := New(Deps{Browse: blamed{r: r}, Now: time.Now})
		v := &layout.Visit{Method: "GET", Query: query}
		// On a busy machine a slow blame would be sent in parts.
		synctest.Test(t, func(t *testing.T) {
			if err := p.reading.revisions.blame(t.Context(), v, place{Repo: "r", Path: "a", Kind: "blame"}); err != nil {
				t.Fatal(err)
			}
		})
		return string(v.Body)
	}
	commit := map[string]browse.BlameCommit{"c0ffee": {Hash: "c0ffee"}}
	page := show(nil, browse.BlameResponse{Past: 2, Shallow: true, Commits: commit})
	for _, want := range []string{"2 lines changed last by commits of", "?verbatim=1", "The repository is shallow"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if page := show(url.Values{"verbatim": {"1"}}, browse.BlameResponse{}); !strings.Contains(page, `href="?"`) || strings.Contains(page, "changed last by") || strings.Contains(page, "shallow") {
		t.Errorf("verbatim:\n%s", page)
	}
}

// blamed is a file of one line with a blame.
type blamed struct {
	longFile
	r browse.BlameResponse
}

func (b blamed) Blame(context.Context, catalog.Viewer, browse.BlameRequest) (*browse.BlameResponse, error) {
	return &b.r, nil
}

// The size of a blame page is limited, however many lines a file has and however long its
// messages are. The pages together have each line once.
func TestBlamePage_limitsItsSizeAndShowsEachLineOnce(t *testing.T) {
	t.Parallel()
	const lines = 80_000
	long := strings.Repeat("<", 20<<10)
	r := &browse.BlameResponse{Commits: map[string]browse.BlameCommit{}}
	for i := range 2 {
		hash := fmt.Sprint("c0ffee", i)
		r.Commits[hash] = browse.BlameCommit{Hash: hash, Message: long, AuthorName: long}
	}
	// Runs of one line, and a run longer than a page.
	for line := 1; line <= lines/2; line++ {
		r.Ranges = append(r.Ranges, browse.BlameRange{Hash: fmt.Sprint("c0ffee", line%2), StartLine: line, LineCount: 1})
	}
	r.Ranges = append(r.Ranges, browse.BlameRange{Hash: "c0ffee0", StartLine: lines/2 + 1, LineCount: lines / 2})
	var text strings.Builder
	for line := range lines {
		fmt.Fprintf(&text, "/* %d\n", line+1)
	}
	src := &browse.SourceResponse{Content: []byte(text.String()), Language: "C"}

	p := New(Deps{Now: time.Now})
	next, pages := 1, 0
	for ; next > 0; pages++ {
		first := next
		var code []byte
		if code, next = p.reading.revisions.drawBlame("r", src, r, first); len(code) > mostBlamed+64<<10 {
			t.Fatalf("a page of %d bytes", len(code))
		}
		rows := slices.DeleteFunc(strings.Split(string(code), "\n"), func(line string) bool { return !strings.Contains(line, "<code>") })
		if last := first + len(rows); next > 0 && last != next || next == 0 && last != lines+1 {
			t.Fatalf("%d lines from %d, and the next is %d", len(rows), first, next)
		}
		if !strings.Contains(rows[0], "first") || !strings.Contains(rows[0], "c0ffee") {
			t.Errorf("page %d begins without a commit: %s", pages, rows[0])
		}
		for i, row := range rows {
			if want := fmt.Sprintf("/* %d</", first+i); !strings.Contains(row, want) {
				t.Fatalf("line %d is %s", first+i, row)
			}
		}
	}
	if pages < 3 {
		t.Errorf("%d pages", pages)
	}
}
