package catalog

import (
	"iter"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// Thread is a conversation with a language model: who has it, where what was
// said is kept, and which node is at work on it. What was said is not here. It
// lies in sealed files, one for each turn that has ended.
type Thread struct {
	ID      string // random: whoever has that of a public thread may read it
	Owner   string // who asked, in words of who proposed it; "" for guests
	Title   []byte // sealed
	Public  bool
	Created time.Time
	Changed time.Time
	Asked   uint64 // hash of the first question with its bounds, by which it is found again
	Turns   []ThreadTurn
	Run     Run // of the turn that is being answered; without a fence there is none
}

// ThreadTurn is a question of a thread and its answer.
type ThreadTurn struct {
	File   string // SHA-256 of the sealed file, hex
	Bytes  uint32
	Events uint32 // numbers that its events took
	Failed bool   // it has no answer
}

// Run is a turn that is being answered. Its node alone has what was said so far.
type Run struct {
	Node  string
	Fence uint64 // index of the entry that let Node run it
	Since time.Time
	Lost  ThreadTurn // stands for the turn if the node is lost; its file has the question
}

// Bytes is the size of what was said.
func (h *Thread) Bytes() (n int64) {
	for _, t := range h.Turns {
		n += int64(t.Bytes)
	}
	return n
}

// Events is how many numbers the turns that have ended took.
func (h *Thread) Events() (n int) {
	for _, t := range h.Turns {
		n += int(t.Events)
	}
	return n
}

// Bounds of threads.
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

// BeginTurn lets a node answer a question, in a thread that it begins or in one
// of the same owner. Result.ID is the fence. Too many questions at once are
// refused as Held.
type BeginTurn struct {
	Thread string
	New    bool // the fields down to Asked are those of the new thread
	Owner  string
	Title  []byte
	Public bool
	Asked  uint64
	Node   string
	Lost   ThreadTurn // see Run
}

// EndTurn ends the question that is being answered: with its answer, or with
// Run.Lost where its node is lost.
type EndTurn struct {
	Thread string
	Fence  uint64
	Turn   ThreadTurn
}

// ChangeThread gives a thread another title, and shares it or takes that back.
type ChangeThread struct {
	Thread string
	Title  []byte // empty: as it is
	Public bool
}

// DeleteThread removes a thread. One that has changed since Changed stays,
// unless that is zero.
type DeleteThread struct {
	Thread  string
	Changed time.Time
}

// ForkThread makes a thread of what was said in another one.
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

	// Guests share one bound: they cannot be told from one another.
	limit := maxRunningOfOne
	if c.Owner == "" {
		limit = maxRunningGuests
	}
	if n := t.runsOf(c.Owner); n >= limit {
		return refuse(Held, "as many questions as one may ask at a time are being answered already")
	}

	old := t.threads.Get(c.Thread)
	if c.New {
		if old != nil {
			return refuse(Conflict, "there is a thread of that id already")
		}

		if no := t.roomFor(c.Thread, c.Owner, c.Title); no != nil {
			return *no
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

	// The index of this entry is the fence: a run that was given up cannot write any more.
	now := *old
	now.Run = Run{Node: c.Node, Fence: t.index, Since: t.now, Lost: c.Lost}
	now.Changed = t.now
	t.setThread(&now)
	return Result{ID: t.index}
}

// roomFor refuses a new thread where there are as many as there may be.
func (t *txn) roomFor(id, owner string, title []byte) *Result {
	no := func(code Code, why string) *Result { r := refuse(code, why); return &r }

	// Guests have one bound together, for they have no account that could be told apart.
	most := maxThreadsOfOne
	if owner == "" {
		most = maxGuestThreads
	}

	switch {
	case id == "" || len(id) > 64 || strings.ContainsRune(id+owner, 0) || len(owner) > 100 || len(title) > maxThreadTitle:
		return no(Invalid, "the thread is malformed")
	case t.threads.Len() >= maxThreads:
		return no(Conflict, "there are as many threads as a cluster may have: delete some")
	case len(t.ThreadsOf(owner)) >= most:
		return no(Conflict, "you have as many threads as one may have: delete some")
	}
	return nil
}

// runningThread is a thread whose question is being answered under a fence.
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
	old, no := t.runningThread(c.Thread, c.Fence)
	if old == nil {
		return no
	}

	if !isHash(c.Turn.File) {
		return refuse(Invalid, "what was said is not named by a SHA-256")
	}

	now := *old
	now.Run = Run{}

	// Never appended in place: views still read the old list.
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

	// When it changed stays: nothing was said in it.
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

	// It counts among the threads of who forks.
	if no := t.roomFor(c.Thread, c.Owner, c.Title); no != nil {
		return *no
	}

	// The files are shared by their hashes: what was said is copied nowhere.
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

// noteThread keeps the indexes of threads.
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

func (t *tables) runsOf(owner string) (n int) {
	for _, o := range t.threadRuns.All() {
		if o == owner {
			n++
		}
	}
	return n
}

// ThreadsOf lists those of an owner by id.
func (t *tables) ThreadsOf(owner string) (all []*Thread) {
	for id := range tree.Under(t.threadOwners.From, ownedThread(owner, "")) {
		all = append(all, t.threads.Get(id))
	}
	return all
}

// Thread returns nil when there is none of that id.
func (v *View) Thread(id string) *Thread { return v.threads.Get(id) }

// Threads goes through all of them by id.
func (v *View) Threads() iter.Seq[*Thread] { return v.threads.Records() }

// RunningThreads goes through those of which a question is being answered, by id.
func (v *View) RunningThreads() iter.Seq[*Thread] {
	return func(yield func(*Thread) bool) {
		for id := range v.threadRuns.All() {
			if !yield(v.threads.Get(id)) {
				return
			}
		}
	}
}
