package cluster

import (
	"bytes"
	"io"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

func TestRestoreLoop_endsTheProcess(t *testing.T) {
	t.Parallel()
	exits := 0
	m := newMachine(discardLog(), catalog.ThisBuild(), func(err error) { t.Error(err) }, func(uint64) {})
	m.loop.exit = func(string) { exits++ }
	state := catalog.New()
	restore := func(index uint64) {
		t.Helper()
		state.Apply(catalog.Entry{Index: index, Commands: []catalog.Command{set("k", "v")}})
		var b bytes.Buffer
		if err := state.View().Save(&b); err != nil {
			t.Fatal(err)
		}
		if err := m.Restore(io.NopCloser(&b)); err != nil {
			t.Fatal(err)
		}
	}
	for range maxRestores - 1 {
		restore(7)
	}
	m.loop.applied(8) // an entry is applied
	for range maxRestores - 1 {
		restore(7)
	}
	restore(9) // another snapshot
	for range maxRestores - 2 {
		restore(9)
	}
	if exits != 0 {
		t.Fatal("the process ends although there was progress")
	}
	restore(9)
	if exits != 1 {
		t.Fatalf("%d exits, want 1", exits)
	}
}
