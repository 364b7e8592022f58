package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
)

// withTimeout returns a context with a timeout; with a timeout of 0, ctx itself.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return ctx, func() {}
}

// waitIndexed draws a progress bar until every connection is synced, and all repositories, of which there
// must be minRepos, are indexed or have failed. Then it prints the failures and returns exit code 1 if
// there are any.
func waitIndexed(ctx context.Context, c *client, minRepos int, w io.Writer) error {
	bar := &bar{w: w, terminal: isTerminal(os.Stderr)}
	defer bar.clear()

	failures := 0 // failed requests in a row
	for {
		var s node.StatusResponse
		err := c.call(ctx, "GET", "/api/status", nil, &s)

		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("still indexing: %w", context.Cause(ctx))
		case err != nil:
			if failures++; !isTemporary(err) || failures > maxFailures {
				return err
			}

			s = node.StatusResponse{} // an error may leave half of an answer
			bar.draw(&s)

		// Wait until the node accepts searches too, because the user searches next.
		case s.Repos.Total >= minRepos && isDone(&s) && acceptsSearches(ctx, c, &s):
			bar.draw(&s)
			return printOutcome(bar, &s)
		default:
			failures = 0
			bar.draw(&s)
		}

		if !clock.Wait(ctx, 200*time.Millisecond) {
			return fmt.Errorf("still indexing: %w", context.Cause(ctx))
		}
	}
}

// maxFailures limits the failed requests in a row. At five a second they take 20 s, as long as a restart
// of the node.
const maxFailures = 100

// isTemporary reports whether an error may be over soon: no answer, or an error of the server, as while
// a node starts or the cluster has no leader.
func isTemporary(err error) bool {
	var answered *apiError
	return !errors.As(err, &answered) || answered.Status >= 500
}

// isDone reports whether all connections are synced, and all repositories indexed, failed or
// unfetchable.
func isDone(s *node.StatusResponse) bool {
	for _, k := range s.Connections {
		if k.State == "pending" || k.State == "syncing" {
			return false
		}
	}

	// A starting cluster has no connections, because it has not read its configuration yet.
	starting := s.Leader == "" || s.Config.Path != "" && s.Config.Hash == "" && len(s.Config.Errors) == 0
	if len(s.Connections) == 0 && starting {
		return false
	}

	return s.Repos.Indexed+s.Repos.Failed+s.Repos.Unfetchable >= s.Repos.Total
}

// acceptsSearches reports whether the node is ready, which after a restart may come later than isDone. A
// draining node never becomes ready, so for that it returns true.
func acceptsSearches(ctx context.Context, c *client, s *node.StatusResponse) bool {
	for _, m := range s.Members {
		if m.ID == s.Node && m.Draining {
			return true
		}
	}
	return c.call(ctx, "GET", "/readyz", nil, nil) == nil
}

// printOutcome removes the bar, and prints the failures and a summary. It returns exit code 1 if there
// are failures.
func printOutcome(b *bar, s *node.StatusResponse) error {
	b.clear()
	hasFailures := s.Repos.Failed > 0
	for _, k := range s.Connections {
		if k.State == "failed" {
			hasFailures = true
			fmt.Fprintf(b.w, "connection %s: %s\n", k.Name, k.Message)
		}
	}

	for _, j := range s.Failed {
		fmt.Fprintf(b.w, "%s %s: %s\n", j.Kind, j.Subject, cmp.Or(j.Error, "why is told to owners"))
	}
	fmt.Fprintln(b.w, indexedText(s)+indexSizeText(s))

	if hasFailures {
		return exitCode(1)
	}
	return nil
}

// indexSizeText returns the size of the index on the node; "" if the status does not have it.
func indexSizeText(s *node.StatusResponse) string {
	for _, m := range s.Members {
		if m.ID == s.Node && m.Bytes > 0 {
			return ", " + bytesText(m.Bytes) + " of index on this node"
		}
	}
	return ""
}

// bar is a progress bar on one line. If the output is no terminal, it prints a line for each change.
type bar struct {
	w        io.Writer
	terminal bool
	last     string // the line that is shown
}

const (
	barWidth = 30
	maxLine  = 110
)

func (b *bar) draw(s *node.StatusResponse) {
	line := b.progressText(s)
	if line == b.last {
		return
	}

	b.last = line
	if b.terminal {
		fmt.Fprintf(b.w, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(b.w, line)
}

func (b *bar) clear() {
	if b.terminal && b.last != "" {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
	b.last = ""
}

// progressText shows how many repositories are done, and the progress of those being indexed.
func (b *bar) progressText(s *node.StatusResponse) string {
	if s.Node == "" {
		return "starting"
	}

	// Count the progress within repositories too. Otherwise the bar would stand still for a large one.
	partly, running := 0.0, ""
	for _, j := range s.Running {
		if j.Kind != "index" {
			running = cmp.Or(running, j.Kind+" "+j.Subject)
			continue
		}
		running = j.Subject + " " + j.Step
		if j.Total > 0 {
			partly += float64(j.Done) / float64(j.Total)
			running += fmt.Sprintf(" %d of %d", j.Done, j.Total)
		}
	}

	share := 0.0
	if s.Repos.Total > 0 {
		share = min(1, (float64(s.Repos.Indexed+s.Repos.Failed)+partly)/float64(s.Repos.Total))
	}
	full := int(share * barWidth)
	if !b.terminal { // print a line for each repository, not for each step
		return indexedText(s)
	}

	text := fmt.Sprintf("[%s%s] %3.0f%%  %s  %s",
		strings.Repeat("#", full), strings.Repeat(".", barWidth-full), share*100, reposText(s), running)

	// Cut by runes, not bytes, because names may not be ASCII.
	if runes := []rune(text); len(runes) > maxLine {
		return string(runes[:maxLine])
	}
	return text
}

// reposText returns the number of indexed repositories: "0 of 1 repository".
func reposText(s *node.StatusResponse) string {
	return fmt.Sprintf("%d of %s", s.Repos.Indexed, catalog.Counted(s.Repos.Total, "repository", "repositories"))
}

func indexedText(s *node.StatusResponse) string { return reposText(s) + " indexed" }
