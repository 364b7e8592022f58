package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/environ"
	"github.com/shoalsearch/shoal/node/host"
)

// A look at a host prints this many repositories and takes this long at most.
const (
	onlineRepos = 20
	onlineTime  = time.Minute
)

// tryConnections asks the host of each connection for its first repositories.
// It fails where one does not list.
func tryConnections(ctx context.Context, w io.Writer, file *config.File, getenv func(string) string) error {
	tools := onlineTools(file, getenv)
	failed := false
	for _, conn := range file.Connections {
		// Each host has its own time, so that a slow one does not make the others look broken.
		bounded, cancel := context.WithTimeoutCause(ctx, onlineTime, errors.New("the host took longer than a minute"))
		trial, err := host.Try(bounded, conn, tools, onlineRepos)
		cancel()

		// Ctrl-C: the connections that follow are not asked, nor told of as failures.
		if ctx.Err() != nil {
			return ctx.Err()
		}

		printTrial(w, conn.Shared().Name, trial, err)
		failed = failed || err != nil
	}

	if failed {
		return exitCode(1)
	}
	return nil
}

// onlineTools ask hosts as a node with this file and this environment would.
func onlineTools(file *config.File, getenv func(string) string) host.Tools {
	// A variable that is set to nothing is as good as none, as for a node.
	process := func(name string) (string, bool) {
		value := getenv(name)
		return value, value != ""
	}

	// Its log would mix with the report; what goes wrong comes as an error of the trial.
	env := environ.New(environ.Deps{
		File:    func() *config.File { return file },
		Process: process,
		Now:     time.Now,
		Log:     slog.New(slog.DiscardHandler),
	})

	apps := func() []config.App { return file.Apps }
	tools := host.NewTools(env.Secret, env.Lookup, apps, time.Now)
	tools.Forget = env.Forget
	tools.Record(getenv(recordVariable))
	return tools
}

// recordVariable names the directory that answers of code hosts are written to.
const recordVariable = "SHOAL_HOST_RECORD"

// printTrial prints what a host listed, what it told of the token, and what
// went wrong.
func printTrial(w io.Writer, name string, t host.Trial, err error) {
	switch {
	case err != nil:
		fmt.Fprintf(w, "\n%s: the host does not list: %v\n", name, err)
	case t.More:
		fmt.Fprintf(w, "\n%s: the first %s; more follow\n", name, catalog.Counted(len(t.Repos), "repository", "repositories"))
	default:
		fmt.Fprintf(w, "\n%s: %d, which is all that it lists\n", name, len(t.Repos))
	}

	for _, r := range t.Repos {
		fmt.Fprintf(w, "  %s%s\n", r.Name, remarks(r))
	}
	for _, why := range slices.Sorted(maps.Keys(t.Skipped)) {
		fmt.Fprintf(w, "  left out so far: %d, %s\n", t.Skipped[why], why)
	}

	// What the token may do, and how much of it is left.
	a := t.Allowance
	if len(a.Scopes) > 0 {
		fmt.Fprintf(w, "  the token may: %s\n", strings.Join(a.Scopes, ", "))
	}
	if !a.Expires.IsZero() {
		fmt.Fprintf(w, "  the token ends %s\n", a.Expires.Format(time.RFC3339))
	}
	if a.Limit > 0 {
		fmt.Fprintf(w, "  %d of %s are left until %s\n", a.Remaining, catalog.Counted(a.Limit, "call", "calls"), a.Reset.Format(time.RFC3339))
	}

	for _, i := range t.Issues {
		fmt.Fprintf(w, "  %s: %s (%s)\n", cmp.Or(i.Target, name), i.Text, i.Code)
		if hint := host.Advice(i.Code); hint != "" {
			fmt.Fprintf(w, "    %s\n", hint)
		}
	}
}

// remarks are what makes a repository unlike the others.
func remarks(r host.Repo) string {
	// In the order of the table, so that two runs can be compared.
	var list []string
	for _, m := range []struct {
		holds bool
		text  string
	}{
		{r.Visibility == host.Private, "private"}, {r.Visibility == host.Internal, "internal"},
		{r.Fork, "fork"}, {r.Archived, "archived"}, {r.Empty, "empty"}, {r.Unfetchable != "", "cannot be fetched: " + r.Unfetchable},
	} {
		if m.holds {
			list = append(list, m.text)
		}
	}

	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}
