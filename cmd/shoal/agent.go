package main

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/node/oauth"
)

func newAgent(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Programs that people have let in by OAuth (on a node's host, with an owner's key, or your own with yours)",
	}
	cmd.AddCommand(newAgentList(getenv), newAgentRevoke(getenv), newAgentRegister(getenv))
	return cmd
}

func newAgentList(getenv func(string) string) *cobra.Command {
	return listing[[]oauth.Agent]{use: "list", short: "List the agents that were let in, and by whom", path: fixedPath("/api/agents"), show: func(w io.Writer, agents []oauth.Agent) error {
		return table(w, "NAME\tID\tOF\tANSWERS GO TO\tKNOWN BY\tLET IN\tLAST TOKENS\tEXPIRES", agents, func(a oauth.Agent) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", a.Name, a.ID, a.User, a.Host, a.Kind, timeText(a.Created, ""), timeText(a.Used, ""), timeText(a.Expires, ""))
		})
	}}.command(getenv)
}

func newAgentRevoke(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, agentNames, &cobra.Command{
		Use:   "revoke ID",
		Short: "End an agent: its tokens are refused",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var a oauth.Agent
		if err := c.call(cmd.Context(), "DELETE", "/api/agents/"+url.PathEscape(args[0]), nil, &a); err != nil {
			return err
		}

		fmt.Fprintf(cmd.ErrOrStderr(), "agent %s (%s) of %s is ended\n", a.Name, a.ID, a.User)
		return nil
	})
}

func newAgentRegister(getenv func(string) string) *cobra.Command {
	var redirects []string
	cmd := actionCommand(getenv, naming{}, &cobra.Command{
		Use:   "register NAME --redirect URI",
		Short: "Make a client id for a program that asks for one and cannot register by itself",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var r struct{ ClientID, Name string }

		body := map[string]any{"name": args[0], "redirectUris": redirects}
		if err := c.call(cmd.Context(), "POST", "/api/agents/clients", body, &r); err != nil {
			return err
		}

		// Print the id alone to standard output, for scripts.
		fmt.Fprintf(cmd.ErrOrStderr(), "client id of %s; it is no secret, there is none to go with it, and it does not end:\n", r.Name)
		fmt.Fprintln(cmd.OutOrStdout(), r.ClientID)
		return nil
	})

	// MarkFlagRequired fails only for an unknown flag.
	cmd.Flags().StringArrayVar(&redirects, "redirect", nil, "address that people are sent back to: https, a program's own scheme, or http to localhost with any port; may be repeated")
	if err := cmd.MarkFlagRequired("redirect"); err != nil {
		panic("BUG: " + err.Error())
	}
	return cmd
}
