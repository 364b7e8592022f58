package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// question is a search request after parsing. It is complete before the first leaf is asked, and
// does not change afterwards.
type question struct {
	req        Request
	visible    *account.Repos // what the viewer may see, in the one view that the search uses
	age        time.Duration  // age of the view
	hideCounts bool           // the viewer may not learn what is counted by file
	shape      *shape
	hints      []string        // about the query
	tree       query.Q         // conditions on repositories are resolved
	repos      *roaring.Bitmap // repositories that may have a match
	leaf       leafRequest     // what every leaf gets, except for its groups
	base       string          // prefix of every link

	// The parts that git must search because the index lacks a revision; see searchGit.
	rev      string            // the one revision of the whole query; "" if it has none or several
	past     []pastPart        // what was read from git
	commits  map[uint32]string // by repository: the commit that is searched, if no indexed revision has its name
	revision coverage.Gap      // repositories whose index lacks rev and whose mirrors were not asked; a Count of 0 means none

	digest []byte  // hash of the query
	from   *cursor // where the search continues; nil means at the beginning
}

// shape is the form of an answer. It has everything that depends on the form: what a leaf is asked
// for, which of its files count, what is returned, and how much of the limit that uses.
type shape struct {
	listing      bool // files without the places that match
	repositories bool // repositories instead of files

	// limit sets how much a leaf may return, given how much room the whole answer has left.
	limit func(leaf *leafRequest, left int)

	// keep removes files that the answer does not need. The files are in order.
	keep func(files []shard.File) []shard.File

	// fill puts files into an answer that has room for left more.
	fill func(a *answer, out *Response, files []shard.File, left int)

	// used returns how much of the limit a part of the answer used.
	used func(part *Response) int

	// count replaces counters of the shards by what the answer itself counted.
	count func(stats *shard.Stats, answer shard.Stats)
}

// pastPart is what the mirror of a repository found.
type pastPart struct {
	repo  *catalog.Repo
	found *browse.PastResponse
}

// newQuestion makes the question of a parsed query.
func newQuestion(d *Deps, v catalog.Viewer, req Request, parsed *query.Query) (*question, error) {
	visible, err := d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}

	if err := d.Cluster.Ready(); err != nil {
		return nil, call.Fail(call.ErrUnavailable, "this node is not ready: %v", err)
	}

	q := &question{
		visible:    visible,
		hideCounts: visible.Blind(),
		age:        d.Cluster.Age(),
		req:        req,
		shape:      shapeOf(parsed.Type),
		hints:      hintTexts(parsed.Hints),
		base:       d.BaseURL(),
	}

	// The query may limit the answer too.
	if parsed.Count > 0 {
		q.req.Matches = min(parsed.Count, MaxMatches)
	}
	if err := q.resolve(req.Only.narrow(parsed.Q)); err != nil {
		return nil, err
	}

	countAll := parsed.Count == query.CountAll
	q.leaf = leafRequest{
		Pass:     visible.Pass(),
		Q:        queryBox{q.tree},
		Context:  q.req.ContextLines,
		Whole:    q.req.Whole,
		PerFile:  q.req.PerFile,
		CountAll: countAll,
		NoChunks: q.shape.listing,
		Lexed:    q.req.Lexed,
		Heavy:    countAll || q.shape.listing || q.req.Matches > heavyMatches,
	}
	q.shape.limit(&q.leaf, q.req.Matches)

	// Work is counted by file and shard, so a viewer who may not see all of their repositories gets
	// no progress.
	if q.req.Progress != nil && !q.hideCounts {
		q.leaf.progress = q.req.Progress.begin()
	}
	return q, nil
}

// toggles returns the options for parsing the query of a request.
func (req *Request) toggles() query.Options {
	return query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive, Words: req.Words}
}

// mistake returns the error for a query that cannot be parsed.
func mistake(req Request, err error) error {
	var wrong *query.ParseError
	if !errors.As(err, &wrong) {
		return call.Fail(call.ErrQuery, "%v", err)
	}

	// Say separately where the query is wrong, so that a client can mark the place.
	return &call.Error{
		Kind:       call.ErrQuery,
		Message:    wrong.Error(),
		Offset:     wrong.Offset,
		Length:     wrong.Length,
		Expected:   wrong.Expected,
		Choices:    wrong.Choices,
		Suggestion: query.Meant(req.Query, req.toggles()),
	}
}

// hintTexts returns hints as sentences.
func hintTexts(hints []query.Hint) (out []string) {
	for _, h := range hints {
		out = append(out, h.String())
	}
	return out
}

// resolve replaces every condition on repositories by the set of repositories that satisfy it and
// that the viewer may see. It also finds the repositories that can have a match.
func (q *question) resolve(parsed query.Q) error {
	resolved, err := query.Resolve(parsed, func(atom query.Q) (*roaring.Bitmap, error) {
		set, err := q.reposOf(atom)
		if err != nil {
			return nil, err
		}
		// This is the only place that applies permissions: whatever a condition names, only what
		// the viewer may see remains.
		return roaring.And(set, q.visible.Set), nil
	})
	if err != nil {
		return err
	}

	q.tree = query.Simplify(resolved)
	q.repos = scope(q.tree, q.visible.Set)
	return nil
}

// reposOf returns the repositories that satisfy a condition.
func (q *question) reposOf(atom query.Q) (*roaring.Bitmap, error) {
	switch a := atom.(type) {
	case *query.Context:
		set, ok := q.visible.View.Context(a.Name)
		if !ok {
			return nil, call.Fail(call.ErrContextNotFound, "Search context %q not found", a.Name)
		}
		return set, nil

	// Unknown names and names that the viewer may not see are left out alike.
	case *query.RepoSet:
		return q.visible.Named(a.Names), nil

	case *query.Repo:
		return q.reposNamed(a)
	case *query.Flag:
		return q.visible.Where(func(repo *catalog.Repo) bool { return passesFlag(repo, a) }), nil
	}
	return nil, fmt.Errorf("BUG: %T is not about repositories", atom)
}

// reposNamed returns the repositories whose name, short name or former name matches a pattern.
func (q *question) reposNamed(atom *query.Repo) (*roaring.Bitmap, error) {
	re, err := compileName(atom)
	if err != nil {
		return nil, err
	}

	parts := literalsOf(re.String())
	named := q.visible.View.ReposNamed(func(name string) bool { return mayMatch(name, parts) && re.MatchString(name) })
	named.And(q.visible.Set)
	return named, nil
}

// compileName compiles the expression of repo:.
func compileName(atom *query.Repo) (*regexp.Regexp, error) {
	pattern := atom.Pattern
	if atom.Fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, call.Fail(call.ErrQuery, "bad regular expression for repo: %v", err)
	}
	return re, nil
}

// literalsOf returns texts in lower case that stand in every text that a regular expression
// matches. They are much cheaper to look for than the expression.
//
//	^gitea/R1.*-api$   "gitea/r1", "-api"
func literalsOf(pattern string) (parts []string) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	elements := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		elements = re.Sub
	}
	for _, e := range elements {
		if text := string(e.Rune); e.Op == syntax.OpLiteral && isASCII(text) {
			parts = append(parts, strings.ToLower(text))
		}
	}
	return parts
}

// mayMatch reports whether a text has the literals of an expression in any case. Beyond
// ASCII an expression knows more cases of a letter than ToLower does.
func mayMatch(text string, parts []string) bool {
	if !isASCII(text) {
		return true
	}
	text = strings.ToLower(text)
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// passesFlag reports whether a repository passes a flag: "yes" accepts all, "no" those without the
// property, "only" those with it.
func passesFlag(repo *catalog.Repo, f *query.Flag) bool {
	has := false
	switch f.Kind {
	case query.Archived:
		has = repo.Archived
	case query.Fork:
		has = repo.Fork

	// Each visibility is a set of its own.
	case query.Visibility:
		switch f.Value {
		case "public":
			return repo.Public
		case "internal":
			return repo.Visibility == catalog.Internal
		case "private":
			return !repo.Public
		}
		return true
	}

	// Archived and fork are properties.
	switch f.Value {
	case "no":
		return !has
	case "only":
		return has
	}
	return true
}

// scope returns the repositories for which q may still be true.
func scope(q query.Q, all *roaring.Bitmap) *roaring.Bitmap {
	switch n := q.(type) {
	case query.Const:
		if n {
			return all
		}
		return roaring.New()
	case *query.Repos:
		return roaring.And(n.Set, all)

	// A superset is enough, because leaves decide by the files.
	case *query.And:
		set := all
		for _, s := range n.Subs {
			set = roaring.And(set, scope(s, all))
		}
		return set
	case *query.Or:
		set := roaring.New()
		for _, s := range n.Subs {
			set.Or(scope(s, all))
		}
		return set

	case *query.Not:
		// A negation that depends on files says nothing before they are read.
		if onlyRepos(n.Sub) {
			return roaring.AndNot(all, scope(n.Sub, all))
		}
	}
	return all
}

// onlyRepos reports whether q depends on the repository alone.
func onlyRepos(q query.Q) bool {
	switch n := q.(type) {
	case query.Const, *query.Repos:
		return true
	case *query.And:
		return !slices.ContainsFunc(n.Subs, func(s query.Q) bool { return !onlyRepos(s) })
	case *query.Or:
		return !slices.ContainsFunc(n.Subs, func(s query.Q) bool { return !onlyRepos(s) })
	case *query.Not:
		return onlyRepos(n.Sub)
	}
	return false
}
