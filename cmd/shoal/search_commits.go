package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
)

// commitsAnswer is the answer of POST /api/search_commits.
type commitsAnswer struct {
	search.CommitsResponse
	Exhaustive bool           `json:"isSearchExhaustive"`
	Gaps       []coverage.Gap `json:"notSearched,omitempty"`
}

// The colours of git's differences.
const (
	colorAdded   = "\x1b[32m"
	colorRemoved = "\x1b[31m"
	colorCommit  = "\x1b[33m"
)

// commitsEvent is an event of POST /api/stream_search_commits.
type commitsEvent struct {
	Type  string `json:"type"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
	commitsAnswer
}

// searchCommits searches commits, and prints them as they arrive, in a form like git log's. With --json
// it prints the whole answer at its end. It returns exit code 1 if there are none.
func (f *searchFlags) searchCommits(cmd *cobra.Command, c *client, query string) error {
	matches := min(f.matches, search.MaxStreamedCommits)
	if f.onlyCount() {
		matches = 1
	}
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
	p, err := f.newPrinter(out)
	if err != nil {
		return err
	}
	all, printed := []search.FoundCommit{}, 0
	answer, err := c.streamCommits(cmd.Context(), map[string]any{
		"query": query, "matches": matches, "isRegexEnabled": f.regex, "isCaseSensitivityEnabled": f.caseSensitive,
	}, func(part []search.FoundCommit) error {
		printed += len(part)
		switch {
		case f.asJSON:
			all = append(all, part...)
		case !f.count:
			p.printCommits(part, f.filesOnly)
		}
		return out.Flush()
	})
	if err != nil {
		return err
	}

	switch {
	case f.asJSON:
		answer.Commits = all
		text, err := reply.Encode(answer)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", text)
	case f.count:
		fmt.Fprintln(out, answer.Total)
	}
	if err := out.Flush(); err != nil {
		return err
	}

	answer.printGaps(cmd.ErrOrStderr(), printed, f.onlyCount())
	if answer.Total == 0 {
		return exitCode(1)
	}
	return nil
}

// streamCommits searches commits. It calls handle with each part of the answer, and returns the final
// event, which has the counts and no commits.
func (c *client) streamCommits(ctx context.Context, body map[string]any, handle func([]search.FoundCommit) error) (*commitsAnswer, error) {
	resp, err := c.send(ctx, "POST", "/api/stream_search_commits", body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	events := eventsOf(resp.Body)
	for data, ok := events.next(); ok; data, ok = events.next() {
		var e commitsEvent
		if err := reply.Decode([]byte(data), &e); err != nil {
			return nil, fmt.Errorf("decode answer: %w", err)
		}
		switch e.Type {
		case "chunk":
			if err := handle(e.Commits); err != nil {
				return nil, err
			}
		case "final":
			return &e.commitsAnswer, nil
		case "error":
			return nil, fmt.Errorf("%s answers: %s", c.nodeName(), e.Error.Message)
		}
	}
	if err := events.lines.Err(); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", c.nodeName(), err)
	}
	return nil, fmt.Errorf("the connection to %s broke off", c.nodeName())
}

// printCommits prints commits with their changed lines, or only one line each with namesOnly.
func (p *printer) printCommits(part []search.FoundCommit, namesOnly bool) {
	for _, c := range part {
		subject, _, _ := strings.Cut(c.Message, "\n")
		p.paint(colorCommit, c.ID[:min(len(c.ID), 12)])
		fmt.Fprintf(p.out, " %s %s  %s  %s\n", c.CommitTime.Format(time.DateOnly), p.sanitize(c.Repository), p.sanitize(c.Author), p.sanitize(subject))
		if namesOnly {
			continue
		}
		for _, file := range c.Files {
			p.out.WriteString("  ")
			p.paint(colorName, oneLine(file.Path))
			if file.From != "" {
				p.out.WriteString(", before " + oneLine(file.From))
			}
			if file.Status != "modified" {
				p.out.WriteString(", " + file.Status)
			}
			if file.Kept != "" {
				p.out.WriteString(", " + file.Kept + ": its lines are not known")
			}
			p.out.WriteByte('\n')
			for _, h := range file.Hunks {
				p.paint(colorMark, fmt.Sprintf("  @@ -%d,%d +%d,%d @@", h.Old.Start, h.Old.Lines, h.New.Start, h.New.Lines))
				p.out.WriteByte('\n')
				for line := range strings.Lines(h.Body) {
					p.printChanged(strings.TrimRight(line, "\r\n"))
				}
			}
			if file.MoreHunks > 0 {
				fmt.Fprintf(p.out, "  and %s\n", catalog.Counted(file.MoreHunks, "more hunk", "more hunks"))
			}
		}
		if c.MoreFiles > 0 {
			fmt.Fprintf(p.out, "  and %s\n", catalog.Counted(c.MoreFiles, "more file", "more files"))
		}
	}
}

// printChanged prints a changed line, which begins with its sign, in the color of the sign.
func (p *printer) printChanged(line string) {
	color := colorAdded
	if strings.HasPrefix(line, "-") {
		color = colorRemoved
	}
	if p.terminal && len(line) > maxLineBytes {
		line = strings.ToValidUTF8(line[:maxLineBytes], "") + "…"
	}
	p.out.WriteString("  ")
	p.paint(color, p.sanitize(line))
	p.out.WriteByte('\n')
}

// printGaps prints hints, and a line for each reason why results may be missing. printed is the number of
// printed commits. countsOnly means that the command prints counts only.
func (a *commitsAnswer) printGaps(w io.Writer, printed int, countsOnly bool) {
	for _, hint := range a.Hints {
		fmt.Fprintf(w, "shoal: %s\n", hint)
	}
	for i, u := range a.Uncovered {
		if i == 3 {
			fmt.Fprintf(w, "shoal: and more repositories, which shoal search --json names\n")
			break
		}
		fmt.Fprintf(w, "shoal: not everything is shown: %s: %s\n", replaceHidden(u.Repository), u.Why)
	}
	if !a.Exhaustive && len(a.Uncovered) == 0 && !countsOnly {
		fmt.Fprintf(w, "shoal: not everything is shown: %d are the newest of %d; raise it with --matches or narrow the query\n", printed, a.Total)
	}
	if a.Named > 0 {
		fmt.Fprintf(w, "shoal: %s that the query reaches are binary or huge: their lines were not searched\n", catalog.Counted(a.Named, "changed file", "changed files"))
	}
}

// newPrinter returns a printer of results, with colors as --color says. By default a terminal has colors,
// unless it is dumb or NO_COLOR is set.
func (f *searchFlags) newPrinter(out *bufio.Writer) (printer, error) {
	p := printer{out: out, terminal: isTerminal(os.Stdout)}
	switch f.color {
	case "always":
		p.color = true
	case "auto":
		p.color = p.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	case "never":
	default:
		return p, fmt.Errorf("--color %q: want auto, always or never", f.color)
	}
	return p, nil
}
