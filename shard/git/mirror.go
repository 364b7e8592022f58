package git

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Mirror is one bare repository on this disk: the branches and tags of a
// remote, kept by [Mirror.Fetch] and read by everything else. All methods may
// be called at the same time; fetches of one Mirror take turns, and readers
// are not blocked by them. There must be one Mirror for a directory.
//
// Its parts are what changes it, what reads the files of a commit, and what reads
// the history; all of them stand on its directory and its references. An idle
// mirror holds nothing but what [Mirror.Close] or a minute of rest gives back:
// some processes that read objects.
type Mirror struct {
	*base
	*updater
	*copier
	*files
	*history
}

// base is the directory of a mirror and what its references say.
type base struct {
	dir  string
	pool *run.Pool
	all  *Processes // those of the pool are among them

	mu      sync.Mutex // guards the fields below
	state   *refState  // of the last look at the references; nil when unknown
	fetched uint64     // how often they have changed
}

// updater changes a mirror.
type updater struct {
	*base
	turn  chan struct{} // holds one token: whoever has it may change the mirror
	swept atomic.Bool   // leftovers of a killed process are gone
}

// copier gives a mirror to another node, and takes one from there.
type copier struct{ *updater }

// files reads what is in the files of commits.
type files struct {
	*base
	listings *lru.Cache[string, []Entry] // of files, by commit
}

// history reads how commits came about and how they differ.
type history struct {
	*base
	files   *files     // where a file is looked at before its history
	tasks   *run.Tasks // that go on when who asked has left
	counter counter
	authors *lru.Cache[string, []Author] // by filter
	changes *lru.Cache[string, *Changes] // by both commits
	gone    *lru.Cache[string, Gone]     // by commit and path
	known   *lru.Cache[string, rules]    // by commit of HEAD
}

// keptAnswers is how many answers of most kinds a mirror remembers.
const keptAnswers = 64

const (
	diffBytes = 32 << 20 // of remembered differences
	pageBytes = 8 << 20  // of remembered pages of history, of blames, and of last changes
)

// Processes is what the mirrors of a node share: a bound on the processes that read
// objects, what was answered lately, and the disk that fetches may fill.
type Processes struct {
	bound *run.Processes
	now   func() time.Time

	pages  *run.Flights[LogPage]      // of history with a filter: the same words are asked for again and again
	blames *run.Flights[Blame]        // who reads a blame comes back to it
	diffs  *run.Flights[Diff]         // what was compared lately: who reads a part of a difference often reads on
	lasts  *run.Flights[*LastChanges] // a directory is come back to again and again
	disk   diskRoom                   // for what all fetches receive
}

// NewProcesses allows so many processes at a time. now is the clock of
// everything that is read through them.
func NewProcesses(most int, now func() time.Time) *Processes {
	return &Processes{
		bound:  run.NewProcesses(most, now),
		now:    now,
		pages:  run.NewFlights[LogPage](pageBytes),
		blames: run.NewFlights[Blame](pageBytes),
		diffs:  run.NewFlights[Diff](diffBytes),
		lasts:  run.NewFlights[*LastChanges](pageBytes),
	}
}

// Open returns the mirror in dir, with processes of its own; see
// [Processes.Open].
func Open(dir string) *Mirror { return NewProcesses(run.PoolSize, clock.Now).Open(dir) }

// Open returns the mirror in dir, which need not exist before the first
// fetch. It does no I/O.
func (ps *Processes) Open(dir string) *Mirror {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // git runs elsewhere
	}
	b := &base{dir: dir, pool: run.NewPool(dir, ps.bound), all: ps}
	f := &files{base: b, listings: lru.New[string, []Entry](2)}
	u := &updater{base: b, turn: make(chan struct{}, 1)}
	m := &Mirror{
		base:    b,
		updater: u,
		copier:  &copier{u},
		files:   f,
		history: &history{
			base:    b,
			files:   f,
			tasks:   run.NewTasks(),
			counter: counter{known: lru.New[string, int](keptAnswers), running: map[string]chan struct{}{}},
			authors: lru.New[string, []Author](keptAnswers),
			changes: lru.New[string, *Changes](4),
			gone:    lru.New[string, Gone](keptAnswers),
			known:   lru.New[string, rules](keptAnswers),
		},
	}

	u.turn <- struct{}{}
	return m
}

// Dir is the directory of the mirror.
func (b *base) Dir() string { return b.dir }

// Close ends the processes of the reading pool, and waits for what is still
// under way. Reading after it fails with ErrClosed.
func (m *Mirror) Close() error {
	m.tasks.Close()
	m.pool.Close()
	return nil
}

// acquire waits for the right to change the mirror.
func (u *updater) acquire(ctx context.Context) (release func(), err error) {
	select {
	case <-u.turn:
		return func() { u.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// git is a command in the mirror.
func (b *base) git(args ...string) *run.Command {
	return &run.Command{Dir: b.dir, Args: args}
}

// reader reads single objects, and trees.
type reader struct{ *run.CatFile }

// with lends a reader to use, for use in one goroutine; see [run.Pool.With].
func (b *base) with(ctx context.Context, use func(reader) error) error {
	return b.pool.With(ctx, func(c *run.CatFile) error { return use(reader{c}) })
}
