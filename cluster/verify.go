package cluster

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// A bit that the disk flipped must not enter the cluster's state: a voter would apply another entry
// than the others, send it as the leader, or vote twice in a term. So entries, votes and terms have
// a checksum. It is checked at each read, and everything is checked before raft starts. Pages of
// bbolt have no checksum; a file with inconsistent pages is refused before bbolt writes to it.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged is wrapped by errors about a damaged log or vote.
var errDamaged = errors.New("it does not have the checksum that it was written with")

// Marks at the start of Extensions: an entry with a checksum, and one that also carries the commit
// index.
const (
	plainMark  = 'k'
	commitMark = 'c'
)

// sealEntry returns a copy of an entry with its checksum. The last entry of a batch also carries
// the commit index.
func sealEntry(l *raft.Log, last bool, committed uint64) *raft.Log {
	sealed := *l // a copy, because raft shares entries with its cache
	sealed.Extensions = []byte{plainMark}
	if last {
		sealed.Extensions = binary.LittleEndian.AppendUint64([]byte{commitMark}, committed)
	}
	sealed.Extensions = binary.LittleEndian.AppendUint32(sealed.Extensions, entrySum(&sealed))
	return &sealed
}

// unsealEntry checks an entry that was read at an index, and removes the checksum. It returns the
// commit index that the entry carries, or 0.
func unsealEntry(index uint64, l *raft.Log) (committed uint64, err error) {
	ext := l.Extensions
	n := len(ext) - crc32.Size
	ok := n == 1 && ext[0] == plainMark || n == 9 && ext[0] == commitMark
	if !ok || l.Index != index {
		return 0, fmt.Errorf("entry %d of the raft log: %w", index, errDamaged)
	}

	// The checksum covers the mark, but not itself.
	l.Extensions = ext[:n]
	if entrySum(l) != binary.LittleEndian.Uint32(ext[n:]) {
		return 0, fmt.Errorf("entry %d of the raft log: %w", index, errDamaged)
	}

	if n == 9 {
		committed = binary.LittleEndian.Uint64(ext[1:])
	}
	l.Extensions = nil
	return committed, nil
}

// entrySum returns the checksum of all meaningful fields of an entry.
func entrySum(l *raft.Log) uint32 {
	var head [17]byte
	binary.LittleEndian.PutUint64(head[:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	sum := crc32.Update(0, castagnoli, head[:])
	sum = crc32.Update(sum, castagnoli, l.Data)
	return crc32.Update(sum, castagnoli, l.Extensions)
}

// sealValue appends a checksum to the value of a key.
func sealValue(key, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	return binary.LittleEndian.AppendUint32(append(make([]byte, 0, len(value)+crc32.Size), value...), sum)
}

// unsealValue checks a value and removes its checksum.
func unsealValue(key, sealed []byte) ([]byte, error) {
	n := len(sealed) - crc32.Size
	if n < 0 || string(sealValue(key, sealed[:n])) != string(sealed) {
		return nil, fmt.Errorf("the value %s beside the raft log: %w", key, errDamaged)
	}
	return sealed[:n], nil
}

// verifyLogFile reads the whole log file before bbolt may write to it: the two heads, the tree of pages,
// and every entry and value. There must be no gap between entries.
func verifyLogFile(path string) (err error) {
	defer func() {
		if fault := faultOf(path, err); fault != nil {
			err = fault
		} else if err != nil {
			err = fmt.Errorf("cluster: the raft log %s is damaged: %s: %w", path, startAnew, err)
		}
	}()
	if exists, err := verifyHeads(path); err != nil || !exists {
		return err
	}
	if err := verifyPages(path); err != nil {
		return err
	}
	// A flipped bit in a pointer may lead outside of the file.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	empty, err := verifyTree(path)
	if err != nil || empty {
		return err
	}
	return verifyEntries(path)
}

// verifyTree checks the pages, that the log has no gap, and the values beside the log. empty reports
// that nothing was ever written.
func verifyTree(path string) (empty bool, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 5 * time.Second})
	if err != nil {
		return false, err
	}
	defer db.Close()

	return empty, db.View(func(tx *bbolt.Tx) error {
		logs, values := tx.Bucket([]byte("logs")), tx.Bucket([]byte("conf")) // these names are raft-boltdb's
		if first, _ := tx.Cursor().First(); first == nil {
			empty = true // the process ended before the first write
			return nil
		}

		if logs == nil || values == nil {
			return errors.New("a part of it has another name")
		}

		if err := checkNoGaps(logs); err != nil {
			return err
		}

		err := values.ForEach(func(key, value []byte) error {
			_, err := unsealValue(key, value)
			return err
		})

		// Drain the channel: the check runs concurrently and uses the transaction.
		for broken := range tx.Check() {
			err = cmp.Or(err, broken)
		}
		return err
	})
}

// checkNoGaps returns an error if the log lacks an entry between its first and its last.
func checkNoGaps(logs *bbolt.Bucket) error {
	next := uint64(0)
	return logs.ForEach(func(key, _ []byte) error {
		if len(key) != 8 {
			return fmt.Errorf("an entry has the key %x", key)
		}

		// Keys are big-endian numbers, so they come in order.
		index := binary.BigEndian.Uint64(key)
		if next != 0 && index != next {
			return fmt.Errorf("entry %d is missing", next)
		}
		next = index + 1
		return nil
	})
}

// verifyEntries reads and checks each entry of the log.
func verifyEntries(path string) error {
	b, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: &bbolt.Options{ReadOnly: true, Timeout: 5 * time.Second}})
	if err != nil {
		return err
	}
	defer b.Close()

	// An empty log has no entries to verify.
	first, err := b.FirstIndex()
	if err != nil || first == 0 {
		return err
	}

	last, err := b.LastIndex()
	if err != nil {
		return err
	}

	for index := first; index <= last; index++ {
		var l raft.Log
		if err := b.GetLog(index, &l); err != nil {
			return fmt.Errorf("entry %d of the raft log: %w", index, err)
		}

		if _, err := unsealEntry(index, &l); err != nil {
			return err
		}
	}
	return nil
}

// bbolt has two copies of the head: a page header, then numbers and a checksum. If the newer one is
// damaged, bbolt uses the older one, and so forgets a write that others count on. A head fits into
// a disk sector, so a power cut cannot tear it.
const (
	headAt     = 16
	headSummed = 56
	headSize   = headAt + headSummed + 8
)

// verifyHeads checks both heads. exists is false for a missing or empty file, which has none.
func verifyHeads(path string) (exists bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()

	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return false, err
	}

	// The second head begins on the second page. The first head has the page size.
	at := int64(0)
	for range 2 {
		b := make([]byte, headSize)
		if _, err := f.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
			return true, err
		}

		sum := fnv.New64a()
		sum.Write(b[headAt : headAt+headSummed])
		if sum.Sum64() != binary.NativeEndian.Uint64(b[headAt+headSummed:]) {
			return true, fmt.Errorf("the head at %d: %w", at, errDamaged)
		}

		at += int64(binary.NativeEndian.Uint32(b[headAt+8:])) // page size
	}
	return true, nil
}
