package thread

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Files stay available over kills, losses and damage.
func TestTurnFiles_surviveLossAndDamage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	ctx := t.Context()
	plain := bytes.Repeat([]byte("what was said about the planted word "), 50)
	first := w.nodes[0]
	want := slices.Sorted(slices.Values(first.store.liveHolders(w.state.View(), thread1)))
	if len(want) != 2 {
		t.Fatalf("%d holders", len(want))
	}

	file, size, err := first.store.Put(ctx, thread1, plain)
	if err != nil || size <= len(plain) {
		t.Fatalf("%v: %d bytes of %d", err, size, len(plain))
	}
	sealed, err := os.ReadFile(w.node(want[0]).store.filePath(file))
	if err != nil || bytes.Contains(sealed, []byte("planted")) {
		t.Fatalf("%v: it lies there in clear", err)
	}
	w.do(&catalog.BeginTurn{Thread: thread1, New: true, Owner: "ann", Node: first.id, Lost: catalog.ThreadTurn{File: nameOf(nil)}})
	fence := w.state.View().Thread(thread1).Run.Fence
	w.do(&catalog.EndTurn{Thread: thread1, Fence: fence, Turn: catalog.ThreadTurn{File: file, Bytes: uint32(size), Events: 1}})

	// Every node can read it. A node that is no holder keeps it only until the holders have it.
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
				n.store.maintain(ctx)
			}
		}
	}
	everybody("at first")
	look()
	if got := w.holdersOf(file); !slices.Equal(got, want) {
		t.Errorf("it is on %q, want %q", got, want)
	}

	// A dead holder is replaced; when it returns, it has one copy too many.
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

	// Damage is found by the name and repaired from another copy.
	if err := os.WriteFile(w.node(want[1]).store.filePath(file), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	everybody("with a damaged copy")
	look()
	if got := w.holdersOf(file); !slices.Equal(got, want) {
		t.Errorf("after damage it is on %q, want %q", got, want)
	}

	// A file that no thread names is deleted, but only after a while.
	w.do(&catalog.DeleteThread{Thread: thread1})
	look()
	if got := w.holdersOf(file); len(got) != 2 {
		t.Errorf("a moment after its end it is on %q", got)
	}
	info, err := os.Stat(w.node(want[0]).store.filePath(file))
	if err != nil {
		t.Fatal(err)
	}
	w.now = info.ModTime().Add(2 * fileGrace)
	look()
	if got := w.holdersOf(file); len(got) != 0 {
		t.Errorf("long after its end it is on %q", got)
	}
	if _, err := first.store.Get(ctx, thread1, file); !errors.Is(err, ErrGone) {
		t.Errorf("it is gone: %v", err)
	}
}

// It sends a node bytes that do not match the name.
func TestPutTurnFile_refusesBytesThatDoNotMatchTheName(t *testing.T) {
	t.Parallel()
	n := newWorld(t, 1).nodes[0]
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

// The file with a question stays while the question is being answered, and is deleted when the
// answer has its own.
func TestQuestionFile_staysUntilTheAnswerIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	n := w.nodes[0]
	file, _, err := n.store.Put(t.Context(), thread1, []byte("a question"))
	if err != nil {
		t.Fatal(err)
	}
	w.do(&catalog.BeginTurn{Thread: thread1, New: true, Owner: "ann", Node: n.id, Lost: catalog.ThreadTurn{File: file}})
	w.now = clock.Now().Add(2 * fileGrace)
	look := func() {
		for _, n := range w.nodes {
			n.store.maintain(t.Context())
		}
	}

	look()
	if got := w.holdersOf(file); len(got) != 2 {
		t.Errorf("while the question is answered its file is on %q, want both nodes", got)
	}

	answer, _, err := n.store.Put(t.Context(), thread1, []byte("a question and an answer"))
	if err != nil {
		t.Fatal(err)
	}
	w.do(&catalog.EndTurn{Thread: thread1, Fence: w.state.View().Thread(thread1).Run.Fence, Turn: catalog.ThreadTurn{File: answer}})
	look()
	if question, answered := w.holdersOf(file), w.holdersOf(answer); len(question) != 0 || len(answered) != 2 {
		t.Errorf("after the answer the question is on %q, the answer on %q", question, answered)
	}
}
