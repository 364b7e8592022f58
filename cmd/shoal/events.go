package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/chronicle"
)

// newEvents makes `shoal events`.
func newEvents(getenv func(string) string) *cobra.Command {
	var limit int
	var follow bool
	return listing[chronicle.EventsResponse]{
		use:   "events",
		short: "What happened to the cluster lately, newest first (on a node's host, or with an owner's key)",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().IntVar(&limit, "limit", 100, "how many at most, from 1 to 1000")
			cmd.Flags().BoolVarP(&follow, "follow", "f", false, "oldest first, and then each as it happens, until Ctrl-C")
			cmd.MarkFlagsMutuallyExclusive("follow", "json")
		},
		path: func() string { return eventsPath(limit, "") },
		show: func(w io.Writer, all chronicle.EventsResponse) error { return printEvents(w, all, time.Now()) },
		instead: func(cmd *cobra.Command, c *client) (bool, error) {
			if !follow {
				return false, nil
			}
			f := follower{client: c, out: cmd.OutOrStdout(), diag: cmd.ErrOrStderr(), pause: 2 * time.Second}
			return true, f.run(cmd.Context(), limit)
		},
	}.command(getenv)
}

func eventsPath(limit int, after string) string {
	path := fmt.Sprintf("/api/events?limit=%d", limit)
	if after != "" {
		path += "&after=" + url.QueryEscape(after)
	}
	return path
}

func printEvents(w io.Writer, all chronicle.EventsResponse, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, e := range all.Events {
		fmt.Fprintf(t, "%s\t%s\t%s\n", clockTime(e.At, now, "?"), e.Kind, e.Text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "the nodes remember since %s\n", clockTime(all.Since, now, "?"))
	return err
}

// follower prints events as they happen.
type follower struct {
	client    *client
	out, diag io.Writer
	pause     time.Duration // between two requests
}

// run prints up to limit past events and then new ones, until ctx ends. It fails if the first request
// fails; after later failures it warns and asks again.
func (f *follower) run(ctx context.Context, limit int) error {
	after, lastFailed := "", false
	for {
		var all chronicle.EventsResponse
		err := f.client.call(ctx, "GET", eventsPath(limit, after), nil, &all)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && after == "":
			return err
		case err != nil && !lastFailed:
			fmt.Fprintf(f.diag, "shoal: %v; asking again\n", err)
		case err == nil:
			if err := f.print(all, time.Now()); err != nil {
				return err
			}
			// Without Next the next request would return the same events.
			if all.Next == "" {
				return fmt.Errorf("%s does not tell where its events go on: it runs an older version", f.client.nodeName())
			}
			after = all.Next
		}
		lastFailed = err != nil

		limit = 1000 // for new events request as many as one answer can have
		if !clock.Wait(ctx, f.pause) {
			return nil
		}
	}
}

// print prints events in columns of fixed width, the oldest first.
func (f *follower) print(all chronicle.EventsResponse, now time.Time) error {
	if all.Missed {
		fmt.Fprintln(f.diag, "shoal: more has happened than is listed")
	}
	for _, e := range slices.Backward(all.Events) {
		if _, err := fmt.Fprintf(f.out, "%s  %-13s  %s\n", clockTime(e.At, now, "?"), e.Kind, e.Text); err != nil {
			return err
		}
	}
	return nil
}
