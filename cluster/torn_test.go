package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// truncation is one way to cut files of a stopped node short.
type truncation struct {
	what string
	do   func(raft string) error
}

// truncations returns cuts of the log to many lengths, and of snapshots.
func truncations() []truncation {
	var all []truncation
	for _, keep := range []int{0, 1, 10, 25, 50, 75, 90, 99} {
		all = append(all, truncation{fmt.Sprintf("%d %% of the log", keep), func(dir string) error {
			path := filepath.Join(dir, logFile)
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()*int64(keep)/100)
		}})
	}
	for _, name := range []string{"state.bin", "meta.json"} {
		for _, keep := range []int64{0, 10} {
			all = append(all, truncation{fmt.Sprintf("%d bytes of %s of every snapshot", keep, name), func(dir string) error {
				return eachSnapshot(dir, func(snapshot string) error { return os.Truncate(filepath.Join(snapshot, name), keep) })
			}})
		}
		all = append(all, truncation{"no " + name + " in any snapshot", func(dir string) error {
			return eachSnapshot(dir, func(snapshot string) error { return os.Remove(filepath.Join(snapshot, name)) })
		}})
	}
	return append(all,
		truncation{"no beginning of the log, no meta.json", func(dir string) error {
			return errors.Join(cutStart(dir), eachSnapshot(dir, func(s string) error { return os.Remove(filepath.Join(s, "meta.json")) }))
		}},
		truncation{"no beginning of the log, no snapshots", func(dir string) error {
			return errors.Join(cutStart(dir), os.RemoveAll(filepath.Join(dir, "snapshots")))
		}},
		truncation{"no beginning of the log, 10 bytes of the newest snapshot", func(dir string) error {
			list, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "state.bin"))
			if err != nil || len(list) != 2 {
				return fmt.Errorf("%q, not two snapshots: %w", list, err)
			}
			slices.Sort(list)
			return errors.Join(cut(dir, 27), os.Truncate(list[1], 10))
		}},
		truncation{"no beginning of the log", cutStart},
		truncation{"no log at all, no snapshots", func(dir string) error {
			return errors.Join(cut(dir, 1<<20), os.RemoveAll(filepath.Join(dir, "snapshots")))
		}},
		truncation{"no snapshots", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "snapshots")) }},
		truncation{"no log", func(dir string) error { return os.Remove(filepath.Join(dir, logFile)) }},
	)
}

// cutStart removes the entries covered by the snapshot from the log, as raft does in time.
func cutStart(dir string) error { return cut(dir, 20) }

func cut(dir string, last uint64) error {
	s, err := openStore(dir, offlineWatchdog())
	if err != nil {
		return err
	}
	return errors.Join(s.DeleteRange(1, last), s.Close())
}

func eachSnapshot(dir string, do func(snapshot string) error) error {
	list, err := filepath.Glob(filepath.Join(dir, "snapshots", "*"))
	if err != nil || len(list) == 0 {
		return fmt.Errorf("no snapshot: %w", err)
	}
	for _, s := range list {
		err = errors.Join(err, do(s))
	}
	return err
}

// A node with truncated files either has everything that it acknowledged, or does not start and
// says what to do.
func TestRaftLog_truncatedFileIsRefusedOrComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, options(t, dir))
	for i := range 20 {
		n.propose(set(fmt.Sprint("k", i), strings.Repeat("v", 1000)))
	}
	for range 2 {
		if err := n.replica.raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			n.propose(set("after", "v"))
		}
	}
	until(t, "the cluster is founded", n.founded)
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, cut := range truncations() {
		torn := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(torn, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := cut.do(filepath.Join(torn, "raft")); err != nil {
			t.Fatalf("%s: %v", cut.what, err)
		}
		c, err := New(options(t, torn))
		if err != nil {
			t.Logf("%s: %v", cut.what, err)
			refused++
			if !strings.Contains(err.Error(), "data directory") {
				t.Errorf("%s: the error does not say what to do: %v", cut.what, err)
			}
			continue
		}
		again := run(t, c)
		until(t, "what is left of "+cut.what+" is served", func() bool { return secretOf(again.View(), "after") == "v" })
		for i := range 20 {
			if secretOf(again.View(), fmt.Sprint("k", i)) == "" {
				t.Errorf("%s: k%d is gone", cut.what, i)
			}
		}
		if err := again.stop(); err != nil {
			t.Error(cut.what, err)
		}
	}
	if refused < 8 {
		t.Errorf("only %d of %d refused", refused, len(truncations()))
	}
}
