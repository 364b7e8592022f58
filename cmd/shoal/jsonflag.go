package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
)

// jsonFlag adds the flag --json to a command that makes its own report.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "a report as JSON, on a line")
}

// printJSON prints a report of --json on a line.
func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
