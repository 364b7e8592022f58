package main

import "testing"

// A count agrees with its noun.
func TestCountsAgreeWithTheirNouns(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 matches", 1: "1 match", 1234: "1234 matches"} {
		if got := count(n, "match", "matches"); got != want {
			t.Errorf("count of %d: %q, want %q", n, got, want)
		}
	}

	var s statusAnswer
	s.Repos.Indexed, s.Repos.Total = 1, 1
	if got := indexedText(&s); got != "1 of 1 repository indexed" {
		t.Errorf("a node with one repository: %q", got)
	}
}
