package cluster

import (
	"slices"
	"testing"
	"time"
)

// The agreed time never goes back and never stands still, whatever clocks the leaders have. It
// equals the node's clock as soon as possible.
func TestAgreedTime_alwaysAdvances(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		d, err := time.Parse(time.DateTime, "2026-01-31 "+text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}

	for name, steps := range map[string][]struct{ own, newest, want string }{
		"a clock that is right": {
			{"12:00:00", "11:59:59", "12:00:00"},
			{"12:00:10", "12:00:00", "12:00:10"},
		},
		"another leader was an hour ahead": {
			{"12:00:00", "13:00:00", "13:00:00"},
			{"12:10:00", "13:00:00", "13:05:00"},
			{"12:20:00", "13:05:00", "13:10:00"}, // the newest entry is its own
			{"13:58:00", "13:10:00", "13:59:00"},
			{"14:00:00", "13:10:00", "14:00:00"},
			{"14:10:00", "13:10:00", "14:10:00"},
		},
		"many entries in a row": {
			{"12:00:00", "13:00:00", "13:00:00"},
			{"12:00:02", "13:00:00", "13:00:01"},
			{"12:00:04", "13:00:01", "13:00:02"},
			{"12:00:06", "13:00:02", "13:00:03"},
		},
		"another leader again": {
			{"12:00:00", "13:00:00", "13:00:00"},
			{"12:10:00", "14:00:00", "14:00:00"},
			{"12:20:00", "14:00:00", "14:05:00"},
		},
		"the clock is set back": {
			{"12:00:00", "11:59:59", "12:00:00"},
			{"10:00:00", "12:00:00", "12:00:00"},
			{"10:00:10", "12:00:00", "12:00:05"},
			{"09:00:00", "12:00:00", "12:00:05"},
			{"09:00:10", "12:00:05", "12:00:10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var own, newest time.Time
			c := &agreedTime{own: func() time.Time { return own }, newest: func() time.Time { return newest }}
			for _, s := range steps {
				own, newest = at(s.own), at(s.newest)
				if got := c.now().Format(time.TimeOnly); got != s.want {
					t.Errorf("the clock says %s and the newest entry %s: it is %s, want %s", s.own, s.newest, got, s.want)
				}
			}
		})
	}
}

// One wrong clock changes nothing if the others agree. With two nodes nobody knows which clock is
// right.
func TestMedianOf_ignoresOneWrongClock(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	for _, tt := range []struct {
		offs []time.Duration // offsets of this node, 0, and of the others
		want time.Duration
	}{
		{[]time.Duration{0}, 0},
		{[]time.Duration{0, 2 * h}, 0},
		{[]time.Duration{0, 0, 2 * h}, 0},
		{[]time.Duration{0, 2 * h, 2 * h}, 2 * h},
		{[]time.Duration{0, -2 * h, h}, 0},
		{[]time.Duration{0, h, 2 * h}, h},
		{[]time.Duration{0, h, 2 * h, 2 * h}, h},
		{[]time.Duration{0, -h, -2 * h, -2 * h}, -h},
		{[]time.Duration{0, 0, h, h, h}, h},
	} {
		if got := medianOf(slices.Clone(tt.offs)); got != tt.want {
			t.Errorf("clocks %v ahead of this one: %v, want %v", tt.offs, got, tt.want)
		}
	}
}
