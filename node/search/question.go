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

// question is a search as it was read. It is made before the first leaf is asked, and
// does not change from then on.
type question struct {
	req   Request
	sight *account.Repos // what the viewer may see, at the view that all of it stands on
	age   time.Duration  // of the view
	blind bool           // the viewer is not told what is counted by file
	shape *shape
	hints []string        // of the query
	tree  query.Q         // without atoms of repositories
	repos *roaring.Bitmap // that may have a match
	leaf  leafRequest     // what every leaf is asked, without its parts
	base  string          // prefix of every link

	// What git has of it, where the index lacks a revision; see lookBack.
	rev      string            // the one revision that all of the query is about; "" for none or several
	past     []pastPart        // what was read from git
	commits  map[uint32]string // by repository: the commit that is searched, where the index has none of that name
	revision coverage.Gap      // repositories whose index lacks rev and whose mirrors were not asked; Count 0 for none

	digest []byte  // of the query
	from   *cursor // that the search goes on from; nil for none
}

// shape is what an answer is made of. All that depends on it is here: what a
// leaf is asked for, what of its files is kept, what is given out and what that
// takes of the limit of matches.
type shape struct {
	listing      bool // only that files match is asked, not where
	repositories bool // they are the answer, and not files

	// limit sets how much a leaf may answer with, given how much the whole
	// answer still has room for.
	limit func(leaf *leafRequest, left int)

	// keep takes out the files that the answer does not need. They are in order.
	keep func(files []shard.File) []shard.File

	// fill puts files into an answer that still has room for left.
	fill func(a *answer, out *Response, files []shard.File, left int)

	// used is how much of the limit a part of the answer took.
	used func(part *Response) int

	// count puts what the answer itself counts over what the shards counted.
	count func(stats *shard.Stats, answer shard.Stats)
}

// pastPart is what the mirror of a repository has of an answer.
type pastPart struct {
	repo  *catalog.Repo
	found *browse.PastResponse
}

// newQuestion finds what a parsed query is about.
func newQuestion(d *Deps, v catalog.Viewer, req Request, parsed *query.Query) (*question, error) {
	sight, err := d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}

	if err := d.Cluster.Ready(); err != nil {
		return nil, call.Fail(call.ErrUnavailable, "this node is not ready: %v", err)
	}

	q := &question{
		sight: sight,
		blind: sight.Blind(),
		age:   d.Cluster.Age(),
		req:   req,
		shape: shapeOf(parsed.Type),
		hints: sayings(parsed.Hints),
		base:  d.BaseURL(),
	}

	// The query itself may bound the answer.
	if parsed.Count > 0 {
		q.req.Matches = min(parsed.Count, MaxMatches)
	}
	if err := q.resolve(parsed.Q); err != nil {
		return nil, err
	}

	countAll := parsed.Count == query.CountAll
	q.leaf = leafRequest{
		Pass:     sight.Pass(),
		Q:        boxed{q.tree},
		Context:  q.req.ContextLines,
		Whole:    q.req.Whole,
		PerFile:  q.req.PerFile,
		CountAll: countAll,
		NoChunks: q.shape.listing,
		Heavy:    countAll || q.shape.listing || q.req.Matches > heavyMatches,
	}
	q.shape.limit(&q.leaf, q.req.Matches)

	// What is counted by file or shard is not for a viewer who may not see all that is in them.
	if q.req.Progress != nil && !q.blind {
		q.leaf.progress = q.req.Progress.begin()
	}
	return q, nil
}

// toggles is how the query of a request is read.
func (req *Request) toggles() query.Options {
	return query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive, Words: req.Words}
}

// mistake is the failure of a request whose query cannot be read.
func mistake(req Request, err error) error {
	var wrong *query.ParseError
	if !errors.As(err, &wrong) {
		return call.Fail(call.ErrQuery, "%v", err)
	}

	// Where the query goes wrong is told apart from what is wrong with it: a client marks the place.
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

// sayings is hints as sentences.
func sayings(hints []query.Hint) (out []string) {
	for _, h := range hints {
		out = append(out, h.String())
	}
	return out
}

// resolve turns every atom that speaks of repositories into the set of those
// that the viewer may see, and finds the repositories that can have a match
// at all.
func (q *question) resolve(parsed query.Q) error {
	resolved, err := query.Resolve(parsed, func(atom query.Q) (*roaring.Bitmap, error) {
		set, err := q.set(atom)
		if err != nil {
			return nil, err
		}
		// Here and nowhere else: whatever an atom names, only what the viewer may see goes on.
		return roaring.And(set, q.sight.Set), nil
	})
	if err != nil {
		return err
	}

	q.tree = query.Simplify(resolved)
	q.repos = scope(q.tree, q.sight.Set)
	return nil
}

// set is the repositories of one atom.
func (q *question) set(atom query.Q) (*roaring.Bitmap, error) {
	switch a := atom.(type) {
	case *query.Context:
		set, ok := q.sight.View.Context(a.Name)
		if !ok {
			return nil, call.Fail(call.ErrContextNotFound, "Search context %q not found", a.Name)
		}
		return set, nil

	// Names that nobody has and names that may not be seen are left out alike.
	case *query.RepoSet:
		return q.sight.Named(a.Names), nil

	case *query.Repo:
		return q.named(a)
	case *query.Flag:
		return q.sight.Where(func(repo *catalog.Repo) bool { return flagged(repo, a) }), nil
	}
	return nil, fmt.Errorf("BUG: %T is not about repositories", atom)
}

// named is the repositories whose name, short name, or a name that they had before,
// fits a pattern.
func (q *question) named(atom *query.Repo) (*roaring.Bitmap, error) {
	pattern := atom.Pattern
	if atom.Fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, call.Fail(call.ErrQuery, "bad regular expression for repo: %v", err)
	}

	prefix, parts := literalsOf(pattern)
	named := q.sight.View.ReposNamed(prefix, func(name string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(name, p) }) && re.MatchString(name)
	})
	named.And(q.sight.Set)
	return named, nil
}

// literalsOf returns what every text begins with that a regular expression matches, and
// texts that it contains. They are much cheaper to look for than the expression.
//
//	^gitea/r1.*-api$   "gitea/r1"   "gitea/r1", "-api"
func literalsOf(pattern string) (prefix string, parts []string) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", nil
	}
	elements := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		elements = re.Sub
	}
	for i, e := range elements {
		if e.Op != syntax.OpLiteral || e.Flags&syntax.FoldCase != 0 || slices.Contains(e.Rune, utf8.RuneError) {
			continue
		}
		parts = append(parts, string(e.Rune))
		if i == 1 && elements[0].Op == syntax.OpBeginText {
			prefix = parts[0]
		}
	}
	return prefix, parts
}

// flagged reports whether a repository has a property: yes takes those with
// and without, no those without, only those with.
func flagged(repo *catalog.Repo, f *query.Flag) bool {
	has := false
	switch f.Kind {
	case query.Archived:
		has = repo.Archived
	case query.Fork:
		has = repo.Fork

	// A visibility is a set of its own each, not a property with and without.
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

	// The other two are facts: yes asks for nothing.
	switch f.Value {
	case "no":
		return !has
	case "only":
		return has
	}
	return true
}

// scope is the repositories for which q is not already false.
func scope(q query.Q, all *roaring.Bitmap) *roaring.Bitmap {
	switch n := q.(type) {
	case query.Const:
		if n {
			return all
		}
		return roaring.New()
	case *query.Repos:
		return roaring.And(n.Set, all)

	// What may hold for both sides; a superset is enough, since leaves decide by the files.
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
		// Of a negation of texts nothing is known before the files are read.
		if onlyRepos(n.Sub) {
			return roaring.AndNot(all, scope(n.Sub, all))
		}
	}
	return all
}

// onlyRepos reports whether the truth of q depends on the repository alone.
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
