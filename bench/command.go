package bench

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// Command returns `shoal bench`.
func Command() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure Shoal against its peers"}
	cmd.AddCommand(reportCommand())
	return cmd
}

func reportCommand() *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Measure the parts and write a report",
		Long: `Measures build cost, size, latency, throughput and growth, beside ripgrep,
codesearch and, when it is on PATH, zoekt. Corpora and indexes stay in --dir
and are used again by the next run. Part history wants a bare repository with
tags at <dir>/R.git.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			text, err := Report(cmd.Context(), o)
			fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", filepath.Join(os.TempDir(), "shoal-bench"), "work folder, kept between runs")
	cmd.Flags().StringVar(&o.Out, "out", "", "folder of the report; empty prints only")
	cmd.Flags().StringSliceVar(&o.Parts, "parts", PartNames(), "what to measure")
	cmd.Flags().IntVar(&o.Repeat, "repeat", 5, "repetitions of each search; the best counts")
	return cmd
}
