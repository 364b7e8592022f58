package main

import (
	"errors"

	"github.com/spf13/cobra"
)

var errUnfinished = errors.New("not wired yet")

func unfinished(use, short string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, RunE: func(*cobra.Command, []string) error { return errUnfinished }}
}

func newSearch(func(string) string) *cobra.Command {
	return unfinished("search QUERY", "Search from the terminal")
}
func newStatus(func(string) string) *cobra.Command {
	return unfinished("status", "Members, repositories, jobs")
}
func newConfig(func(string) string) *cobra.Command {
	return unfinished("config", "Check a configuration file")
}
func newKey(func(string) string) *cobra.Command { return unfinished("key", "API keys") }
func newDrain(func(string) string) *cobra.Command {
	return unfinished("drain NODE", "Leave without a query gap")
}
func newRemove(func(string) string) *cobra.Command {
	return unfinished("remove NODE", "Remove a node for good")
}
func newSnapshot(func(string) string) *cobra.Command {
	return unfinished("snapshot", "Back-up of the catalog")
}
func newRecover(func(string) string) *cobra.Command {
	return unfinished("recover", "Recovery after loss of the majority")
}
func newClusterKey() *cobra.Command             { return unfinished("cluster-key", "Cluster keys") }
func newMCP(func(string) string) *cobra.Command { return unfinished("mcp", "Stdio bridge for agents") }
