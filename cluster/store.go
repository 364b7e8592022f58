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

// store is the log and stable store of raft: raft-boltdb with four additions.
//
//   - It stores an index up to which entries are known to be committed, so that a
//     node that starts without a quorum can still serve them. The index travels in
//     Extensions of the last entry of the next batch, and needs no sync of its own.
//     (Raft's RestoreCommittedLogs is not used: it forgets the members written
//     before that index, and hangs if it must replay more entries than its queue
//     takes.)
//   - A write that the disk does not finish ends the process. A leader with a
//     stalled disk would keep its leadership for ever, since heartbeats do not
//     touch the disk.
//   - Any failed write ends the process, too: the log would no longer be what raft
//     believes.
//   - Everything has a checksum: see verify.go.
type store struct {
	*raftboltdb.BoltStore
	path      string
	committed atomic.Uint64 // commit index for the next batch
	dog       *watchdog
}

// currentTerm is the key under which raft stores its term.
var currentTerm = []byte("CurrentTerm")

// openStore checks the log file and opens it.
func openStore(dir string, dog *watchdog) (*store, error) {
	path := filepath.Join(dir, logFile)
	if err := checkReadable(dir); err != nil {
		return nil, err
	}
	if err := verifyLogFile(path); err != nil {
		return nil, err
	}
	b, err := raftboltdb.New(raftboltdb.Options{
		Path: path,
		BoltOptions: &bbolt.Options{
			Timeout: 5 * time.Second,
			// Do not write the list of free pages with every commit: after a truncation of the log
			// it has megabytes.
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

// setCommit sets the commit index for the next batch.
func (s *store) setCommit(committed uint64) { s.committed.Store(committed) }

// knownCommit returns the newest commit index that was written.
func (s *store) knownCommit() (uint64, error) {
	last, err := s.LastIndex()
	if err != nil || last == 0 {
		return 0, err
	}

	var l raft.Log
	committed, err := s.readEntry(last, &l)
	if err != nil {
		return 0, err
	}

	saved, err := s.savedCommit()
	if err != nil {
		return 0, err
	}
	// Take the later of both, but never more than the log still has.
	return min(max(committed, saved), last), nil
}

// committedKey is the key of the commit index at the last clean stop.
const committedKey = "shoal-committed"

// saveCommit writes the commit index without a batch.
func (s *store) saveCommit() error { return s.SetUint64([]byte(committedKey), s.committed.Load()) }

// savedCommit returns the commit index of the last clean stop, or 0.
func (s *store) savedCommit() (uint64, error) {
	index, err := s.GetUint64([]byte(committedKey))
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return 0, nil
	}
	return index, err
}

// readEntry reads and checks an entry. It returns the commit index that was written with it.
func (s *store) readEntry(index uint64, l *raft.Log) (committed uint64, err error) {
	if err := s.guardPages(func() error { return s.BoltStore.GetLog(index, l) }); err != nil {
		return 0, err
	}
	return unsealEntry(index, l)
}

// guardPages runs a read or write of the log file. bbolt panics on damaged pages, as when another
// program has written to the file. Then the process exits: no caller could continue.
func (s *store) guardPages(work func() error) (err error) {
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
	err = s.guardPages(func() error { index, err = s.BoltStore.FirstIndex(); return err })
	return index, err
}

// LastIndex implements raft.LogStore.
func (s *store) LastIndex() (index uint64, err error) {
	err = s.guardPages(func() error { index, err = s.BoltStore.LastIndex(); return err })
	return index, err
}

// GetLog implements raft.LogStore. A damaged entry ends the process: raft would carry on without
// it.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	_, err := s.readEntry(index, l)
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
	return s.dog.guard("write the raft log", func() error { return s.guardPages(func() error { return s.BoltStore.StoreLogs(sealed) }) })
}

// DeleteRange implements raft.LogStore.
func (s *store) DeleteRange(first, last uint64) error {
	return s.dog.guard("shorten the raft log", func() error { return s.guardPages(func() error { return s.BoltStore.DeleteRange(first, last) }) })
}

// Set implements raft.StableStore.
func (s *store) Set(k, v []byte) error {
	return s.dog.guard("write a vote", func() error { return s.guardPages(func() error { return s.BoltStore.Set(k, sealValue(k, v)) }) })
}

// Get implements raft.StableStore.
func (s *store) Get(k []byte) ([]byte, error) {
	var sealed []byte
	err := s.guardPages(func() (err error) { sealed, err = s.BoltStore.Get(k); return err })
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

// watchdog ends the process if the disk hangs or fails.
type watchdog struct {
	limit    time.Duration
	exit     func(reason string)
	duration prometheus.Observer // seconds per write; may be nil
}

// guard runs a write. If the write fails or takes longer than limit, the process exits. what names
// the write in the message.
func (w *watchdog) guard(what string, write func() error) error {
	// A hanging disk cannot be interrupted. End the process, so that another node leads.
	timer := time.AfterFunc(w.limit, func() {
		w.exit(fmt.Sprintf("the disk took more than %v to %s", w.limit, what))
	})

	began := clock.Now()
	err := write()
	timer.Stop()

	if w.duration != nil {
		observe(w.duration, began)
	}

	if err != nil {
		w.exit(fmt.Sprintf("cannot %s: %v", what, err))
	}
	return err
}
