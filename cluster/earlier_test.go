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
