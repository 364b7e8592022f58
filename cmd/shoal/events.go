package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// newEvents is `shoal events`.
func newEvents(getenv func(string) string) *cobra.Command {
	var limit int
	return listing[eventsAnswer]{
		use:   "events",
		short: "What happened to the cluster lately, newest first (on a node's host, or with an owner's key)",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().IntVar(&limit, "limit", 100, "how many at most, from 1 to 1000")
		},
		path: func() string { return fmt.Sprintf("/api/events?limit=%d", limit) },
		show: func(w io.Writer, all eventsAnswer) error { return printEvents(w, all, time.Now()) },
	}.command(getenv)
}

type eventsAnswer struct {
	Since  time.Time
	Events []struct {
		At         time.Time
		Kind, Text string
	}
}

func printEvents(w io.Writer, all eventsAnswer, now time.Time) error {
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
