package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node/account"
)

// keyOwner returns the account of a key, or words for a key without one.
func keyOwner(k *account.KeyInfo) string {
	if k.All {
		return "nobody, sees every repository"
	}
	return cmp.Or(k.User, "nobody")
}

func newKey(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "API keys (on a node's host, with an owner's key, or your own with yours)",
	}
	cmd.AddCommand(newKeyCreate(getenv), newKeyList(getenv), newKeyRevoke(getenv))
	return cmd
}

func newKeyCreate(getenv func(string) string) *cobra.Command {
	var role, expires, user string
	var all bool
	cmd := actionCommand(getenv, naming{}, &cobra.Command{
		Use:   "create NAME",
		Short: "Make an API key and print it; it is shown this once only",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		body := map[string]any{"name": args[0], "role": role, "user": user, "allRepositories": all}

		if expires != "never" {
			days, err := strconv.Atoi(strings.TrimSuffix(expires, "d"))
			if err != nil || days < 1 {
				return fmt.Errorf("--expires %q: want days, as 90d, or never", expires)
			}
			body["expiresInDays"] = days
		}

		var made account.CreateKeyResponse
		if err := c.call(cmd.Context(), "POST", "/api/keys", body, &made); err != nil {
			return err
		}

		k := &made.Info
		// Print the key alone to standard output, for a pipe into a secret store.
		fmt.Fprintf(cmd.ErrOrStderr(), "key %s (%s, %s, of %s) is shown this once only; expires: %s\n", k.Name, k.ID, k.Role, keyOwner(k), timeText(k.Expires, "never"))
		fmt.Fprintln(cmd.OutOrStdout(), made.Key)
		return nil
	})

	cmd.Flags().StringVar(&role, "role", "member", "member (reads), owner (everything) or metrics (/metrics alone)")
	offerValues(cmd, "role", "member", "owner", "metrics")
	cmd.Flags().StringVar(&user, "user", "", "account that it is for, by e-mail address or id (default whoever asks; the operator's keys are nobody's)")
	cmd.Flags().BoolVar(&all, "all-repositories", false, "a key of nobody that sees every repository, also those whose permissions are enforced")
	cmd.Flags().StringVar(&expires, "expires", "90d", "days until it ends, or never")
	offerValues(cmd, "expires", "30d", "90d", "365d", "never")
	return cmd
}

func newKeyList(getenv func(string) string) *cobra.Command {
	return listing[[]account.KeyInfo]{use: "list", short: "List API keys", path: fixedPath("/api/keys"), show: func(w io.Writer, keys []account.KeyInfo) error {
		return table(w, "NAME\tID\tROLE\tBEGINS\tOF\tCREATED\tEXPIRES", keys, func(k account.KeyInfo) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s…\t%s\t%s\t%s", k.Name, k.ID, k.Role, k.Prefix, keyOwner(&k), timeText(k.Created, ""), timeText(k.Expires, "never"))
		})
	}}.command(getenv)
}

func newKeyRevoke(getenv func(string) string) *cobra.Command {
	return actionCommand(getenv, keyNames, &cobra.Command{
		Use:   "revoke NAME|ID",
		Short: "End an API key",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		var k account.KeyInfo
		if err := c.call(cmd.Context(), "DELETE", "/api/keys/"+url.PathEscape(args[0]), nil, &k); err != nil {
			return err
		}

		fmt.Fprintf(cmd.ErrOrStderr(), "key %s (%s) is revoked\n", k.Name, k.ID)
		return nil
	})
}

func newClusterKey() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster-key", Short: "The secret that makes nodes one cluster"}
	var asJSON *bool
	makeKey := &cobra.Command{
		Use:   "new [FILE]",
		Short: "Make a cluster key in a new file that only its owner can read, or print one; give the same file to every node",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && *asJSON:
				return printJSON(cmd.OutOrStdout(), map[string]string{"key": wire.NewKey().Text()})
			case len(args) == 0:
				_, err := fmt.Fprintln(cmd.OutOrStdout(), wire.NewKey().Text())
				return err
			}
			if err := writeKey(args[0]); err != nil || !*asJSON {
				return err
			}
			return printJSON(cmd.OutOrStdout(), map[string]string{"file": args[0]})
		},
	}
	asJSON = jsonFlag(makeKey)
	cmd.AddCommand(makeKey)
	return cmd
}

// writeKey writes a new key to a new file. It fails if the file exists: a cluster may need its key.
func writeKey(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	// Sync the file, because a cluster may start with the key soon.
	_, err = fmt.Fprintln(f, wire.NewKey().Text())
	return errors.Join(err, f.Sync(), f.Close(), cluster.Inherit(path))
}
