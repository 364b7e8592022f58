package catalog

import (
	"errors"
	"time"
)

// State is the catalog. It belongs to one goroutine, which applies entries;
// readers use Views.
type State struct {
	tables
	sets    *sets // shared by views while no repository enters, leaves or is renamed
	checked check // of the last CheckHash; not part of the state
}

// tables are the records, and indexes that are made from them.
type tables struct {
	meta     meta
	metaHash uint64
	config   *Config
	confHash uint64
	parsed   *parsed

	connections table[string, Connection]
	repos       table[RepoID, Repo]
	jobs        table[string, Job] // by jobKey
	keys        table[string, Key]
	members     table[string, Member]
	groups      table[uint64, Group]
	holdings    table[string, Holding]
	secrets     table[string, Secret]
	requests    table[string, request]

	// Indexes: not saved, not hashed.
	names     tree[string, RepoID]
	jobStates tree[string, struct{}] // state, then jobKey
	keyHashes tree[string, string]
	numbers   tree[uint32, string]   // of members
	refs      tree[string, uint32]   // how often live generations name a file
	order     tree[uint64, string]   // of requests, by index
	replies   int                    // results kept in requests
	running   tree[string, struct{}] // node, 0, jobKey of running jobs
}

// meta is what there is once.
type meta struct {
	ClusterID  string
	Index      uint64 // of the last entry applied
	Clock      time.Time
	LastRepo   RepoID
	LastMember uint32
}

// check is what this node had at a CheckHash.
type check struct {
	index, hash uint64
	diverged    bool
}

// request is a remembered entry and what it came to.
type request struct {
	ID      [16]byte
	Index   uint64
	Results []Result
}

// Bounds of what is remembered for retries. A client gives up long before
// this many other writes were applied.
const (
	maxRequests = 16384
	maxReplies  = 1 << 18
)

// New returns an empty catalog.
func New() *State {
	s := &State{sets: &sets{}, tables: tables{
		config:      &Config{},
		parsed:      &parsed{},
		connections: newTable[string, Connection](connectionKind),
		repos:       newTable[RepoID, Repo](repoKind),
		jobs:        newTable[string, Job](jobKind),
		keys:        newTable[string, Key](keyKind),
		members:     newTable[string, Member](memberKind),
		groups:      newTable[uint64, Group](groupKind),
		holdings:    newTable[string, Holding](holdingKind),
		secrets:     newTable[string, Secret](secretKind),
		requests:    newTable[string, request](requestKind),
		names:       newTree[string, RepoID](),
		jobStates:   newTree[string, struct{}](),
		keyHashes:   newTree[string, string](),
		numbers:     newTree[uint32, string](),
		refs:        newTree[string, uint32](),
		order:       newTree[uint64, string](),
		running:     newTree[string, struct{}](),
	}}
	s.rehashMeta()
	return s
}

// Apply applies an entry and returns one result for each command. An entry
// whose request was applied before changes nothing and has the results of
// the first time. Entries must come with growing indexes.
func (s *State) Apply(e Entry) []Result {
	s.meta.Index = e.Index
	defer s.rehashMeta()
	if e.Request != ([16]byte{}) {
		if old := s.requests.get(string(e.Request[:])); old != nil {
			return old.Results
		}
	}
	if at := fromMillis(toMillis(e.At)); at.After(s.meta.Clock) {
		s.meta.Clock = at
	}
	t := &txn{State: s, index: e.Index, now: s.meta.Clock, node: e.Node}
	results := make([]Result, len(e.Commands))
	for i, c := range e.Commands {
		results[i] = c.apply(t)
	}
	s.remember(e, results)
	return results
}

func (s *State) remember(e Entry, results []Result) {
	if e.Request == ([16]byte{}) {
		return
	}
	id := string(e.Request[:])
	s.requests.set(id, &request{ID: e.Request, Index: e.Index, Results: results})
	s.order.set(e.Index, id)
	s.replies += len(results)
	for s.order.len() > maxRequests || s.replies > maxReplies {
		index, id, _ := s.order.min()
		s.order.delete(index)
		s.replies -= len(s.requests.get(id).Results)
		s.requests.delete(id)
	}
}

func (s *State) rehashMeta() { s.metaHash = metaKind.hash(&s.meta) }

// Index is that of the last entry applied.
func (s *State) Index() uint64 { return s.meta.Index }

// Diverged tells that the state of this node was not that of the proposer of
// a CheckHash: it must not be trusted any more.
func (s *State) Diverged() bool { return s.checked.diverged }

// View returns the state as it is now. It costs the same for any size.
func (s *State) View() *View {
	return &View{sets: s.sets, tables: tables{
		meta:        s.meta,
		metaHash:    s.metaHash,
		config:      s.config,
		confHash:    s.confHash,
		parsed:      s.parsed,
		connections: s.connections.freeze(),
		repos:       s.repos.freeze(),
		jobs:        s.jobs.freeze(),
		keys:        s.keys.freeze(),
		members:     s.members.freeze(),
		groups:      s.groups.freeze(),
		holdings:    s.holdings.freeze(),
		secrets:     s.secrets.freeze(),
		requests:    s.requests.freeze(),
		names:       s.names.freeze(),
		jobStates:   s.jobStates.freeze(),
		keyHashes:   s.keyHashes.freeze(),
		numbers:     s.numbers.freeze(),
		refs:        s.refs.freeze(),
		order:       s.order.freeze(),
	}}
}

// Hash is the state hash: equal on all nodes at an equal index.
func (t *tables) Hash() uint64 {
	return t.metaHash + t.confHash + t.connections.sum + t.repos.sum + t.jobs.sum + t.keys.sum +
		t.members.sum + t.groups.sum + t.holdings.sum + t.secrets.sum + t.requests.sum
}

// Refusal says why a command changed nothing.
type Refusal struct {
	Code   Code
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

// Code is the kind of a refusal.
type Code uint8

// The kinds of refusals.
const (
	Stale    Code = 1 // the fence or epoch is not the current one
	NotFound Code = 2
	Conflict Code = 3 // the state does not allow it
	Invalid  Code = 4 // the command is malformed
)

// Refused returns the refusal that an error of Propose wraps, if any.
func Refused(err error) (*Refusal, bool) {
	var r *Refusal
	ok := errors.As(err, &r)
	return r, ok
}

func refuse(code Code, reason string) Result {
	return Result{Err: &Refusal{code, reason}}
}

// txn is one entry being applied.
type txn struct {
	*State
	index uint64
	now   time.Time
	node  string
}
