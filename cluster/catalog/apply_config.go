package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
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

// NewSetConfig returns the command that puts a configuration in force. f must be parsed from raw.
func NewSetConfig(raw []byte, f *config.File) *SetConfig {
	c := &SetConfig{Raw: raw, Hash: f.Hash(), Instead: InsteadOfAny, Careful: true, Keep: keepDropped}
	for _, conn := range f.Connections {
		c.Connections = append(c.Connections, ConnectionDef{
			Name: conn.Shared().Name,
			Kind: string(conn.Kind()),
			Hash: hashText(conn.Shared().Raw),
		})
	}
	return c
}

// Following sets c.Renames if some connection of v only changes its name, and returns c. Such a
// connection then keeps what it has listed. Otherwise the command stays as it was, so that earlier
// versions can apply it.
func (c *SetConfig) Following(v *View) *SetConfig {
	c.Renames = len(v.matchRenamed(v.droppedBy(c.Connections), c.Connections)) > 0
	return c
}

// keepDropped is how long the data of a removed connection stays. It is long enough to notice a
// mistake, and to restore the connection without cloning again.
const keepDropped = 24 * time.Hour

// maxUnconfirmedDrops: a careful configuration may drop so many repositories, or up to half of all.
const maxUnconfirmedDrops = 20

func hashText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (c *SetConfig) apply(t *txn) Result {
	// The hash of a sealed file cannot be checked here. The node that sealed it did so.
	if _, sealed := sealedBox(c.Raw); !sealed && hashText(string(c.Raw)) != c.Hash || len(c.Raw) > config.MaxSize+sealRoom {
		return refuse(Invalid, "the configuration is not the one that its hash names")
	}

	// Each node whose file was edited in the same way proposes it. Only the first entry counts.
	if t.inForce(c.Hash) {
		return Result{ID: t.config.Index}
	}

	// Another configuration came into force after this file was read. The file may be older than
	// that one, if its node slept or was cut off for a while.
	if c.Instead != InsteadOfAny && c.Instead != t.config.Index {
		return refuse(Stale, "the configuration was changed since the file was read")
	}

	// Sorting makes the command the same at every node that has the same file.
	for i, d := range c.Connections {
		if d.Name == "" || i > 0 && c.Connections[i-1].Name >= d.Name {
			return refuse(Invalid, "connections are not sorted by name")
		}
	}

	// A careful configuration must not drop many repositories by accident.
	dropped := t.droppedBy(c.Connections)
	if lost, all := t.countDropped(dropped, c.Connections); c.Careful && lost > maxUnconfirmedDrops && 2*lost > all {
		return refuse(Held, fmt.Sprintf("it would let go of %d of %d repositories, since it has no %s: apply it with --accept if that is meant", lost, all, connectionList(dropped)))
	}

	t.setConfig(&Config{Raw: c.Raw, Hash: c.Hash, Index: t.index, At: t.now, By: t.node})
	if c.Renames {
		dropped = t.renameConnections(dropped, c.Connections)
	}
	t.defineConnections(c.Connections)
	t.dropConnections(dropped, c.Keep)
	t.allChanged()
	return Result{ID: t.index}
}

// inForce reports whether the configuration with this hash is in force.
func (t *txn) inForce(hash string) bool { return t.config.Index > 0 && t.config.Hash == hash }

// defineConnections stores the connections of a configuration. It starts a sync for those that are
// new or changed.
func (t *txn) defineConnections(defs []ConnectionDef) {
	for _, d := range defs {
		n := Connection{Name: d.Name}
		if old := t.connections.Get(d.Name); old != nil {
			n = *old
		}

		// The results of the last listing stay until the next one.
		changed := n.Hash != d.Hash
		n.Kind, n.Hash = d.Kind, d.Hash
		t.connections.Set(n.Name, &n)

		// Urgent, because whoever changed the connection waits to see what it lists now.
		if changed {
			t.enqueue(JobSync, n.Name, true, time.Time{})
		}
	}
}

func (c *SealConfig) apply(t *txn) Result {
	if _, sealed := sealedBox(c.Raw); !sealed || t.config.Index == 0 {
		return refuse(Invalid, "that is no sealed configuration, or there is none to be sealed")
	}

	// A newer configuration came into force meanwhile, which is sealed already.
	if t.config.Hash != c.Hash {
		return Result{ID: t.config.Index}
	}
	same := *t.config
	same.Raw = c.Raw
	t.setConfig(&same)
	return Result{ID: same.Index}
}

func (s *State) setConfig(c *Config) {
	s.config, s.parsed = c, &parsed{raw: c.Raw, unseal: s.unseal}
	s.confHash = configKind.hash(c)
}

// droppedBy returns the connections that are missing in keep.
func (t *tables) droppedBy(keep []ConnectionDef) (dropped []*Connection) {
	for c := range t.connections.Records() {
		if !slices.ContainsFunc(keep, func(d ConnectionDef) bool { return d.Name == c.Name }) {
			dropped = append(dropped, c)
		}
	}
	return dropped
}

// matchRenamed returns the new name of each connection that only changes its name, by the old name:
// a dropped connection and a new one have the same definition. If several match, the first dropped
// one gets the first new name.
func (t *tables) matchRenamed(dropped []*Connection, defs []ConnectionDef) map[string]string {
	names := map[string]string{}
	for _, d := range defs {
		if t.connections.Get(d.Name) != nil {
			continue
		}
		i := slices.IndexFunc(dropped, func(c *Connection) bool { return c.Hash == d.Hash && names[c.Name] == "" })
		if i >= 0 {
			names[dropped[i].Name] = d.Name
		}
	}
	return names
}

// countDropped returns how many repositories a configuration would drop, and how many are listed in all.
// dropped are the connections that it removes. A connection that only changes its name drops nothing.
func (s *State) countDropped(dropped []*Connection, keep []ConnectionDef) (lost, all int) {
	names := map[string]bool{}
	for _, c := range dropped {
		// The same definition under another name is a renamed connection.
		if !slices.ContainsFunc(keep, func(d ConnectionDef) bool { return d.Hash == c.Hash }) {
			names[c.Name] = true
		}
	}

	for r := range s.repos.Records() {
		if r.Orphaned() {
			continue
		}

		all++
		if !slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return !names[c.Name] }) {
			lost++
		}
	}
	return lost, all
}

// connectionList names up to five connections, for a sentence.
func connectionList(list []*Connection) string {
	const few = 5
	var names []string
	for _, c := range list[:min(len(list), few)] {
		names = append(names, fmt.Sprintf("%q", c.Name))
	}
	text := "connection " + strings.Join(names, ", ")
	if len(list) > few {
		text += fmt.Sprintf(" and %d more", len(list)-few)
	}
	return text
}

// renameConnections moves the listed repositories of renamed connections to their new names, so
// that none is missing until the next listing. It returns the connections that are removed, not
// renamed.
func (t *txn) renameConnections(dropped []*Connection, defs []ConnectionDef) (removed []*Connection) {
	names := t.matchRenamed(dropped, defs)
	for _, c := range dropped {
		now, ok := names[c.Name]
		if !ok {
			removed = append(removed, c)
			continue
		}

		// A running sync carries the old name, so its end is refused. A new one is queued.
		n := *c
		n.Name = now
		t.dropJob(JobSync, c.Name)
		t.connections.Delete(c.Name)
		t.connections.Set(n.Name, &n)
		t.enqueue(JobSync, n.Name, true, time.Time{})
	}

	var listed []*Repo
	for r := range t.repos.Records() {
		if slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return names[c.Name] != "" }) {
			listed = append(listed, r)
		}
	}
	for _, old := range listed {
		r := *old
		r.Connections = slices.Clone(r.Connections)
		for i, c := range r.Connections {
			r.Connections[i].Name = cmp.Or(names[c.Name], c.Name)
		}
		slices.SortFunc(r.Connections, func(a, b RepoConnection) int { return strings.Compare(a.Name, b.Name) })
		t.setRepo(&r)
	}
	return removed
}

// dropConnections removes connections and their links to repositories. The data of repositories
// that no connection lists any more stays for the time keep.
func (t *txn) dropConnections(dropped []*Connection, keep time.Duration) {
	for _, c := range dropped {
		t.dropJob(JobSync, c.Name)
		t.connections.Delete(c.Name)
		t.unlinkMissing(&FinishSync{Connection: c.Name}, keep)
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
	readsMetrics := k.Role == RoleMetrics && k.Account == "" && !k.All
	if k.ID == "" || len(k.Hash) != keyHashLen || len(k.Name) > maxKeyName || k.Role != RoleMember && k.Role != RoleOwner && !readsMetrics {
		return refuse(Invalid, "the key is malformed")
	}

	if t.keys.Get(k.ID) != nil {
		return refuse(Conflict, "a key of this id exists")
	}
	if _, taken := t.keyHashes.Get(string(k.Hash)); taken {
		return refuse(Conflict, "the key exists")
	}

	// A key that sees everything has no account: its power would outlive its owner's.
	if k.Account != "" && (t.accounts.Get(k.Account) == nil || k.All) {
		return refuse(Invalid, "the key is of an account that is not there")
	}

	// Key names are unique within an account, since keys are revoked by name.
	for old := range t.keys.Records() {
		if old.Name == k.Name && old.Account == k.Account {
			return refuse(Conflict, fmt.Sprintf("there is a key called %q already: choose another name, or revoke that one if nobody has it", k.Name))
		}
	}

	if t.keys.Len() >= maxKeys {
		return refuse(Conflict, "there are too many keys: revoke some first")
	}

	// Cut times to milliseconds, so that the record equals what a restart would load.
	k.Created, k.Used, k.Expires = t.now, codec.FromMillis(0), codec.FromMillis(codec.ToMillis(k.Expires))
	t.keys.Set(k.ID, &k)
	t.keyHashes.Set(string(k.Hash), k.ID)
	return Result{}
}

func (c *RevokeKey) apply(t *txn) Result {
	k := t.keys.Get(c.ID)
	if k == nil {
		return refuse(NotFound, "there is no such key")
	}

	// End the sessions and OAuth consents that were begun with this key, too.
	t.endSessions(func(s *Session) bool { return s.Key == k.ID })
	t.endConsents(func(x *Consent) bool { return x.Key == k.ID })
	t.keyHashes.Delete(string(k.Hash))
	t.keys.Delete(k.ID)
	return Result{}
}

func (c *TouchKeys) apply(t *txn) Result {
	used := codec.FromMillis(codec.ToMillis(c.Used))
	for _, id := range c.IDs {
		if old := t.keys.Get(id); old != nil && used.After(old.Used) {
			k := *old
			k.Used = used
			t.keys.Set(id, &k)
		}
	}
	return Result{}
}

func (c *SetSecret) apply(t *txn) Result {
	if c.Name == "" || len(c.Sealed) == 0 {
		return refuse(Invalid, "the secret is empty")
	}
	if old := t.secrets.Get(c.Name); old != nil && c.IfAbsent {
		return Result{ID: old.Index}
	}
	t.secrets.Set(c.Name, &Secret{c.Name, c.Sealed, t.index})
	return Result{ID: t.index}
}

func (*Noop) apply(*txn) Result { return Result{} }

func (c *CheckHash) apply(t *txn) Result {
	// Each node only records the comparison locally. The result must be the same on all.
	t.hashes.compare(c.At, c.Hash)
	return Result{ID: t.Hash()}
}
