package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// machine connects raft and the catalog: it applies committed entries and publishes a view after
// each batch.
type machine struct {
	log       *slog.Logger
	fatal     func(error)
	onApplied func(committed uint64) // called with the index applied

	applyMu sync.Mutex // guards state: raft's apply thread and the replay at the start change it
	state   *catalog.State
	build   catalog.Build
	stuck   error // why an entry could not be applied; no later entry may be applied; nil: none
	newer   error // why a snapshot could not be applied: its level is too new; nil: none

	suspected bool          // the majority has another state
	differs   chan struct{} // has a value once suspected is set

	view    atomic.Pointer[catalog.View]
	applied atomic.Uint64             // index of the last entry applied or skipped
	bytes   atomic.Int64              // applied since the start
	busy    atomic.Pointer[time.Time] // when the present batch began; nil when idle

	unseal catalog.Unsealer // decrypts configurations; nil: sealed ones cannot be read

	loop     restoreLoop
	duration prometheus.Observer // seconds per batch; may be nil

	mu      sync.Mutex
	changed chan struct{} // closed at the next publication
}

var (
	_ raft.BatchingFSM        = (*machine)(nil)
	_ raft.ConfigurationStore = (*machine)(nil)
)

func newMachine(log *slog.Logger, build catalog.Build, fatal func(error), onApplied func(uint64)) *machine {
	m := &machine{log: log, build: build, fatal: fatal, onApplied: onApplied, state: build.New(), changed: make(chan struct{}), differs: make(chan struct{}, 1)}
	m.view.Store(m.state.View())
	return m
}

// unsealWith sets the function that decrypts configurations. It must be called before anything is
// applied.
func (m *machine) unsealWith(open catalog.Unsealer) {
	m.unseal = open
	m.state.Unseal(open)
	m.view.Store(m.state.View())
}

// Apply implements raft.FSM. Raft uses ApplyBatch.
func (m *machine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()

	began := clock.Now()
	m.busy.Store(&began)
	defer m.busy.Store(nil)

	if m.duration != nil {
		defer func() { observe(m.duration, began) }()
	}

	out := make([]any, len(logs))
	last := m.applied.Load()
	for i, l := range logs {
		out[i] = m.applyOnce(l)
		if m.stuck == nil {
			last = max(last, l.Index)
		}
	}

	// Publish before raft answers: a caller must see the results in the view.
	m.loop.applied(last)
	m.publish(last)
	m.onApplied(last)
	return out
}

// applyOnce applies an entry of raft's log, unless the state already includes it, by a replay or a
// snapshot.
func (m *machine) applyOnce(l *raft.Log) any {
	if m.stuck != nil {
		return errStuck
	}
	if l.Type != raft.LogCommand || l.Index <= m.state.Index() {
		return nil
	}
	return m.applyEntry(l)
}

// replay applies the entries up to upto, which are known to be committed. Raft delivers them again
// when it learns of the commit from a leader.
func (m *machine) replay(logs raft.LogStore, upto uint64) error {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	return m.replayLocked(logs, upto)
}

// replayLocked implements replay. The caller holds applyMu.
func (m *machine) replayLocked(logs raft.LogStore, upto uint64) error {
	first, err := logs.FirstIndex()
	if err != nil {
		return fmt.Errorf("cluster: read raft log: %w", err)
	}

	from := m.state.Index() + 1

	// Nothing to apply, or the log begins after the end of the state.
	if upto < from || first == 0 || first > from {
		return nil
	}

	for index := from; index <= upto; index++ {
		var l raft.Log
		if err := logs.GetLog(index, &l); err != nil {
			return fmt.Errorf("cluster: read entry %d of the raft log: %w", index, err)
		}
		if m.applyOnce(&l); m.stuck != nil {
			return m.stuck
		}
	}

	m.publish(max(upto, m.applied.Load()))
	m.onApplied(upto)
	return nil
}

// StoreConfiguration implements raft.ConfigurationStore. Its presence lets raft take snapshots in a
// quiet cluster whose membership changes.
func (m *machine) StoreConfiguration(uint64, raft.Configuration) {}

var errStuck = fmt.Errorf("cluster: this version cannot apply the log")

// applyEntry applies one log entry to the catalog.
func (m *machine) applyEntry(l *raft.Log) any {
	e, err := catalog.DecodeEntry(l.Index, l.Data)
	if err != nil {
		return m.stopApplying(unable(err))
	}

	// Count bytes, by which snapshots are triggered.
	m.bytes.Add(int64(len(l.Data)))
	results := m.state.Apply(e)

	// The entry may have raised the level beyond what this program knows.
	if err := m.state.Unable(); err != nil {
		return m.stopApplying(unable(err))
	}

	// The node keeps its diverged state until it has fetched another: see differ.go.
	if m.state.Diverged() && !m.suspected {
		m.log.Error("the catalog of this node differs from that of the majority of the nodes", "entry", l.Index)
		m.markSuspectLocked()
	}
	return outcome{m.state.TookEffect(e), results}
}

// stopApplying prevents any further entry from being applied.
func (m *machine) stopApplying(why error) error {
	m.stuck = why
	m.fatal(why)
	return errStuck
}

// outcome is the outcome of an entry, with the index at which it took effect. For a retry that is the
// index of the first try.
type outcome struct {
	index   uint64
	results []catalog.Result
}

// publish makes the state visible to readers.
func (m *machine) publish(applied uint64) {
	m.view.Store(m.state.View())
	m.applied.Store(applied)

	// Wake up the waiters after the new view is in place.
	m.mu.Lock()
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
}

// nextChange returns a channel that is closed at the next publication.
func (m *machine) nextChange() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// await waits until an index is applied.
func (m *machine) await(ctx context.Context, index uint64) error {
	for {
		next := m.nextChange()
		if m.applied.Load() >= index {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return fmt.Errorf("cluster: wait for entry %d: %w", index, ctx.Err())
		}
	}
}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	return snapshot{m.state.View()}, nil
}

// Restore implements raft.FSM. It changes the state only after the whole snapshot was read and
// verified.
func (m *machine) Restore(r io.ReadCloser) error {
	defer r.Close()
	s, err := m.build.Load(r)
	if err != nil {
		m.log.Error("snapshot refused", "error", err)
		if why := unable(err); errors.Is(why, ErrRefused) {
			m.applyMu.Lock()
			m.newer = why
			m.applyMu.Unlock()
			m.fatal(why)
		}
		return err
	}

	// From here on nothing can fail: readers see the old state or the new one.
	m.applyMu.Lock()
	defer m.applyMu.Unlock()

	s.Unseal(m.unseal)
	m.state, m.suspected = s, false
	m.publish(max(s.Index(), m.applied.Load()))
	m.loop.restored(s.Index())
	return nil
}

// markSuspect records that the majority has another state, so that the arbiter replaces this one.
func (m *machine) markSuspect() {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	m.markSuspectLocked()
}

// markSuspectLocked implements markSuspect. The caller holds applyMu.
func (m *machine) markSuspectLocked() {
	m.suspected = true
	select {
	case m.differs <- struct{}{}:
	default: // already signalled
	}
}

// differing reports whether the majority has another state.
func (m *machine) differing() bool {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	return m.suspected
}

// hashAt returns the state hash after an entry, if it is still known.
func (m *machine) hashAt(index uint64) (hash uint64, known bool) {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	return m.state.HashAt(index)
}

// replaceState replaces the state by s, and applies to s the later entries that this node had
// applied. It returns views of the old and the new state, both after the same entry.
func (m *machine) replaceState(s *catalog.State, logs raft.LogStore) (before, after *catalog.View, err error) {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	old := m.state
	if s.Index() > old.Index() {
		return nil, nil, fmt.Errorf("cluster: the state is of entry %d, and this node has applied %d", s.Index(), old.Index())
	}

	s.Unseal(m.unseal)
	m.state, m.suspected = s, false
	if err = m.replayLocked(logs, old.Index()); err == nil && m.state.Index() < old.Index() {
		err = errors.New("cluster: the log does not have the entries since the state of the leader")
	}
	if err != nil {
		m.state, m.suspected = old, true
		return nil, nil, err
	}
	m.publish(m.applied.Load())
	return old.View(), m.state.View(), nil
}

type snapshot struct{ view *catalog.View }

// Persist implements raft.FSMSnapshot.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.view.Save(sink); err != nil {
		sink.Cancel()
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s snapshot) Release() {}
