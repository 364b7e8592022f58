package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/operate"
)

func newConnection(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connection",
		Short: "Connections to code hosts (on a node's host, or with an owner's key)",
	}
	cmd.AddCommand(newConnectionList(getenv), newConnectionShow(getenv), newConnectionSync(getenv), newConnectionAccept(getenv), newConnectionWebhook(getenv))
	return cmd
}

func newConnectionList(getenv func(string) string) *cobra.Command {
	return listing[[]operate.ConnectionStatus]{use: "list", short: "State of every connection: what it lists and leaves out, what went wrong, when it is listed next",
		path: fixedPath("/api/connections"), show: func(w io.Writer, all []operate.ConnectionStatus) error {
			return printConnections(w, all, time.Now())
		}}.command(getenv)
}

// newConnectionShow makes `shoal connection show`: the state of one connection and its last
// listings.
func newConnectionShow(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, connectionNames, &cobra.Command{
		Use:   "show NAME",
		Short: "State of a connection, and how its last listings ended",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var k operate.ConnectionResponse
		if err := c.call(cmd.Context(), "GET", "/api/connections/"+url.PathEscape(args[0]), nil, &k); err != nil {
			return err
		}

		printConnections(cmd.OutOrStdout(), []operate.ConnectionStatus{k.ConnectionStatus}, time.Now())
		return printSyncs(cmd.OutOrStdout(), k.Syncs, time.Now())
	})
}

func newConnectionSync(getenv func(string) string) *cobra.Command {
	return connectionAction(getenv, "sync", "List a connection now, and say what came of it")
}

func newConnectionAccept(getenv func(string) string) *cobra.Command {
	return connectionAction(getenv, "accept", "Say that the repositories that the last listing misses are gone, and list it again")
}

// newConnectionWebhook makes `shoal connection webhook`, which prints a webhook's address and secret.
func newConnectionWebhook(getenv func(string) string) *cobra.Command {
	var rotate bool
	cmd := actionCommand(getenv, connectionNames, &cobra.Command{
		Use:   "webhook NAME",
		Short: "The address and the secret of a connection's webhook, and where to enter them",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		method, path := "GET", "/api/webhook/"+url.PathEscape(args[0])
		if rotate {
			method, path = "POST", path+"/rotate"
		}

		var hook struct {
			URL, Secret, SigningToken, Steps string
			PreviousUntil                    time.Time
		}
		if err := c.call(cmd.Context(), method, path, nil, &hook); err != nil {
			return err
		}

		// GitLab accepts the secret as a token, or this other form for signatures.
		w := cmd.OutOrStdout()
		fmt.Fprintf(w, "address  %s\nsecret   %s\n", hook.URL, hook.Secret)
		if hook.SigningToken != "" {
			fmt.Fprintf(w, "signing  %s\n", hook.SigningToken)
		}
		fmt.Fprintf(w, "\n%s\n", hook.Steps)

		// Deliveries signed with the previous secret are accepted for a while.
		if !hook.PreviousUntil.IsZero() {
			fmt.Fprintf(w, "The secret before this one is good until %s.\n", hook.PreviousUntil.Local().Format("2006-01-02 15:04"))
		}
		return nil
	})

	cmd.Flags().BoolVar(&rotate, "rotate", false, "replace the secret; the last one is good for a day more")
	return cmd
}

// connectionAction makes a command that starts a listing by the action verb of the API, waits for its
// end, and prints the connection's state. The exit status is 1 if the listing failed.
func connectionAction(getenv func(string) string, verb, short string) *cobra.Command {
	var timeout time.Duration
	cmd := actionCommand(getenv, connectionNames, &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		// The answer has the state before the new listing.
		var before operate.ConnectionStatus
		if err := c.call(cmd.Context(), "POST", "/api/connections/"+url.PathEscape(args[0])+"/"+verb, nil, &before); err != nil {
			return err
		}

		// The timeout ends the wait only. The listing continues.
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		after, err := waitSynced(ctx, c, before)
		if err != nil {
			return err
		}

		// Print the state after a failure too, because it has the reason.
		printConnections(cmd.OutOrStdout(), []operate.ConnectionStatus{after}, time.Now())
		if after.State == "failed" {
			return exitCode(1)
		}
		return nil
	})

	cmd.Flags().DurationVar(&timeout, "timeout", time.Hour, "give up waiting after this long; the listing goes on")
	return cmd
}

// waitSynced waits until a listing that is newer than the one in before has ended, and returns the
// connection's state. It compares the numbers of attempts, because two may end within a second.
func waitSynced(ctx context.Context, c *client, before operate.ConnectionStatus) (operate.ConnectionStatus, error) {
	for failures := 0; ; {
		var all []operate.ConnectionStatus
		err := c.call(ctx, "GET", "/api/connections", nil, &all)

		// Tolerate some failures in a row: while a node restarts, the listing continues at another one.
		switch {
		case err == nil:
			failures = 0
		case ctx.Err() == nil:
			if failures++; !isTemporary(err) || failures > maxFailures {
				return before, err
			}
		}

		found := false
		for _, now := range all {
			if now.Name != before.Name {
				continue
			}
			if now.Attempt > before.Attempt && !now.Queued {
				return now, nil
			}
			found = true
		}

		// Stop if the configuration no longer has the connection: its listing never ends.
		if err == nil && !found {
			return before, fmt.Errorf("the configuration has no connection %s any more", before.Name)
		}

		if !clock.Wait(ctx, 200*time.Millisecond) {
			return before, fmt.Errorf("connection %s is still being listed; shoal connection list shows how far it is", before.Name)
		}
	}
}

// printSyncs prints the last listings, newest first.
func printSyncs(w io.Writer, syncs []operate.Listing, now time.Time) error {
	if len(syncs) == 0 {
		return nil
	}

	fmt.Fprintln(w)
	return table(w, "BEGAN\tSTATE\tTOOK\tREPOSITORIES\tERROR", syncs, func(s operate.Listing) string {
		repos := ""
		if s.Repos != nil {
			repos = fmt.Sprint(*s.Repos)
		}
		return fmt.Sprintf("%s\t%s\t%v\t%s\t%s", clockTime(s.BeganAt, now, ""), s.State, time.Duration(s.TookMs)*time.Millisecond, repos, s.Error)
	})
}

// printConnections prints a table of connections, and below it their failures, issues and warnings.
func printConnections(w io.Writer, all []operate.ConnectionStatus, now time.Time) error {
	err := table(w, "CONNECTION\tTYPE\tSTATE\tREPOSITORIES\tLISTED\tNEXT\tPUSHES BY\tHOST", all, func(k operate.ConnectionStatus) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", k.Name, k.Type, connectionState(&k), connectionCounts(&k), clockTime(k.SyncedAt, now, "never"), clockTime(k.NextAt, now, "now"), pushWays(&k, now), credentialText(&k, now))
	})

	for _, k := range all {
		if k.Message != "" {
			fmt.Fprintf(w, "\n%s failed: %s\n", k.Name, k.Message)
		}

		if k.Following.Problem != "" {
			fmt.Fprintf(w, "\n%s sends no pushes, so its repositories are fetched from time to time: %s\n", k.Name, k.Following.Problem)
		}

		for _, i := range k.Issues {
			subject := k.Name
			if i.Target != "" {
				subject += ", " + i.Target
			}
			since := ""
			if !i.Since.IsZero() {
				since = ", since " + clockTime(i.Since, now, "")
			}
			fmt.Fprintf(w, "\n%s: %s (%s%s)\n", subject, i.Text, i.Code, since)
			if i.Hint != "" {
				fmt.Fprintf(w, "    %s\n", i.Hint)
			}
		}

		// Skip the first warnings, which repeat the issues.
		for _, text := range k.Warnings[min(len(k.Issues), len(k.Warnings)):] {
			fmt.Fprintf(w, "\n%s: %s\n", k.Name, text)
		}
	}
	return err
}

// connectionState returns the state. If the host refuses the token, it adds what that means for the
// repositories: hidden or stale.
func connectionState(k *operate.ConnectionStatus) string {
	switch {
	case !k.HiddenAt.IsZero():
		return k.State + ", hidden"
	case !k.RefusedAt.IsZero():
		return k.State + ", stale"
	}
	return k.State
}

// connectionCounts returns how many repositories are listed, held, kept and left out.
func connectionCounts(k *operate.ConnectionStatus) string {
	text := fmt.Sprint(k.Repos)
	if k.State == "syncing" {
		text += fmt.Sprintf(", %d new or changed so far", k.Listed)
	}

	// Held repositories are missing from the listing. Kept ones belong to a target that could not be
	// listed. Neither are removed yet.
	if k.Held > 0 {
		text += fmt.Sprintf(", %d held", k.Held)
	}
	if k.Kept > 0 {
		text += fmt.Sprintf(", %d kept", k.Kept)
	}

	// Also count the repositories that the configuration excludes, because users may miss them.
	var reasons []string
	sum := 0
	for _, e := range k.Excluded {
		sum += e.Repos
		reasons = append(reasons, fmt.Sprintf("%s %d", e.Reason, e.Repos))
	}

	if sum > 0 {
		text += fmt.Sprintf(", %d left out (%s)", sum, strings.Join(reasons, ", "))
	}
	return text
}

// pushWays returns the ways by which the cluster learns of pushes.
func pushWays(k *operate.ConnectionStatus, now time.Time) string {
	f := &k.Following
	var ways []string
	if !f.HookAt.IsZero() {
		ways = append(ways, "webhook at "+clockTime(f.HookAt, now, ""))
	}

	// The cluster asks the host even if it has webhooks, because deliveries get lost. A host with a
	// problem reports no pushes.
	if f.Signal != "" && f.Problem == "" {
		ways = append(ways, fmt.Sprintf("%s each %.0f s", f.Signal, f.Seconds))
	}

	if len(ways) == 0 {
		return f.By
	}
	return strings.Join(ways, ", ")
}

// credentialText returns the number of calls to the host, how many are left, and when the token ends.
func credentialText(k *operate.ConnectionStatus, now time.Time) string {
	text := catalog.Counted(k.Calls, "call", "calls")

	if k.Limit != nil {
		text += fmt.Sprintf(", %d of %d left until %s", k.Limit.Remaining, k.Limit.Calls, clockTime(k.Limit.ResetAt, now, "?"))
	}
	if !k.ExpiresAt.IsZero() {
		text += fmt.Sprintf(", token ends %s", k.ExpiresAt.Format(time.DateOnly))
	}
	return text
}

// timeText formats a time as the API does; never stands for the zero time.
func timeText(at time.Time, never string) string {
	if at.IsZero() {
		return never
	}
	return at.Format(time.RFC3339)
}

// clockTime formats a time for people, without the date if it is today; never stands for a missing time.
func clockTime(at, now time.Time, never string) string {
	switch at, now := at.Local(), now.Local(); {
	// A missing time is Go's zero time or Unix 0.
	case at.IsZero() || at.Unix() <= 0:
		return never
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format("15:04")
	default:
		return at.Format("2006-01-02 15:04")
	}
}
