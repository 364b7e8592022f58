package cluster

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A change that could not be written does not take effect. It is written later, when there is room.
func TestOwnRecord_unwrittenChangeIsNotReported(t *testing.T) {
	t.Parallel()
	bound := promise{Cluster: "c1", Founder: "n1"}
	for _, tt := range []struct {
		name   string
		before func(s *self) error // nil: nothing
		change func(s *self) error
		stands func(id *identity) bool
	}{
		{"a promise", nil, func(s *self) error { return s.recordPromise(bound) }, func(id *identity) bool { return id.Promise == bound }},
		{"its end", func(s *self) error { return s.recordPromise(bound) }, (*self).endPromise, func(id *identity) bool { return id.Promise == promise{} }},
		{"a cluster", nil, func(s *self) error { return s.recordCluster("c1") }, func(id *identity) bool { return id.ClusterID == "c1" }},
		{"a founding", nil, func(s *self) error { return s.recordFounding("c1") }, func(id *identity) bool { return id.Founding }},
		{"its end", func(s *self) error { return s.recordFounding("c1") }, (*self).endFounding, func(id *identity) bool { return !id.Founding }},
		{"a place", func(s *self) error { s.id.Place = "elsewhere"; return nil }, (*self).recordPlace, func(id *identity) bool { return id.Place != "elsewhere" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, err := openSelf(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.home.close()
			if tt.before != nil {
				if err := tt.before(s); err != nil {
					t.Fatal(err)
				}
			}

			free := block(t, filepath.Join(dir, "node.json"))
			for range 2 {
				if err := tt.change(s); err == nil || tt.stands(s.id) {
					t.Errorf("without room: %v, %+v", err, s.id)
				}
			}

			free()
			if err := tt.change(s); err != nil {
				t.Fatal(err)
			}

			data, err := os.ReadFile(filepath.Join(dir, "node.json"))
			if err != nil {
				t.Fatal(err)
			}
			var written identity
			if err := json.Unmarshal(data, &written); err != nil || !tt.stands(&written) || !tt.stands(s.id) {
				t.Errorf("with room: %v, written %s, said %+v", err, data, s.id)
			}
		})
	}
}

// The memory of other nodes is written once there is room, even if nothing new has come.
func TestMemoryOfPeers_isWrittenOnceTheDiskHasRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := openMemory(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.recordMark("c1", "a", mark{5, 2})

	free := block(t, filepath.Join(dir, "peers.json"))
	all := func(string) bool { return true }
	for range 2 {
		if err := m.save(all); err == nil {
			t.Error("without room it is kept")
		}
	}

	free()
	if err := m.save(all); err != nil {
		t.Fatal(err)
	}
	if m, err = openMemory(dir); err != nil || m.markOf("c1", "a") != (mark{5, 2}) {
		t.Errorf("with room: %v, %v", err, m.markOf("c1", "a"))
	}
}

// block makes it impossible to replace a file, until free is called.
func block(t *testing.T, path string) (free func()) {
	t.Helper()
	aside := path + ".aside"
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	// A rename cannot replace a directory that is not empty.
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(aside, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}
