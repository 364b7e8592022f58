package query

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFilters_areDocumented checks that docs/reference/queries.md lists every filter as its row
// does, and that every filter accepts its example and its values under all of its names.
func TestFilters_areDocumented(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for _, f := range Filters() {
		var names []string
		for _, name := range f.Names {
			names = append(names, "`"+name+":`")
			for _, value := range append(f.Values, f.Example) {
				q, err := Parse(name+":"+value, Options{})
				if err != nil {
					t.Errorf("%s:%s: %v", name, value, err)
				} else if text := name + ":" + value; q.Q.String() == (&Text{Pattern: text}).String() {
					t.Errorf("%s is searched for as text", text)
				}
			}
		}
		fmt.Fprintf(&want, "| %s | %s |\n", strings.Join(names, " "), strings.ReplaceAll(f.Sentence(), "*", "`*`"))
	}

	page, err := os.ReadFile("../../docs/reference/queries.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), want.String()) {
		t.Errorf("docs/reference/queries.md lacks these rows of filters:\n%s", &want)
	}
}

// TestFilters_refuseOtherValues checks that a filter with fixed values names them in its error.
func TestFilters_refuseOtherValues(t *testing.T) {
	t.Parallel()
	for _, f := range Filters() {
		_, err := Parse(f.Names[0]+":maybe", Options{})
		if f.Closed && (err == nil || !strings.Contains(err.Error(), f.Values[len(f.Values)-1]+" after "+f.Names[0]+":")) {
			t.Errorf("%s:maybe: %v", f.Names[0], err)
		}
	}
}
