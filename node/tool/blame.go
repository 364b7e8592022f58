package tool

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
)

func blame(b browse.Reader) Tool {
	return Tool{
		Name: "blame", Title: "Who changed lines last",
		About: "Tells which commit changed lines of a file last, as `first-last hash date author: subject`. Up to 3 come with text and body. list_commits with `lines` tells all commits.",
		Params: []Param{
			repoParam,
			{Name: "path", Kind: String, Required: true, About: "file, from the root"},
			refParam,
			{Name: "offset", Kind: Integer, Min: 1, Default: 1, About: "first line"},
			{Name: "limit", Kind: Integer, Min: 1, Max: mostBlamed, Default: 50},
			{Name: "verbatim", Kind: Boolean, Default: false, About: "without .mailmap and .git-blame-ignore-revs"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runBlame(ctx, v, b, a)
		},
	}
}

// runBlame runs a call of blame.
func runBlame(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) (string, error) {
	r, err := b.Blame(ctx, v, browse.BlameRequest{
		Repo:  a.Text("repo"),
		Path:  a.Text("path"),
		Ref:   a.Text("ref"),
		First: a.Number("offset"),
		Lines: a.Number("limit"),
		Texts: a.Number("limit") <= fewCommits,

		Verbatim: a.Flag("verbatim"),
	})
	if err != nil {
		return "", err
	}
	return blameText(a, r), nil
}

// blameText writes ranges of lines, each with the commit that changed it last.
func blameText(a *Args, r *browse.BlameResponse) string {
	path := fileLabel(a.Text("path"))

	// The file may end before the requested lines.
	first := a.Number("offset")
	last := min(first+a.Number("limit")-1, r.Total)
	if first > r.Total {
		return fmt.Sprintf("The file has only %s. From its start: %s.", count(r.Total, "line"), a.with("offset", nil))
	}

	var out strings.Builder
	fmt.Fprintf(&out, "%s at %.8s, lines %d-%d of %d\n", path, r.Commit, first, last, r.Total)

	// A range is written whole or not at all, so the next page begins with a whole range.
	next := last + 1
	told := map[string]bool{}
	for _, run := range r.Ranges {
		line := blameLine(run, r.Commits[run.Hash])
		// Before a rename, the file had another path.
		if then := fileLabel(run.Path); then != path {
			line += " (in " + then + ")"
		}

		if out.Len()+len(line) > a.room() {
			next = run.StartLine
			break
		}
		out.WriteString(line + "\n")

		// A commit's message body is shown once, at its first range.
		if !told[run.Hash] {
			told[run.Hash] = true
			out.WriteString(bodyText(r.Commits[run.Hash].Body, min(longestBody, blameShare(a))))
		}
		out.WriteString(runText(a, r, run))
	}

	if r.Past > 0 {
		fmt.Fprintf(&out, "%s changed last by commits of .git-blame-ignore-revs; with those: %s\n", count(r.Past, "line"), a.with("verbatim", true))
	}
	// An answer may both leave out later lines and lack the history of some lines.
	var e end
	e.covers(a, r.Coverage(), words{
		coverage.Late:    "the history of lines that are not shown, within 5 seconds; ask for fewer lines with limit",
		coverage.Shallow: beyondEdge(r),
	})
	// A caller that named a limit and got all of it did not ask for the later lines.
	named := a.Has("limit") && a.Number("limit") < mostBlamed && next > last
	if next <= r.Total && !named {
		e.left = append(e.left, fmt.Sprintf("lines %d-%d; continue with %s", next, r.Total, a.with("offset", next)))
	}
	return out.String() + e.String()
}

// beyondEdge says for how many lines older commits may be the last change, because the repository
// is shallow.
func beyondEdge(r *browse.BlameResponse) string {
	lines, edge := 0, ""
	for _, run := range r.Ranges {
		if r.Commits[run.Hash].Edge {
			lines, edge = lines+run.LineCount, run.Hash
		}
	}
	return fmt.Sprintf("the history of %s before %.12s: the remote is a shallow repository and does not have it", count(lines, "line"), edge)
}

// mostBlamed is the largest number of lines in one call.
const mostBlamed = 500

// blameShare returns the bytes that one line or one body may take. With the largest number of both,
// the answer still fits.
func blameShare(a *Args) int { return a.room() / (2*fewCommits + 2) }

// runText returns the numbered lines of a range; "" if the call did not ask for their text.
func runText(a *Args, r *browse.BlameResponse, run browse.BlameRange) string {
	var out strings.Builder
	number := a.Number("offset")
	for line := range bytes.Lines(r.Texts) {
		if number >= run.StartLine && number < run.StartLine+run.LineCount {
			text := shownLine(bytes.TrimSuffix(line, []byte("\n")))
			if most := blameShare(a); len(text) > most {
				text = cutEnd(text, most)
			}
			fmt.Fprintf(&out, "%d: %s\n", number, text)
		}
		number++
	}
	return out.String()
}

// blameLine describes a range of lines and the commit that changed it last.
func blameLine(run browse.BlameRange, c browse.BlameCommit) string {
	where := fmt.Sprint(run.StartLine)
	// A range of one line needs one number; a second would waste a token.
	if run.LineCount > 1 {
		where = fmt.Sprintf("%d-%d", run.StartLine, run.StartLine+run.LineCount-1)
	}
	date := c.Date.Format("2006-01-02")
	author := label(c.AuthorName)
	subject := cut(label(c.Message), 0, 0)
	return fmt.Sprintf("%s %.12s %s %s: %s", where, run.Hash, date, author, subject)
}
