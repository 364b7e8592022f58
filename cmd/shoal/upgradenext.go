package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
)

func newUpgradeNext(getenv func(string) string) *cobra.Command {
	var timeout time.Duration
	var asJSON *bool
	cmd := clientCommand(getenv, naming{}, &cobra.Command{
		Use:   "next",
		Short: "Name the node to restart next with this version, once that is safe",
		Long: `Names the node to stop, and to start again with the program of this version: its
id and its address. It waits until that is safe: every node answers and has
caught up, the cluster has a leader, all voters, and all copies. It says on
standard error what it waits for.

The leader comes last, and hands over when it stops. The exit code is 1 where
every node runs this version.`,
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, c *client, _ []string) error {
		ctx, cancel := withTimeout(cmd.Context(), timeout)
		defer cancel()
		next, err := waitForNext(ctx, cmd, c)
		if err != nil {
			return err
		}

		switch {
		case *asJSON:
			err = printJSON(cmd.OutOrStdout(), nextReport(next))
		case next != nil:
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", next.ID, next.Address)
		}
		if next == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "every node runs version %s\n", buildVersion())
			err = cmp.Or(err, error(exitCode(1)))
		}
		return err
	})

	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long (0: never)")
	asJSON = jsonFlag(cmd)
	return cmd
}

// nextReport returns what --json prints: the node to restart, or that there is none left.
func nextReport(m *node.MemberStatus) any {
	if m == nil {
		return map[string]any{"done": true, "version": buildVersion()}
	}
	return map[string]any{"done": false, "id": m.ID, "name": m.Name, "address": m.Address, "role": m.Role, "version": m.Version}
}

// waitForNext waits until it is safe to restart the next node, and returns that; nil if every node runs
// this version. It prints what it waits for. It fails if this program cannot run the cluster's nodes.
func waitForNext(ctx context.Context, cmd *cobra.Command, c *client) (*node.MemberStatus, error) {
	for reason := ""; ; {
		var s node.StatusResponse
		if err := c.call(ctx, "GET", "/api/status", nil, &s); err != nil {
			return nil, err
		}
		if u := compareVersions(&s, catalog.ThisBuild(), buildVersion()); !u.Possible {
			return nil, errors.New(u.Summary[0])
		}

		next := nextNode(&s, buildVersion())
		if next == nil {
			return nil, nil
		}
		now := unsafeReason(&s)
		if now == "" {
			if s.Verdict.State == node.VerdictSmall {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", s.Verdict.Sentence)
			}
			return next, nil
		}

		if now != reason {
			fmt.Fprintln(cmd.ErrOrStderr(), "waiting:", now)
			reason = now
		}
		if !clock.Wait(ctx, time.Second) {
			return nil, errors.New("no node may be restarted yet: " + now)
		}
	}
}

// nextNode returns the next node to upgrade; nil if all run the version. Nodes without a vote come first
// and the leader last, so that the leadership moves once.
func nextNode(s *node.StatusResponse, version string) *node.MemberStatus {
	for _, role := range []string{"nonvoter", "voter", "leader"} {
		i := slices.IndexFunc(s.Members, func(m node.MemberStatus) bool { return m.Role == role && m.Version != version })
		if i >= 0 {
			return &s.Members[i]
		}
	}
	return nil
}

// maxLag is how many entries a node may be behind the leader and still count as caught up.
const maxLag = 100

// unsafeReason returns why no node may be stopped now; "" if one may.
func unsafeReason(s *node.StatusResponse) string {
	if s.Leader == "" {
		return "the cluster has no leader"
	}
	for _, m := range s.Members {
		switch {
		case m.Health != "alive":
			return fmt.Sprintf("node %s does not answer: start it, or `shoal remove` it where it is gone", cluster.Called(m.Name, m.ID))
		case m.Draining:
			return fmt.Sprintf("node %s drains: `shoal undrain` takes it back, `shoal remove` forgets it", cluster.Called(m.Name, m.ID))
		case m.Lag > maxLag:
			return fmt.Sprintf("node %s has not caught up: %d entries are left", cluster.Called(m.Name, m.ID), m.Lag)
		}
	}
	if r := s.Storage.Rebuild; r.Unread > 0 {
		return fmt.Sprintf("index files that this version does not read are made anew: %d are left", r.Unread)
	}
	if s.Verdict.State == node.VerdictWeak || s.Verdict.State == node.VerdictFailing {
		return s.Verdict.Sentence
	}
	return ""
}
