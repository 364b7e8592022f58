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

// withTimeout returns a context with a timeout; 0 means none.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return ctx, func() {}
}

// waitIndexed draws a progress bar until every connection is synced and all repositories, at
// least atLeast, are indexed or have failed. It returns exit code 1 if one failed.
func waitIndexed(ctx context.Context, c *client, atLeast int, w io.Writer) error {
	bar := &bar{w: w, terminal: isTerminal(os.Stderr)}
	defer bar.clear()

	lost := 0
	for {
		var s node.StatusResponse
		err := c.call(ctx, "GET", "/api/status", nil, &s)

		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("still indexing: %w", context.Cause(ctx))
		case err != nil:
			if lost++; !isTemporary(err) || lost > mostSilent {
				return err
			}

			// Do not use half of an answer.
			s = node.StatusResponse{}
			bar.draw(&s)

		// Also wait until the node is ready, because the user searches next.
		case s.Repos.Total >= atLeast && isDone(&s) && acceptsSearches(ctx, c, &s):
			bar.draw(&s)
			return printOutcome(bar, &s)
		default:
			lost = 0
			bar.draw(&s)
		}

		if !clock.Wait(ctx, 200*time.Millisecond) {
			return fmt.Errorf("still indexing: %w", context.Cause(ctx))
		}
	}
}

// mostSilent limits the failed requests in a row: at five a second they take 20 s, the time of a
// restart.
const mostSilent = 100

// isTemporary reports whether an error is temporary: the node starts, or the cluster has no leader. A
// refusal by the node is not.
func isTemporary(err error) bool {
	var answered *apiError
	return !errors.As(err, &answered) || answered.Status >= 500
}

// isDone reports whether there is nothing left to wait for.
func isDone(s *node.StatusResponse) bool {
	for _, k := range s.Connections {
		if k.State == "pending" || k.State == "syncing" {
			return false
		}
	}

	// Before the cluster has read its configuration, it has no connections either.
	starting := s.Leader == "" || s.Config.Path != "" && s.Config.Hash == "" && len(s.Config.Errors) == 0
	if len(s.Connections) == 0 && starting {
		return false
	}

	return s.Repos.Indexed+s.Repos.Failed+s.Repos.Unfetchable >= s.Repos.Total
}

// acceptsSearches reports whether the node accepts searches. A restarted node knows the index before it is
// ready. A draining node never becomes ready, so do not wait for it.
func acceptsSearches(ctx context.Context, c *client, s *node.StatusResponse) bool {
	for _, m := range s.Members {
		if m.ID == s.Node && m.Draining {
			return true
		}
	}
	return c.call(ctx, "GET", "/readyz", nil, nil) == nil
}

// printOutcome prints the failures and a summary.
func printOutcome(b *bar, s *node.StatusResponse) error {
	// Remove the bar before printing lines that stay.
	b.clear()
	bad := s.Repos.Failed > 0
	for _, k := range s.Connections {
		if k.State == "failed" {
			bad = true
			fmt.Fprintf(b.w, "connection %s: %s\n", k.Name, k.Message)
		}
	}

	for _, j := range s.Failed {
		fmt.Fprintf(b.w, "%s %s: %s\n", j.Kind, j.Subject, cmp.Or(j.Error, "why is told to owners"))
	}
	fmt.Fprintln(b.w, indexedText(s)+indexSizeText(s))

	if bad {
		return exitCode(1)
	}
	return nil
}

// indexSizeText returns how much of the index the node has, according to the catalog; "" if the status
// does not say.
func indexSizeText(s *node.StatusResponse) string {
	for _, m := range s.Members {
		if m.ID == s.Node && m.Bytes > 0 {
			return ", " + bytesText(m.Bytes) + " of index on this node"
		}
	}
	return ""
}

// bar is a progress bar on one line. If the output is no terminal, it prints a line for each
// change.
type bar struct {
	w        io.Writer
	terminal bool
	last     string
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

	// A log gets lines without control characters.
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

	// Count the progress within repositories too, or a large one would stop the bar.
	part, now := 0.0, ""
	for _, j := range s.Running {
		if j.Kind != "index" {
			now = cmp.Or(now, j.Kind+" "+j.Subject)
			continue
		}
		now = j.Subject + " " + j.Step
		if j.Total > 0 {
			part += float64(j.Done) / float64(j.Total)
			now += fmt.Sprintf(" %d of %d", j.Done, j.Total)
		}
	}

	// There may be no repositories yet, and the counts may differ by a moment.
	share := 0.0
	if s.Repos.Total > 0 {
		share = min(1, (float64(s.Repos.Indexed+s.Repos.Failed)+part)/float64(s.Repos.Total))
	}
	full := int(share * barWidth)
	if !b.terminal { // a line for each file would be too much
		return indexedText(s)
	}

	text := fmt.Sprintf("[%s%s] %3.0f%%  %s  %s",
		strings.Repeat("#", full), strings.Repeat(".", barWidth-full), share*100, reposText(s), now)

	// One rune for each column: names may not be ASCII.
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
