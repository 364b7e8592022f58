package layout

import (
	"slices"
	"testing"
)

// A page names every module that its scripts import, so that none waits for
// another to be read, and each of them is there.
func TestAPageNamesItsModules(t *testing.T) {
	t.Parallel()
	got := modulesOf([]string{"js/file.js"})
	for _, want := range []string{bootScript, "js/early.js", "js/keys.js", "js/suggest.js", "js/part.js", "js/file.js", "js/card.js", "js/names.js", "js/finder.js", "js/chooser.js", "js/lines.js", "js/wrap.js"} {
		if !slices.Contains(got, want) {
			t.Errorf("js/file.js needs %s, which the page does not name: %v", want, got)
		}
	}
	if len(got) != len(slices.Compact(slices.Sorted(slices.Values(got)))) {
		t.Errorf("a module is named twice: %v", got)
	}
	files, _ := assets()
	for _, name := range got {
		if _, ok := files[name]; !ok {
			t.Errorf("%s is named, and is not there", name)
		}
	}
	if slices.Contains(got, "js/palette.js") {
		t.Error("the palette is loaded when it is first asked for, not before")
	}
}
