package browse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// site holds what an operation needs on a node that has the mirror.
type site struct {
	repo     *catalog.Repo
	mirror   *git.Mirror
	outlines *symbol.Pool // finds definitions and where they end; nil if ctags is not installed
	maxFile  int64        // bytes of the largest file that is searched; 0 means the default

	kept    *blobCache         // cache of files indexed by name only
	scratch *scratch           // cache of small indexes for commits without an index
	options shard.BuildOptions // build options of small indexes
	now     func() time.Time

	paths func(ctx context.Context, repo *catalog.Repo, q query.Q) (*change.Paths, error) // as in Deps
}

// readTime bounds one routed read.
const readTime = 30 * time.Second

// operation is one kind of routed read. run is called on a node that has the mirror, and depends
// on nothing but its arguments, so that all nodes answer alike.
type operation[Req, Resp any] struct {
	name string
	run  func(ctx context.Context, s *site, req Req) (*Resp, error)

	// The operation may take seconds or return much. A second node is asked only if the first
	// gives no sign of life.
	heavy bool
}

// readAt is a routed read as sent to another node.
type readAt[Req any] struct {
	Pass account.Pass // for which viewer
	Repo catalog.RepoID
	Req  Req
}

// method returns the call between nodes for this operation.
func (op operation[Req, Resp]) method() call.Method[readAt[Req], Resp] {
	return call.To[readAt[Req], Resp]("read." + op.name).Whole()
}

// serve registers the operation for calls from other nodes.
func serve[Req, Resp any](b *Browser, op operation[Req, Resp]) {
	op.method().Serve(b.d.Cluster, func(ctx context.Context, req *readAt[Req]) (*Resp, error) {
		ctx, cancel := context.WithTimeout(ctx, readTime)
		defer cancel()

		resp, err := readHere(ctx, b, op, req)
		if err != nil {
			return nil, withKind(err)
		}
		return resp, nil
	})
}

// visibleRepo returns a repository by name; nil if the viewer may not see it.
func (b *Browser) visibleRepo(v catalog.Viewer, name string) *catalog.Repo {
	visible, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil
	}
	repo, err := visible.ByName(name)
	if err != nil {
		return nil
	}
	return repo
}

// route runs an operation on a node that has the repository's mirror, preferably this one. If
// that node fails or is silent, it tries the next. If no live node is left, it tries nodes that
// gossip calls dead.
func route[Req, Resp any](ctx context.Context, b *Browser, v catalog.Viewer, name string, op operation[Req, Resp], req Req) (*Resp, error) {
	visible, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	repo, err := visible.ByName(name)
	if err != nil {
		return nil, err
	}

	// Limit the concurrent reads of a viewer here, however many nodes answer them.
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	leave, err := b.readers.enter(ctx, v)
	if err != nil {
		return nil, withKind(err)
	}
	defer leave()

	holders := b.mirrorHolders(visible.View, repo.ID)
	at := &readAt[Req]{Pass: visible.Pass(), Repo: repo.ID, Req: req}
	resp, err := call.Race[*Resp]{
		Nodes: holders,
		Beyond: func(ctx context.Context, waiting bool) []string {
			return b.moreHolders(ctx, v, repo.ID, holders, waiting)
		},
		Ask:    func(ctx context.Context, node string) (*Resp, error) { return readFrom(ctx, b, node, op, at) },
		Silent: b.silenceTest(op.heavy),
		Signs:  func(ctx context.Context, running []string) bool { return b.anySignOfLife(ctx, repo.ID, running) },
		Next:   mayWorkElsewhere,
		Failed: func(node string, err error) {
			b.d.Log.Warn("a routed read failed", "request", call.RequestOf(ctx), "node", node, "repo", repo.Name, "op", op.name, "err", err)
		},
	}.Run(ctx)

	if err != nil {
		return nil, routeError(ctx, visible.View, repo, err)
	}
	return resp, nil
}

// silenceTest returns the test for a silent node. A light read goes to a second node as soon as the
// first is late, because reading twice costs less than waiting. A heavy read goes to a second
// node only if the first gives no sign of life, because git may work for long.
func (b *Browser) silenceTest(heavy bool) func(ctx context.Context, node string) bool {
	if heavy {
		return b.d.Peers.Gone
	}
	return b.d.Peers.Late
}

// anySignOfLife reports whether any node with the mirror gives a sign of life. This node always does.
func (b *Browser) anySignOfLife(ctx context.Context, id catalog.RepoID, running []string) bool {
	if self := b.d.Cluster.Self(); slices.Contains(running, self) {
		return clock.Wait(ctx, call.StallTime)
	}
	others := slices.DeleteFunc(slices.Clone(b.d.Cluster.View().Holders(catalog.MirrorKey(id))), func(node string) bool { return node == b.d.Cluster.Self() })
	return b.d.Peers.Signs(ctx, others)
}

// mayWorkElsewhere reports whether another node may succeed where one failed. An error of a known kind
// is usually about the request, and every node would return it. An error without a kind, such as
// an unreadable pack, is about the node.
func mayWorkElsewhere(err error) bool { return call.KindOf(err) == nil || call.Elsewhere(err) }

// routeError returns the error of a read that no node has answered, or that a node has answered
// with an error.
func routeError(ctx context.Context, view *catalog.View, repo *catalog.Repo, err error) error {
	name := repo.Name
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return call.Fail(call.ErrTimeout, "reading %q took too long", name)
	case errors.Is(err, call.ErrNobody), call.Unanswered(err):
		return cmp.Or(NotIndexed(view, repo), call.Fail(call.ErrUnavailable, "Repository %q has not been fetched yet, or no node that has it can be reached", name))
	case errors.Is(err, call.ErrRepoNotFound):
		// That node has a newer catalog, by which the viewer may not see the repository. Answer
		// as if it did not exist.
		return account.NoRepo(name)
	}
	return withKind(err)
}

// NotIndexed returns why a repository has no index; nil if it has one, or no attempt has failed.
// ErrUnable tells the client not to retry.
func NotIndexed(view *catalog.View, repo *catalog.Repo) *call.Error {
	if repo.Indexed() {
		return nil
	}
	if repo.Unfetchable != "" {
		return call.Fail(call.ErrUnable, "Repository %q cannot be fetched: %s", repo.Name, repo.Unfetchable)
	}
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
	switch {
	case j == nil || j.Error == "":
		return nil
	case j.State == catalog.JobFailed:
		return call.Fail(call.ErrUnable, "Repository %q was refused when it was indexed: %s. It is tried again when its interval is over or its host tells of a change.", repo.Name, j.Error)
	}
	return call.Fail(call.ErrUnavailable, "Repository %q is not indexed yet. The last attempt failed and is repeated: %s", repo.Name, j.Error)
}

// readFrom runs an operation on one node, this one or another.
func readFrom[Req, Resp any](ctx context.Context, b *Browser, node string, op operation[Req, Resp], at *readAt[Req]) (*Resp, error) {
	if node == b.d.Cluster.Self() {
		resp, err := readHere(ctx, b, op, at)
		if err != nil {
			return nil, withKind(err)
		}
		return resp, nil
	}

	resp, err := op.method().Ask(ctx, b.d.Cluster, node, at)
	b.d.Peers.Heard(node, err)
	return resp, err
}

// readHere runs an operation on this node's mirror, if this node's catalog also lets the viewer
// see the repository.
func readHere[Req, Resp any](ctx context.Context, b *Browser, op operation[Req, Resp], at *readAt[Req]) (*Resp, error) {
	visible, err := b.d.Gate.Again(ctx, at.Pass, func(r *account.Repos) bool { return r.Set.Contains(at.Repo) })
	if err != nil {
		return nil, err
	}

	repo, err := visible.ByID(at.Repo)
	if err != nil {
		return nil, err
	}

	if !b.d.Mirrors.Has(at.Repo) {
		return nil, call.Fail(call.ErrUnavailable, "the mirror of %q is being made", repo.Name)
	}

	// Limit git processes and reads of packs on this node: further reads wait or are refused.
	leave, _, err := b.d.Reads.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	return op.run(ctx, &site{
		repo:     repo,
		mirror:   b.d.Mirrors.Get(at.Repo),
		outlines: b.d.Outlines,
		maxFile:  visible.View.File().Settings.MaxFileSize,
		kept:     b.kept,
		scratch:  b.scratch,
		paths:    b.d.Paths,
		options:  b.d.Options(visible.View.File().Settings),
		now:      b.d.Now,
	}, at.Req)
}

// mirrorHolders lists the live nodes with a complete mirror of a repository, the best first.
func (b *Browser) mirrorHolders(view *catalog.View, id catalog.RepoID) []string {
	holders := b.d.Peers.Prefer(view.Holders(catalog.MirrorKey(id)), catalog.MirrorKey(id))
	repo := view.Repo(id)
	if repo == nil || len(holders) < 2 {
		return holders
	}
	if holders[0] == b.d.Cluster.Self() && b.d.Fresh(view, repo) {
		return holders
	}

	// The node that indexed last has the newest mirror, so ask it first, unless it has just
	// failed to answer.
	if j := view.Job(catalog.JobIndex, catalog.RepoSubject(id)); j != nil && !b.d.Peers.Misses(j.Node) {
		if i := slices.Index(holders, j.Node); i > 0 {
			holders[0], holders[i] = holders[i], holders[0]
		}
	}
	return holders
}

// moreHolders lists further nodes that may have the mirror: nodes that gossip calls dead but that
// answer, and nodes that got the mirror meanwhile. A node that has just joined learns late who
// has what.
func (b *Browser) moreHolders(ctx context.Context, v catalog.Viewer, id catalog.RepoID, but []string, waiting bool) []string {
	visible, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil
	}

	ids := slices.Clone(visible.View.Holders(catalog.MirrorKey(id)))
	ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(but, id) })
	if waiting {
		return b.d.Peers.There(ctx, ids)
	}
	return b.d.Peers.Answering(ctx, ids)
}

// withKind gives errors of lower packages a kind of call.Error.
func withKind(err error) error {
	if e := (*call.Error)(nil); errors.As(err, &e) {
		return e
	}

	// Lower packages know no HTTP status, so their errors get a kind here.
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return call.Fail(call.ErrTimeout, "%v", err)
	case errors.Is(err, git.ErrEmpty):
		return call.Fail(call.ErrRef, "the repository has no commits")
	case errors.Is(err, git.ErrNoRef), errors.Is(err, git.ErrAmbiguous), errors.Is(err, git.ErrBadRef):
		return call.Fail(call.ErrRef, "%v", err)

	case errors.Is(err, git.ErrTooLarge):
		return call.Fail(call.ErrTooLarge, "%v", err)
	case errors.Is(err, fs.ErrNotExist):
		return call.Fail(call.ErrFileNotFound, "%v", err)
	case errors.Is(err, fs.ErrInvalid):
		return call.Fail(call.ErrInvalid, "%v", err)
	}

	return fmt.Errorf("read the mirror: %w", err)
}
