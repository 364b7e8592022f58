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
		path: at("/api/connections"), show: func(w io.Writer, all []operate.ConnectionStatus) error {
			return printConnections(w, all, time.Now())
		}}.command(getenv)
}

// newConnectionShow tells of one connection what the list tells, and how its last
// listings ended.
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

// newConnectionWebhook shows what to enter at the host, which holds a secret: on
// the terminal and nowhere else.
func newConnectionWebhook(getenv func(string) string) *cobra.Command {
	var rotate bool
	cmd := actionCommand(getenv, connectionNames, &cobra.Command{
		Use:   "webhook NAME",
		Short: "The address and the secret of a connection's webhook, and where to enter them",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		// To look is safe any time; to rotate is another request, which no proxy may repeat.
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

		// GitLab takes the secret to send it along, or this form of it to sign with.
		w := cmd.OutOrStdout()
		fmt.Fprintf(w, "address  %s\nsecret   %s\n", hook.URL, hook.Secret)
		if hook.SigningToken != "" {
			fmt.Fprintf(w, "signing  %s\n", hook.SigningToken)
		}
		fmt.Fprintf(w, "\n%s\n", hook.Steps)

		// Deliveries signed with the last secret are taken until the host has the new one.
		if !hook.PreviousUntil.IsZero() {
			fmt.Fprintf(w, "The secret before this one is good until %s.\n", hook.PreviousUntil.Local().Format("2006-01-02 15:04"))
		}
		return nil
	})

	cmd.Flags().BoolVar(&rotate, "rotate", false, "replace the secret; the last one is good for a day more")
	return cmd
}

// connectionAction makes a command that asks for a listing and waits until it
// has ended. The exit status is 1 when it failed.
func connectionAction(getenv func(string) string, verb, short string) *cobra.Command {
	var patience time.Duration
	cmd := actionCommand(getenv, connectionNames, &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		// The state before the attempt: only a later one is the answer.
		var before operate.ConnectionStatus
		if err := c.call(cmd.Context(), "POST", "/api/connections/"+url.PathEscape(args[0])+"/"+verb, nil, &before); err != nil {
			return err
		}

		// The time bounds the wait alone: the listing is the cluster's and goes on.
		ctx, cancel := context.WithTimeout(cmd.Context(), patience)
		defer cancel()
		after, err := waitSynced(ctx, c, before)
		if err != nil {
			return err
		}

		// What was listed is printed of a failure too: it says why, and what is still there.
		printConnections(cmd.OutOrStdout(), []operate.ConnectionStatus{after}, time.Now())
		if after.State == "failed" {
			return exitCode(1)
		}
		return nil
	})

	cmd.Flags().DurationVar(&patience, "timeout", time.Hour, "give up waiting after this long; the listing goes on")
	return cmd
}

// waitSynced waits until an attempt has ended that is later than that of before. Attempts
// have numbers: their times are whole seconds, in which two may end.
func waitSynced(ctx context.Context, c *client, before operate.ConnectionStatus) (operate.ConnectionStatus, error) {
	for lost := 0; ; {
		var all []operate.ConnectionStatus
		err := c.call(ctx, "GET", "/api/connections", nil, &all)

		// The listing goes on at another node while the one that is asked restarts.
		switch {
		case err == nil:
			lost = 0
		case ctx.Err() == nil:
			if lost++; !silent(err) || lost > mostSilent {
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

		// Somebody took it out of the configuration meanwhile: its listing never ends.
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

func printConnections(w io.Writer, all []operate.ConnectionStatus, now time.Time) error {
	err := table(w, "CONNECTION\tTYPE\tSTATE\tREPOSITORIES\tLISTED\tNEXT\tPUSHES BY\tHOST", all, func(k operate.ConnectionStatus) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", k.Name, k.Type, connectionState(&k), connectionCounts(&k), clockTime(k.SyncedAt, now, "never"), clockTime(k.NextAt, now, "now"), pushWays(&k, now), hostText(&k, now))
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

		// The first warnings are the issues, which stand above.
		for _, text := range k.Warnings[min(len(k.Issues), len(k.Warnings)):] {
			fmt.Fprintf(w, "\n%s: %s\n", k.Name, text)
		}
	}
	return err
}

// connectionState is the state, and what is left of what was listed while the host
// refuses the token.
func connectionState(k *operate.ConnectionStatus) string {
	switch {
	case !k.HiddenAt.IsZero():
		return k.State + ", hidden"
	case !k.RefusedAt.IsZero():
		return k.State + ", stale"
	}
	return k.State
}

// connectionCounts tells how many repositories there are, and of what happened to others.
func connectionCounts(k *operate.ConnectionStatus) string {
	text := fmt.Sprint(k.Repos)
	if k.State == "syncing" {
		text += fmt.Sprintf(", %d new or changed so far", k.Listed)
	}

	// Held are those that a listing suddenly lacks, kept those of targets that could not
	// be listed: neither is let go of yet.
	if k.Held > 0 {
		text += fmt.Sprintf(", %d held", k.Held)
	}
	if k.Kept > 0 {
		text += fmt.Sprintf(", %d kept", k.Kept)
	}

	// Left out by the configuration, which is no failure: somebody may look for them.
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

// pushWays tells how pushes are found.
func pushWays(k *operate.ConnectionStatus, now time.Time) string {
	f := &k.Following
	var ways []string
	if !f.HookAt.IsZero() {
		ways = append(ways, "webhook at "+clockTime(f.HookAt, now, ""))
	}

	// The signal is asked for even beside webhooks, of which deliveries get lost; with a
	// problem it tells nothing.
	if f.Signal != "" && f.Problem == "" {
		ways = append(ways, fmt.Sprintf("%s each %.0f s", f.Signal, f.Seconds))
	}

	// Neither has told anything yet.
	if len(ways) == 0 {
		return f.By
	}
	return strings.Join(ways, ", ")
}

// hostText tells what the host said of the credential.
func hostText(k *operate.ConnectionStatus, now time.Time) string {
	text := catalog.Counted(k.Calls, "call", "calls")

	// Hosts without such a header tell nothing, which is not zero.
	if k.Limit != nil {
		text += fmt.Sprintf(", %d of %d left until %s", k.Limit.Remaining, k.Limit.Calls, clockTime(k.Limit.ResetAt, now, "?"))
	}
	if !k.ExpiresAt.IsZero() {
		text += fmt.Sprintf(", token ends %s", k.ExpiresAt.Format(time.DateOnly))
	}
	return text
}

// timeText is a time as the API writes it.
func timeText(at time.Time, never string) string {
	if at.IsZero() {
		return never
	}
	return at.Format(time.RFC3339)
}

// clockTime is a time for people: of this day without the day.
func clockTime(at, now time.Time, never string) string {
	switch at, now := at.Local(), now.Local(); {
	// A time that was never set is the zero of Go, or that of Unix seconds.
	case at.IsZero() || at.Unix() <= 0:
		return never
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format("15:04")
	default:
		return at.Format("2006-01-02 15:04")
	}
}
