package tool

import (
	"slices"
	"testing"
)

func TestNamesThatShareAWord(t *testing.T) {
	t.Parallel()
	names := []string{"gc_before_repack", "gc_config", "needToPrune", "run_hooks", "need_to_gc_again", "gc_config"}
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"need_to_gc", []string{"need_to_gc_again", "needToPrune", "gc_config", "gc_before_repack"}},
		{"HooksOfGC", []string{"run_hooks", "gc_config", "gc_before_repack", "need_to_gc_again"}},
		{"of_the", nil},
		{"nothing", nil},
		{"_", nil},
		{"", nil},
	} {
		if got := alikeNames(tt.name, names); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.name, got, tt.want)
		}
	}
}
