package thread

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Log is the log of a turn on the node that answers it. One goroutine uses it.
type Log struct {
	s      *Store
	thread string
	fence  uint64
	was    uint64 // under which the copies were last written
	others []string
	count  int
	sp     *spool
	lonely time.Time // when a copy was looked for and none found
}

// ErrLost says that another node answers the question now.
var ErrLost = errors.New("another node answers this question now")

const (
	appendTime  = 3 * time.Second
	lonelyPause = 3 * time.Second
	movePause   = 100 * time.Millisecond
	shipBytes   = 4 << 20 // of one call
)

type appendRequest struct {
	Thread     string
	Fence, Was uint64
	At         int // entries before these
	Entries    [][]byte
}

type appendResponse struct {
	Stale bool
	Count int // entries that are there now; less than asked for where some are missing
}

var appendCall = call.To[appendRequest, appendResponse]("thread-append")

func (s *Store) spoolOf(thread string) *spool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.spools[thread]
	if p == nil {
		p = &spool{path: filepath.Join(s.d.Dir, "running", nameOf([]byte(thread))), shut: s.closed}
		s.spools[thread] = p
	}
	return p
}

func (s *Store) serveAppend(_ context.Context, req *appendRequest) (*appendResponse, error) {
	// The catalog may know of a newer runner before its first entry comes.
	if h := s.d.View().Thread(req.Thread); h != nil && h.Run.Fence > req.Fence {
		return &appendResponse{Stale: true}, nil
	}
	count, err := s.spoolOf(req.Thread).put(req.Fence, req.Was, req.At, req.Entries)
	if errors.Is(err, errStale) {
		return &appendResponse{Stale: true}, nil
	}
	return &appendResponse{Count: count}, err
}

// Second is the node that should have a copy of what this one does for a
// thread; "" where there is none.
func (s *Store) Second(thread string) string {
	for _, node := range s.order(s.d.View(), thread) {
		if node != s.d.Net.Self() {
			return node
		}
	}
	return ""
}

// Begin begins the log of a turn that the catalog lets this node answer.
func (s *Store) Begin(thread string, run catalog.Run) *Log {
	return &Log{s: s, thread: thread, fence: run.Fence, others: s.without(run.Copies), sp: s.spoolOf(thread)}
}

// without is nodes but this one.
func (s *Store) without(nodes []string) (others []string) {
	for _, node := range nodes {
		if node != s.d.Net.Self() {
			others = append(others, node)
		}
	}
	return others
}

// Resume goes on with the log of a turn that another node, or this one before
// it was started, has begun. The entries are all that anybody was told is safe,
// and may be more.
//
// The copies that the catalog names count, also where this node cannot reach
// them now: as long as they are named any of them may go on.
func (s *Store) Resume(ctx context.Context, thread string, run catalog.Run) (*Log, [][]byte, error) {
	l := s.Begin(thread, run)

	// From here on no other node can add to the log.
	sealed, err := l.sp.adopt(run.Fence)
	if errors.Is(err, errStale) {
		return nil, nil, ErrLost
	}
	if err != nil {
		return nil, nil, err
	}

	l.count, l.was = len(sealed), run.Fence
	entries := make([][]byte, len(sealed))
	for i, e := range sealed {
		entries[i], err = s.box.Open(ctx, e, boxEntry)
		if err != nil {
			return nil, nil, err
		}
	}
	return l, entries, nil
}

// Fence is that under which this node answers.
func (l *Log) Fence() uint64 { return l.fence }

// Append adds entries. They are safe when it returns nil: whichever copy goes
// on has them. It fails with ErrLost when another node answers the question, and
// with the error of ctx when that ends first.
func (l *Log) Append(ctx context.Context, entries ...[]byte) error {
	sealed, err := l.sealed(ctx, entries)
	if err != nil {
		return err
	}

	// Here first: a copy never has more than the node that answers.
	was := l.was
	count, err := l.sp.put(l.fence, was, l.count, sealed)
	switch {
	case errors.Is(err, errStale):
		return ErrLost
	case err != nil:
		return err
	case count != l.count+len(sealed):
		return fmt.Errorf("threads: %d entries of %d are here", count, l.count+len(sealed))
	}
	at := l.count
	l.count = count

	// The copies take it, or are replaced by others.
	whole := true
	for _, node := range l.others {
		ok, err := l.give(ctx, node, was, at, sealed)
		if err != nil {
			return err
		}
		whole = whole && ok
	}

	// A node that is alone looks for a copy from time to time only.
	l.was = l.fence
	lookedJustNow := l.s.d.Now().Sub(l.lonely) < l.s.scaled(lonelyPause)
	if whole && (len(l.others) > 0 || lookedJustNow) {
		return nil
	}
	return l.replace(ctx, whole)
}

// sealed is entries as they are written.
func (l *Log) sealed(ctx context.Context, entries [][]byte) ([][]byte, error) {
	out := make([][]byte, len(entries))
	for i, e := range entries {
		var err error
		out[i], err = l.s.box.Seal(ctx, e, boxEntry)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// give sends entries to another node. It fails only where that node knows of a
// newer runner; ok is false where it could not be asked or lacks something.
func (l *Log) give(ctx context.Context, node string, was uint64, at int, sealed [][]byte) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.s.scaled(appendTime))
	defer cancel()

	req := &appendRequest{l.thread, l.fence, was, at, sealed}
	r, err := appendCall.Ask(ctx, l.s.d.Net, node, req)
	switch {
	case err != nil:
		return false, nil
	case r.Stale:
		return false, ErrLost
	}

	// Fewer than that: it lacks something of before, and everything has to come again.
	return r.Count == at+len(sealed), nil
}

// replace finds a node for a copy, gives it everything and only then has the
// catalog name it, in place of those that there were. Where there is no other
// node, this one goes on alone; alone says that nothing has to be told then.
func (l *Log) replace(ctx context.Context, alone bool) error {
	others, err := l.copyElsewhere(ctx)
	if err != nil {
		return err
	}
	if others == nil {
		l.lonely = l.s.d.Now()
		if alone {
			return nil
		}
	}
	return l.move(ctx, others)
}

// copyElsewhere gives everything to the first other node that takes it; nil
// where there is none.
func (l *Log) copyElsewhere(ctx context.Context) ([]string, error) {
	// In the order of preference, so that others look for the copy where it is.
	for _, node := range l.s.order(l.s.d.View(), l.thread) {
		if node == l.s.d.Net.Self() {
			continue
		}

		ok, err := l.ship(ctx, node)
		if err != nil {
			return nil, err
		}
		if ok {
			return []string{node}, nil
		}
	}
	return nil, nil
}

// move has the catalog name the copies, and takes the fence of that. It tries
// until ctx ends: nothing is safe before.
func (l *Log) move(ctx context.Context, others []string) error {
	self := l.s.d.Net.Self()
	change := &catalog.MoveRun{
		Thread: l.thread,
		Fence:  l.fence,
		Node:   self,
		Copies: append([]string{self}, others...),
	}

	for {
		index, err := l.s.d.Propose(ctx, change)
		if err == nil {
			l.fence, l.others = index, others
			return nil
		}

		// Refused, since another node has the run now.
		if _, refused := catalog.Refused(err); refused {
			return ErrLost
		}

		if ctx.Err() != nil {
			return ctx.Err()
		}
		clock.Wait(ctx, movePause)
	}
}

// ship gives a node everything.
func (l *Log) ship(ctx context.Context, node string) (ok bool, err error) {
	all, err := l.sp.entries()
	if err != nil {
		return false, err
	}

	for at := 0; ; {
		// So many as fit into a call; one alone may be larger.
		n, bytes := 0, 0
		for at+n < len(all) && (n == 0 || bytes+len(all[at+n]) < shipBytes) {
			bytes += len(all[at+n])
			n++
		}

		ok, err = l.give(ctx, node, l.fence, at, all[at:at+n])
		if err != nil || !ok {
			return false, err
		}

		at += n
		if at == len(all) {
			return true, nil
		}
	}
}

// End forgets the log: what was said is in a file. The copies forget theirs
// when they find that the catalog does not name them any more.
func (l *Log) End() { l.s.drop(l.thread) }

func (s *Store) drop(thread string) {
	s.mu.Lock()
	p := s.spools[thread]
	delete(s.spools, thread)
	s.mu.Unlock()
	if p != nil {
		p.remove()
	}
}

// Close lets go of the open files. No log is read or written here afterwards.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A call of another node may still come: it must not open a file that nobody closes.
	s.closed = true
	for _, p := range s.spools {
		p.close(true)
	}
}
