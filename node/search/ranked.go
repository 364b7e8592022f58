package search

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// RankedRequest asks for the files that have most to do with some words.
type RankedRequest struct {
	Query string // words, or a query of the search language
	Repo  string // "" for all
	Ref   string // indexed; "" means HEAD
	Paths paths.Filter
	Limit int // files, 1..100
}

// RankedResponse is the files, the best first.
type RankedResponse struct {
	Files    []RankedFile
	Words    []string // that were looked for
	Missing  []string // of the words asked for: no file has them
	Whole    int      // of Files, those that have all Words
	More     bool     // there are more files than Limit
	Coverage coverage.Coverage
}

// RankedFile is one file with its best lines: fewer of those that rank lower. Of the
// first file they are a block, with what stands between them.
type RankedFile struct {
	Repo, Path, Language string
	Words                int // of RankedResponse.Words that it has
	Lines                []RankedLine
	Copies               int // files with the same text that rank lower
}

// RankedLine is a line with words, and the definition that it stands in, as the index
// knows it; without a name where that is nothing.
type RankedLine struct {
	browse.Line
	In shard.Symbol
}

// The bounds of a ranking.
const (
	rankedWords      = 12
	rankedCandidates = 100 // files whose lines are read
	rankedLines      = 2   // shown of the files that rank second to rankedTop; one of the others
	rankedTop        = 5
)

// Ranked finds files by words. The files with the most of the rarest words come
// first: each word counts by how few files have it (see relevance). A word that
// no file has is left out. Files that lack some of the others are there too, as
// long as those that they have weigh enough; each says how many it has.
//
//	words -> the files of each word (see listWords) -> the best by rarity -> their lines and symbols -> order
func (s *Searcher) Ranked(ctx context.Context, v catalog.Viewer, req RankedRequest) (*RankedResponse, error) {
	if req.Limit < 1 || req.Limit > 100 {
		return nil, call.Fail(call.ErrInvalid, "limit must be from 1 to 100")
	}

	ctx, cancel := context.WithTimeout(ctx, s.d.Time)
	defer cancel()

	r := &ranking{s: s, ctx: ctx, viewer: v, req: req, out: &RankedResponse{}, files: map[fileKey]*candidate{}}
	if err := r.parse(); err != nil {
		return nil, err
	}

	// Which files have which words decides which are worth reading.
	if err := r.listWords(); err != nil {
		return nil, err
	}
	r.dropMissing()

	if err := r.look(r.best()); err != nil {
		return nil, err
	}

	r.order()
	if err := r.showFirst(); err != nil {
		return nil, err
	}

	kept, err := s.KeptByName(ctx, v, r.filter, r.rev, req.Repo)
	if err != nil {
		return nil, err
	}
	r.out.Coverage = KeptOnly(r.out.Coverage, kept)

	// Last: what the searches lack is graver than a revision that some have not. Of the query
	// or of the call, whichever named it.
	r.out.Coverage = AtRevision(r.out.Coverage, r.seen, req.Repo, req.Paths.Repos, r.req.Ref)
	return r.out, nil
}

// ranking is one call of Ranked at work.
type ranking struct {
	s      *Searcher
	ctx    context.Context
	viewer catalog.Viewer
	req    RankedRequest
	rev    string
	filter []query.Q // what every file has to satisfy
	words  []rankedWord
	files  map[fileKey]*candidate
	total  int            // documents that were searched
	seen   *account.Repos // by the last of the lists
	out    *RankedResponse
}

// rankedWord is a word, how it is looked for, and what it counts.
type rankedWord struct {
	text   string
	expr   string // in any case
	m      *match.Matcher
	files  int // that have it; of a common word an estimate
	weight float64
}

func newRankedWord(text string) (rankedWord, error) {
	expr := wordExpr(text)
	m, err := match.Compile(expr, match.Options{})
	return rankedWord{text: text, expr: expr, m: m}, err
}

type fileKey struct{ repo, path string }

// candidate is a file and where it has the words.
type candidate struct {
	fileKey
	language string
	relevance
	lines []RankedLine
	oid   string // of its text; "" where it was not read
}

// parse takes the words out of the query. What else it asks for is a filter.
func (r *ranking) parse() error {
	parsed, err := query.Parse(r.req.Query, query.Options{})
	if err != nil {
		return call.Fail(call.ErrInvalid, "query: %v", err)
	}

	words := r.split(r.revision(parsed.Q))

	// An expression a word: it is matched as people write code, in parts of names too.
	for _, text := range telling(words) {
		word, err := newRankedWord(text)
		if err != nil {
			return call.Fail(call.ErrInvalid, "query: %v", err)
		}
		r.words = append(r.words, word)
	}

	if len(r.words) == 0 {
		return call.Fail(call.ErrInvalid, "query has no word to rank by; write words of the code or its comments")
	}

	in, err := r.req.Paths.Exprs()
	if err != nil {
		return err
	}
	r.filter = append(r.filter, in.Atoms()...)

	r.rev, err = r.s.indexedRev(r.viewer, r.req.Repo, r.req.Ref)
	switch {
	case err != nil:
		return err
	case r.rev != "":
		return nil
	case r.req.Ref == "":
		return r.notIndexed()
	}
	return call.Fail(call.ErrRef, "Revision %q is not indexed; words are ranked in indexed revisions only. Use grep with ref", r.req.Ref)
}

// notIndexed says why the words of a repository without an index are not ranked.
func (r *ranking) notIndexed() error {
	seen, err := r.s.d.Gate.Repos(r.viewer)
	if err != nil {
		return err
	}
	repo, err := seen.ByName(r.req.Repo)
	if err != nil {
		return err
	}
	return cmp.Or(browse.NotIndexed(seen.View, repo), call.Fail(call.ErrUnavailable, "Repository %q is not indexed yet, so its words cannot be ranked", repo.Name))
}

// revision takes the revision out of a query, since the index is asked for that
// of the call beside the filter. HEAD is what a query has that names none, and
// is that of a call that names none; a second one, and what stands within an
// alternative, stays and narrows.
func (r *ranking) revision(q query.Q) query.Q {
	subs := []query.Q{q}
	if and, ok := q.(*query.And); ok {
		subs = and.Subs
	}

	// Only what stands at the top narrows all of the query.
	rest := make([]query.Q, 0, len(subs))
	for _, sub := range subs {
		rev, ok := sub.(*query.Rev)
		switch {
		case ok && rev.Pattern == "HEAD":
		case ok && r.req.Ref == "":
			r.req.Ref = rev.Pattern
		default:
			rest = append(rest, sub)
		}
	}
	return &query.And{Subs: rest}
}

// split returns the plain words of a query, and makes a filter of the rest. In
// a sentence "or" is a word like others, so alternatives of nothing but words
// are words too.
func (r *ranking) split(q query.Q) (words []string) {
	switch q := q.(type) {
	case *query.Text:
		if !q.Regexp && q.Field != query.Name && q.Field != query.Symbol {
			return []string{q.Pattern}
		}
	case *query.And:
		for _, sub := range q.Subs {
			words = append(words, r.split(sub)...)
		}
		return words
	case *query.Or:
		// A filter that a branch made is not one of the whole: then the alternatives
		// are a filter together.
		before := len(r.filter)
		for _, sub := range q.Subs {
			words = append(words, r.split(sub)...)
		}
		if len(r.filter) == before {
			return words
		}
		r.filter = r.filter[:before]
	}
	r.filter = append(r.filter, q)
	return nil
}

// commonWords say little of what is looked for.
const commonWords = " a an and are as at be by can do does for from how i in is it its of on or that the this to was what when where which who why with "

// telling is the words that say something, each once.
func telling(words []string) []string {
	var out []string
	for _, w := range words {
		w = strings.TrimSuffix(strings.Trim(w, "?.,;:!'`\"()[]{}"), "'s")
		common := strings.Contains(commonWords, " "+strings.ToLower(w)+" ")
		if w != "" && !common && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}

	// A sentence of nothing but common words is still asked for.
	if out == nil {
		out = words
	}
	return out[:min(len(out), rankedWords)]
}

// endings of words, of which the first that fits is taken off.
var endings = []string{"ations", "ation", "ions", "ion", "ings", "ing", "ers", "ed", "es", "s"}

// compound is a name of several words, as they are written in code and in options.
var compound = regexp.MustCompile(`^-*[A-Za-z][a-z]+(?:[-_.]?[A-Z][a-z]+|[-_.][a-z]{2,})+$`)

// humps are where the next word of a compound begins.
var humps = regexp.MustCompile(`[-_.]|([a-z])([A-Z])`)

// wordExpr finds a word in all its forms: retried, retries and retrying are
// found with retry, and retry_count as retryCount and retry-count, too. What looks like
// neither is taken as it stands.
func wordExpr(word string) string {
	if first, n := utf8.DecodeRuneInString(word); len(word) > n && !strings.ContainsFunc(word[n:], unicode.IsUpper) {
		word = string(unicode.ToLower(first)) + word[n:] // a sentence begins with it
	}
	if compound.MatchString(word) {
		return "(?i)" + humps.ReplaceAllString(strings.TrimLeft(word, "-"), "$1[-_.]?$2")
	}
	plain := strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
	if !plain {
		return "(?i)" + regexp.QuoteMeta(word)
	}

	// A stem of a few letters begins words that have nothing to do with it.
	for _, end := range []string{"ies", "ied"} {
		if stem := strings.TrimSuffix(word, end); stem != word && len(stem) >= 3 {
			return "(?i)" + stem + "(?:y|ie)"
		}
	}
	for _, end := range endings {
		if stem := strings.TrimSuffix(word, end); stem != word && len(stem) >= 4 {
			return "(?i)" + stem
		}
	}
	return "(?i)" + word
}

// search begins a search with the filter of the ranking.
func (r *ranking) search(t Lookup, q ...query.Q) (*root, error) {
	t.Atoms = append(q, r.filter...)
	t.Revision, t.Repo = r.rev, r.req.Repo
	return r.s.toolSearch(r.ctx, r.viewer, t)
}

// dropMissing leaves out the words that no file has, and weighs the others.
func (r *ranking) dropMissing() {
	for i := range r.words {
		w := &r.words[i]
		if w.files == 0 {
			w.files = r.having(i) // by their paths
		}
		if w.files == 0 {
			r.out.Missing = append(r.out.Missing, w.text)
			continue
		}
		r.out.Words = append(r.out.Words, w.text)
		w.weigh(r.total)
	}
}

// having is how many of the candidates have the word of that index.
func (r *ranking) having(i int) (n int) {
	for _, c := range r.files {
		n += int(c.has >> i & 1)
	}
	return n
}

// best is the files that are worth reading.
func (r *ranking) best() []*candidate {
	type scored struct {
		*candidate
		score float64
	}
	all := make([]scored, 0, len(r.files))
	for _, c := range r.files {
		all = append(all, scored{c, c.score(r.words)})
	}

	// Equal scores by name: the same question has the same answer at every node.
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(
			cmp.Compare(b.score, a.score),
			cmp.Compare(a.repo, b.repo),
			cmp.Compare(a.path, b.path),
		)
	})

	best := make([]*candidate, min(len(all), rankedCandidates))
	for i := range best {
		best[i] = all[i].candidate
	}
	return best
}

// look reads the lines of the candidates that have words, and of those that define a
// symbol its name.
func (r *ranking) look(best []*candidate) error {
	if len(best) == 0 {
		return nil
	}

	found, err := r.search(Lookup{files: 4 * rankedCandidates, Scopes: true}, append(r.keep(best), r.anyInText(r.known()))...)
	if err != nil {
		return err
	}
	defer found.close()
	answer, err := found.respond()
	if err != nil {
		return err
	}

	// Repositories and paths are asked for apart: another repository may have the same path.
	for i := range answer.Files {
		f := &answer.Files[i]
		if c := r.files[fileKey{f.Repository, f.Path}]; c != nil {
			c.takeLines(r, f)
			c.takeSymbols(r, f)
		}
	}
	return nil
}

// known is the words that some file has: others would only be looked for once more.
func (r *ranking) known() (words []int) {
	for i := range r.words {
		if r.words[i].files > 0 {
			words = append(words, i)
		}
	}
	return words
}

// keep forgets all candidates but the first, and returns what holds for these. Of long
// paths there are fewer: an expression has its bound.
func (r *ranking) keep(best []*candidate) []query.Q {
	const before, after = `\A(?:`, `)\z`
	left := match.MaxPattern - len(before) - len(after)

	r.files = map[fileKey]*candidate{}
	var paths, repos []string
	for _, c := range best {
		path := exactName(c.path)
		if left -= len(path) + len("|"); left < 0 {
			break
		}
		paths = append(paths, path)

		r.files[c.fileKey] = c
		c.linesWith = [rankedWords]float64{} // no estimate any more
		if !slices.Contains(repos, c.repo) {
			repos = append(repos, c.repo)
		}
	}

	// By exact path: what else these repositories have is out of the question.
	pattern := before + strings.Join(paths, "|") + after
	return []query.Q{
		&query.RepoSet{Names: repos},
		&query.Text{Pattern: pattern, Regexp: true, Field: query.Name},
	}
}

// takeLines looks at the lines with words, and keeps the best.
func (c *candidate) takeLines(r *ranking, f *File) {
	c.language, c.oid = f.Language, f.OID

	type scored struct {
		RankedLine
		weight float64
	}

	in := scopesOf(f.Chunks)
	var lines []scored
	for _, l := range linesOf(f.Chunks) {
		lines = append(lines, scored{RankedLine{l, in[l.Number]}, c.line(r.words, l)})
	}

	slices.SortStableFunc(lines, func(a, b scored) int { return cmp.Compare(b.weight, a.weight) })

	for _, l := range lines[:min(len(lines), rankedLines)] {
		c.lines = append(c.lines, l.RankedLine)
	}

}

// scopesOf is what the lines with matches stand in, by their numbers.
func scopesOf(chunks []shard.Chunk) map[int]shard.Symbol {
	in := map[int]shard.Symbol{}
	for _, c := range chunks {
		for i, y := range c.Around {
			in[int(c.Ranges[i].Start.Line)] = y
		}
	}
	return in
}

// takeSymbols looks at the symbols with words in their names.
func (c *candidate) takeSymbols(r *ranking, f *File) {
	for _, chunk := range f.Chunks {
		for _, s := range chunk.Symbols {
			c.name(r.words, s.Name)
		}
	}
}

// order fills in the answer: the best of the files that have enough of what the words
// weigh. Of equal files the first stands for all.
func (r *ranking) order() {
	all := 0.0
	for i := range r.words {
		all += r.words[i].weight
	}

	words := len(r.out.Words)
	byText := map[string]int{} // of Files
	for _, c := range r.best() {
		f := RankedFile{Repo: c.repo, Path: c.path, Language: c.language, Lines: c.lines}
		weight := 0.0
		for i := range r.words {
			if c.has>>i&1 != 0 {
				f.Words++
				weight += r.words[i].weight
			}
		}

		at, copied := byText[c.oid]
		switch {
		case weight < leastShare*all:
		case copied && c.oid != "":
			r.out.Files[at].Copies++
		default:
			// Who reads of the tenth file wants to know what it is.
			if byText[c.oid] = len(r.out.Files); byText[c.oid] >= rankedTop {
				f.Lines = f.Lines[:min(len(f.Lines), 1)]
			}
			slices.SortFunc(f.Lines, func(a, b RankedLine) int { return a.Number - b.Number })
			r.out.Files = append(r.out.Files, f)
		}
	}

	// More candidates than the limit were looked at: that is how it is known.
	r.out.More = len(r.out.Files) > r.req.Limit
	if r.out.More {
		r.out.Files = r.out.Files[:r.req.Limit]
	}

	for _, f := range r.out.Files {
		if f.Words == words {
			r.out.Whole++
		}
	}
}

// showFirst puts the block that has the most of the words in place of the lines of the
// first file: it most often answers, and single lines have to be read around.
func (r *ranking) showFirst() error {
	if len(r.out.Files) == 0 || len(r.out.Files[0].Lines) == 0 {
		return nil
	}
	first := &r.out.Files[0]
	c := r.files[fileKey{first.Repo, first.Path}]
	if c.windowTo == 0 {
		return nil // of nothing but long lines
	}

	found, err := r.search(Lookup{Lines: windowLines, Scopes: true}, append(r.keep([]*candidate{c}), r.anyInText(r.known()))...)
	if err != nil {
		return err
	}
	defer found.close()
	answer, err := found.respond()
	if err != nil || len(answer.Files) == 0 {
		return err
	}

	// A line before the first word and some behind the last: a head and its body.
	from, to := c.windowFrom-1, max(c.windowTo+1, c.windowFrom+windowLines-2)
	chunks := answer.Files[0].Chunks
	in := scopesOf(chunks)
	first.Lines = nil
	for _, l := range linesOf(chunks) {
		if blank := len(bytes.TrimSpace(l.Text)) == 0; !blank && l.Number >= from && l.Number <= to {
			first.Lines = append(first.Lines, RankedLine{l, in[l.Number]})
		}
	}
	return nil
}
