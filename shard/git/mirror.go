package git

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/shoalsearch/shoal/clock"
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
	pool *pool

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
	listings remembered[[]Entry] // of files, by commit
}

// history reads how commits came about and how they differ.
type history struct {
	*base
	files   *files // where a file is looked at before its history
	tasks   *tasks // that go on when who asked has left
	counter counter
	authors remembered[[]Author] // by filter
	changes remembered[*Changes] // by both commits
	gone    remembered[Gone]     // by commit and path
	known   remembered[rules]    // by commit of HEAD
}

// Open returns the mirror in dir, with processes of its own; see
// [Processes.Open].
func Open(dir string) *Mirror { return NewProcesses(poolSize, clock.Now).Open(dir) }

// Open returns the mirror in dir, which need not exist before the first
// fetch. It does no I/O.
func (ps *Processes) Open(dir string) *Mirror {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // git runs elsewhere
	}
	b := &base{dir: dir, pool: newPool(dir, ps)}
	f := &files{base: b}
	u := &updater{base: b, turn: make(chan struct{}, 1)}
	m := &Mirror{
		base:    b,
		updater: u,
		copier:  &copier{u},
		files:   f,
		history: &history{base: b, files: f, tasks: newTasks()},
	}

	u.turn <- struct{}{}
	m.listings.most, m.history.changes.most = 2, 4
	return m
}

// Dir is the directory of the mirror.
func (b *base) Dir() string { return b.dir }

// Close ends the processes of the reading pool, and waits for what is still
// under way. Reading after it fails with ErrClosed.
func (m *Mirror) Close() error {
	m.tasks.close()
	m.pool.close()
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
func (b *base) git(args ...string) *command {
	return &command{dir: b.dir, args: args}
}
