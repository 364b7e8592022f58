package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/node/symbols"
)

// slowSearch takes a second.
type slowSearch struct {
	symbols.Searcher
	resp search.Response
}

func (s slowSearch) Search(ctx context.Context, _ catalog.Viewer, r search.Request) (*search.Response, error) {
	select {
	case <-time.After(time.Second): // in the bubble's time
		return &s.resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// plainText suggests nothing.
type plainText struct{ Suggester }

func (plainText) GoTo(context.Context, catalog.Viewer, string) []suggest.Target { return nil }

func (plainText) Nearest(context.Context, catalog.Viewer, search.Request, *search.Response) *suggest.Nearest {
	return nil
}

// A slow search reports its progress before its answer, a quick one does not.
func TestSearchPage_showsProgressOnlyForASlowSearch(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"", "results"} {
		synctest.Test(t, func(t *testing.T) {
			p := New(Deps{Search: slowSearch{}, Suggest: plainText{}, Now: time.Now})
			v := &layout.Visit{Method: "GET", Path: "/search", Part: part, Query: url.Values{"query": {"type:repo x"}}, Status: 200}
			if err := p.searching.search(t.Context(), v); err != nil {
				t.Fatal(err)
			}

			var b bytes.Buffer
			if err := v.Stream(bufio.NewWriter(&b)); err != nil {
				t.Fatal(err)
			}
			before, after, ok := strings.Cut(b.String(), `<div id="results"`)
			if n := strings.Count(before, `<p class="doing">Searching for `); !ok || n != 3 || strings.Contains(after, "doing") {
				t.Errorf("part %q: told %d times before the results: %s", part, n, b.String())
			}
			if strings.Contains(before, "<html") != (part == "") {
				t.Errorf("part %q begins with %.40s", part, before)
			}
		})
	}
}

func TestProgressText_namesWhatIsSearched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		done search.Done
		want string
	}{
		{search.Done{}, "Searching for 1.5 s"},
		{search.Done{ShardsRequired: 1, Files: 2000, FilesDecided: 1000, Bytes: 2_100_000_000, Found: 3211}, "Searching for 1.5 s · 1,000 of 2,000 files · 2.1 GB read · 3,211 found so far"},
		{search.Done{ShardsRequired: 412, ShardsAnswered: 118}, "Searching for 1.5 s · 118 of 412 shards"},
		{search.Done{ShardsRequired: 9, ShardsAnswered: 7, Files: 5844, FilesDecided: 5000, Bytes: 1}, "Searching for 1.5 s · 7 of 9 shards · 5,000 of 5,844 files · 1 B read · 0 found so far"},
		{search.Done{ShardsRequired: 9, ShardsAnswered: 7, Files: 5844, FilesDecided: 5844, Bytes: 1}, "Searching for 1.5 s · 7 of 9 shards · 5,844 files · 1 B read · 0 found so far"},
	} {
		if got := describeProgress(c.done, 1500*time.Millisecond); got != c.want {
			t.Errorf("%+v: %q, want %q", c.done, got, c.want)
		}
	}
}

// An exact count is not shown as a lower bound, even if not all matches are shown.
func TestSearchPage_showsExactCountsAsExact(t *testing.T) {
	t.Parallel()
	resp := &search.Response{Coverage: coverage.Of(coverage.Parts, 3, 3).With(coverage.Gap{Kind: coverage.Limit}), Stats: search.Stats{ShardsRequired: 3, ShardsAnswered: 3, FlushReason: search.FlushLimit}}
	resp.Stats.Files, resp.Stats.TotalMatches = 406, 1193
	for _, c := range []struct{ query, summary, proof string }{
		{"count:all x", "1,193 matches in 406 files", "counted exactly, shown up to the limit"},
		{"x", "≥ 1,193 matches in ≥ 406 files", "counts are lower bounds"},
	} {
		exact := countedExactly(resp, countsAll(c.query))
		if got, p := summaryOf(resp, exact), proofOf(resp, exact, time.Second); got != c.summary || !strings.Contains(p.Text, c.proof) || p.Complete != exact {
			t.Errorf("%s: %q and %q", c.query, got, p.Text)
		}
	}
}

// A panic in a goroutine of a page ends the page, and not the node.
func TestPanicInAPageGoroutine_endsOnlyThePage(t *testing.T) {
	t.Parallel()
	ended := inBackground(func() (int, error) { panic("a walrus") })
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "a walrus") || !strings.Contains(p, "progress_test.go") {
			t.Errorf("the page panics with %s", p)
		}
	}()
	(<-ended).get()
	t.Error("nobody hears of it")
}
