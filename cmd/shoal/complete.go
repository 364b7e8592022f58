package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// naming is where the API lists what an argument may name.
type naming struct {
	path string // what is typed so far is put behind one that ends in =
	list string // the member of the answer that has the list; "" where the answer is the list
	name string // the member of each entry that is the name
}

// What arguments name.
var (
	nodeNames       = naming{"/api/status", "members", "id"}
	keyNames        = naming{"/api/keys", "", "name"}
	connectionNames = naming{"/api/connections", "", "name"}
	accountNames    = naming{"/api/users", "", "email"}
	agentNames      = naming{"/api/agents", "", "id"}
	jobNames        = naming{"/api/jobs?perPage=100&query=", "", "id"}
	repoNames       = naming{"/api/repos?perPage=100&query=", "", "repoName"}
)

// completionTime is how long somebody waits who has pressed Tab.
const completionTime = 2 * time.Second

// offer lets the shell complete the first argument of the command that the
// flags are of with names that a node knows. Where none answers nothing is
// offered: an error would stand in the middle of what is typed.
func (f *clientFlags) offer(n naming) {
	f.cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}

		// The shell stands still meanwhile, so a slow node is as good as none.
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		all, err := f.named(ctx, n, typed)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}

		// A list with a query has names with the text anywhere in them: the shell wants beginnings.
		var names []string
		for _, name := range all {
			if strings.HasPrefix(name, typed) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// named asks for the names.
func (f *clientFlags) named(ctx context.Context, n naming, typed string) (names []string, err error) {
	c, err := f.client()
	if err != nil {
		return nil, err
	}

	// A cluster has more repositories and jobs than a page: the node looks for those of
	// what is typed. The other lists are short, and have no query.
	path := n.path
	if strings.HasSuffix(path, "=") {
		path += url.QueryEscape(typed)
	}

	var list json.RawMessage
	if err := c.call(ctx, "GET", path, nil, &list); err != nil {
		return nil, err
	}

	// The members stand within the status.
	if n.list != "" {
		var answer map[string]json.RawMessage
		if err := json.Unmarshal(list, &answer); err != nil {
			return nil, err
		}
		list = answer[n.list]
	}

	var entries []map[string]any
	if err := json.Unmarshal(list, &entries); err != nil {
		return nil, err
	}

	// A name that is no text is skipped: a newer node may have other answers.
	for _, e := range entries {
		if name, ok := e[n.name].(string); ok {
			names = append(names, name)
		}
	}
	return names, nil
}
