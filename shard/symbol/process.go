package symbol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
	"unicode/utf8"
)

const (
	filesPerProcess = 20_000 // after which the process is replaced, as its memory may grow
	maxSymbols      = 200_000
	maxAnswer       = 64 << 20 // bytes in the answer for one file
	maxLine         = 1 << 20
	maxKinds        = 1 << 10 // in process.kinds
)

// process is one running program. It belongs to one goroutine at a time; only kill may be called by
// another.
type process struct {
	cmd      *exec.Cmd
	in       *os.File
	out      *bufio.Reader
	answer   *pacedReader // the reader below out
	window   int          // bytes that in accepts while ctags reads nothing
	watch    *watch       // kills the process; it runs while files are being read
	files    int
	request  []byte            // files with their headers, which tagSome sends
	longLine []byte            // a line that did not fit into the buffer of out
	kinds    map[string]string // our name of a kind by the name in ctags
	ends     ends
}

// start starts a ctags process.
func (p *Pool) start() (*process, error) {
	proc, err := p.launch()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.path, err)
	}
	return proc, nil
}

// launch starts ctags with pipes for its input and output, in a process group of its own.
func (p *Pool) launch() (*process, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()

	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer theirOut.Close()

	cmd := exec.Command(p.path, p.args...)
	cmd.Env, cmd.SysProcAttr = []string{}, ownGroup()
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}

	// Wide pipes let ctags run ahead while nobody reads.
	widen(out)
	answer := &pacedReader{f: out}
	proc := &process{
		cmd: cmd, in: in, out: bufio.NewReaderSize(answer, answerBuffer), answer: answer,
		window: widen(in) - 2*os.Getpagesize(), kinds: map[string]string{},
	}

	proc.watch = newWatch(cmd.Process.Pid, proc.kill)
	return proc, nil
}

// pacedReader reads the answers of ctags. Ctags writes a little at a time, and waking up for each
// write takes more time than reading. So the reader pauses before it reads, longer the more text
// ctags has to do, and lets the pipe fill.
type pacedReader struct {
	f    *os.File
	todo int  // bytes of text without an answer yet
	full bool // the last read filled its buffer, so there is more
}

const (
	byteTime     = 20 * time.Nanosecond // about the time that ctags needs for a byte
	longestPause = 4 * time.Millisecond
	leastPause   = 100 * time.Microsecond
	answerBuffer = 128 << 10 // more than ctags writes in the longest pause
)

func (r *pacedReader) Read(b []byte) (int, error) {
	if pause := min(time.Duration(r.todo)*byteTime, longestPause); pause >= leastPause && !r.full {
		time.Sleep(pause)
	}
	n, err := r.f.Read(b)
	r.full = n == len(b)
	return n, err
}

// kill kills the process and its children.
func (p *process) kill() { killGroup(p.cmd.Process) }

// end kills the process and waits for it. It drops further output.
func (p *process) end() {
	p.kill()
	_ = p.in.Close()
	_ = p.answer.f.Close()
	_ = p.cmd.Wait()
}

// tagSome sends the first of the tasks, as many as the pipe holds, so that ctags need not wait for
// the next file. Then it reads the answers, and calls done for each. It returns how many it has
// read; an error is about the task after these.
func (p *process) tagSome(todo []task, use func(Symbol), done func(int, error)) (int, error) {
	todo = p.fillRequest(todo)
	p.watch.begin(todo[0].timeLimit)

	// If writing fails, ctags has ended: the answers show after which file.
	_, writeErr := p.in.Write(p.request)
	for n, t := range todo {
		p.files++
		if err := p.readAnswer(t.content, use); err != nil {
			if writeErr != nil {
				err = fmt.Errorf("%w (write: %w)", err, writeErr)
			}
			return n, err
		}

		done(t.number, nil)
		p.answer.todo -= len(t.content)

		// If ctags was killed after this answer, the next file is not at fault.
		if n+1 < len(todo) && !p.watch.begin(todo[n+1].timeLimit) {
			return n + 1, nil
		}
	}
	return len(todo), nil
}

// fillRequest writes the first tasks to p.request, as many as the pipe holds, and returns them.
func (p *process) fillRequest(todo []task) []task {
	p.request, p.answer.todo, p.answer.full = p.request[:0], 0, false
	for n, t := range todo {
		// Send the first task whatever its size, because ctags reads a whole file before it
		// answers. But if the request were longer than the pipe holds, ctags and this process would
		// wait for each other.
		if size := len(p.request) + len(t.name) + len(t.content) + headRoom; n > 0 && size > p.window {
			return todo[:n]
		}

		p.request = append(p.request, `{"command":"generate-tags","filename":`...)
		p.request = strconv.AppendQuote(p.request, t.name)
		p.request = append(p.request, `,"size":`...)
		p.request = strconv.AppendInt(p.request, int64(len(t.content)), 10)
		p.request = append(append(p.request, "}\n"...), t.content...)
		p.answer.todo += len(t.content)
	}
	return todo
}

// headRoom is an upper bound for the length of the header of a file without the name.
const headRoom = 100

// readAnswer reads the answer of ctags for one file, and passes each symbol to use.
func (p *process) readAnswer(content []byte, use func(Symbol)) error {
	p.ends.reset()
	var a answer
	for size, symbols := 0, 0; ; {
		line, err := p.readLine()
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}

		if size += len(line); size > maxAnswer {
			return errors.New("answer is too long")
		}

		if err := a.parse(line); err != nil {
			return err
		}

		switch string(a.kindOfAnswer) {
		case "completed":
			p.ends.finish(content, use)
			return nil
		case "error":
			if a.warning {
				continue
			}
			return fmt.Errorf("program says: %.200s", line)

		case "tag":
			if symbols++; symbols > maxSymbols {
				return errors.New("too many symbols")
			}
			if s, ok := p.symbol(&a); ok {
				p.ends.addSymbol(s, use)
			}
		}
	}
}

// readLine returns the next line, which is valid until the next call.
func (p *process) readLine() ([]byte, error) {
	line, err := p.out.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}

	// Collect a line that is longer than the buffer, up to a limit.
	p.longLine = append(p.longLine[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = p.out.ReadSlice('\n')
		if p.longLine = append(p.longLine, line...); len(p.longLine) > maxLine {
			return nil, errors.New("line is too long")
		}
	}
	return p.longLine, err
}

// symbol turns an answer into a symbol. ok is false for a definition without a name.
func (p *process) symbol(a *answer) (Symbol, bool) {
	if a.line == 0 || !hasRealName(a.name) || bytes.IndexByte(a.name, '\n') >= 0 {
		return Symbol{}, false
	}

	s := Symbol{Name: a.name, Kind: p.cachedKindName(a.kind), Line: a.line, End: a.end, Signature: a.signature}
	if hasRealName(a.scope) {
		s.ParentName, s.ParentKind = a.scope, p.cachedKindName(a.scopeKind)
	}

	// Ctags calls the methods of some languages functions.
	if s.Kind == "function" && typeKinds[s.ParentKind] {
		s.Kind = "method"
	}
	return s, true
}

var anonymous = []byte("__anon")

// hasRealName reports whether a person wrote a name. Ctags makes names such as __anon1f2e for
// definitions without one.
func hasRealName(name []byte) bool {
	return len(name) > 0 && len(name) <= 1<<10 && !bytes.Contains(name, anonymous) && utf8.Valid(name)
}

// cachedKindName is like kindName. It caches the result, so that a symbol needs no allocation for it.
func (p *process) cachedKindName(b []byte) string {
	kind, ok := p.kinds[string(b)]
	if !ok {
		if len(p.kinds) >= maxKinds {
			clear(p.kinds)
		}
		kind = kindName(string(b))
		p.kinds[string(b)] = kind
	}
	return kind
}

// typeKinds are the scopes whose functions are methods.
var typeKinds = map[string]bool{"class": true, "struct": true, "interface": true, "trait": true, "implementation": true, "type": true}

// kindName returns our name for a kind of ctags. Kinds that ctags names differently in different
// languages have one name.
func kindName(kind string) string {
	switch kind {
	case "func", "subroutine", "procedure":
		return "function"
	case "var":
		return "variable"
	case "const":
		return "constant"
	case "methodSpec":
		return "method"
	}
	return kind
}
