package paths

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// Filter says in which files of a repository something is looked for. The
// zero value takes them all.
//
// A glob with a slash has to match the path from Dir on, or the whole of it where the glob
// begins with Dir; one without matches the last part of a path at any depth, and a plain name also stands for all
// that is below directories of that name. "/*.go" is the root alone.
type Filter struct {
	Dir     string   // directory, or one file; "" for the root
	Include []string // globs, of which a path has to match one; none for all
	Exclude []string // globs, of which it must match none
	Repos   []string // full names of repositories; nil for all that a request is about
	Tests   string   // "exclude" leaves out tests, "only" takes nothing else; "" takes both
}

// What Filter.Tests can be.
const (
	TestsExcluded = "exclude"
	TestsOnly     = "only"
)

// maxName bounds a name that is no glob, in bytes.
const maxName = 4096

// maxGlobs bounds the globs of a filter.
const maxGlobs = 100

// clean takes the marks off a directory that stand for nothing.
func cleanDir(dir string) string {
	dir = strings.Trim(strings.TrimPrefix(dir, "./"), "/")
	if dir == "." {
		return ""
	}
	return dir
}

// Exprs is expressions of paths: all of Must have to match, none of Not may.
// The zero value takes every path. It travels between nodes, without repositories: the node
// that is asked knows which they are.
type Exprs struct {
	Must, Not []string

	repos []string
}

// In is the expressions in some repositories, by their full names; nil for all.
func (e Exprs) In(repos []string) Exprs {
	e.repos = repos
	return e
}

// Exprs is the filter as expressions.
func (f *Filter) Exprs() (Exprs, error) {
	must, not, err := f.exprs()
	return Exprs{Must: must, Not: not, repos: f.Repos}, err
}

// Keeps is the filter as a function of a path from the root.
func (f *Filter) Keeps() (func(path string) bool, error) {
	e, err := f.Exprs()
	if err != nil {
		return nil, err
	}
	return e.Keeps()
}

func (f *Filter) exprs() (must, not []string, err error) {
	included, exclude := Globs(f.Include...), Globs(f.Exclude...)
	if len(included)+len(exclude) > maxGlobs {
		return nil, nil, call.Fail(call.ErrInvalid, "at most %d globs can be given", maxGlobs)
	}

	// The directory itself counts, as it may be one file.
	dir := cleanDir(f.Dir)
	if dir != "" {
		must = append(must, begin+nameExpr(dir)+belowOrEnd)
	}

	// "!x" among the globs to include is one to exclude.
	var include []string
	for _, glob := range included {
		rest, not := inverse(glob)
		if not {
			exclude = append(exclude, rest)
			continue
		}

		expr, err := pathExpr(dir, rest, true)
		if err != nil {
			return nil, nil, err
		}

		include = append(include, expr)
	}

	// One of the globs to include has to match, and each of the others must not.
	if include != nil {
		must = append(must, strings.Join(include, "|"))
	}
	for _, glob := range exclude {
		expr, err := pathExpr(dir, glob, true)
		if err != nil {
			return nil, nil, err
		}

		not = append(not, expr)
	}

	switch f.Tests {
	case "":
	case TestsExcluded:
		not = append(not, shard.TestPaths())
	case TestsOnly:
		must = append(must, shard.TestPaths())
	default:
		return nil, nil, call.Fail(call.ErrInvalid, "tests must be %s or %s", TestsExcluded, TestsOnly)
	}

	// Each was short enough alone, but the index takes them in one.
	for _, expr := range slices.Concat(must, not) {
		if len(expr) > match.MaxPattern {
			return nil, nil, tooLong("list of globs")
		}
	}
	return must, not, nil
}

// A name may have line breaks, so ^ and $ are not where a path begins and ends.
const (
	begin      = `\A`
	belowOrEnd = `(?:/|\z)`
)

// Globs lists the globs of texts, each of which may have several with commas between them.
func Globs(texts ...string) (globs []string) {
	for _, text := range texts {
		globs = append(globs, globsOf(text)...)
	}
	return globs
}

// nameExpr is the expression of a name as it is written: what it says by codes may also
// stand in it as it is.
func nameExpr(written string) string {
	expr := regexp.QuoteMeta(written)
	if name := Characters(written); name != written {
		return "(?:" + expr + "|" + regexp.QuoteMeta(name) + ")"
	}
	return expr
}

// pathExpr is the expression of the paths below a directory that a glob means. A path that
// has signs of globs is itself too, as app/[id].tsx.
func pathExpr(dir, glob string, below bool) (string, error) {
	glob = strings.TrimPrefix(glob, "./")
	plain := strings.TrimSuffix(glob, "/")
	from := strings.TrimPrefix(plain, "/")
	expr, err := globExpr(Characters(from))
	switch {
	case strings.ContainsAny(from, `[{(\`) && err == nil:
		expr = "(?:" + expr + "|" + nameExpr(from) + ")"
	case !strings.ContainsAny(from, "*?") && !strings.Contains(from, "!(") && len(from) <= maxName && (!IsGlob(from) || strings.HasPrefix(from, "!")):
		expr = nameExpr(from) // no glob at all
	case err != nil:
		return "", err
	}

	itself := fileItself(dir, expr)
	named := dir != "" && strings.HasPrefix(plain, dir+"/") // the path from the root, as an answer has it
	if dir != "" {
		dir = nameExpr(dir) + "/"
	}
	end := `\z`
	switch {
	case strings.HasSuffix(glob, "/"):
		end = "/"
	case below && !strings.ContainsAny(plain, signs): // a name of a file, or of a directory
		end = belowOrEnd
	}

	// A slash anywhere binds the glob to the directory, as in the files of git.
	switch {
	case named:
		return begin + "(?:" + dir + ")?" + expr + end, nil
	case strings.Contains(plain, "/"):
		return begin + dir + expr + end + itself, nil
	}
	if dir != "" {
		return begin + dir + "(?s:.*/)?" + expr + end + itself, nil
	}
	return `(?:\A|/)` + expr + end, nil
}

// fileItself is the further case that dir is a file, which a glob means by its name or by
// its path; "" where the glob does not.
func fileItself(dir, expr string) string {
	name := Characters(dir)
	whole, err := regexp.Compile(`\A(?:` + expr + `)\z`)
	if dir == "" || err != nil || !whole.MatchString(name) && !whole.MatchString(path.Base(name)) {
		return ""
	}
	return "|" + begin + nameExpr(dir) + `\z`
}

// OfGlob is Exprs for the pattern of glob, which means the same but for a
// plain name: that of a file.
func OfGlob(dir, pattern string) (Exprs, error) {
	var exprs, not []string
	for _, glob := range globsOf(pattern) {
		glob, inverse := inverse(glob)
		if base := path.Base(glob); !strings.ContainsAny(glob, signs) && base == strings.Trim(glob, "/") {
			glob = strings.TrimSuffix(glob, "/") // no directory can be found
		}
		expr, err := pathExpr(cleanDir(dir), glob, false)
		if err != nil {
			return Exprs{}, err
		}
		if name, ok := strings.CutSuffix(expr, belowOrEnd); ok {
			expr = name + `\z`
		}
		if inverse {
			not = append(not, expr)
		} else {
			exprs = append(exprs, expr)
		}
	}
	switch dir = cleanDir(dir); {
	case exprs != nil:
		return Exprs{Must: []string{strings.Join(exprs, "|")}, Not: not}, nil
	case dir != "":
		return Exprs{Must: []string{begin + nameExpr(dir) + belowOrEnd}, Not: not}, nil
	}
	return Exprs{Not: not}, nil
}

// Atoms are the expressions for the index.
func (e Exprs) Atoms() []query.Q {
	var subs []query.Q
	for _, expr := range e.Must {
		subs = append(subs, &query.Text{Pattern: expr, Regexp: true, Field: query.Name})
	}
	for _, expr := range e.Not {
		subs = append(subs, &query.Not{Sub: &query.Text{Pattern: expr, Regexp: true, Field: query.Name}})
	}
	if e.repos != nil {
		subs = append(subs, &query.RepoSet{Names: e.repos})
	}
	return subs
}

// Keeps is the expressions as a function of a path from the root.
func (e Exprs) Keeps() (func(path string) bool, error) {
	// Must first: the place in the list tells which of both an expression is.
	compiled := make([]*regexp.Regexp, 0, len(e.Must)+len(e.Not))
	for _, expr := range append(e.Must[:len(e.Must):len(e.Must)], e.Not...) {
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil, call.Fail(call.ErrInvalid, "glob: %v", err)
		}

		compiled = append(compiled, re)
	}
	return func(path string) bool {
		for i, re := range compiled {
			if re.MatchString(path) != (i < len(e.Must)) {
				return false
			}
		}
		return true
	}, nil
}
