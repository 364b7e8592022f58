package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/disk"
	"github.com/shoalsearch/shoal/node/thread"
)

func newSnapshot(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Back-up of the catalog: repositories, keys, configuration, placement",
	}
	cmd.AddCommand(newSnapshotSave(getenv), newSnapshotRestore(getenv))
	return cmd
}

// savedReport is what `snapshot save --json` prints.
type savedReport struct {
	File     string       `json:"file"`
	Bytes    int64        `json:"bytes"`
	Replaced bool         `json:"replaced"`        // a file of that name was there
	Chats    *chatsReport `json:"chats,omitempty"` // of --chats
}

// chatsReport describes a saved or restored file of chats.
type chatsReport struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes,omitempty"`
	Answers int    `json:"answers"`
	Missing int    `json:"missing,omitempty"` // answers whose nodes did not respond
}

func newSnapshotSave(getenv func(string) string) *cobra.Command {
	var chats string
	var asJSON *bool
	cmd := clientCommand(getenv, naming{}, &cobra.Command{
		Use:   "save FILE",
		Short: "Save the catalog of a running cluster",
		Long:  "Save the catalog of a running cluster (- is standard output). Keep the cluster key at another place: it seals what is secret in the file.",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *client, args []string) error {
		out := cmd.OutOrStdout()
		if *asJSON {
			if args[0] == "-" {
				return errors.New("the snapshot itself goes to standard output: name a file, or leave --json out")
			}
			cmd.SetErr(io.Discard)
		}
		report, err := saveSnapshot(cmd, c, args[0], chats)
		if err != nil || !*asJSON {
			return err
		}
		return printJSON(out, report)
	})
	cmd.Flags().StringVar(&chats, "chats", "", "save the chats into this file, too")
	asJSON = jsonFlag(cmd)
	return cmd
}

// saveSnapshot saves the catalog to path ("-" means standard output), and the chats to the file chats if
// that is not "".
func saveSnapshot(cmd *cobra.Command, c *client, path, chats string) (*savedReport, error) {
	if path == "-" && isTerminal(os.Stdout) {
		return nil, errors.New("a snapshot is no text for a terminal: name a file, or send it to a program")
	}

	// Send the request before creating the file, so that a refusal leaves no file.
	resp, err := c.send(cmd.Context(), "GET", "/api/snapshot", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	report := &savedReport{File: path}
	replacedText := ""

	// If an error ends a pipe early, its reader detects the short snapshot by the checksum.
	if path == "-" {
		report.Bytes, err = io.Copy(cmd.OutOrStdout(), resp.Body)
	} else {
		if _, err := os.Stat(path); err == nil {
			report.Replaced, replacedText = true, ", in place of the file before"
		}
		report.Bytes, err = disk.Replace(path, resp.Body)
	}
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(cmd.ErrOrStderr(), "%s saved, %s%s\n", path, bytesText(report.Bytes), replacedText)
	if chats != "" {
		report.Chats, err = saveChats(cmd, c, chats)
	}
	return report, err
}

// saveChats saves the chats into a file. It checks the new file before it replaces an old one.
func saveChats(cmd *cobra.Command, c *client, path string) (*chatsReport, error) {
	resp, err := c.send(cmd.Context(), "GET", "/api/snapshot?chats=true", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	report := &chatsReport{File: path}
	part := path + ".part"
	defer os.Remove(part) // fails after the rename
	if report.Bytes, err = disk.Replace(part, resp.Body); err != nil {
		return nil, err
	}
	if report.Answers, report.Missing, err = readChats(part, ""); err != nil {
		return nil, err
	}
	if err := os.Rename(part, path); err != nil {
		return nil, err
	}

	fmt.Fprintf(cmd.ErrOrStderr(), "%s saved, %s: %s\n", path, bytesText(report.Bytes), catalog.Counted(report.Answers, "answer", "answers"))
	if report.Missing > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s missing: the nodes that have them do not answer\n", catalog.Counted(report.Missing, "answer is", "answers are"))
	}
	return report, nil
}

// checkChats returns an error if a file of chats is damaged. The path "" means that there is no file.
func checkChats(path string) error {
	if path == "" {
		return nil
	}
	_, _, err := readChats(path, "")
	return err
}

// recoveredReport is what `snapshot restore --json` and `recover --json` print.
type recoveredReport struct {
	Node     string       `json:"node"`
	Cluster  string       `json:"cluster"`
	Before   string       `json:"before"` // id of the cluster that was
	Index    uint64       `json:"index"`  // newest entry in the catalog
	Removed  []string     `json:"removed"`
	Sessions int          `json:"sessionsEnded"`
	Consents int          `json:"consentsEnded"`
	Links    int          `json:"linksEnded"`
	Accounts int          `json:"accounts"` // active ones
	Keys     []string     `json:"keys"`     // API keys in force: id, name and owner
	Chats    *chatsReport `json:"chats,omitempty"`
}

// finishRecovery prints what was recovered, and adds the chats in the file path to a data directory,
// unless path is "".
func finishRecovery(w io.Writer, r *cluster.Recovered, path, dataDir string, asJSON bool) error {
	report := recoveredReport{
		r.Node, r.Cluster, r.Before, r.Index, append([]string{}, r.Removed...),
		r.Sessions, r.Consents, r.Links, r.Accounts, append([]string{}, r.Keys...), nil,
	}
	if !asJSON {
		printRecovered(w, r)
	}
	if path != "" {
		answers, _, err := readChats(path, dataDir)
		report.Chats = &chatsReport{File: path, Answers: answers}
		if !asJSON {
			fmt.Fprintf(w, "chats: %s restored\n", catalog.Counted(answers, "answer", "answers"))
		}
		if err != nil {
			return err
		}
	}
	if asJSON {
		return printJSON(w, report)
	}
	return nil
}

// readChats checks a file of chats, and unpacks it into a data directory unless dataDir is "". It returns
// how many answers the file has, and how many were missing when it was saved.
func readChats(path, dataDir string) (answers, missing int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if dataDir == "" {
		return thread.Unpack(f, "")
	}

	dir := filepath.Join(dataDir, "threads")
	if answers, missing, err = thread.Unpack(f, dir); err != nil || answers == 0 {
		return answers, missing, err
	}
	return answers, missing, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, cluster.Inherit(path))
	})
}

func newSnapshotRestore(getenv func(string) string) *cobra.Command {
	var dataDir, keyFile, chats string
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Begin a new cluster of one node with a saved catalog",
		Long: "Begin a new cluster of one node with a saved catalog. The node must be stopped. Its data directory must be empty, but for the\n" +
			"key of the cluster that was saved. Repositories are fetched and indexed again.\n" +
			"Accounts, passwords, keys and grants are those of the file, also if they were revoked since. The keys are listed.\n" +
			"Sessions, consents of agents and invitations end. Code hosts are asked again about permissions.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()

			if err := checkChats(chats); err != nil {
				return err
			}

			r, err := cluster.Restore(dataDir, cmp.Or(keyFile, filepath.Join(dataDir, "cluster.key")), file)
			if err != nil {
				return err
			}

			return finishRecovery(cmd.OutOrStdout(), r, chats, dataDir, *asJSON)
		},
	}

	offlineFlags(cmd, getenv, &dataDir)
	cmd.Flags().StringVar(&chats, "chats", "", "restore the chats of this file, too")
	cmd.Flags().StringVar(&keyFile, "cluster-key-file", getenv("SHOAL_CLUSTER_KEY_FILE"), "cluster key (default <data-dir>/cluster.key) [SHOAL_CLUSTER_KEY_FILE]")
	asJSON = jsonFlag(cmd)
	return cmd
}

func newRecover(getenv func(string) string) *cobra.Command {
	var dataDir, chats string
	var acceptLoss bool
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Recovery after loss of the majority: make this stopped node a cluster of its own",
		Long: "Recovery after loss of the majority of nodes for good. This stopped node becomes a cluster of its own with the catalog\n" +
			"that it has. Changes that only the lost nodes had are lost. Run it on one node, the one with the newest catalog.\n" +
			"Move the data directories of the others away before they join. Sessions, consents of agents and invitations end,\n" +
			"because their revocation may be lost.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !acceptLoss {
				return errors.New("changes that only the lost nodes know are lost for good: say --accept-loss if that is what you want")
			}

			if err := checkChats(chats); err != nil {
				return err
			}
			r, err := cluster.Recover(dataDir)
			if err != nil {
				return err
			}

			return finishRecovery(cmd.OutOrStdout(), r, chats, dataDir, *asJSON)
		},
	}

	offlineFlags(cmd, getenv, &dataDir)
	cmd.Flags().StringVar(&chats, "chats", "", "add the chats of this file, which only the lost nodes may have had")
	cmd.Flags().BoolVar(&acceptLoss, "accept-loss", false, "go on although changes may be lost")
	asJSON = jsonFlag(cmd)
	return cmd
}

// offlineFlags adds the flags of a command that works on the files of a stopped node.
func offlineFlags(cmd *cobra.Command, getenv func(string) string, dataDir *string) {
	cmd.Flags().StringVar(dataDir, "data-dir", cmp.Or(getenv("SHOAL_DATA_DIR"), "./data"), "data directory of the stopped node [SHOAL_DATA_DIR]")
}

// printRecovered prints what the new cluster has, and which accounts and keys the operator must check.
func printRecovered(w io.Writer, r *cluster.Recovered) {
	fmt.Fprintf(w, "node %s is cluster %s (before: %s) with the catalog up to entry %d\n", r.Node, r.Cluster, r.Before, r.Index)
	for _, id := range r.Removed {
		fmt.Fprintf(w, "no longer a member: %s\n", id)
	}

	// What was revoked after the restored state is in force again, so list it.
	fmt.Fprintf(w, "ended: %s, %s of agents, %s\n",
		catalog.Counted(r.Sessions, "session", "sessions"), catalog.Counted(r.Consents, "consent", "consents"), catalog.Counted(r.Links, "invitation or other link", "invitations and other links"))
	fmt.Fprintf(w, "in force as they were then, with their passwords, roles and grants: %s, %s. Look through them:\n",
		catalog.Counted(r.Accounts, "active account", "active accounts"), catalog.Counted(len(r.Keys), "API key", "API keys"))
	for _, key := range r.Keys {
		fmt.Fprintf(w, "API key: %s\n", key)
	}
}
