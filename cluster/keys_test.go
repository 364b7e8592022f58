package cluster

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// The key is changed in three steps while two nodes run; secrets stay what
// they are, and the old key opens nothing afterwards.
func TestTheClusterKeyIsChangedWithoutAStop(t *testing.T) {
	t.Parallel()
	f := newFlock(t)
	files := []string{f.key, filepath.Join(t.TempDir(), "cluster.key")}
	text, err := os.ReadFile(f.key)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := wire.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	old, key := keys[0], wire.NewKey()
	a := f.add(1)
	until(t, "the first node leads", a.Leading)
	f.key = files[1]
	put := func(text string) {
		for _, path := range files {
			if err := writeFile(path, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(old.Text())
	b := f.add(1)
	f.settled(1, a, b)
	secret, err := a.Secret(context.Background(), "hmac")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []wire.Keys{{old, key}, {key, old}, {key}} {
		text := ""
		for _, k := range step {
			text += k.Text() + "\n"
		}
		put(text)
		for _, n := range []*testNode{a, b} {
			until(t, "node "+n.Self()+" has "+fingerprints(step), func() bool { return fingerprints(n.validKeys()) == fingerprints(step) })
		}
		until(t, "secrets are sealed under the first key", func() bool {
			s := b.View().Secret("hmac")
			plain, err := unseal(step[:1], "hmac", s.Sealed)
			return err == nil && bytes.Equal(plain, secret)
		})
		b.propose(&catalog.Noop{}) // by way of the leader
	}
	if s, err := b.Secret(context.Background(), "hmac"); err != nil || !bytes.Equal(s, secret) {
		t.Errorf("the secret: %v", err)
	}
	// A file that would lose the secrets is not taken over, nor a broken one.
	for _, bad := range []string{wire.NewKey().Text(), "nonsense", ""} {
		if err := a.useKeys([]byte(bad)); err == nil {
			t.Errorf("the key file %q is taken over", bad)
		}
	}
}
