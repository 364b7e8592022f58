package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/node/watch"
)

func newWatch(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Searches that tell of what is new (with a key of your account)",
	}
	cmd.AddCommand(newWatchCreate(getenv), newWatchList(getenv), newWatchShow(getenv), newWatchChange(getenv), newWatchDelete(getenv), newWatchFeed(getenv), newWatchWebhook(getenv))
	return cmd
}

// watchFlags are the flags that set parts of a watch.
type watchFlags struct {
	name, query                 string
	regexp, case_, word, shared bool
	mail                        bool
}

func (f *watchFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.name, "name", "", "name (default the query)")
	fs.BoolVarP(&f.regexp, "regexp", "e", false, "terms are regular expressions (RE2)")
	fs.BoolVarP(&f.case_, "case-sensitive", "s", false, "letters match only in the same case")
	fs.BoolVarP(&f.word, "word", "w", false, "terms match whole words only")
	fs.BoolVar(&f.mail, "mail", false, "mail you what it finds")
	fs.BoolVar(&f.shared, "shared", false, "other accounts may read it; each sees what it may see itself")
}

// body returns the parts that flags set.
func (f *watchFlags) body(cmd *cobra.Command) map[string]any {
	body := map[string]any{}
	for flag, part := range map[string]struct {
		name  string
		value any
	}{
		"name": {"name", f.name}, "query": {"query", f.query}, "regexp": {"isRegexEnabled", f.regexp}, "case-sensitive": {"isCaseSensitivityEnabled", f.case_},
		"word": {"isWholeWordEnabled", f.word}, "shared": {"isShared", f.shared}, "mail": {"isMailed", f.mail},
	} {
		if x := cmd.Flags().Lookup(flag); x != nil && x.Changed {
			body[part.name] = part.value
		}
	}
	return body
}

func newWatchCreate(getenv func(string) string) *cobra.Command {
	var f watchFlags
	cmd := actionCommand(getenv, naming{}, &cobra.Command{
		Use:   "create QUERY",
		Short: "Watch a search, and print the id of the watch",
		Long: `Watch a search: on each push Shoal runs it over what is new, and keeps what it finds.

  shoal watch create 'TODO lang:go'
  shoal watch create 'type:diff added:TODO repo:^github.com/acme/'
  shoal watch create 'type:commit message:revert' --name reverts`,
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		body := f.body(cmd)
		body["query"] = args[0]
		var made watch.Info
		if err := c.call(cmd.Context(), "POST", "/api/watches", body, &made); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "watch %s is made: it looks at each push from now on\n", made.Name)
		fmt.Fprintln(cmd.OutOrStdout(), made.ID)
		return nil
	})
	f.add(cmd)
	return cmd
}

func newWatchList(getenv func(string) string) *cobra.Command {
	return listing[[]watch.Info]{use: "list", short: "List your watches, and those that others share", path: fixedPath("/api/watches"), show: func(w io.Writer, all []watch.Info) error {
		return table(w, "ID\tNAME\tNEW\tLAST\tOF\tQUERY", all, func(x watch.Info) string {
			of := x.Owner
			if x.Mine {
				of = "you"
			}
			return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s", x.ID, x.Name, x.New, timeText(x.Last, "never"), of, x.Query)
		})
	}}.command(getenv)
}

func newWatchShow(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, watchNames, &cobra.Command{
		Use:   "show ID",
		Short: "Show what a watch found, the newest first",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var d watch.Detail
		if err := c.call(cmd.Context(), "GET", "/api/watches/"+url.PathEscape(args[0]), nil, &d); err != nil {
			return err
		}
		w := cmd.OutOrStdout()
		fmt.Fprintf(w, "%s: %s\n", d.Info.Name, d.Info.Query)
		if d.Info.Problem != "" {
			fmt.Fprintln(w, d.Info.Problem)
		}
		for _, f := range d.Found {
			fmt.Fprintf(w, "\n%s  %s, %d\n", timeText(f.At, ""), f.Repo, f.Total)
			for _, h := range f.Hits {
				fmt.Fprintf(w, "  %s %s%s\n", h.Commit[:min(8, len(h.Commit))], placeOf(&h), h.Title)
			}
			if more := f.Total - len(f.Hits); more > 0 {
				fmt.Fprintln(w, "  and "+strconv.Itoa(more)+" more")
			}
		}
		return nil
	})
}

// placeOf writes where a match is, before its title.
func placeOf(h *watch.Match) string {
	switch {
	case h.Path == "":
		return ""
	case h.Line > 0:
		return fmt.Sprintf("%s:%d: ", h.Path, h.Line)
	}
	return h.Path + ": "
}

func newWatchChange(getenv func(string) string) *cobra.Command {
	var f watchFlags
	cmd := actionCommand(getenv, watchNames, &cobra.Command{
		Use:   "change ID",
		Short: "Change what the flags name",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var changed watch.Info
		if err := c.call(cmd.Context(), "PATCH", "/api/watches/"+url.PathEscape(args[0]), f.body(cmd), &changed); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "watch %s is changed\n", changed.Name)
		return nil
	})
	f.add(cmd)
	cmd.Flags().StringVar(&f.query, "query", "", "another search")
	return cmd
}

func newWatchDelete(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, watchNames, &cobra.Command{
		Use:   "delete ID",
		Short: "Delete a watch, and what it found",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var gone watch.Info
		if err := c.call(cmd.Context(), "DELETE", "/api/watches/"+url.PathEscape(args[0]), nil, &gone); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "watch %s is deleted\n", cmp.Or(gone.Name, gone.ID))
		return nil
	})
}

func newWatchFeed(getenv func(string) string) *cobra.Command {
	var end bool
	cmd := actionCommand(getenv, watchNames, &cobra.Command{
		Use:   "feed ID",
		Short: "Make an address for feed readers and print it; it is shown this once only, and ends the one before",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		path := "/api/watches/" + url.PathEscape(args[0]) + "/feed"
		if end {
			if err := c.call(cmd.Context(), "DELETE", path, nil, &watch.Info{}); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "the feed is ended")
			return nil
		}
		var made watch.FeedToken
		if err := c.call(cmd.Context(), "POST", path, nil, &made); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), made.URL)
		return nil
	})
	cmd.Flags().BoolVar(&end, "end", false, "end the feed, without another")
	return cmd
}

func newWatchWebhook(getenv func(string) string) *cobra.Command {
	var end bool
	cmd := actionCommand(getenv, watchNames, &cobra.Command{
		Use:   "webhook ID [URL]",
		Short: "Send what a watch finds to an address, and print the secret that signs it; it is shown this once only",
		Args:  cobra.RangeArgs(1, 2),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		path := "/api/watches/" + url.PathEscape(args[0]) + "/webhook"
		switch {
		case end == (len(args) == 2):
			return fmt.Errorf("give an address, or --end")
		case end:
			if err := c.call(cmd.Context(), "DELETE", path, nil, &watch.Info{}); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "the webhook is ended")
			return nil
		}
		var made watch.Webhook
		if err := c.call(cmd.Context(), "POST", path, map[string]any{"url": args[1]}, &made); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), made.Secret)
		return nil
	})
	cmd.Flags().BoolVar(&end, "end", false, "end the webhook")
	return cmd
}
