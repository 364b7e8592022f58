package tool

import (
	"fmt"

	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
)

// What the filter of tests keeps from an answer is told in it: without that it
// would read as if there was no more.

// otherTests is the filter of tests that takes what that of a call leaves out,
// and how the files of that are named; "" where it leaves out nothing.
func otherTests(a *Args) (kept, named string) {
	switch a.Text("tests") {
	case paths.TestsExcluded:
		return paths.TestsOnly, "named like tests"
	case paths.TestsOnly:
		return paths.TestsExcluded, "not named like tests"
	}
	return "", ""
}

// leftByTests is what a filter of tests left out.
type leftByTests struct {
	files   int
	found   string // in them, as "3 matches"; "" where only the files are counted
	atLeast bool   // there may be more
	failed  bool   // nothing is known
	call    string // that has it
}

// text tells of it in files that are named so; "" for nothing.
func (l leftByTests) text(named string) string {
	switch {
	// That the number is not known must not cost the answer.
	case l.failed || l.files == 0 && l.atLeast:
		return fmt.Sprintf("what matches in files %s; %s has it", named, l.call)
	case l.files == 0:
		return ""
	}

	text := count(l.files, "file") + " " + named
	if l.atLeast {
		text = "at least " + text
	}
	if l.found != "" {
		text += ", with " + l.found
	}
	if l.files == 1 && l.found == "" {
		return text + "; " + l.call + " has it"
	}
	return text + "; " + l.call + " has them"
}

// leftByTests counts the uses that the filter of tests left out; "" for none.
func (l *lookup) leftByTests() string {
	kept, named := otherTests(l.Args)
	if kept == "" {
		return ""
	}

	// The same call with the other filter, of which the lines are only counted.
	other := &lookup{l.about("symbol", l.Text("symbol"), l.Number("maxTokens")), l.ctx, l.viewer, l.search, l.browse}
	other.set("tests", kept)
	left := leftByTests{call: l.with("tests", kept, "limit", nil)}

	r, err := other.used()
	if err != nil {
		left.failed = true
		return left.text(named)
	}

	w := &usesWriter{lookup: other, usages: usagesOf(l.name())}
	for i := range r.Files {
		w.file(&r.Files[i], nil)
	}
	left.files, left.atLeast = w.files, r.Coverage.Worst() != ""
	left.found = count(w.lines, w.noun())
	return left.text(named)
}

// leftByTestsOf counts the files that the filter of tests kept from a ranking; ""
// for none.
func (l *lookup) leftByTestsOf(req search.RankedRequest) string {
	kept, named := otherTests(l.Args)
	if kept == "" {
		return ""
	}
	left := leftByTests{call: l.with("tests", kept, "limit", nil)}

	req.Paths.Tests, req.Limit = kept, mostRanked
	r, err := l.search.Ranked(l.ctx, l.viewer, req)
	if err != nil {
		left.failed = true
		return left.text(named)
	}

	left.files, left.atLeast = len(r.Files), r.More || r.Coverage.Worst() != ""
	return left.text(named)
}
