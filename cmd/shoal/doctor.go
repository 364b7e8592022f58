package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/node"
)

// finding is the result of a check of a thing: what was found, and advice if that is not good.
type finding struct {
	What   string `json:"what"`
	Said   string `json:"said"`
	Advice string `json:"advice,omitempty"` // "" means good
}

func newDoctor(getenv func(string) string) *cobra.Command {
	var f clientFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this host and the cluster; exit 1 and say what to do where something is not good",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			host := hostFacts{
				dir: f.dataDir, lookPath: exec.LookPath, version: versionOf,
				files: openFiles, disk: diskRoom, clock: clockSynchronized,
			}
			if host.dir == "" {
				host.dir, _ = f.socketDir()
			}
			c, err := f.client()
			if err != nil {
				return err
			}
			return reportFindings(cmd.OutOrStdout(), asJSON, append(host.check(ctx), checkCluster(ctx, c)...))
		},
	}
	f.add(cmd, getenv)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON; what is not good has an advice")
	return cmd
}

// reportFindings prints the findings, and returns exit code 1 if one is not good.
func reportFindings(w io.Writer, asJSON bool, all []finding) error {
	if asJSON {
		if err := json.NewEncoder(w).Encode(all); err != nil {
			return err
		}
		w = io.Discard
	}
	bad := 0
	for _, found := range all {
		word := "good"
		if found.Advice != "" {
			word, bad = "look", bad+1
		}
		fmt.Fprintf(w, "%s  %s: %s\n", word, found.What, found.Said)
		if found.Advice != "" {
			fmt.Fprintf(w, "      %s\n", found.Advice)
		}
	}
	if bad > 0 {
		return exitCode(1)
	}
	return nil
}

// hostFacts has the functions that examine the host, which tests replace.
type hostFacts struct {
	dir      string // data directory; "" if unknown
	lookPath func(checkProgram string) (string, error)
	version  func(ctx context.Context, checkProgram string) (string, error) // first line of --version
	files    func() (uint64, error)                                         // limit of open files
	disk     func(dir string) (free, all uint64, err error)                 // bytes
	clock    func() (bool, error)                                           // reports whether the clock is synchronized
}

// check examines the host of a node: its programs, limit of open files, clock, and the free space of the
// data directory if that is known.
func (h *hostFacts) check(ctx context.Context) []finding {
	all := []finding{
		h.checkProgram(ctx, "git", "git version", "install git: without it nothing can be fetched"),
		h.checkProgram(ctx, "ctags", "Universal Ctags", "install universal-ctags, or start nodes with --ctags off: without it there are no symbols"),
	}

	if n, err := h.files(); err != nil || n < warnDescriptors {
		all = append(all, finding{"open files", fmt.Sprintf("this shell may open %d", n), fmt.Sprintf("raise the limit to %d or more: ulimit -n, or LimitNOFILE= in a unit", warnDescriptors)})
	} else {
		all = append(all, finding{What: "open files", Said: fmt.Sprintf("this shell may open %d", n)})
	}

	if ok, err := h.clock(); err != nil || !ok {
		all = append(all, finding{"clock", "it is not synchronized", "start a time service (chrony, systemd-timesyncd): nodes compare their clocks"})
	} else {
		all = append(all, finding{What: "clock", Said: "it is synchronized"})
	}
	if h.dir == "" {
		return all
	}
	return append(all, h.checkFreeSpace())
}

// checkProgram checks that a program is installed, and that its answer to --version contains words.
func (h *hostFacts) checkProgram(ctx context.Context, name, words, advice string) finding {
	path, err := h.lookPath(name)
	if err != nil {
		return finding{name, "it is not on PATH", advice}
	}
	said, err := h.version(ctx, path)
	if err != nil || !strings.Contains(said, words) {
		return finding{name, fmt.Sprintf("%s is another program: %q", path, said), advice}
	}
	return finding{What: name, Said: said}
}

// checkFreeSpace checks that a tenth of the data directory's volume is free.
func (h *hostFacts) checkFreeSpace() finding {
	free, all, err := h.disk(h.dir)
	switch said := fmt.Sprintf("%s of %s free in %s", bytesText(int64(free)), bytesText(int64(all)), h.dir); {
	case err != nil:
		return finding{"data directory", err.Error(), "name it by --data-dir, and run this as the node's user"}
	case free < all/10:
		return finding{"data directory", said, "make room, or add a node: a node that has none stops with exit code 70"}
	default:
		return finding{What: "data directory", Said: said}
	}
}

// checkCluster returns findings about the cluster of a node: its verdict and its warnings.
func checkCluster(ctx context.Context, c *client) []finding {
	var s node.StatusResponse
	if err := c.call(ctx, "GET", "/api/status", nil, &s); err != nil {
		return []finding{{"cluster", err.Error(), "start the node, or name one by --url and --key"}}
	}
	all := []finding{{What: "cluster", Said: s.Verdict.Sentence}}
	switch {
	case s.Verdict.State == node.VerdictUpgrading:
		all[0].Advice = "`shoal upgrade next`, of the new version, names the node to restart next"
	case s.Verdict.State.NeedsCare():
		all[0].Advice = "shoal status shows the nodes: start those that are away, or remove the ones that are lost"
	}
	for _, w := range s.Warnings {
		all = append(all, finding{"warning", w, "docs/trouble.md, or /docs on a node, says more"})
	}
	if !isHealthy(&s) && len(s.Warnings) == 0 && all[0].Advice == "" {
		all = append(all, finding{"cluster", "a connection, a repository or the configuration failed", "shoal status and shoal connection list name it"})
	}
	return all
}

// versionOf returns the first line that a program prints for --version.
func versionOf(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return line, err
}

func openFiles() (uint64, error) {
	var files syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	return files.Cur, err
}

// diskRoom returns how many bytes a directory's volume has, and how many are free.
func diskRoom(dir string) (free, all uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Clean(dir), &s); err != nil {
		return 0, 0, &os.PathError{Op: "look at", Path: dir, Err: err}
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}

// clockSynchronized reports whether the kernel's clock is synchronized.
func clockSynchronized() (bool, error) {
	const unsynchronized = 5 // TIME_ERROR of adjtimex
	state, err := syscall.Adjtimex(&syscall.Timex{})
	return state != unsynchronized, err
}
