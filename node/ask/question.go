package ask

import (
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// The bounds of a question.
const (
	maxQuestion = 64 << 10 // bytes
	maxRepos    = 100      // names
)

// questions finds the node that answers a question.
type questions struct {
	opener *opener
	view   func() *catalog.View
	nodes  Nodes
	net    call.Network
}

// beginRequest asks a node to answer a question of a viewer whom another node
// has let in.
type beginRequest struct {
	Viewer   catalog.Viewer
	Question Question
}

var beginCall = call.To[beginRequest, Started]("chat-begin")

func (a *questions) handle() {
	beginCall.Serve(a.net, func(ctx context.Context, req *beginRequest) (*Started, error) {
		return a.opener.begin(ctx, req.Viewer, req.Question)
	})
}

// Ask begins to answer a question, on this node or on one that can. The answer
// comes to those who watch the thread; it goes on whether or not anybody does.
func (a *questions) Ask(ctx context.Context, v catalog.Viewer, q Question) (*Started, error) {
	if err := refused(v, &q); err != nil {
		return nil, err
	}

	// Another node may have room for it, or what the model's provider wants. This one's
	// reason counts where none has.
	var why error
	for _, id := range a.order() {
		started, err := a.beginAt(ctx, id, v, q)
		switch {
		case err == nil:
			return started, nil
		case id == a.nodes.Self() && !call.Elsewhere(err):
			return nil, err
		case why == nil || id == a.nodes.Self():
			why = err
		}
	}
	return nil, why
}

// order returns the nodes that may answer a question: this one first, and last those
// that are being drained, which could not be stopped before the answer.
func (a *questions) order() []string {
	var ids, draining []string
	self := a.nodes.Self()
	for m := range a.view().Members() {
		switch {
		case m.State == catalog.MemberRemoved || m.ID != self && !a.nodes.Alive(m.ID):
			// Nobody can answer there.
		case m.State == catalog.MemberDraining:
			draining = append(draining, m.ID)
		case m.ID != self:
			ids = append(ids, m.ID)
		}
	}
	if !slices.Contains(draining, self) {
		ids = slices.Insert(ids, 0, self)
	}
	return append(ids, draining...)
}

// beginAt begins to answer a question at a node.
func (a *questions) beginAt(ctx context.Context, id string, v catalog.Viewer, q Question) (*Started, error) {
	if id == a.nodes.Self() {
		return a.opener.begin(ctx, v, q)
	}
	return beginCall.Ask(ctx, a.net, id, &beginRequest{v, q})
}

// refused says why what is asked is no question.
func refused(v catalog.Viewer, q *Question) error {
	switch {
	case strings.TrimSpace(q.Query) == "":
		return call.Fail(call.ErrInvalid, "query: must not be empty")
	case len(q.Query) > maxQuestion:
		return call.Fail(call.ErrInvalid, "query: has %d bytes, at most %d are allowed", len(q.Query), maxQuestion)
	case len(q.Repos) > maxRepos:
		return call.Fail(call.ErrInvalid, "repos: has %d names, at most %d are allowed", len(q.Repos), maxRepos)
	case v.Role == catalog.RoleGuest && q.Private:
		return call.Fail(call.ErrInvalid, "visibility: what a guest asks can be seen by everybody who has its link. Ask with a key to keep it to yourself.")
	}
	return nil
}
