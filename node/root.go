package node

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// The bounds of a search.
const (
	defaultMatches = 1000
	maxMatches     = 1_000_000
	maxContext     = 100
	heavyMatches   = 10_000   // more wait in the lane of the expensive ones
	maxQuery       = 64 << 10 // bytes
	defaultTime    = 30 * time.Second
	maxTime        = 2 * time.Minute
	memoryLimit    = 256 << 20 // bytes of one answer
	maxNamed       = 20        // shards and repositories named as missing
)

// root is one search at the node that was asked.
type root struct {
	n      *Node
	ctx    context.Context
	cancel context.CancelFunc
	began  time.Time
	viewer Viewer
	view   *catalog.View // the whole search stands on this one
	req    SearchRequest
	typ    query.Type
	q      query.Q         // without atoms of repositories
	repos  *roaring.Bitmap // that may have a match
	leaf   leafRequest     // what every leaf is asked, without its parts
	age    time.Duration   // of the view

	// What came back; owned by the goroutine that called scatter.
	files     []shard.File
	stats     SearchStats
	cut       bool
	lost      []*target // shards without an answer
	unasked   int       // shards left out, as the limit was reached before them
	overload  *Error
	unindexed []string        // repositories
	seen      map[uint32]bool // repositories that were counted, where they are the answer
	returned  int             // of them that were given out
	failed    []string        // nodes
	hedged    int
	timeout   bool
}

// newRoot parses the query and finds what it is about.
func (n *Node) newRoot(ctx context.Context, v Viewer, req SearchRequest) (*root, error) {
	if err := n.checkRequest(&req); err != nil {
		return nil, err
	}
	parsed, err := query.Parse(req.Query, query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive})
	if err != nil {
		if pe := (*query.ParseError)(nil); errors.As(err, &pe) {
			return nil, &Error{Kind: ErrQuery, Message: pe.Error(), Offset: pe.Offset, Expected: pe.Expected}
		}
		return nil, fail(ErrQuery, "%v", err)
	}
	return n.newRootOf(ctx, v, req, parsed)
}

// newRootOf begins a search for a parsed query.
func (n *Node) newRootOf(ctx context.Context, v Viewer, req SearchRequest, parsed *query.Query) (*root, error) {
	if v.Role == RoleNone {
		return nil, fail(ErrUnauthenticated, "not authenticated")
	}
	if err := n.cluster.Ready(); err != nil {
		return nil, fail(ErrUnavailable, "this node is not ready: %v", err)
	}
	r := &root{n: n, began: n.opt.Now(), viewer: v, req: req, typ: parsed.Type, age: n.cluster.Age(), view: n.cluster.View()}
	limit := defaultTime
	if parsed.Timeout > 0 {
		limit = min(parsed.Timeout, maxTime)
	}
	if parsed.Count > 0 {
		r.req.Matches = min(parsed.Count, maxMatches)
	}
	if err := r.resolve(parsed.Q); err != nil {
		return nil, err
	}
	r.leaf = leafRequest{
		Q: box(r.q), Matches: r.req.Matches, Context: r.req.ContextLines, Whole: r.req.Whole,
		CountAll: parsed.Count == query.CountAll, NoChunks: parsed.Type != query.AnyType,
		Heavy: parsed.Count == query.CountAll || r.req.Matches > heavyMatches || parsed.Type != query.AnyType,
	}
	switch parsed.Type {
	case query.RepoType:
		r.leaf.Matches = maxMatches
	case query.FileType: // each file counts once, however much is in it
		r.leaf.Matches, r.leaf.Files = maxMatches, r.req.Matches
	}
	r.ctx, r.cancel = context.WithTimeout(ctx, limit)
	return r, nil
}

func (n *Node) checkRequest(req *SearchRequest) error {
	switch {
	case len(req.Query) > maxQuery:
		return fail(ErrInvalid, "the query is longer than %d bytes", maxQuery)
	case req.Matches < 0 || req.Matches > maxMatches:
		return fail(ErrInvalid, "matches must be from 1 to %d", maxMatches)
	case req.ContextLines < 0 || req.ContextLines > maxContext:
		return fail(ErrInvalid, "contextLines must be from 0 to %d", maxContext)
	}
	if req.Matches == 0 {
		req.Matches = n.defaultMatches()
	}
	return nil
}

func (r *root) close() { r.cancel() }

// resolve turns every atom that speaks of repositories into the set of those
// that the viewer may see, and finds the repositories that can have a match
// at all.
func (r *root) resolve(q query.Q) error {
	visible := r.view.Visible(r.viewer.catalog())
	resolved, err := query.Resolve(q, func(atom query.Q) (*roaring.Bitmap, error) {
		set, err := r.set(atom, visible)
		if err != nil {
			return nil, err
		}
		return roaring.And(set, visible), nil
	})
	if err != nil {
		return err
	}
	r.q = query.Simplify(resolved)
	r.repos = scope(r.q, visible)
	return nil
}

// set is the repositories of one atom.
func (r *root) set(atom query.Q, visible *roaring.Bitmap) (*roaring.Bitmap, error) {
	switch a := atom.(type) {
	case *query.Context:
		set, ok := r.view.Context(a.Name)
		if !ok {
			return nil, fail(ErrContextNotFound, "Search context %q not found", a.Name)
		}
		return set, nil
	case *query.RepoSet:
		set := roaring.New()
		for _, name := range a.Names {
			if repo := r.view.RepoByName(name); repo != nil {
				set.Add(repo.ID)
			}
		}
		return set, nil
	case *query.Repo:
		pattern := a.Pattern
		if a.Fold {
			pattern = "(?i)" + pattern
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fail(ErrQuery, "bad regular expression for repo: %v", err)
		}
		return r.where(visible, func(repo *catalog.Repo) bool { return re.MatchString(repo.Name) }), nil
	case *query.Flag:
		return r.where(visible, func(repo *catalog.Repo) bool { return flagged(repo, a) }), nil
	}
	return nil, fmt.Errorf("BUG: %T is not about repositories", atom)
}

func (r *root) where(visible *roaring.Bitmap, is func(*catalog.Repo) bool) *roaring.Bitmap {
	set := roaring.New()
	for it := visible.Iterator(); it.HasNext(); {
		if repo := r.view.Repo(it.Next()); repo != nil && is(repo) {
			set.Add(repo.ID)
		}
	}
	return set
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
	case query.Visibility:
		switch f.Value {
		case "public":
			return repo.Public
		case "private":
			return !repo.Public
		}
		return true
	}
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
		if onlyRepos(n.Sub) {
			return roaring.AndNot(all, scope(n.Sub, all))
		}
	}
	return all
}

// onlyRepos tells that the truth of q depends on the repository alone.
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

// target is one shard that has to answer, for some of the repositories in it,
// and who can.
type target struct {
	group   *shard.Group
	holders []string // live ones, the preferred first
	rank    map[uint32]rank
}

// targets is the exact list of shards that the query needs at this view.
// Repositories without an index are noted.
func (r *root) targets() []*target {
	l := r.n.layouts.of(r.view)
	for it := roaring.And(l.unindexed, r.repos).Iterator(); it.HasNext(); {
		r.unindexed = append(r.unindexed, l.rank[it.Next()].name)
	}
	ranks := l.rank
	if r.repos.GetCardinality() == 1 { // of one repository all files are equally recent
		id := r.repos.Minimum()
		ranks = map[uint32]rank{id: {name: l.rank[id].name}}
	}
	list := r.n.targetsOf(r.view, l, r.repos, ranks)
	r.stats.ShardsRequired, r.leaf.Shards = len(list), len(list)
	return list
}

// recencyOf says how recent a repository is, from 0 to 255: it halves each
// time that the age doubles beyond a week. It is counted from the newest
// entry of the catalog, so that all nodes agree.
func recencyOf(view *catalog.View, repo *catalog.Repo) uint8 {
	if repo.PushedAt.IsZero() {
		return 0
	}
	weeks := view.Config().At.Sub(repo.PushedAt).Hours() / (24 * 7)
	return uint8(255 / (1 + max(weeks, 0)/8))
}

// prefer orders members: this node, then those with the fewest calls of this
// node to answer, then by a hash of the key, so that in quiet times a node keeps
// what it has read; without those that cannot be reached.
func (n *Node) prefer(ids []string, key string) []string {
	self := n.cluster.Self()
	live := make([]string, 0, len(ids))
	for _, id := range ids {
		if id == self || n.cluster.Alive(id) {
			live = append(live, id)
		}
	}
	if len(live) == 1 || len(live) == 2 && live[0] == self {
		return live
	}
	busy := n.peers.busy(live)
	slices.SortFunc(live, func(a, b string) int {
		switch {
		case a == self:
			return -1
		case b == self:
			return 1
		case busy[a] != busy[b]:
			return busy[a] - busy[b]
		}
		return compareBy(key, a, b)
	})
	return live
}
