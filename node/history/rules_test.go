package history

import (
	"log/slog"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/shard/change"
)

// The newest rule that fits the name of a repository decides; without one the bound of the node does.
func TestRules_theNewestThatFitsDecides(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`, 1)
	all, off := change.Bound{All: true}, change.Bound{}
	of := func(bound change.Bound) *Keeper {
		return New(Deps{Dir: t.TempDir(), View: w.View, Bound: bound, Now: w.Now, Log: slog.New(slog.DiscardHandler)})
	}
	whole, none := of(all), of(off)
	check := func(name string, want, wantOff change.Bound) {
		t.Helper()
		if got := whole.rules(w.View()).bound(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if got := none.rules(w.View()).bound(name); got != wantOff {
			t.Errorf("%s, where histories are off: %s, want %s", name, got, wantOff)
		}
	}
	check("host/acme/app", all, off)
	w.Apply(&catalog.SetHistory{Glob: "host/acme/*"})
	check("host/acme/app", off, off)
	check("host/other/app", all, off)
	w.Apply(&catalog.SetHistory{Glob: "host/acme/APP", Include: true})
	check("host/acme/app", all, included)
	check("host/acme/lib", off, off)
	w.Apply(&catalog.SetHistory{Glob: "host/*/app"})
	check("host/acme/app", off, off)
	w.Apply(&catalog.SetHistory{Glob: "host/*/app", Remove: true})
	check("host/acme/app", all, included)

	before := w.View()
	w.Apply(&catalog.SetHistory{Glob: "host/new/*"})
	if before.SameData(w.View()) {
		t.Error("a keeper that rests does not see another rule")
	}
	same := whole.rules(w.View())
	w.Repos("a", "one")
	if whole.rules(w.View()) != same {
		t.Error("other rules, though nobody changed one")
	}
}
