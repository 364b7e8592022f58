package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

func newUser(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Accounts of people (on a node's host, or with an owner's key)",
	}

	cmd.AddCommand(newUserCreate(getenv), newUserImport(getenv), newUserList(getenv),
		newUserChange(getenv, "suspend EMAIL|ID", "Refuse the keys, sessions and agents of an account at every node", "is suspended", map[string]any{"state": "suspended"}),
		newUserChange(getenv, "approve EMAIL|ID", "Let somebody in who waits for it", "is active", map[string]any{"state": "active"}),
		newUserChange(getenv, "reactivate EMAIL|ID", "Let a suspended account in again, with the keys that it had", "is active", map[string]any{"state": "active"}),
		newUserRole(getenv), newUserDelete(getenv), newUserLogout(getenv), newUserReset(getenv), newUserPassword(getenv), newUserAccess(getenv))
	return cmd
}

func newUserCreate(getenv func(string) string) *cobra.Command {
	var owner, byPassword bool
	var name string
	cmd := actionCommand(getenv, naming{}, &cobra.Command{
		Use:   "create EMAIL",
		Short: "Make an account, and print a link to sign in with once",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		body := map[string]any{"email": args[0], "name": name, "role": "member"}
		if owner {
			body["role"] = "owner"
		}

		var u account.UserInfo
		if err := c.call(cmd.Context(), "POST", "/api/users", body, &u); err != nil {
			return err
		}

		// Report the account before making its link or password: it stays even if that fails.
		fmt.Fprintf(cmd.ErrOrStderr(), "account %s (%s, %s) is made\n", u.Email, u.ID, u.Role)
		if byPassword {
			if err := sendPassword(cmd, c, u.ID); err != nil {
				return fmt.Errorf("%w; the account has no password yet: `shoal user password %s` sets one", err, u.Email)
			}
			return nil
		}
		return showLink(cmd, c, u.ID)
	})

	cmd.Flags().BoolVar(&byPassword, "password-stdin", false, "set the password that stands on the standard input, in place of a link")
	cmd.Flags().BoolVar(&owner, "owner", false, "an owner, who administers; else a member")
	cmd.Flags().StringVar(&name, "name", "", "name for people")
	return cmd
}

func newUserList(getenv func(string) string) *cobra.Command {
	return listing[[]account.UserInfo]{use: "list", short: "List accounts", path: fixedPath("/api/users"), show: func(w io.Writer, users []account.UserInfo) error {
		return table(w, "EMAIL\tID\tROLE\tSTATE\tKEYS\tNAME\tCREATED", users, func(u account.UserInfo) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s", u.Email, u.ID, u.Role, u.State, u.Keys, u.Name, timeText(u.Created, ""))
		})
	}}.command(getenv)
}

// newUserChange makes a command that changes an account by a fixed body, and prints done after it.
func newUserChange(getenv func(string) string, use, short, done string, body map[string]any) *cobra.Command {
	return actionCommand(getenv, accountNames, &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}, func(cmd *cobra.Command, c *client, args []string) error {
		return changeUser(cmd, c, args[0], body, done)
	})
}

// changeUser changes an account by body, and prints the account and done.
func changeUser(cmd *cobra.Command, c *client, user string, body map[string]any, done string) error {
	var u account.UserInfo
	if err := c.call(cmd.Context(), "POST", "/api/users/"+url.PathEscape(user), body, &u); err != nil {
		return err
	}

	fmt.Fprintf(cmd.ErrOrStderr(), "account %s (%s) %s\n", u.Email, u.ID, done)
	return nil
}

func newUserRole(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, accountNames, &cobra.Command{
		Use:   "role EMAIL|ID member|owner",
		Short: "Give an account another role",
		Args:  cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		return changeUser(cmd, c, args[0], map[string]any{"role": args[1]}, "has the role "+args[1])
	})
}

func newUserLogout(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, accountNames, &cobra.Command{
		Use:   "logout EMAIL|ID",
		Short: "Sign an account out of every browser, at every node",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		// This ends sessions. `shoal user suspend` also refuses keys.
		var out struct{ Ended int }
		if err := c.call(cmd.Context(), "DELETE", "/api/users/"+url.PathEscape(args[0])+"/sessions", nil, &out); err != nil {
			return err
		}

		fmt.Fprintf(cmd.ErrOrStderr(), "%s ended\n", catalog.Counted(out.Ended, "session", "sessions"))
		return nil
	})
}

// showLink makes a link for signing in once, and prints it with its expiry.
func showLink(cmd *cobra.Command, c *client, user string) error {
	made, err := makeLink(cmd.Context(), c, user)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "they choose a password by this link, which is good once, until %s:\n", made.ExpiresAt)
	fmt.Fprintln(cmd.OutOrStdout(), made.Link)
	if made.Mail != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "it was %s\n", made.Mail)
	}
	return nil
}

// madeLink is a link for signing in once.
type madeLink struct{ Link, ExpiresAt, Mail string }

// makeLink makes a link for signing in once.
func makeLink(ctx context.Context, c *client, user string) (out madeLink, err error) {
	err = c.call(ctx, "POST", "/api/users/"+url.PathEscape(user)+"/link", map[string]any{"join": true}, &out)
	return out, err
}

// sendPassword reads a password from the terminal without echo, or the first line of standard
// input, and sets it.
func sendPassword(cmd *cobra.Command, c *client, user string) error {
	password, err := readSecret(cmd, "Password: ")
	if err != nil {
		return err
	}

	// Send the password in the body, because proxies log URLs.
	var u account.UserInfo
	if err := c.call(cmd.Context(), "POST", "/api/users/"+url.PathEscape(user)+"/password", map[string]any{"password": password}, &u); err != nil {
		return err
	}

	fmt.Fprintf(cmd.ErrOrStderr(), "account %s (%s) has the password, and is signed out everywhere\n", u.Email, u.ID)
	return nil
}

func newUserReset(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, accountNames, &cobra.Command{
		Use:   "reset EMAIL|ID",
		Short: "Print a link with which somebody signs in once and chooses a password",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		return showLink(cmd, c, args[0])
	})
}

func newUserPassword(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, accountNames, &cobra.Command{
		Use:   "password EMAIL|ID",
		Short: "Set the password of an account, read from the terminal or the standard input",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		return sendPassword(cmd, c, args[0])
	})
}

// newGrant makes `shoal grant` or `shoal revoke`. member is the member of the request body that gets the
// repositories: "add" or "remove".
func newGrant(getenv func(string) string, use, short, member string) *cobra.Command {
	return actionCommand(getenv, accountNames, &cobra.Command{
		Use: use, Short: short, Args: cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		// The answer lists the account's grants, also if no repository is named.
		var out account.GrantResponse
		if err := c.call(cmd.Context(), "POST", "/api/users/"+url.PathEscape(args[0])+"/grants", map[string]any{member: args[1:]}, &out); err != nil {
			return err
		}

		for _, name := range out.Repos {
			fmt.Fprintln(cmd.OutOrStdout(), name)
		}
		return nil
	})
}

// newUserAccess makes `shoal user access`.
func newUserAccess(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, accountNames, &cobra.Command{
		Use:   "access EMAIL|ID REPOSITORY",
		Short: "Why an account sees a repository, or does not, and how old each answer is",
		Args:  cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var out account.WhyResponse

		path := "/api/users/" + url.PathEscape(args[0]) + "/access?repo=" + url.QueryEscape(args[1])
		if err := c.call(cmd.Context(), "GET", path, nil, &out); err != nil {
			return err
		}

		w, says := cmd.OutOrStdout(), "does not see"
		if out.Sees {
			says = "sees"
		}

		fmt.Fprintf(w, "%s %s %s\n", out.User.Email, says, out.Repo)
		for _, r := range out.Reasons {
			// A reason that denies access outweighs all that grant it.
			mark := " "
			if r.Stops {
				mark = "-"
			} else if r.Sees {
				mark = "+"
			}

			fmt.Fprintf(w, "%s %s", mark, r.Text)
			if !r.At.IsZero() {
				fmt.Fprintf(w, " (as of %s)", clockTime(r.At, time.Now(), "?"))
			}
			fmt.Fprintln(w)
		}
		return nil
	})
}

func newUserDelete(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, accountNames, &cobra.Command{
		Use:   "delete EMAIL|ID",
		Short: "Delete an account with its keys, sessions, agents and grants",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var u account.UserInfo
		if err := c.call(cmd.Context(), "DELETE", "/api/users/"+url.PathEscape(args[0]), nil, &u); err != nil {
			return err
		}

		fmt.Fprintf(cmd.ErrOrStderr(), "account %s (%s) is deleted\n", u.Email, u.ID)
		return nil
	})
}
