package search

import (
	"cmp"
	"context"
	"maps"
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

// RankedRequest asks for the files that are most relevant to some words.
type RankedRequest struct {
	Query string // words, or a query of the search language
	Repo  string // "" means all
	Ref   string // an indexed revision; "" means HEAD
	Paths paths.Filter
	Limit int // limit of files, 1..100
}

// RankedResponse has the files, the most relevant first.
type RankedResponse struct {
	Files    []RankedFile
	Words    []string // words that were searched
	Missing  []string // words of the request that no file has
	Whole    int      // number of Files with all Words
	More     bool     // there are more files than Limit
	Coverage coverage.Coverage
}

// RankedFile is a file with its best lines. Files that rank lower have fewer lines. The first file
// has a block: its best lines with the lines between them.
type RankedFile struct {
	Repo, Path, Language string
	Words                int // how many of RankedResponse.Words it has
	Lines                []RankedLine
	Copies               int // number of files with the same text that rank lower
}

// RankedLine is a line with words, and the definition that encloses it. The definition has no name
// if the index knows none.
type RankedLine struct {
	browse.Line
	In shard.Symbol
}

// Limits of a ranking.
const (
	rankedWords      = 12
	rankedCandidates = 50 // files whose best lines are read
)

// Ranked finds files by words. The files with the most of the rarest words come first: a word
// weighs more if fewer files have it (see relevance). It leaves out a word that no file has. Files
// without some of the other words are in the answer too if the words that they have weigh enough.
//
//	words -> the files of each word (see listWords) -> the best by rarity -> their best lines and symbols -> order
func (s *Searcher) Ranked(ctx context.Context, v catalog.Viewer, req RankedRequest) (*RankedResponse, error) {
	if req.Limit < 1 || req.Limit > 100 {
		return nil, call.Fail(call.ErrInvalid, "limit must be from 1 to 100")
	}

	ctx, cancel := context.WithTimeout(ctx, s.d.Time)
	defer cancel()

	r := &ranking{s: s, ctx: ctx, viewer: v, req: req, out: &RankedResponse{}, files: map[fileKey]*candidate{}, forms: map[string][]place{}}
	if err := r.parse(); err != nil {
		return nil, err
	}

	// First find which files have which words, then read only the best.
	if err := r.listWords(); err != nil {
		return nil, err
	}
	r.dropMissing()

	best := r.best()
	if err := r.readBest(best); err != nil {
		return nil, err
	}

	r.order(best)
	if err := r.showLines(); err != nil {
		return nil, err
	}

	kept, err := s.KeptByName(ctx, v, r.filter, r.rev, req.Repo)
	if err != nil {
		return nil, err
	}
	r.out.Coverage = KeptOnly(r.out.Coverage, kept)

	// The revision comes last: what the searches lack is worse than a revision that some
	// repositories lack. The query or the request may have named it.
	r.out.Coverage = AtRevision(r.out.Coverage, r.visible, req.Repo, req.Paths.Repos, r.req.Ref)
	return r.out, nil
}

// ranking is one running call of Ranked.
type ranking struct {
	s       *Searcher
	ctx     context.Context
	viewer  catalog.Viewer
	req     RankedRequest
	rev     string
	filter  []query.Q // conditions on every file
	words   []rankedWord
	files   map[fileKey]*candidate
	total   int            // number of documents searched
	visible *account.Repos // what the viewer may see, in the view of the last search
	out     *RankedResponse
	forms   map[string][]place // by matched text: the words in it; files repeat few forms of a word
}

// rankedWord is a word with its expression and its weight.
type rankedWord struct {
	text   string
	expr   string // ignores case
	m      *match.Matcher
	files  int // number of files that have it; estimated for a common word
	weight float64
}

func newRankedWord(text string) (rankedWord, error) {
	expr := wordExpr(text)
	m, err := match.Compile(expr, match.Options{})
	return rankedWord{text: text, expr: expr, m: m}, err
}

type fileKey struct{ repo, path string }

// candidate is a file and the places where it has the words.
type candidate struct {
	fileKey
	language string
	relevance
	oid   string  // blob id of its text
	total float64 // its score when it was sorted last
	lines []lineWithWords
}

// parse takes the words from the query. The rest of the query becomes a filter.
func (r *ranking) parse() error {
	parsed, err := query.Parse(r.req.Query, query.Options{})
	if err != nil {
		return call.Fail(call.ErrInvalid, "query: %v", err)
	}

	words := r.split(r.revision(parsed.Q))

	// Each word becomes an expression that matches its forms in code, also in parts of names.
	for _, text := range meaningfulWords(words) {
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
		return r.indexError()
	}
	return call.Fail(call.ErrRef, "Revision %q is not indexed; words are ranked in indexed revisions only. Use grep with ref", r.req.Ref)
}

// indexError returns the error for ranking in a repository without an index.
func (r *ranking) indexError() error {
	visible, err := r.s.d.Gate.Repos(r.viewer)
	if err != nil {
		return err
	}
	repo, err := visible.ByName(r.req.Repo)
	if err != nil {
		return err
	}
	return cmp.Or(browse.NotIndexed(visible.View, repo), call.Fail(call.ErrUnavailable, "Repository %q is not indexed yet, so its words cannot be ranked", repo.Name))
}

// revision removes the revision from a query and puts it into the request. A query without a
// revision has HEAD, and so does a request. A second revision, or one inside an alternative, stays
// in the query as a filter.
func (r *ranking) revision(q query.Q) query.Q {
	subs := []query.Q{q}
	if and, ok := q.(*query.And); ok {
		subs = and.Subs
	}

	// Only a condition at the top applies to all of the query.
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

// split returns the plain words of a query and makes the rest a filter. In a sentence "or" is a
// word like others, so alternatives that consist of words only are words too.
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
		// A filter from one alternative does not apply to the whole query: then all alternatives
		// together are one filter.
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

// commonWords are words that say little about the search.
const commonWords = " a an and are as at be by can do does for from how i in is it its of on or that the this to was what when where which who why with "

// meaningfulWords returns the words that are not common, each once.
func meaningfulWords(words []string) []string {
	var out []string
	for _, w := range words {
		w = strings.TrimSuffix(strings.Trim(w, "?.,;:!'`\"()[]{}"), "'s")
		common := strings.Contains(commonWords, " "+strings.ToLower(w)+" ")
		if w != "" && !common && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}

	// If all words are common, search for them all the same.
	if out == nil {
		out = words
	}
	return out[:min(len(out), rankedWords)]
}

// endings are removed from words. The first one that fits is removed.
var endings = []string{"ations", "ation", "ions", "ion", "ings", "ing", "ers", "ed", "es", "s"}

// compound matches a name of several words, as in code and in options.
var compound = regexp.MustCompile(`^-*[A-Za-z][a-z]+(?:[-_.]?[A-Z][a-z]+|[-_.][a-z]{2,})+$`)

// humps matches where the next word of a compound begins.
var humps = regexp.MustCompile(`[-_.]|([a-z])([A-Z])`)

// wordExpr returns an expression that matches a word in all its forms: retry also matches retries
// and retrying, and retry_count also matches retryCount and retry-count. Other texts match as they
// are.
func wordExpr(word string) string {
	if first, n := utf8.DecodeRuneInString(word); len(word) > n && !strings.ContainsFunc(word[n:], unicode.IsUpper) {
		word = string(unicode.ToLower(first)) + word[n:] // a word at the start of a sentence
	}
	if compound.MatchString(word) {
		return "(?i)" + humps.ReplaceAllString(strings.TrimLeft(word, "-"), "$1[-_.]?$2")
	}
	plain := strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
	if !plain {
		return "(?i)" + regexp.QuoteMeta(word)
	}

	// Stems need some letters: short ones begin unrelated words.
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

// search runs a lookup with the filter of the ranking.
func (r *ranking) search(t Lookup, q ...query.Q) (*root, error) {
	t.Atoms = append(q, r.filter...)
	t.Revision, t.Repo = r.rev, r.req.Repo
	return r.s.toolSearch(r.ctx, r.viewer, t)
}

// dropMissing removes the words that no file has, and sets the weights of the others.
func (r *ranking) dropMissing() {
	for i := range r.words {
		w := &r.words[i]
		if w.files == 0 {
			w.files = r.countWith(i) // it may occur in paths only
		}
		if w.files == 0 {
			r.out.Missing = append(r.out.Missing, w.text)
			continue
		}
		r.out.Words = append(r.out.Words, w.text)
		w.weigh(r.total)
	}
}

// countWith returns how many candidates have word i.
func (r *ranking) countWith(i int) (n int) {
	for _, c := range r.files {
		n += int(c.has >> i & 1)
	}
	return n
}

// best returns the candidates with the highest scores, which are worth reading.
func (r *ranking) best() []*candidate {
	all := r.sorted(slices.Collect(maps.Values(r.files)))
	return all[:min(len(all), max(rankedCandidates, r.req.Limit+1))]
}

// sorted sorts candidates by score. Names break ties, so that every node gives the same answer.
func (r *ranking) sorted(files []*candidate) []*candidate {
	for _, c := range files {
		c.total = c.score(r.words)
	}
	slices.SortFunc(files, func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(b.total, a.total),
			cmp.Compare(a.repo, b.repo),
			cmp.Compare(a.path, b.path),
		)
	})
	return files
}

// readBest reads the best lines of the candidates, and the symbols on them.
func (r *ranking) readBest(best []*candidate) error {
	if len(best) == 0 {
		return nil
	}
	lines, err := r.linesIn(best, Lookup{PerFile: rangesRead, Scopes: true, tally: true})
	for _, c := range best {
		c.lines = lines[c.fileKey]
		c.bestBlock = bestBlock(c.lines, r.words).weight
	}
	return err
}

// foundWords returns the words that some file has. It is useless to search for the others again.
func (r *ranking) foundWords() (words []int) {
	for i := range r.words {
		if r.words[i].files > 0 {
			words = append(words, i)
		}
	}
	return words
}

// restrictTo returns the conditions that select files. It selects fewer if their paths are too long for
// one expression.
func restrictTo(files []*candidate) []query.Q {
	const before, after = `\A(?:`, `)\z`
	left := match.MaxPattern - len(before) - len(after)

	var paths, repos []string
	for _, c := range files {
		path := exactName(c.path)
		if left -= len(path) + len("|"); left < 0 {
			break
		}
		paths = append(paths, path)
		if !slices.Contains(repos, c.repo) {
			repos = append(repos, c.repo)
		}
	}

	// Exact paths exclude all other files of these repositories.
	pattern := before + strings.Join(paths, "|") + after
	return []query.Q{
		&query.RepoSet{Names: repos},
		&query.Text{Pattern: pattern, Regexp: true, Field: query.Name},
	}
}

// order fills the answer with the best files. It keeps the first of several files with the same text.
func (r *ranking) order(best []*candidate) {
	byText := map[string]int{} // index in Files by blob id
	for _, c := range r.sorted(best) {
		if at, copied := byText[c.oid]; copied && c.oid != "" {
			r.out.Files[at].Copies++
			continue
		}
		byText[c.oid] = len(r.out.Files)
		r.out.Files = append(r.out.Files, RankedFile{Repo: c.repo, Path: c.path, Language: c.language})
	}

	// There are more candidates than the limit, so this shows whether there are more files.
	r.out.More = len(r.out.Files) > r.req.Limit
	if r.out.More {
		r.out.Files = r.out.Files[:r.req.Limit]
	}
}
