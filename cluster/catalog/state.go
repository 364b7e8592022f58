package catalog

import (
	"errors"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// State is the mutable catalog. Only the goroutine that applies entries may use it; readers use
// Views.
type State struct {
	tables
	kinds  []JobRow // kinds of jobs; never changes
	sets   *sets    // views share them until repositories change
	shared bool     // a view uses sets
	hashes hashes   // after the last entries; not part of the state
	unseal Unsealer // decrypts configurations; nil: sealed ones cannot be read
	build  Build
}

// meta holds the single values of the catalog.
type meta struct {
	ClusterID  string
	Index      uint64 // of the last entry applied
	Clock      time.Time
	LastRepo   RepoID
	LastMember uint32
	Former     []string // ids of the clusters that this one was recovered from, newest last
}

// request is a remembered entry and its results, for retries.
type request struct {
	ID      [16]byte
	Index   uint64
	Results []Result
}

// Limits of remembered requests. A client gives up long before this many other writes are applied.
const (
	maxRequests = 16384
	maxReplies  = 1 << 18
)

// New returns an empty catalog by Build.New of the running program.
func New(further ...JobRow) *State {
	return newState(tableRows, slices.Concat(jobRows, further))
}

// Unseal sets the function that decrypts configurations. It must be called before the first View.
func (s *State) Unseal(open Unsealer) {
	s.unseal = open
	s.parsed = &parsed{raw: s.config.Raw, unseal: open}
}

// newState returns an empty catalog with these tables and kinds of jobs.
func newState(rows []tableRow, kinds []JobRow) *State {
	s := &State{build: ThisBuild(), kinds: kinds, sets: newSets(), tables: tables{
		rows:   rows,
		config: &Config{},

		// Indexes derived from the tables. Apply updates them; snapshots leave them out.
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
		watchOwners:   tree.New[string, struct{}](),
		watchNotices:  tree.New[string, uint64](),
		watchFeeds:    tree.New[string, string](),
	}}

	for _, row := range rows {
		row.open(&s.tables)
	}
	s.rehashMeta()
	return s
}

// Apply applies an entry and returns one result per command. An entry whose request was applied
// before changes nothing and returns the first results. Indexes must ascend.
func (s *State) Apply(e Entry) []Result {
	s.meta.Index = e.Index
	defer s.endEntry()

	// A retry of an applied entry.
	if e.Request != ([16]byte{}) {
		if old := s.requests.Get(string(e.Request[:])); old != nil {
			return old.Results
		}
	}

	// The clock of the catalog never goes back, whatever clocks the leaders have.
	if at := codec.FromMillis(codec.ToMillis(e.At)); at.After(s.meta.Clock) {
		s.meta.Clock = at
	}

	t := &txn{State: s, index: e.Index, now: s.meta.Clock, node: e.Node}
	results := make([]Result, len(e.Commands))
	for i, c := range e.Commands {
		event := t.eventOf(c)
		if results[i] = c.apply(t); event != nil && results[i].Err == nil {
			t.record(event, i)
		}
		t.applyTestCommands(c)
	}
	s.remember(e, results)
	return results
}

// applyTestCommands applies the commands that a test adds after a command.
func (t *txn) applyTestCommands(c Command) {
	if t.build.Also == nil {
		return
	}
	for _, more := range t.build.Also(t.View(), c) {
		more.apply(t)
	}
}

// TookEffect returns the index at which an applied entry changed the state. For a retry that is the
// index of the first try.
func (s *State) TookEffect(e Entry) uint64 {
	if e.Request != ([16]byte{}) {
		if first := s.requests.Get(string(e.Request[:])); first != nil {
			return first.Index
		}
	}
	return e.Index
}

// remember stores the results of an entry for its retries. It deletes the oldest beyond maxRequests
// entries or maxReplies results.
func (s *State) remember(e Entry, results []Result) {
	if e.Request == ([16]byte{}) {
		return
	}

	id := string(e.Request[:])
	s.requests.Set(id, &request{ID: e.Request, Index: e.Index, Results: results})
	s.order.Set(e.Index, id)
	s.replies += len(results)

	// Limit the results too: one entry may have a thousand.
	for s.order.Len() > maxRequests || s.replies > maxReplies {
		index, id, _ := s.order.Min()
		s.order.Delete(index)
		s.replies -= len(s.requests.Get(id).Results)
		s.requests.Delete(id)
	}
}

func (s *State) rehashMeta() { s.metaHash = metaKind.hash(&s.meta) }

// Index returns the index of the last applied entry.
func (s *State) Index() uint64 { return s.meta.Index }

// View returns the present state as a View. The cost does not depend on its size.
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

		// A frozen tree shares its nodes; the living tree copies them before changing them.
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
		watchOwners:   s.watchOwners.Freeze(),
		watchNotices:  s.watchNotices.Freeze(),
		watchFeeds:    s.watchFeeds.Freeze(),
	}}

	for _, row := range s.rows {
		row.freeze(&s.tables, &v.tables)
	}
	return v
}

// Hash returns the state hash, which is equal on all nodes at an equal index.
func (t *tables) Hash() uint64 {
	sum := t.metaHash + t.confHash + t.raisedHash
	for _, row := range t.rows {
		sum += row.sum(t)
	}
	return sum
}

// Refusal tells why a command changed nothing.
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
	Held     Code = 5 // it would remove much, and nobody has confirmed that
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

// txn is an entry that is being applied.
type txn struct {
	*State
	index uint64
	now   time.Time
	node  string
	by    *Actor // actor named by an Attribute; nil: the commands are not audited
}
