package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/disk"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// To change the cluster key without a stop, edit the key file of every node three times: add the
// new key as second line, swap the lines, remove the old key. All nodes must have one step before
// the next begins; each logs that it uses the new file. The leader seals the secrets of the catalog
// under the first key of its file.

// otherKeyText says what separates this node from the other nodes.
const otherKeyText = "the cluster key of this node is not that of the other nodes"

// keysPause is the interval between reads of the key file, at Timing 1.
const keysPause = 5 * time.Second

// keyring holds the cluster keys that this node uses. Its methods are safe for concurrent use.
type keyring struct {
	file string
	text []byte // content of the file when it was loaded
	keys atomic.Pointer[wire.Keys]
}

// loadOrCreateKey reads the cluster key. If there is none and mayMake is set, as at the first start of a lone
// node, it creates one. A member never creates a key: it could not read the catalog's secrets with
// another key.
func (k *keyring) loadOrCreateKey(member, mayMake bool) error {
	text, err := os.ReadFile(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		if member {
			return fmt.Errorf("cluster: the cluster key file %s is missing: put it back, what the catalog keeps secret cannot be read without it", k.file)
		}
		if !mayMake {
			return fmt.Errorf("cluster: the cluster key file %s is missing: copy the one of the other nodes, or make one with shoal cluster-key new", k.file)
		}

		text = []byte(wire.NewKey().Text() + "\n")
		_, err = disk.Replace(k.file, bytes.NewReader(text))
	}

	if err != nil {
		return fmt.Errorf("cluster: cluster key: %w", err)
	}

	keys, err := wire.ParseKeys(text)
	if err != nil {
		return err
	}
	k.text = text
	k.keys.Store(&keys)
	return nil
}

// valid returns the keys that this node uses now.
func (k *keyring) valid() wire.Keys { return *k.keys.Load() }

// unseal decrypts what was sealed under a name.
func (k *keyring) unseal(name string, sealed []byte) ([]byte, error) {
	return unseal(k.valid(), name, sealed)
}

// secrets manages the sealed secrets of the catalog, and watches the key file.
type secrets struct {
	*env
	keys     *keyring
	network  *network
	replica  *replica
	proposer *proposer
	otherKey atomic.Pointer[string] // that the other members have another key, and what to do; nil: they have the same
}

// run watches the key file until the context ends.
func (s *secrets) run(ctx context.Context) {
	loadedText := s.keys.text // the file may have changed since
	if info, err := os.Stat(s.keys.file); err == nil && info.Mode().Perm()&0o077 != 0 {
		s.log.Warn("others on this machine can read the cluster key: chmod 600 it", "file", s.keys.file)
	}

	logged := ""
	for s.pause(ctx, s.scaled(keysPause)) {
		text, err := os.ReadFile(s.keys.file)
		if err == nil && !bytes.Equal(text, loadedText) {
			if err = s.switchKeys(text); err == nil {
				loadedText = text
			}
		}
		if err == nil {
			err = s.reseal(ctx)
		}
		s.compareKeys(ctx)

		// Log the same error only once.
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if problem != "" && problem != logged {
			s.log.Error("the cluster key file is not taken over; the keys before stay", "file", s.keys.file, "error", err)
		}
		logged = problem
	}
}

// switchKeys switches to the keys of a file, unless that would lose a secret.
func (s *secrets) switchKeys(text []byte) error {
	keys, err := wire.ParseKeys(text)
	if err != nil {
		return err
	}

	// Refuse the file if it cannot open a secret that the present keys can open. A node that missed
	// a change of the key accepts any file: it gets the secrets from the other nodes.
	for name, box := range sealedBoxes(s.replica.view()) {
		if s.otherKey.Load() != nil {
			break
		}
		if _, err := unseal(keys, name, box); err == nil {
			continue
		}
		if _, err := s.keys.unseal(name, box); err == nil {
			return fmt.Errorf("the secret %s is still sealed under a key that is no longer in the file: keep that key until the leader has the new one on its first line", name)
		}
	}

	if err := s.network.setKeys(keys); err != nil {
		return err
	}
	s.keys.keys.Store(&keys)
	s.log.Info("cluster keys taken over", "keys", fingerprints(keys))
	return nil
}

// compareKeys finds out whether other nodes use another key, as after a key change that this node
// missed. It asks them only while this node knows no leader.
func (s *secrets) compareKeys(ctx context.Context) {
	var others []string
	if s.network.self.cluster() != "" && s.replica.leader() == "" {
		others = s.votersWithOtherKey(ctx)
	}

	if len(others) == 0 {
		s.otherKey.Store(nil)
		return
	}

	text := fmt.Sprintf("%s: %s has %s, and another one is in use at %s; write theirs into the file, as docs/how-to/rotate-keys.md says",
		otherKeyText, s.keys.file, fingerprints(s.keys.valid()), strings.Join(others, ", "))
	if s.otherKey.Swap(&text) == nil {
		s.log.Error(text)
	}
}

// votersWithOtherKey returns the voters that run and have another key.
func (s *secrets) votersWithOtherKey(ctx context.Context) (out []string) {
	ctx, cancel := context.WithTimeout(ctx, s.scaled(askTime))
	defer cancel()

	var calls sync.WaitGroup
	var mu sync.Mutex // guards out
	for _, id := range s.replica.voters() {
		calls.Go(func() {
			_, err := s.network.call(ctx, id, Hello, nil)
			if m := s.replica.view().Member(id); m != nil && errors.Is(err, wire.ErrOtherKey) {
				mu.Lock()
				defer mu.Unlock()
				out = append(out, m.Addr)
			}
		})
	}
	calls.Wait()
	return out
}

// reseal seals all secrets under the first key of the file, if this node leads.
func (s *secrets) reseal(ctx context.Context) error {
	if !s.replica.leading.Load() {
		return nil
	}
	keys := s.keys.valid()
	if err := s.resealConfig(ctx, keys); err != nil {
		return err
	}

	for x := range s.replica.view().Secrets() {
		if _, err := unseal(keys[:1], x.Name, x.Sealed); err == nil {
			continue
		}

		plain, err := unseal(keys, x.Name, x.Sealed)
		if err != nil {
			return err
		}
		sealed, err := seal(keys[0], x.Name, plain)
		if err != nil {
			return err
		}

		// Propose them one by one: if the leader stops in between, each secret is still sealed
		// under some key of the file.
		if _, err := s.proposer.propose(ctx, &catalog.SetSecret{Name: x.Name, Sealed: sealed}); err != nil {
			return fmt.Errorf("seal secret %s anew: %w", x.Name, err)
		}
		s.log.Info("secret sealed anew", "name", x.Name, "key", keys[0].Fingerprint())
	}
	return nil
}

// gossipKeys derives the keys of gossip from cluster keys.
func gossipKeys(keys wire.Keys) [][]byte {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = k.Derive("gossip", 32)
	}
	return out
}

// fingerprints returns the fingerprints of keys, separated by spaces.
func fingerprints(keys wire.Keys) string {
	var out []string
	for _, k := range keys {
		out = append(out, k.Fingerprint())
	}
	return strings.Join(out, " ")
}
