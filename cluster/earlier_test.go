package cluster

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/gossip"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// Nodes of earlier versions wrote these directories: 20 secrets named k, a snapshot, 20 more named
// l. The files stay when the format changes.
func TestDataDirectory_ofEarlierVersionsOpens(t *testing.T) {
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

// A node.json of a later version is refused for good and stays unchanged. One of an earlier version
// is read.
func TestNodeIdentity_ofALaterVersionIsRefusedUnchanged(t *testing.T) {
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

// A log without node.json is refused, and so is a damaged node.json.
func TestNodeIdentity_lostOrDamagedFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"missing":         {"", "is missing but"},
		"cut":             {`{"node_id": "a`, "is damaged"},
		"without a name":  {`{"format": 1}`, "is damaged"},
		"of another kind": {`["a"]`, "is damaged"},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "raft"), 0o700); err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(dir, "raft", logFile)
		if err := os.WriteFile(log, []byte("entries"), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.text != "" {
			if err := os.WriteFile(filepath.Join(dir, "node.json"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := openSelf(dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "move the data directory away") {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(log); err != nil || string(text) != "entries" {
			t.Errorf("%s: the log is now %q, %v", name, text, err)
		}
	}
}

// A node that promised to join one cluster joins no other, and waits for its founder.
func TestFormation_aNodePromisedToOneClusterJoinsNoOther(t *testing.T) {
	t.Parallel()
	bound := promise{Cluster: "c1", Founder: "a"}
	others := []peer{{Peer: gossip.Peer{Node: "b"}, meta: meta{Cluster: "c2"}}}
	if err := (&formation{}).join(t.Context(), others, bound); err == nil || !strings.Contains(err.Error(), "to join cluster c1, but c2 is here: move the data directory away") {
		t.Errorf("another cluster is here: %v", err)
	}
	if err := (&formation{}).recheckPromise(t.Context(), others, bound); err == nil || !strings.Contains(err.Error(), "start it. If it is lost for good, move this data directory away") {
		t.Errorf("the founder is not there: %v", err)
	}
}
