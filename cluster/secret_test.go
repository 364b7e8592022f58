package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// The plain text of a configuration is neither on disk nor in snapshots. It can be read after a
// restart, and after a change of the key.
func TestConfiguration_isEncryptedOnDisk(t *testing.T) {
	t.Parallel()
	const token = "S3CR3T-TOKEN-42"
	dir := t.TempDir()
	n := start(t, watchful(t, dir))
	announced(t, n)
	text := []byte(`{"connections": {"tok": {"type": "git", "url": "https://bob:` + token + `@git.example.com/a/b.git"}}}`)
	file, err := config.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	n.propose(catalog.NewSetConfig(text, file))
	readable := func(when string) {
		t.Helper()
		if err := n.View().FileError(); err != nil || len(n.View().File().Connections) != 1 {
			t.Errorf("%s: %d connections, %v", when, len(n.View().File().Connections), err)
		}
	}
	readable("at once")
	var snapshot bytes.Buffer
	if err := n.View().Save(&snapshot); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "raft", "raft.db"))
	if err != nil {
		t.Fatal(err)
	}
	for where, bytesThere := range map[string][]byte{"a snapshot": snapshot.Bytes(), "the log": log} {
		if bytes.Contains(bytesThere, []byte(token)) {
			t.Errorf("%s holds the token as it is", where)
		}
	}

	// Add a new key, and keep the old one for a while.
	path := filepath.Join(dir, "cluster.key")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key := wire.NewKey()
	if err := os.WriteFile(path, append([]byte(key.Text()+"\n"), old...), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the configuration is sealed under the new key", func() bool {
		box, sealed := n.View().Config().Sealed()
		_, err := unseal(wire.Keys{key}, sealedConfig, box)
		return sealed && err == nil
	})
	readable("under the new key")
	if err := n.secrets.switchKeys([]byte(wire.NewKey().Text())); err == nil {
		t.Error("a key file that opens nothing is taken over")
	}

	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(key.Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n = start(t, options(t, dir))
	readable("after a start")
}
