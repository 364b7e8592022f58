package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/api/reply"
)

// listing is a command that prints one answer of the API: formatted, or unchanged with --json.
type listing[T any] struct {
	use, short string
	flags      func(cmd *cobra.Command)       // additional flags; nil for none
	path       func() string                  // request path, once the flags are parsed
	show       func(w io.Writer, all T) error // formats the answer

	// instead runs in place of the listing if the flags say so: then it returns true. It may be nil.
	instead func(cmd *cobra.Command, c *client) (ran bool, err error)
}

// command returns the command of a listing.
func (l listing[T]) command(getenv func(string) string) *cobra.Command {
	var asJSON bool
	cmd := clientCommand(getenv, naming{}, &cobra.Command{Use: l.use, Short: l.short, Args: cobra.NoArgs}, func(cmd *cobra.Command, c *client, _ []string) error {
		if l.instead != nil {
			if ran, err := l.instead(cmd, c); ran || err != nil {
				return err
			}
		}

		var raw json.RawMessage
		path := l.path()
		if err := c.call(cmd.Context(), "GET", path, nil, &raw); err != nil {
			return err
		}

		// Print the answer unchanged, because it may have fields that this version does not know.
		if asJSON {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", raw)
			return err
		}

		var all T
		if err := reply.Decode(raw, &all); err != nil {
			return fmt.Errorf("answer of %s to %s: %w", c.nodeName(), path, err)
		}
		return l.show(cmd.OutOrStdout(), all)
	})

	cmd.Flags().BoolVar(&asJSON, "json", false, "the answer of the API as it is")
	if l.flags != nil {
		l.flags(cmd)
	}
	return cmd
}

// fixedPath returns the path function of a listing whose path does not depend on flags.
func fixedPath(path string) func() string { return func() string { return path } }

// table prints rows as aligned columns below a heading. row returns a row's cells, separated by tabs.
func table[T any](w io.Writer, heading string, rows []T, row func(T) string) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, heading)
	for _, r := range rows {
		fmt.Fprintln(t, row(r))
	}
	return t.Flush()
}
