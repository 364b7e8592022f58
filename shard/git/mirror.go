package git

import (
	"path/filepath"
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
// Its parts are what changes it, what reads the files of a commit, and what answers
// each kind of question about the history; all of them stand on its directory and its
// references. None knows of another but by a field. An idle
// mirror holds nothing but what [Mirror.Close] or a minute of rest gives back:
// some processes that read objects.
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
	diffBytes = 32 << 20 // of remembered differences
	pageBytes = 8 << 20  // of remembered pages of history, of blames, and of last changes
)

// Processes is what the mirrors of a node share: a bound on the processes that read
// objects, what was answered lately, and the disk that fetches may fill.
type Processes struct {
	bound  *run.Processes
	now    func() time.Time
	pages  *run.Flights[LogPage]
	blames *run.Flights[Blame]
	diffs  *run.Flights[Diff]
	lasts  *run.Flights[*LastChanges]

	counted *lru.Cache[string, together]

	disk diskRoom // for what all fetches receive
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

		counted: lru.New[string, together](pageBytes),
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
	b := &base{dir: dir, pool: run.NewPool(dir, ps.bound), now: ps.now}
	f := &files{base: b, listings: lru.New[string, []Entry](2)}
	u := &updater{base: b, disk: &ps.disk, turn: make(chan struct{}, 1)}
	tasks := run.NewTasks()
	l := newLogs(b, tasks, ps.pages)
	rules := &rulesReader{base: b, files: f, known: lru.New[string, rules](manyAnswers)}
	m := &Mirror{
		base:        b,
		updater:     u,
		copier:      &copier{u},
		files:       f,
		logs:        l,
		traces:      &traces{l},
		lasts:       &lasts{logs: l, files: f, known: ps.lasts},
		removals:    &removals{logs: l, files: f, known: lru.New[string, Gone](manyAnswers)},
		tagOrders:   &tagOrders{base: b},
		authors:     &authors{base: b, known: lru.New[string, []Author](manyAnswers), counted: ps.counted},
		rulesReader: rules,
		blames:      &blames{base: b, files: f, rules: rules, tasks: tasks, known: ps.blames},
		diffs:       &diffs{base: b, files: f, tasks: tasks, known: ps.diffs},
		comparer:    &comparer{base: b, known: lru.New[string, *Changes](4)},
	}

	u.turn <- struct{}{}
	return m
}

// Close ends the processes of the reading pool, and waits for what is still
// under way. Reading after it fails with ErrClosed.
func (m *Mirror) Close() error {
	m.logs.tasks.Close()
	m.pool.Close()
	return nil
}
