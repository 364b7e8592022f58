package main

import (
	"bufio"
	"encoding/json"
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
	Gaps       []coverage.Gap `json:"notSearched"`
}

// The colours of git's differences.
const (
	colorAdded   = "\x1b[32m"
	colorRemoved = "\x1b[31m"
	colorCommit  = "\x1b[33m"
)

// commits searches commits, and prints them as git log does.
func (f *searchFlags) commits(cmd *cobra.Command, c *client, query string) error {
	matches := min(f.matches, 1000)
	if f.onlyCount() {
		matches = 1
	}
	var raw json.RawMessage
	err := c.call(cmd.Context(), "POST", "/api/search_commits", map[string]any{
		"query": query, "matches": matches, "isRegexEnabled": f.regex, "isCaseSensitivityEnabled": f.caseSensitive,
	}, &raw)
	if err != nil {
		return err
	}
	var answer commitsAnswer
	if err := reply.Decode(raw, &answer); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}

	out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
	p, err := f.printer(out)
	switch {
	case err != nil:
		return err
	case f.asJSON:
		fmt.Fprintf(out, "%s\n", raw)
	case f.count:
		fmt.Fprintln(out, answer.Total)
	default:
		p.commits(&answer, f.filesOnly)
	}
	if err := out.Flush(); err != nil {
		return err
	}

	answer.lacks(cmd.ErrOrStderr(), f.onlyCount())
	if answer.Total == 0 {
		return exitCode(1)
	}
	return nil
}

// commits prints commits with their changed lines, or only one line each with namesOnly.
func (p *printer) commits(a *commitsAnswer, namesOnly bool) {
	for _, c := range a.Commits {
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
					p.changed(strings.TrimRight(line, "\r\n"))
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

// changed writes a line with its sign.
func (p *printer) changed(line string) {
	color := colorAdded
	if strings.HasPrefix(line, "-") {
		color = colorRemoved
	}
	if p.terminal && len(line) > widest {
		line = strings.ToValidUTF8(line[:widest], "") + "…"
	}
	p.out.WriteString("  ")
	p.paint(color, p.sanitize(line))
	p.out.WriteByte('\n')
}

// lacks writes hints, and a line for each reason why results may be missing. numbers says that only
// counts were printed.
func (a *commitsAnswer) lacks(w io.Writer, numbers bool) {
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
	if !a.Exhaustive && len(a.Uncovered) == 0 && !numbers {
		fmt.Fprintf(w, "shoal: not everything is shown: %d are the newest of %d; raise it with --matches or narrow the query\n", len(a.Commits), a.Total)
	}
	if a.Named > 0 {
		fmt.Fprintf(w, "shoal: %s that the query reaches are binary or huge: their lines were not searched\n", catalog.Counted(a.Named, "changed file", "changed files"))
	}
}

// printer returns a printer of results, with colours if wanted.
func (f *searchFlags) printer(out *bufio.Writer) (printer, error) {
	// By default NO_COLOR and a dumb terminal turn colors off.
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
