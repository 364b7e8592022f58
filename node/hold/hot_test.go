package hold

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A line is some windows in a row: how long unit 1 and unit 2 of ten were
// searched in each, the others for five seconds, and the copies more that they
// have afterwards.
func TestHotUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, story string }{
		{"all equal", `
			20 x 10s 10s: -
		`},
		{"hot for five minutes", `
			4 x 40s 1s: -
			1 x 40s 1s: 1+1
			4 x 40s 1s: 1+1
			1 x 40s 1s: 1+2
			50 x 40s 1s: 1+2
		`},
		{"a short rush", `
			4 x 40s 1s: -
			1 x 1s 1s: -
			4 x 40s 1s: -
		`},
		{"more than the rest, but not three times", `
			20 x 15s 1s: -
		`},
		{"cold after an hour", `
			5 x 40s 1s: 1+1
			59 x 1s 1s: 1+1
			1 x 1s 1s: -
		`},
		{"it cools and is hot again", `
			5 x 40s 1s: 1+1
			59 x 1s 1s: 1+1
			1 x 40s 1s: 1+1
			59 x 1s 1s: 1+1
			1 x 1s 1s: -
		`},
		{"two at once", `
			5 x 60s 60s: 1+1 2+1
		`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := hotUnits{}
			for line := range strings.Lines(strings.TrimSpace(c.story)) {
				var n int
				var one, two string
				before, want, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if _, err := fmt.Sscanf(before, "%d x %s %s", &n, &one, &two); err != nil {
					t.Fatal(err)
				}
				for range n {
					used := map[uint64]time.Duration{1: span(t, one), 2: span(t, two)}
					for u := range uint64(8) {
						used[u+3] = 5 * time.Second
					}
					b.window(used, 10, 3, time.Minute)
				}
				var got []string
				for u, extra := range b.extra() {
					got = append(got, fmt.Sprintf("%d+%d", u, extra))
				}
				slices.Sort(got)
				if text := strings.Join(got, " "); text != strings.TrimPrefix(want, "-") {
					t.Fatalf("after %q: %q", line, text)
				}
			}
		})
	}
}

// What is searched much more than the rest, but for less than a tenth of a
// core, gains nothing by another copy.
func TestLittleIsNotHot(t *testing.T) {
	t.Parallel()
	b := hotUnits{}
	for range 3 * hotWindows {
		b.window(map[uint64]time.Duration{1: 5 * time.Second}, 10, 3, time.Minute)
	}
	if extra := b.extra(); len(extra) > 0 {
		t.Errorf("it gets %v more copies", extra)
	}
}

func span(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestHotUnitsAreBounded(t *testing.T) {
	t.Parallel()
	b := hotUnits{}
	used := map[uint64]time.Duration{}
	for u := range uint64(10 * mostHot) {
		used[u] = time.Hour
	}
	for range 3 * hotWindows {
		b.window(used, 100_000, 3, time.Minute)
	}
	extra := b.extra()
	if len(extra) != mostHot {
		t.Errorf("%d units are hot, at most %d", len(extra), mostHot)
	}
	for u, n := range extra {
		if n != mostExtra {
			t.Errorf("unit %d has %d more copies, at most %d", u, n, mostExtra)
		}
	}
}
