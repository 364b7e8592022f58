package symbol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	filesPerProcess = 20_000 // a process is then replaced, lest it grow
	maxSymbols      = 200_000
	maxAnswer       = 64 << 20 // bytes of the answer for one file
	maxLine         = 1 << 20
)

// process is one running program. It belongs to one goroutine at a time;
// only kill may come from elsewhere.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	files int
	long  []byte // a line that did not fit the buffer of out
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
	return &process{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 64<<10)}, nil
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
func (p *process) tag(name string, content []byte) ([]Symbol, error) {
	p.files++
	head := `{"command":"generate-tags","filename":` + strconv.Quote(name) + `,"size":` + strconv.Itoa(len(content)) + "}\n"
	if _, err := p.in.Write(append([]byte(head), content...)); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	var symbols []Symbol
	words := make(map[string]string) // kinds and scopes come again and again
	for size := 0; ; {
		line, err := p.line()
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		if size += len(line); size > maxAnswer {
			return nil, errors.New("answer is too long")
		}
		a, err := parseAnswer(line)
		if err != nil {
			return nil, err
		}
		switch string(a.kindOfAnswer) {
		case "completed":
			return tidy(symbols), nil
		case "error":
			if a.warning {
				continue
			}
			return nil, fmt.Errorf("program says: %.200s", line)
		case "tag":
			if len(symbols) >= maxSymbols {
				return nil, errors.New("too many symbols")
			}
			if s, ok := a.symbol(words); ok {
				symbols = append(symbols, s)
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
func (a *answer) symbol(words map[string]string) (Symbol, bool) {
	if len(a.name) == 0 || len(a.name) > 1<<10 || a.line == 0 || bytes.Contains(a.name, []byte("__anon")) || bytes.IndexByte(a.name, '\n') >= 0 {
		return Symbol{}, false
	}
	word := func(b []byte) string {
		w, ok := words[string(b)]
		if !ok {
			w = string(b)
			words[w] = w
		}
		return w
	}
	s := Symbol{Name: string(a.name), Kind: kindName(word(a.kind)), Line: a.line}
	if len(a.scope) > 0 && len(a.scope) <= 1<<10 && !bytes.Contains(a.scope, []byte("__anon")) {
		s.ParentName, s.ParentKind = word(a.scope), kindName(word(a.scopeKind))
	}
	if s.Kind == "function" && typeKinds[s.ParentKind] {
		s.Kind = "method"
	}
	return s, true
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

// tidy orders symbols by line and drops what was said twice.
func tidy(symbols []Symbol) []Symbol {
	slices.SortStableFunc(symbols, func(a, b Symbol) int {
		if a.Line != b.Line {
			return int(a.Line) - int(b.Line)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return slices.CompactFunc(symbols, func(a, b Symbol) bool { return a == b })
}
