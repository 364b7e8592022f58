package paths

import (
	"testing"
	"testing/quick"
)

// plainDistance computes Distance by its definition.
func plainDistance(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return plainDistance(a[1:], b[1:])
	}
	d := 1 + min(plainDistance(a[1:], b), plainDistance(a, b[1:]), plainDistance(a[1:], b[1:]))
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		d = min(d, 1+plainDistance(a[2:], b[2:]))
	}
	return d
}

func TestEditDistance_isTheFewestChanges(t *testing.T) {
	t.Parallel()
	few := func(s []byte) string {
		for i := range s {
			s[i] = 'a' + s[i]%3
		}
		return string(s[:min(len(s), 6)])
	}
	same := func(a, b []byte) bool {
		x, y := few(a), few(b)
		return Distance(x, y) == plainDistance(x, y)
	}
	if err := quick.Check(same, &quick.Config{MaxCount: 500}); err != nil {
		t.Error(err)
	}
}
