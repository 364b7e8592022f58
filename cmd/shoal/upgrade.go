package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	release "github.com/shoalsearch/shoal/version"
)

func newUpgrade(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Bring a cluster to another version",
	}
	cmd.AddCommand(newUpgradeCheck(getenv), newUpgradeNext(getenv))
	return cmd
}

func newUpgradeCheck(getenv func(string) string) *cobra.Command {
	var asJSON bool
	cmd := clientCommand(getenv, naming{}, &cobra.Command{
		Use:   "check",
		Short: "Say whether this program can run the nodes of a cluster, and which nodes hold its catalog back",
		Long: "Say whether this program can run the nodes of a cluster. Call it with the program of the new version, before the first node\n" +
			"is upgraded and after the last.\n\n" +
			"All nodes apply changes of the catalog by the rules of its level. A new version may know a higher level. The catalog is\n" +
			"raised to it by itself once every node runs such a version; versions that do not know it cannot be started after that.\n\n" +
			"The exit code is 1 where this program cannot apply the level of the catalog.",
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, c *client, _ []string) error {
		var s node.StatusResponse
		if err := c.call(cmd.Context(), "GET", "/api/status", nil, &s); err != nil {
			return err
		}

		u := compareVersions(&s, catalog.ThisBuild(), buildVersion())
		if err := u.print(cmd.OutOrStdout(), asJSON); err != nil {
			return err
		}
		if !u.Possible {
			return exitCode(1)
		}
		return nil
	})

	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// upgrade is the result of comparing this program with a cluster.
type upgrade struct {
	Version  string           `json:"version"` // of the program
	Lowest   uint64           `json:"lowest"`  // lowest level that the program can apply
	Highest  uint64           `json:"highest"`
	Level    node.LevelStatus `json:"level"`
	Possible bool             `json:"possible"` // the program can run nodes of the cluster
	Summary  []string         `json:"summary"`
	Nodes    []upgradeNode    `json:"nodes"`
}

// upgradeNode is a node of the cluster.
type upgradeNode struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Level   int    `json:"level"` // highest level that it can apply; 0 = unknown
	Health  string `json:"health"`
}

// compareVersions compares a build of this program with a cluster: whether it can run the cluster's
// nodes, and for which nodes the next level of the catalog waits.
func compareVersions(s *node.StatusResponse, b catalog.Build, version string) *upgrade {
	u := &upgrade{Version: version, Lowest: b.Lowest, Highest: b.Highest(), Level: s.Level}

	// The next level is the highest that some node or this program can apply.
	next := max(b.Highest(), uint64(s.Level.Next))
	var behind []string
	for _, m := range s.Members {
		u.Nodes = append(u.Nodes, upgradeNode{m.ID, m.Version, m.Level, m.Health})
		if uint64(m.Level) < next {
			behind = append(behind, fmt.Sprintf("%s (version %s)", m.ID, cmp.Or(m.Version, "unknown")))
		}
	}

	why := b.Unable(catalog.Level{Number: uint64(s.Level.Number), Version: s.Level.Version})
	for _, m := range s.Members {
		if why == nil && !release.Neighbours(m.Version, version) {
			why = fmt.Errorf("version %s and version %s of node %s are no neighbouring releases: bring all nodes to the release between them first", version, m.Version, m.ID)
		}
	}
	u.Possible = why == nil
	switch {
	case why != nil:
		u.Summary = []string{"This program cannot run nodes of this cluster: " + why.Error() + "."}
	case next <= uint64(s.Level.Number):
		u.Summary = []string{"This program brings no higher level. Older versions can still be started."}
	case len(behind) > 0:
		u.Summary = []string{
			fmt.Sprintf("Level %d waits for: %s.", next, strings.Join(behind, ", ")),
			"The catalog is raised once they run a version that can apply it, or are removed. Until then older versions can still be started.",
		}
	default:
		u.Summary = []string{fmt.Sprintf("All nodes can apply level %d: the catalog is raised within seconds.", next)}
	}
	return u
}

func (u *upgrade) print(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(u)
	}

	fmt.Fprintf(w, "The catalog has level %d, which version %s brought. This program, version %s, applies levels %d to %d.\n",
		u.Level.Number, u.Level.Version, u.Version, u.Lowest, u.Highest)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nNODE\tHEALTH\tVERSION\tAPPLIES UP TO")
	for _, n := range u.Nodes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", n.ID, n.Health, n.Version, levelText(n.Level))
	}
	fmt.Fprintln(t)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, line := range u.Summary {
		fmt.Fprintln(w, line)
	}
	return nil
}
