package main

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
)

// A count agrees with its noun.
func TestPrintedCounts_agreeWithTheirNouns(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 matches", 1: "1 match", 1234: "1234 matches"} {
		if got := catalog.Counted(n, "match", "matches"); got != want {
			t.Errorf("count of %d: %q, want %q", n, got, want)
		}
	}

	var out strings.Builder
	printRecovered(&out, &cluster.Recovered{Refounded: catalog.Refounded{Sessions: 1, Links: 1}, Accounts: 1, Keys: []string{"a key"}})
	for _, want := range []string{"ended: 1 session, 0 consents of agents, 1 invitation or other link\n", ": 1 active account, 1 API key. Look"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("after a restore is not said %q:\n%s", want, out.String())
		}
	}

	var s node.StatusResponse
	s.Repos.Indexed, s.Repos.Total = 1, 1
	if got := indexedText(&s); got != "1 of 1 repository indexed" {
		t.Errorf("a node with one repository: %q", got)
	}
}
