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

// within is a context that ends after a while, 0 for never.
func within(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if patience > 0 {
		return context.WithTimeout(ctx, patience)
	}
	return ctx, func() {}
}

// waitIndexed draws a progress bar until every connection has been synced and
// every repository, of at least so many, is indexed or has failed. It ends
// with exit code 1 when one failed.
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
			if lost++; !silent(err) || lost > mostSilent {
				return err
			}

			// What could be decoded of an answer that broke off is of no use.
			s = node.StatusResponse{}
			bar.draw(&s)

		// Indexed is not enough: whoever waits searches next.
		case s.Repos.Total >= atLeast && done(&s) && serves(ctx, c, &s):
			bar.draw(&s)
			return outcome(bar, &s)
		default:
			lost = 0
			bar.draw(&s)
		}

		if !clock.Wait(ctx, 200*time.Millisecond) {
			return fmt.Errorf("still indexing: %w", context.Cause(ctx))
		}
	}
}

// mostSilent is how many questions in a row a node may leave without an answer
// while a command waits for it: at five a second 20 s, the time of a restart.
const mostSilent = 100

// silent reports whether an error is one that passes: of a node that starts or
// restarts, or of a cluster that has no leader for a moment. What a node refuses
// it refuses again.
func silent(err error) bool {
	var answered *apiError
	return !errors.As(err, &answered) || answered.Status >= 500
}

// done reports whether there is nothing left to wait for.
func done(s *node.StatusResponse) bool {
	for _, k := range s.Connections {
		if k.State == "pending" || k.State == "syncing" {
			return false
		}
	}

	// A cluster that has not read its configuration yet has no connections either.
	starting := s.Leader == "" || s.Config.Path != "" && s.Config.Hash == "" && len(s.Config.Errors) == 0
	if len(s.Connections) == 0 && starting {
		return false
	}

	return s.Repos.Indexed+s.Repos.Failed+s.Repos.Unfetchable >= s.Repos.Total
}

// serves reports whether the node takes searches: one that was started again
// knows what is indexed before it is ready. One that is drained never is.
func serves(ctx context.Context, c *client, s *node.StatusResponse) bool {
	for _, m := range s.Members {
		if m.ID == s.Node && m.Draining {
			return true
		}
	}
	return c.call(ctx, "GET", "/readyz", nil, nil) == nil
}

// outcome tells what failed.
func outcome(b *bar, s *node.StatusResponse) error {
	// The bar must be gone before lines are written that stay.
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
	fmt.Fprintln(b.w, indexedText(s)+heldText(s))

	if bad {
		return exitCode(1)
	}
	return nil
}

// heldText is how much of the index the asked node holds, where that is told:
// by the catalog, which knows it as soon as a repository counts as indexed.
func heldText(s *node.StatusResponse) string {
	for _, m := range s.Members {
		if m.ID == s.Node && m.Bytes > 0 {
			return ", " + size(m.Bytes) + " of index on this node"
		}
	}
	return ""
}

// bar is one line that is drawn over itself. Where the output is no terminal
// it is a line for each change instead.
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
	line := b.line(s)
	if line == b.last {
		return
	}

	// A log gets a line for each change, and no control characters.
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

// line shows repositories that are done, and of those that are being indexed
// how far they are.
func (b *bar) line(s *node.StatusResponse) string {
	if s.Node == "" {
		return "starting"
	}

	// Repositories that are being indexed count by their part, or one large one would
	// leave the bar where it is.
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

	// Before the first listing there is nothing to divide by; what was counted at two
	// moments may be more than the whole.
	share := 0.0
	if s.Repos.Total > 0 {
		share = min(1, (float64(s.Repos.Indexed+s.Repos.Failed)+part)/float64(s.Repos.Total))
	}
	full := int(share * barWidth)
	if !b.terminal { // a line for each file would be too many
		return indexedText(s)
	}

	text := fmt.Sprintf("[%s%s] %3.0f%%  %s  %s",
		strings.Repeat("#", full), strings.Repeat(".", barWidth-full), share*100, reposText(s), now)

	// A rune for each column: names of repositories need not be ASCII.
	if runes := []rune(text); len(runes) > maxLine {
		return string(runes[:maxLine])
	}
	return text
}

// reposText is how many of the repositories are indexed: "0 of 1 repository".
func reposText(s *node.StatusResponse) string {
	return fmt.Sprintf("%d of %s", s.Repos.Indexed, catalog.Counted(s.Repos.Total, "repository", "repositories"))
}

func indexedText(s *node.StatusResponse) string { return reposText(s) + " indexed" }
