package query

import (
	"slices"
	"strings"
)

// Filter is a filter of the query language. Completion, help, pages and documents know it only by
// its row in the table.
type Filter struct {
	Names   []string // without the colon; the first is the usual one
	Values  []string // suggested values; nil if any text may stand
	Closed  bool     // it accepts only Values
	Means   string   // a phrase
	Detail  string   // more to know; "" for nothing
	Example string   // a valid value
	Changes bool     // only of queries with type:commit or type:diff; elsewhere it is text

	is prefix
}

// filters are in the order of suggestions: common ones come first, those of changes last.
var filters = []Filter{
	{Names: []string{"repo", "r"}, Means: "repositories whose name matches", Detail: "an expression", Example: "^acme", is: repoPrefix},
	{Names: []string{"file", "f"}, Means: "files whose path matches", Detail: "an expression", Example: "main", is: filePrefix},
	{Names: []string{"lang", "l"}, Means: "files of a language", Detail: "by name or alias; lang:skipped lists files that are kept by name only", Example: "go", is: langPrefix},
	{Names: []string{"sym"}, Means: "symbols whose name matches", Detail: "an expression; symbols come after the text, and not without ctags", Example: "^New", is: symPrefix},
	{Names: []string{"dep"}, Means: "manifests and lock files that name a library", Detail: "as package.json, go.mod, Cargo.lock; with type:repo the repositories that use it", Example: "zod", is: depPrefix},
	{Names: []string{"rev", "branch", "b", "revision"}, Means: "a branch, tag or commit",
		Detail: "a commit may be cut short; 7.* or {a,b} names several, and * every indexed revision; HEAD without the filter", Example: "main", is: revPrefix},
	{Names: []string{"at"}, Means: "a date, as 2026-01-31",
		Detail: "what HEAD, or the one rev: of the query, was then; read from git where it is not indexed; 2026-01 and 2026-01-31T12:00Z too", Example: "2026-01-31", is: atPrefix},
	{Names: []string{"content", "c"}, Means: "text that looks like a filter", Example: "rev:x", is: contentPrefix},
	{Names: []string{"context"}, Means: "a search context", Detail: "of the configuration; its name and its globs match in either case", Example: "web", is: contextPrefix},
	{Names: []string{"reposet"}, Means: "repositories by exact name", Detail: "with commas between: reposet:a,b", Example: "a,b", is: repoSetPrefix},
	{Names: []string{"case"}, Values: []string{"yes", "no", "auto"}, Closed: true, Means: "case counts", Detail: "instead of the toggle", Example: "yes", is: casePrefix},
	{Names: []string{"type"}, Values: []string{"file", "repo", "commit", "diff"}, Closed: true, Means: "what is returned", Detail: "commit and diff search the past", Example: "file", is: typePrefix},
	{Names: []string{"count"}, Values: []string{"all", "100", "1000", "10000"}, Means: "how much is returned; all counts everything", Detail: "instead of matches", Example: "100", is: countPrefix},
	{Names: []string{"archived"}, Values: []string{"yes", "no", "only"}, Closed: true, Means: "archived repositories", Example: "no", is: archivedPrefix},
	{Names: []string{"fork"}, Values: []string{"yes", "no", "only"}, Closed: true, Means: "forks", Example: "no", is: forkPrefix},
	{Names: []string{"visibility"}, Values: []string{"public", "internal", "private", "any"}, Closed: true, Means: "repositories by visibility", Detail: "private is all that is not public", Example: "public", is: visibilityPrefix},
	{Names: []string{"timeout"}, Values: []string{"500ms", "5s", "30s"}, Means: "bounds the query", Detail: "up to 1h", Example: "500ms", is: timeoutPrefix},

	{Names: []string{"added"}, Means: "files of commits in which a line came", Detail: "a text, or an expression with the toggle", Example: "TODO", Changes: true, is: addedPrefix},
	{Names: []string{"removed"}, Means: "files of commits in which a line went", Detail: "a text, or an expression with the toggle", Example: "TODO", Changes: true, is: removedPrefix},
	{Names: []string{"message", "msg", "m"}, Means: "commits by their message", Detail: "a text, or an expression with the toggle", Example: "fix", Changes: true, is: messagePrefix},
	{Names: []string{"author"}, Means: "commits by who wrote them", Detail: "an expression; a name or an address", Example: "ann@", Changes: true, is: authorPrefix},
	{Names: []string{"committer"}, Means: "commits by who committed them", Detail: "an expression; a name or an address", Example: "ann@", Changes: true, is: committerPrefix},
	{Names: []string{"since", "after"}, Means: "commits from a date on, as 2026-01-31", Detail: "when they were committed; 2026-01 and 2026-01-31T12:00Z too", Example: "2026-01-31", Changes: true, is: sincePrefix},
	{Names: []string{"until", "before"}, Means: "commits up to a date, as 2026-01-31", Detail: "when they were committed; 2026-01 and 2026-01-31T12:00Z too", Example: "2026-01-31", Changes: true, is: untilPrefix},
	{Names: []string{"merge"}, Values: []string{"yes", "no", "only"}, Closed: true, Means: "merges", Example: "no", Changes: true, is: mergePrefix},
}

// filterName is a filter under one of its names.
type filterName struct {
	name    string
	is      prefix
	changes bool
}

// prefixes lists every name of every filter, for the lexer.
var prefixes = func() (all []filterName) {
	for _, f := range filters {
		for _, name := range f.Names {
			all = append(all, filterName{name, f.is, f.Changes})
		}
	}
	return all
}()

// firstOfChanges is the index in filters of the first filter of changes.
var firstOfChanges = slices.IndexFunc(filters, func(f Filter) bool { return f.Changes })

// Filters returns the filters of every query, common ones first. The caller must not change them.
func Filters() []Filter { return filters[:firstOfChanges] }

// ChangeFilters returns the further filters of queries with type:commit or type:diff. In
// other queries they are text.
func ChangeFilters() []Filter { return filters[firstOfChanges:] }

// FilterNamed returns the filter with a name, given without its colon; nil if there is none.
func FilterNamed(name string) *Filter {
	i := slices.IndexFunc(filters, func(f Filter) bool { return slices.Contains(f.Names, name) })
	if i < 0 {
		return nil
	}
	return &filters[i]
}

// Meaning returns what the filter asks for. It adds the values if the filter accepts only these.
func (f *Filter) Meaning() string {
	if !f.Closed {
		return f.Means
	}
	return f.Means + ": " + strings.Join(f.Values, ", ")
}

// Sentence returns the meaning with the detail, for help and documents.
func (f *Filter) Sentence() string {
	if f.Detail == "" {
		return f.Meaning()
	}
	return f.Meaning() + " (" + f.Detail + ")"
}

// Written returns the names of the filter as people type them, such as "file: f:".
func (f *Filter) Written() string { return strings.Join(f.Names, ": ") + ":" }

// row returns the row of a filter in the table filters.
func (p prefix) row() *Filter {
	return &filters[slices.IndexFunc(filters, func(f Filter) bool { return f.is == p })]
}

// String returns the usual name of the filter, with the colon.
func (p prefix) String() string { return p.row().Names[0] + ":" }

// checkValue returns an error for a value that the filter does not accept.
func (f *Filter) checkValue(value string, at int) error {
	if !f.Closed || slices.Contains(f.Values, value) {
		return nil
	}
	last := len(f.Values) - 1
	return fail(at, "%s or %s after %s", strings.Join(f.Values[:last], ", "), f.Values[last], f.is).withChoices(f.Values...)
}
