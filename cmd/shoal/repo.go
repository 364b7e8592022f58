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
		// Read all pages. Keep each entry unchanged, because it may have fields that are unknown here.
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
				return fmt.Errorf("answer of %s to /api/repos: %w", c.nodeName(), err)
			}
		}
		return table(cmd.OutOrStdout(), "NAME\tSTATE\tINDEXED\tFILES\tINDEX\tCONNECTIONS\tERROR", repos, func(r browse.RepoInfo) string {
			return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s", replaceHidden(r.Name), r.State, timeText(r.IndexedAt, "-"), r.Documents, bytesText(r.ShardBytes), strings.Join(r.Connections, ","), replaceHidden(r.Error))
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
		// The API knows repositories by number, people by name.
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

// findRepo returns the number of the repository with a name. If there is none, the error suggests
// similar names.
func findRepo(ctx context.Context, c *client, name string) (uint32, error) {
	// The API finds names that contain the text, so the name itself may be on any page.
	var near []browse.RepoInfo
	for page := 1; ; page++ {
		list, err := listReposLike(ctx, c, name, page)
		if err != nil {
			return 0, err
		}

		for _, r := range list {
			if r.Name == name {
				return r.ID, nil
			}
		}

		near = append(near, list[:min(len(list), maxSuggestions-len(near))]...)
		if len(list) < reposPerPage {
			break
		}
	}

	// The mistake may be before the last slash, so search for what comes after it.
	if base := path.Base(name); len(near) == 0 && base != name {
		list, err := listReposLike(ctx, c, base, 1)
		if err != nil {
			return 0, err
		}
		near = list[:min(len(list), maxSuggestions)]
	}

	return 0, unknownRepo(name, near)
}

const (
	reposPerPage   = 100
	maxSuggestions = 3 // suggested names
)

// listReposLike returns a page of the repositories whose names contain text.
func listReposLike(ctx context.Context, c *client, text string, page int) (list []browse.RepoInfo, err error) {
	target := fmt.Sprintf("/api/repos?query=%s&perPage=%d&page=%d", url.QueryEscape(text), reposPerPage, page)
	return list, c.call(ctx, "GET", target, nil, &list)
}

// unknownRepo returns the error for an unknown name, with similar names.
func unknownRepo(name string, near []browse.RepoInfo) error {
	if len(near) == 0 {
		return fmt.Errorf("there is no repository %q; names are written in full, as in github.com/acme/app", name)
	}
	var names []string
	for _, r := range near {
		names = append(names, r.Name)
	}
	return fmt.Errorf("there is no repository %q; names are written in full, as %s", name, strings.Join(names, ", "))
}
