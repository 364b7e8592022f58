package git

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
	poolSize = 4                // processes of one mirror at most
	poolRest = 30 * time.Second // after which an idle process is let go

	diffBytes = 32 << 20 // of remembered differences
	pageBytes = 8 << 20  // of remembered pages of history, of blames, and of last changes
)

// Processes bounds the git processes that answer questions about single objects,
// over all the mirrors that it opens. Starting one costs milliseconds, a question
// to one that runs microseconds. So they are kept for a while, and when there are
// too many, the one that has been idle longest is ended.
type Processes struct {
	now func() time.Time

	free   chan struct{}         // a token for each process that may still be started
	pages  flights[LogPage]      // of history with a filter: the same words are asked for again and again
	blames flights[Blame]        // who reads a blame comes back to it
	diffs  flights[Diff]         // what was compared lately: who reads a part of a difference often reads on
	lasts  flights[*LastChanges] // a directory is come back to again and again
	disk   diskRoom              // for what all fetches receive

	mu      sync.Mutex // guards the fields below
	idle    []*catFile // of all mirrors, most recently used last
	sweeps  *time.Timer
	waiting int // readers without a process
}

// NewProcesses allows so many processes at a time. now is the clock of
// everything that is read through them.
func NewProcesses(most int, now func() time.Time) *Processes {
	ps := &Processes{now: now, free: make(chan struct{}, most)}
	ps.diffs.most, ps.pages.most, ps.blames.most, ps.lasts.most = diffBytes, pageBytes, pageBytes, pageBytes
	for range most {
		ps.free <- struct{}{}
	}
	return ps
}

// pool is the part of the processes that one mirror may use.
type pool struct {
	dir   string
	all   *Processes
	slots chan struct{} // a token for each process that may still be used

	epoch int // processes of an older epoch read a directory that is gone; guarded by all.mu
	shut  bool
}

func newPool(dir string, all *Processes) *pool {
	p := &pool{dir: dir, all: all, slots: make(chan struct{}, poolSize)}
	for range poolSize {
		p.slots <- struct{}{}
	}
	return p
}

// with lends a process to use, for use in one goroutine. When ctx ends the
// process is killed; when use fails it is not used again.
func (p *pool) with(ctx context.Context, use func(*catFile) error) error {
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
	if !stop() { // the context ended: the process is being killed
		p.all.end(c)
		return context.Cause(ctx)
	}

	// Answers that nobody read would be taken for those of the next question.
	if err != nil && !c.aligned {
		p.all.end(c)
		if said := c.complaint.String(); said != "" && !errors.Is(err, errStop) {
			return fmt.Errorf("git cat-file: %s: %w", strings.TrimSpace(clean(said, nil)), err)
		}
		return err
	}
	p.put(c)
	return err
}

// take gives an idle process of the mirror, or a new one.
func (p *pool) take(ctx context.Context) (*catFile, error) {
	ps := p.all
	ps.mu.Lock()

	if p.shut {
		ps.mu.Unlock()
		return nil, ErrClosed
	}

	// An idle one of the same mirror.
	for i := len(ps.idle) - 1; i >= 0; i-- {
		if c := ps.idle[i]; c.pool == p {
			ps.idle = slices.Delete(ps.idle, i, i+1)
			ps.mu.Unlock()
			return c, nil
		}
	}

	epoch := p.epoch
	ps.mu.Unlock()

	if err := ps.room(ctx); err != nil {
		return nil, err
	}

	c := newCatFile(p.dir)
	c.pool, c.epoch = p, epoch
	return c, nil
}

// room takes a token for a new process: a free one, else that of an idle process,
// else the next that somebody gives back.
func (ps *Processes) room(ctx context.Context) error {
	select {
	case <-ps.free:
		return nil
	default:
	}

	// The one that has rested longest makes room.
	ps.mu.Lock()
	if len(ps.idle) > 0 {
		old := ps.idle[0]
		ps.idle = ps.idle[1:]
		ps.mu.Unlock()
		old.end() // its token is ours now
		return nil
	}

	ps.waiting++ // from now on nobody goes idle
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
func (ps *Processes) end(c *catFile) {
	c.end()
	ps.free <- struct{}{}
}

// put makes a process idle, or ends it when it is of no more use or others
// wait.
func (p *pool) put(c *catFile) {
	if !p.rest(c) {
		p.all.end(c)
	}
}

// rest makes a process idle. It reports false when it is to be ended.
func (p *pool) rest(c *catFile) bool {
	ps := p.all
	ps.mu.Lock()
	defer ps.mu.Unlock()

	// Of no use any more: the mirror was closed or replaced, or an answer is half read. And where
	// somebody waits, a place that is free serves him sooner than a process that rests.
	if p.shut || c.epoch != p.epoch || c.broken() || ps.waiting > 0 {
		return false
	}

	c.packs.rest()
	c.since = ps.now()
	ps.idle = append(ps.idle, c)
	if ps.sweeps == nil {
		ps.sweeps = time.AfterFunc(poolRest, ps.sweep)
	}
	return true
}

// sweep ends the processes that have rested long enough.
func (ps *Processes) sweep() {
	ps.mu.Lock()
	limit := ps.now().Add(-poolRest)
	old := ps.remove(func(c *catFile) bool { return !c.since.After(limit) })
	ps.sweeps = nil

	// The timer runs only while something rests.
	if len(ps.idle) > 0 {
		ps.sweeps = time.AfterFunc(poolRest, ps.sweep)
	}
	ps.mu.Unlock()

	// A process may take its time to end, and others want the lock.
	for _, c := range old {
		ps.end(c)
	}
}

// remove takes idle processes out. Called with ps.mu held.
func (ps *Processes) remove(which func(*catFile) bool) (out []*catFile) {
	ps.idle = slices.DeleteFunc(ps.idle, func(c *catFile) bool {
		if which(c) {
			out = append(out, c)
			return true
		}
		return false
	})
	return out
}

// reset lets go of the mirror's processes: the directory is about to be
// replaced.
func (p *pool) reset() {
	p.all.mu.Lock()
	p.epoch++
	old := p.all.remove(func(c *catFile) bool { return c.pool == p })
	p.all.mu.Unlock()
	for _, c := range old {
		p.all.end(c)
	}
}

// close ends the processes of the mirror for good.
func (p *pool) close() {
	p.all.mu.Lock()
	p.shut = true
	p.all.mu.Unlock()
	p.reset()
}

// catFile answers questions about single objects: out of the packs where it
// can, else by a `git cat-file --batch-command` that runs from the first such
// question on.
type catFile struct {
	dir       string
	ctx       context.Context // of who uses it
	packs     objects
	cmd       *exec.Cmd // nil before the first question to it
	in        io.WriteCloser
	out       *bufio.Reader
	complaint *tail
	pool      *pool
	epoch     int
	since     time.Time
	aligned   bool // the next byte of out begins an answer
	asked     int  // questions whose answer has not been read

	mu   sync.Mutex // guards the start of cmd and done
	done bool       // the process is waited for: its number may be another's soon
}

func newCatFile(dir string) *catFile {
	return &catFile{dir: dir, packs: objects{dir: dir}, complaint: &tail{}, aligned: true}
}

// start starts the process, once.
func (c *catFile) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		return nil
	}
	if c.done {
		return context.Cause(c.ctx) // killed before it began
	}

	k := &command{dir: c.dir, args: []string{"cat-file", "--batch-command", "-z"}, config: []string{"core.deltaBaseCacheLimit", "32m"}}

	cmd, complaint := k.process(context.Background())
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}

	if _, err := k.start(cmd); err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}

	if f, ok := out.(*os.File); ok {
		widen(f)
	}
	c.cmd, c.in, c.out, c.complaint = cmd, in, bufio.NewReaderSize(out, 64<<10), complaint
	return nil
}

func (c *catFile) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cmd == nil:
		c.done = true
	case !c.done:
		killGroup(c.cmd.Process)
	}
}

// broken reports whether the process can be asked no further question: an answer
// was not read to its end.
func (c *catFile) broken() bool { return !c.aligned || c.asked != 0 }

// end closes the input, which ends the process, and waits for it; one that
// is in the middle of an answer is killed.
func (c *catFile) end() {
	c.packs.close()
	if c.cmd == nil {
		return
	}

	// One that waits for a question ends with its input; one in an answer would write on.
	c.in.Close()
	if c.broken() {
		c.kill()
	}

	// Before it is waited for: its number may be another's then, which kill must not meet.
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	c.cmd.Wait()
}

// objectInfo is what an object is. kind is empty when there is none.
type objectInfo struct {
	oid  string
	kind string // blob, tree, commit, tag
	size int64
}

// ask sends questions without waiting for the answers. Their text together
// must be shorter than a pipe holds (64 KiB), or both sides would wait.
func (c *catFile) ask(verb string, names ...string) error {
	if err := c.start(); err != nil {
		return err
	}

	// Until every answer is read, the process is of no use for others.
	c.aligned = false
	var b bytes.Buffer
	for _, n := range names {
		b.WriteString(verb)
		b.WriteByte(' ')
		b.WriteString(n)
		b.WriteByte(0)
	}

	c.asked += len(names)
	_, err := c.in.Write(b.Bytes())
	return err
}

// answer reads the first line of the answer to a question:
//
//	<oid> blob 12         followed by the contents, where they were asked for
//	name missing
//	name ambiguous
func (c *catFile) answer() (objectInfo, error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return objectInfo{}, err
	}

	c.asked--
	line = line[:len(line)-1]

	// Neither has contents behind it.
	if strings.HasSuffix(line, " missing") || strings.HasSuffix(line, " ambiguous") {
		c.aligned = c.asked == 0
		if strings.HasSuffix(line, " ambiguous") {
			return objectInfo{}, ErrAmbiguous
		}
		return objectInfo{}, nil
	}

	f := strings.Fields(line)
	if len(f) != 3 {
		return objectInfo{}, fmt.Errorf("git cat-file said %q", line)
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || size < 0 {
		return objectInfo{}, fmt.Errorf("git cat-file said %q", line)
	}
	return objectInfo{oid: f[0], kind: f[1], size: size}, nil
}

// info asks what a name stands for.
func (c *catFile) info(name string) (objectInfo, error) {
	if err := c.ask("info", name); err != nil {
		return objectInfo{}, err
	}
	info, err := c.answer()
	if err == nil {
		c.aligned = true
	}
	return info, err
}

// contents asks for an object and hands what it holds to read, which need
// not read all of it. A missing object has an empty kind and no content.
func (c *catFile) contents(name string, read func(objectInfo, io.Reader) error) error {
	if err := c.live(); err != nil {
		return err
	}

	// Small objects in packs need no process.
	if info, content, ok := c.packs.small(name); ok {
		return read(info, bytes.NewReader(content))
	}

	if err := c.ask("contents", name); err != nil {
		return err
	}
	info, err := c.answer()
	if err != nil {
		return err
	}

	if info.kind == "" {
		return read(info, bytes.NewReader(nil))
	}

	// What read leaves over is skipped, so that the next answer begins where it is expected.
	body := &io.LimitedReader{R: c.out, N: info.size}
	if err := read(info, body); err != nil {
		c.skip(body.N)
		return err
	}

	c.skip(body.N)
	return nil
}

// maxSkip is how much is read for nothing before a new process is cheaper.
const maxSkip = 4 << 20

// skip passes over the rest of an answer when it is short.
func (c *catFile) skip(rest int64) {
	if rest > maxSkip {
		return
	}
	if _, err := io.CopyN(io.Discard, c.out, rest+1); err == nil {
		c.aligned = true
	}
}
