package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// laterCommand is a command with fields of later levels.
type laterCommand struct {
	Name  string
	Pages []laterPage
	More  string `level:"2"`
}

type laterPage struct {
	Name string
	At   time.Time
	Star *laterStar `level:"3"`
}

type laterStar struct {
	Size uint64 `level:"4"`
}

func (*laterCommand) apply(*txn) Result { return Result{} }

// A command needs the highest level of its fields that are not zero.
func TestCommand_needsTheHighestLevelOfItsSetFields(t *testing.T) {
	t.Parallel()
	kind := commandOf[laterCommand](200)
	for name, c := range map[string]struct {
		kind    commandKind
		command laterCommand
		want    uint64
	}{
		"nothing new":        {kind, laterCommand{Name: "a", Pages: []laterPage{{Name: "b", At: epoch}}}, 1},
		"a new command":      {kind.since(3), laterCommand{}, 3},
		"a new field":        {kind, laterCommand{More: "m"}, 2},
		"in a list":          {kind, laterCommand{Pages: []laterPage{{}, {Star: &laterStar{}}}}, 3},
		"in what it holds":   {kind, laterCommand{Pages: []laterPage{{Star: &laterStar{Size: 1}}}}, 4},
		"the highest of all": {kind.since(2), laterCommand{More: "m", Pages: []laterPage{{Star: &laterStar{}}}}, 3},
	} {
		if got := c.kind.requiredLevel(&c.command); got != c.want {
			t.Errorf("%s: it needs level %d, want %d", name, got, c.want)
		}
	}

	present := []Command{&Noop{}, &SetSecret{Name: "s"}, &RaiseLevel{Level: 2}}
	if no := (Level{Number: 1}).Allows(present); no != nil {
		t.Errorf("level 1: %v", no)
	}
	if no := (Level{Number: 0}).Allows(present); no == nil || !strings.Contains(no.Error(), "Noop needs level 1 of the catalog, which has level 0") {
		t.Errorf("a level too low: %v", no)
	}
}

// Each new field or command has the tag of a later level: a program of the present level could not
// read it.
func TestNewFields_haveTheTagOfALaterLevel(t *testing.T) {
	t.Parallel()
	for level := uint64(1); level <= ThisBuild().Highest(); level++ {
		if *rewrite && !released(t, level) {
			continue
		}
		text, err := os.ReadFile(fieldsFile(level))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range fieldsOf(level) {
			if !slices.Contains(want, line) {
				t.Errorf("level %d has no %s: give it the tag `level:\"N\"` or .since(N) of a later one (CONTRIBUTING.md, \"To change what an entry does\")", level, line)
			}
		}
		for _, line := range want {
			if !slices.Contains(fieldsOf(level), line) {
				t.Errorf("level %d has %s, which is gone or has moved: logs and snapshots of that level could not be read", level, line)
			}
		}
	}
}

func fieldsFile(level uint64) string {
	return filepath.Join("testdata", "logs", fmt.Sprintf("level-%d.fields", level))
}

// fieldsOf lists the fields of commands and records at a level.
func fieldsOf(level uint64) []string {
	var lines []string
	types := map[reflect.Type]bool{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() || types[t] {
			return
		}
		types[t] = true
		for i := range t.NumField() {
			if f := t.Field(i); fieldLevel(f) <= level {
				lines = append(lines, fmt.Sprintf("%s field %d: %s %s", t.Name(), i+1, f.Name, f.Type))
				add(f.Type)
			}
		}
	}

	for _, kind := range commandKinds {
		if max(1, kind.level) <= level {
			lines = append(lines, fmt.Sprintf("command %d: %s", kind.number, kind.typ.Name()))
			add(kind.typ)
		}
	}
	for _, kind := range []*recordKind{metaKind, configKind, levelKind} {
		add(kind.typ)
	}
	for _, r := range tableRows {
		add(r.(interface{ typ() reflect.Type }).typ())
	}
	slices.Sort(lines)
	return lines
}

func (r *row[K, T]) typ() reflect.Type { return r.kind.typ }
