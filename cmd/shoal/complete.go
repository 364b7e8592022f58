package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// naming says where the API lists the possible values of an argument.
type naming struct {
	path string // request path; if it ends in =, the typed text is appended
	list string // JSON member of the answer that has the list; "": the answer is the list
	name string // JSON member of each entry that has the name
}

// Arguments that the shell completes.
var (
	nodeNames       = naming{"/api/status", "members", "id"}
	keyNames        = naming{"/api/keys", "", "name"}
	watchNames      = naming{"/api/watches", "", "id"}
	connectionNames = naming{"/api/connections", "", "name"}
	accountNames    = naming{"/api/users", "", "email"}
	agentNames      = naming{"/api/agents", "", "id"}
	jobNames        = naming{"/api/jobs?perPage=100&query=", "", "id"}
	repoNames       = naming{"/api/repos?perPage=100&query=", "", "repoName"}
)

// completionTime limits how long the shell waits for names after Tab.
const completionTime = 2 * time.Second

// completeNames makes the shell complete the first argument with names that a node knows. If no node
// answers, it completes nothing: an error would appear in the middle of the command line.
func (f *clientFlags) completeNames(n naming) {
	f.cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}

		// Give up on a slow node, because the shell blocks meanwhile.
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		all, err := f.fetchNames(ctx, n, typed)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}

		// The API returns names that contain the text. The shell needs those that begin with it.
		var names []string
		for _, name := range all {
			if strings.HasPrefix(name, typed) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// offerValues makes the shell complete a flag with fixed values.
func offerValues(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}

// fetchNames requests the names that n describes from a node. typed is the text before the cursor.
func (f *clientFlags) fetchNames(ctx context.Context, n naming, typed string) (names []string, err error) {
	c, err := f.client()
	if err != nil {
		return nil, err
	}

	// There may be many repositories and jobs, so the node filters them by the typed text. The other
	// lists are short.
	path := n.path
	if strings.HasSuffix(path, "=") {
		path += url.QueryEscape(typed)
	}

	var list json.RawMessage
	if err := c.call(ctx, "GET", path, nil, &list); err != nil {
		return nil, err
	}

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

	// Skip a name that is no string, which a newer node may send.
	for _, e := range entries {
		if name, ok := e[n.name].(string); ok {
			names = append(names, name)
		}
	}
	return names, nil
}
