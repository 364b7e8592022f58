package catalog

import (
	"cmp"
	"fmt"
)

// tables are the records, and indexes that are made from them. Each table
// has a row in tableRows, which says all else about it.
type tables struct {
	rows []tableRow // tableRows; a test has one more

	meta       meta
	metaHash   uint64
	raised     Level // zero: level 1
	raisedHash uint64
	config     *Config
	confHash   uint64
	parsed     *parsed

	connections table[string, Connection]
	repos       table[RepoID, Repo]
	jobs        table[string, Job] // by jobKey
	keys        table[string, Key]
	members     table[string, Member]
	groups      table[uint64, Group]
	holdings    table[string, Holding]
	secrets     table[string, Secret]
	requests    table[string, request]
	accounts    table[string, User]
	grants      table[string, Grants] // by Grants.Key
	sessions    table[string, Session]
	passwords   table[string, Password] // by account
	links       table[string, Link]
	identities  table[string, Identity] // by Identity.Key
	events      table[uint64, Event]
	consents    table[string, Consent]
	threads     table[string, Thread]
	readers     table[string, Reader] // by Reader.Key
	access      table[RepoID, Access]
	sites       table[string, Site]
	hostTokens  table[string, HostToken] // by HostToken.Key

	// Indexes: not saved, not hashed, made from the records by the rows.
	names     tree[string, RepoID]
	externals tree[string, RepoID]   // by the host's own id
	former    tree[string, RepoID]   // by names that a rename freed
	jobStates tree[string, struct{}] // state, then jobKey
	turns     tree[string, struct{}] // by granting, of jobs that wait
	keyHashes tree[string, string]
	emails    tree[string, string]   // ids of accounts by their addresses
	numbers   tree[uint32, string]   // of members
	refs      tree[string, uint32]   // how often live generations name a file
	order     tree[uint64, string]   // of requests, by index
	replies   int                    // results kept in requests
	running   tree[string, struct{}] // node, 0, jobKey of running jobs

	threadOwners  tree[string, struct{}] // by ownedThread
	sessionHashes tree[string, string]   // ids of sessions by their hashes
	persons       tree[string, string]   // keys of identities, by account, 0, key
	threadRuns    tree[string, string]   // owners, by ids of threads with a question that is being answered
}

// tableRows lists the tables. To add one: a record type, a field of tables,
// and a row with a tag that was never used. Freezing, the state hash, snapshots
// and what reads them follow from the row.
var tableRows = []tableRow{
	tableOf(3, "connection", func(t *tables) *table[string, Connection] { return &t.connections },
		func(c *Connection) string { return c.Name }, nil),
	tableOf(4, "repository", func(t *tables) *table[RepoID, Repo] { return &t.repos },
		func(r *Repo) RepoID { return r.ID }, (*State).indexRepo),
	tableOf(5, "job", func(t *tables) *table[string, Job] { return &t.jobs },
		func(j *Job) string { return jobKey(j.Kind, j.Subject) }, func(s *State, j *Job) error { s.indexJob(j); return nil }),
	tableOf(6, "key", func(t *tables) *table[string, Key] { return &t.keys },
		func(k *Key) string { return k.ID }, (*State).indexKey),
	tableOf(7, "member", func(t *tables) *table[string, Member] { return &t.members },
		func(m *Member) string { return m.ID }, (*State).indexMember),
	tableOf(8, "group", func(t *tables) *table[uint64, Group] { return &t.groups },
		func(g *Group) uint64 { return g.Number }, nil),
	tableOf(9, "holding", func(t *tables) *table[string, Holding] { return &t.holdings },
		func(h *Holding) string { return h.Key }, nil),
	tableOf(10, "secret", func(t *tables) *table[string, Secret] { return &t.secrets },
		func(x *Secret) string { return x.Name }, nil),
	tableOf(11, "request", func(t *tables) *table[string, request] { return &t.requests },
		func(q *request) string { return string(q.ID[:]) }, (*State).indexRequest),
	tableOf(40, "account", func(t *tables) *table[string, User] { return &t.accounts },
		func(a *User) string { return a.ID }, (*State).indexAccount),
	tableOf(41, "grants", func(t *tables) *table[string, Grants] { return &t.grants },
		(*Grants).Key, nil),
	tableOf(42, "session", func(t *tables) *table[string, Session] { return &t.sessions },
		func(s *Session) string { return s.ID }, (*State).indexSession),
	tableOf(43, "password", func(t *tables) *table[string, Password] { return &t.passwords },
		func(p *Password) string { return p.Account }, nil),
	tableOf(44, "link", func(t *tables) *table[string, Link] { return &t.links },
		func(l *Link) string { return l.ID }, nil),
	tableOf(45, "identity", func(t *tables) *table[string, Identity] { return &t.identities },
		(*Identity).Key, func(s *State, x *Identity) error { s.persons.set(x.owned(), x.Key()); return nil }),
	tableOf(46, "event", func(t *tables) *table[uint64, Event] { return &t.events },
		func(e *Event) uint64 { return e.ID }, nil),
	tableOf(47, "reader", func(t *tables) *table[string, Reader] { return &t.readers },
		(*Reader).Key, nil),
	tableOf(48, "access", func(t *tables) *table[RepoID, Access] { return &t.access },
		func(a *Access) RepoID { return a.Repo }, nil),
	tableOf(49, "site", func(t *tables) *table[string, Site] { return &t.sites },
		func(s *Site) string { return s.Name }, nil),
	tableOf(51, "host token", func(t *tables) *table[string, HostToken] { return &t.hostTokens },
		(*HostToken).Key, nil),
	tableOf(50, "consent", func(t *tables) *table[string, Consent] { return &t.consents },
		func(c *Consent) string { return c.ID }, nil),
	tableOf(70, "thread", func(t *tables) *table[string, Thread] { return &t.threads },
		func(h *Thread) string { return h.ID }, (*State).indexThread),
}

// The records of which there is one, which are in no table.
var (
	metaKind   = kindOf[meta](1, "meta")
	configKind = kindOf[Config](2, "configuration")
)

// tableRow is what the state, its views and its snapshots do with a table,
// whatever its records are.
type tableRow interface {
	tag() byte                         // number of its records in snapshots, which never changes
	open(t *tables)                    // makes it empty
	freeze(from, to *tables)           // gives to what from has now
	sum(t *tables) uint64              // its part of the state hash
	save(t *tables, s *saver)          // its records, by key
	restore(t *tables, b []byte) error // takes in a record as save wrote it
	index(s *State) error              // fills the indexes of a table that was restored

	differ(a, b *tables, most int) Difference // names at most so many keys
}

// row is the tableRow of records of type T under keys of type K.
type row[K cmp.Ordered, T any] struct {
	kind *recordKind
	at   func(*tables) *table[K, T]
	key  func(*T) K
	note func(*State, *T) error // puts a record into the indexes; nil where it is in none
}

func tableOf[K cmp.Ordered, T any](tag byte, name string, at func(*tables) *table[K, T], key func(*T) K, note func(*State, *T) error) tableRow {
	return &row[K, T]{kindOf[T](tag, name), at, key, note}
}

func (r *row[K, T]) tag() byte { return r.kind.tag }

func (r *row[K, T]) open(t *tables) { *r.at(t) = newTable[K, T](r.kind) }

func (r *row[K, T]) freeze(from, to *tables) { *r.at(to) = r.at(from).freeze() }

func (r *row[K, T]) sum(t *tables) uint64 { return r.at(t).sum }

func (r *row[K, T]) save(t *tables, s *saver) {
	for rec := range r.at(t).records() {
		s.record(r.kind, rec)
	}
}

func (r *row[K, T]) restore(t *tables, b []byte) error {
	rec := new(T)
	if err := r.kind.decode(b, rec); err != nil {
		return err
	}

	// A record has one encoding, so its bytes are what its hash is made of.
	r.at(t).add(r.key(rec), rec, r.kind.hashOf(b))
	return nil
}

func (r *row[K, T]) index(s *State) error {
	if r.note == nil {
		return nil
	}
	for rec := range r.at(&s.tables).records() {
		if err := r.note(s, rec); err != nil {
			return err
		}
	}
	return nil
}

// indexRepo notes the name of a repository and the files that it names.
func (s *State) indexRepo(r *Repo) error {
	if _, taken := s.names.get(r.Name); taken || r.ID == 0 || r.ID > s.meta.LastRepo {
		return fmt.Errorf("repository %d has the name or number of another", r.ID)
	}
	s.names.set(r.Name, r.ID)
	s.indexIdentity(r)

	for _, id := range files(r.Shards) {
		n, _ := s.refs.get(id)
		s.refs.set(id, n+1)
	}
	return nil
}

func (s *State) indexKey(k *Key) error {
	s.keyHashes.set(string(k.Hash), k.ID)
	return nil
}

func (s *State) indexMember(m *Member) error {
	if _, taken := s.numbers.get(m.Number); taken || m.Number == 0 || m.Number > s.meta.LastMember {
		return fmt.Errorf("member %s has the number of another", m.ID)
	}
	s.numbers.set(m.Number, m.ID)
	return nil
}

func (s *State) indexRequest(q *request) error {
	s.order.set(q.Index, string(q.ID[:]))
	s.replies += len(q.Results)
	return nil
}
