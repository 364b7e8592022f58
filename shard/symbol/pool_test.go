package symbol

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a program that behaves as the first line of a file says.
const fake = `#!/bin/sh
case "$*" in
*--version*) echo "Universal Ctags 9.9.9, a fake"; exit 0;;
*--list-features*) echo interactive; exit 0;;
esac
echo '{"_type": "program", "name": "Universal Ctags"}'
while read -r head; do
	read -r what
	case "$what" in
	good) echo '{"_type": "error", "message": "ignoring null tag", "warning": true}'; echo '{"_type": "tag", "name": "good", "line": 1, "kind": "func"}'; echo '{"_type": "completed", "command": "generate-tags"}';;
	crash) echo '{"_type": "tag", "name": "lost", "line": 1, "kind": "func"}'; exit 3;;
	hang) while read -r x; do :; done;;
	garbage) echo 'Segmentation fault? \0';;
	long) while :; do echo '{"_type": "tag", "name": "again", "line": 1, "kind": "func"}'; done;;
	esac
done
`

func openFake(t *testing.T, o Options) *Pool {
	t.Helper()
	o.Command = filepath.Join(t.TempDir(), "ctags")
	if err := os.WriteFile(o.Command, []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestBadFilesCostThemselvesOnly(t *testing.T) {
	t.Parallel()
	p := openFake(t, Options{Processes: 2, Timeout: 60 * time.Second})
	var wg sync.WaitGroup
	for i := range 20 {
		what := []string{"good", "crash", "garbage", "good", "good"}[i%5]
		wg.Go(func() {
			symbols, err := p.Tag(t.Context(), "a.c", "C", []byte(what+"\n"))
			if what == "good" && (err != nil || len(symbols) != 1 || symbols[0].Name != "good" || symbols[0].Kind != "function") {
				t.Errorf("good file: %v, %v", symbols, err)
			}
			if what != "good" && err == nil {
				t.Errorf("%s file: no error", what)
			}
		})
	}
	wg.Wait()
}

func TestHangingFileIsGivenUp(t *testing.T) {
	t.Parallel()
	p := openFake(t, Options{Processes: 1, Timeout: 3 * time.Second})
	if _, err := p.Tag(t.Context(), "a.c", "C", []byte("hang\n")); err == nil || !strings.Contains(err.Error(), "gave up") {
		t.Errorf("hanging file: %v", err)
	}
	if _, err := p.Tag(t.Context(), "a.c", "C", []byte("long\n")); err == nil {
		t.Error("endless answer: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Tag(ctx, "a.c", "C", []byte("hang\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestClosedPoolRefuses(t *testing.T) {
	t.Parallel()
	p := openFake(t, Options{Processes: 1})
	p.Close()
	if _, err := p.Tag(t.Context(), "a.c", "C", []byte("good\n")); err == nil {
		t.Error("closed pool: no error")
	}
}

func TestOpenTellsWhatIsWrong(t *testing.T) {
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

func TestRealProgramFindsDefinitions(t *testing.T) {
	t.Parallel()
	p, err := Open(t.Context(), Options{Processes: 1, Timeout: 60 * time.Second})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(p.Close)
	for _, c := range []struct {
		path, language, text string
		want                 []Symbol
	}{
		{"x/a.c", "C", "struct foo { int a; };\n#define X 1\nint main(void) { return 0; }\n", []Symbol{
			{"a", "member", "foo", "struct", 1}, {"foo", "struct", "", "", 1}, {"X", "macro", "", "", 2}, {"main", "function", "", "", 3},
		}},
		{"b\xff\".go", "Go", "package b\n\ntype T struct{}\n\nfunc (T) M() {}\n", []Symbol{
			{"b", "package", "", "", 1}, {"T", "struct", "b", "package", 3}, {"M", "method", "b.T", "struct", 5},
		}},
		{"tool", "Python", "class A:\n  def f(self): pass\n", []Symbol{{"A", "class", "", "", 1}, {"f", "member", "A", "class", 2}}},
		{"README", "Markdown", "# Head\n", nil},
		{"h.h", "C", "int class;\n", []Symbol{{"class", "variable", "", "", 1}}},
	} {
		got, err := p.Tag(t.Context(), c.path, c.language, []byte(c.text))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Tag(%q) = %+v, %v, want %+v", c.path, got, err, c.want)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add(`a"b\é`, "func", `{"_type": "tag", "na`)
	f.Fuzz(func(t *testing.T, name, kind, raw string) {
		_, _ = parseAnswer([]byte(raw)) // must not panic
		line, err := json.Marshal(map[string]any{"_type": "tag", "name": name, "kind": kind, "line": len(raw), "file": true})
		if err != nil {
			t.Fatal(err)
		}
		var want struct{ Name, Kind string }
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		a, err := parseAnswer(line)
		if err != nil || string(a.name) != want.Name || string(a.kind) != want.Kind || a.line != uint32(len(raw)) || string(a.kindOfAnswer) != "tag" {
			t.Fatalf("parseAnswer(%s) = %q, %q, %d, %v", line, a.name, a.kind, a.line, err)
		}
	})
}
