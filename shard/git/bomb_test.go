package git

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack/packtest"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// treeBomb returns a repository whose root has names below names, levels deep. All names of a level
// lead to the same directory, so a few objects give names^levels paths.
func treeBomb(t *testing.T, levels, names, length int) (r *repo, commit string) {
	t.Helper()
	r = newRepo(t)
	at := runGit(t, r.dir, []byte("x\n"), "hash-object", "-w", "--stdin")
	mode := "100644"
	for range levels {
		var tree bytes.Buffer
		id, _ := hex.DecodeString(at)
		for i := range names {
			fmt.Fprintf(&tree, "%s %s%d\x00%s", mode, strings.Repeat("n", length-1), i, id)
		}
		at = runGit(t, r.dir, tree.Bytes(), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
		mode = "40000"
	}
	commit = r.git("commit-tree", "-m", "bomb", at)
	r.git("update-ref", "refs/heads/main", commit)
	return r, commit
}

// peakOfChildren returns the most memory that one of our child processes used during a call.
func peakOfChildren(call func()) (bytes int64) {
	done, ended := make(chan struct{}), make(chan struct{})
	var peak atomic.Int64
	go func() {
		defer close(ended)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, pid := range descendants(os.Getpid()) {
				peak.Store(max(peak.Load(), resident(pid)))
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	call()
	close(done)
	<-ended
	return peak.Load()
}

var ownProgram = sync.OnceValue(func() string {
	name, _ := os.Readlink("/proc/self/exe")
	return name
})

func descendants(pid int) (all []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range tasks {
		text, _ := os.ReadFile(name)
		for f := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(f); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

// resident returns the memory of a process without mapped files. A child that has not started git
// yet shares the memory of the test, and counts as 0.
func resident(pid int) int64 {
	if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe == ownProgram() {
		return 0
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// Without limits, trees of a few kilobytes would make a node take gigabytes, again at each try.
func TestTreeBombs_areRefused(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		levels, names, length int
	}{
		{"ten levels of ten names", 10, 10, 2},
		{"six levels of ten long names", 6, 10, 200},
		{"many levels of two names", 100, 2, 2},
		{"more levels than are allowed", run.MaxDepth + 10, 1, 2},
		{"a directory with many of the same name", 2, 1500, 100},
	} {
		r, commit := treeBomb(t, tt.levels, tt.names, tt.length)
		m, ctx := newMirror(t), within(t)
		if _, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err != nil {
			// Git checks the depth itself from version 2.43 on.
			if tt.levels <= run.MaxDepth || !errors.Is(err, ErrBeyond) {
				t.Errorf("%s: fetch: %v", tt.name, err)
			}
			continue
		}
		for what, call := range map[string]func() error{
			"union": func() error { _, err := m.Union(ctx, []string{commit}); return err },
			"files": func() error { _, err := m.Files(ctx, commit, nil); return err },
			"list": func() error {
				_, cut, err := m.List(ctx, commit, "", ListOptions{Depth: -1, Max: 1000})
				if err == nil && cut {
					err = ErrTooLarge
				}
				return err
			},
			"directories": func() error {
				_, cut, err := m.List(ctx, commit, "", ListOptions{Depth: -1, Max: 1000, NoDirs: true})
				if err == nil && cut {
					err = ErrTooLarge
				}
				return err
			},
		} {
			var err error
			began := time.Now()
			used := allocated(func() { err = call() })
			t.Logf("%s, %s: %v, %d MB, %v", tt.name, what, time.Since(began).Round(time.Millisecond), used>>20, err)
			if !errors.Is(err, ErrTooLarge) && (tt.levels <= run.MaxDepth || what == "union") {
				t.Errorf("%s, %s: error %v, want ErrTooLarge", tt.name, what, err)
			}
			if used > 192<<20 {
				t.Errorf("%s, %s: %d MB were allocated", tt.name, what, used>>20)
			}
		}
	}
}

// A directory may occur at many places without being a bomb.
func TestTreeUnion_listsADirectoryAtEachOfItsPaths(t *testing.T) {
	t.Parallel()
	r, commit := treeBomb(t, 4, 6, 3)
	m := fetched(t, r.url())
	blobs, err := m.Union(within(t), []string{commit})
	if err != nil || len(blobs) != 1 || len(blobs[0].Occurrences) != 6*6*6*6 {
		t.Fatalf("%d blobs, %v", len(blobs), err)
	}
	want := strings.Split(r.git("ls-tree", "-r", "--name-only", commit), "\n")
	for i, o := range blobs[0].Occurrences {
		if o.Path != want[i] {
			t.Fatalf("path %d is %q, want %q", i, o.Path, want[i])
		}
	}
}

// deltaBomb returns a repository with a file of 14 bytes, which is a delta of a file of 512 MiB.
// Its pack has some hundred bytes.
func deltaBomb(t *testing.T) (r *repo, commit string) {
	t.Helper()
	r = newRepo(t)
	w := packtest.NewWriter()
	base, middle, tiny := w.Bomb()
	tree := w.AddText(packtest.Tree, fmt.Appendf(nil, "100644 base\x00%s100644 middle\x00%s100644 tiny.txt\x00%s", base, middle, tiny))
	id := w.AddText(packtest.Commit, fmt.Appendf(nil, "tree %x\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\nbomb\n", tree))
	data, index := w.Finish()
	name := filepath.Join(r.dir, "objects/pack/pack-"+hex.EncodeToString(data[len(data)-20:]))
	write(t, name+".pack", string(data))
	write(t, name+".idx", string(index))
	r.git("update-ref", "refs/heads/main", hex.EncodeToString(id))
	return r, hex.EncodeToString(id)
}

// Without limits, a pack of some hundred bytes would take two gigabytes of memory when a node
// fetches it, and again when somebody reads a file in it.
func TestDeltaBombs_areRefused(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("the memory of git is bounded on Linux only")
	}
	r, commit := deltaBomb(t)
	var stored int64
	packs, _ := filepath.Glob(filepath.Join(r.dir, "objects/pack/*.pack"))
	for _, p := range packs {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		stored += info.Size()
	}
	t.Logf("the pack has %d bytes", stored)

	check := func(what string, mayFail bool, call func() error) {
		t.Helper()
		var err error
		var peak int64
		used := allocated(func() { peak = peakOfChildren(func() { err = call() }) })
		t.Logf("%s: git took %d MB, we %d MB, %v", what, peak>>20, used>>20, err)
		if err == nil && !mayFail {
			t.Errorf("%s: no error", what)
		}
		if peak > 200<<20 || used > 64<<20 {
			t.Errorf("%s: git took %d MB, we %d MB", what, peak>>20, used>>20)
		}
	}

	// From a local directory the pack is copied unchanged, and every reader reads it.
	m, ctx := newMirror(t), within(t)
	check("fetch from a directory", true, func() error {
		_, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{})
		return err
	})
	check("a file", false, func() error {
		_, err := m.Source(ctx, commit, "tiny.txt", SourceOptions{})
		return err
	})
	check("an index", false, func() error {
		blobs, err := m.Union(ctx, []string{commit})
		if err != nil {
			return err
		}
		b, err := m.Blobs(ctx, func(yield func(string) bool) {
			for _, blob := range blobs {
				if blob.Size < 1<<20 && !yield(blob.OID) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		defer b.Close()
		for {
			if _, err := b.Next(nil); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	})

	// Fetch it from a server.
	address := serve(t, filepath.Dir(r.dir), nil) + "/source.git"
	by := newMirror(t)
	check("fetch from a server", false, func() error {
		_, err := by.Fetch(ctx, Remote{URL: address}, FetchOptions{})
		if err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("fetch from a server: error %v, want ErrTooLarge", err)
		}
		return err
	})
	if left, _ := filepath.Glob(filepath.Join(by.Dir(), "objects/pack/tmp_*")); len(left) > 0 {
		t.Errorf("half packs are left: %q", left)
	}
}

// A git that needs more memory than it may fails with its own kind of error, and does not affect
// others.
func TestGit_failsAboveItsMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		memory int64
		want   error
	}{{4 << 20, ErrTooLarge}, {0, nil}} {
		c := &run.Command{Args: []string{"hash-object", "--stdin"}, Stdin: bytes.NewReader(make([]byte, 8<<20)), Memory: tt.memory}
		if out, err := c.Output(context.Background()); !errors.Is(err, tt.want) {
			t.Errorf("with %d bytes: %s, %v, want %v", tt.memory, out, err, tt.want)
		}
	}
}
