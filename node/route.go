package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
)

// site is where a routed read happens: a node that has the mirror.
type site struct {
	n      *Node
	repo   *catalog.Repo
	mirror *git.Mirror
}

// readTime bounds one routed read.
const readTime = 30 * time.Second

// operation is one kind of routed read. run happens at a holder of the
// mirror and must depend on nothing but its arguments.
type operation[Req, Resp any] struct {
	name string
	run  func(ctx context.Context, s *site, req Req) (*Resp, error)
}

// browseCall is a routed read on its way to another node.
type browseCall struct {
	Op   string
	Repo catalog.RepoID
	Body []byte
}

// browseReply is its answer: a body, or an error with its kind.
type browseReply struct {
	Body    []byte
	Kind    int // 1 + index into kinds; 0 for none
	Message string
}

// kinds is the errors that keep their kind between nodes. The order is part
// of the protocol: new ones go to the end.
var kinds = []error{
	ErrInvalid, ErrRef, ErrRepoNotFound, ErrFileNotFound, ErrNotFound, ErrTooLarge, ErrTimeout, ErrUnavailable, ErrOverloaded,
}

// sites runs routed reads that come from other nodes.
type sites struct {
	n   *Node
	ops map[string]func(ctx context.Context, s *site, body []byte) ([]byte, error)
}

func newSites(n *Node) *sites {
	s := &sites{n: n, ops: map[string]func(context.Context, *site, []byte) ([]byte, error){}}
	registerOperations(s)
	return s
}

// serve makes an operation known to the other nodes.
func serve[Req, Resp any](s *sites, op operation[Req, Resp]) {
	s.ops[op.name] = func(ctx context.Context, at *site, body []byte) ([]byte, error) {
		var req Req
		if err := decode(body, &req); err != nil {
			return nil, err
		}
		resp, err := op.run(ctx, at, req)
		if err != nil {
			return nil, err
		}
		return encode(resp)
	}
}

// repoByName finds a repository that the viewer may see.
func (n *Node) repoByName(view *catalog.View, v Viewer, name string) (*catalog.Repo, error) {
	if v.Role == RoleNone {
		return nil, fail(ErrUnauthenticated, "not authenticated")
	}
	repo := view.RepoByName(name)
	if repo == nil || !view.Visible(v.catalog()).Contains(repo.ID) {
		return nil, fail(ErrRepoNotFound, "Repository %q not found", name)
	}
	return repo, nil
}

// route runs an operation at the first live holder of the mirror of a
// repository, this node first.
func route[Req, Resp any](ctx context.Context, n *Node, v Viewer, name string, op operation[Req, Resp], req Req) (*Resp, error) {
	view := n.cluster.View()
	repo, err := n.repoByName(view, v, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	leave, err := n.readers.enter(ctx, v)
	if err != nil {
		return nil, kindly(err)
	}
	defer leave()
	var last error
	for _, holder := range n.mirrorHolders(view, repo.ID) {
		resp, again, err := routeTo(ctx, n, holder, repo, op, req)
		if err == nil {
			return resp, nil
		}
		last = err
		if !again || ctx.Err() != nil {
			break
		}
		n.opt.Log.Warn("a routed read failed", "node", holder, "repo", repo.Name, "op", op.name, "err", err)
	}
	switch {
	case last == nil:
		return nil, fail(ErrUnavailable, "Repository %q has not been fetched yet, or no node that has it can be reached", name)
	case errors.Is(last, context.DeadlineExceeded) || ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fail(ErrTimeout, "reading %q took too long", name)
	}
	return nil, kindly(last)
}

// mirrorHolders lists the live nodes with the mirror of a repository. A
// mirror that is being made is none yet.
func (n *Node) mirrorHolders(view *catalog.View, id catalog.RepoID) []string {
	holders := n.prefer(view.Holders(catalog.MirrorKey(id)), catalog.MirrorKey(id))
	repo := view.Repo(id)
	if repo == nil || len(holders) < 2 {
		return holders
	}
	if holders[0] == n.cluster.Self() && n.copier.Fresh(context.Background(), view, repo) {
		return holders
	}
	// Who indexed last has the newest copy; the others follow in a moment.
	if j := view.Job(catalog.JobIndex, catalog.RepoSubject(id)); j != nil {
		if i := slices.Index(holders, j.Node); i > 0 {
			holders[0], holders[i] = holders[i], holders[0]
		}
	}
	return holders
}

// routeTo runs an operation on one node. again says that another node may do
// better: the error is not about the request.
func routeTo[Req, Resp any](ctx context.Context, n *Node, node string, repo *catalog.Repo, op operation[Req, Resp], req Req) (resp *Resp, again bool, err error) {
	if node == n.cluster.Self() {
		if !n.mirrors.Has(repo.ID) {
			return nil, true, fail(ErrUnavailable, "the mirror of %q is being made", repo.Name)
		}
		leave, _, err := n.lanes.reads.enter(ctx, "reads of repositories")
		if err != nil {
			return nil, true, err
		}
		defer leave()
		resp, err := op.run(ctx, &site{n: n, repo: repo, mirror: n.mirrors.Get(repo.ID)}, req)
		return resp, errors.Is(err, ErrUnavailable), err
	}
	body, err := encode(&req)
	if err != nil {
		return nil, false, err
	}
	in, err := encode(&browseCall{Op: op.name, Repo: repo.ID, Body: body})
	if err != nil {
		return nil, false, err
	}
	out, err := n.cluster.Call(ctx, node, methodBrowse, in)
	if err != nil {
		return nil, true, err
	}
	var reply browseReply
	if err := decode(out, &reply); err != nil {
		return nil, true, err
	}
	if reply.Message != "" {
		e := &Error{Kind: errors.New("failed on another node"), Message: reply.Message}
		if reply.Kind > 0 && reply.Kind <= len(kinds) {
			e.Kind = kinds[reply.Kind-1]
		}
		return nil, errors.Is(e.Kind, ErrUnavailable), e
	}
	resp = new(Resp)
	if err := decode(reply.Body, resp); err != nil {
		return nil, true, err
	}
	return resp, false, nil
}

// serveBrowse runs a routed read for another node.
func (n *Node) serveBrowse(ctx context.Context, _ cluster.Peer, in []byte) ([]byte, error) {
	var call browseCall
	if err := decode(in, &call); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	body, err := n.browseHere(ctx, call)
	reply := browseReply{Body: body}
	if err != nil {
		err = kindly(err)
		reply.Message = err.Error()
		for i, k := range kinds {
			if errors.Is(err, k) {
				reply.Kind = i + 1
				break
			}
		}
	}
	return encode(&reply)
}

func (n *Node) browseHere(ctx context.Context, call browseCall) ([]byte, error) {
	run := n.sites.ops[call.Op]
	if run == nil {
		return nil, fail(ErrUnavailable, "this node does not know the operation %q", call.Op)
	}
	repo := n.cluster.View().Repo(call.Repo)
	if repo == nil || !n.mirrors.Has(call.Repo) {
		return nil, fail(ErrUnavailable, "this node does not have the mirror")
	}
	leave, _, err := n.lanes.reads.enter(ctx, "reads of repositories")
	if err != nil {
		return nil, err
	}
	defer leave()
	return run(ctx, &site{n: n, repo: repo, mirror: n.mirrors.Get(call.Repo)}, call.Body)
}

// kindly gives the errors of lower packages the kinds of this one.
func kindly(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fail(ErrTimeout, "%v", err)
	case errors.Is(err, git.ErrEmpty):
		return fail(ErrRef, "the repository has no commits")
	case errors.Is(err, git.ErrNoRef), errors.Is(err, git.ErrAmbiguous), errors.Is(err, git.ErrBadRef):
		return fail(ErrRef, "%v", err)
	case errors.Is(err, git.ErrTooLarge):
		return fail(ErrTooLarge, "%v", err)
	case errors.Is(err, fs.ErrNotExist):
		return fail(ErrFileNotFound, "%v", err)
	case errors.Is(err, fs.ErrInvalid):
		return fail(ErrInvalid, "%v", err)
	}
	return fmt.Errorf("read the mirror: %w", err)
}
