//go:build gatehole

package api

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/account"
)

// again is the check of the node with the data. Without it alone nothing changes, because the
// asked node checks too. So it is removed together with each other check.
const again = "account.(*Gate).Again"

// unmissed are calls of the gate whose removal need not change one world, with the reason.
var unmissed = map[string]string{
	"ask.(*models).configured":       "it asks only whether there is a viewer; models are the same for all",
	"browse.(*Browser).answering":    "it chooses a node for a repository that a read has let through",
	"browse.(*Browser).repo":         "it makes links of what a read has let through",
	"operate.(*Queue).viewJobs":      "in some worlds no job that is asked for is of a hidden repository",
	"search.(*Searcher).toolRoot":    "it looks for the name of a revision; the search behind it asks the gate itself",
	"search.(*Searcher).besideIndex": "it looks for revisions to compare with; the scan and the search behind it ask the gate themselves",
	"search.(*ranking).order":        "it looks up commits of files that were found",
}

// The oracle finds a difference if any call of the gate that guards content is removed, alone or
// together with the second check.
func TestNonInterference_oracleDetectsEachRemovedPermissionCheck(t *testing.T) {
	p := newPool(t)
	w := draw(p, *worldSeed+4)
	with, without := w.build(t, p, true), w.build(t, p, false)
	asked, differ := w.compare(with, without)
	if len(differ) > 0 {
		t.Fatalf("the whole gate leaks: %s", strings.Join(differ, "\n"))
	}
	t.Logf("%d requests, calls of the gate: %s", asked, strings.Join(account.Holes.Sites(), ", "))

	for _, site := range account.Holes.Sites() {
		if site == again {
			continue
		}
		found := 0
		for _, open := range [][]string{{site}, {site, again}} {
			account.Holes.Open(open...)
			_, differ := w.compare(with, without)
			account.Holes.Open()
			t.Logf("without %s: %d answers differ", strings.Join(open, " and "), len(differ))
			found += len(differ)
		}
		if found == 0 && unmissed[site] == "" {
			t.Errorf("without %s nothing differs", site)
		}
	}
}
