package main

import (
	"errors"

	"github.com/spf13/cobra"
)

var errUnfinished = errors.New("not wired yet")

func unfinished(use, short string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, RunE: func(*cobra.Command, []string) error { return errUnfinished }}
}

func newSnapshot(func(string) string) *cobra.Command {
	return unfinished("snapshot", "Back-up of the catalog")
}
func newRecover(func(string) string) *cobra.Command {
	return unfinished("recover", "Recovery after loss of the majority")
}
