package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/node/chronicle"
)

// newAudit makes `shoal audit`.
func newAudit(getenv func(string) string) *cobra.Command {
	var kind, since, until, actor, action string
	var limit int
	var asJSON bool
	cmd := clientCommand(getenv, naming{}, &cobra.Command{
		Use:   "audit",
		Short: "Who changed, read and was refused what, newest first (on a node's host, or with an owner's key)",
		Long: "Who changed what: accounts, keys, sessions, grants, consents, configuration, connections, nodes. Who read what:\n" +
			"searches, files, histories, tools, questions. Who was not let in. Newest first. Each node is asked for what was\n" +
			"read and refused there. Nodes that do not answer are named.\n" +
			"--json exports all events, one a line. Without it at most --limit are shown.",
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, c *client, _ []string) error {
		if limit < 1 || limit > 100 {
			return fmt.Errorf("--limit %d: want a number from 1 to 100", limit)
		}

		// Leave out flags that are not set: the API refuses an empty kind or time.
		q := url.Values{}
		for name, value := range map[string]string{"kind": kind, "since": since, "until": until, "actor": actor, "action": action} {
			if value != "" {
				q.Set(name, value)
			}
		}

		// --json exports all matching events, whatever the limit.
		if asJSON {
			return exportAudit(cmd, c, q)
		}

		q.Set("perPage", fmt.Sprint(limit))
		return listAudit(cmd, c, q)
	})

	fs := cmd.Flags()
	fs.StringVar(&kind, "kind", "", "changes, accesses (what was read and refused), or all (default all)")
	fs.StringVar(&since, "since", "", "not before this time or day, as 2026-01-31T12:00:00Z or 2026-01-31")
	fs.StringVar(&until, "until", "", "before this time or day")
	fs.StringVar(&actor, "actor", "", "id, name, type or key of who it was")
	fs.StringVar(&action, "action", "", "an action, or the first word of several: user, code, api_key.created")
	fs.IntVar(&limit, "limit", 50, "how many at most, from 1 to 100")
	fs.BoolVar(&asJSON, "json", false, "everything, as JSON lines")
	return cmd
}

// listAudit prints the newest matching events, and warns if accesses may be missing.
func listAudit(cmd *cobra.Command, c *client, q url.Values) error {
	resp, err := c.send(cmd.Context(), "GET", "/api/audit?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	var all []chronicle.Line
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err := printAudit(cmd.OutOrStdout(), all, time.Now()); err != nil {
		return err
	}

	warnOfMissing(cmd, resp)
	return nil
}

// warnOfMissing names the nodes whose accesses may be missing.
func warnOfMissing(cmd *cobra.Command, resp *http.Response) {
	if gaps := resp.Header.Get("X-Audit-Missing"); gaps != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "shoal: what was read and refused may be incomplete:", gaps)
	}
}

// exportAudit prints all matching events as the node sends them.
func exportAudit(cmd *cobra.Command, c *client, q url.Values) error {
	q.Set("format", "jsonl")
	resp, err := c.send(cmd.Context(), "GET", "/api/audit?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	// Do not decode the events, because they may have fields that this version does not know.
	if _, err := io.Copy(cmd.OutOrStdout(), resp.Body); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	warnOfMissing(cmd, resp)
	return nil
}

func printAudit(w io.Writer, all []chronicle.Line, now time.Time) error {
	return table(w, "WHEN\tWHO\tFROM\tDID\tTO\tDETAIL", all, func(e chronicle.Line) string {
		// Keys without an account, and the cluster itself, have no name.
		who := cmp.Or(e.ActorName, e.ActorID, e.ActorType)
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s",
			clockTime(e.At, now, "?"), who, cmp.Or(e.Address, "-"), e.Action, e.TargetType+" "+e.TargetID, auditDetail(&e))
	})
}

// auditDetail returns the status of a refusal, how often a repeated access happened, the message and the
// query.
func auditDetail(e *chronicle.Line) string {
	details := []string{}
	if e.Status >= 400 {
		details = append(details, fmt.Sprint(e.Status))
	}
	if e.Count > 0 {
		details = append(details, fmt.Sprintf("%d times", e.Count))
	}

	for _, text := range []string{e.Metadata["message"], e.Metadata["query"]} {
		if text != "" {
			details = append(details, text)
		}
	}
	return strings.Join(details, " ")
}
