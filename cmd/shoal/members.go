package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

func newDrain(getenv func(string) string) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Make a node give all it holds to others and leave, without a query gap",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			for last := -1; ; {
				var answer struct {
					Node      string
					Done      bool
					Remaining int
				}
				if err := c.call(cmd.Context(), "POST", "/api/nodes/"+url.PathEscape(args[0])+"/drain", nil, &answer); err != nil {
					return err
				}
				if answer.Done {
					fmt.Fprintf(cmd.OutOrStdout(), "%s holds nothing that others lack: it can be stopped\n", answer.Node)
					return nil
				}
				if answer.Remaining != last {
					fmt.Fprintf(cmd.ErrOrStderr(), "%d pieces left to copy\n", answer.Remaining)
					last = answer.Remaining
				}
				if !pause(cmd.Context(), time.Second) {
					return errors.New("the drain goes on without being watched; run the same command to watch it again")
				}
			}
		},
	}
	f.add(cmd, getenv)
	return cmd
}

func newRemove(getenv func(string) string) *cobra.Command {
	var f clientFlags
	var loss bool
	cmd := &cobra.Command{
		Use:   "remove NODE",
		Short: "Forget a node for good",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var answer struct {
				Node string
				Lost []string
			}
			path := "/api/nodes/" + url.PathEscape(args[0]) + "/remove"
			if loss {
				path += "?accept_loss=true"
			}
			if err := c.call(cmd.Context(), "POST", path, nil, &answer); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is removed\n", answer.Node)
			for _, repo := range answer.Lost {
				fmt.Fprintf(cmd.OutOrStdout(), "no copy left, will be indexed again: %s\n", repo)
			}
			return nil
		},
	}
	f.add(cmd, getenv)
	cmd.Flags().BoolVar(&loss, "accept-loss", false, "also when it holds the last copy of something")
	return cmd
}
