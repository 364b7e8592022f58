package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/operate"
)

func newRepo(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{Use: "repo", Short: "Repositories of the cluster"}
	cmd.AddCommand(newRepoList(getenv), newRepoReindex(getenv))
	return cmd
}

func newRepoList(getenv func(string) string) *cobra.Command {
	var query, state string
	var asJSON bool
	cmd := clientCommand(getenv, naming{}, &cobra.Command{
		Use:   "list",
		Short: "List repositories with their state",
		Args:  cobra.NoArgs,
	}, func(cmd *cobra.Command, c *client, _ []string) error {
		// All pages, each entry as the node wrote it: with fields that this version does not know.
		all, list := []json.RawMessage{}, []json.RawMessage(nil)
		for page := 1; page == 1 || len(list) == reposPerPage; page++ {
			target := fmt.Sprintf("/api/repos?query=%s&state=%s&perPage=%d&page=%d", url.QueryEscape(query), url.QueryEscape(state), reposPerPage, page)
			list = nil
			if err := c.call(cmd.Context(), "GET", target, nil, &list); err != nil {
				return err
			}
			all = append(all, list...)
		}
		if asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(all)
		}
		repos := make([]browse.RepoInfo, len(all))
		for i, raw := range all {
			if err := reply.Decode(raw, &repos[i]); err != nil {
				return fmt.Errorf("answer of %s to /api/repos: %w", c.named(), err)
			}
		}
		return table(cmd.OutOrStdout(), "NAME\tSTATE\tINDEXED\tFILES\tINDEX\tCONNECTIONS\tERROR", repos, func(r browse.RepoInfo) string {
			return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s", printable(r.Name), r.State, timeText(r.IndexedAt, "-"), r.Documents, size(r.ShardBytes), strings.Join(r.Connections, ","), printable(r.Error))
		})
	})

	cmd.Flags().StringVar(&query, "query", "", "only those with this text in their name")
	cmd.Flags().StringVar(&state, "state", "any", "only those in this state: any, "+strings.Join(browse.RepoStates(), ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "the answer of the API as it is")
	return cmd
}

func newRepoReindex(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, repoNames, &cobra.Command{
		Use:   "reindex NAME",
		Short: "Index a repository before the others that wait; shoal status shows how far it is",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		// The API goes by numbers, people by names.
		id, err := findRepo(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}

		var queued operate.ReindexResponse
		if err := c.call(cmd.Context(), "POST", fmt.Sprintf("/api/repos/%d/reindex", id), nil, &queued); err != nil {
			return err
		}

		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is queued as job %s\n", args[0], queued.Job)
		return err
	})
}

// findRepo is the number of a repository.
func findRepo(ctx context.Context, c *client, name string) (uint32, error) {
	// The query finds names with the text in them: the exact one may be on any page.
	var near []browse.RepoInfo
	for page := 1; ; page++ {
		list, err := reposLike(ctx, c, name, page)
		if err != nil {
			return 0, err
		}

		for _, r := range list {
			if r.Name == name {
				return r.ID, nil
			}
		}

		// The first few are kept to suggest.
		near = append(near, list[:min(len(list), mostNear-len(near))]...)
		if len(list) < reposPerPage {
			break
		}
	}

	// A name with a mistake in what is before the last slash is near as well.
	if base := path.Base(name); len(near) == 0 && base != name {
		list, err := reposLike(ctx, c, base, 1)
		if err != nil {
			return 0, err
		}
		near = list[:min(len(list), mostNear)]
	}

	return 0, noRepo(name, near)
}

const (
	reposPerPage = 100
	mostNear     = 3 // names that are suggested
)

// reposLike is a page of the repositories whose names have a text in them.
func reposLike(ctx context.Context, c *client, text string, page int) (list []browse.RepoInfo, err error) {
	target := fmt.Sprintf("/api/repos?query=%s&perPage=%d&page=%d", url.QueryEscape(text), reposPerPage, page)
	return list, c.call(ctx, "GET", target, nil, &list)
}

// noRepo is the error for a name that no repository has, with those near to it.
func noRepo(name string, near []browse.RepoInfo) error {
	if len(near) == 0 {
		return fmt.Errorf("there is no repository %q; names are written in full, as in github.com/acme/app", name)
	}
	var names []string
	for _, r := range near {
		names = append(names, r.Name)
	}
	return fmt.Errorf("there is no repository %q; names are written in full, as %s", name, strings.Join(names, ", "))
}
