package ask

import (
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Limits of a question.
const (
	maxQuestion = 64 << 10 // bytes
	maxRepos    = 100      // names
)

// questions chooses the node that answers a question.
type questions struct {
	opener *opener
	view   func() *catalog.View
	nodes  Nodes
	net    call.Network
}

// beginRequest sends a question to another node; the sender has authenticated the viewer.
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

// Ask starts to answer a question, on this node or another. The turn runs whether or not somebody
// watches its thread.
func (a *questions) Ask(ctx context.Context, v catalog.Viewer, q Question) (*Started, error) {
	if err := validate(v, &q); err != nil {
		return nil, err
	}

	// Another node may have room, or credentials that this node lacks. If all fail, return this
	// node's error.
	var why error
	for _, id := range a.answeringNodes() {
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

// answeringNodes returns the nodes that may answer a question: this one first, draining ones last, because
// they must finish their turns before they stop.
func (a *questions) answeringNodes() []string {
	var ids, draining []string
	self := a.nodes.Self()
	for m := range a.view().Members() {
		switch {
		case m.State == catalog.MemberRemoved || m.ID != self && !a.nodes.Alive(m.ID):
			// Skip nodes that cannot answer.
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

// beginAt starts to answer a question on the given node.
func (a *questions) beginAt(ctx context.Context, id string, v catalog.Viewer, q Question) (*Started, error) {
	if id == a.nodes.Self() {
		return a.opener.begin(ctx, v, q)
	}
	return beginCall.Ask(ctx, a.net, id, &beginRequest{v, q})
}

// validate returns an error if the question is invalid.
func validate(v catalog.Viewer, q *Question) error {
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
