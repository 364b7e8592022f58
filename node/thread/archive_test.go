package thread

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// An archive has the files of all nodes, and counts those that no node can give.
func TestThreadArchive_hasTheFilesOfAllNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	first := w.nodes[0]
	var files []string
	for _, id := range []string{thread1, "6" + thread1[1:], "7" + thread1[1:]} {
		file, size, err := first.store.Put(t.Context(), id, []byte("said in "+id))
		if err != nil {
			t.Fatal(err)
		}
		w.do(&catalog.BeginTurn{Thread: id, New: true, Owner: "ann", Node: first.id, Lost: catalog.ThreadTurn{File: file}})
		fence := w.state.View().Thread(id).Run.Fence
		w.do(&catalog.EndTurn{Thread: id, Fence: fence, Turn: catalog.ThreadTurn{File: file, Bytes: uint32(size), Events: 1}})
		files = append(files, file)
	}
	for _, n := range w.nodes {
		_ = os.Remove(n.store.filePath(files[2]))
	}
	_ = os.Remove(first.store.filePath(files[1]))

	var saved bytes.Buffer
	if err := first.store.Archive(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "threads")
	if got, missing, err := Unpack(bytes.NewReader(saved.Bytes()), dir); got != 2 || missing != 1 || err != nil {
		t.Errorf("%d files, %d missing, %v", got, missing, err)
	}
	restored := &Store{d: first.store.d, box: first.store.box}
	restored.d.Dir = dir
	if got, err := restored.Get(t.Context(), thread1, files[0]); err != nil || string(got) != "said in "+thread1 {
		t.Errorf("restored: %q, %v", got, err)
	}

	for _, n := range []int{0, 600, saved.Len() / 2, saved.Len() - 2000} {
		if _, _, err := Unpack(bytes.NewReader(saved.Bytes()[:n]), ""); !errors.Is(err, ErrArchive) {
			t.Errorf("the first %d of %d bytes: %v", n, saved.Len(), err)
		}
	}
}

// An archive that somebody made up writes nothing outside of the folder.
func TestThreadArchive_unpacksNothingOutsideTheFolder(t *testing.T) {
	t.Parallel()
	var made bytes.Buffer
	out := tar.NewWriter(&made)
	if err := errors.Join(writeEntry(out, "../../evil", []byte("x")), writeEntry(out, endEntry, []byte("0")), out.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, _, err := Unpack(&made, filepath.Join(dir, "a", "b")); !errors.Is(err, ErrArchive) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
