package symbols

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
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
	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// Finder adds definitions and uses of names to what a [search.Searcher] finds. It is safe for
// concurrent use.
type Finder struct {
	*search.Searcher

	used *lru.Cache[string, map[fileOf]int] // see usesOf
}

// Searcher is the interface by which pages, routes and tools search; *Finder implements it. Its
// methods are safe for concurrent use, and check themselves what the viewer may see.
type Searcher interface {
	Search(context.Context, catalog.Viewer, search.Request) (*search.Response, error)
	StreamSearch(context.Context, catalog.Viewer, search.Request, func(*search.Chunk) error) (*search.Response, error)
	SearchCommits(context.Context, catalog.Viewer, search.Request) (*search.CommitsResponse, error)
	StreamCommits(context.Context, catalog.Viewer, search.Request, func([]search.FoundCommit) error) (*search.CommitsResponse, error)
	Trend(context.Context, catalog.Viewer, search.Request, []time.Time) (*search.TrendResponse, error)
	Ranked(context.Context, catalog.Viewer, search.RankedRequest) (*search.RankedResponse, error)
	Grep(context.Context, catalog.Viewer, search.GrepRequest) (*search.GrepResponse, error)
	Glob(context.Context, catalog.Viewer, search.GlobRequest) (*search.GlobResponse, error)
	Definitions(context.Context, catalog.Viewer, SymbolRequest) (*SymbolResponse, error)
	Hierarchy(context.Context, catalog.Viewer, HierarchyRequest) (*SymbolResponse, error)
	References(context.Context, catalog.Viewer, SymbolRequest) (*SymbolResponse, error)
}

// New returns a Finder that uses a Searcher.
func New(s *search.Searcher) *Finder {
	return &Finder{s, lru.New[string, map[fileOf]int](usedBytes)}
}

// Caches adds the cache of counted uses to the caches of the Searcher.
func (s *Finder) Caches() []shard.CacheSize {
	return append(s.Searcher.Caches(), shard.CacheSize{Name: "uses of names", Bytes: s.used.Size(), Most: usedBytes})
}

// fileOf identifies a file by repository and path.
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

// SymbolResponse lists where a symbol was found.
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
	Namesakes    []string          // of a hierarchy: how many types were left out, as "3 of Converter.Factory"
}

// Commit returns the commit of a repository whose index was searched; "" if the repository has no
// result.
func (r *SymbolResponse) Commit(repo string) string { return r.Commits[repo] }

// SymbolFile is a file with matches of a symbol.
type SymbolFile struct {
	RepoID     uint32
	Repository string
	Path       string
	WebURL     string
	Language   string
	Matches    []SymbolMatch
}

// SymbolMatch is one definition or use.
type SymbolMatch struct {
	Line  []byte    // content of the line, without its end
	Open  lex.State // what the lines before leave open, such as a comment
	Range shard.Range
	Name  string // of the symbol that is defined; "" for a reference
	Kind  string // of a definition, as ctags names it; "" for a reference

	ParentName, ParentKind string // what encloses a definition; "" when nothing does
	OutsideCode            bool   // a reference in a comment or in a string literal

	Signature string // of a definition, where it was asked for: its source up to the body, at most 200 bytes

	Of string // of a type in a hierarchy, or a method of one: the type beside it, by which it was found

	Around shard.Symbol // what a reference stands in, as the index knows it; without a name where that is nothing

	Undecided bool // of a type in a hierarchy: it may extend a namesake of the requested type

	at        int    // of the range in Line
	by, scope string // of a type in a hierarchy: what it extends, as the head writes it, and what is around it
}

// arrangeReferences removes the definitions and sorts the uses: code before comments, in each file
// and among files; then the product's own source; then files with the most uses.
func arrangeReferences(out *SymbolResponse, req SymbolRequest) {
	out.MatchCount = 0
	for i := range out.Files {
		f := &out.Files[i]
		if !req.IncludeDefinitions {
			out.takeDefinitions(f)
		}
		slices.SortStableFunc(f.Matches, codeFirst)
		out.MatchCount += len(f.Matches)
	}
	out.dropEmpty()

	// Within a category, definitions keep their order by relevance.
	defined := placesOf(out.Defined)
	slices.SortStableFunc(out.Defined, func(a, b SymbolFile) int { return defined[keyOf(&a)] - defined[keyOf(&b)] })

	places := placesOf(out.Files)

	// After dropEmpty, each file has a first match.
	slices.SortStableFunc(out.Files, func(a, b SymbolFile) int {
		return cmp.Or(
			codeFirst(a.Matches[0], b.Matches[0]),
			places[keyOf(&a)]-places[keyOf(&b)],
			len(b.Matches)-len(a.Matches),
		)
	})
}

// takeDefinitions moves the definitions of a file from its matches to Defined.
func (r *SymbolResponse) takeDefinitions(f *SymbolFile) {
	taken, uses := *f, f.Matches[:0]
	taken.Matches = nil
	for _, m := range f.Matches {
		// Only definitions have a kind.
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

// codeFirst sorts code before comments and string literals.
func codeFirst(a, b SymbolMatch) int {
	switch {
	case a.OutsideCode == b.OutsideCode:
		return 0
	case a.OutsideCode:
		return 1
	}
	return -1
}

// maxSymbolMatches is the largest number of matches in an answer.
const maxSymbolMatches = 10_000

// Definitions finds where a symbol is defined. The product's own source comes first, then functions
// and types before variables and members, then by number of uses. If nothing has the whole name, it
// may be qualified with dots or colons, and the scope must match.
func (s *Finder) Definitions(ctx context.Context, v catalog.Viewer, req SymbolRequest) (*SymbolResponse, error) {
	out, name, err := s.defined(ctx, v, req)
	if err != nil {
		return nil, err
	}

	// Half of all names are similar to one of two letters.
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

// defined finds the definitions of a name, which may be qualified, and returns the name without its
// scope. A scope is what encloses a definition, or stands before its name, as in defmodule A.B.
func (s *Finder) defined(ctx context.Context, v catalog.Viewer, req SymbolRequest) (*SymbolResponse, string, error) {
	out, err := s.definitions(ctx, v, req, req.Symbol)
	scope, name := Qualified(req.Symbol)

	// A Rust macro's ! is not part of its name, but a Ruby method's is. So the whole name was tried
	// first.
	if plain := strings.TrimSuffix(req.Symbol, "!"); err == nil && len(out.Files) == 0 && !req.Prefix && !req.Letters && plain != req.Symbol && plain != "" {
		req.Symbol = plain
		return s.defined(ctx, v, req)
	}

	// Some names contain such separators, so the whole name was tried first.
	if err != nil || len(out.Files) > 0 || req.Prefix || req.Letters || scope == "" {
		return out, name, err
	}

	out, err = s.definitions(ctx, v, req, name)
	if err != nil {
		return nil, "", err
	}
	written := qualifiedExpr(req.Symbol)
	out.Keep(func(m SymbolMatch) bool { return inScope(m.ParentName, scope) || written.Match(m.Line) })
	return out, name, nil
}

// definitions finds the symbols with a name. The request says whether name is exact, a prefix,
// letters of the name, or a pattern with *.
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

	// A query cannot select a kind, so filter the answer.
	if req.Kind != "" {
		out.Keep(func(m SymbolMatch) bool { return m.Kind == req.Kind })
	}

	return out, nil
}

// isPattern reports whether a name contains a * as a wildcard. The * of an operator is part of its
// name.
func isPattern(name string) bool {
	return strings.Contains(name, "*") && strings.Trim(name, "*") != "" && !operator.MatchString(name)
}

// lettersExpr returns an expression for names that contain the letters of a name in order. Spaces
// are ignored.
func lettersExpr(name string) string {
	letters := strings.Split(strings.ReplaceAll(name, " ", ""), "")
	for i, l := range letters {
		letters[i] = regexp.QuoteMeta(l)
	}
	return "(?i)" + strings.Join(letters, ".*")
}

// Keep removes unwanted matches, and then empty files and repositories.
func (r *SymbolResponse) Keep(wanted func(m SymbolMatch) bool) {
	r.MatchCount = 0
	for i := range r.Files {
		f := &r.Files[i]
		f.Matches = slices.DeleteFunc(f.Matches, func(m SymbolMatch) bool { return !wanted(m) })
		r.MatchCount += len(f.Matches)
	}
	r.dropEmpty()
}

// dropEmpty removes files without matches and repositories without files.
func (r *SymbolResponse) dropEmpty() {
	r.Files = slices.DeleteFunc(r.Files, func(f SymbolFile) bool { return len(f.Matches) == 0 })
	r.Repositories = slices.DeleteFunc(r.Repositories, func(repo browse.RepoInfo) bool {
		return !slices.ContainsFunc(r.Files, func(f SymbolFile) bool { return f.RepoID == repo.ID })
	})
}

// Qualified splits a name from its scope, as written in C++, Rust, most other languages, Ruby, and PHP. A separator
// needs a name on both sides.
func Qualified(symbol string) (scope, name string) {
	for _, sep := range []string{"::", ".", "#", `\`} {
		if i := strings.LastIndex(symbol, sep); i > 0 && i+len(sep) < len(symbol) {
			return symbol[:i], symbol[i+len(sep):]
		}
	}
	return "", symbol
}

// qualifiedExpr matches a line that writes a qualified name, alone or within a longer scope.
func qualifiedExpr(symbol string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^\w.:])(?:[\w.:]+[.:])?` + regexp.QuoteMeta(symbol) + `(?:\W|$)`)
}

// inScope reports whether the scope of a definition, as ctags writes it, ends with the requested
// scope.
func inScope(parent, scope string) bool {
	norm := strings.NewReplacer("::", ".", "#", ".", `\`, ".")
	parent, scope = norm.Replace(parent), norm.Replace(scope)
	return parent == scope || strings.HasSuffix(parent, "."+scope)
}

// References finds where a symbol is used: whole words equal to its name, except definitions.
// arrangeReferences describes the order.
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

// couldUse reports whether a file may contain further uses: it is code, or in a language that has
// some. If there are no uses, any file may.
func (r *SymbolResponse) couldUse(path string) bool {
	language := shard.Language(path, nil)
	return len(r.Files) == 0 || canDefine(path) || slices.ContainsFunc(r.Files, func(f SymbolFile) bool { return f.Language == language })
}

// uses finds a name as a whole word, including its definitions.
func (s *Finder) uses(ctx context.Context, v catalog.Viewer, req SymbolRequest) (*SymbolResponse, error) {
	return s.symbols(ctx, v, req, wordOf(req.Symbol), maxSymbolMatches)
}

// operator matches the name of a C++ operator, which may have blanks after the keyword.
var operator = regexp.MustCompile(`^operator\s*([^\w\s].*)$`)

// nameExpr returns an expression for a name as ctags and sources write it.
func nameExpr(name string) string {
	if m := operator.FindStringSubmatch(name); m != nil {
		return `operator\s*` + regexp.QuoteMeta(m[1])
	}
	return regexp.QuoteMeta(name)
}

// wordOf returns the query for a name as a whole word in the content of files.
func wordOf(name string) *query.Text {
	begins, ends := WordEdges(name)
	return &query.Text{Pattern: nameExpr(name), Regexp: true, Field: query.Content, WordBegins: begins, WordEnds: ends}
}

// WordEdges reports on which sides a name needs a word boundary: where it has a letter. The sign of
// `done?` or `~Store` may touch another word.
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

	// Record what the answer lacks, and which commits it covers.
	out.Coverage = search.AtRevision(search.UpTo(out.Coverage, max(len(out.Files), 1), found.Found), found.Sight, req.Repo, req.Paths.Repos, req.Revision)
	out.nameCommits(found.Sight, req.Repo, cmp.Or(req.Revision, "HEAD"))
	return out, nil
}

// lookup returns a search for a text in the revision, paths, language and repository of a request.
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
		Lexed:    text.Field == query.Content && !req.bare,
	}, nil
}

// addKept records the files indexed only by name that could have changed the answer.
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

// canDefine reports by its name whether a file is in a language with symbols.
func canDefine(path string) bool { return symbol.Has(path, shard.Language(path, nil)) }

// isSymbol reports whether a text can be the name of a symbol.
func isSymbol(name string) bool {
	blank := strings.TrimSpace(name) == ""
	return !blank && len(name) <= 1000 && !strings.ContainsAny(name, "\n\x00")
}

// nameCommits records the commit of each repository in the answer, and of the requested one.
func (r *SymbolResponse) nameCommits(seen *account.Repos, repo, rev string) {
	r.Commits = map[string]string{}
	if repo != "" {
		r.Commits[repo] = search.CommitOf(seen, repo, rev)
	}
	for _, f := range r.Files {
		r.Commits[f.Repository] = search.CommitOf(seen, f.Repository, rev)
	}
}

// around returns the number of extra lines to request around each match.
func (r *SymbolRequest) around() int {
	if r.Signature {
		return signatureLines
	}
	return 0
}

// symbolResponse converts the files of a search to at most req.Limit files of symbols.
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

		// A file beyond the limit shows that there are more.
		if len(out.Files) == limit {
			out.Coverage = out.Coverage.With(coverage.Gap{Kind: coverage.Limit})
			break
		}

		out.Files = append(out.Files, file)
		out.MatchCount += len(file.Matches)
		used[f.RepoID] = true
	}

	// Keep only the repositories of the files that remain.
	for _, r := range answer.Repositories {
		if used[r.ID] {
			out.Repositories = append(out.Repositories, r)
		}
	}
	return out
}

// symbolFile converts a file of a search: each range becomes a match, with the signature of a
// definition if requested.
func symbolFile(f search.File, signed bool) SymbolFile {
	file := SymbolFile{RepoID: f.RepoID, Repository: f.Repository, Path: f.Path, WebURL: f.WebURL, Language: f.Language}
	for _, c := range f.Chunks {
		r := lex.For(f.Language).Reader(c.Content, c.Open)
		for i, rg := range c.Ranges {
			m := SymbolMatch{Range: rg}
			m.Line, m.at = lineOf(c, rg)
			m.Open = r.OpenAt(int(rg.Start.Offset) - int(c.Start.Offset) - m.at)

			// Symbols and Around, if present, are parallel to the ranges.
			if i < len(c.Symbols) {
				s := c.Symbols[i]
				m.Name, m.Kind, m.ParentName, m.ParentKind = s.Name, s.Kind, s.ParentName, s.ParentKind
			}
			if i < len(c.Around) {
				m.Around = c.Around[i]
			}
			m.OutsideCode = m.Kind == "" && OutsideCode(f.Language, m.Line, m.Open, m.at)
			if signed && m.Kind != "" {
				m.Signature = signatureOf(f.Language, c, rg)
			}
			file.Matches = append(file.Matches, m)
		}
	}
	return file
}

// lineOf returns the line of a chunk in which a range begins, and the offset of the range in it.
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

// languages returns the query for a language. Languages that are mixed in one program count as one.
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

// mixedLanguages lists languages that are mixed in one program: C++ includes C headers, and
// TypeScript imports JavaScript.
var mixedLanguages = [][]string{{"C", "C++"}, {"TypeScript", "JavaScript", "JSX", "TSX"}, {"Java", "Kotlin"}}

// Mixed reports whether two languages are equal or mixed in one program.
func Mixed(a, b string) bool {
	return a == b || slices.ContainsFunc(mixedLanguages, func(g []string) bool { return slices.Contains(g, a) && slices.Contains(g, b) })
}
