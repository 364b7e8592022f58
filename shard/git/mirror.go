package git

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/shoalsearch/shoal/node/clock"
)

// Mirror is one bare repository on this disk: the branches and tags of a
// remote, kept by [Mirror.Fetch] and read by everything else. All methods may
// be called at the same time; fetches of one Mirror take turns, and readers
// are not blocked by them. There must be one Mirror for a directory.
//
// An idle mirror holds nothing but what [Mirror.Close] or a minute of rest
// gives back: some processes that read objects.
type Mirror struct {
	dir  string
	turn chan struct{} // holds one token: whoever has it may change the mirror
	pool *pool

	tasks    *tasks
	counter  counter
	authors  remembered[[]Author] // by filter
	listings remembered[[]Entry]  // of files, by commit
	changes  remembered[*Changes] // by both commits

	mu      sync.Mutex // guards the fields below
	state   *refState  // of the last look at the references; nil when unknown
	fetched uint64     // how often they have changed
	swept   bool       // leftovers of a killed process are gone
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
	m := &Mirror{dir: dir, turn: make(chan struct{}, 1), tasks: newTasks()}
	m.turn <- struct{}{}
	m.pool = newPool(dir, ps)
	m.listings.most, m.changes.most = 2, 4
	return m
}

// Dir is the directory of the mirror.
func (m *Mirror) Dir() string { return m.dir }

// Close ends the processes of the reading pool, and waits for what is still
// under way. Reading after it fails with ErrClosed.
func (m *Mirror) Close() error {
	m.tasks.close()
	m.pool.close()
	return nil
}

// acquire waits for the right to change the mirror.
func (m *Mirror) acquire(ctx context.Context) (release func(), err error) {
	select {
	case <-m.turn:
		return func() { m.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// git is a command in the mirror.
func (m *Mirror) git(args ...string) *command {
	return &command{dir: m.dir, args: args}
}
