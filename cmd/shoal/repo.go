package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
)

func newRepo(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{Use: "repo", Short: "Repositories of the cluster"}
	cmd.AddCommand(newRepoReindex(getenv))
	return cmd
}

func newRepoReindex(getenv func(string) string) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "reindex NAME",
		Short: "Index a repository before the others that wait; shoal status shows how far it is",
		Args:  cobra.ExactArgs(1),
		RunE: f.asking(func(cmd *cobra.Command, c *client, args []string) error {
			id, err := findRepo(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}

			var queued struct{ JobID string }
			if err := c.call(cmd.Context(), "POST", fmt.Sprintf("/api/repos/%d/reindex", id), nil, &queued); err != nil {
				return err
			}

			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is queued as job %s\n", args[0], queued.JobID)
			return err
		}),
	}

	f.add(cmd, getenv)
	return cmd
}

// findRepo is the number of a repository.
func findRepo(ctx context.Context, c *client, name string) (uint32, error) {
	const perPage = 100
	for page := 1; ; page++ {
		var list []struct {
			RepoID   uint32
			RepoName string
		}
		path := fmt.Sprintf("/api/repos?query=%s&perPage=%d&page=%d", url.QueryEscape(name), perPage, page)
		if err := c.call(ctx, "GET", path, nil, &list); err != nil {
			return 0, err
		}

		for _, r := range list {
			if r.RepoName == name {
				return r.RepoID, nil
			}
		}

		if len(list) < perPage {
			return 0, fmt.Errorf("there is no repository %q; names are written in full, as in github.com/acme/app", name)
		}
	}
}
