package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

func (c *InitCluster) apply(t *txn) Result {
	if c.ID == "" {
		return refuse(Invalid, "a cluster needs an id")
	}
	if t.meta.ClusterID != "" && t.meta.ClusterID != c.ID {
		return refuse(Conflict, "the cluster has an id already")
	}
	t.meta.ClusterID = c.ID
	return Result{}
}

// NewSetConfig makes the command for a configuration file. raw must be what
// f was parsed from.
func NewSetConfig(raw []byte, f *config.File) *SetConfig {
	c := &SetConfig{Raw: raw, Hash: f.Hash(), Instead: InsteadOfAny}
	for _, conn := range f.Connections {
		c.Connections = append(c.Connections, ConnectionDef{
			Name: conn.Shared().Name,
			Kind: string(conn.Kind()),
			Hash: hashText(conn.Shared().Raw),
		})
	}
	return c
}

func hashText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (c *SetConfig) apply(t *txn) Result {
	if hashText(string(c.Raw)) != c.Hash || len(c.Raw) > config.MaxSize {
		return refuse(Invalid, "the configuration is not the one that its hash names")
	}
	if t.config.Index > 0 && t.config.Hash == c.Hash {
		return Result{ID: t.config.Index}
	}
	// The file was read before another one came into force: it may be older
	// than that, where a node slept or could not be heard for a while.
	if c.Instead != InsteadOfAny && c.Instead != t.config.Index {
		return refuse(Stale, "the configuration was changed since the file was read")
	}
	for i, d := range c.Connections {
		if d.Name == "" || i > 0 && c.Connections[i-1].Name >= d.Name {
			return refuse(Invalid, "connections are not sorted by name")
		}
	}
	t.setConfig(&Config{Raw: c.Raw, Hash: c.Hash, Index: t.index, At: t.now, By: t.node})
	for _, d := range c.Connections {
		n := Connection{Name: d.Name}
		if old := t.connections.get(d.Name); old != nil {
			n = *old
		}
		changed := n.Hash != d.Hash
		n.Kind, n.Hash = d.Kind, d.Hash
		t.connections.set(n.Name, &n)
		if changed {
			t.enqueue(JobSync, n.Name, true, time.Time{})
		}
	}
	t.dropConnections(c.Connections)
	t.sets = &sets{}
	return Result{ID: t.index}
}

func (s *State) setConfig(c *Config) {
	s.config, s.parsed = c, &parsed{raw: c.Raw}
	s.confHash = configKind.hash(c)
}

// dropConnections removes the connections that are not in the list, and
// takes them from their repositories.
func (t *txn) dropConnections(keep []ConnectionDef) {
	var gone []string
	for c := range t.connections.records() {
		if !slices.ContainsFunc(keep, func(d ConnectionDef) bool { return d.Name == c.Name }) {
			gone = append(gone, c.Name)
		}
	}
	for _, name := range gone {
		t.dropJob(JobSync, name)
		t.connections.delete(name)
		t.unlist(name, 0)
	}
}

// Limits of API keys.
const (
	maxKeys    = 10000
	maxKeyName = 256
	keyHashLen = sha256.Size
)

func (c *CreateKey) apply(t *txn) Result {
	k := c.Key
	if k.ID == "" || len(k.Hash) != keyHashLen || len(k.Name) > maxKeyName || k.Role != RoleMember && k.Role != RoleOwner {
		return refuse(Invalid, "the key is malformed")
	}
	if t.keys.get(k.ID) != nil {
		return refuse(Conflict, "a key of this id exists")
	}
	if _, taken := t.keyHashes.get(string(k.Hash)); taken {
		return refuse(Conflict, "the key exists")
	}
	for old := range t.keys.records() {
		if old.Name == k.Name {
			return refuse(Conflict, fmt.Sprintf("there is a key called %q already", k.Name))
		}
	}
	if t.keys.len() >= maxKeys {
		return refuse(Conflict, "there are too many keys: revoke some first")
	}
	k.Created, k.Used, k.Expires = t.now, fromMillis(0), fromMillis(toMillis(k.Expires))
	t.keys.set(k.ID, &k)
	t.keyHashes.set(string(k.Hash), k.ID)
	return Result{}
}

func (c *RevokeKey) apply(t *txn) Result {
	k := t.keys.get(c.ID)
	if k == nil {
		return refuse(NotFound, "there is no such key")
	}
	t.keyHashes.delete(string(k.Hash))
	t.keys.delete(k.ID)
	return Result{}
}

func (c *TouchKeys) apply(t *txn) Result {
	used := fromMillis(toMillis(c.Used))
	for _, id := range c.IDs {
		if old := t.keys.get(id); old != nil && used.After(old.Used) {
			k := *old
			k.Used = used
			t.keys.set(id, &k)
		}
	}
	return Result{}
}

func (c *SetSecret) apply(t *txn) Result {
	if c.Name == "" || len(c.Sealed) == 0 {
		return refuse(Invalid, "the secret is empty")
	}
	if old := t.secrets.get(c.Name); old != nil && c.IfAbsent {
		return Result{ID: old.Index}
	}
	t.secrets.set(c.Name, &Secret{c.Name, c.Sealed, t.index})
	return Result{ID: t.index}
}

func (*Noop) apply(*txn) Result { return Result{} }

func (c *CheckHash) apply(t *txn) Result {
	before := t.checked
	t.checked.index, t.checked.hash = t.index, t.Hash()
	if c.At == 0 || before.index != c.At || before.hash == c.Hash {
		return Result{ID: t.checked.hash}
	}
	t.checked.diverged = true
	// The result is remembered, so it must be the same on every node.
	return Result{ID: 0}
}
