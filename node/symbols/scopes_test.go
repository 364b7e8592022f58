package symbols

import (
	"slices"
	"testing"
)

// Beside the type that is asked for, others with the method are told once each;
// packages and the like are none.
func TestOtherTypesWithTheMethod(t *testing.T) {
	t.Parallel()
	r := &SymbolResponse{Files: []SymbolFile{
		{Matches: []SymbolMatch{{ParentName: "store.Store", ParentKind: "struct"}, {ParentName: "db::Shard", ParentKind: "class"}}},
		{Matches: []SymbolMatch{{ParentName: "dep", ParentKind: "package"}, {}}},
		{Matches: []SymbolMatch{{ParentName: "bolt.BoltStore", ParentKind: "unknown"}, {ParentName: "db::Shard", ParentKind: "class"}}},
	}}
	for scope, want := range map[string][]string{
		"Store":       {"db::Shard", "bolt.BoltStore"},
		"store.Store": {"db::Shard", "bolt.BoltStore"},
		"db::Shard":   {"store.Store", "bolt.BoltStore"},
		"Cache":       {"store.Store", "db::Shard", "bolt.BoltStore"},
	} {
		if got := r.typesBut(scope); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", scope, got, want)
		}
	}
}

func TestQualifiedNamesNameTheirScope(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ symbol, scope, name string }{
		{"Pool.Tag", "Pool", "Tag"}, {"a::b::c", "a::b", "c"}, {"plain", "", "plain"}, {".hidden", "", ".hidden"}, {"end.", "", "end."},
	} {
		if scope, name := qualified(c.symbol); scope != c.scope || name != c.name {
			t.Errorf("qualified(%q) = %q, %q", c.symbol, scope, name)
		}
	}
	if !inScope("pkg.Pool", "Pool") || !inScope("a::b", "a.b") || inScope("xPool", "Pool") {
		t.Error("a scope is told by its last parts")
	}
}
