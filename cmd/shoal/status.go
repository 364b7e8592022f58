package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/node/operate"
)

func newStatus(getenv func(string) string) *cobra.Command {
	var watch, wait, asJSON, check bool
	var timeout time.Duration
	cmd := clientCommand(getenv, naming{}, &cobra.Command{
		Use:   "status",
		Short: "Members, leader, repositories, jobs",
		Args:  cobra.NoArgs,
	}, func(cmd *cobra.Command, c *client, _ []string) error {
		ctx, cancel := withTimeout(cmd.Context(), timeout)
		defer cancel()

		switch {
		case wait:
			return waitIndexed(ctx, c, 0, cmd.ErrOrStderr())
		case watch:
			return watchStatus(ctx, c, cmd.OutOrStdout())
		}
		return showStatus(ctx, c, cmd.OutOrStdout(), asJSON, check)
	})

	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show again every second")
	cmd.Flags().BoolVar(&wait, "wait-indexed", false, "wait with a progress bar until every repository is indexed or has failed; exit 1 if one or a connection failed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the answer of the API as it is")
	cmd.Flags().BoolVar(&check, "check", false, "exit 1 without a leader, with a dead node or too few copies, with nodes of two versions, cluster keys that differ, a certificate that ends soon, an old back-up, a failed connection, repository or job, a refused configuration file, or a warning")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long (0: never)")
	return cmd
}

// showStatus prints the status once. With check it returns exit code 1 if the cluster is not healthy.
func showStatus(ctx context.Context, c *client, w io.Writer, asJSON, check bool) error {
	var raw json.RawMessage
	if err := c.call(ctx, "GET", "/api/status", nil, &raw); err != nil {
		return err
	}

	var s node.StatusResponse
	if err := reply.Decode(raw, &s); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}

	if asJSON {
		fmt.Fprintf(w, "%s\n", raw)
	} else {
		printStatus(w, &s)
	}

	if check && !isHealthy(&s) {
		return exitCode(1)
	}
	return nil
}

// isHealthy reports whether a status has no failure, no warning, and a verdict that needs no care.
func isHealthy(s *node.StatusResponse) bool {
	for _, k := range s.Connections {
		if k.State == "failed" {
			return false
		}
	}
	if s.Verdict.State.NeedsCare() {
		return false
	}
	return s.Leader != "" && len(s.Failed) == 0 && s.Repos.Failed == 0 && len(s.Config.Errors) == 0 && len(s.Warnings) == 0
}

// watchStatus prints the status, or the error of reading it, every second until ctx ends.
func watchStatus(ctx context.Context, c *client, w io.Writer) error {
	for {
		var s node.StatusResponse
		err := c.call(ctx, "GET", "/api/status", nil, &s)
		if ctx.Err() != nil {
			return nil
		}

		// Clear the screen only when the next status is ready, to avoid flicker.
		var b strings.Builder
		fmt.Fprintf(&b, "%s  %s\n\n", c.nodeName(), time.Now().Format(time.TimeOnly))
		if err != nil {
			fmt.Fprintln(&b, err)
		} else {
			printStatus(&b, &s)
		}
		if isTerminal(os.Stdout) {
			fmt.Fprint(w, "\x1b[H\x1b[2J")
		}

		fmt.Fprint(w, b.String())
		if !clock.Wait(ctx, time.Second) {
			return nil
		}
	}
}

// printStatus prints a status for people.
func printStatus(w io.Writer, s *node.StatusResponse) {
	// A node of an older version sends no verdict.
	if s.Verdict.Sentence != "" {
		fmt.Fprintln(w, s.Verdict.Sentence)
	}
	fmt.Fprintf(w, "node %s, version %s, catalog %d of level %d, leader %s\n", nodeOf(s, s.Node), s.Version, s.CatalogIndex, s.Level.Number, cmp.Or(nodeOf(s, s.Leader), "none"))
	if s.Level.Next > 0 && len(s.Level.WaitsFor) > 0 {
		var behind []string
		for _, id := range s.Level.WaitsFor {
			behind = append(behind, nodeOf(s, id))
		}
		fmt.Fprintf(w, "level %d of the catalog waits for nodes that cannot apply it: %s\n", s.Level.Next, strings.Join(behind, ", "))
	}
	fmt.Fprintf(w, "repositories: %d, %d indexed, %d failed    jobs: %d waiting, %d of them after a failure, %d running, %d given up\n",
		s.Repos.Total, s.Repos.Indexed, s.Repos.Failed, s.Jobs.Pending, s.Jobs.Retrying, s.Jobs.Running, s.Jobs.Failed)

	// Only owners see disk usage.
	if s.Storage.DiskFree > 0 {
		files := catalog.Counted(s.Storage.Shards, "index file", "index files")
		fmt.Fprintf(w, "this node: %s, %s; mirrors %s; disk free %s\n",
			files, bytesText(s.Storage.ShardBytes), bytesText(s.Storage.MirrorBytes), bytesText(s.Storage.DiskFree))
	}
	if h := s.Storage.History; h.Repositories > 0 || h.Bound != "" && h.Bound != "off" {
		fmt.Fprintf(w, "commits indexed here (%s): %d, of %d of %s, %s", h.Bound, h.Commits, h.Covered, catalog.Counted(h.Repositories, "repository", "repositories"), bytesText(h.Bytes))
		if h.Cut > 0 {
			fmt.Fprintf(w, "; %d of them without their older commits", h.Cut)
		}
		if h.Excluded > 0 {
			fmt.Fprintf(w, "; %d left out", h.Excluded)
		}
		fmt.Fprintln(w)
	}
	if x := s.Watches; x.Watches > 0 {
		fmt.Fprintf(w, "watches: %d, receivers that fail: %d, repositories to check: %d\n", x.Watches, x.Failing, x.Backlog)
	}
	if ends := s.CertificateEnds; !ends.IsZero() {
		fmt.Fprintf(w, "certificate of its API: ends %s\n", ends.Format(time.DateTime))
	}
	if s.Storage.Quarantined > 0 {
		fmt.Fprintf(w, "damaged index files set aside: %d\n", s.Storage.Quarantined)
	}
	if r := s.Storage.Rebuild; r.Of > 0 {
		fmt.Fprintf(w, "index files of an earlier version: %d of %d made anew, for %s", r.Done, r.Of, r.Took.Round(time.Second))
		if r.Unread > 0 {
			fmt.Fprintf(w, "; searches lack %d of them until then", r.Unread)
		}
		fmt.Fprintln(w)
	}

	// Use one writer for all tables, so that their columns align.
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	printMembers(t, s)

	if len(s.Connections) > 0 {
		fmt.Fprintln(t, "\nCONNECTION\tTYPE\tSTATE\tREPOSITORIES\tMESSAGE")
		for _, k := range s.Connections {
			message := strings.Join(append(k.Warnings, k.Message), " ")
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", k.Name, k.Type, k.State, k.Repos, message)
		}
	}
	printPermissions(t, s.Permissions)
	printJobs(t, "RUNNING", s, s.Running)
	printJobs(t, "FAILED", s, s.Failed)
	t.Flush()

	for _, e := range s.Config.Errors {
		fmt.Fprintf(w, "\n%s is refused: %s", s.Config.Path, e)
	}
	if len(s.Config.Errors) > 0 {
		fmt.Fprintln(w)
	}
	printCopies(w, s)
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
}

// printPermissions prints the state of permission sync, if it is on. p is nil unless the viewer is an
// owner.
func printPermissions(t io.Writer, p *job.PermissionState) {
	if p == nil || p.Sync != catalog.PermissionSyncOn {
		return
	}
	fmt.Fprintln(t, "\nPERMISSIONS\tOF\tANSWERED\tTOO OLD\tREFUSED\tFAILING\tNEWEST\tOLDEST")
	for _, h := range p.Hosts {
		for _, row := range []struct {
			of string
			job.Answers
		}{{"people", h.People}, {"repositories", h.Repos}} {
			fmt.Fprintf(t, "%s\t%s\t%d of %d\t%d\t%d\t%d\t%s\t%s\n",
				h.Host, row.of, row.Answered, row.Wanted, row.Ended, row.Refused, row.Failing, timeText(row.Newest, "-"), timeText(row.Oldest, "-"))
		}
	}
	fmt.Fprintf(t, "accounts linked to nobody at a code host: %d\n", p.Unlinked)
}

func printMembers(t io.Writer, s *node.StatusResponse) {
	if len(s.Members) == 0 {
		return
	}
	fmt.Fprintln(t, "\nNODE\tNAME\tROLE\tHEALTH\tZONE\tADDRESS\tINDEX\tLAG\tVERSION\tLEVEL")

	for _, m := range s.Members {
		health := m.Health
		switch {
		case m.Drained:
			health += ", drained"
		case m.Draining && m.Left > 0:
			health += fmt.Sprintf(", draining, %d left", m.Left)
		case m.Draining:
			health += ", draining"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", m.ID, cmp.Or(m.Name, "-"), m.Role, health, m.Zone, m.Address, bytesText(m.Bytes), m.Lag, m.Version, levelText(m.Level))
	}
}

// levelText returns the highest level that a node can apply.
func levelText(level int) string {
	if level == 0 {
		return "unknown"
	}
	return fmt.Sprint(level)
}

// printCopies warns about repositories without a live copy, and prints how many have too few.
func printCopies(w io.Writer, s *node.StatusResponse) {
	p := &s.Placement
	if p.NoLiveCopy > 0 {
		fmt.Fprintf(w, "warning: no live copy of %s: made anew from the code hosts\n", firstNames(p.NoLiveCopy, p.Missing))
	}
	if few := p.UnderReplicated - p.NoLiveCopy; few > 0 {
		fmt.Fprintf(w, "fewer live copies than wanted: %s; copies under way to this node: %d\n", firstNames(p.UnderReplicated, p.Short), p.Moves)
	}
}

// firstNames returns the number of repositories in words, with the first five names if there are any.
func firstNames(n int, names []string) string {
	out := catalog.Counted(n, "repository", "repositories")
	if len(names) == 0 {
		return out
	}
	few := strings.Join(names[:min(len(names), 5)], ", ")
	if n > 5 {
		few += ", ..."
	}
	return out + " (" + few + ")"
}

// nodeOf returns the name and the id of a node; the id alone if the status does not list it.
func nodeOf(s *node.StatusResponse, id string) string {
	for _, m := range s.Members {
		if m.ID == id {
			return cluster.Called(m.Name, id)
		}
	}
	return id
}

func printJobs(t io.Writer, title string, s *node.StatusResponse, jobs []operate.JobStatus) {
	if len(jobs) == 0 {
		return
	}
	fmt.Fprintf(t, "\n%s\tSUBJECT\tNODE\tATTEMPT\tSTEP\tDETAIL\n", title)
	for _, j := range jobs {
		detail := j.Error
		if detail == "" && j.Total > 0 {
			detail = fmt.Sprintf("%d of %d", j.Done, j.Total)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", j.Kind, j.Subject, nodeOf(s, j.Node), j.Attempt, j.Step, detail)
	}
}

// bytesText formats a number of bytes for people.
func bytesText(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}

	// Use the next unit from 999.95 on, which would be printed as 1000.0.
	f, i := float64(n)/1000, 0
	for f >= 999.95 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	return fmt.Sprintf("%.1f %cB", f, units[i])
}
