package symbol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"
	"unicode/utf8"
)

const (
	filesPerProcess = 20_000 // a process is then replaced, lest it grow
	maxSymbols      = 200_000
	maxAnswer       = 64 << 20 // bytes of the answer for one file
	maxLine         = 1 << 20
	maxKinds        = 1 << 10 // that a process remembers
)

// process is one running program. It belongs to one goroutine at a time;
// only kill may come from elsewhere.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	limit *time.Timer // kills it; runs while a file is under way
	files int
	send  []byte            // a file and what goes before it
	long  []byte            // a line that did not fit the buffer of out
	kinds map[string]string // what the program calls them: what we do
}

func (p *Pool) start() (*process, error) {
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.path, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.path, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.path, err)
	}
	proc := &process{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 64<<10), kinds: map[string]string{}}
	proc.limit = time.AfterFunc(time.Hour, proc.kill)
	proc.limit.Stop()
	return proc, nil
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// end makes sure that the process is gone. What it had to say is of no
// interest any more.
func (p *process) end() {
	p.kill()
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// tag sends one file and reads the answer.
func (p *process) tag(name string, content []byte, use func(Symbol)) error {
	p.files++
	p.send = append(p.send[:0], `{"command":"generate-tags","filename":`...)
	p.send = strconv.AppendQuote(p.send, name)
	p.send = append(p.send, `,"size":`...)
	p.send = strconv.AppendInt(p.send, int64(len(content)), 10)
	p.send = append(append(p.send, "}\n"...), content...)
	if _, err := p.in.Write(p.send); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	var a answer
	for size, symbols := 0, 0; ; {
		line, err := p.line()
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
				use(s)
			}
		}
	}
}

// line returns the next line. It is valid until the next call.
func (p *process) line() ([]byte, error) {
	line, err := p.out.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	p.long = append(p.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = p.out.ReadSlice('\n')
		if p.long = append(p.long, line...); len(p.long) > maxLine {
			return nil, errors.New("line is too long")
		}
	}
	return p.long, err
}

// symbol turns an answer into a symbol; false for what has no name of its
// own.
func (p *process) symbol(a *answer) (Symbol, bool) {
	if a.line == 0 || !named(a.name) || bytes.IndexByte(a.name, '\n') >= 0 {
		return Symbol{}, false
	}
	s := Symbol{Name: a.name, Kind: p.kind(a.kind), Line: a.line}
	if named(a.scope) {
		s.ParentName, s.ParentKind = a.scope, p.kind(a.scopeKind)
	}
	if s.Kind == "function" && typeKinds[s.ParentKind] {
		s.Kind = "method"
	}
	return s, true
}

var anonymous = []byte("__anon")

// named tells whether a name was given by people: text, and not made up by
// the program.
func named(name []byte) bool {
	return len(name) > 0 && len(name) <= 1<<10 && !bytes.Contains(name, anonymous) && utf8.Valid(name)
}

// kind is the word for a kind that the program has named.
func (p *process) kind(b []byte) string {
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

// kindName is the word for a kind where languages have several.
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
