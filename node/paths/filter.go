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

// Filter selects the files of a repository. The zero value selects all of them.
//
// A glob with a slash must match the path from Dir on, or the whole path if the glob begins with
// Dir. A glob without a slash matches the last part of a path at any depth. A plain name also
// matches everything below directories of that name. "/*.go" matches in the root only.
type Filter struct {
	Dir     string   // directory, or one file; "" means the root
	Include []string // globs; a path must match one of them; empty means any path
	Exclude []string // globs; a path must match none of them
	Repos   []string // full names of repositories; nil means all repositories of the request
	Tests   string   // "exclude" leaves out tests, "only" selects only tests; "" selects both
}

// The values of Filter.Tests.
const (
	TestsExcluded = "exclude"
	TestsOnly     = "only"
)

// maxName is the greatest length of a plain name, in bytes.
const maxName = 4096

// maxGlobs is the greatest number of globs in a filter.
const maxGlobs = 100

// cleanDir removes a leading "./", slashes at both ends, and a lone "." from a directory.
func cleanDir(dir string) string {
	dir = strings.Trim(strings.TrimPrefix(dir, "./"), "/")
	if dir == "." {
		return ""
	}
	return dir
}

// Exprs are expressions for paths: a path must match all of Must and none of Not. The zero value
// accepts every path. Exprs travel between nodes without repositories, because the other node knows
// which repository it is asked about.
type Exprs struct {
	Must, Not []string

	repos []string
}

// In returns the expressions restricted to some repositories, by their full names; nil means all.
func (e Exprs) In(repos []string) Exprs {
	e.repos = repos
	return e
}

// Exprs returns the filter as expressions.
func (f *Filter) Exprs() (Exprs, error) {
	must, not, err := f.expressions()
	return Exprs{Must: must, Not: not, repos: f.Repos}, err
}

// Keeps returns the filter as a function of a path from the root.
func (f *Filter) Keeps() (func(path string) bool, error) {
	e, err := f.Exprs()
	if err != nil {
		return nil, err
	}
	return e.Keeps()
}

// expressions returns the expressions that a path must all match, and those of which it must match
// none.
func (f *Filter) expressions() (required, excluded []string, err error) {
	included, exclude := Globs(f.Include...), Globs(f.Exclude...)
	if len(included)+len(exclude) > maxGlobs {
		return nil, nil, call.Fail(call.ErrInvalid, "at most %d globs can be given", maxGlobs)
	}

	// The directory may be a single file, so its own path matches too.
	dir := cleanDir(f.Dir)
	if dir != "" {
		required = append(required, begin+nameExpr(dir)+belowOrEnd)
	}

	// "!x" among the globs to include is a glob to exclude.
	var include []string
	for _, glob := range included {
		rest, excluded := cutNegation(glob)
		if excluded {
			exclude = append(exclude, rest)
			continue
		}

		expr, err := pathExpr(dir, rest, true)
		if err != nil {
			return nil, nil, err
		}

		include = append(include, expr)
	}

	// A path must match one of the globs to include and none of the others.
	if include != nil {
		required = append(required, strings.Join(include, "|"))
	}
	for _, glob := range exclude {
		expr, err := pathExpr(dir, glob, true)
		if err != nil {
			return nil, nil, err
		}

		excluded = append(excluded, expr)
	}

	switch f.Tests {
	case "":
	case TestsExcluded:
		excluded = append(excluded, shard.TestPaths())
	case TestsOnly:
		required = append(required, shard.TestPaths())
	default:
		return nil, nil, call.Fail(call.ErrInvalid, "tests must be %s or %s", TestsExcluded, TestsOnly)
	}

	// Each glob was short enough, but the index gets them in one expression.
	for _, expr := range slices.Concat(required, excluded) {
		if len(expr) > match.MaxPattern {
			return nil, nil, tooLong("list of globs")
		}
	}
	return required, excluded, nil
}

// A name may contain line breaks, so ^ and $ do not mark the ends of a path.
const (
	begin      = `\A`
	belowOrEnd = `(?:/|\z)`
)

// Globs splits texts into globs. A text may have several globs with commas between them.
func Globs(texts ...string) (globs []string) {
	for _, text := range texts {
		globs = append(globs, globsOf(text)...)
	}
	return globs
}

// nameExpr returns the expression for a written name. Characters written as codes also match as
// themselves.
func nameExpr(written string) string {
	expr := regexp.QuoteMeta(written)
	if name := Characters(written); name != written {
		return "(?:" + expr + "|" + regexp.QuoteMeta(name) + ")"
	}
	return expr
}

// pathExpr returns the expression for the paths below a directory that a glob matches. A path with
// special characters of globs also matches itself, such as app/[id].tsx.
func pathExpr(dir, glob string, below bool) (string, error) {
	glob = strings.TrimPrefix(glob, "./")
	plain := strings.TrimSuffix(glob, "/")
	trimmed := strings.TrimPrefix(plain, "/")
	expr, err := globExpr(Characters(trimmed))
	switch {
	case strings.ContainsAny(trimmed, `[{(\`) && err == nil:
		expr = "(?:" + expr + "|" + nameExpr(trimmed) + ")"
	case !strings.ContainsAny(trimmed, "*?") && !strings.Contains(trimmed, "!(") && len(trimmed) <= maxName && (!IsGlob(trimmed) || strings.HasPrefix(trimmed, "!")):
		expr = nameExpr(trimmed) // a plain name
	case err != nil:
		return "", err
	}

	itself := fileItself(dir, expr)
	named := dir != "" && strings.HasPrefix(plain, dir+"/") // the glob is a path from the root, as answers have it
	if dir != "" {
		dir = nameExpr(dir) + "/"
	}
	end := `\z`
	switch {
	case strings.HasSuffix(glob, "/"):
		end = "/"
	case below && !strings.ContainsAny(plain, signs): // a name of a file or of a directory
		end = belowOrEnd
	}

	// A slash anywhere ties the glob to the directory, as in the files of git.
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

// fileItself returns an alternative for the case that dir is a file which the glob matches by its
// name or by its path; "" if it does not.
func fileItself(dir, expr string) string {
	name := Characters(dir)
	whole, err := regexp.Compile(`\A(?:` + expr + `)\z`)
	if dir == "" || err != nil || !whole.MatchString(name) && !whole.MatchString(path.Base(name)) {
		return ""
	}
	return "|" + begin + nameExpr(dir) + `\z`
}

// OfGlob returns the Exprs for the pattern of the tool glob. Unlike in a Filter, a plain name
// matches only files.
func OfGlob(dir, pattern string) (Exprs, error) {
	var exprs, not []string
	for _, glob := range globsOf(pattern) {
		glob, inverse := cutNegation(glob)
		if base := path.Base(glob); !strings.ContainsAny(glob, signs) && base == strings.Trim(glob, "/") {
			glob = strings.TrimSuffix(glob, "/") // only files can be found
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

// Atoms returns the expressions as conditions of a query.
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

// Keeps returns the expressions as a function of a path from the root.
func (e Exprs) Keeps() (func(path string) bool, error) {
	// Must comes first, so that the index in the list tells Must from Not.
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
