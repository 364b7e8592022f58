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

// Deps is what suggestions are made of.
type Deps struct {
	Search   symbols.Searcher
	Browse   browse.Reader
	Contexts func(context.Context, catalog.Viewer) ([]Context, error)
	Within   time.Duration // that a completion may look things up
}

// Suggester completes queries and paths. It is safe for concurrent use.
type Suggester struct {
	d     Deps
	files lists
}

// New makes a suggester.
func New(d Deps) *Suggester { return &Suggester{d: d, files: newLists()} }

// The bounds of an answer.
const (
	MaxQuery = 4096                   // bytes
	Within   = 150 * time.Millisecond // for all that has to be looked up
	most     = 12                     // suggestions
)

// Kind is what is suggested.
type Kind string

// The kinds.
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

// Suggestion is one way to go on: Insert in place of the bytes from Start to End
// of the query.
type Suggestion struct {
	Kind   Kind   `json:"kind"`
	Insert string `json:"insert"`
	Span   `json:"replace"`
	Label  string `json:"label"`           // what is suggested, for people
	Detail string `json:"detail,omitzero"` // about it: what a filter means, where a symbol is
}

// Span is the bytes of a query that a suggestion replaces.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Complete suggests how a query may go on at a place in it.
func (s *Suggester) Complete(ctx context.Context, v catalog.Viewer, text string, cursor int) ([]Suggestion, error) {
	switch {
	case len(text) > MaxQuery:
		return nil, call.Fail(call.ErrInvalid, "the query has %d bytes; at most %d can be completed", len(text), MaxQuery)
	case cursor < 0 || cursor > len(text):
		return nil, call.Fail(call.ErrInvalid, "cursor must be from 0 to the %d bytes of the query", len(text))
	}
	w, quoted := wordAt(text, cursor)
	if quoted {
		return []Suggestion{}, nil // a text in quotes is what it says
	}

	// What comes later than a person's next letter is of no use.
	ctx, cancel := context.WithTimeout(ctx, s.d.Within)
	defer cancel()
	// A name with two colons is one of a language, as content::Web.
	var out []Suggestion
	name, value, ok := strings.Cut(w.text, ":")
	if f := query.FilterNamed(name); ok && f != nil && !strings.HasPrefix(value, ":") {
		w.filter, w.name, w.value = f, name+":", value
		out = s.values(ctx, v, w)
	} else {
		out = s.words(ctx, v, w)
	}
	// One bound for all parts together: files, which come last, are cut first.
	return slices.Clip(out[:min(len(out), most)]), nil
}

// word is the word of a query that is being typed.
type word struct {
	text       string        // without a - before it
	rest       string        // the query without it
	start, end int           // of text
	filter     *query.Filter // nil for none
	name       string        // of the filter as it is typed, with its colon
	value      string
}

// suggest makes a suggestion that takes the place of a word.
func (w *word) suggest(kind Kind, insert, label, detail string) Suggestion {
	return Suggestion{Kind: kind, Insert: insert, Span: Span{w.start, w.end}, Label: label, Detail: detail}
}

// wordAt is the word before and behind a place, and whether that is in a text in
// quotes.
func wordAt(text string, cursor int) (w word, quoted bool) {
	begin := 0
	for i := 0; i < cursor; i++ {
		switch c := text[i]; {
		// An escaped quote does not end a text, and the next byte is no sign of the query's.
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		// A parenthesis begins a word as well: groups are written without spaces.
		case c == ' ' || c == '\t' || c == '\n' || c == '(':
			begin = i + 1
		}
	}

	if quoted {
		return w, true
	}

	// The word goes on behind the cursor: what is chosen takes the place of all of it.
	end := cursor
	for end < len(text) && !strings.ContainsRune(" \t\n)\"", rune(text[end])) {
		end++
	}

	// What is left out is suggested as what is looked for: the sign stays where it is.
	if begin < end && text[begin] == '-' {
		begin++
	}
	begin = min(begin, end)
	return word{text: text[begin:end], rest: text[:begin] + text[end:], start: begin, end: end}, false
}

// words suggests how a word goes on that is no filter yet: as one, as the name
// of a repository, a symbol or a file.
func (s *Suggester) words(ctx context.Context, v catalog.Viewer, w word) []Suggestion {
	var out []Suggestion
	low := strings.ToLower(w.text)
	// Filters are known here and cost nothing, so they come first and always.
	for _, f := range query.Filters() {
		if name := f.Names[0]; strings.HasPrefix(name, low) {
			out = append(out, w.suggest(Filter, name+":", name+":", f.Meaning()))
		}
	}
	// One letter is in nearly every name.
	if len(w.text) < 2 {
		return out
	}

	// At the same time, as they share one deadline; in a fixed order, so that lines do not jump as
	// they arrive.
	parts := together(
		func() []Suggestion { return s.repositories(ctx, v, w, "repo:", w.text, 3) },
		func() []Suggestion { return s.symbols(ctx, v, w, "sym:", w.text, 5) },
		func() []Suggestion { return s.paths(ctx, v, w, "file:", w.text, 4) },
	)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// values suggests values of a filter.
func (s *Suggester) values(ctx context.Context, v catalog.Viewer, w word) []Suggestion {
	// A filter has several names: what is suggested keeps the one that was typed.
	switch w.filter.Names[0] {
	case "repo":
		return s.repositories(ctx, v, w, w.name, w.value, most)
	case "reposet":
		// A list of names: only the last one is being typed.
		return s.repositories(ctx, v, w, w.name, w.value[strings.LastIndexByte(w.value, ',')+1:], most)
	case "lang":
		return languages(w)
	case "rev":
		return s.revisions(ctx, v, w)
	case "context":
		return s.contexts(ctx, v, w)
	case "file":
		return s.paths(ctx, v, w, w.name, w.value, most)
	case "sym":
		return s.symbols(ctx, v, w, w.name, w.value, most)
	}

	// Whatever is not known here takes anything, and nothing is suggested for it.
	var out []Suggestion
	for _, value := range w.filter.Values {
		if strings.HasPrefix(value, w.value) {
			out = append(out, w.suggest(Value, w.name+value+" ", value, ""))
		}
	}
	return out
}

// together runs functions at the same time.
func together(parts ...func() []Suggestion) [][]Suggestion {
	out := make([][]Suggestion, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() { out[i] = part() })
	}
	all.Wait()
	return out
}

// repositories suggests repositories whose name has a text in it.
func (s *Suggester) repositories(ctx context.Context, v catalog.Viewer, w word, filter, value string, n int) []Suggestion {
	// What is typed may be the beginning of an expression; the listing knows plain text.
	r, err := s.d.Browse.Repos(ctx, v, browse.ReposRequest{Query: plain(value), PerPage: n})
	if err != nil {
		return nil
	}

	out := make([]Suggestion, 0, len(r.Repos))
	for i := range r.Repos {
		// As an expression that matches this name alone: without its ends it would match longer
		// ones too.
		name := r.Repos[i].Name
		insert := filter + expression("^"+regexp.QuoteMeta(name)+"$") + " "
		// Here names are exact, and those before it in the list stay.
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

// expression is an expression as the value of a filter, in quotes only where it
// needs them.
func expression(expr string) string {
	if strings.ContainsAny(expr, " \t\n\"()") {
		return query.QuoteRegexp(expr)
	}
	return expr
}

// plain is a text out of an expression that somebody types for a name.
func plain(expr string) string {
	return strings.NewReplacer(`\.`, ".", `\-`, "-", "^", "", "$", "", `"`, "").Replace(expr)
}

// allLanguages are the names of languages, the short ones first.
var allLanguages = sync.OnceValue(func() []string {
	var names []string
	for _, name := range data.LanguageByAliasMap {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return slices.Compact(names)
})

func languages(w word) []Suggestion {
	var out []Suggestion
	// Quotes are taken off, for the value may be a quoted one that is half typed.
	low := strings.ToLower(plain(w.value))
	for _, name := range allLanguages() {
		if strings.HasPrefix(strings.ToLower(name), low) && len(out) < most {
			// A name with a space would end as a value, and begin a word.
			value := name
			if strings.ContainsAny(name, " \"()") {
				value = query.Quote(name)
			}
			out = append(out, w.suggest(Language, w.name+value+" ", name, ""))
		}
	}

	return out
}

// revisions suggests branches and tags: of the one repository that the query
// names, or those that are indexed anywhere.
func (s *Suggester) revisions(ctx context.Context, v catalog.Viewer, w word) []Suggestion {
	var out []Suggestion
	had := map[string]bool{}
	// Tags and branches may have one name, and one branch is in many repositories: each is told
	// once. What would need quotes is left out.
	add := func(name, detail string) {
		if name = query.ShortRev(name); !had[name] && strings.Contains(strings.ToLower(name), strings.ToLower(w.value)) && !strings.ContainsAny(name, " \"()") {
			had[name] = true
			out = append(out, w.suggest(Revision, w.name+name+" ", name, detail))
		}
	}

	// Before anything is typed, or when it is typed already.
	if strings.HasPrefix("*", w.value) {
		add("*", "every indexed revision")
	}

	// In one repository any revision can be searched, for the mirror has them all.
	if repo := s.onlyRepository(ctx, v, w.rest); repo != "" {
		for _, list := range []func(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error){s.d.Browse.Branches, s.d.Browse.Tags} {
			r, err := list(ctx, v, browse.RefsRequest{Repo: repo, Query: w.value, PerPage: most})
			if err != nil {
				continue // the other list is still of use
			}

			for _, ref := range r.Refs {
				add(ref.Name, map[bool]string{true: "indexed", false: "scanned"}[ref.Indexed])
			}
		}

		return out
	}

	// In several only what the index has can be, which the listing tells without asking each.
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

// onlyRepository is the one repository that a query is about, "" where it is
// about several or none.
func (s *Suggester) onlyRepository(ctx context.Context, v catalog.Viewer, text string) string {
	// Two are enough to know that it is not one.
	m := repoFilter.FindAllStringSubmatch(text, 2)
	if len(m) != 1 {
		return ""
	}

	name := plain(m[0][1])
	r, err := s.d.Browse.Repos(ctx, v, browse.ReposRequest{Query: name, PerPage: 100})
	if err != nil {
		return ""
	}

	// The name itself, or the only one that has the text: the filter is an expression.
	for i := range r.Repos {
		if r.Repos[i].Name == name || r.Total == 1 {
			return r.Repos[i].Name
		}
	}
	return ""
}

func (s *Suggester) contexts(ctx context.Context, v catalog.Viewer, w word) []Suggestion {
	// All of them: they are of the configuration, and few.
	all, err := s.d.Contexts(ctx, v)
	if err != nil {
		return nil
	}

	var out []Suggestion
	for _, c := range all {
		// Anywhere in the name, as repositories and revisions are found too.
		if strings.Contains(strings.ToLower(c.Name), strings.ToLower(w.value)) {
			out = append(out, w.suggest(ContextOf, w.name+c.Name+" ", c.Name, c.Description))
		}
	}
	return out
}

// fewLetters are letters that may stand apart in the name of a file.
var fewLetters = regexp.MustCompile(`^[A-Za-z0-9_]{3,16}$`)

// paths suggests files whose path has a text in it, where the rest of the query
// looks.
func (s *Suggester) paths(ctx context.Context, v catalog.Viewer, w word, filter, value string, n int) []Suggestion {
	if value == "" {
		return nil
	}

	// Its own time is shorter than that of the whole, so that what was found until then still
	// comes. Of the rest of the query only the repositories count: it need not parse while it is
	// typed.
	own := s.d.Within * 2 / 3
	where := ""
	for _, m := range repoFilter.FindAllString(w.rest, -1) {
		where += " " + strings.TrimSpace(m)
	}
	look := func(expr string, most int) []search.File {
		r, err := s.d.Search.Search(ctx, v, search.Request{Query: "type:file timeout:" + own.String() + " file:" + query.QuoteRegexp(expr) + where, Matches: most})
		if err != nil {
			return nil
		}
		return r.Files
	}

	files := look(regexp.QuoteMeta(plain(value)), n)
	// Some letters of a name may be all that somebody types of it: the shortest names have
	// the largest share of them.
	if len(files) == 0 && w.filter != nil && fewLetters.MatchString(value) {
		files = slices.Clone(look(`(?:^|/)`+strings.Join(strings.Split(value, ""), `[^/]*`)+`[^/]*$`, pathFiles))
		slices.SortStableFunc(files, func(a, b search.File) int { return len(path.Base(a.Path)) - len(path.Base(b.Path)) })
		files = files[:min(len(files), n)]
	}

	var out []Suggestion
	for i := range files {
		f := &files[i]
		// With both ends: one path is chosen, not all that have it in them.
		out = append(out, w.suggest(File, filter+expression("^"+regexp.QuoteMeta(f.Path)+"$")+" ", f.Path, f.Repository))
	}
	return out
}

// symbols suggests names of definitions that begin with a text.
func (s *Suggester) symbols(ctx context.Context, v catalog.Viewer, w word, filter, value string, n int) []Suggestion {
	if value = plain(value); len(value) < 2 {
		return nil
	}
	// More than are shown, for one name often has several definitions.
	r, err := s.d.Search.Definitions(ctx, v, symbols.SymbolRequest{Symbol: value, Prefix: true, Limit: 20})
	if err != nil {
		return nil
	}

	var out []Suggestion
	had := map[string]bool{}
	for i := range r.Files {
		for _, m := range r.Files[i].Matches {
			// Each name once: the filter finds all definitions of it.
			if !had[m.Name] && m.Name != "" && len(out) < n {
				had[m.Name] = true
				out = append(out, w.suggest(Symbol, filter+expression("^"+regexp.QuoteMeta(m.Name)+"$")+" ", m.Name, m.Kind+" in "+r.Files[i].Path))
			}
		}
	}

	return out
}
