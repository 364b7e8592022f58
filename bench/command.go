package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// Command returns the command tree of shoal-bench.
func Command() *cobra.Command {
	cmd := &cobra.Command{Use: "shoal-bench", Short: "Measure Shoal against its peers", SilenceUsage: true, SilenceErrors: true}
	cmd.AddCommand(reportCommand(), agentCommand(), soakCommand())
	return cmd
}

// programFlag adds the flag with the program to measure. Its default is the program next to this
// one, as `make build` writes it.
func programFlag(cmd *cobra.Command, to *string) {
	beside := "shoal"
	if self, err := os.Executable(); err == nil {
		beside = filepath.Join(filepath.Dir(self), "shoal")
	}
	cmd.Flags().StringVar(to, "shoal", beside, "program to measure")
}

func reportCommand() *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Measure the parts and write a report",
		Long: `Measures build cost, size, latency, throughput and growth, beside ripgrep,
codesearch and, when it is on PATH, zoekt. Corpora and indexes stay in --dir
and are used again by the next run. Part growth-revisions wants a
bare repository with tags at <dir>/R.git; part localise wants bare repositories in folders of <dir>/localise, one folder a group,
part questions those that it asks about in <dir>/questions (git.git,
redis.git, rqlite.git, weaviate.git).`,

		Args: cobra.NoArgs,

		// Print the text of other parts even after an error, because they took hours.
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			text, err := Report(cmd.Context(), o)
			fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}

	programFlag(cmd, &o.Shoal)
	cmd.Flags().StringVar(&o.Dir, "dir", filepath.Join(os.TempDir(), "shoal-bench"), "work folder, kept between runs")
	cmd.Flags().StringVar(&o.Out, "out", "", "folder of the report; empty prints only")
	cmd.Flags().StringSliceVar(&o.Parts, "parts", PartNames(), "what to measure")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "use the indexes of an earlier run: for parts that do not measure building")
	cmd.Flags().IntVar(&o.Repeat, "repeat", 5, "repetitions of each search; the best counts")
	return cmd
}

// agentParts are the parts that measure what agents read. They need no model.
var agentParts = []string{"questions", "localise"}

func agentCommand() *cobra.Command {
	o := Options{Repeat: 1}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Count what agents read until they have their answers, beside rg and git",
		Long: `Asks what agents ask, without a model: questions by calls that were written down,
and commits by their subjects in the trees before them. Beside them run rg, git and ctags in checkouts, with the same questions. The
repositories are those of bench report; a part without them says so.`,
		Args: cobra.NoArgs,

		// This is a report of other parts, so rows can be compared with a full report.
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			text, err := Report(cmd.Context(), o)
			fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}

	programFlag(cmd, &o.Shoal)
	cmd.Flags().StringVar(&o.Dir, "dir", filepath.Join(os.TempDir(), "shoal-bench"), "work folder, kept between runs")
	cmd.Flags().StringVar(&o.Out, "out", "", "folder of the report; empty prints only")
	cmd.Flags().StringSliceVar(&o.Parts, "parts", agentParts, "what to measure")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "use the indexes of an earlier run")
	return cmd
}

func soakCommand() *cobra.Command {
	var o SoakOptions
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Re-index a changing repository many times, then load the node; memory and disk must stay flat",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			p, err := Soak(cmd.Context(), o)
			if err != nil {
				return err
			}

			// No limit is checked: the reader judges whether a column is flat.
			fmt.Fprint(cmd.OutOrStdout(), p.Text())
			return nil
		},
	}

	programFlag(cmd, &o.Shoal)
	cmd.Flags().StringVar(&o.Dir, "dir", filepath.Join(os.TempDir(), "shoal-soak"), "work folder, wiped at the start")
	cmd.Flags().StringVar(&o.Repo, "repo", "", "repository to copy and change; empty makes a small one")
	cmd.Flags().IntVar(&o.Rounds, "rounds", 1000, "commits, each waited for until it is searchable")
	cmd.Flags().DurationVar(&o.Load, "load", 20*time.Minute, "mixed load after the rounds")
	cmd.Flags().IntVar(&o.Every, "every", 100, "rounds between two samples")
	return cmd
}
