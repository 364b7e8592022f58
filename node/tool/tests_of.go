package tool

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

const (
	mostTests    = 10   // that an answer has
	mostTestable = 100  // names of a path that are looked for
	mostTestFile = 1000 // files that may use them
	leastWeight  = 0.1  // of a test: one name that ten tests use, or one commit in ten
)

// testFile is a test file, with its relations to a path.
type testFile struct {
	path    string
	named   bool           // as the path, but for the marks of tests
	uses    map[string]int // lines by name
	commits int            // that changed it and the path
	weight  float64
}

// testsOfPath lists the likely tests of a path: files with a similar name, that use what it
// defines, or that changed together with it.
func testsOfPath(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	o, err := b.Outline(ctx, v, browse.OutlineRequest{Repo: a.Text("repo"), Ref: a.Text("ref"), Paths: []string{a.Text("path")}})
	if err != nil {
		return "", err
	}
	names := testable(o)
	tests := &testsOf{path: a.Text("path"), files: map[string]*testFile{}}

	// Search for the file's name too, because tests import it.
	filter := paths.Filter{Tests: paths.TestsOnly}
	pattern := wordsPattern(append(names, stem(a.Text("path"))))
	r, err := s.Grep(ctx, v, search.GrepRequest{Pattern: pattern, Repo: a.Text("repo"), Ref: a.Text("ref"), Paths: filter, Limit: mostTestFile})
	if err != nil {
		return "", err
	}
	tests.use(r.Files, regexp.MustCompile(pattern), names)

	isTest, err := filter.Keeps()
	if err != nil {
		return "", err
	}
	together, err := b.Together(ctx, v, browse.TogetherRequest{Repo: a.Text("repo"), Ref: a.Text("ref"), Path: a.Text("path"), Max: mostTestFile})
	if err != nil {
		return "", err
	}
	for _, f := range together.Files {
		if isTest(f.Path) && !f.Gone {
			tests.file(f.Path).commits = f.Commits
		}
	}
	return tests.text(a, r.Coverage, together), nil
}

// testsOf collects the tests of a path.
type testsOf struct {
	path  string
	files map[string]*testFile
}

func (t *testsOf) file(name string) *testFile {
	f := t.files[name]
	if f == nil {
		f = &testFile{path: name, named: name != t.path && sameButTest(name, t.path), uses: map[string]int{}}
		t.files[name] = f
	}
	return f
}

// use counts uses of the names in files. A name that many tests use has little weight.
func (t *testsOf) use(found []search.GrepFile, expr *regexp.Regexp, names []string) {
	in := map[string]int{}
	for i := range found {
		f := t.file(found[i].Path)
		for _, line := range found[i].Lines {
			for _, name := range expr.FindAllString(string(line.Text), -1) {
				if !contains(names, name) {
					continue
				}
				if f.uses[name]++; f.uses[name] == 1 {
					in[name]++
				}
			}
		}
	}
	for _, f := range t.files {
		for name := range f.uses {
			f.weight += 1 / float64(in[name])
		}
	}
}

// text lists the tests, the likeliest first.
func (t *testsOf) text(a *Args, c coverage.Coverage, together *browse.TogetherResponse) string {
	var list []*testFile
	for _, f := range t.files {
		f.weight += float64(f.commits) / float64(max(together.Commits, 1))
		if f.named {
			f.weight += 100
		}
		if f.path != t.path && f.weight >= leastWeight {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(x, y *testFile) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(x.path, y.path))
	})

	var out strings.Builder
	fmt.Fprintf(&out, "%s may test %s, likeliest first: by name, uses of what it defines, common commits\n", count(len(list), "file"), fileLabel(t.path))
	for _, f := range list[:min(len(list), mostTests)] {
		out.WriteString(f.line())
	}
	var e end
	e.lacks(a, c, "")
	e.covers(a, together.Coverage(), words{coverage.Limit: "older commits"})
	if more := len(list) - mostTests; more > 0 {
		e.leaves(fmt.Sprintf("%s that are less likely", count(more, "file")))
	}
	return out.String() + e.String()
}

// line says why a file may be a test of the path.
func (f *testFile) line() string {
	var why []string
	if f.named {
		why = append(why, "same name")
	}
	lines := 0
	for _, n := range f.uses {
		lines += n
	}
	if lines > 0 {
		why = append(why, fmt.Sprintf("%s of %s", count(lines, "use"), strings.Join(most(f.uses, 4), ", ")))
	}
	if f.commits > 0 {
		why = append(why, count(f.commits, "commit"))
	}
	return fmt.Sprintf("%s: %s\n", fileLabel(f.path), label(strings.Join(why, "; ")))
}

// testable returns names defined in a path that a test may use.
func testable(o *browse.OutlineResponse) (names []string) {
	for i := range o.Files {
		for _, s := range o.Files[i].Symbols {
			if len(s.Name) > 2 && oneName.MatchString(s.Name) && !contains(spaceKinds, s.Kind) && s.Kind != "local" && s.Kind != "parameter" && !isLambda(&s) && len(names) < mostTestable {
				names = addOnce(names, s.Name)
			}
		}
	}
	return names
}

// wordsPattern returns an expression that matches each of some names as a whole word.
func wordsPattern(names []string) string {
	var parts []string
	for _, name := range names {
		if name == "" {
			continue
		}
		expr := regexp.QuoteMeta(name)
		if symbolWord.MatchString(name) {
			expr = `\b` + expr + `\b`
		}
		parts = append(parts, expr)
	}
	return strings.Join(parts, "|")
}

// symbolWord matches names that begin and end with word characters, where \b works.
var symbolWord = regexp.MustCompile(`^\w(?:.*\w)?$`)

// stem returns the name of a file without directory and extensions.
func stem(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".")
	return name
}

var (
	nameParts = regexp.MustCompile(`[A-Z]+(?:[a-z0-9]+)?|[a-z0-9]+`)
	testMarks = []string{"test", "tests", "spec", "specs", "it", "unit", "integration"}
)

// sameButTest reports whether two file names are equal apart from marks of tests: client_test.rb,
// test_client.rb, ClientTest.kt, client.spec.ts.
func sameButTest(x, y string) bool {
	parts := func(file string) string {
		all := nameParts.FindAllString(strings.TrimSuffix(path.Base(file), path.Ext(file)), -1)
		for i := range all {
			all[i] = strings.ToLower(all[i])
		}
		kept := slices.DeleteFunc(all, func(p string) bool { return contains(testMarks, p) })
		return strings.Join(kept, " ")
	}
	name := parts(x)
	return name != "" && name == parts(y)
}
