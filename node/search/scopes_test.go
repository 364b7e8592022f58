package search

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
