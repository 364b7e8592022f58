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
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// site is where a routed read happens: a node that has the mirror.
type site struct {
	repo     *catalog.Repo
	mirror   *git.Mirror
	outlines *symbol.Pool // finds definitions with their extents; nil where the program is missing
	maxFile  int64        // bytes of the largest file that is searched; 0 means the default

	kept    *keptFiles         // what is remembered of files that are searched here again and again
	scratch *scratch           // small indexes of commits that are not indexed
	options shard.BuildOptions // of those
	now     func() time.Time
}

// readTime bounds one routed read.
const readTime = 30 * time.Second

// operation is one kind of routed read. run happens at a holder of the
// mirror and must depend on nothing but its arguments.
type operation[Req, Resp any] struct {
	name string
	run  func(ctx context.Context, s *site, req Req) (*Resp, error)

	// It may take seconds, or its answer may be large: no second holder does it
	// while the first gives a sign of life.
	heavy bool
}

// readAt is a routed read on its way to a node.
type readAt[Req any] struct {
	Pass account.Pass // on whose behalf
	Repo catalog.RepoID
	Req  Req
}

// method is the call that carries the operation between nodes.
func (op operation[Req, Resp]) method() call.Method[readAt[Req], Resp] {
	return call.To[readAt[Req], Resp]("read." + op.name).Whole()
}

// serve makes an operation known to the other nodes.
func serve[Req, Resp any](b *Browser, op operation[Req, Resp]) {
	op.method().Serve(b.d.Cluster, func(ctx context.Context, req *readAt[Req]) (*Resp, error) {
		ctx, cancel := context.WithTimeout(ctx, readTime)
		defer cancel()

		resp, err := readHere(ctx, b, op, req)
		if err != nil {
			return nil, kindly(err)
		}
		return resp, nil
	})
}

// repo is a repository that the viewer may see; nil for others.
func (b *Browser) repo(v catalog.Viewer, name string) *catalog.Repo {
	seen, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil
	}
	repo, err := seen.ByName(name)
	if err != nil {
		return nil
	}
	return repo
}

// route runs an operation at a holder of the mirror of a repository, this node
// first: at the next one where that fails or is silent, and where no live one is
// left, at one that gossip is wrong about.
func route[Req, Resp any](ctx context.Context, b *Browser, v catalog.Viewer, name string, op operation[Req, Resp], req Req) (*Resp, error) {
	seen, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	repo, err := seen.ByName(name)
	if err != nil {
		return nil, err
	}

	// One viewer has so many reads at once, however many nodes answer them.
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	leave, err := b.readers.enter(ctx, v)
	if err != nil {
		return nil, kindly(err)
	}
	defer leave()

	holders := b.mirrorHolders(seen.View, repo.ID)
	at := &readAt[Req]{Pass: seen.Pass(), Repo: repo.ID, Req: req}
	resp, err := call.Race[*Resp]{
		Nodes: holders,
		Beyond: func(ctx context.Context, waiting bool) []string {
			return b.answering(ctx, v, repo.ID, holders, waiting)
		},
		Ask:    func(ctx context.Context, node string) (*Resp, error) { return readFrom(ctx, b, node, op, at) },
		Silent: b.silence(op.heavy),
		Signs:  func(ctx context.Context, running []string) bool { return b.signs(ctx, repo.ID, running) },
		Next:   elsewhere,
		Failed: func(node string, err error) {
			b.d.Log.Warn("a routed read failed", "request", call.RequestOf(ctx), "node", node, "repo", repo.Name, "op", op.name, "err", err)
		},
	}.Run(ctx)

	if err != nil {
		return nil, failed(ctx, seen.View, repo, err)
	}
	return resp, nil
}

// silence is what tells that a holder is silent. A light read is asked of a
// second one when it is late: both together cost less than to wait. A heavy one
// only when the first holder gives no sign of life: git may work on it for long.
func (b *Browser) silence(heavy bool) func(ctx context.Context, node string) bool {
	if heavy {
		return b.d.Peers.Gone
	}
	return b.d.Peers.Late
}

// signs reports whether any node with the mirror of a repository gives a sign of life, as
// this one always does.
func (b *Browser) signs(ctx context.Context, id catalog.RepoID, running []string) bool {
	if self := b.d.Cluster.Self(); slices.Contains(running, self) {
		return clock.Wait(ctx, call.StallTime)
	}
	others := slices.DeleteFunc(slices.Clone(b.d.Cluster.View().Holders(catalog.MirrorKey(id))), func(node string) bool { return node == b.d.Cluster.Self() })
	return b.d.Peers.Signs(ctx, others)
}

// elsewhere reports whether another holder may do better than one that failed.
// What is said of the question itself has a kind, and every holder would say it;
// what has none, such as a pack that cannot be read, is of the holder.
func elsewhere(err error) bool { return call.KindOf(err) == nil || call.Elsewhere(err) }

// failed is the error of a read that no holder has answered, or that is answered
// with an error.
func failed(ctx context.Context, view *catalog.View, repo *catalog.Repo, err error) error {
	name := repo.Name
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return call.Fail(call.ErrTimeout, "reading %q took too long", name)
	case errors.Is(err, call.ErrNobody), call.Unanswered(err):
		return cmp.Or(NotIndexed(view, repo), call.Fail(call.ErrUnavailable, "Repository %q has not been fetched yet, or no node that has it can be reached", name))
	case errors.Is(err, call.ErrRepoNotFound):
		// A holder knows of a later change, by which the viewer sees it no more:
		// it answers as one that was never there.
		return account.NoRepo(name)
	}
	return kindly(err)
}

// NotIndexed says why a repository without an index has none; nil where nothing speaks
// against it. What was refused for good is not of a kind that a client tries again.
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
			return nil, kindly(err)
		}
		return resp, nil
	}

	resp, err := op.method().Ask(ctx, b.d.Cluster, node, at)
	b.d.Peers.Heard(node, err)
	return resp, err
}

// readHere runs an operation on the mirror that this node has, if the viewer
// may see the repository by the catalog of this node too.
func readHere[Req, Resp any](ctx context.Context, b *Browser, op operation[Req, Resp], at *readAt[Req]) (*Resp, error) {
	seen, err := b.d.Gate.Again(ctx, at.Pass, func(r *account.Repos) bool { return r.Set.Contains(at.Repo) })
	if err != nil {
		return nil, err
	}

	repo, err := seen.ByID(at.Repo)
	if err != nil {
		return nil, err
	}

	if !b.d.Mirrors.Has(at.Repo) {
		return nil, call.Fail(call.ErrUnavailable, "the mirror of %q is being made", repo.Name)
	}

	// Processes of git and reads of packs are bounded: who comes beyond that waits, or is refused.
	leave, _, err := b.d.Reads.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	return op.run(ctx, &site{
		repo:     repo,
		mirror:   b.d.Mirrors.Get(at.Repo),
		outlines: b.d.Outlines,
		maxFile:  seen.View.File().Settings.MaxFileSize,
		kept:     b.kept,
		scratch:  b.scratch,
		options:  b.d.Options(seen.View.File().Settings),
		now:      b.d.Now,
	}, at.Req)
}

// mirrorHolders lists the live nodes with the mirror of a repository. A
// mirror that is being made is none yet.
func (b *Browser) mirrorHolders(view *catalog.View, id catalog.RepoID) []string {
	holders := b.d.Peers.Prefer(view.Holders(catalog.MirrorKey(id)), catalog.MirrorKey(id))
	repo := view.Repo(id)
	if repo == nil || len(holders) < 2 {
		return holders
	}
	if holders[0] == b.d.Cluster.Self() && b.d.Fresh(view, repo) {
		return holders
	}

	// Who indexed last has the newest copy; the others follow in a moment. One that
	// gave no answer a moment ago stays behind those that did.
	if j := view.Job(catalog.JobIndex, catalog.RepoSubject(id)); j != nil && !b.d.Peers.Misses(j.Node) {
		if i := slices.Index(holders, j.Node); i > 0 {
			holders[0], holders[i] = holders[i], holders[0]
		}
	}
	return holders
}

// answering lists further nodes with the mirror of a repository: those that
// gossip calls dead and that answer all the same, and those that are known to have
// it only now. A node that joined a moment ago learns late where everything is.
func (b *Browser) answering(ctx context.Context, v catalog.Viewer, id catalog.RepoID, but []string, waiting bool) []string {
	seen, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil
	}

	ids := slices.Clone(seen.View.Holders(catalog.MirrorKey(id)))
	ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(but, id) })
	if waiting {
		return b.d.Peers.There(ctx, ids)
	}
	return b.d.Peers.Answering(ctx, ids)
}

// kindly gives the errors of lower packages the kinds of this one.
func kindly(err error) error {
	if e := (*call.Error)(nil); errors.As(err, &e) {
		return e
	}

	// Packages below know no HTTP and no tools: here their errors get the kinds of those.
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
