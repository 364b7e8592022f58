package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// A cluster key is changed without a stop by editing the key file of every
// node three times: the new key on a second line, then the new one first, then
// the old one away. After each step all nodes must have the file before the
// next one begins; each says in its log when it has taken it over. The leader
// seals the secrets of the catalog anew under the first key of its file.

// keysPause is how often the key file is looked at, at Timing 1.
const keysPause = 5 * time.Second

// loadKeys reads the cluster key; a lone node makes one at its first start. Not
// later: what the catalog keeps secret could not be read with another key.
func (c *Cluster) loadKeys() (wire.Keys, error) {
	path := c.o.ClusterKeyFile
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if c.id.ClusterID != "" {
			return nil, fmt.Errorf("cluster: the cluster key file %s is missing: put it back, what the catalog keeps secret cannot be read without it", path)
		}
		if len(c.o.Join) > 0 || c.o.BootstrapExpect > 1 {
			return nil, fmt.Errorf("cluster: the cluster key file %s is missing: copy the one of the other nodes, or make one with shoal cluster-key new", path)
		}
		text = []byte(wire.NewKey().Text() + "\n")
		err = writeFile(path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: cluster key: %w", err)
	}
	return wire.ParseKeys(text)
}

// validKeys are the keys that this node uses now.
func (c *Cluster) validKeys() wire.Keys { return *c.keys.Load() }

// watchKeys follows the key file, and the secrets of the catalog.
func (c *Cluster) watchKeys(ctx context.Context) {
	seen, _ := os.ReadFile(c.o.ClusterKeyFile)
	if info, err := os.Stat(c.o.ClusterKeyFile); err == nil && info.Mode().Perm()&0o077 != 0 {
		c.log.Warn("others on this machine can read the cluster key: chmod 600 it", "file", c.o.ClusterKeyFile)
	}
	said := ""
	for c.pause(ctx, c.scaled(keysPause)) {
		text, err := os.ReadFile(c.o.ClusterKeyFile)
		if err == nil && !bytes.Equal(text, seen) {
			if err = c.useKeys(text); err == nil {
				seen = text
			}
		}
		if err == nil {
			err = c.sealAnew(ctx)
		}
		now := ""
		if err != nil {
			now = err.Error()
		}
		if now != "" && now != said {
			c.log.Error("the cluster key file is not taken over; the keys before stay", "file", c.o.ClusterKeyFile, "error", err)
		}
		said = now
	}
}

// useKeys takes the keys of a file over, if nothing is lost by that.
func (c *Cluster) useKeys(text []byte) error {
	keys, err := wire.ParseKeys(text)
	if err != nil {
		return err
	}
	for s := range c.View().Secrets() {
		if _, err := unseal(keys, s.Name, s.Sealed); err == nil {
			continue
		}
		if _, err := unseal(c.validKeys(), s.Name, s.Sealed); err == nil {
			return fmt.Errorf("the secret %s is still sealed under a key that is no longer in the file: keep that key until the leader has the new one on its first line", s.Name)
		}
	}
	if err := c.port.SetKeys(keys); err != nil {
		return err
	}
	if err := c.gossip.SetKeys(gossipKeys(keys)); err != nil {
		return err
	}
	c.keys.Store(&keys)
	c.log.Info("cluster keys taken over", "keys", fingerprints(keys))
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

// sealAnew seals the secrets that are not under the first key, on the leader.
func (c *Cluster) sealAnew(ctx context.Context) error {
	if !c.Leading() {
		return nil
	}
	keys := c.validKeys()
	for s := range c.View().Secrets() {
		if _, err := unseal(keys[:1], s.Name, s.Sealed); err == nil {
			continue
		}
		plain, err := unseal(keys, s.Name, s.Sealed)
		if err != nil {
			return err
		}
		sealed, err := seal(keys[0], s.Name, plain)
		if err != nil {
			return err
		}
		if _, err := c.Propose(ctx, &catalog.SetSecret{Name: s.Name, Sealed: sealed}); err != nil {
			return fmt.Errorf("seal secret %s anew: %w", s.Name, err)
		}
		c.log.Info("secret sealed anew", "name", s.Name, "key", keys[0].Fingerprint())
	}
	return nil
}
