package catalog

import (
	"errors"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// State is the catalog. It belongs to one goroutine, which applies entries;
// readers use Views.
type State struct {
	tables
	kinds  []JobRow // of jobs, always the same
	sets   *sets    // shared by views while no repository enters, leaves or is renamed
	shared bool     // a view has sets
	hashes hashes   // of the last entries; not part of the state
	unseal Unsealer // of configurations; nil reads none that is sealed
	build  Build
}

// meta is what there is once.
type meta struct {
	ClusterID  string
	Index      uint64 // of the last entry applied
	Clock      time.Time
	LastRepo   RepoID
	LastMember uint32
	Former     []string // ids of the clusters that this one was made of, the newest last
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

// New is Build.New of the program as it is.
func New(further ...JobRow) *State {
	return newState(tableRows, slices.Concat(jobRows, further))
}

// Unseal sets what opens sealed configurations. It happens before the first
// view is taken.
func (s *State) Unseal(open Unsealer) {
	s.unseal = open
	s.parsed = &parsed{raw: s.config.Raw, unseal: open}
}

// newState is New with tables and kinds of jobs of its own.
func newState(rows []tableRow, kinds []JobRow) *State {
	s := &State{build: ThisBuild(), kinds: kinds, sets: newSets(), tables: tables{
		rows:   rows,
		config: &Config{},

		// Trees that are derived from the tables: apply keeps them in step, a snapshot leaves them out.
		parsed:    &parsed{},
		names:     tree.New[string, RepoID](),
		externals: tree.New[string, RepoID](),
		former:    tree.New[string, RepoID](),
		jobStates: tree.New[string, struct{}](),
		turns:     tree.New[string, struct{}](),
		keyHashes: tree.New[string, string](),
		emails:    tree.New[string, string](),
		numbers:   tree.New[uint32, string](),
		refs:      tree.New[string, uint32](),
		order:     tree.New[uint64, string](),
		running:   tree.New[string, struct{}](),

		threadOwners:  tree.New[string, struct{}](),
		sessionHashes: tree.New[string, string](),
		persons:       tree.New[string, string](),
		threadRuns:    tree.New[string, string](),
	}}

	for _, row := range rows {
		row.open(&s.tables)
	}
	s.rehashMeta()
	return s
}

// Apply applies an entry and returns one result for each command. An entry
// whose request was applied before changes nothing and has the results of
// the first time. Entries must come with growing indexes.
func (s *State) Apply(e Entry) []Result {
	s.meta.Index = e.Index
	defer s.applied()

	// A retry of what was applied already.
	if e.Request != ([16]byte{}) {
		if old := s.requests.Get(string(e.Request[:])); old != nil {
			return old.Results
		}
	}

	// The clock of the catalog never goes back, whatever the leaders' clocks do.
	if at := codec.FromMillis(codec.ToMillis(e.At)); at.After(s.meta.Clock) {
		s.meta.Clock = at
	}

	t := &txn{State: s, index: e.Index, now: s.meta.Clock, node: e.Node}
	results := make([]Result, len(e.Commands))
	for i, c := range e.Commands {
		event := t.tell(c)
		if results[i] = c.apply(t); event != nil && results[i].Err == nil {
			t.record(event, i)
		}
		t.also(c)
	}
	s.remember(e, results)
	return results
}

// also applies what a test adds to a command.
func (t *txn) also(c Command) {
	if t.build.Also == nil {
		return
	}
	for _, more := range t.build.Also(t.View(), c) {
		more.apply(t)
	}
}

// TookEffect is the index at which an entry that has been applied changed the state: its
// own, or that of its first try where it is a retry.
func (s *State) TookEffect(e Entry) uint64 {
	if e.Request != ([16]byte{}) {
		if first := s.requests.Get(string(e.Request[:])); first != nil {
			return first.Index
		}
	}
	return e.Index
}

// remember keeps the results of an entry for its retries, and drops the oldest:
//
//	order.len() <= maxRequests, replies <= maxReplies
func (s *State) remember(e Entry, results []Result) {
	if e.Request == ([16]byte{}) {
		return
	}

	id := string(e.Request[:])
	s.requests.Set(id, &request{ID: e.Request, Index: e.Index, Results: results})
	s.order.Set(e.Index, id)
	s.replies += len(results)

	// By count and by results: one entry may have a thousand of them.
	for s.order.Len() > maxRequests || s.replies > maxReplies {
		index, id, _ := s.order.Min()
		s.order.Delete(index)
		s.replies -= len(s.requests.Get(id).Results)
		s.requests.Delete(id)
	}
}

func (s *State) rehashMeta() { s.metaHash = metaKind.hash(&s.meta) }

// Index is that of the last entry applied.
func (s *State) Index() uint64 { return s.meta.Index }

// View returns the state as it is now. It costs the same for any size.
func (s *State) View() *View {
	s.shared = true
	v := &View{sets: s.sets, tables: tables{
		rows:       s.rows,
		meta:       s.meta,
		metaHash:   s.metaHash,
		raised:     s.raised,
		raisedHash: s.raisedHash,
		config:     s.config,
		confHash:   s.confHash,
		parsed:     s.parsed,

		// A frozen tree shares its nodes with the living one, which copies what it changes from now on.
		names:     s.names.Freeze(),
		externals: s.externals.Freeze(),
		former:    s.former.Freeze(),
		jobStates: s.jobStates.Freeze(),
		turns:     s.turns.Freeze(),
		keyHashes: s.keyHashes.Freeze(),
		emails:    s.emails.Freeze(),
		numbers:   s.numbers.Freeze(),
		refs:      s.refs.Freeze(),

		threadOwners:  s.threadOwners.Freeze(),
		sessionHashes: s.sessionHashes.Freeze(),
		persons:       s.persons.Freeze(),
		threadRuns:    s.threadRuns.Freeze(),
	}}

	for _, row := range s.rows {
		row.freeze(&s.tables, &v.tables)
	}
	return v
}

// Hash is the state hash: equal on all nodes at an equal index.
func (t *tables) Hash() uint64 {
	sum := t.metaHash + t.confHash + t.raisedHash
	for _, row := range t.rows {
		sum += row.sum(t)
	}
	return sum
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
	Held     Code = 5 // it would take much away, and nobody has said that this is meant
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
	by    *Actor // of the changes behind an Attribute; nil: they are not audited
}
