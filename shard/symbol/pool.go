package symbol

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Off is the command that switches symbols off.
const Off = "off"

// ErrOff is the error of [Open] for [Off].
var ErrOff = errors.New("symbols are switched off")

// ErrMissing is the error of [Open] if no usable program is installed.
var ErrMissing = errors.New("universal-ctags is not installed")

// Options tell how to run ctags.
type Options struct {
	Command   string        // path or name; "" searches for universal-ctags, then ctags; Off switches symbols off
	Processes int           // number of processes; 0 means GOMAXPROCS
	Timeout   time.Duration // CPU time for one file; 0 means 20 s; doubled after each failed attempt
	MaxSize   int           // bytes; symbols of larger files stay unknown; 0 means 4 MiB
}

// Symbol is a definition. There are millions of them, so its names are parts of the buffer into
// which they were read. They are valid only during the call that gets them.
type Symbol struct {
	Name       []byte
	Kind       string // in full, such as function, struct, macro
	ParentName []byte // name of the enclosing scope, as the language writes it; empty at the top
	ParentKind string
	Line       uint32 // from 1
	End        uint32 // last line; 0 = unknown
	Signature  []byte // parameters of a function, such as (a int); empty if unknown, or without WithSignatures
}

// Pool is a limited set of ctags processes. It is safe for concurrent use.
type Pool struct {
	options Options
	path    string
	version string
	mode    string // of the interactive command
	args    []string

	slots chan *process // a nil entry stands for a process that is not started yet
	once  sync.Once
	done  chan struct{}
}

var versionLine = regexp.MustCompile(`Universal Ctags [0-9][^,\s]*`)

// Open finds ctags and asks what it can do. The pool starts processes when they are first needed.
// Close ends them.
func Open(ctx context.Context, o Options) (*Pool, error) {
	if o.Command == Off {
		return nil, ErrOff
	}
	if o.Processes <= 0 {
		o.Processes = runtime.GOMAXPROCS(0)
	}
	if o.Timeout <= 0 {
		o.Timeout = 20 * time.Second
	}
	if o.MaxSize <= 0 {
		o.MaxSize = 4 << 20
	}

	names := []string{"universal-ctags", "ctags"}
	if o.Command != "" {
		names = []string{o.Command}
	}

	var reason error
	for _, name := range names {
		p, err := open(ctx, name, o)
		if err == nil {
			return p, nil
		}
		if reason == nil || !errors.Is(err, exec.ErrNotFound) { // an error of a program says more than a missing one
			reason = err
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrMissing, reason)
}

// openTime is how long a program may take to say what it is. A busy machine may be slow.
const openTime = time.Minute

// open checks that the program is universal-ctags with the features that the pool needs, and
// returns the pool.
func open(ctx context.Context, name string, o Options) (*Pool, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()

	version, err := readOption(ctx, path, "--version")
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", path, err)
	}

	v := versionLine.FindString(version)
	if v == "" {
		return nil, fmt.Errorf("%s is not universal-ctags", path)
	}

	features, err := readOption(ctx, path, "--list-features")
	if err != nil {
		return nil, fmt.Errorf("%s --list-features: %w", path, err)
	}

	mode := "default"
	if strings.Contains(features, "sandbox") {
		mode = "sandbox"
	}
	if !strings.Contains(features, "interactive") {
		return nil, fmt.Errorf("%s lacks the interactive mode", path)
	}

	p := &Pool{options: o, path: path, version: v, mode: mode}
	p.makeSlots("--fields=+e", "--_xformat="+tagFormat)
	return p, nil
}

// WithSignatures returns another pool of the same program that also finds the parameters of
// functions. The caller must close it too.
func (p *Pool) WithSignatures(processes int) *Pool {
	other := &Pool{options: p.options, path: p.path, version: p.version, mode: p.mode}
	other.options.Processes = processes
	other.makeSlots("--fields=+eS", "--_xformat="+signatureFormat)
	return other
}

// makeSlots makes the slots of the pool, and the arguments for ctags with options for its output.
// It starts no process.
func (p *Pool) makeSlots(output ...string) {
	p.args = append([]string{"--options=NONE", "--quiet=yes", "--_interactive=" + p.mode, "--output-format=xref"}, output...)

	p.slots, p.done = make(chan *process, p.options.Processes), make(chan struct{})
	for range p.options.Processes {
		p.slots <- nil
	}
}

// readOption returns what ctags prints for an option.
func readOption(ctx context.Context, path, option string) (string, error) {
	cmd := exec.CommandContext(ctx, path, "--options=NONE", "--quiet=yes", option)
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout = limitedWriter{&out, 1 << 20}
	err := cmd.Run()
	return out.String(), err
}

// limitedWriter writes to a buffer, and fails instead of writing more than limit bytes.
type limitedWriter struct {
	to    *bytes.Buffer
	limit int
}

func (l limitedWriter) Write(b []byte) (int, error) {
	if l.to.Len()+len(b) > l.limit {
		return 0, io.ErrShortBuffer
	}
	return l.to.Write(b)
}

// Version returns the name and the version of ctags. Another version may find other symbols in the
// same file.
func (p *Pool) Version() string { return p.version }

// Sandboxed reports whether ctags reads files without access to most system calls. A ctags built
// without seccomp cannot.
func (p *Pool) Sandboxed() bool { return p.mode == "sandbox" }

// Close ends the processes. It waits for the files that are being read, whose time is limited. Tag
// fails from then on.
func (p *Pool) Close() {
	p.once.Do(func() {
		close(p.done)
		for range cap(p.slots) {
			if proc := <-p.slots; proc != nil {
				proc.end()
			}
		}
	})
}

// File is a text in which Tag looks for symbols.
type File struct {
	Path     string
	Language string // go-enry's name; prose and data have no symbols
	Content  []byte
	Tries    int // failed attempts so far: each gives the next more time
}

// Tag calls use with the symbols of each file, in the order in which ctags finds them, and then
// done with the index of the file. If done gets an error, the symbols that use got for that file do
// not count: its symbols are unknown. A file on which a process failed is tried once more, alone in a new process.
// Then done is called a second time, and that call counts. Tag waits for a free process. It returns
// an error only if ctx or the pool ends.
func (p *Pool) Tag(ctx context.Context, files []File, use func(Symbol), done func(i int, err error)) error {
	// Files without symbols, and files whose keys are symbols, need no process.
	var todo []task
	for i, f := range files {
		name, ok := nameFor(f.Path, f.Language)
		switch {
		case hasKeys(f.Path, f.Language):
			findKeys(&f, use)
			done(i, nil)
		case !ok || len(f.Content) == 0:
			done(i, nil)
		case len(f.Content) > p.options.MaxSize:
			done(i, fmt.Errorf("find symbols in %q: larger than %d bytes", f.Path, p.options.MaxSize))
		default:
			todo = append(todo, task{i, name, f.Content, p.timeLimit(f.Tries)})
		}
	}

	if len(todo) == 0 {
		return nil
	}

	// Wait for a process, and return it or its successor in the end.
	var proc *process
	select {
	case proc = <-p.slots:
	case <-p.done:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { p.slots <- proc }()

	// Each round finishes at least one file: n of them have their answer, and with an error the
	// next one has failed.
	for len(todo) > 0 {
		select {
		case <-p.done:
			return errClosed
		default:
		}

		var n int
		var err error
		n, proc, err = p.tagSome(ctx, proc, todo, use, done)
		if ctx.Err() != nil {
			return ctx.Err()
		}

		// Try the failed file again in a new process, as an earlier file or the machine may be at
		// fault.
		if err != nil {
			failed := todo[n]
			explain := func(err error) error { return fmt.Errorf("find symbols in %q: %w", files[failed.number].Path, err) }
			done(failed.number, explain(err))
			if _, proc, err = p.tagSome(ctx, nil, []task{failed}, use, done); ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				done(failed.number, explain(err))
			}
			n++
		}
		todo = todo[n:]
	}
	return nil
}

// errClosed is the error of a closed pool.
var errClosed = errors.New("find symbols: pool is closed")

// task is a file on its way to a process.
type task struct {
	number    int    // index of the file in the call of Tag
	name      string // name under which ctags sees it
	content   []byte
	timeLimit time.Duration // CPU time
}

// maxDoublings is how often the time for a file is doubled at most.
const maxDoublings = 4

// timeLimit returns the CPU time for a file after that many failed attempts.
func (p *Pool) timeLimit(tries int) time.Duration {
	return p.options.Timeout << min(max(tries, 0), maxDoublings)
}

// tagSome lets a process work on the first of the tasks; a nil process means a new one. It returns
// how many tasks have their answer, and the process, or nil if it has ended. An error is about the
// first task without an answer.
func (p *Pool) tagSome(ctx context.Context, proc *process, todo []task, use func(Symbol), done func(int, error)) (int, *process, error) {
	if proc == nil {
		var err error
		if proc, err = p.start(); err != nil {
			return 0, nil, err
		}
	}

	stop := context.AfterFunc(ctx, proc.kill)
	n, err := proc.tagSome(todo, use, done)
	killReason := proc.watch.stop()
	notKilled := stop()

	if err == nil && killReason == "" && notKilled && proc.files < filesPerProcess {
		return n, proc, nil
	}

	proc.end()
	if err != nil && killReason != "" {
		err = errors.New(killReason)
	}
	return n, nil, err
}
