package cluster

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/wire"
)

// The directories were written by nodes of earlier versions: 20 secrets named
// k, a snapshot, 20 more named l. They stay when the format changes.
func TestDataDirectoriesOfEarlierVersionsOpen(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob(filepath.Join("testdata", "lone-*.tar.gz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no directory of an earlier version: %v", err)
	}
	for _, archive := range archives {
		dir := t.TempDir()
		unpack(t, archive, dir)
		if err := os.WriteFile(filepath.Join(dir, "cluster.key"), []byte(wire.NewKey().Text()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n := start(t, options(t, dir))
		for i := range 20 {
			for _, name := range []string{fmt.Sprint("k", i), fmt.Sprint("l", i)} {
				if got := secretOf(n.View(), name); got != "v" {
					t.Errorf("%s: secret %s is %q", archive, name, got)
				}
			}
		}
		n.propose(set("new", "v"))
	}
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, data, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A node.json of a later version stops the start for good, and stays as it is; one of an
// earlier version is read.
func TestIdentity_ofAnotherVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"the version before":   {`{"node_id": "a", "boot_epoch": 4, "cluster_id": ""}`, nil},
		"this version":         {`{"format": 1, "node_id": "a", "boot_epoch": 4, "cluster_id": ""}`, nil},
		"a later version":      {`{"format": 2, "node_id": "a", "boot_epoch": 4, "cluster_id": ""}`, ErrRefused},
		"with another shape":   {`{"format": 2, "node_id": {"name": "a"}}`, ErrRefused},
		"later by many, no id": {`{"format": 99}`, ErrRefused},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "node.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openSelf(dir)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err == nil {
			s.home.close()
			continue
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != c.text {
			t.Errorf("%s: it was changed to %q, %v", name, after, err)
		}
	}
}
