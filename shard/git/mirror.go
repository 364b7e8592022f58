package git

import (
	"path/filepath"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Mirror is a bare repository on this disk with the branches and tags of a remote. [Mirror.Fetch]
// updates it, and all other methods read it. Goroutines may call all methods at the same time:
// fetches of one Mirror run one after the other, and readers do not wait for them. A directory must
// have only one Mirror.
//
// Each embedded part of a mirror has one task: updater and copier change the mirror, files reads the
// files of commits, and the other parts read the history. All of them use the directory and the
// references in base. A part that needs another part has it in a field. An idle mirror holds only
// some processes that read objects; [Mirror.Close] ends them, and so does a minute without use.
type Mirror struct {
	*base
	*updater
	*copier
	*files
	*logs
	*traces
	*lasts
	*removals
	*tagOrders
	*authors
	*rulesReader
	*blames
	*diffs
	*comparer
}

const (
	diffBytes = 32 << 20 // of cached differences
	pageBytes = 8 << 20  // of cached pages of history, of blames, and of last changes
)

// Processes is what the mirrors of a node share: a limit on the processes that read objects, caches
// of answers, and the disk space for fetches.
type Processes struct {
	bound  *run.Processes
	now    func() time.Time
	pages  *run.Flights[LogPage]
	blames *run.Flights[Blame]
	diffs  *run.Flights[Diff]
	lasts  *run.Flights[*LastChanges]

	counted *lru.Cache[string, together]

	disk diskRoom // space for what all fetches receive
}

// NewProcesses returns a Processes that runs at most limit processes at a time. All mirrors opened by
// it use the clock now.
func NewProcesses(limit int, now func() time.Time) *Processes {
	return &Processes{
		bound:  run.NewProcesses(limit, now),
		now:    now,
		pages:  run.NewFlights[LogPage](pageBytes),
		blames: run.NewFlights[Blame](pageBytes),
		diffs:  run.NewFlights[Diff](diffBytes),
		lasts:  run.NewFlights[*LastChanges](pageBytes),

		counted: lru.New[string, together](pageBytes),
	}
}

// Open returns the mirror in dir with its own Processes; see [Processes.Open].
func Open(dir string) *Mirror { return NewProcesses(run.PoolSize, clock.Now).Open(dir) }

// Open returns the mirror in dir. The directory need not exist before the first fetch. Open does no
// I/O.
func (ps *Processes) Open(dir string) *Mirror {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // git runs in another directory
	}
	b := &base{dir: dir, pool: run.NewPool(dir, ps.bound), now: ps.now}
	f := &files{base: b, listings: lru.New[string, []Entry](2)}
	u := &updater{base: b, disk: &ps.disk, turn: make(chan struct{}, 1)}
	tasks := run.NewTasks()
	l := newLogs(b, tasks, ps.pages)
	rules := &rulesReader{base: b, files: f, cached: lru.New[string, rules](maxCachedAnswers)}
	m := &Mirror{
		base:        b,
		updater:     u,
		copier:      &copier{u},
		files:       f,
		logs:        l,
		traces:      &traces{l},
		lasts:       &lasts{logs: l, files: f, cached: ps.lasts},
		removals:    &removals{logs: l, files: f, cached: lru.New[string, Gone](maxCachedAnswers)},
		tagOrders:   &tagOrders{base: b},
		authors:     &authors{base: b, lists: lru.New[string, []Author](maxCachedAnswers), counted: ps.counted},
		rulesReader: rules,
		blames:      &blames{base: b, files: f, rules: rules, tasks: tasks, cached: ps.blames},
		diffs:       &diffs{base: b, files: f, tasks: tasks, cached: ps.diffs},
		comparer:    &comparer{base: b, cached: lru.New[string, *Changes](4)},
	}

	u.turn <- struct{}{}
	return m
}

// Close ends the processes that read objects, and waits for running calls. Later reads fail with
// ErrClosed.
func (m *Mirror) Close() error {
	m.logs.tasks.Close()
	m.pool.Close()
	return nil
}
