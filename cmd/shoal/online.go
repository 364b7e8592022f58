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

// Limits of a trial listing of one connection.
const (
	onlineRepos = 20
	onlineTime  = time.Minute
)

// hostReport says what the host of a connection listed.
type hostReport struct {
	Connection   string              `json:"connection"`
	Error        string              `json:"error,omitempty"`
	Repositories []string            `json:"repositories"`
	More         bool                `json:"more"` // it lists more than these
	LeftOut      map[host.Reason]int `json:"leftOut,omitempty"`
	Scopes       []string            `json:"scopes,omitempty"` // of the token
	Expires      *time.Time          `json:"expires,omitempty"`
	Issues       []issueReport       `json:"issues,omitempty"`
}

// issueReport is something that the host refused.
type issueReport struct {
	Code   host.Code `json:"code"`
	Target string    `json:"target,omitempty"` // organisation, project or repository; "": the whole connection
	Text   string    `json:"text"`
}

func reportTrial(name string, t *host.Trial, err error) hostReport {
	r := hostReport{Connection: name, Repositories: []string{}, More: t.More, LeftOut: t.Skipped, Scopes: t.Allowance.Scopes}
	if err != nil {
		r.Error = err.Error()
	}
	for i := range t.Repos {
		r.Repositories = append(r.Repositories, t.Repos[i].Name)
	}
	if end := t.Allowance.Expires; !end.IsZero() {
		r.Expires = &end
	}
	for _, i := range t.Issues {
		r.Issues = append(r.Issues, issueReport{i.Code, i.Target, i.Text})
	}
	return r
}

// tryConnections asks each connection's host for its first repositories, and prints and returns them. It
// returns exit code 1 if a host does not list.
func tryConnections(ctx context.Context, w io.Writer, file *config.File, getenv func(string) string) (reports []hostReport, err error) {
	tools := onlineTools(file, getenv)
	failed := false
	for _, conn := range file.Connections {
		// Each host has a time limit of its own, so that a slow one takes no time from the others.
		bounded, cancel := context.WithTimeoutCause(ctx, onlineTime, errors.New("the host took longer than a minute"))
		trial, err := host.Try(bounded, conn, tools, onlineRepos)
		cancel()

		if ctx.Err() != nil { // Ctrl-C: do not report the remaining connections as failures
			return nil, ctx.Err()
		}

		printTrial(w, conn.Shared().Name, trial, err)
		reports = append(reports, reportTrial(conn.Shared().Name, &trial, err))
		failed = failed || err != nil
	}

	if failed {
		return reports, exitCode(1)
	}
	return reports, nil
}

// onlineTools makes tools that ask hosts as a node with this configuration and environment would.
func onlineTools(file *config.File, getenv func(string) string) host.Tools {
	// An empty variable counts as unset, as on a node.
	process := func(name string) (string, bool) {
		value := getenv(name)
		return value, value != ""
	}

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

// recordVariable is the variable with the directory into which answers of code hosts are recorded.
const recordVariable = "SHOAL_HOST_RECORD"

// printTrial prints the listed repositories, facts about the token, and errors.
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
		fmt.Fprintf(w, "  %s%s\n", r.Name, propertiesOf(r))
	}
	for _, why := range slices.Sorted(maps.Keys(t.Skipped)) {
		fmt.Fprintf(w, "  left out so far: %d, %s\n", t.Skipped[why], why)
	}

	a := t.Allowance // of the token
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

// propertiesOf returns the unusual properties of a repository in parentheses; "" for none.
func propertiesOf(r host.Repo) string {
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
