package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	PoolSize = 4                // greatest number of processes of one mirror
	maxIdle  = 30 * time.Second // sweep ends a process that has been idle for that long
)

// Processes limits how many git processes answer questions about single objects, for all mirrors
// together. Starting a process takes milliseconds, asking a running one microseconds, so pools reuse
// a process for a while. If all processes are started, a caller that needs one more ends the one
// that has been idle longest.
type Processes struct {
	now func() time.Time

	free chan struct{} // a token for each process that may still be started

	mu      sync.Mutex // guards the fields below
	idle    []*CatFile // of all mirrors; the most recently used comes last
	sweeps  *time.Timer
	waiting int // callers that wait for a process
}

// NewProcesses returns Processes that allow up to limit processes at a time.
func NewProcesses(limit int, now func() time.Time) *Processes {
	ps := &Processes{now: now, free: make(chan struct{}, limit)}
	for range limit {
		ps.free <- struct{}{}
	}
	return ps
}

// Left returns how many more processes may be started.
func (ps *Processes) Left() int { return len(ps.free) }

// Pool is the processes that one mirror may use.
type Pool struct {
	dir   string
	all   *Processes
	slots chan struct{} // a token for each process that may still be used

	epoch  int  // Reset increments it: processes of an older epoch read a directory that is gone; guarded by all.mu
	closed bool // guarded by all.mu
}

// NewPool returns the pool of a mirror in a directory.
func NewPool(dir string, all *Processes) *Pool {
	p := &Pool{dir: dir, all: all, slots: make(chan struct{}, PoolSize)}
	for range PoolSize {
		p.slots <- struct{}{}
	}
	return p
}

// With calls use with a process, which only one goroutine may use. If ctx ends, it kills the process.
// If use fails before it has read all answers, it ends the process.
func (p *Pool) With(ctx context.Context, use func(*CatFile) error) error {
	select {
	case <-p.slots:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { p.slots <- struct{}{} }()

	c, err := p.take(ctx)
	if err != nil {
		return err
	}

	c.ctx = ctx
	stop := context.AfterFunc(ctx, c.kill)
	err = use(c)
	if !stop() { // the context has ended: the process is being killed
		p.all.end(c)
		return context.Cause(ctx)
	}

	// If use has not read all answers, the next caller would read them as its own.
	if err != nil && !c.Aligned {
		p.all.end(c)
		if said := c.complaint.String(); said != "" && !errors.Is(err, ErrStop) {
			return fmt.Errorf("git cat-file: %s: %w", strings.TrimSpace(removeSecrets(said, nil)), err)
		}
		return err
	}
	p.putBack(c)
	return err
}

// take returns an idle process of the mirror, or a new one.
func (p *Pool) take(ctx context.Context) (*CatFile, error) {
	ps := p.all
	ps.mu.Lock()

	if p.closed {
		ps.mu.Unlock()
		return nil, ErrClosed
	}

	// Prefer an idle process of the same mirror.
	for i := len(ps.idle) - 1; i >= 0; i-- {
		if c := ps.idle[i]; c.pool == p {
			ps.idle = slices.Delete(ps.idle, i, i+1)
			ps.mu.Unlock()
			return c, nil
		}
	}

	epoch := p.epoch
	ps.mu.Unlock()

	if err := ps.takeToken(ctx); err != nil {
		return nil, err
	}

	c := newCatFile(p.dir)
	c.pool, c.epoch = p, epoch
	return c, nil
}

// takeToken takes a token for a new process: a free one, or that of the process that has been idle
// longest, which it ends. If there is neither, it waits for a token.
func (ps *Processes) takeToken(ctx context.Context) error {
	select {
	case <-ps.free:
		return nil
	default:
	}

	ps.mu.Lock()
	if len(ps.idle) > 0 {
		old := ps.idle[0]
		ps.idle = ps.idle[1:]
		ps.mu.Unlock()
		old.end() // the caller takes over its token
		return nil
	}

	ps.waiting++ // from now on putBack ends processes, and returns their tokens
	ps.mu.Unlock()
	defer func() {
		ps.mu.Lock()
		ps.waiting--
		ps.mu.Unlock()
	}()

	select {
	case <-ps.free:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end ends a process and gives its token back.
func (ps *Processes) end(c *CatFile) {
	c.end()
	ps.free <- struct{}{}
}

// putBack makes a process idle, or ends it if makeIdle refuses.
func (p *Pool) putBack(c *CatFile) {
	if !p.makeIdle(c) {
		p.all.end(c)
	}
}

// makeIdle makes a process idle. It returns false if the process must be ended instead: its mirror
// was closed or replaced, it has unread answers, or a caller waits for a token.
func (p *Pool) makeIdle(c *CatFile) bool {
	ps := p.all
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.closed || c.epoch != p.epoch || c.hasUnreadAnswers() || ps.waiting > 0 {
		return false
	}

	c.Packs.freeBuffers()
	c.since = ps.now()
	ps.idle = append(ps.idle, c)
	if ps.sweeps == nil {
		ps.sweeps = time.AfterFunc(maxIdle, ps.sweep)
	}
	return true
}

// sweep ends the processes that have been idle for maxIdle.
func (ps *Processes) sweep() {
	ps.mu.Lock()
	limit := ps.now().Add(-maxIdle)
	old := ps.removeIdle(func(c *CatFile) bool { return !c.since.After(limit) })
	ps.sweeps = nil

	// The timer runs only while a process is idle.
	if len(ps.idle) > 0 {
		ps.sweeps = time.AfterFunc(maxIdle, ps.sweep)
	}
	ps.mu.Unlock()

	// Ending a process may take time, and others need the lock.
	for _, c := range old {
		ps.end(c)
	}
}

// removeIdle removes the idle processes for which selected returns true from ps.idle, and returns
// them. The caller must hold ps.mu.
func (ps *Processes) removeIdle(selected func(*CatFile) bool) (removed []*CatFile) {
	ps.idle = slices.DeleteFunc(ps.idle, func(c *CatFile) bool {
		if selected(c) {
			removed = append(removed, c)
			return true
		}
		return false
	})
	return removed
}

// Reset ends the idle processes of the mirror, because its directory will be replaced.
func (p *Pool) Reset() {
	p.all.mu.Lock()
	p.epoch++
	old := p.all.removeIdle(func(c *CatFile) bool { return c.pool == p })
	p.all.mu.Unlock()
	for _, c := range old {
		p.all.end(c)
	}
}

// Close ends the processes of the mirror for good.
func (p *Pool) Close() {
	p.all.mu.Lock()
	p.closed = true
	p.all.mu.Unlock()
	p.Reset()
}

// CatFile answers questions about single objects. It reads from the packs if it can. Otherwise it
// asks a `git cat-file --batch-command`, which it starts at the first such question.
type CatFile struct {
	dir       string
	ctx       context.Context // of the present caller
	Packs     objects
	cmd       *exec.Cmd // nil before the first question to git
	in        io.WriteCloser
	Out       *bufio.Reader
	complaint *tail // the end of its error output
	pool      *Pool
	epoch     int       // the epoch of pool at its start
	since     time.Time // when it became idle
	Aligned   bool      // the next byte of Out begins an answer
	Asked     int       // questions whose answers have not been read

	mu     sync.Mutex // guards the start of cmd and ending
	ending bool       // it must not be started or killed any more: its id may soon belong to another process
}

func newCatFile(dir string) *CatFile {
	return &CatFile{dir: dir, Packs: objects{dir: dir}, complaint: &tail{}, Aligned: true}
}

// start starts the process, once.
func (c *CatFile) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		return nil
	}
	if c.ending {
		return context.Cause(c.ctx) // killed before it started
	}

	k := &Command{Dir: c.dir, Args: []string{"cat-file", "--batch-command", "-z"}, Config: []string{"core.deltaBaseCacheLimit", "32m"}}

	cmd, complaint := k.newProcess(context.Background())
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}

	if _, err := k.startLimited(cmd); err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}

	if f, ok := out.(*os.File); ok {
		enlargePipe(f)
	}
	c.cmd, c.in, c.Out, c.complaint = cmd, in, bufio.NewReaderSize(out, 64<<10), complaint
	return nil
}

// kill kills the process. If it has not started yet, it never will.
func (c *CatFile) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cmd == nil:
		c.ending = true
	case !c.ending:
		killGroup(c.cmd.Process)
	}
}

// hasUnreadAnswers reports whether somebody has not read all answers of the process, so that nobody
// may ask it again.
func (c *CatFile) hasUnreadAnswers() bool { return !c.Aligned || c.Asked != 0 }

// end closes the input, at which the process exits, and waits for it. If an answer has not been
// read, it kills the process.
func (c *CatFile) end() {
	c.Packs.close()
	if c.cmd == nil {
		return
	}

	c.in.Close()
	if c.hasUnreadAnswers() {
		c.kill()
	}

	// Set ending before waiting: afterwards the id may belong to another process, which kill must not
	// hit.
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	c.cmd.Wait()
}

// ObjectInfo describes an object. Kind is empty if the object does not exist.
type ObjectInfo struct {
	OID  string
	Kind string // blob, tree, commit, tag
	Size int64
}

// Ask sends a question for each name, without waiting for the answers. verb is a command of git
// cat-file. All questions together must be shorter than 64 KiB, the size of a pipe; otherwise both
// sides would wait for each other.
func (c *CatFile) Ask(verb string, names ...string) error {
	if err := c.start(); err != nil {
		return err
	}

	c.Aligned = false
	var b bytes.Buffer
	for _, n := range names {
		b.WriteString(verb)
		b.WriteByte(' ')
		b.WriteString(n)
		b.WriteByte(0)
	}

	c.Asked += len(names)
	_, err := c.in.Write(b.Bytes())
	return err
}

// Answer reads the first line of the answer to a question:
//
//	<oid> blob 12         followed by the contents, if the question asked for them
//	name missing
//	name ambiguous
func (c *CatFile) Answer() (ObjectInfo, error) {
	line, err := c.Out.ReadString('\n')
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return ObjectInfo{}, err
	}

	c.Asked--
	line = line[:len(line)-1]

	// These two answers have no contents.
	if strings.HasSuffix(line, " missing") || strings.HasSuffix(line, " ambiguous") {
		c.Aligned = c.Asked == 0
		if strings.HasSuffix(line, " ambiguous") {
			return ObjectInfo{}, ErrAmbiguous
		}
		return ObjectInfo{}, nil
	}

	f := strings.Fields(line)
	if len(f) != 3 {
		return ObjectInfo{}, fmt.Errorf("git cat-file said %q", line)
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || size < 0 {
		return ObjectInfo{}, fmt.Errorf("git cat-file said %q", line)
	}
	return ObjectInfo{OID: f[0], Kind: f[1], Size: size}, nil
}

// Info asks for the kind and size of a named object.
func (c *CatFile) Info(name string) (ObjectInfo, error) {
	if err := c.Ask("info", name); err != nil {
		return ObjectInfo{}, err
	}
	info, err := c.Answer()
	if err == nil {
		c.Aligned = true
	}
	return info, err
}

// Contents calls read with an object and its contents. read need not read all of them. For a
// missing object, the kind is empty and there are no contents.
func (c *CatFile) Contents(name string, read func(ObjectInfo, io.Reader) error) error {
	if err := c.Live(); err != nil {
		return err
	}

	// Small objects in packs need no process.
	if info, content, ok := c.Packs.Small(name); ok {
		return read(info, bytes.NewReader(content))
	}

	if err := c.Ask("contents", name); err != nil {
		return err
	}
	info, err := c.Answer()
	if err != nil {
		return err
	}

	if info.Kind == "" {
		return read(info, bytes.NewReader(nil))
	}

	// Skip what read has not read, so that the next byte begins an answer.
	body := &io.LimitedReader{R: c.Out, N: info.Size}
	if err := read(info, body); err != nil {
		c.skipRest(body.N)
		return err
	}

	c.skipRest(body.N)
	return nil
}

// maxSkip is how many bytes skipRest reads at most; for more, starting a new process is cheaper.
const maxSkip = 4 << 20

// skipRest reads and drops the last rest bytes of an answer and its newline. If they are too many, it
// leaves Aligned false, so that With ends the process.
func (c *CatFile) skipRest(rest int64) {
	if rest > maxSkip {
		return
	}
	if _, err := io.CopyN(io.Discard, c.Out, rest+1); err == nil {
		c.Aligned = true
	}
}
