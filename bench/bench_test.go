package bench

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestQuantile_interpolatesSortedValues(t *testing.T) {
	t.Parallel()
	ds := []time.Duration{5, 1, 4, 2, 3}
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.2, 1}, {0.5, 3}, {0.99, 5}, {1, 5}} {
		if got := quantile(ds, c.q); got != c.want {
			t.Errorf("quantile(%v, %v) = %v, want %v", ds, c.q, got, c.want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing = %v, want 0", got)
	}
}

func TestExponent_isFittedFromSizesAndTimes(t *testing.T) {
	t.Parallel()
	xs := []float64{1, 2, 4, 8}
	for _, e := range []float64{0, 0.5, 1, 2} {
		ys := make([]float64, len(xs))
		for i, x := range xs {
			ys[i] = 3 * math.Pow(x, e)
		}
		if got := exponent(xs, ys); math.Abs(got-e) > 1e-9 {
			t.Errorf("exponent of x^%v = %v", e, got)
		}
	}
}

func TestQueryBound_isNeverAboveThePeersTimes(t *testing.T) {
	t.Parallel()
	for _, q := range baselineQueries() {
		if b := q.bound(); b <= 0 || b > 0.3 {
			t.Errorf("%s: bound %v × ripgrep", q.Text, b)
		}
	}
	for text, want := range map[string]float64{"return": 0.3, "[0-9]{8}": 0.1, "^}$": 0.1} {
		for _, q := range baselineQueries() {
			if q.Text == text && q.bound() != want {
				t.Errorf("%s: bound %v, want %v", text, q.bound(), want)
			}
		}
	}
}

func TestReportPart_printsItsTable(t *testing.T) {
	t.Parallel()
	p := &Part{Title: "A <title>", Columns: []string{"query", "time"}}
	p.row("a|b<c", 1500*time.Microsecond)
	p.note("%d of %d", 1, 2)
	want := "## A <title>\n\n| query | time |\n|---|---|\n| a\\|b<c | 1.5 ms |\n\n* 1 of 2\n\n"
	if got := p.Text(); got != want {
		t.Errorf("text:\n%s\nwant:\n%s", got, want)
	}
}

func TestCountLines_countsFilesAndMatches(t *testing.T) {
	t.Parallel()
	files, matches := countLines([]byte("./a.c:3\n./b:c.h:10\n"))
	if files != 2 || matches != 13 {
		t.Errorf("got %d files, %d matches, want 2 and 13", files, matches)
	}
}

// The heads of files are told from the lines below them, and from the first and last line of the answer.
func TestRankedFiles_readsTheAnswerOfSearch(t *testing.T) {
	t.Parallel()
	answer := `4 files, best first; 1 with all words
src/store.go
12 in Open: func Open() {
13: // that is a.go
docs/a.md, 2/3 words
7: see
lib/old.go, 1/3 words, 2 equal copies
9: x
Makefile, 1 equal copy
3: all
Complete.
`
	if got := rankedFiles(answer); strings.Join(got, " ") != "src/store.go docs/a.md lib/old.go Makefile" {
		t.Errorf("%q", got)
	}
}
