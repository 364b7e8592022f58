package tool

import (
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/browse"
)

// A history is complete only where all of it was looked at.
func TestListCommits_completeOnlyOfAllHistory(t *testing.T) {
	t.Parallel()
	commits := []browse.CommitInfo{{Hash: strings.Repeat("a", 40), Message: "Mend it"}}
	for name, tt := range map[string]struct {
		r        browse.CommitsResponse
		complete bool
		says     string
	}{
		"all commits":                {r: browse.CommitsResponse{Commits: commits, Total: 1, Per: 50}, complete: true},
		"none":                       {r: browse.CommitsResponse{Per: 50}, complete: true, says: "No commit matches."},
		"not answered":               {says: "Not searched"},
		"shallow":                    {r: browse.CommitsResponse{Commits: commits, Total: 1, Per: 50, Shallow: true}, says: "shallow repository"},
		"shallow, none":              {r: browse.CommitsResponse{Per: 50, Shallow: true}, says: "shallow repository"},
		"none, and time has run out": {r: browse.CommitsResponse{Per: 50, Reached: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}, says: "2026-01-02"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := commitsText(asked("list_commits", "repo", "r"), &tt.r)
			if strings.Contains(text, complete) != tt.complete || !strings.Contains(text, tt.says) {
				t.Errorf("complete: %t and %q wanted in\n%s", tt.complete, tt.says, text)
			}
		})
	}
}
