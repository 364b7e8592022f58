package node

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// SymbolRequest asks where a symbol is defined or used.
type SymbolRequest struct {
	Symbol   string
	Language string // "" for any
	Revision string // "" means HEAD
	Repo     string // "" for all
	Limit    int    // files; 0 means 1000

	IncludeDefinitions bool // keep the definitions among the references
}

// SymbolResponse is where a symbol was found.
type SymbolResponse struct {
	MatchCount   int
	Files        []SymbolFile
	Repositories []RepositoryInfo
	Exhaustive   bool
	Similar      []string // where nothing has the name: names that have it in them, at most 10
}

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
	Remark                 bool   // a reference in a comment or in a text

	at int // of the range in Line
}

// arrangeReferences takes out the definitions and puts remarks last; the
// order is otherwise kept.
func arrangeReferences(out *SymbolResponse, req SymbolRequest) {
	byRemark := func(a, b SymbolMatch) int {
		switch {
		case a.Remark == b.Remark:
			return 0
		case a.Remark:
			return 1
		}
		return -1
	}
	out.MatchCount = 0
	for i := range out.Files {
		f := &out.Files[i]
		if !req.IncludeDefinitions {
			f.Matches = slices.DeleteFunc(f.Matches, func(m SymbolMatch) bool { return m.Kind != "" })
		}
		for j := range f.Matches {
			m := &f.Matches[j]
			m.Remark = m.Kind == "" && inRemark(f.Language, m.Line, m.at)
		}
		slices.SortStableFunc(f.Matches, byRemark)
		out.MatchCount += len(f.Matches)
	}
	out.Files = slices.DeleteFunc(out.Files, func(f SymbolFile) bool { return len(f.Matches) == 0 })
	slices.SortStableFunc(out.Files, func(a, b SymbolFile) int { return byRemark(a.Matches[0], b.Matches[0]) })
	out.Repositories = slices.DeleteFunc(out.Repositories, func(r RepositoryInfo) bool {
		return !slices.ContainsFunc(out.Files, func(f SymbolFile) bool { return f.RepoID == r.ID })
	})
}

const (
	maxSymbolMatches = 10_000 // places of one answer, as of a search
	maxSimilar       = 200    // looked at for similar names
)

// Definitions finds where a symbol is defined. What can be called or
// instantiated comes before variables and members. A name that nothing bears
// may be qualified, by dots or colons: then the enclosing scope decides.
func (n *Node) Definitions(ctx context.Context, v Viewer, req SymbolRequest) (*SymbolResponse, error) {
	out, err := n.definitions(ctx, v, req, req.Symbol)
	if err != nil || len(out.Files) > 0 {
		return out, err
	}
	scope, name := qualified(req.Symbol)
	if scope != "" {
		if out, err = n.definitions(ctx, v, req, name); err != nil {
			return nil, err
		}
		out.keep(func(m SymbolMatch) bool { return inScope(m.ParentName, scope) })
	}
	if len(out.Files) == 0 && len(name) > 2 {
		out.Similar, err = n.similar(ctx, v, req, name)
	}
	return out, err
}

// similar lists names of symbols that have a name in them, in any case, the
// shortest first.
func (n *Node) similar(ctx context.Context, v Viewer, req SymbolRequest, name string) ([]string, error) {
	found, err := n.symbols(ctx, v, req, &query.Text{Pattern: "(?i)" + regexp.QuoteMeta(name), Regexp: true, Field: query.Symbol}, maxSimilar)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, f := range found.Files {
		for _, m := range f.Matches {
			names[m.Name] = true
		}
	}
	delete(names, "")
	list := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return list[:min(len(list), 10)], nil
}

func (n *Node) definitions(ctx context.Context, v Viewer, req SymbolRequest, name string) (*SymbolResponse, error) {
	out, err := n.symbols(ctx, v, req, &query.Text{Pattern: "^" + regexp.QuoteMeta(name) + "$", Regexp: true, Field: query.Symbol}, maxSymbolMatches)
	if err != nil {
		return nil, err
	}
	rank := func(a, b SymbolMatch) int { return shard.KindRank(a.Kind) - shard.KindRank(b.Kind) }
	for i := range out.Files {
		slices.SortStableFunc(out.Files[i].Matches, rank)
	}
	slices.SortStableFunc(out.Files, func(a, b SymbolFile) int { return rank(a.Matches[0], b.Matches[0]) })
	return out, nil
}

// keep drops the places that are not wanted, and what is left empty by that.
func (r *SymbolResponse) keep(wanted func(m SymbolMatch) bool) {
	r.MatchCount = 0
	for i := range r.Files {
		f := &r.Files[i]
		f.Matches = slices.DeleteFunc(f.Matches, func(m SymbolMatch) bool { return !wanted(m) })
		r.MatchCount += len(f.Matches)
	}
	r.Files = slices.DeleteFunc(r.Files, func(f SymbolFile) bool { return len(f.Matches) == 0 })
	r.Repositories = slices.DeleteFunc(r.Repositories, func(repo RepositoryInfo) bool {
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
// those that define it. What stands in comments and in texts comes last, in
// each file and among the files.
func (n *Node) References(ctx context.Context, v Viewer, req SymbolRequest) (*SymbolResponse, error) {
	pattern := regexp.QuoteMeta(req.Symbol)
	// A border of a word can only stand where the name begins or ends with a
	// letter of one: "operator+" has none at its end.
	if wordByte(req.Symbol, 0) {
		pattern = `\b` + pattern
	}
	if wordByte(req.Symbol, len(req.Symbol)-1) {
		pattern += `\b`
	}
	out, err := n.symbols(ctx, v, req, &query.Text{Pattern: pattern, Regexp: true, Field: query.Content}, maxSymbolMatches)
	if err != nil {
		return nil, err
	}
	arrangeReferences(out, req)
	return out, nil
}

func wordByte(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// symbols runs a search for one symbol.
func (n *Node) symbols(ctx context.Context, v Viewer, req SymbolRequest, text *query.Text, most int) (*SymbolResponse, error) {
	if strings.TrimSpace(req.Symbol) == "" || len(req.Symbol) > 1000 || strings.ContainsAny(req.Symbol, "\n\x00") {
		return nil, fail(ErrInvalid, "the symbol must be a name of 1 to 1000 bytes on one line")
	}
	rev := req.Revision
	if rev == "" {
		rev = "HEAD"
	}
	subs := []query.Q{text, &query.Rev{Pattern: rev}}
	if req.Language != "" {
		lang, err := languages(req.Language)
		if err != nil {
			return nil, err
		}
		subs = append(subs, lang)
	}
	if req.Repo != "" {
		if _, err := n.repoByName(n.cluster.View(), v, req.Repo); err != nil {
			return nil, err
		}
		subs = append(subs, &query.RepoSet{Names: []string{req.Repo}})
	}
	r, err := n.onOneIndex(ctx, func() (*root, error) {
		return n.newRootOf(ctx, v, SearchRequest{Matches: most}, &query.Query{Q: &query.And{Subs: subs}, Count: query.NoCount})
	})
	if err != nil {
		return nil, err
	}
	defer r.close()
	answer, err := r.respond()
	if err != nil {
		return nil, err
	}
	return symbolResponse(answer, req.Limit), nil
}

func symbolResponse(answer *SearchResponse, limit int) *SymbolResponse {
	if limit <= 0 {
		limit = 1000
	}
	out := &SymbolResponse{Exhaustive: answer.Exhaustive}
	used := map[uint32]bool{}
	for _, f := range answer.Files {
		file := SymbolFile{RepoID: f.RepoID, Repository: f.Repository, Path: f.Path, WebURL: f.WebURL, Language: f.Language}
		for _, c := range f.Chunks {
			for i, rg := range c.Ranges {
				m := SymbolMatch{Range: rg}
				m.Line, m.at = lineOf(c, rg)
				if i < len(c.Symbols) {
					s := c.Symbols[i]
					m.Name, m.Kind, m.ParentName, m.ParentKind = s.Name, s.Kind, s.ParentName, s.ParentKind
				}
				file.Matches = append(file.Matches, m)
			}
		}
		if len(file.Matches) == 0 {
			continue
		}
		if len(out.Files) == limit {
			out.Exhaustive = false
			break
		}
		out.Files = append(out.Files, file)
		out.MatchCount += len(file.Matches)
		used[f.RepoID] = true
	}
	for _, r := range answer.Repositories {
		if used[r.ID] {
			out.Repositories = append(out.Repositories, r)
		}
	}
	return out
}

// lineOf cuts the line where a range begins out of its chunk, and tells where
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
	parsed, err := query.Parse("lang:"+query.Quote(name), query.Options{})
	if err != nil {
		return nil, fail(ErrInvalid, "unknown language %q", name)
	}
	var lang string
	query.Map(parsed.Q, func(q query.Q) query.Q {
		if l, ok := q.(*query.Lang); ok {
			lang = l.Name
		}
		return q
	})
	groups := [][]string{{"C", "C++"}, {"TypeScript", "JavaScript", "JSX", "TSX"}}
	for _, g := range groups {
		for _, member := range g {
			if member == lang {
				or := &query.Or{}
				for _, l := range g {
					or.Subs = append(or.Subs, &query.Lang{Name: l})
				}
				return or, nil
			}
		}
	}
	return &query.Lang{Name: lang}, nil
}
