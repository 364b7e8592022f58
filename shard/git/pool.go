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
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	poolSize = 4                // processes of one mirror at most
	poolRest = 30 * time.Second // after which an idle process is let go
)

// pool is the bounded set of processes that answer questions about single
// objects of one mirror. Starting git costs some milliseconds, a question to
// one that runs some microseconds.
type pool struct {
	dir   string
	slots chan struct{} // a token for each process that may still be used

	mu     sync.Mutex // guards the fields below
	idle   []*catFile // most recently used last
	sweeps *time.Timer
	epoch  int // processes of an older epoch read a directory that is gone
	shut   bool
}

func newPool(dir string) *pool {
	p := &pool{dir: dir, slots: make(chan struct{}, poolSize)}
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
	c, err := p.take()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.kill)
	err = use(c)
	if !stop() { // the context ended: the process is being killed
		c.end()
		return context.Cause(ctx)
	}
	if err != nil && !c.aligned {
		c.end()
		if said := c.complaint.String(); said != "" && !errors.Is(err, errStop) {
			return fmt.Errorf("git cat-file: %s: %w", strings.TrimSpace(clean(said, nil)), err)
		}
		return err
	}
	p.put(c)
	return err
}

func (p *pool) take() (*catFile, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, ErrClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, nil
	}
	c, err := startCatFile(p.dir)
	if err != nil {
		return nil, err
	}
	c.epoch = p.epoch
	return c, nil
}

func (p *pool) put(c *catFile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut || c.epoch != p.epoch || c.broken() {
		go c.end()
		return
	}
	c.since = time.Now()
	p.idle = append(p.idle, c)
	if p.sweeps == nil {
		p.sweeps = time.AfterFunc(poolRest, p.sweep)
	}
}

// sweep ends the processes that have rested long enough.
func (p *pool) sweep() {
	p.mu.Lock()
	var old []*catFile
	limit := time.Now().Add(-poolRest)
	for len(p.idle) > 0 && !p.idle[0].since.After(limit) {
		old = append(old, p.idle[0])
		p.idle = p.idle[1:]
	}
	if len(p.idle) > 0 {
		p.sweeps = time.AfterFunc(poolRest, p.sweep)
	} else {
		p.sweeps = nil
	}
	p.mu.Unlock()
	for _, c := range old {
		c.end()
	}
}

// reset lets go of all processes: the directory is about to be replaced.
func (p *pool) reset() {
	p.mu.Lock()
	old := p.idle
	p.idle = nil
	p.epoch++
	p.mu.Unlock()
	for _, c := range old {
		c.end()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	p.shut = true
	if p.sweeps != nil {
		p.sweeps.Stop()
	}
	p.mu.Unlock()
	p.reset()
}

// catFile is a running `git cat-file --batch-command`.
type catFile struct {
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	complaint *tail
	epoch     int
	since     time.Time
	aligned   bool // the next byte of out begins an answer
	asked     int  // questions whose answer has not been read

	mu   sync.Mutex // guards done
	done bool       // the process is waited for: its number may be another's soon
}

func startCatFile(dir string) (*catFile, error) {
	k := &command{dir: dir, args: []string{"cat-file", "--batch-command", "-z"}}
	cmd, complaint := k.process(context.Background())
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	if f, ok := out.(*os.File); ok {
		widen(f)
	}
	return &catFile{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 64<<10), complaint: complaint, aligned: true}, nil
}

func (c *catFile) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		killGroup(c.cmd.Process)
	}
}

func (c *catFile) broken() bool { return !c.aligned || c.asked != 0 }

// end closes the input, which ends the process, and waits for it; one that
// is in the middle of an answer is killed.
func (c *catFile) end() {
	c.in.Close()
	if c.broken() {
		c.kill()
	}
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

// answer reads the first line of the answer to a question.
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
