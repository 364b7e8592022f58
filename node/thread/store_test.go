package thread

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// TestWhoMayWriteALog asks a copy to take entries of one node and another.
func TestWhoMayWriteALog(t *testing.T) {
	t.Parallel()
	p := &spool{path: filepath.Join(t.TempDir(), "log")}
	t.Cleanup(func() { p.close(true) })
	put := func(fence, was uint64, at int, entries ...string) string {
		var b [][]byte
		for _, e := range entries {
			b = append(b, []byte(e))
		}
		n, err := p.put(fence, was, at, b)
		if errors.Is(err, errStale) {
			return "stale"
		}
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(n)
	}
	for i, tt := range []struct {
		got, want, why string
	}{
		{put(3, 3, 0, "a", "b"), "2", "the first writer begins"},
		{put(3, 3, 2, "c"), "3", "and goes on"},
		{put(3, 3, 5, "x"), "0", "something is missing before it: all has to come again"},
		{put(4, 3, 3, "d"), "4", "the same writer under a new fence"},
		{put(3, 3, 4, "x"), "stale", "the old fence is shut out"},
		{put(9, 8, 4, "x"), "0", "another writer cannot go on with what it has not sent"},
		{put(9, 8, 0, "A"), "1", "it begins anew, and what was longer is gone"},
		{put(4, 3, 1, "x"), "stale", "the one before is shut out"},
	} {
		if tt.got != tt.want {
			t.Errorf("%d: %s, want %s: %s", i, tt.got, tt.want, tt.why)
		}
	}

	// It is the same for who reads the file again, behind a torn entry.
	p.close(false)
	f, err := os.OpenFile(p.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{0, 0, 1, 0, 0, 0, 0, 0}); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if got := put(4, 4, 1, "x"); got != "stale" {
		t.Errorf("after a restart the old fence is %s", got)
	}
	if _, err := p.adopt(8); !errors.Is(err, errStale) {
		t.Errorf("an old fence goes on: %v", err)
	}
	entries, err := p.adopt(10)
	if err != nil || len(entries) != 1 || string(entries[0]) != "A" {
		t.Errorf("%v: %q", err, entries)
	}
	if got := put(9, 9, 1, "x"); got != "stale" {
		t.Errorf("who has been taken over from is %s", got)
	}
	if _, err := p.put(10, 10, 1, [][]byte{make([]byte, maxSpool)}); err == nil {
		t.Error("a log has no bound")
	}
}

// TestFilesAreWhereTheyShouldBe keeps what was said over kills, losses and
// damage.
func TestFilesAreWhereTheyShouldBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 4)
	ctx := t.Context()
	plain := bytes.Repeat([]byte("what was said about the planted word "), 50)
	first := w.nodes[0]
	want := slices.Sorted(slices.Values(first.store.holders(w.state.View(), thread1)))
	if len(want) != 2 {
		t.Fatalf("%d holders", len(want))
	}

	file, size, err := first.store.Put(ctx, thread1, plain)
	if err != nil || size <= len(plain) {
		t.Fatalf("%v: %d bytes of %d", err, size, len(plain))
	}
	sealed, err := os.ReadFile(w.node(want[0]).store.path(file))
	if err != nil || bytes.Contains(sealed, []byte("planted")) {
		t.Fatalf("%v: it lies there in clear", err)
	}
	w.do(&catalog.BeginTurn{Thread: thread1, New: true, Owner: "ann", Node: first.id, Copies: []string{first.id}})
	fence := w.state.View().Thread(thread1).Run.Fence
	w.do(&catalog.EndTurn{Thread: thread1, Fence: fence, Turn: catalog.ThreadTurn{File: file, Bytes: uint32(size), Events: 1}})

	// Every node reads it. One that need not have it keeps it only until those have
	// it that should.
	everybody := func(what string) {
		t.Helper()
		for _, n := range w.nodes {
			if !n.up {
				continue
			}
			if got, err := n.store.Get(ctx, thread1, file); err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%s: %s reads %d bytes: %v", what, n.id, len(got), err)
			}
		}
	}
	look := func() {
		for _, n := range w.nodes {
			if n.up {
				n.store.look(ctx)
			}
		}
	}
	everybody("at first")
	look()
	if got := w.holdersOf(file); !slices.Equal(got, want) {
		t.Errorf("it is on %q, want %q", got, want)
	}

	// A holder that dies is replaced; what it has when it comes back is one too many.
	w.node(want[0]).kill()
	look()
	stand := w.holdersOf(file)
	if len(stand) != 3 {
		t.Errorf("after a death it is on %q", stand)
	}
	everybody("with a dead holder")
	w.node(want[0]).start()
	look()
	if got := w.holdersOf(file); !slices.Equal(got, want) {
		t.Errorf("after it came back it is on %q, want %q", got, want)
	}

	// Damage is found by the name and made good by another copy.
	if err := os.WriteFile(w.node(want[1]).store.path(file), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	everybody("with a damaged copy")
	look()
	if got := w.holdersOf(file); !slices.Equal(got, want) {
		t.Errorf("after damage it is on %q, want %q", got, want)
	}

	// What no thread names goes after a while, and not before.
	w.do(&catalog.DeleteThread{Thread: thread1})
	look()
	if got := w.holdersOf(file); len(got) != 2 {
		t.Errorf("a moment after its end it is on %q", got)
	}
	info, err := os.Stat(w.node(want[0]).store.path(file))
	if err != nil {
		t.Fatal(err)
	}
	w.now = info.ModTime().Add(2 * keepGrace)
	look()
	if got := w.holdersOf(file); len(got) != 0 {
		t.Errorf("long after its end it is on %q", got)
	}
	if _, err := first.store.Get(ctx, thread1, file); !errors.Is(err, ErrGone) {
		t.Errorf("it is gone: %v", err)
	}
}

// TestOddFilesAreRefused sends a node what is not what its name says.
func TestOddFilesAreRefused(t *testing.T) {
	t.Parallel()
	n := newWorld(t, 1, 1).nodes[0]
	good := []byte("sealed bytes")
	for what, req := range map[string]*putRequest{
		"other bytes":     {nameOf([]byte("others")), good},
		"a path":          {"../../" + nameOf(good), good},
		"no name":         {"", nil},
		"too many a time": {nameOf(make([]byte, maxFile+1)), make([]byte, maxFile+1)},
	} {
		if _, err := n.store.servePut(t.Context(), req); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if _, err := n.store.servePut(t.Context(), &putRequest{nameOf(good), good}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "..", "../../etc/passwd", nameOf([]byte("others"))} {
		if r, err := n.store.serveGet(t.Context(), &fileRequest{name}); err != nil || r.Has {
			t.Errorf("%q: %v, %v", name, r, err)
		}
	}
}

// TestLogsGoWithTheirTurns: a log stays while the catalog names its node, and a
// while longer.
func TestLogsGoWithTheirTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 2)
	n := w.nodes[0]
	w.do(&catalog.BeginTurn{Thread: thread1, New: true, Owner: "ann", Node: n.id, Copies: []string{"n0", "n1"}})
	log := n.store.Begin(thread1, w.state.View().Thread(thread1).Run)
	if err := log.Append(t.Context(), []byte("a question")); err != nil {
		t.Fatal(err)
	}
	there := func() (count int) {
		for _, n := range w.nodes {
			n.store.look(t.Context())
			files, _ := filepath.Glob(filepath.Join(n.dir, "running", "*"))
			count += len(files)
		}
		return count
	}
	w.now = clock.Now().Add(2 * keepGrace)
	if got := there(); got != 2 {
		t.Errorf("while it is answered there are %d logs, want 2", got)
	}
	w.do(&catalog.DeleteThread{Thread: thread1})
	if got := there(); got != 0 {
		t.Errorf("long after it there are %d logs", got)
	}
}

// TestAClosedStoreHoldsNoFiles closes a store whose log another node still writes
// to: what is in it stays, and nothing is opened again.
func TestAClosedStoreHoldsNoFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 2)
	n, other := w.nodes[0], w.nodes[1]
	w.do(&catalog.BeginTurn{Thread: thread1, New: true, Owner: "ann", Node: n.id, Copies: []string{n.id, other.id}})
	run := w.state.View().Thread(thread1).Run
	log := n.store.Begin(thread1, run)
	if err := log.Append(t.Context(), []byte("a question")); err != nil {
		t.Fatal(err)
	}

	n.store.Close()
	files := func(s *Store) (open int) {
		for _, p := range s.spools {
			if p.file != nil {
				open++
			}
		}
		return open
	}
	if err := log.Append(t.Context(), []byte("more")); !errors.Is(err, errShut) {
		t.Errorf("a closed store is written to: %v", err)
	}
	for _, thread := range []string{thread1, "another"} {
		if _, err := n.store.serveAppend(t.Context(), &appendRequest{Thread: thread, Fence: run.Fence, Entries: [][]byte{[]byte("x")}}); !errors.Is(err, errShut) {
			t.Errorf("%s: a copy in a closed store is written to: %v", thread, err)
		}
	}
	if open := files(n.store); open != 0 || files(other.store) != 1 {
		t.Errorf("%d files are open behind the close, %d at the other node", open, files(other.store))
	}

	// Started again, it has what was said.
	n.start()
	_, entries, err := n.store.Resume(t.Context(), thread1, run)
	if err != nil || len(entries) != 1 || string(entries[0]) != "a question" {
		t.Errorf("%v: %q", err, entries)
	}
}
