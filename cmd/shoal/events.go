package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// newEvents is `shoal events`.
func newEvents(getenv func(string) string) *cobra.Command {
	var f clientFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "events",
		Short: "What happened to the cluster lately, newest first (on a node's host, or with an owner's key)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var answer struct {
				Since  time.Time
				Events []struct {
					At         time.Time
					Kind, Text string
				}
			}
			if err := c.call(cmd.Context(), "GET", fmt.Sprintf("/api/events?limit=%d", limit), nil, &answer); err != nil {
				return err
			}

			now := time.Now()
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			for _, e := range answer.Events {
				fmt.Fprintf(t, "%s\t%s\t%s\n", clockTime(e.At, now, "?"), e.Kind, e.Text)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the nodes remember since %s\n", clockTime(answer.Since, now, "?"))
			return err
		},
	}
	f.add(cmd, getenv)
	cmd.Flags().IntVar(&limit, "limit", 100, "how many at most, from 1 to 1000")
	return cmd
}
