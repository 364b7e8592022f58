package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

// testUses is the uses of a name in files that are named like tests, where it is used
// elsewhere too. One who asks who uses a name asks about the product first, and tests may
// have most of its uses: they are told by their lines or, where they are many, by how
// many a file has.
type testUses struct {
	files []testFile
	lines int
}

// testFile is a file of tests with the uses in it.
type testFile struct {
	where string
	uses  []*symbols.SymbolMatch
}

// mostTestFiles is how many files with tests are told of by their counts.
const mostTestFiles = 20

// testUses tells the uses in tests apart, or is nil where they are shown like the others:
// they are few, there are no others, or the caller has said which tests are wanted.
func (w *usesWriter) testUses(r *symbols.SymbolResponse) *testUses {
	path := w.Text("path")
	if w.Has("tests") || shard.IsTest(path) || shard.IsTest(path+"/") {
		return nil
	}

	// Each line is judged again when it is written: here no further than it takes to know.
	defer w.forget()
	inTests, elsewhere := 0, false
	for i := range r.Files {
		f := &r.Files[i]
		test := shard.IsTest(f.Path)
		if !test && elsewhere {
			continue
		}

		for m := range lines(f) {
			switch {
			case !w.counts(m, f.Language):
			case w.receivers != nil && !w.receivers.fits(m): // told of elsewhere, without their text
			case test:
				inTests++
			case !m.OutsideCode:
				elsewhere = true
			}
			if elsewhere && (!test || inTests > fewOthers) {
				break
			}
		}
		if elsewhere && inTests > fewOthers {
			return &testUses{}
		}
	}
	return nil
}

// add takes uses in one file.
func (t *testUses) add(where string, uses []*symbols.SymbolMatch) {
	t.files = append(t.files, testFile{where, uses})
	t.lines += len(uses)
}

// byLine reports whether each of the uses is told by its line.
func (t *testUses) byLine() bool { return t.lines <= mostByLine }

// block is what is told of the uses.
func (t *testUses) block() block {
	if t.byLine() {
		b := block{head: "In tests, by line:\n"}
		for _, f := range t.files {
			b.lines = append(b.lines, fmt.Sprintf("%s: %s\n", f.where, lineNumbers(f.uses)))
		}
		return b
	}

	// Those with most uses first: of the others the number says enough.
	slices.SortStableFunc(t.files, func(a, b testFile) int { return cmp.Compare(len(b.uses), len(a.uses)) })
	var shown []string
	for _, f := range t.files[:min(len(t.files), mostTestFiles)] {
		shown = append(shown, fmt.Sprintf("%s %d", f.where, len(f.uses)))
	}

	text := strings.Join(shown, ", ")
	if more := len(t.files) - len(shown); more > 0 {
		text += " and " + count(more, "further file")
	}
	return block{head: fmt.Sprintf("In tests, how often in %s: %s\n", count(len(t.files), "file"), text)}
}

// lineNumbers lists the lines of uses; those in comments and strings have their mark.
func lineNumbers(uses []*symbols.SymbolMatch) string {
	numbers := make([]string, len(uses))
	for i, m := range uses {
		numbers[i] = fmt.Sprint(m.Range.Start.Line)
		if m.OutsideCode {
			numbers[i] += "~"
		}
	}
	return strings.Join(numbers, ", ")
}
