package tool

import (
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/browse"
)

// A history is complete only where all of it was looked at.
func TestListCommits_isCompleteOnlyIfAllHistoryWasRead(t *testing.T) {
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
			text := commitsText(asked("list_commits", "repo", "r"), &tt.r, nil)
			if strings.Contains(text, complete) != tt.complete || !strings.Contains(text, tt.says) {
				t.Errorf("complete: %t and %q wanted in\n%s", tt.complete, tt.says, text)
			}
		})
	}
}

// A trace, and a call that goes on from a time, say what they have not looked at.
func TestListCommits_saysWhatItLeftOut(t *testing.T) {
	t.Parallel()
	reached := time.Date(2022, 10, 31, 0, 0, 0, 0, time.UTC)
	two := []browse.CommitInfo{{Hash: strings.Repeat("a", 40)}, {Hash: strings.Repeat("b", 40)}}
	for name, tt := range map[string]struct {
		args        []any
		r           browse.TraceResponse
		complete    bool
		says, never string
	}{
		"all of it":      {r: browse.TraceResponse{Commit: "c", Commits: two}, complete: true, never: "until"},
		"large files":    {r: browse.TraceResponse{Commit: "c", Commits: two, Unread: 4, Large: []string{"a.sql", "b", "c"}}, says: "the changes of 4 files over 16 MB in a merge or with a byte order mark, as a.sql, b, c"},
		"shallow":        {r: browse.TraceResponse{Commit: "c", Commits: two, Shallow: true}, says: "shallow repository"},
		"time ran out":   {args: []any{"perPage", 50}, r: browse.TraceResponse{Commit: "c", Commits: two, AtLeast: true, Reached: reached}, says: "that takes long"},
		"a full page":    {args: []any{"perPage", 2}, r: browse.TraceResponse{Commit: "c", Commits: two, AtLeast: true, Reached: reached}, says: "2022-10-31", never: "takes long"},
		"a continuation": {args: []any{"until", "2022-10-31"}, r: browse.TraceResponse{Commit: "c"}, complete: true, says: "after 2022-10-31 are left out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := tracedText(asked("list_commits", append([]any{"repo", "r", "changes", "x"}, tt.args...)...), &tt.r, 0, nil)
			if strings.Contains(text, complete) != tt.complete || !strings.Contains(text, tt.says) || tt.never != "" && strings.Contains(text, tt.never) {
				t.Errorf("complete: %t, %q and not %q wanted in\n%s", tt.complete, tt.says, tt.never, text)
			}
		})
	}
}

// A blame is complete only where each line's last change can be known, and tells which
// lines are another's than git blame says.
func TestBlameTool_saysWhichLinesDifferFromGit(t *testing.T) {
	t.Parallel()
	edge, old := strings.Repeat("a", 40), strings.Repeat("b", 40)
	r := browse.BlameResponse{
		Ranges:  []browse.BlameRange{{Hash: edge, Path: "f", StartLine: 1, LineCount: 2}, {Hash: old, Path: "f", StartLine: 3, LineCount: 1}},
		Commits: map[string]browse.BlameCommit{edge: {Hash: edge, Edge: true}, old: {Hash: old}},
		Commit:  "c", Total: 3, Past: 2, Shallow: true,
	}
	text := blameText(asked("blame", "repo", "r", "path", "f", "offset", 1, "limit", 50), &r)
	for _, want := range []string{"2 lines changed last by commits of .git-blame-ignore-revs", `"verbatim":true`, "the history of 2 lines before aaaaaaaaaaaa: the remote is a shallow repository"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, complete) {
		t.Errorf("complete:\n%s", text)
	}
	r.Past, r.Shallow, r.Commits[edge] = 0, false, browse.BlameCommit{Hash: edge}
	if text := blameText(asked("blame", "repo", "r", "path", "f", "offset", 1, "limit", 50), &r); !strings.Contains(text, complete) || strings.Contains(text, "verbatim") {
		t.Errorf("not complete:\n%s", text)
	}
}
