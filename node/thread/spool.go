package thread

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// A spool is the log of a turn that is being answered, on one node:
//
//	for each entry: length u32 | fence u64 | sealed bytes
//
// A torn entry at the end, of a node that was killed, is as if it were not there:
// nobody was told that it is safe.
type spool struct {
	path string

	mu    sync.Mutex // guards the fields below
	shut  bool       // for good
	file  *os.File   // nil until it is used
	fence uint64     // of who wrote last
	ends  []int64    // of the entries
}

const (
	spoolHead = 12
	maxSpool  = 64 << 20 // bytes of a turn
)

// errStale says that a node with a newer fence answers the question.
var errStale = errors.New("another node answers this question")

var errShut = errors.New("threads: this node is stopping")

// open reads what is there. mu is held.
func (p *spool) openLocked() error {
	switch {
	case p.shut:
		return errShut
	case p.file != nil:
		return nil
	}

	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return fmt.Errorf("threads: %w", err)
	}

	f, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("threads: %w", err)
	}

	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}

	p.file, p.fence, p.ends = f, 0, nil

	var head [spoolHead]byte
	at := int64(0)
	for {
		if _, err := f.ReadAt(head[:], at); err != nil {
			break // the end, or a torn entry
		}

		n := int64(binary.BigEndian.Uint32(head[:]))
		if at+spoolHead+n > info.Size() {
			break
		}
		at += spoolHead + n
		p.ends = append(p.ends, at)
		p.fence = binary.BigEndian.Uint64(head[4:])
	}

	// What is torn goes: behind a shorter entry its rest would be read as one.
	if at < info.Size() {
		if err := f.Truncate(at); err != nil {
			p.file = nil
			return errors.Join(fmt.Errorf("threads: %w", err), f.Close())
		}
	}
	return nil
}

// put writes entries behind the first at ones, and drops others there. Whoever
// writes needs the newest fence; where it is a new one, was is that under which
// the same writer wrote last, or at is 0.
func (p *spool) put(fence, was uint64, at int, entries [][]byte) (count int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.openLocked(); err != nil {
		return 0, err
	}

	if fence < p.fence {
		return 0, errStale
	}

	// Where it lacks something everything has to come again.
	otherWriter := p.fence != fence && p.fence != was
	if at > len(p.ends) || at > 0 && otherWriter {
		return 0, nil
	}

	var b []byte
	start := p.end(at)
	ends := p.ends[:at:at]
	for _, e := range entries {
		b = binary.BigEndian.AppendUint32(b, uint32(len(e)))
		b = binary.BigEndian.AppendUint64(b, fence)
		b = append(b, e...)
		ends = append(ends, start+int64(len(b)))
	}
	if start+int64(len(b)) > maxSpool {
		return 0, fmt.Errorf("threads: a turn of more than %d bytes", maxSpool)
	}

	// What stood behind is dropped first: a longer file with an older tail would
	// be read as more than it is.
	if at < len(p.ends) {
		if err := p.file.Truncate(start); err != nil {
			return 0, fmt.Errorf("threads: %w", err)
		}
	}
	if _, err := p.file.WriteAt(b, start); err != nil {
		return 0, fmt.Errorf("threads: %w", err)
	}
	p.fence, p.ends = fence, ends
	return len(ends), nil
}

func (p *spool) end(at int) int64 {
	if at == 0 {
		return 0
	}
	return p.ends[at-1]
}

// adopt shuts out every writer with an older fence and returns the entries.
func (p *spool) adopt(fence uint64) ([][]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.openLocked(); err != nil {
		return nil, err
	}

	// A newer runner has written here: the one that asks runs no more.
	if fence < p.fence {
		return nil, errStale
	}

	entries, err := p.entriesLocked()
	p.fence = max(p.fence, fence)
	return entries, err
}

// entries reads all of them.
func (p *spool) entries() ([][]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.openLocked(); err != nil {
		return nil, err
	}
	return p.entriesLocked()
}

func (p *spool) entriesLocked() ([][]byte, error) {
	out := make([][]byte, len(p.ends))
	for i := range p.ends {
		from := p.end(i) + spoolHead
		out[i] = make([]byte, p.ends[i]-from)

		if _, err := p.file.ReadAt(out[i], from); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("threads: %w", err)
		}
	}
	return out, nil
}

// remove closes and deletes it.
func (p *spool) remove() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		_ = p.file.Close() // what it held is not needed
		p.file = nil
	}
	p.ends, p.fence = nil, 0
	_ = os.Remove(p.path) // a second look finds it again
}

// close lets go of the file and keeps what is in it: for good, or until it is
// used again.
func (p *spool) close(shut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = p.shut || shut
	if p.file != nil {
		_ = p.file.Close() // nothing is buffered here
		p.file = nil
	}
}
