package cluster

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// machine is the thin layer between raft and the catalog: it applies what is
// committed and publishes a view after each batch.
type machine struct {
	log   *slog.Logger
	fatal func(error)
	state *catalog.State // touched by raft's apply thread only
	stuck bool           // an entry could not be applied: nothing after it may be

	view    atomic.Pointer[catalog.View]
	applied atomic.Uint64 // index of the last entry applied or skipped
	busy    atomic.Int64  // UnixNano since when a batch is being applied; 0 when idle

	mu      sync.Mutex
	changed chan struct{} // closed at the next publication
}

var (
	_ raft.BatchingFSM        = (*machine)(nil)
	_ raft.ConfigurationStore = (*machine)(nil)
)

func newMachine(log *slog.Logger, fatal func(error)) *machine {
	m := &machine{log: log, fatal: fatal, state: catalog.New(), changed: make(chan struct{})}
	m.view.Store(m.state.View())
	return m
}

// Apply implements raft.FSM. Raft uses ApplyBatch.
func (m *machine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	m.busy.Store(time.Now().UnixNano())
	defer m.busy.Store(0)
	out := make([]any, len(logs))
	last := m.applied.Load()
	for i, l := range logs {
		if l.Type == raft.LogCommand && !m.stuck {
			out[i] = m.apply(l)
		}
		if m.stuck {
			out[i] = errStuck
			continue
		}
		last = l.Index
	}
	m.publish(last)
	return out
}

// StoreConfiguration implements raft.ConfigurationStore. Having it lets raft
// take snapshots in a quiet cluster whose membership changes.
func (m *machine) StoreConfiguration(uint64, raft.Configuration) {}

var errStuck = fmt.Errorf("cluster: this version cannot apply the log")

func (m *machine) apply(l *raft.Log) any {
	e, err := catalog.DecodeEntry(l.Index, l.Data)
	if err != nil {
		m.stuck = true
		m.fatal(fmt.Errorf("cluster: this node stops, since it cannot apply what the cluster has agreed on: %w", err))
		return err
	}
	results := m.state.Apply(e)
	if m.state.Diverged() {
		m.stuck = true
		m.fatal(fmt.Errorf("cluster: this node stops, since at entry %d its catalog is not that of the leader: empty its data directory and let it join again", l.Index))
		return errStuck
	}
	return results
}

func (m *machine) publish(applied uint64) {
	m.view.Store(m.state.View())
	m.applied.Store(applied)
	m.mu.Lock()
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
}

// next returns a channel that is closed at the next publication.
func (m *machine) next() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// await waits until an index is applied.
func (m *machine) await(ctx context.Context, index uint64) error {
	for {
		next := m.next()
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
	return snapshot{m.state.View()}, nil
}

// Restore implements raft.FSM. The state changes only when the whole snapshot
// has been read and verified.
func (m *machine) Restore(r io.ReadCloser) error {
	defer r.Close()
	s, err := catalog.Load(r)
	if err != nil {
		m.log.Error("snapshot refused", "error", err)
		return err
	}
	m.state = s
	m.publish(max(s.Index(), m.applied.Load()))
	return nil
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
