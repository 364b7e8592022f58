package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// The key is changed in three steps while two nodes run. Secrets stay the same, and the old key
// opens nothing afterwards.
func TestClusterKey_rotatesWithoutARestart(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
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
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
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
			until(t, "node "+n.Self()+" has "+fingerprints(step), func() bool { return fingerprints(n.keys.valid()) == fingerprints(step) })
		}
		until(t, "secrets are sealed under the first key", func() bool {
			s := b.View().Secret("hmac")
			if s == nil {
				return false // b has not applied the command yet
			}
			plain, err := unseal(step[:1], "hmac", s.Sealed)
			return err == nil && bytes.Equal(plain, secret)
		})
		b.propose(&catalog.Noop{}) // forwarded to the leader
	}
	if s, err := b.Secret(context.Background(), "hmac"); err != nil || !bytes.Equal(s, secret) {
		t.Errorf("the secret: %v", err)
	}
	// A file that would lose the secrets is not used, nor is a broken one.
	for _, bad := range []string{wire.NewKey().Text(), "nonsense", ""} {
		if err := a.secrets.switchKeys([]byte(bad)); err == nil {
			t.Errorf("the key file %q is taken over", bad)
		}
	}
}

// A node misses a whole change of the key. It names the key as the cause, and it takes the new key
// without a restart, although it cannot open the secrets of its old catalog with it.
func TestClusterKey_isTakenOverByANodeThatMissedTheChange(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	there := f.key
	a := f.add(1)
	until(t, "the first node leads", a.Leading)
	f.key = filepath.Join(t.TempDir(), "cluster.key")
	text, err := os.ReadFile(there)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.key, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b := f.add(1)
	f.settled(1, a, b)
	if _, err := a.Secret(context.Background(), "hmac"); err != nil {
		t.Fatal(err)
	}
	until(t, "both have the secret", func() bool { return b.View().Secret("hmac") != nil })
	b.stop()

	old, key := a.keys.valid()[0], wire.NewKey()
	for _, step := range []wire.Keys{{old, key}, {key, old}, {key}} {
		text := ""
		for _, k := range step {
			text += k.Text() + "\n"
		}
		if err := os.WriteFile(there, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		until(t, "the first node has "+fingerprints(step), func() bool { return fingerprints(a.keys.valid()) == fingerprints(step) })
	}

	b = f.restart(1)
	until(t, "the other node names the key", func() bool { return b.Ready() != nil && b.Ready().Error() == otherKeyText })
	if text := b.OtherKey(); !strings.Contains(text, f.key) || !strings.Contains(text, old.Fingerprint()) || !slices.Contains(b.Faults(), otherKeyText) {
		t.Errorf("it says %q, and %q", text, b.Faults())
	}
	if err := os.WriteFile(f.key, []byte(key.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the other node is back", func() bool { return b.Ready() == nil && b.OtherKey() == "" && b.Leader() == a.Self() })
	if a.OtherKey() != "" {
		t.Error("the node that has the key says:", a.OtherKey())
	}
}

// A file that changes after it was loaded, but before Run, is used.
func TestClusterKey_changedDuringTheStartIsUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := New(watchful(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Keys{c.keys.valid()[0], wire.NewKey()}
	if err := os.WriteFile(filepath.Join(dir, "cluster.key"), []byte(want[0].Text()+"\n"+want[1].Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	until(t, "the new key is taken over", func() bool { return fingerprints(c.keys.valid()) == fingerprints(want) })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A new key instead of a lost one would make all secrets unreadable.
func TestClusterKey_isNeverCreatedByAMember(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, options(t, dir))
	announced(t, n)
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "cluster.key")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if c, err := New(options(t, dir)); err == nil || !strings.Contains(err.Error(), "put it back") {
		t.Errorf("got %v", err)
		if c != nil {
			c.Close()
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("there is a new key")
	}
}

// Between fork and exec a child process has every open file of its parent.
func TestDataDirectory_childProcessHoldsNoLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := openHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(h.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if _, err := openHome(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("two have the lock: %v", err)
	}
	h.close()

	h, err = openHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	h.close()
}

func TestNodeStop_logsNoWarning(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := newRaftLog(slog.New(slog.NewTextHandler(&out, nil)))
	log.Error("failed to accept connection", "error", net.ErrClosed)
	if out.Len() > 0 {
		t.Error(out.String())
	}
	log.Error("failed to accept connection", "error", io.ErrUnexpectedEOF)
	if out.Len() == 0 {
		t.Error("another error is not told")
	}
}
