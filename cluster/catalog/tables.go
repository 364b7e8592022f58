package catalog

import (
	"cmp"
	"fmt"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// tables are all records, and the indexes derived from them. Each table has a row in tableRows with
// everything else about it.
type tables struct {
	rows []tableRow // tableRows; a test adds one

	meta       meta
	metaHash   uint64
	raised     Level // zero: level 1
	raisedHash uint64
	config     *Config
	confHash   uint64
	parsed     *parsed

	connections tree.Table[string, Connection]
	repos       tree.Table[RepoID, Repo]
	jobs        tree.Table[string, Job] // by jobKey
	keys        tree.Table[string, Key]
	members     tree.Table[string, Member]
	groups      tree.Table[uint64, Group]
	holdings    tree.Table[string, Holding]
	secrets     tree.Table[string, Secret]
	requests    tree.Table[string, request]
	accounts    tree.Table[string, User]
	grants      tree.Table[string, Grants] // by Grants.Key
	sessions    tree.Table[string, Session]
	passwords   tree.Table[string, Password] // by account
	links       tree.Table[string, Link]
	identities  tree.Table[string, Identity] // by Identity.Key
	events      tree.Table[uint64, Event]
	consents    tree.Table[string, Consent]
	threads     tree.Table[string, Thread]
	readers     tree.Table[string, Reader] // by Reader.Key
	access      tree.Table[RepoID, Access]
	sites       tree.Table[string, Site]
	hostTokens  tree.Table[string, HostToken] // by HostToken.Key
	watches     tree.Table[string, Watch]
	notices     tree.Table[uint64, Notice]
	backlogs    tree.Table[RepoID, Backlog]

	historyRules tree.Table[string, HistoryRule] // by glob

	// Indexes: not saved, not hashed, derived from the records by the rows.
	names     tree.Tree[string, RepoID]
	externals tree.Tree[string, RepoID]   // by the host's own id
	former    tree.Tree[string, RepoID]   // by former names
	jobStates tree.Tree[string, struct{}] // state, then jobKey
	turns     tree.Tree[string, struct{}] // waiting jobs, by granting
	keyHashes tree.Tree[string, string]
	emails    tree.Tree[string, string]   // account id by address
	numbers   tree.Tree[uint32, string]   // member id by number
	refs      tree.Tree[string, uint32]   // number of references to a file from live generations
	order     tree.Tree[uint64, string]   // request id by index of its entry
	replies   int                         // number of results in requests
	running   tree.Tree[string, struct{}] // running jobs: node, 0, jobKey

	threadOwners  tree.Tree[string, struct{}] // by ownedThread
	sessionHashes tree.Tree[string, string]   // session id by hash
	persons       tree.Tree[string, string]   // identity keys: account, 0, key
	threadRuns    tree.Tree[string, string]   // owner by id of a thread with a running turn
	watchOwners   tree.Tree[string, struct{}] // by ownedThread
	watchNotices  tree.Tree[string, uint64]   // by noticeKey
	watchFeeds    tree.Tree[string, string]   // id of a watch by the hash of its feed's token
}

// tableRows lists the tables. To add one, add a record type, a field of tables, and a row with a
// new tag. Freezing, hashing, saving and loading follow from the row.
var tableRows = []tableRow{
	tableOf(3, "connection", func(t *tables) *tree.Table[string, Connection] { return &t.connections },
		func(c *Connection) string { return c.Name }, nil),
	tableOf(4, "repository", func(t *tables) *tree.Table[RepoID, Repo] { return &t.repos },
		func(r *Repo) RepoID { return r.ID }, (*State).indexRepo),
	tableOf(5, "job", func(t *tables) *tree.Table[string, Job] { return &t.jobs },
		func(j *Job) string { return jobKey(j.Kind, j.Subject) }, func(s *State, j *Job) error { s.indexJob(j); return nil }),
	tableOf(6, "key", func(t *tables) *tree.Table[string, Key] { return &t.keys },
		func(k *Key) string { return k.ID }, (*State).indexKey),
	tableOf(7, "member", func(t *tables) *tree.Table[string, Member] { return &t.members },
		func(m *Member) string { return m.ID }, (*State).indexMember),
	tableOf(8, "group", func(t *tables) *tree.Table[uint64, Group] { return &t.groups },
		func(g *Group) uint64 { return g.Number }, nil),
	tableOf(9, "holding", func(t *tables) *tree.Table[string, Holding] { return &t.holdings },
		func(h *Holding) string { return h.Key }, nil),
	tableOf(10, "secret", func(t *tables) *tree.Table[string, Secret] { return &t.secrets },
		func(x *Secret) string { return x.Name }, nil),
	tableOf(11, "request", func(t *tables) *tree.Table[string, request] { return &t.requests },
		func(q *request) string { return string(q.ID[:]) }, (*State).indexRequest),
	tableOf(40, "account", func(t *tables) *tree.Table[string, User] { return &t.accounts },
		func(a *User) string { return a.ID }, (*State).indexAccount),
	tableOf(41, "grants", func(t *tables) *tree.Table[string, Grants] { return &t.grants },
		(*Grants).Key, nil),
	tableOf(42, "session", func(t *tables) *tree.Table[string, Session] { return &t.sessions },
		func(s *Session) string { return s.ID }, (*State).indexSession),
	tableOf(43, "password", func(t *tables) *tree.Table[string, Password] { return &t.passwords },
		func(p *Password) string { return p.Account }, nil),
	tableOf(44, "link", func(t *tables) *tree.Table[string, Link] { return &t.links },
		func(l *Link) string { return l.ID }, nil),
	tableOf(45, "identity", func(t *tables) *tree.Table[string, Identity] { return &t.identities },
		(*Identity).Key, func(s *State, x *Identity) error { s.persons.Set(x.accountKey(), x.Key()); return nil }),
	tableOf(46, "event", func(t *tables) *tree.Table[uint64, Event] { return &t.events },
		func(e *Event) uint64 { return e.ID }, nil),
	tableOf(47, "reader", func(t *tables) *tree.Table[string, Reader] { return &t.readers },
		(*Reader).Key, nil),
	tableOf(48, "access", func(t *tables) *tree.Table[RepoID, Access] { return &t.access },
		func(a *Access) RepoID { return a.Repo }, nil),
	tableOf(49, "site", func(t *tables) *tree.Table[string, Site] { return &t.sites },
		func(s *Site) string { return s.Name }, nil),
	tableOf(52, "history rule", func(t *tables) *tree.Table[string, HistoryRule] { return &t.historyRules },
		func(r *HistoryRule) string { return r.Glob }, nil),
	tableOf(51, "host token", func(t *tables) *tree.Table[string, HostToken] { return &t.hostTokens },
		(*HostToken).Key, nil),
	tableOf(50, "consent", func(t *tables) *tree.Table[string, Consent] { return &t.consents },
		func(c *Consent) string { return c.ID }, nil),
	tableOf(70, "thread", func(t *tables) *tree.Table[string, Thread] { return &t.threads },
		func(h *Thread) string { return h.ID }, (*State).indexThread),
	tableOf(80, "watch", func(t *tables) *tree.Table[string, Watch] { return &t.watches },
		func(w *Watch) string { return w.ID }, (*State).indexWatch),
	tableOf(81, "notice", func(t *tables) *tree.Table[uint64, Notice] { return &t.notices },
		func(n *Notice) uint64 { return n.Number }, (*State).indexNotice),
	tableOf(82, "backlog", func(t *tables) *tree.Table[RepoID, Backlog] { return &t.backlogs },
		func(b *Backlog) RepoID { return b.Repo }, nil),
}

// Kinds with a single record, which are in no table.
var (
	metaKind   = kindOf[meta](1, "meta")
	configKind = kindOf[Config](2, "configuration")
)

// tableRow is what states, views and snapshots do with any table.
type tableRow interface {
	tag() byte                         // kind of its records in snapshots, never changes
	open(t *tables)                    // makes the table empty
	freeze(from, to *tables)           // copies the present table as read-only
	sum(t *tables) uint64              // its part of the state hash
	save(t *tables, s *saver)          // writes its records, by key
	restore(t *tables, b []byte) error // adds a record that save wrote
	index(s *State) error              // fills the indexes after a restore

	differ(a, b *tables, most int) Difference // compares two tables and names up to most keys
}

// row implements tableRow for records of type T under keys of type K.
type row[K cmp.Ordered, T any] struct {
	kind         *recordKind
	at           func(*tables) *tree.Table[K, T]
	key          func(*T) K
	addToIndexes func(*State, *T) error // adds a record to the indexes; may be nil
}

func tableOf[K cmp.Ordered, T any](tag byte, name string, at func(*tables) *tree.Table[K, T], key func(*T) K, note func(*State, *T) error) tableRow {
	return &row[K, T]{kindOf[T](tag, name), at, key, note}
}

func (r *row[K, T]) tag() byte { return r.kind.tag }

func (r *row[K, T]) open(t *tables) { *r.at(t) = tree.NewTable[K, T](r.kind.hash) }

func (r *row[K, T]) freeze(from, to *tables) { *r.at(to) = r.at(from).Freeze() }

func (r *row[K, T]) sum(t *tables) uint64 { return r.at(t).Sum() }

func (r *row[K, T]) save(t *tables, s *saver) {
	for rec := range r.at(t).Records() {
		s.addRecord(r.kind, rec)
	}
}

func (r *row[K, T]) restore(t *tables, b []byte) error {
	rec := new(T)
	if err := r.kind.decode(b, rec); err != nil {
		return err
	}

	// A record has only one encoding, so these bytes give its hash.
	r.at(t).Add(r.key(rec), rec, r.kind.hashOf(b))
	return nil
}

func (r *row[K, T]) index(s *State) error {
	if r.addToIndexes == nil {
		return nil
	}
	for rec := range r.at(&s.tables).Records() {
		if err := r.addToIndexes(s, rec); err != nil {
			return err
		}
	}
	return nil
}

// indexRepo adds a repository to the indexes, and counts its files.
func (s *State) indexRepo(r *Repo) error {
	if _, taken := s.names.Get(r.Name); taken || r.ID == 0 || r.ID > s.meta.LastRepo {
		return fmt.Errorf("repository %d has the name or number of another", r.ID)
	}
	s.names.Set(r.Name, r.ID)
	s.indexIdentity(r)

	for _, id := range fileIDs(r.Shards) {
		n, _ := s.refs.Get(id)
		s.refs.Set(id, n+1)
	}
	return nil
}

func (s *State) indexKey(k *Key) error {
	s.keyHashes.Set(string(k.Hash), k.ID)
	return nil
}

// indexMember adds a member to the index by number, and refuses a number that two members have.
func (s *State) indexMember(m *Member) error {
	if _, taken := s.numbers.Get(m.Number); taken || m.Number == 0 || m.Number > s.meta.LastMember {
		return fmt.Errorf("member %s has the number of another", m.ID)
	}
	s.numbers.Set(m.Number, m.ID)
	return nil
}

func (s *State) indexRequest(q *request) error {
	s.order.Set(q.Index, string(q.ID[:]))
	s.replies += len(q.Results)
	return nil
}
