package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Every filter accepts its example and its values under all of its names.
func TestFilters_acceptTheirExamples(t *testing.T) {
	t.Parallel()
	for _, f := range slices.Concat(Filters(), ChangeFilters()) {
		for _, name := range f.Names {
			for _, value := range append(f.Values, f.Example) {
				q, err := Parse(inQuery(f, name+":"+value), Options{})
				if err != nil {
					t.Errorf("%s:%s: %v", name, value, err)
				} else if text := name + ":" + value; q.Q.String() == (&Text{Pattern: text}).String() {
					t.Errorf("%s is searched for as text", text)
				}
			}
		}
	}
}

// inQuery is a query with a filter of which it may have one.
func inQuery(f Filter, text string) string {
	if f.Changes {
		return "type:diff " + text
	}
	return text
}

// The filters of changes are text in a search of files, where somebody may have pasted them.
func TestCommitFilters_areTextInASearchOfFiles(t *testing.T) {
	t.Parallel()
	for _, f := range ChangeFilters() {
		for _, name := range f.Names {
			for _, text := range []string{name + ":" + f.Example, `"type:diff" ` + name + ":x", "type:file " + name + ": x"} {
				q, err := Parse(text, Options{})
				if err != nil || !strings.Contains(q.Q.String(), fmt.Sprintf("content:%q", strings.Fields(strings.TrimPrefix(strings.TrimPrefix(text, "type:file "), `"type:diff" `))[0])) {
					t.Errorf("%s is read as %v: %v", text, q, err)
				}
			}
		}
	}
}

// A query about changes is written as it is read.
func TestFormat_writesACommitQueryAsItIsRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"type:diff added:x -removed:\"a b\" file:go$", "type:commit message:fix (author:^ann or committer:bob) since:2026-01 until:2026-02-03", "merge:only type:commit -m:x",
	} {
		q, err := Parse(text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		written, ok := Format(q, Options{})
		again, err := Parse(written, Options{})
		if !ok || err != nil || again.Q.String() != q.Q.String() || again.Type != q.Type {
			t.Errorf("%s is written %s (%v, %v)", text, written, ok, err)
		}
	}
}

// TestFilters_withFixedValuesNameThemInErrors checks that a filter with fixed values names them in its error.
func TestFilters_withFixedValuesNameThemInErrors(t *testing.T) {
	t.Parallel()
	for _, f := range slices.Concat(Filters(), ChangeFilters()) {
		_, err := Parse(inQuery(f, f.Names[0]+":maybe"), Options{})
		if f.Closed && (err == nil || !strings.Contains(err.Error(), f.Values[len(f.Values)-1]+" after "+f.Names[0]+":")) {
			t.Errorf("%s:maybe: %v", f.Names[0], err)
		}
	}
}
