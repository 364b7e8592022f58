package match

import "testing"

func TestCountFollowsLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr, text string
		want       int
	}{
		{`^$`, "a\n\nb\n\n", 2},
		{`^$`, "", 0},
		{`^`, "a\n\nb", 3},
		{`$`, "a\n\nb\n", 3},
		{`a*`, "baac", 1},
		{`^a`, "a\nba\na", 2},
		{`a.b`, "a\nb", 0},
		{`a\nb`, "a\nb", 1},
	} {
		m, err := Compile(c.expr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Count([]byte(c.text)); got != c.want {
			t.Errorf("Count(%q, %q) = %d, want %d", c.expr, c.text, got, c.want)
		}
	}
}
