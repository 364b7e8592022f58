package catalog

import (
	"iter"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// Thread is a conversation with a language model: its owner, the files with its text, and the node
// that answers now. The text itself lies in sealed files, one per ended turn.
type Thread struct {
	ID      string // random; knowing the id of a public thread suffices to read it
	Owner   string // who asked, in the proposer's notation; "" for guests
	Title   []byte // sealed
	Public  bool
	Created time.Time
	Changed time.Time
	Asked   uint64 // hash of the first question and its bounds, to find the thread again
	Turns   []ThreadTurn
	Run     Run // the turn that is being answered; Fence 0: none
}

// ThreadTurn is a question of a thread and its answer.
type ThreadTurn struct {
	File   string // SHA-256 of the sealed file, hex
	Bytes  uint32
	Events uint32 // count of event numbers that the turn used
	Failed bool   // it has no answer
}

// Run is a turn that is being answered. Only its node has the text so far.
type Run struct {
	Node  string
	Fence uint64 // index of the entry that began the run
	Since time.Time
	Lost  ThreadTurn // the turn to store if the node is lost; its file has the question
}

// Bytes returns the size of all turns.
func (h *Thread) Bytes() (n int64) {
	for _, t := range h.Turns {
		n += int64(t.Bytes)
	}
	return n
}

// Events returns the count of event numbers that ended turns used.
func (h *Thread) Events() (n int) {
	for _, t := range h.Turns {
		n += int(t.Events)
	}
	return n
}

// Limits of threads.
const (
	maxThreads       = 100_000
	maxThreadsOfOne  = 500
	maxGuestThreads  = 5_000
	maxThreadTurns   = 200
	maxThreadBytes   = 8 << 20
	maxThreadTitle   = 1 << 10
	maxRunningOfOne  = 3
	maxRunningGuests = 4
)

// BeginTurn lets a node answer a question, in a new thread or in one of the same owner. Result.ID
// is the fence. It is refused as Held if the owner asks too much at once.
type BeginTurn struct {
	Thread string
	New    bool // the fields down to Asked describe a new thread
	Owner  string
	Title  []byte
	Public bool
	Asked  uint64
	Node   string
	Lost   ThreadTurn // see Run
}

// EndTurn ends a running turn: with its answer, or with Run.Lost if its node is lost.
type EndTurn struct {
	Thread string
	Fence  uint64
	Turn   ThreadTurn
}

// ChangeThread sets the title of a thread and whether it is public.
type ChangeThread struct {
	Thread string
	Title  []byte // empty: no change
	Public bool
}

// DeleteThread removes a thread. It is refused if the thread has changed after Changed, unless
// Changed is zero.
type DeleteThread struct {
	Thread  string
	Changed time.Time
}

// ForkThread copies the turns of a thread into a new one.
type ForkThread struct {
	From   string
	Thread string
	Owner  string
	Title  []byte
	Public bool
}

func (c *BeginTurn) apply(t *txn) Result {
	if c.Node == "" || !isHash(c.Lost.File) {
		return refuse(Invalid, "a question has a node that answers it and a file")
	}

	// All guests share one limit, because they cannot be distinguished.
	limit := maxRunningOfOne
	if c.Owner == "" {
		limit = maxRunningGuests
	}
	if n := t.countRuns(c.Owner); n >= limit {
		return refuse(Held, "as many questions as one may ask at a time are being answered already")
	}

	old := t.threads.Get(c.Thread)
	if c.New {
		if old != nil {
			return refuse(Conflict, "there is a thread of that id already")
		}

		if refusal := t.refuseIfFull(c.Thread, c.Owner, c.Title); refusal != nil {
			return *refusal
		}
		old = &Thread{ID: c.Thread, Owner: c.Owner, Title: c.Title, Public: c.Public, Asked: c.Asked, Created: t.now}
	}

	switch {
	case old == nil || old.Owner != c.Owner:
		return refuse(NotFound, "there is no such thread")
	case old.Run.Fence != 0:
		return refuse(Conflict, "a question of this thread is being answered: wait for it, or stop it")
	case len(old.Turns) >= maxThreadTurns || old.Bytes() >= maxThreadBytes:
		return refuse(Conflict, "this thread is as long as one may be: begin another")
	}

	// The entry's index is the fence: a run that was given up can no longer write.
	now := *old
	now.Run = Run{Node: c.Node, Fence: t.index, Since: t.now, Lost: c.Lost}
	now.Changed = t.now
	t.setThread(&now)
	return Result{ID: t.index}
}

// refuseIfFull returns a refusal if a new thread is malformed or would exceed a limit; else nil.
func (t *txn) refuseIfFull(id, owner string, title []byte) *Result {
	refusal := func(code Code, why string) *Result { r := refuse(code, why); return &r }

	// All guests share one limit: they have no account.
	maxThreadsOf := maxThreadsOfOne
	if owner == "" {
		maxThreadsOf = maxGuestThreads
	}

	switch {
	case id == "" || len(id) > 64 || strings.ContainsRune(id+owner, 0) || len(owner) > 100 || len(title) > maxThreadTitle:
		return refusal(Invalid, "the thread is malformed")
	case t.threads.Len() >= maxThreads:
		return refusal(Conflict, "there are as many threads as a cluster may have: delete some")
	case len(t.ThreadsOf(owner)) >= maxThreadsOf:
		return refusal(Conflict, "you have as many threads as one may have: delete some")
	}
	return nil
}

// runningThread returns a thread whose turn runs under this fence, or a refusal.
func (t *txn) runningThread(id string, fence uint64) (*Thread, Result) {
	h := t.threads.Get(id)
	switch {
	case h == nil:
		return nil, refuse(NotFound, "there is no such thread")
	case fence == 0 || h.Run.Fence != fence:
		return nil, refuse(Stale, "this question has ended")
	}
	return h, Result{}
}

func (c *EndTurn) apply(t *txn) Result {
	old, refusal := t.runningThread(c.Thread, c.Fence)
	if old == nil {
		return refusal
	}

	if !isHash(c.Turn.File) {
		return refuse(Invalid, "what was said is not named by a SHA-256")
	}

	now := *old
	now.Run = Run{}

	// Copy on append: views still read the old list.
	now.Turns = append(now.Turns[:len(now.Turns):len(now.Turns)], c.Turn)
	now.Changed = t.now
	t.setThread(&now)
	return Result{ID: t.index}
}

func (c *ChangeThread) apply(t *txn) Result {
	old := t.threads.Get(c.Thread)
	switch {
	case old == nil:
		return refuse(NotFound, "there is no such thread")
	case len(c.Title) > maxThreadTitle:
		return refuse(Invalid, "the title is too long")
	}

	// Changed stays: no turn was added.
	now := *old
	if now.Public = c.Public; len(c.Title) > 0 {
		now.Title = c.Title
	}
	t.setThread(&now)
	return Result{ID: t.index}
}

func (c *DeleteThread) apply(t *txn) Result {
	old := t.threads.Get(c.Thread)
	if old == nil {
		return refuse(NotFound, "there is no such thread")
	}
	if !c.Changed.IsZero() && !old.Changed.Equal(c.Changed) {
		return refuse(Stale, "the thread has changed meanwhile")
	}
	t.threads.Delete(old.ID)
	t.threadOwners.Delete(ownedThread(old.Owner, old.ID))
	t.threadRuns.Delete(old.ID)
	return Result{ID: t.index}
}

func (c *ForkThread) apply(t *txn) Result {
	from := t.threads.Get(c.From)
	switch {
	case from == nil:
		return refuse(NotFound, "there is no such thread")
	case t.threads.Get(c.Thread) != nil:
		return refuse(Conflict, "there is a thread of that id already")
	case len(from.Turns) == 0:
		return refuse(Conflict, "nothing has been answered in this thread yet")
	}

	// It counts against the limit of the new owner.
	if refusal := t.refuseIfFull(c.Thread, c.Owner, c.Title); refusal != nil {
		return *refusal
	}

	// The new thread refers to the same files, so no text is copied.
	t.setThread(&Thread{
		ID:      c.Thread,
		Owner:   c.Owner,
		Title:   c.Title,
		Public:  c.Public,
		Created: t.now,
		Changed: t.now,
		Turns:   from.Turns,
	})
	return Result{ID: t.index}
}

func (t *txn) setThread(h *Thread) {
	t.threads.Set(h.ID, h)
	t.noteThread(h)
}

// noteThread updates the indexes of threads.
func (s *State) noteThread(h *Thread) {
	s.threadOwners.Set(ownedThread(h.Owner, h.ID), struct{}{})
	if h.Run.Fence != 0 {
		s.threadRuns.Set(h.ID, h.Owner)
	} else {
		s.threadRuns.Delete(h.ID)
	}
}

func (s *State) indexThread(h *Thread) error {
	s.noteThread(h)
	return nil
}

func ownedThread(owner, id string) string { return owner + "\x00" + id }

// countRuns returns how many questions of an owner are being answered.
func (t *tables) countRuns(owner string) (n int) {
	for _, o := range t.threadRuns.All() {
		if o == owner {
			n++
		}
	}
	return n
}

// ThreadsOf returns the threads of an owner, by id.
func (t *tables) ThreadsOf(owner string) (all []*Thread) {
	for id := range tree.Under(t.threadOwners.From, ownedThread(owner, "")) {
		all = append(all, t.threads.Get(id))
	}
	return all
}

// Thread returns the thread with an id, or nil.
func (v *View) Thread(id string) *Thread { return v.threads.Get(id) }

// Threads iterates over all threads by id.
func (v *View) Threads() iter.Seq[*Thread] { return v.threads.Records() }

// RunningThreads iterates over threads with a running turn, by id.
func (v *View) RunningThreads() iter.Seq[*Thread] {
	return func(yield func(*Thread) bool) {
		for id := range v.threadRuns.All() {
			if !yield(v.threads.Get(id)) {
				return
			}
		}
	}
}
