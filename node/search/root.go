package search

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// root is one search at the node that was asked.
type root struct {
	d       *Deps
	leaves  *leaves
	layouts *layouts

	ctx    context.Context
	cancel context.CancelFunc
	began  time.Time
	seen   *account.Repos // what the viewer may see, at the view that all of it stands on
	age    time.Duration  // of the view
	blind  bool           // the viewer is not told what is counted by file
	req    Request
	shape  *shape
	hints  []string        // of the query
	q      query.Q         // without atoms of repositories
	repos  *roaring.Bitmap // that may have a match
	leaf   leafRequest     // what every leaf is asked, without its parts

	// What came back; owned by the goroutine that called scatter.
	files     []shard.File
	stats     Stats
	cut       bool
	untagged  []coverage.Gap // files whose symbols were asked for and are not known
	lost      []*target      // shards without an answer
	unasked   int            // shards left out, as the limit was reached before them
	overload  error          // why shards are missing, where their holders had too much to do
	unindexed []string       // repositories
	failed    []string       // nodes
	hedged    int
	timeout   bool
	refused   uint64 // index of a catalog by which the viewer may see less than was asked for; 0 for none

	rev      string            // the one revision that all of the query is about; "" for none or several
	past     []pastPart        // what was read from git
	taken    bool              // it is in files
	commits  map[uint32]string // by repository: the commit that is searched, where the index has none of that name
	revision coverage.Gap      // repositories whose index lacks rev and whose mirrors were not asked; Count 0 for none

	given    map[uint32]bool // repositories that were counted, where they are the answer
	returned int             // of them that were given out
	namesCut bool            // there are others behind them

	asked []byte      // digest of the query
	from  *cursor     // that the search goes on from; nil for none
	more  bool        // files or matches stand behind those that came back
	last  *shard.File // behind which files may lack, as a memory was full; nil for none
}

// newRoot parses the query and finds what it is about.
func (s *Searcher) newRoot(ctx context.Context, v catalog.Viewer, req Request) (*root, error) {
	if err := s.check(&req); err != nil {
		return nil, err
	}

	parsed, err := query.Parse(req.Query, req.toggles())
	if err != nil {
		return nil, mistake(req, err)
	}
	if req.counting {
		count(parsed)
	}

	from, err := readCursor(req.After, parsed)
	if err != nil {
		return nil, err
	}

	r, err := s.newRootOf(ctx, v, req, parsed)
	if err != nil {
		return nil, err
	}

	r.leaf.Reach = true
	if req.Pages {
		r.asked = digestOf(parsed)
	}
	r.goOn(from)

	// What the index has not, git may have.
	err = r.lookBack(v, s.d.Scanner, parsed.At)
	if err == nil {
		err = r.unchanged()
	}
	if err != nil {
		r.close()
		return nil, err
	}

	return r, nil
}

// toggles is how the query of a request is read.
func (req *Request) toggles() query.Options {
	return query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive}
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

// check holds a request to its bounds and fills in what it leaves out.
func (s *Searcher) check(req *Request) error {
	switch {
	case req.Matches < 0 || req.Matches > MaxMatches:
		return call.Fail(call.ErrInvalid, "matches must be from 1 to %d", MaxMatches)
	case req.ContextLines < 0 || req.ContextLines > MaxContext:
		return call.Fail(call.ErrInvalid, "contextLines must be from 0 to %d", MaxContext)
	case req.Pages && req.PerFile > 0:
		return call.Fail(call.ErrInvalid, "the best lines of each file have no order to page through")
	case req.After != "" && !req.Pages:
		return call.Fail(call.ErrInvalid, "after: it needs pages")
	}

	// What is left out is what the node gives as a rule, within the same bound.
	if req.Matches == 0 {
		req.Matches = min(s.d.Matches(), MaxMatches)
	}
	return nil
}

// newRootOf begins a search for a parsed query.
func (s *Searcher) newRootOf(ctx context.Context, v catalog.Viewer, req Request, parsed *query.Query) (*root, error) {
	seen, err := s.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}

	if err := s.d.Cluster.Ready(); err != nil {
		return nil, call.Fail(call.ErrUnavailable, "this node is not ready: %v", err)
	}

	r := &root{
		d:       &s.d,
		leaves:  s.leaves,
		layouts: &s.layouts,
		began:   clock.Now(),
		seen:    seen,
		blind:   seen.Blind(),
		age:     s.d.Cluster.Age(),
		req:     req,
		shape:   shapeOf(parsed.Type),
		hints:   sayings(parsed.Hints),
	}

	// The query itself may bound the answer and the time.
	if parsed.Count > 0 {
		r.req.Matches = min(parsed.Count, MaxMatches)
	}
	limit := defaultTime
	if parsed.Timeout > 0 {
		limit = min(parsed.Timeout, maxTime)
	}

	if err := r.resolve(parsed.Q); err != nil {
		return nil, err
	}

	countAll := parsed.Count == query.CountAll
	r.leaf = leafRequest{
		Pass:     seen.Pass(),
		Q:        boxed{r.q},
		Context:  r.req.ContextLines,
		Whole:    r.req.Whole,
		PerFile:  r.req.PerFile,
		CountAll: countAll,
		NoChunks: r.shape.listing,
		Heavy:    countAll || r.shape.listing || r.req.Matches > heavyMatches,
	}
	r.shape.limit(&r.leaf, r.req.Matches)
	r.watched()

	r.ctx, r.cancel = context.WithTimeout(ctx, limit)
	return r, nil
}

func (r *root) close() { r.cancel() }

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
func (r *root) resolve(q query.Q) error {
	resolved, err := query.Resolve(q, func(atom query.Q) (*roaring.Bitmap, error) {
		set, err := r.set(atom)
		if err != nil {
			return nil, err
		}
		// Here and nowhere else: whatever an atom names, only what the viewer may see goes on.
		return roaring.And(set, r.seen.Set), nil
	})
	if err != nil {
		return err
	}

	r.q = query.Simplify(resolved)
	r.repos = scope(r.q, r.seen.Set)
	return nil
}

// set is the repositories of one atom.
func (r *root) set(atom query.Q) (*roaring.Bitmap, error) {
	switch a := atom.(type) {
	case *query.Context:
		set, ok := r.seen.View.Context(a.Name)
		if !ok {
			return nil, call.Fail(call.ErrContextNotFound, "Search context %q not found", a.Name)
		}
		return set, nil

	// Names that nobody has and names that may not be seen are left out alike.
	case *query.RepoSet:
		return r.seen.Named(a.Names), nil

	case *query.Repo:
		return r.named(a)
	case *query.Flag:
		return r.seen.Where(func(repo *catalog.Repo) bool { return flagged(repo, a) }), nil
	}
	return nil, fmt.Errorf("BUG: %T is not about repositories", atom)
}

// named is the repositories whose name, short name, or a name that they had before,
// fits a pattern.
func (r *root) named(atom *query.Repo) (*roaring.Bitmap, error) {
	pattern := atom.Pattern
	if atom.Fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, call.Fail(call.ErrQuery, "bad regular expression for repo: %v", err)
	}

	return r.seen.Where(func(repo *catalog.Repo) bool {
		if repo.NameMatches(re.MatchString) {
			return true
		}
		return slices.ContainsFunc(r.seen.View.FormerNames(repo), re.MatchString)
	}), nil
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
