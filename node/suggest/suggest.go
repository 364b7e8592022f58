package suggest

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-enry/go-enry/v2/data"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/query"
)

// Context is a search context of the configuration.
type Context struct{ Name, Description string }

// Deps are the dependencies of a Suggester.
type Deps struct {
	Search   symbols.Searcher
	Browse   browse.Reader
	Contexts func(context.Context, catalog.Viewer) ([]Context, error)
	Within   time.Duration // time limit of a completion
}

// Suggester completes queries and paths. It is safe for concurrent use.
type Suggester struct {
	d     Deps
	files lists
}

// New returns a suggester.
func New(d Deps) *Suggester { return &Suggester{d: d, files: newLists()} }

// Limits of an answer.
const (
	MaxQuery      = 4096                   // bytes
	Within        = 150 * time.Millisecond // for all look-ups
	most          = 12                     // suggestions
	languageFiles = 500                    // of which the most frequent languages are suggested
)

// Kind is the kind of a suggestion.
type Kind string

// Kinds of suggestions.
const (
	Filter     Kind = "filter"
	Value      Kind = "value"
	Repository Kind = "repository"
	Language   Kind = "language"
	Revision   Kind = "revision"
	ContextOf  Kind = "context"
	File       Kind = "file"
	Symbol     Kind = "symbol"
)

// Suggestion is a completion: Insert replaces the bytes from Start to End of the query.
type Suggestion struct {
	Kind   Kind   `json:"kind"`
	Insert string `json:"insert"`
	Span   `json:"replace"`
	Label  string `json:"label"`           // for display
	Detail string `json:"detail,omitzero"` // more for display: meaning of a filter, place of a symbol
}

// Span is the bytes of a query that a suggestion replaces.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Complete returns completions of a query at the cursor.
func (s *Suggester) Complete(ctx context.Context, v catalog.Viewer, text string, cursor int) ([]Suggestion, error) {
	switch {
	case len(text) > MaxQuery:
		return nil, call.Fail(call.ErrInvalid, "the query has %d bytes; at most %d can be completed", len(text), MaxQuery)
	case cursor < 0 || cursor > len(text):
		return nil, call.Fail(call.ErrInvalid, "cursor must be from 0 to the %d bytes of the query", len(text))
	}
	w, quoted := wordAt(text, cursor)
	if quoted {
		return []Suggestion{}, nil // quoted text is taken literally
	}

	// Later answers are useless, because the user types the next letter.
	ctx, cancel := context.WithTimeout(ctx, s.d.Within)
	defer cancel()
	// A name with two colons belongs to a language, as in content::Web.
	var out []Suggestion
	name, value, ok := strings.Cut(w.text, ":")
	if f := query.FilterNamed(name); ok && f != nil && !strings.HasPrefix(value, ":") {
		w.filter, w.name, w.value = f, name+":", value
		out = s.completeValue(ctx, v, w)
	} else {
		out = s.completeWord(ctx, v, w)
	}
	// One limit for all parts: files come last, so they are cut first.
	return slices.Clip(out[:min(len(out), most)]), nil
}

// word is the word of a query at the cursor.
type word struct {
	text       string        // without a leading -
	rest       string        // the query without the word
	start, end int           // of text
	filter     *query.Filter // nil for none
	name       string        // of the filter as typed, with its colon
	value      string
}

// suggest returns a suggestion that replaces the word.
func (w *word) suggest(kind Kind, insert, label, detail string) Suggestion {
	return Suggestion{Kind: kind, Insert: insert, Span: Span{w.start, w.end}, Label: label, Detail: detail}
}

// wordAt returns the word around the cursor, and whether the cursor is in quotes.
func wordAt(text string, cursor int) (w word, quoted bool) {
	begin := 0
	for i := 0; i < cursor; i++ {
		switch c := text[i]; {
		// An escaped quote does not end the text: skip the next byte.
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		// A parenthesis begins a word too, because groups need no spaces.
		case c == ' ' || c == '\t' || c == '\n' || c == '(':
			begin = i + 1
		}
	}

	if quoted {
		return w, true
	}

	// The completion also replaces the part of the word after the cursor.
	end := cursor
	for end < len(text) && !strings.ContainsRune(" \t\n)\"", rune(text[end])) {
		end++
	}

	// A leading - stays.
	if begin < end && text[begin] == '-' {
		begin++
	}
	begin = min(begin, end)
	return word{text: text[begin:end], rest: text[:begin] + text[end:], start: begin, end: end}, false
}

// completeWord completes a word without a filter: as a filter, repository, symbol or file.
func (s *Suggester) completeWord(ctx context.Context, v catalog.Viewer, w word) []Suggestion {
	var out []Suggestion
	low := strings.ToLower(w.text)
	// Filters need no look-up, so they always come first.
	for _, f := range query.Filters() {
		if name := f.Names[0]; strings.HasPrefix(name, low) {
			out = append(out, w.suggest(Filter, name+":", name+":", f.Meaning()))
		}
	}
	// Nearly every name has a single letter.
	if len(w.text) < 2 {
		return out
	}

	// All run at once under one deadline. The order is fixed, so that lines do not jump.
	parts := runAll(
		func() []Suggestion { return s.suggestRepositories(ctx, v, w, "repo:", w.text, 3) },
		func() []Suggestion { return s.suggestSymbols(ctx, v, w, "sym:", w.text, 5) },
		func() []Suggestion { return s.suggestPaths(ctx, v, w, "file:", w.text, 4) },
	)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// completeValue completes the value of a filter.
func (s *Suggester) completeValue(ctx context.Context, v catalog.Viewer, w word) []Suggestion {
	// A filter has several names. The suggestion keeps the name that was typed.
	switch w.filter.Names[0] {
	case "repo":
		return s.suggestRepositories(ctx, v, w, w.name, w.value, most)
	case "reposet":
		// A list of names: complete the last one.
		return s.suggestRepositories(ctx, v, w, w.name, w.value[strings.LastIndexByte(w.value, ',')+1:], most)
	case "lang":
		return s.suggestLanguages(ctx, v, w)
	case "rev":
		return s.suggestRevisions(ctx, v, w)
	case "context":
		return s.suggestContexts(ctx, v, w)
	case "file":
		return s.suggestPaths(ctx, v, w, w.name, w.value, most)
	case "sym":
		return s.suggestSymbols(ctx, v, w, w.name, w.value, most)
	}

	// Other filters have fixed values, or none to suggest.
	var out []Suggestion
	for _, value := range w.filter.Values {
		if strings.HasPrefix(value, w.value) {
			out = append(out, w.suggest(Value, w.name+value+" ", value, ""))
		}
	}
	return out
}

// runAll runs functions in parallel and returns their results in order.
func runAll(parts ...func() []Suggestion) [][]Suggestion {
	out := make([][]Suggestion, len(parts))
	all, _ := call.NewGroup(context.Background(), 0)
	for i, part := range parts {
		all.Go(func() error { out[i] = part(); return nil })
	}
	_ = all.Wait() // parts have no error
	return out
}

// suggestRepositories suggests repositories whose name contains a text.
func (s *Suggester) suggestRepositories(ctx context.Context, v catalog.Viewer, w word, filter, value string, n int) []Suggestion {
	// The text may be an expression, but the listing searches for plain text.
	r, err := s.d.Browse.Repos(ctx, v, browse.ReposRequest{Query: plainText(value), PerPage: n})
	if err != nil {
		return nil
	}

	out := make([]Suggestion, 0, len(r.Repos))
	for i := range r.Repos {
		// Anchor the expression, so that it does not match longer names.
		name := r.Repos[i].Name
		insert := filter + filterValue("^"+regexp.QuoteMeta(name)+"$") + " "
		// reposet: takes exact names, and earlier names in the list stay.
		if filter == "reposet:" {
			before := w.value[:strings.LastIndexByte(w.value, ',')+1]
			insert = filter + before + query.Quote(name) + " "
			if !strings.ContainsAny(name, " ,\"()\\") {
				insert = filter + before + name + " "
			}
		}

		out = append(out, w.suggest(Repository, insert, name, r.Repos[i].Description))
	}

	return out
}

// filterValue returns an expression as the value of a filter, quoted if needed.
func filterValue(expr string) string {
	if strings.ContainsAny(expr, " \t\n\"()") {
		return query.QuoteRegexp(expr)
	}
	return expr
}

// plainText removes signs of expressions from a typed name.
func plainText(expr string) string {
	return strings.NewReplacer(`\.`, ".", `\-`, "-", "^", "", "$", "", `"`, "").Replace(expr)
}

// allLanguages returns the names of languages, the short ones first.
var allLanguages = sync.OnceValue(func() []string {
	var names []string
	for _, name := range data.LanguageByAliasMap {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return slices.Compact(names)
})

// suggestLanguages suggests languages of files that the rest of the query finds: before a
// letter is typed the most frequent of some files, then the short names first.
func (s *Suggester) suggestLanguages(ctx context.Context, v catalog.Viewer, w word) []Suggestion {
	look := func(lang string, most int) *search.Response {
		r, err := s.d.Search.Search(ctx, v, search.Request{Query: "type:file timeout:" + s.d.Within.String() + lang + repositoriesOf(&w), Matches: most})
		if err != nil {
			return &search.Response{}
		}
		return r
	}

	// Quotes are taken off, for the value may be a quoted one that is half typed.
	low := strings.ToLower(plainText(w.value))
	var names []string
	if low == "" {
		for _, l := range look("", languageFiles).CountFiles().Languages {
			names = append(names, l.Value)
		}
	}
	for _, name := range allLanguages() {
		if low != "" && len(names) < most && ctx.Err() == nil && strings.HasPrefix(strings.ToLower(name), low) && len(look(" lang:"+languageValue(name), 1).Files) > 0 {
			names = append(names, name)
		}
	}

	var out []Suggestion
	for _, name := range names[:min(len(names), most)] {
		out = append(out, w.suggest(Language, w.name+languageValue(name)+" ", name, ""))
	}
	return out
}

// languageValue returns the name of a language as a filter value. A name with a space needs quotes.
func languageValue(name string) string {
	if strings.ContainsAny(name, " \"()") {
		return query.Quote(name)
	}
	return name
}

// repositoriesOf returns the repository filters in the rest of the query, which may be incomplete
// while it is typed.
func repositoriesOf(w *word) string {
	where := ""
	for _, m := range repoFilter.FindAllString(w.rest, -1) {
		where += " " + strings.TrimSpace(m)
	}
	return where
}

// suggestRevisions suggests branches and tags: of the query's only repository, or indexed ones of all
// repositories.
func (s *Suggester) suggestRevisions(ctx context.Context, v catalog.Viewer, w word) []Suggestion {
	var out []Suggestion
	names := map[string]bool{}
	// Each name once, because tags and branches may share names. Names that need quotes are left
	// out.
	add := func(name, detail string) {
		if name = query.ShortRev(name); !names[name] && strings.Contains(strings.ToLower(name), strings.ToLower(w.value)) && !strings.ContainsAny(name, " \"()") {
			names[name] = true
			out = append(out, w.suggest(Revision, w.name+name+" ", name, detail))
		}
	}

	// If nothing is typed yet, or the star.
	if strings.HasPrefix("*", w.value) {
		add("*", "every indexed revision")
	}

	// All revisions of one repository can be searched, because the mirror has them.
	if repo := s.onlyRepository(ctx, v, w.rest); repo != "" {
		for _, list := range []func(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error){s.d.Browse.Branches, s.d.Browse.Tags} {
			r, err := list(ctx, v, browse.RefsRequest{Repo: repo, Query: w.value, PerPage: most})
			if err != nil {
				continue // the other list may still work
			}

			for _, ref := range r.Refs {
				add(ref.Name, map[bool]string{true: "indexed", false: "scanned"}[ref.Indexed])
			}
		}

		return out
	}

	// In several repositories only indexed revisions can be searched; the listing has them.
	r, err := s.d.Browse.Repos(ctx, v, browse.ReposRequest{PerPage: 100})
	if err != nil {
		return out
	}

	for i := range r.Repos {
		for _, rev := range r.Repos[i].Revisions {
			add(rev.Name, "indexed")
		}
	}
	return out
}

var repoFilter = regexp.MustCompile(`(?:^|\s)(?:repo|r|reposet):(\S+)`)

// onlyRepository returns the repository that a query names; "" if it names none or several.
func (s *Suggester) onlyRepository(ctx context.Context, v catalog.Viewer, text string) string {
	// Two matches already mean several.
	m := repoFilter.FindAllStringSubmatch(text, 2)
	if len(m) != 1 {
		return ""
	}

	name := plainText(m[0][1])
	r, err := s.d.Browse.Repos(ctx, v, browse.ReposRequest{Query: name, PerPage: 100})
	if err != nil {
		return ""
	}

	// The exact name, or the only match, because the filter is an expression.
	for i := range r.Repos {
		if r.Repos[i].Name == name || r.Total == 1 {
			return r.Repos[i].Name
		}
	}
	return ""
}

// suggestContexts completes the name of a search context.
func (s *Suggester) suggestContexts(ctx context.Context, v catalog.Viewer, w word) []Suggestion {
	// The configuration has few contexts, so all are compared.
	all, err := s.d.Contexts(ctx, v)
	if err != nil {
		return nil
	}

	var out []Suggestion
	for _, c := range all {
		// Match anywhere in the name, as with repositories and revisions.
		if strings.Contains(strings.ToLower(c.Name), strings.ToLower(w.value)) {
			out = append(out, w.suggest(ContextOf, w.name+c.Name+" ", c.Name, c.Description))
		}
	}
	return out
}

// fewLetters matches letters that may be apart in the name of a file.
var fewLetters = regexp.MustCompile(`^[A-Za-z0-9_]{3,16}$`)

// suggestPaths suggests up to n files whose path contains value, in the repositories of the query. filter
// stands before each suggested path.
func (s *Suggester) suggestPaths(ctx context.Context, v catalog.Viewer, w word, filter, value string, n int) []Suggestion {
	if value == "" {
		return nil
	}

	// The time limit is shorter than the total, so that partial results still arrive.
	timeout, repoFilters := s.d.Within*2/3, repositoriesOf(&w)
	look := func(expr string, most int) []search.File {
		r, err := s.d.Search.Search(ctx, v, search.Request{Query: "type:file timeout:" + timeout.String() + " file:" + query.QuoteRegexp(expr) + repoFilters, Matches: most})
		if err != nil {
			return nil
		}
		return r.Files
	}

	files := look(regexp.QuoteMeta(plainText(value)), n)
	// Users may type only some letters of a name. The shortest names come first.
	if len(files) == 0 && w.filter != nil && fewLetters.MatchString(value) {
		files = slices.Clone(look(`(?:^|/)`+strings.Join(strings.Split(value, ""), `[^/]*`)+`[^/]*$`, pathFiles))
		slices.SortStableFunc(files, func(a, b search.File) int { return len(path.Base(a.Path)) - len(path.Base(b.Path)) })
		files = files[:min(len(files), n)]
	}

	var out []Suggestion
	for i := range files {
		f := &files[i]
		// Anchor the expression, so that it matches only this path.
		out = append(out, w.suggest(File, filter+filterValue("^"+regexp.QuoteMeta(f.Path)+"$")+" ", f.Path, f.Repository))
	}
	return out
}

// suggestSymbols suggests names of definitions that begin with a text.
func (s *Suggester) suggestSymbols(ctx context.Context, v catalog.Viewer, w word, filter, value string, n int) []Suggestion {
	if value = plainText(value); len(value) < 2 {
		return nil
	}
	// Ask for more, because a name often has several definitions.
	r, err := s.d.Search.Definitions(ctx, v, symbols.SymbolRequest{Symbol: value, Prefix: true, Limit: 20})
	if err != nil {
		return nil
	}

	var out []Suggestion
	names := map[string]bool{}
	for i := range r.Files {
		for _, m := range r.Files[i].Matches {
			// Each name once: the filter finds all definitions of it.
			if !names[m.Name] && m.Name != "" && len(out) < n {
				names[m.Name] = true
				out = append(out, w.suggest(Symbol, filter+filterValue("^"+regexp.QuoteMeta(m.Name)+"$")+" ", m.Name, m.Kind+" in "+r.Files[i].Path))
			}
		}
	}

	return out
}
