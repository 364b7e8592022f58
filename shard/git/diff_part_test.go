package git

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The parts of a difference add up to the whole, file by file. It contains renames, a change of
// type with two patches, and files that differ only in blanks.
func TestDiff_partsAddUpToTheWhole(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	long := strings.Repeat("a line that stays\n", 20)
	var was, is []string
	for i := range 9 {
		was, is = append(was, fmt.Sprint("f", i), "old\n"), append(is, fmt.Sprint("f", i), fmt.Sprintf("new %d\n", i))
	}
	is[7] = "o l d\n" // f3 differs only in blanks, and f4 is larger than all others
	is[9] = strings.Repeat("big\n", 500)
	h.commit("refs/heads/main", 1, "Ann", "begin", append(was, "zz", long, "t", "x", "gone", "x")...)
	h.commit("refs/heads/main", 2, "Ann", "end", append(is, "zz", "D", "a", long+"more\n", "mode 120000 t", "x", "gone", "D")...)
	r.load(h)
	m := fetched(t, r.url())
	base, head := r.git("rev-parse", "main~1"), r.git("rev-parse", "main")

	for _, blanks := range []bool{false, true} {
		whole, err := m.Diff(within(t), base, head, DiffOptions{IgnoreBlanks: blanks})
		want := 12
		if blanks {
			want--
		}
		if err != nil || len(whole.Files) != want || whole.Total != want {
			t.Fatalf("%d files of %d, %v", len(whole.Files), whole.Total, err)
		}

		for _, limit := range []int{1, 2, 5, 12, 50} {
			var all []FileDiff
			for skip := 0; skip < 60; skip += limit {
				part, err := m.Diff(within(t), base, head, DiffOptions{IgnoreBlanks: blanks, Skip: skip, Limit: limit})
				if err != nil || part.Total != want || part.AtLeast || part.Cut || len(part.Files) > limit {
					t.Fatalf("from %d, %d: %d files of %d, at least %t, cut %t, %v", skip, limit, len(part.Files), part.Total, part.AtLeast, part.Cut, err)
				}
				all = append(all, part.Files...)
			}
			if !slices.EqualFunc(all, whole.Files, func(a, b FileDiff) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }) {
				t.Errorf("blanks ignored %t, in parts of %d:\n%+v\nwant\n%+v", blanks, limit, all, whole.Files)
			}
		}
	}

	// The limit on bytes applies to each part separately. If one part omits bytes, others do not
	// report it.
	for skip, want := range []bool{false, false, false, false, false, true, false} {
		part, err := m.Diff(within(t), base, head, DiffOptions{Skip: skip, Limit: 1, MaxBytes: 1000})
		if err != nil || part.Total != 12 || part.Cut != want || part.Files[0].Cut != want {
			t.Errorf("part %d, %s: cut %t of %d, %v", skip, part.Files[0].NewPath, part.Cut, part.Total, err)
		}
	}
	if part, err := m.Diff(within(t), base, head, DiffOptions{Limit: 2, MaxFiles: 4}); err != nil || part.Total != 4 || !part.AtLeast || part.Cut || len(part.Files) != 2 {
		t.Errorf("of many: %+v, %v", part, err)
	}
}
