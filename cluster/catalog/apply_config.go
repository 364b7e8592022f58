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

// NewSetConfig makes the command for a configuration file. raw must be what
// f was parsed from.
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

// Following has the command keep what connections have listed that only get
// another name, where a view has such ones, and returns it. Of others the command
// stays as it was: earlier versions can apply it.
func (c *SetConfig) Following(v *View) *SetConfig {
	c.Renames = len(v.renamed(v.droppedBy(c.Connections), c.Connections)) > 0
	return c
}

// keepDropped is how long the data of a connection stays that a configuration
// dropped: long enough to notice, and to have it back without a clone.
const keepDropped = 24 * time.Hour

// A careful configuration may let go of this many repositories, or of half.
const fewRepos = 20

func hashText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (c *SetConfig) apply(t *txn) Result {
	// Of a sealed file the hash cannot be checked here: whoever sealed it has done that.
	if _, sealed := sealedBox(c.Raw); !sealed && hashText(string(c.Raw)) != c.Hash || len(c.Raw) > config.MaxSize+sealRoom {
		return refuse(Invalid, "the configuration is not the one that its hash names")
	}

	// Nodes that have the same file all propose it, and one entry is enough.
	if t.configured(c.Hash) {
		return Result{ID: t.config.Index}
	}

	// The file was read before another one came into force: it may be older
	// than that, where a node slept or could not be heard for a while.
	if c.Instead != InsteadOfAny && c.Instead != t.config.Index {
		return refuse(Stale, "the configuration was changed since the file was read")
	}

	// Sorted, so that the same file is the same command at every node.
	for i, d := range c.Connections {
		if d.Name == "" || i > 0 && c.Connections[i-1].Name >= d.Name {
			return refuse(Invalid, "connections are not sorted by name")
		}
	}

	// One that lets go of many repositories has to be meant.
	gone := t.droppedBy(c.Connections)
	if lost, all := t.letGo(gone, c.Connections); c.Careful && lost > fewRepos && 2*lost > all {
		return refuse(Held, fmt.Sprintf("it would let go of %d of %d repositories, since it has no %s: apply it with --accept if that is meant", lost, all, connectionList(gone)))
	}

	t.setConfig(&Config{Raw: c.Raw, Hash: c.Hash, Index: t.index, At: t.now, By: t.node})
	if c.Renames {
		gone = t.renameConnections(gone, c.Connections)
	}
	t.defineConnections(c.Connections)
	t.dropConnections(gone, c.Keep)
	t.allChanged()
	return Result{ID: t.index}
}

// configured tells whether the configuration with a hash is in force.
func (t *txn) configured(hash string) bool { return t.config.Index > 0 && t.config.Hash == hash }

// defineConnections stores the connections of a configuration, and has those
// listed that are new or changed.
func (t *txn) defineConnections(defs []ConnectionDef) {
	for _, d := range defs {
		n := Connection{Name: d.Name}
		if old := t.connections.Get(d.Name); old != nil {
			n = *old
		}

		// What is known of its last listing stays: it is the same connection to people.
		changed := n.Hash != d.Hash
		n.Kind, n.Hash = d.Kind, d.Hash
		t.connections.Set(n.Name, &n)

		// Urgent: whoever changed it waits for what it lists now.
		if changed {
			t.enqueue(JobSync, n.Name, true, time.Time{})
		}
	}
}

func (c *SealConfig) apply(t *txn) Result {
	if _, sealed := sealedBox(c.Raw); !sealed || t.config.Index == 0 {
		return refuse(Invalid, "that is no sealed configuration, or there is none to be sealed")
	}

	// Another configuration came first, which is sealed under the first key already.
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

// droppedBy are the connections that are not in a list.
func (t *tables) droppedBy(keep []ConnectionDef) (gone []*Connection) {
	for c := range t.connections.Records() {
		if !slices.ContainsFunc(keep, func(d ConnectionDef) bool { return d.Name == c.Name }) {
			gone = append(gone, c)
		}
	}
	return gone
}

// renamed are the new names of connections that only get another name, by the
// former ones: under another name with the same definition it is the same
// connection. Of several alike the first one gets the first name.
func (t *tables) renamed(gone []*Connection, defs []ConnectionDef) map[string]string {
	names := map[string]string{}
	for _, d := range defs {
		if t.connections.Get(d.Name) != nil {
			continue
		}
		i := slices.IndexFunc(gone, func(c *Connection) bool { return c.Hash == d.Hash && names[c.Name] == "" })
		if i >= 0 {
			names[gone[i].Name] = d.Name
		}
	}
	return names
}

// letGo counts the repositories that are listed by nobody but connections
// that go, and all that are listed. A connection that only gets another name
// lets go of nothing.
func (s *State) letGo(gone []*Connection, keep []ConnectionDef) (lost, all int) {
	names := map[string]bool{}
	for _, c := range gone {
		// Under another name with the same definition it is the same connection.
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

// connectionList names connections in a sentence.
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

// renameConnections gives connections that only get another name what they have
// listed under the former one, so that nothing is missing until they are listed
// again, and returns those that go.
func (t *txn) renameConnections(gone []*Connection, defs []ConnectionDef) (left []*Connection) {
	names := t.renamed(gone, defs)
	for _, c := range gone {
		now, ok := names[c.Name]
		if !ok {
			left = append(left, c)
			continue
		}

		// A listing that runs is of the former name: its end is refused, and it begins anew.
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
	return left
}

// dropConnections removes connections, and takes them from their
// repositories, whose data stays for a while.
func (t *txn) dropConnections(gone []*Connection, keep time.Duration) {
	for _, c := range gone {
		t.dropJob(JobSync, c.Name)
		t.connections.Delete(c.Name)
		t.unlist(&FinishSync{Connection: c.Name}, keep)
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

	if t.keys.Get(k.ID) != nil {
		return refuse(Conflict, "a key of this id exists")
	}
	if _, taken := t.keyHashes.Get(string(k.Hash)); taken {
		return refuse(Conflict, "the key exists")
	}

	// A key that sees everything is nobody's: it would outlive what its owner may see.
	if k.Account != "" && (t.accounts.Get(k.Account) == nil || k.All) {
		return refuse(Invalid, "the key is of an account that is not there")
	}

	// Of one account names are unique, for a key is revoked by its name.
	for old := range t.keys.Records() {
		if old.Name == k.Name && old.Account == k.Account {
			return refuse(Conflict, fmt.Sprintf("there is a key called %q already: choose another name, or revoke that one if nobody has it", k.Name))
		}
	}

	if t.keys.Len() >= maxKeys {
		return refuse(Conflict, "there are too many keys: revoke some first")
	}

	// Times are kept in milliseconds: the record is what a restart would load.
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

	// Whoever came in by it goes with it: a browser, and programs that were let in there.
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
	// What came of the comparison is not part of the result, which is the same on every node.
	t.hashes.compare(c.At, c.Hash)
	return Result{ID: t.Hash()}
}
