package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/disk"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// A cluster key is changed without a stop by editing the key file of every
// node three times: the new key on a second line, then the new one first, then
// the old one away. After each step all nodes must have the file before the
// next one begins; each says in its log when it has taken it over. The leader
// seals the secrets of the catalog anew under the first key of its file.

// keysPause is how often the key file is looked at, at Timing 1.
const keysPause = 5 * time.Second

// keyring is the cluster keys that this node uses. Its methods are safe for
// concurrent use.
type keyring struct {
	file string
	text []byte // of the file when it was loaded
	keys atomic.Pointer[wire.Keys]
}

// load reads the cluster key. Where there is none and mayMake, as at the first
// start of a lone node, it makes one. Not later: what the catalog keeps secret
// could not be read with another key.
func (k *keyring) load(member, mayMake bool) error {
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

// valid is the keys that this node uses now.
func (k *keyring) valid() wire.Keys { return *k.keys.Load() }

// unseal opens what is sealed under a name.
func (k *keyring) unseal(name string, sealed []byte) ([]byte, error) {
	return unseal(k.valid(), name, sealed)
}

// secrets keeps what the catalog has sealed, and follows the key file.
type secrets struct {
	*env
	keys     *keyring
	network  *network
	replica  *replica
	proposer *proposer
}

// run follows the key file until the context ends.
func (s *secrets) run(ctx context.Context) {
	// What was loaded, not what is there now: between the two the file may have changed.
	seen := s.keys.text
	if info, err := os.Stat(s.keys.file); err == nil && info.Mode().Perm()&0o077 != 0 {
		s.log.Warn("others on this machine can read the cluster key: chmod 600 it", "file", s.keys.file)
	}

	said := ""
	for s.pause(ctx, s.scaled(keysPause)) {
		text, err := os.ReadFile(s.keys.file)
		// Only another content is taken over: the mode and the time of the file tell nothing.
		if err == nil && !bytes.Equal(text, seen) {
			if err = s.use(text); err == nil {
				seen = text
			}
		}
		if err == nil {
			err = s.sealAnew(ctx)
		}

		// The same complaint is logged once, not at every look.
		now := ""
		if err != nil {
			now = err.Error()
		}
		if now != "" && now != said {
			s.log.Error("the cluster key file is not taken over; the keys before stay", "file", s.keys.file, "error", err)
		}
		said = now
	}
}

// use takes the keys of a file over, if nothing is lost by that.
func (s *secrets) use(text []byte) error {
	keys, err := wire.ParseKeys(text)
	if err != nil {
		return err
	}

	// Whatever can be opened now must stay so: refused is a file that would lose a secret.
	for name, box := range boxes(s.replica.view()) {
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

// sealAnew seals what is not under the first key, on the leader.
func (s *secrets) sealAnew(ctx context.Context) error {
	if !s.replica.leading.Load() {
		return nil
	}
	keys := s.keys.valid()
	if err := s.sealConfigAnew(ctx, keys); err != nil {
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

		// One by one: a leader that stops in between leaves each under one key of the file or another.
		if _, err := s.proposer.propose(ctx, &catalog.SetSecret{Name: x.Name, Sealed: sealed}); err != nil {
			return fmt.Errorf("seal secret %s anew: %w", x.Name, err)
		}
		s.log.Info("secret sealed anew", "name", x.Name, "key", keys[0].Fingerprint())
	}
	return nil
}

// gossipKeys are the keys of gossip under cluster keys.
func gossipKeys(keys wire.Keys) [][]byte {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = k.Derive("gossip", 32)
	}
	return out
}

func fingerprints(keys wire.Keys) string {
	var out []string
	for _, k := range keys {
		out = append(out, k.Fingerprint())
	}
	return strings.Join(out, " ")
}
