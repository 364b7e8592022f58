package main

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/version"
)

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"version": buildVersion()})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), buildVersion())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// buildVersion returns the number of a release; in other builds also the commit.
func buildVersion() string {
	if released == "yes" {
		return version.Number
	}
	dev := version.Number + "-dev"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return dev
	}

	// A build outside of git has no commit.
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = "-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return dev + commit + dirty
}

// released is set to yes by the linker when `make dist` builds a release.
var released = "no"
