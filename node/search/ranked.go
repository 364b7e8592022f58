package search

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"math/bits"
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
	rankedCandidates = 50 // files that are read
	rankedTop        = 5  // files that show several lines; others show one
)

// Ranked finds files by words. The files with the most of the rarest words come first: a word
// weighs more if fewer files have it. It leaves out a word that no file has. Files without some of
// the other words are in the answer too if the words that they have weigh enough.
//
//	words -> how many files have each -> weights -> the best files with their lines
func (s *Searcher) Ranked(ctx context.Context, v catalog.Viewer, req RankedRequest) (*RankedResponse, error) {
	if req.Limit < 1 || req.Limit > 100 {
		return nil, call.Fail(call.ErrInvalid, "limit must be from 1 to 100")
	}

	ctx, cancel := context.WithTimeout(ctx, s.d.Time)
	defer cancel()

	r := &ranking{s: s, ctx: ctx, viewer: v, req: req, out: &RankedResponse{}}
	if err := r.parse(); err != nil {
		return nil, err
	}

	// Weights must be the same for all files, so the files of each word are counted first.
	if err := r.weigh(); err != nil {
		return nil, err
	}
	if err := r.rank(); err != nil {
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
	filter  []query.Q      // conditions on every file
	texts   []string       // the words
	words   []shard.Word   // the words, as they are searched
	visible *account.Repos // what the viewer may see, in the view of the ranking
	out     *RankedResponse
}

// weigh counts the files of each word, and sets the weights.
func (r *ranking) weigh() error {
	found, err := r.search(Lookup{words: r.words, counts: true})
	if err != nil {
		return err
	}
	defer found.close()

	total := found.a.documents()
	for i, files := range found.a.wordFiles {
		r.words[i].Weight = weightOf(r.texts[i], files, total)
	}
	return nil
}

// Exponents and factors of weights.
const (
	rareCounts = 1.6 // exponent that makes rare words count more than common ones
	codeCounts = 1.6 // factor for a word that can only be code
)

// weightOf returns the weight of a word that some of all files have. Rare words weigh most, and words that
// are written like names in code weigh more.
func weightOf(word string, files, total int) float64 {
	share := float64(max(total, files)) / float64(max(files, 1))
	weight := math.Pow(math.Log(1+share), rareCounts)
	if codeWord.MatchString(word) {
		weight *= codeCounts
	}
	return weight
}

// codeWord matches words that occur in code but not in prose: fooBar, foo_bar, foo.bar, a::b, utf8. A number
// alone, such as that of an issue or a release, does not match.
var codeWord = regexp.MustCompile(`[a-z][A-Z]|[A-Za-z]\w*[._]\w|::|[A-Za-z]\d|\d[A-Za-z]`)

// rank finds the best files that satisfy some more conditions, and fills the answer with them.
func (r *ranking) rank(more ...query.Q) error {
	found, err := r.search(Lookup{words: r.words, files: max(rankedCandidates, r.req.Limit+1), shown: r.req.Limit + 1}, more...)
	if err != nil {
		return err
	}
	defer found.close()

	var have uint64
	for i := range found.a.files {
		have |= found.a.files[i].Words
	}

	// The postings allow words that texts do not have. If they misled for all files that were read,
	// rank only files that have a word.
	unread := found.a.more
	if have == 0 && unread && more == nil {
		return r.rank(anyWord(r.words))
	}

	// A ranking has a limit on purpose, so reaching it is no gap.
	found.a.cut = false
	answer, err := found.respondWith(nil) // the files are used as they came
	if err != nil {
		return err
	}
	r.out.Coverage, r.visible = answer.Coverage, found.q.visible

	if err := r.nameMissing(have, unread); err != nil {
		return err
	}
	r.takeFiles(found.a.files)
	r.out.More = r.out.More || unread
	return nil
}

// anyWord returns a condition: the text or the path of a file has one of some words.
func anyWord(words []shard.Word) query.Q {
	or := &query.Or{}
	for _, w := range words {
		or.Subs = append(or.Subs, &query.Text{Pattern: w.Expr, Regexp: true, Field: query.Content}, &query.Text{Pattern: w.Expr, Regexp: true, Field: query.Name})
	}
	return or
}

// nameMissing separates words that some file has from words that no file has. have has the words of the files
// that were read. If there are unread files, a search looks for each other word in them.
func (r *ranking) nameMissing(have uint64, unread bool) error {
	for i, text := range r.texts {
		has := have>>i&1 != 0
		if !has && unread {
			found, err := r.search(Lookup{exists: true}, anyWord(r.words[i:i+1]))
			if err != nil {
				return err
			}
			has = len(found.a.files) > 0
			found.close()
		}
		if has {
			r.out.Words = append(r.out.Words, text)
		} else {
			r.out.Missing = append(r.out.Missing, text)
		}
	}
	return nil
}

// takeFiles puts the best files into the answer. It keeps the first of several files with the same text.
func (r *ranking) takeFiles(files []shard.File) {
	byText := map[string]int{} // index in Files by blob id
	for i := range files {
		f := &files[i]
		if f.Words == 0 {
			continue // the postings allowed a word that the text does not have
		}
		if at, copied := byText[f.OID]; copied {
			if at < len(r.out.Files) {
				r.out.Files[at].Copies++
			}
			continue
		}
		at := len(byText)
		byText[f.OID] = at
		if at >= r.req.Limit {
			r.out.More = true
			continue
		}
		shown := RankedFile{Repo: f.RepoName, Path: f.Path, Language: f.Language, Words: bits.OnesCount64(f.Words), Lines: rankedLines(f.Chunks, at)}
		if shown.Words == len(r.out.Words) {
			r.out.Whole++
		}
		r.out.Files = append(r.out.Files, shown)
	}
}

// rankedLines returns the lines of the file at an index of the answer: all that it has of the first ones, one
// of others. A reader wants to know at a glance what the tenth file is.
func rankedLines(chunks []shard.Chunk, at int) (lines []RankedLine) {
	if at >= rankedTop && len(chunks) > 1 {
		best := slices.MaxFunc(chunks, func(a, b shard.Chunk) int { return cmp.Compare(a.Weight, b.Weight) })
		chunks = []shard.Chunk{best}
	}
	in := scopesOf(chunks)
	for _, l := range linesOf(chunks) {
		if len(bytes.TrimSpace(l.Text)) > 0 {
			lines = append(lines, RankedLine{l, in[l.Number]})
		}
	}
	return lines
}

// parse takes the words from the query. The rest of the query becomes a filter.
func (r *ranking) parse() error {
	parsed, err := query.Parse(r.req.Query, query.Options{})
	if err != nil {
		return call.Fail(call.ErrInvalid, "query: %v", err)
	}

	words := r.split(r.revision(parsed.Q))

	// Each word becomes an expression that matches its forms in code, also in parts of names.
	r.texts = meaningfulWords(withoutType(words))
	for _, text := range r.texts {
		r.words = append(r.words, shard.Word{Expr: wordExpr(text)})
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

// commitType matches how subjects of commits often begin. It says what kind of change it is, not what of.
var commitType = regexp.MustCompile(`(?i)^(?:feat|chore|fix(?:e[sd])?|refactor)!?:?$`)

// withoutType removes the type of a commit from the beginning of a query.
func withoutType(words []string) []string {
	if len(words) > 1 && commitType.MatchString(words[0]) {
		return words[1:]
	}
	return words
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
	return out[:min(len(out), shard.MaxWords)]
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

// scopesOf returns the definition that encloses each line with a match, by line number.
func scopesOf(chunks []shard.Chunk) map[int]shard.Symbol {
	in := map[int]shard.Symbol{}
	for _, c := range chunks {
		for i, y := range c.Around {
			in[int(c.Ranges[i].Start.Line)] = y
		}
	}
	return in
}
