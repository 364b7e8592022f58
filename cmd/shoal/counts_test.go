package main

import "testing"

// A count agrees with its noun, also in what the catalog wrote of an event.
func TestCountsAgreeWithTheirNouns(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 matches", 1: "1 match", 1234: "1234 matches"} {
		if got := count(n, "match", "matches"); got != want {
			t.Errorf("count of %d: %q, want %q", n, got, want)
		}
	}

	for _, c := range [][3]string{
		{"config.changed", "1 connections", "1 connection"},
		{"config.changed", "11 connections", "11 connections"},
		{"permissions.changed", "by github: 1 repositories added, 0 taken away", "by github: 1 repository added, 0 taken away"},
		{"permissions.changed", "by github: 21 repositories added, 1 taken away", "by github: 21 repositories added, 1 taken away"},
		{"api_key.created", "1 connections", "1 connections"}, // the name of a key
	} {
		e := auditLine{Action: c[0]}
		e.Metadata.Message = c[1]
		if got := e.detail(); got != c[2] {
			t.Errorf("%s %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}

	var s statusAnswer
	s.Repos.Indexed, s.Repos.Total = 1, 1
	if got := indexedText(&s); got != "1 of 1 repository indexed" {
		t.Errorf("a node with one repository: %q", got)
	}
}
