package main

import (
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/node/operate"
)

func newJobs(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{Use: "jobs", Short: "What the cluster does, what waits and what failed"}
	cmd.AddCommand(
		newJobsList(getenv),
		jobAction(getenv, "retry", "Run a job now, before others that wait", "is queued"),
		jobAction(getenv, "cancel", "Stop a job; it comes again when its interval is over, or with shoal jobs retry", "is cancelled"),
	)
	return cmd
}

// maxJobs limits a list of jobs.
const maxJobs = 100

func newJobsList(getenv func(string) string) *cobra.Command {
	var state, kind, query string
	return listing[[]operate.JobInfo]{
		use:   "list",
		short: fmt.Sprintf("List at most %d jobs: those that run, failed, are tried again or wait", maxJobs),
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&state, "state", "", "running, failed, retrying, waiting or done")
			cmd.Flags().StringVar(&kind, "kind", "", "sync, index, collect, account_permissions, repo_permissions or pack (default any)")
			cmd.Flags().StringVar(&query, "query", "", "part of what the job is about")
		},

		path: func() string {
			q := url.Values{"perPage": {fmt.Sprint(maxJobs)}}
			for name, value := range map[string]string{"state": state, "kind": kind, "query": query} {
				if value != "" {
					q.Set(name, value)
				}
			}
			return "/api/jobs?" + q.Encode()
		},
		show: func(w io.Writer, all []operate.JobInfo) error { return printJobLines(w, all, time.Now()) },
	}.command(getenv)
}

func printJobLines(w io.Writer, all []operate.JobInfo, now time.Time) error {
	return table(w, "JOB\tSTATE\tOF\tATTEMPT\tWHEN\tDETAIL", all, func(j operate.JobInfo) string {
		return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s", j.ID, j.State, j.Subject, j.Attempt, jobTime(&j, now), jobDetail(&j))
	})
}

// jobTime returns the time that matters in a job's state: its start, next attempt, queueing or end.
func jobTime(j *operate.JobInfo, now time.Time) string {
	switch j.State {
	case "running":
		return "since " + clockTime(j.Started, now, "?")
	case "retrying":
		return "next " + clockTime(j.NextTry, now, "now")
	case "waiting":
		return "queued " + clockTime(j.Queued, now, "?")
	}
	return "ended " + clockTime(j.Finished, now, "?")
}

// jobDetail returns the progress of a running job, or the error of a failed one.
func jobDetail(j *operate.JobInfo) string {
	switch {
	case j.State == "running" && j.Total > 0:
		return fmt.Sprintf("%s %d of %d on %s", j.Step, j.Done, j.Total, j.Node)
	case j.State == "running":
		return j.Step + " on " + j.Node
	}
	return j.Error
}

// jobAction makes a command that changes a job by the action verb of the API, and prints result.
func jobAction(getenv func(string) string, verb, short, result string) *cobra.Command {
	return actionCommand(getenv, jobNames, &cobra.Command{
		Use:   verb + " JOB",
		Short: short,
		Long:  short + ".\nJOB is as shoal jobs list has it: index:7, sync:work.",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		// The answer has the state before the change, so do not print the state.
		var before operate.JobInfo
		if err := c.call(cmd.Context(), "POST", "/api/jobs/"+url.PathEscape(args[0])+"/"+verb, nil, &before); err != nil {
			return err
		}

		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s (%s) %s\n", before.ID, before.Subject, result)
		return err
	})
}
