package symbols

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// Finder finds where names are defined and used, beside what a [search.Searcher] finds. It is safe
// for concurrent use.
type Finder struct {
	*search.Searcher

	used *lru.Cache[string, map[fileOf]int] // see usesOf
}

// Searcher is what pages, routes and tools search by; *Finder implements it. Its methods
// are safe for concurrent use, and check themselves what the viewer may see.
type Searcher interface {
	Search(context.Context, catalog.Viewer, search.Request) (*search.Response, error)
	StreamSearch(context.Context, catalog.Viewer, search.Request, func(*search.Chunk) error) (*search.Response, error)
	SearchCommits(context.Context, catalog.Viewer, search.Request) (*search.CommitsResponse, error)
	Ranked(context.Context, catalog.Viewer, search.RankedRequest) (*search.RankedResponse, error)
	Grep(context.Context, catalog.Viewer, search.GrepRequest) (*search.GrepResponse, error)
	Glob(context.Context, catalog.Viewer, search.GlobRequest) (*search.GlobResponse, error)
	Definitions(context.Context, catalog.Viewer, SymbolRequest) (*SymbolResponse, error)
	Hierarchy(context.Context, catalog.Viewer, HierarchyRequest) (*SymbolResponse, error)
	References(context.Context, catalog.Viewer, SymbolRequest) (*SymbolResponse, error)
}

// New makes a Finder, which looks where a Searcher does.
func New(s *search.Searcher) *Finder {
	return &Finder{s, lru.New[string, map[fileOf]int](usedBytes)}
}

// Caches adds to those of the Searcher the memory that counted uses take.
func (s *Finder) Caches() []shard.CacheSize {
	return append(s.Searcher.Caches(), shard.CacheSize{Name: "uses of names", Bytes: s.used.Size(), Most: usedBytes})
}

// fileOf is a path in a repository.
type fileOf struct{ repo, path string }

// SymbolRequest asks where a symbol is defined or used.
type SymbolRequest struct {
	Symbol   string // of definitions: a * stands for any letters, in any case
	Language string // "" for any
	Revision string // "" means HEAD
	Repo     string // "" for all
	Limit    int    // files; 0 means 1000

	IncludeDefinitions bool // keep the definitions among the references

	bare bool // what stands around a reference need not be known

	Paths  paths.Filter
	Prefix bool   // of definitions: Symbol begins the name, in any case
	Kind   string // of definitions, as ctags names it; "" for any

	Letters bool // of definitions: the name has the letters of Symbol in their order, in any case

	Near *Place // what is near it comes first; nil for no place
	Best int    // files that are kept of those in order; 0 for all

	Signature bool // tell each definition with the source that begins it
}

// SymbolResponse is where a symbol was found.
type SymbolResponse struct {
	MatchCount   int
	Files        []SymbolFile
	Repositories []browse.RepoInfo
	Coverage     coverage.Coverage
	Similar      []string          // where nothing has the name: names that are like it, at most 10
	Commits      map[string]string // by repository: the commit whose index answered
	Mistyped     bool              // Symbol is likely the first of Similar with some letters wrong
	Defined      []SymbolFile      // of references: the definitions of the name that were taken out of Files
	Undefined    []string          // of a hierarchy: types that belong to it, and that nothing defines
}

// Commit is the commit of a repository whose index was searched; "" where the
// repository has nothing in the answer.
func (r *SymbolResponse) Commit(repo string) string { return r.Commits[repo] }

// SymbolFile is a file with places of a symbol.
type SymbolFile struct {
	RepoID     uint32
	Repository string
	Path       string
	WebURL     string
	Language   string
	Matches    []SymbolMatch
}

// SymbolMatch is one place.
type SymbolMatch struct {
	Line  []byte // content of the line, without its end
	Range shard.Range
	Name  string // of the symbol that is defined; "" for a reference
	Kind  string // of a definition, as ctags names it; "" for a reference

	ParentName, ParentKind string // what encloses a definition; "" when nothing does
	OutsideCode            bool   // a reference in a comment or in a string literal

	Signature string // of a definition, where it was asked for: its source up to the body, at most 200 bytes

	Of string // of a type in a hierarchy, or a method of one: the type beside it, by which it was found

	Around shard.Symbol // what a reference stands in, as the index knows it; without a name where that is nothing

	at int // of the range in Line
}

// arrangeReferences takes out the definitions and puts code first, in each file
// and among the files. The product's own source comes first, and of that the
// files with the most uses.
func arrangeReferences(out *SymbolResponse, req SymbolRequest) {
	out.MatchCount = 0
	for i := range out.Files {
		f := &out.Files[i]
		if !req.IncludeDefinitions {
			out.takeDefinitions(f)
		}
		for j := range f.Matches {
			m := &f.Matches[j]
			m.OutsideCode = m.Kind == "" && OutsideCode(f.Language, m.Line, m.at)
		}

		slices.SortStableFunc(f.Matches, codeFirst)
		out.MatchCount += len(f.Matches)
	}
	out.dropEmpty()

	// Definitions keep their order by relevance within each kind of place.
	defined := placesOf(out.Defined)
	slices.SortStableFunc(out.Defined, func(a, b SymbolFile) int { return defined[keyOf(&a)] - defined[keyOf(&b)] })

	places := placesOf(out.Files)

	// dropEmpty came before: each file has a first match.
	slices.SortStableFunc(out.Files, func(a, b SymbolFile) int {
		return cmp.Or(
			codeFirst(a.Matches[0], b.Matches[0]),
			places[keyOf(&a)]-places[keyOf(&b)],
			len(b.Matches)-len(a.Matches),
		)
	})
}

// takeDefinitions moves the definitions of a file from its places to Defined.
func (r *SymbolResponse) takeDefinitions(f *SymbolFile) {
	taken, uses := *f, f.Matches[:0]
	taken.Matches = nil
	for _, m := range f.Matches {
		// What has a kind is a definition.
		if m.Kind != "" {
			taken.Matches = append(taken.Matches, m)
		} else {
			uses = append(uses, m)
		}
	}

	f.Matches = uses
	if taken.Matches != nil {
		r.Defined = append(r.Defined, taken)
	}
}

// codeFirst puts code before what is in a comment or in a string literal.
func codeFirst(a, b SymbolMatch) int {
	switch {
	case a.OutsideCode == b.OutsideCode:
		return 0
	case a.OutsideCode:
		return 1
	}
	return -1
}

// maxSymbolMatches is how many places one answer has, as of a search.
const maxSymbolMatches = 10_000

// Definitions finds where a symbol is defined. The product's own source comes
// first, there what can be called or instantiated before variables and members,
// and of these what is used more. A name that nothing bears may be qualified, by
// dots or colons: then the enclosing scope decides.
func (s *Finder) Definitions(ctx context.Context, v catalog.Viewer, req SymbolRequest) (*SymbolResponse, error) {
	out, name, err := s.defined(ctx, v, req)
	if err != nil {
		return nil, err
	}

	// A name of one or two letters is like half of all names.
	if len(out.Files) == 0 && !req.Prefix && len(name) > 2 && !isPattern(name) {
		if err := s.similar(ctx, v, req, name, out); err != nil {
			return nil, err
		}
	}

	s.arrangeDefinitions(ctx, v, req, name, out)
	out.nearFirst(req.Near)
	out.best(req.Best)
	return out, s.addKept(ctx, v, req, out, canDefine)
}

// defined finds the definitions of a name, which may be qualified, and tells the
// name without its scope.
func (s *Finder) defined(ctx context.Context, v catalog.Viewer, req SymbolRequest) (*SymbolResponse, string, error) {
	out, err := s.definitions(ctx, v, req, req.Symbol)
	scope, name := qualified(req.Symbol)

	// The sign with which a macro of Rust is used is no part of its name. That of a method of
	// Ruby is: the whole name was looked for before.
	if plain := strings.TrimSuffix(req.Symbol, "!"); err == nil && len(out.Files) == 0 && !req.Prefix && !req.Letters && plain != req.Symbol && plain != "" {
		req.Symbol = plain
		return s.defined(ctx, v, req)
	}

	// Some names have such a sign in them, so the whole is looked for first.
	if err != nil || len(out.Files) > 0 || req.Prefix || req.Letters || scope == "" {
		return out, name, err
	}

	out, err = s.definitions(ctx, v, req, name)
	if err != nil {
		return nil, "", err
	}
	out.Keep(func(m SymbolMatch) bool { return inScope(m.ParentName, scope) })
	return out, name, nil
}

func (s *Finder) definitions(ctx context.Context, v catalog.Viewer, req SymbolRequest, name string) (*SymbolResponse, error) {
	expr := "^" + nameExpr(name) + "$"
	switch {
	case isPattern(name):
		expr = "(?i)^" + strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*") + "$"
	case req.Prefix:
		expr = "(?i)^" + regexp.QuoteMeta(name)
	case req.Letters:
		expr = lettersExpr(name)
	}

	named := &query.Text{Pattern: expr, Regexp: true, Field: query.Symbol}
	out, err := s.symbols(ctx, v, req, named, maxSymbolMatches)
	if err != nil {
		return nil, err
	}

	// A query cannot ask for a kind: what is of others is left out of the answer.
	if req.Kind != "" {
		out.Keep(func(m SymbolMatch) bool { return m.Kind == req.Kind })
	}

	return out, nil
}

// isPattern reports whether a name has a * that stands for any letters: that of an operator
// is a part of its name.
func isPattern(name string) bool {
	return strings.Contains(name, "*") && strings.Trim(name, "*") != "" && !operator.MatchString(name)
}

// lettersExpr is an expression for the names that have the letters of one in their
// order. Spaces are for the eye of who types.
func lettersExpr(name string) string {
	letters := strings.Split(strings.ReplaceAll(name, " ", ""), "")
	for i, l := range letters {
		letters[i] = regexp.QuoteMeta(l)
	}
	return "(?i)" + strings.Join(letters, ".*")
}

// Keep drops the places that are not wanted, and what is left empty by that.
func (r *SymbolResponse) Keep(wanted func(m SymbolMatch) bool) {
	r.MatchCount = 0
	for i := range r.Files {
		f := &r.Files[i]
		f.Matches = slices.DeleteFunc(f.Matches, func(m SymbolMatch) bool { return !wanted(m) })
		r.MatchCount += len(f.Matches)
	}
	r.dropEmpty()
}

// dropEmpty takes out the files without a place, and the repositories without
// a file.
func (r *SymbolResponse) dropEmpty() {
	r.Files = slices.DeleteFunc(r.Files, func(f SymbolFile) bool { return len(f.Matches) == 0 })
	r.Repositories = slices.DeleteFunc(r.Repositories, func(repo browse.RepoInfo) bool {
		return !slices.ContainsFunc(r.Files, func(f SymbolFile) bool { return f.RepoID == repo.ID })
	})
}

// qualified splits a name from the scope that is written before it.
func qualified(symbol string) (scope, name string) {
	for _, sep := range []string{"::", ".", "#"} {
		if i := strings.LastIndex(symbol, sep); i > 0 && i+len(sep) < len(symbol) {
			return symbol[:i], symbol[i+len(sep):]
		}
	}
	return "", symbol
}

// inScope reports whether a scope as ctags writes it ends with the one asked
// for.
func inScope(parent, scope string) bool {
	norm := strings.NewReplacer("::", ".", "#", ".")
	parent, scope = norm.Replace(parent), norm.Replace(scope)
	return parent == scope || strings.HasSuffix(parent, "."+scope)
}

// References finds where a symbol is used: whole words of its name, without
// those that define it, in the order of arrangeReferences.
func (s *Finder) References(ctx context.Context, v catalog.Viewer, req SymbolRequest) (*SymbolResponse, error) {
	out, err := s.uses(ctx, v, req)
	if err != nil {
		return nil, err
	}
	arrangeReferences(out, req)
	out.nearFirst(req.Near)
	out.best(req.Best)
	return out, s.addKept(ctx, v, req, out, out.couldUse)
}

// couldUse reports whether a file may hold uses beside those that were found: one of
// code, or of a language that has some. Where there are none, any may.
func (r *SymbolResponse) couldUse(path string) bool {
	language := shard.Language(path, nil)
	return len(r.Files) == 0 || canDefine(path) || slices.ContainsFunc(r.Files, func(f SymbolFile) bool { return f.Language == language })
}

// uses finds the whole words of a name, with those that define it.
func (s *Finder) uses(ctx context.Context, v catalog.Viewer, req SymbolRequest) (*SymbolResponse, error) {
	return s.symbols(ctx, v, req, wordOf(req.Symbol), maxSymbolMatches)
}

// operator matches the name of an operator of C++, which may have blanks behind its word.
var operator = regexp.MustCompile(`^operator\s*([^\w\s].*)$`)

// nameExpr is an expression for a name as ctags and sources write it.
func nameExpr(name string) string {
	if m := operator.FindStringSubmatch(name); m != nil {
		return `operator\s*` + regexp.QuoteMeta(m[1])
	}
	return regexp.QuoteMeta(name)
}

// wordOf is a name in the content of files, as a word of its own.
func wordOf(name string) *query.Text {
	begins, ends := WordEdges(name)
	return &query.Text{Pattern: nameExpr(name), Regexp: true, Field: query.Content, WordBegins: begins, WordEnds: ends}
}

// WordEdges reports on which sides of a name a word has to end: where the name has a
// letter. The sign of `done?` or `~Store` may touch a word.
func WordEdges(name string) (begins, ends bool) {
	first, _ := utf8.DecodeRuneInString(name)
	last, _ := utf8.DecodeLastRuneInString(name)
	return match.IsWord(first), match.IsWord(last)
}

func wordByte(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// symbols runs a search for one symbol.
func (s *Finder) symbols(ctx context.Context, v catalog.Viewer, req SymbolRequest, text *query.Text, most int) (*SymbolResponse, error) {
	l, err := req.lookup(text, most)
	if err != nil {
		return nil, err
	}
	found, err := s.Find(ctx, v, l)
	if err != nil {
		return nil, err
	}

	out := symbolResponse(found.Response, &req)

	// The answer says what it lacks, and which commits it speaks of.
	out.Coverage = search.AtRevision(search.UpTo(out.Coverage, max(len(out.Files), 1), found.Found), found.Sight, req.Repo, req.Paths.Repos, req.Revision)
	out.nameCommits(found.Sight, req.Repo, cmp.Or(req.Revision, "HEAD"))
	return out, nil
}

// lookup is a search for a text in the revision, the paths, the language and the
// repository that a request names.
func (req *SymbolRequest) lookup(text *query.Text, most int) (search.Lookup, error) {
	if !isSymbol(req.Symbol) {
		return search.Lookup{}, call.Fail(call.ErrInvalid, "the symbol must be a name of 1 to 1000 bytes on one line")
	}

	in, err := req.Paths.Exprs()
	if err != nil {
		return search.Lookup{}, err
	}
	atoms := append([]query.Q{text}, in.Atoms()...)
	if req.Language != "" {
		lang, err := languages(req.Language)
		if err != nil {
			return search.Lookup{}, err
		}
		atoms = append(atoms, lang)
	}

	return search.Lookup{
		Atoms:    atoms,
		Revision: cmp.Or(req.Revision, "HEAD"),
		Repo:     req.Repo,
		Ranges:   most,
		Lines:    req.around(),
		Scopes:   text.Field == query.Content && !req.bare,
	}, nil
}

// addKept notes the files that are kept by name only, of those that could have
// changed the answer.
func (s *Finder) addKept(ctx context.Context, v catalog.Viewer, req SymbolRequest, out *SymbolResponse, could func(path string) bool) error {
	in, err := req.Paths.Exprs()
	if err != nil {
		return err
	}
	kept, err := s.KeptByName(ctx, v, in.Atoms(), cmp.Or(req.Revision, "HEAD"), req.Repo)
	if err != nil {
		return err
	}
	out.Coverage = search.KeptOnly(out.Coverage, slices.DeleteFunc(kept, func(f coverage.File) bool { return !could(f.Path) }))
	return nil
}

// canDefine tells whether a file is of a language with symbols, by its name alone.
func canDefine(path string) bool { return symbol.Has(path, shard.Language(path, nil)) }

// isSymbol tells what can be the name of a symbol.
func isSymbol(name string) bool {
	blank := strings.TrimSpace(name) == ""
	return !blank && len(name) <= 1000 && !strings.ContainsAny(name, "\n\x00")
}

// nameCommits names the commit of each repository in the answer, and of the one
// that was asked for.
func (r *SymbolResponse) nameCommits(seen *account.Repos, repo, rev string) {
	r.Commits = map[string]string{}
	if repo != "" {
		r.Commits[repo] = search.CommitOf(seen, repo, rev)
	}
	for _, f := range r.Files {
		r.Commits[f.Repository] = search.CommitOf(seen, f.Repository, rev)
	}
}

// around is how many lines beside those with a name are asked for.
func (r *SymbolRequest) around() int {
	if r.Signature {
		return signatureLines
	}
	return 0
}

func symbolResponse(answer *search.Response, req *SymbolRequest) *SymbolResponse {
	limit := req.Limit
	if limit <= 0 {
		limit = 1000
	}

	out := &SymbolResponse{Coverage: answer.Coverage}
	used := map[uint32]bool{}
	for _, f := range answer.Files {
		file := symbolFile(f, req.Signature)
		if len(file.Matches) == 0 {
			continue
		}

		// One file more than the limit shows that there are more.
		if len(out.Files) == limit {
			out.Coverage = out.Coverage.With(coverage.Gap{Kind: coverage.Limit})
			break
		}

		out.Files = append(out.Files, file)
		out.MatchCount += len(file.Matches)
		used[f.RepoID] = true
	}

	// Only repositories of files that were kept.
	for _, r := range answer.Repositories {
		if used[r.ID] {
			out.Repositories = append(out.Repositories, r)
		}
	}
	return out
}

// symbolFile is a file of an answer with a place for each range in it, and with the
// signatures of definitions where they are wanted.
func symbolFile(f search.File, signed bool) SymbolFile {
	file := SymbolFile{RepoID: f.RepoID, Repository: f.Repository, Path: f.Path, WebURL: f.WebURL, Language: f.Language}
	for _, c := range f.Chunks {
		for i, rg := range c.Ranges {
			m := SymbolMatch{Range: rg}
			m.Line, m.at = lineOf(c, rg)

			// Symbols and Around, where a chunk has them, run beside its ranges.
			if i < len(c.Symbols) {
				s := c.Symbols[i]
				m.Name, m.Kind, m.ParentName, m.ParentKind = s.Name, s.Kind, s.ParentName, s.ParentKind
			}
			if i < len(c.Around) {
				m.Around = c.Around[i]
			}
			if signed && m.Kind != "" {
				m.Signature = signatureOf(f.Language, c, rg)
			}
			file.Matches = append(file.Matches, m)
		}
	}
	return file
}

// lineOf cuts the line where a range begins out of its chunk, and returns where
// in it that is.
func lineOf(c shard.Chunk, r shard.Range) (line []byte, offset int) {
	at := int(r.Start.Offset) - int(c.Start.Offset)
	if at < 0 || at > len(c.Content) {
		return nil, 0
	}

	from := bytes.LastIndexByte(c.Content[:at], '\n') + 1
	to := len(c.Content)
	if i := bytes.IndexByte(c.Content[at:], '\n'); i >= 0 {
		to = at + i
	}

	return bytes.TrimSuffix(c.Content[from:to], []byte("\r")), at - from
}

// languages is the atom for a language of a symbol: languages that are mixed
// in one program count as one.
func languages(name string) (query.Q, error) {
	lang, ok := query.Language(name)
	if !ok {
		return nil, call.Fail(call.ErrInvalid, "unknown language %q", name)
	}

	or := &query.Or{}
	for _, g := range mixedLanguages {
		if !slices.Contains(g, lang) {
			continue
		}
		for _, l := range g {
			or.Subs = append(or.Subs, &query.Lang{Name: l})
		}
		return or, nil
	}
	return &query.Lang{Name: lang}, nil
}

// mixedLanguages are those that are mixed in one program: a header of C serves C++,
// and a module of JavaScript TypeScript.
var mixedLanguages = [][]string{{"C", "C++"}, {"TypeScript", "JavaScript", "JSX", "TSX"}, {"Java", "Kotlin"}}

// Mixed reports whether two languages are one or are mixed in one program.
func Mixed(a, b string) bool {
	return a == b || slices.ContainsFunc(mixedLanguages, func(g []string) bool { return slices.Contains(g, a) && slices.Contains(g, b) })
}
