package symbol

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fake is a program that behaves as the first line of each file says.
const fake = `#!/bin/sh
case "$*" in
*--version*) echo "Universal Ctags 9.9.9, a fake"; exit 0;;
*--list-features*) echo interactive; exit 0;;
esac
echo '{"_type": "program", "name": "Universal Ctags"}'
while read -r head; do
	read -r what
	case "$what" in
	plain) printf '7\tfunc\tclass\tgood\tA\n'; echo '{"_type": "completed", "command": "generate-tags"}';;
	good) echo '{"_type": "error", "message": "ignoring null tag", "warning": true}'; echo '{"_type": "tag", "name": "good", "line": 1, "kind": "func"}'; echo '{"_type": "completed", "command": "generate-tags"}';;
	crash) echo '{"_type": "tag", "name": "lost", "line": 1, "kind": "func"}'; exit 3;;
	hang) while read -r x; do :; done;;
	half) printf '7\tfunc\tcla'; exit 3;;
	garbage) echo 'Segmentation fault? \0';;
	child) sleep 3600;;
	spin) while :; do :; done;;
	once) mkdir "$0.once" 2>/dev/null && exit 3; printf '7\tfunc\tclass\tgood\tA\n'; echo '{"_type": "completed", "command": "generate-tags"}';;
	kill) kill -9 $$;;
	long) while :; do echo '{"_type": "tag", "name": "again", "line": 1, "kind": "func"}'; done;;
	esac
done
`

// words is a symbol with strings of its own.
type words struct {
	Name, Kind, ParentName, ParentKind string
	Line                               uint32
}

// tagAll returns the symbols of each file by line, and the error of each file.
func (p *Pool) tagAll(ctx context.Context, files []File) (out [][]words, errs []error, err error) {
	out, errs = make([][]words, len(files)), make([]error, len(files))
	var now []words
	err = p.Tag(ctx, files, func(s Symbol) {
		now = append(now, words{string(s.Name), s.Kind, string(s.ParentName), s.ParentKind, s.Line})
	}, func(i int, err error) {
		slices.SortStableFunc(now, func(a, b words) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name)) })
		out[i], errs[i], now = now, err, nil
	})
	return out, errs, err
}

func (p *Pool) symbols(ctx context.Context, path, language, text string) ([]words, error) {
	out, errs, err := p.tagAll(ctx, []File{{Path: path, Language: language, Content: []byte(text)}})
	return out[0], cmp.Or(err, errs[0])
}

func openFake(t *testing.T, o Options) *Pool {
	t.Helper()
	o.Command = filepath.Join(t.TempDir(), "ctags")
	// A process that another test starts now must not inherit the file while it is open for
	// writing.
	syscall.ForkLock.RLock()
	err := os.WriteFile(o.Command, []byte(fake), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestCtagsPool_aBadFileDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	p := openFake(t, Options{Processes: 2, Timeout: 60 * time.Second})
	var wg sync.WaitGroup
	for from := range 6 {
		wg.Go(func() {
			kinds := []string{"good", "crash", "garbage", "half", "good", "plain"}
			var files []File
			for i := range 24 {
				what := kinds[(from+i)%len(kinds)]
				files = append(files, File{Path: what, Language: "C", Content: []byte(what + "\n")})
			}
			symbols, errs, err := p.tagAll(t.Context(), files)
			if err != nil {
				t.Error(err)
			}
			for i, f := range files {
				want := map[string][]words{"good": {{"good", "function", "", "", 1}}, "plain": {{"good", "method", "A", "class", 7}}}[f.Path]
				if want != nil && (errs[i] != nil || !reflect.DeepEqual(symbols[i], want)) {
					t.Errorf("%s file: %v, %v", f.Path, symbols[i], errs[i])
				}
				if want == nil && errs[i] == nil {
					t.Errorf("%s file: no error", f.Path)
				}
			}
		})
	}
	wg.Wait()
}

// Whatever a program does with a file, only the symbols of that file stay unknown, and nobody waits
// forever.
func TestCtagsPool_failureLosesOnlyTheSymbolsOfThatFile(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"crash": "EOF", "kill": "EOF", "half": "EOF", "garbage": "not an answer", "long": "", "hang": "does nothing", "child": "does nothing", "spin": "gave up",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := openFake(t, Options{Processes: 1, Timeout: 200 * time.Millisecond})
			files := []File{{Path: "a.c", Language: "C", Content: []byte("good\n")}, {Path: "b.c", Language: "C", Content: []byte(what + "\n")}, {Path: "c.c", Language: "C", Content: []byte("good\n")}}
			symbols, errs, err := p.tagAll(t.Context(), files)
			if err != nil || errs[0] != nil || errs[2] != nil || len(symbols[0]) != 1 || len(symbols[2]) != 1 {
				t.Errorf("the files beside it: %v, %v, %v", symbols, errs, err)
			}
			if errs[1] == nil || !strings.Contains(errs[1].Error(), want) {
				t.Errorf("%v, want %q", errs[1], want)
			}
		})
	}
}

// A process may fail by accident: the file is tried once more, alone.
func TestCtagsPool_retriesAFileOnce(t *testing.T) {
	t.Parallel()
	p := openFake(t, Options{Processes: 1, Timeout: 60 * time.Second})
	for range 2 {
		if s, err := p.symbols(t.Context(), "a.c", "C", "once\n"); err != nil || len(s) != 1 {
			t.Errorf("%v, %v", s, err)
		}
	}
}

// The symbols of a file that is too large are unknown; an empty file has none.
func TestCtagsPool_symbolsOfTooLargeFilesAreUnknown(t *testing.T) {
	t.Parallel()
	p := openFake(t, Options{Processes: 1, MaxSize: 4})
	if _, err := p.symbols(t.Context(), "a.c", "C", "good\n"); err == nil {
		t.Error("a large file: no error")
	}
	if s, err := p.symbols(t.Context(), "a.c", "C", ""); err != nil || s != nil {
		t.Errorf("an empty file: %v, %v", s, err)
	}
}

// Each failed attempt doubles the time of the next one, up to a limit.
func TestCtagsPool_timeLimitGrowsWithAttempts(t *testing.T) {
	t.Parallel()
	p := &Pool{options: Options{Timeout: time.Second}}
	for tries, want := range []time.Duration{1, 2, 4, 8, 16, 16} {
		if got := p.timeLimit(tries); got != want*time.Second {
			t.Errorf("after %d: %v", tries, got)
		}
	}
}

func TestCtagsPool_returnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	p := openFake(t, Options{Processes: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.symbols(ctx, "a.c", "C", "hang\n"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The program may be a script: processes that it started must not keep a file waiting.
func TestCtagsPool_killsChildrenOfCtags(t *testing.T) {
	t.Parallel()
	p := openFake(t, Options{Processes: 1, Timeout: 200 * time.Millisecond})
	if _, err := p.symbols(t.Context(), "a.c", "C", "child\n"); err == nil || !strings.Contains(err.Error(), "gave up") {
		t.Errorf("a program that waits for another: %v", err)
	}
	if s, err := p.symbols(t.Context(), "a.c", "C", "good\n"); err != nil || len(s) != 1 {
		t.Errorf("the next file: %v, %v", s, err)
	}
}

func TestCtagsPool_reportsAMissingSandbox(t *testing.T) {
	t.Parallel()
	if openFake(t, Options{}).Sandboxed() {
		t.Error("a program without the feature is said to be in a sandbox")
	}
}

func TestCtagsPool_failsAfterClose(t *testing.T) {
	t.Parallel()
	p := openFake(t, Options{Processes: 1})
	p.Close()
	if _, err := p.symbols(t.Context(), "a.c", "C", "good\n"); err == nil {
		t.Error("closed pool: no error")
	}
}

func TestOpenCtags_reportsAMissingOrWrongProgram(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.Context(), Options{Command: Off}); !errors.Is(err, ErrOff) {
		t.Errorf("off: %v", err)
	}
	for _, command := range []string{"/nowhere/ctags", "/bin/true"} {
		if _, err := Open(t.Context(), Options{Command: command}); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestCtagsPool_realCtagsFindsDefinitions(t *testing.T) {
	t.Parallel()
	p, err := Open(t.Context(), Options{Processes: 1, Timeout: 60 * time.Second})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(p.Close)
	for _, c := range []struct {
		path, language, text string
		want                 []words
	}{
		{"x/a.c", "C", "struct foo { int a; };\n#define X 1\nint main(void) { return 0; }\n", []words{
			{"a", "member", "foo", "struct", 1}, {"foo", "struct", "", "", 1}, {"X", "macro", "", "", 2}, {"main", "function", "", "", 3},
		}},
		{"b\xff\".go", "Go", "package b\n\ntype T struct{}\n\nfunc (T) M() {}\n", []words{
			{"b", "package", "", "", 1}, {"T", "struct", "b", "package", 3}, {"M", "method", "b.T", "struct", 5},
		}},
		{"tool", "Python", "class A:\n  def f(self): pass\n", []words{{"A", "class", "", "", 1}, {"f", "member", "A", "class", 2}}},
		{"README", "Markdown", "# Head\n", nil},
		{"t.php", "PHP", "<?php\nnamespace A\\B;\nclass C {}\n", []words{{"A\\B", "namespace", "", "", 2}, {"C", "class", "A\\B", "namespace", 3}}},
		{"t.py", "Python", "caf\xe9 = 1\nclass \xe9:\n  def f(self): pass\n", []words{{"f", "member", "", "", 3}}}, // not UTF-8, so not a name
		{"h.h", "C", "int class;\n", []words{{"class", "variable", "", "", 1}}},
	} {
		got, err := p.symbols(t.Context(), c.path, c.language, c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Tag(%q) = %+v, %v, want %+v", c.path, got, err, c.want)
		}
	}
}

func TestCtagsPool_realCtagsFindsEnds(t *testing.T) {
	t.Parallel()
	narrow, err := Open(t.Context(), Options{Processes: 1, Timeout: 60 * time.Second})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(narrow.Close)
	p := narrow.WithSignatures(1)
	t.Cleanup(p.Close)
	var got []string
	text := "package b\n\ntype T struct {\n\tx int\n}\n\nfunc (t *T) Go(a int) error {\n\treturn nil\n}\n"
	err = p.Tag(t.Context(), []File{{Path: "b.go", Language: "Go", Content: []byte(text)}}, func(s Symbol) {
		got = append(got, fmt.Sprintf("%d-%d %s %s%s", s.Line, s.End, s.Kind, s.Name, s.Signature))
	}, func(_ int, err error) {
		if err != nil {
			t.Error(err)
		}
	})
	slices.Sort(got)
	if want := []string{"1-0 package b", "3-5 struct T", "4-0 member x", "7-9 method Go(a int)"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func FuzzParseCtagsAnswer_neverPanics(f *testing.F) {
	f.Add(`a"b\é`, "func", `{"_type": "tag", "na`)
	f.Add("tab\tnewline\nback\\slash\x01", "func", "3\tmacro\t\tNAME\n")
	f.Add("x", "func", "3\tmacro\t\tNAME\tparent\t17\t(int a)\n")
	f.Add("x", "func", "3\tmacro\t\t\\x4\t\\\n")
	f.Fuzz(func(t *testing.T, name, kind, raw string) {
		var a answer
		_ = a.parse([]byte(raw)) // must not panic
		line, err := json.Marshal(map[string]any{"_type": "tag", "name": name, "kind": kind, "line": len(raw), "file": true})
		if err != nil {
			t.Fatal(err)
		}
		var want struct{ Name, Kind string }
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		check := func(line, name, kind string) {
			err := a.parse([]byte(line))
			if err != nil || string(a.name) != name || string(a.kind) != kind || a.line != uint32(len(raw)) || string(a.kindOfAnswer) != "tag" {
				t.Fatalf("parse(%q) = %q, %q, %d, %v", line, a.name, a.kind, a.line, err)
			}
		}
		check(string(line), want.Name, want.Kind)
		if !strings.ContainsAny(kind, "\t\n") {
			check(fmt.Sprintf("%d\t%s\t\t%s\t\n", len(raw), kind, escape(name)), name, kind)
		}
	})
}

// escape writes a field as ctags does.
func escape(field string) string {
	var b strings.Builder
	for i := range len(field) {
		switch c := field[i]; {
		case c == '\\':
			b.WriteString(`\\`)
		case c >= 7 && c <= 13:
			b.WriteString(`\` + "abtnvfr"[c-7:c-6])
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02X`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
