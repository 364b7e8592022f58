package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

func blame(h Historian) Tool {
	return Tool{
		Name: "blame", Title: "Who changed lines last",
		About: "Tells for lines of a file which commit changed them last, as `first-last hash date author: subject`. list_commits with lines tells all commits that changed them.",
		Params: []Param{
			repoParam,
			{Name: "path", Kind: String, Required: true, About: "file, from the root"},
			refParam,
			{Name: "offset", Kind: Integer, Min: 1, Default: 1, About: "first line"},
			{Name: "limit", Kind: Integer, Min: 1, Max: 500, Default: 50, Clamp: true, About: "lines"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runBlame(ctx, v, h, a)
		},
	}
}

// runBlame answers a call of blame.
func runBlame(ctx context.Context, v catalog.Viewer, h Historian, a *Args) (string, error) {
	r, err := h.Blame(ctx, v, browse.BlameRequest{
		Repo:  a.Text("repo"),
		Path:  a.Text("path"),
		Ref:   a.Text("ref"),
		First: a.Number("offset"),
		Lines: a.Number("limit"),
	})
	if err != nil {
		return "", err
	}
	return blameText(a, r), nil
}

// blameText writes runs of lines with their commits.
func blameText(a *Args, r *browse.BlameResponse) string {
	path := label(a.Text("path"))

	// The file may end before the lines that were asked for do, and even before the first of them.
	first := a.Number("offset")
	last := min(first+a.Number("limit")-1, r.Total)
	if first > r.Total {
		return fmt.Sprintf("The file has only %s. From its start: %s.", count(r.Total, "line"), a.with("offset", nil))
	}

	var out strings.Builder
	fmt.Fprintf(&out, "%s at %.8s, lines %d-%d of %d\n", path, r.Commit, first, last, r.Total)

	// A run is written whole or not at all: the next page begins with one.
	next := last + 1
	for _, run := range r.Ranges {
		line := blameLine(run, r.Commits[run.Hash])
		// Lines from before a rename: at their commit the file stands under another path.
		if then := label(run.Path); then != path {
			line += " (in " + then + ")"
		}

		if out.Len()+len(line) > a.room() {
			next = run.StartLine
			break
		}
		out.WriteString(line + "\n")
	}

	var e end
	// Both may be true of one answer: lines in no run, and lines behind those that were asked for.
	if r.Late {
		e.unlooked = append(e.unlooked, "the history of lines that are not shown, within 5 seconds; ask for fewer lines with limit")
	}
	if next <= r.Total {
		e.left = append(e.left, fmt.Sprintf("lines %d-%d; continue with %s", next, r.Total, a.with("offset", next)))
	}
	return out.String() + e.String()
}

// blameLine is a run of lines with the commit that changed them last.
func blameLine(run browse.BlameRange, c browse.BlameCommit) string {
	where := fmt.Sprint(run.StartLine)
	// Most runs are of one line, and the second number would be a token of no use.
	if run.LineCount > 1 {
		where = fmt.Sprintf("%d-%d", run.StartLine, run.StartLine+run.LineCount-1)
	}
	date := c.Date.Format("2006-01-02")
	author := label(c.AuthorName)
	subject := cut(label(c.Message), 0, 0)
	return fmt.Sprintf("%s %.12s %s %s: %s", where, run.Hash, date, author, subject)
}
