package cluster

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"

	"github.com/shoalsearch/shoal/clock"
)

// logFile is the file of the raft log and of the votes.
const logFile = "raft.db"

// store is the log and stable store of raft: raft-boltdb, with four things
// added.
//
//   - It keeps an index up to which entries are known to be committed, so
//     that a node that starts without a quorum still serves them: it travels
//     in Extensions of the last entry of the next batch, and so is written
//     with it, atomically and without another sync. (Raft's own
//     RestoreCommittedLogs is not used: it forgets the members that were
//     written to the log before that index, and waits for ever when it has
//     more entries to replay than its queue takes.)
//   - A write that the disk does not finish ends the process. A leader with
//     a stalled disk would keep its leadership for ever, since heartbeats
//     do not touch the disk.
//   - Any failed write ends it too: what raft believes to be in the log
//     would no longer be what is there.
//   - Everything has a checksum: see verify.go.
type store struct {
	*raftboltdb.BoltStore
	path      string
	committed atomic.Uint64 // to be written with the next batch
	dog       *watchdog
}

// currentTerm is the name under which raft keeps its term.
var currentTerm = []byte("CurrentTerm")

func openStore(dir string, dog *watchdog) (*store, error) {
	path := filepath.Join(dir, logFile)
	if err := readable(dir); err != nil {
		return nil, err
	}
	if err := verify(path); err != nil {
		return nil, err
	}
	b, err := raftboltdb.New(raftboltdb.Options{
		Path: path,
		BoltOptions: &bbolt.Options{
			Timeout: 5 * time.Second,
			// The list of free pages is not written with every commit, where a
			// truncated log would make it megabytes.
			NoFreelistSync: true,
			FreelistType:   bbolt.FreelistMapType,
		},
		MsgpackUseNewTimeFormat: true,
	})
	if err != nil {
		return nil, cmp.Or(faultOf(path, err), fmt.Errorf("cluster: open raft log: %w", err))
	}
	return &store{BoltStore: b, path: path, dog: dog}, nil
}

// note sets the index that is written with the next batch.
func (s *store) note(committed uint64) { s.committed.Store(committed) }

// known is the newest commit index that was written.
func (s *store) known() (uint64, error) {
	last, err := s.LastIndex()
	if err != nil || last == 0 {
		return 0, err
	}

	var l raft.Log
	committed, err := s.read(last, &l)
	if err != nil {
		return 0, err
	}

	kept, err := s.kept()
	if err != nil {
		return 0, err
	}
	// Two notes, the later one counts; neither may promise entries that the log lost.
	return min(max(committed, kept), last), nil
}

// committedKey holds the commit index of a node that was stopped in order.
const committedKey = "shoal-committed"

// keep writes the commit index on its own: no batch will follow.
func (s *store) keep() error { return s.SetUint64([]byte(committedKey), s.committed.Load()) }

// kept is the commit index of the last stop in order, 0 for none.
func (s *store) kept() (uint64, error) {
	index, err := s.GetUint64([]byte(committedKey))
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return 0, nil
	}
	return index, err
}

// read gets an entry and checks it. It returns the commit index that was
// written with it.
func (s *store) read(index uint64, l *raft.Log) (committed uint64, err error) {
	if err := s.whole(func() error { return s.BoltStore.GetLog(index, l) }); err != nil {
		return 0, err
	}
	return unsealEntry(index, l)
}

// whole reads or writes the file of the log. bbolt panics where its pages do not hang together
// any more, as when something else has written to the file: no caller could go on.
func (s *store) whole(work func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the raft log %s: its pages do not hang together: %v: %w", s.path, p, errDamaged)
			s.dog.exit(err.Error())
		}
	}()
	return work()
}

// FirstIndex implements raft.LogStore.
func (s *store) FirstIndex() (index uint64, err error) {
	err = s.whole(func() error { index, err = s.BoltStore.FirstIndex(); return err })
	return index, err
}

// LastIndex implements raft.LogStore.
func (s *store) LastIndex() (index uint64, err error) {
	err = s.whole(func() error { index, err = s.BoltStore.LastIndex(); return err })
	return index, err
}

// GetLog implements raft.LogStore. An entry that is not what was written ends
// the process: raft would take it for one that it can do without.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	_, err := s.read(index, l)
	if errors.Is(err, errDamaged) {
		s.dog.exit(err.Error())
	}
	return err
}

// StoreLog implements raft.LogStore.
func (s *store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *store) StoreLogs(logs []*raft.Log) error {
	sealed := make([]*raft.Log, len(logs))
	for i, l := range logs {
		sealed[i] = sealEntry(l, i == len(logs)-1, s.committed.Load())
	}
	return s.dog.guard("write the raft log", func() error { return s.whole(func() error { return s.BoltStore.StoreLogs(sealed) }) })
}

// DeleteRange implements raft.LogStore.
func (s *store) DeleteRange(first, last uint64) error {
	return s.dog.guard("shorten the raft log", func() error { return s.whole(func() error { return s.BoltStore.DeleteRange(first, last) }) })
}

// Set implements raft.StableStore.
func (s *store) Set(k, v []byte) error {
	return s.dog.guard("write a vote", func() error { return s.whole(func() error { return s.BoltStore.Set(k, sealValue(k, v)) }) })
}

// Get implements raft.StableStore.
func (s *store) Get(k []byte) ([]byte, error) {
	var sealed []byte
	err := s.whole(func() (err error) { sealed, err = s.BoltStore.Get(k); return err })
	if err != nil {
		return nil, err
	}
	return unsealValue(k, sealed)
}

// SetUint64 implements raft.StableStore.
func (s *store) SetUint64(k []byte, v uint64) error {
	return s.Set(k, binary.BigEndian.AppendUint64(nil, v))
}

// GetUint64 implements raft.StableStore.
func (s *store) GetUint64(k []byte) (uint64, error) {
	v, err := s.Get(k)
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("the value %s beside the raft log has %d bytes, not 8", k, len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}

// watchdog ends the process when the disk does not answer or fails.
type watchdog struct {
	limit time.Duration
	exit  func(reason string)
	took  prometheus.Observer // seconds of each write; nil: nobody looks
}

// guard runs a write. Past the limit, or when it fails, the process ends.
func (w *watchdog) guard(what string, write func() error) error {
	// A disk that hangs cannot be told to stop: the process ends, and another leads.
	timer := time.AfterFunc(w.limit, func() {
		w.exit(fmt.Sprintf("the disk took more than %v to %s", w.limit, what))
	})

	began := clock.Now()
	err := write()
	timer.Stop()

	if w.took != nil {
		observe(w.took, began)
	}

	if err != nil {
		w.exit(fmt.Sprintf("cannot %s: %v", what, err))
	}
	return err
}
