package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/shoalsearch/shoal/cluster/disk"
	"github.com/shoalsearch/shoal/node/account"
)

// contexts are the clusters that a user has signed in to, from a file in the user's home.
type contexts struct {
	path string // of the file; "" if neither HOME nor XDG_CONFIG_HOME is set

	Current string                 `json:"current"` // name of the context in use; "" for none
	All     map[string]credentials `json:"contexts"`
}

// credentials are the address of a cluster and the key for it.
type credentials struct {
	URL string `json:"url"` // without a trailing slash
	Key string `json:"key"`
	// CAFile has certificate authorities to trust besides the system's; "" for none.
	CAFile string `json:"caFile,omitempty"`
}

// readContexts reads the user's file of contexts; none if it is missing. It refuses a file that other
// users can read.
func readContexts(getenv func(string) string) (*contexts, error) {
	dir := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	c := &contexts{All: map[string]credentials{}}
	if dir == "" {
		return c, nil
	}

	c.path = filepath.Join(dir, "shoal", "contexts.json")
	info, err := os.Stat(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return nil, err
	case info.Mode().Perm()&0o077 != 0: // other users can read or change it
		return nil, fmt.Errorf("%s can be read by other users of this machine: chmod 600 it, and make new keys if somebody may have read it", c.path)
	}

	text, err := os.ReadFile(c.path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, c); err != nil || c.All == nil {
		return nil, fmt.Errorf("%s holds no contexts: correct it (%w)", c.path, cmp.Or(err, errors.New("no contexts")))
	}
	return c, nil
}

// save replaces the file atomically.
func (c *contexts) save() error {
	if c.path == "" {
		return errors.New("there is no directory for keys: set HOME or XDG_CONFIG_HOME")
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}

	_, err = disk.Replace(c.path, bytes.NewReader(append(text, '\n')))
	return err
}

// lookUp returns the context that a command names in args, else the current one.
func (c *contexts) lookUp(args []string) (name string, found credentials, err error) {
	name = c.Current
	if len(args) > 0 {
		name = args[0]
	}
	found, ok := c.All[name]
	switch {
	case ok:
		return name, found, nil
	case name == "":
		return "", found, errors.New("no context is in use: `shoal login URL` makes one")
	}
	return "", found, fmt.Errorf("there is no context %q: `shoal context list` lists them", name)
}

// credentialsAt returns the credentials of a context with an address: the current one if it has that
// address, otherwise the first by name. They are zero if no context has it.
func (c *contexts) credentialsAt(address string) credentials {
	for _, name := range append([]string{c.Current}, slices.Sorted(maps.Keys(c.All))...) {
		if creds, ok := c.All[name]; ok && creds.URL == strings.TrimRight(address, "/") {
			return creds
		}
	}
	return credentials{}
}

func newLogin(getenv func(string) string) *cobra.Command {
	var name, caFile string
	var piped bool
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "login URL",
		Short: "Sign in to a cluster: keep an API key for it, which every command then uses",
		Long: "Sign in to a cluster. The command prints the address of the page where you make an API key in the browser, and asks\n" +
			"for the key. It keeps the key in shoal/contexts.json below $XDG_CONFIG_HOME or ~/.config, a file for you alone.\n\n" +
			"The cluster is then the current context: commands talk to it where neither --url nor --data-dir is given, and --url\n" +
			"with its address needs no --key.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := url.Parse(args[0])
			if err != nil || !isWebURL(args[0]) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
				return errors.New("want the address of a cluster as https://shoal.example.com, without a user, a password or a query")
			}
			all, err := readContexts(getenv)
			if err != nil {
				return err
			}

			creds := credentials{URL: strings.TrimRight(args[0], "/")}
			if caFile != "" {
				// Store an absolute path, because later commands run in other directories.
				if creds.CAFile, err = filepath.Abs(caFile); err != nil {
					return err
				}
			}
			if creds.Key, err = askKey(cmd, creds.URL, piped); err != nil {
				return err
			}
			_, who, err := whoami(cmd, creds)
			if err != nil {
				return err
			}

			if name == "" {
				name = u.Host
			}
			if old := all.All[name]; old.Key != "" && old.Key != creds.Key {
				fmt.Fprintf(cmd.ErrOrStderr(), "the key that context %s had is still good: revoke it at %s/settings/keys\n", name, old.URL)
			}
			all.Current, all.All[name] = name, creds
			if err := all.save(); err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]string{"context": name, "url": creds.URL, "as": who.Name, "role": who.Role.String()})
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "signed in to %s as %s (%s); context %s is in use\n", creds.URL, replaceHidden(who.Name), who.Role, name)
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the context (default the host of the address)")
	addCAFile(cmd, &caFile, getenv)
	cmd.Flags().BoolVar(&piped, "key-stdin", false, "read the key from the standard input, for scripts")
	asJSON = jsonFlag(cmd)
	return cmd
}

// askKey reads an API key from the terminal, or if piped from standard input. It refuses any other text,
// so that a password pasted by mistake is not sent.
func askKey(cmd *cobra.Command, address string, piped bool) (string, error) {
	if f, ok := cmd.InOrStdin().(*os.File); !piped && (!ok || !isTerminal(f)) {
		return "", errors.New("there is no terminal to ask for the key: pipe it in, with --key-stdin")
	}
	if !piped {
		fmt.Fprintf(cmd.ErrOrStderr(), "Make an API key in the browser at %s/settings/keys and paste it here; it is not shown.\n", address)
	}
	key, err := readSecret(cmd, "API key: ")
	if err == nil && !account.WellFormed(strings.TrimSpace(key)) {
		err = errors.New("that is no API key of Shoal, which begins with " + account.KeyPrefix)
	}
	return strings.TrimSpace(key), err
}

// whoami asks a cluster who the owner of a key is. It also returns the client with that key.
func whoami(cmd *cobra.Command, creds credentials) (c *client, who account.Caller, err error) {
	f := clientFlags{url: creds.URL, key: creds.Key, caFile: creds.CAFile, cmd: cmd}
	if c, err = f.client(); err == nil {
		err = c.call(cmd.Context(), "GET", "/api/me", nil, &who)
	}
	return c, who, err
}

func newLogout(getenv func(string) string) *cobra.Command {
	var local bool
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "logout [CONTEXT]",
		Short: "Revoke the key of a context (default the current one) and forget it",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := readContexts(getenv)
			if err != nil {
				return err
			}
			name, creds, err := all.lookUp(args)
			if err != nil {
				return err
			}
			keyState := "its key is still good: revoke it at " + creds.URL + "/settings/keys"
			if !local {
				if err := revokeOwn(cmd, creds); err != nil {
					return fmt.Errorf("%w; the key is kept: try again, or forget it on this machine alone by `shoal logout --local`", err)
				}
				keyState = "its key is revoked"
			}

			delete(all.All, name)
			if all.Current == name {
				all.Current = ""
			}
			if err := all.save(); err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"context": name, "url": creds.URL, "revoked": !local})
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "context %s is gone; %s\n", name, keyState)
			return nil
		},
	}
	cmd.Flags().BoolVar(&local, "local", false, "only forget the key, as for one that others use too")
	asJSON = jsonFlag(cmd)
	return cmd
}

// revokeOwn revokes the key in creds by a request with that key. It returns nil if the key is revoked
// already.
func revokeOwn(cmd *cobra.Command, creds credentials) error {
	c, who, err := whoami(cmd, creds)
	if refused := (*apiError)(nil); errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
		return nil
	}
	if err != nil {
		return err
	}
	return c.call(cmd.Context(), "DELETE", "/api/keys/"+url.PathEscape(who.KeyID), nil, nil)
}

func newContext(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{Use: "context", Short: "The clusters that you have signed in to with `shoal login`"}
	cmd.AddCommand(newContextList(getenv), newContextUse(getenv))
	return cmd
}

// contextReport is a context without its key.
type contextReport struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Current bool   `json:"current"`
}

func newContextList(getenv func(string) string) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the contexts; * is the current one", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := readContexts(getenv)
			if err != nil {
				return err
			}

			reports := []contextReport{}
			for _, name := range slices.Sorted(maps.Keys(all.All)) {
				reports = append(reports, contextReport{name, all.All[name].URL, name == all.Current})
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), reports)
			}
			return table(cmd.OutOrStdout(), "\tNAME\tURL", reports, func(r contextReport) string {
				mark := ""
				if r.Current {
					mark = "*"
				}
				return mark + "\t" + r.Name + "\t" + r.URL
			})
		},
	}
	asJSON = jsonFlag(cmd)
	return cmd
}

func newContextUse(getenv func(string) string) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "use CONTEXT", Short: "Make a context the current one", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := readContexts(getenv)
			if err != nil {
				return err
			}

			name, creds, err := all.lookUp(args)
			if err != nil {
				return err
			}
			all.Current = name
			if err := all.save(); err != nil || !*asJSON {
				return err
			}
			return printJSON(cmd.OutOrStdout(), contextReport{name, creds.URL, true})
		},
	}
	asJSON = jsonFlag(cmd)
	return cmd
}

// readSecret reads a secret from the terminal without echo, or the first line of standard input.
func readSecret(cmd *cobra.Command, prompt string) (string, error) {
	if f, ok := cmd.InOrStdin().(*os.File); ok && isTerminal(f) {
		fmt.Fprint(cmd.ErrOrStderr(), prompt)
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr()) // the terminal has not shown the typed line end
		return string(b), err
	}

	// The input may lack a final line end. No secret has more bytes than this limit.
	line, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}
