package tool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

// Less context leaves each changed line with its number, and lines beside it alone.
func TestLessContext_keepsEachChangeAtItsLine(t *testing.T) {
	t.Parallel()
	// numbers returns the changed lines of hunks, with their numbers, and the number of other lines.
	numbers := func(hunks []browse.DiffHunk) (changes []string, around int) {
		for _, h := range hunks {
			old, head := h.OldStart, h.NewStart
			for line := range strings.Lines(h.Body) {
				switch line[0] {
				case '-':
					changes = append(changes, fmt.Sprint(old, line))
					old++
				case '+':
					changes = append(changes, fmt.Sprint(head, line))
					head++
				case ' ':
					around++
					old++
					head++
				}
			}
			if old != h.OldStart+h.OldLines || head != h.NewStart+h.NewLines {
				changes = append(changes, fmt.Sprintf("wrong lengths: %+v", h))
			}
		}
		return changes, around
	}

	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		h := browse.DiffHunk{OldStart: 1 + r.IntN(9), NewStart: 1 + r.IntN(9)}
		changed := 0
		for i := range 1 + r.IntN(20) {
			sign := []string{" ", " ", " ", "-", "+"}[r.IntN(5)]
			h.Body += fmt.Sprintf("%sline %d\n", sign, i)
			if sign != "+" {
				h.OldLines++
			}
			if sign != "-" {
				h.NewLines++
			}
			if sign != " " {
				changed++
			}
		}
		want, _ := numbers([]browse.DiffHunk{h})
		got, around := numbers(withContext(&h, 1))
		if !slices.Equal(got, want) || around > 2*changed {
			t.Fatalf("seed %d: %q, want %q, with %d lines around\n%s", seed, got, want, around, h.Body)
		}
	}
}

// A long run of one sign is cut, and the counts of the file stay those of the whole patch.
func TestLongRuns_areCutWithTheirCount(t *testing.T) {
	t.Parallel()
	h := browse.DiffHunk{OldStart: 1, NewStart: 1, NewLines: 40, Body: strings.Repeat("+new\n", 40) + strings.Repeat("-old\n", longestRun)}
	c := &comparison{files: []changed{diffBlock(&browse.DiffFile{OldPath: "a.c", NewPath: "a.c", Hunks: []browse.DiffHunk{h}})}}
	if left := c.cutRuns(); left != 40-linesOfARun {
		t.Errorf("%d lines left out", left)
	}
	want := "@@ -1,0 +1,40 @@\n" + strings.Repeat("+new\n", linesOfARun) + "… 34 more + lines\n" + strings.Repeat("-old\n", longestRun)
	if got := strings.Join(c.files[0].lines, ""); got != want || c.files[0].plus != 40 || c.files[0].minus != longestRun {
		t.Errorf("+%d -%d %s", c.files[0].plus, c.files[0].minus, got)
	}
}

func TestChangedParameters_areNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ old, head, want string }{
		{"(a, b)", "(a, b)", ""},
		{"", "(a)", ""},
		{"(a, b)", "(b, a)", " (parameters in another order)"},
		{"(self, proxies=None, app=None)", "(self, proxy=None)", " (-proxies=None, -app=None, +proxy=None)"},
		{"(m map[string]int, f func(a, b int))", "(f func(a, b int))", " (-m map[string]int)"},
		{"()", "(x int)", " (+x int)"},
	} {
		if got := changedParams(tt.old, tt.head); got != tt.want {
			t.Errorf("%s to %s: %q, want %q", tt.old, tt.head, got, tt.want)
		}
	}
}
