package ask

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/thread"
)

const (
	proposeTime = 5 * time.Second
	handTime    = 2 * time.Second
)

// keeper keeps turns: in a log while they run, in a file once they have ended,
// and in the catalog who runs them. It is safe for concurrent use.
type keeper struct {
	catalog Catalog
	nodes   Nodes
	store   *thread.Store
	log     *slog.Logger
}

// firstCommand is the command that lets this node answer a question.
func (k *keeper) firstCommand(ctx context.Context, v catalog.Viewer, q *Question) (*catalog.BeginTurn, error) {
	self := k.nodes.Self()
	c := &catalog.BeginTurn{Thread: q.Thread, Owner: ownerOf(v), Node: self, Copies: []string{self}}
	if q.Thread == "" {
		var err error
		// What a guest asks is public: there is nothing by which he could be known again.
		c.Thread, c.New, c.Public = newID(), true, q.Public || v.Role == catalog.RoleGuest
		if c.Title, err = k.store.Seal(ctx, []byte(title(q.Query))); err != nil {
			return nil, call.WriteError(err)
		}
		if c.Asked, err = k.tag(ctx, v, q); err != nil {
			return nil, call.WriteError(err)
		}
	}

	// Where there is no other node, this one alone has the question.
	if second := k.store.Second(c.Thread); second != "" {
		c.Copies = append(c.Copies, second)
	}
	return c, nil
}

// tag is by what a first question is found again.
func (k *keeper) tag(ctx context.Context, v catalog.Viewer, q *Question) (uint64, error) {
	return k.store.Tag(ctx, strings.Join([]string{ownerOf(v), q.Query, strings.Join(q.Repos, "\n"), q.Model.Provider, q.Model.Model}, "\x00"))
}

// begin makes known that this node answers a turn, and begins its log.
func (k *keeper) begin(ctx context.Context, first *catalog.BeginTurn) (*thread.Log, error) {
	fence, err := k.catalog.Propose(ctx, first)
	if err != nil {
		return nil, err
	}
	return k.store.Begin(first.Thread, catalog.Run{Node: first.Node, Copies: first.Copies, Fence: fence}), nil
}

// resume goes on with the log of a turn that the catalog gives to this node, and
// returns what it has.
func (k *keeper) resume(ctx context.Context, h *catalog.Thread) (*thread.Log, [][]byte, error) {
	return k.store.Resume(ctx, h.ID, h.Run)
}

// end keeps what was said in a turn as a file, and then ends it in the catalog.
func (k *keeper) end(ctx context.Context, log *thread.Log, r *Report, packed []byte) error {
	// The file first: once the turn has ended in the catalog nobody keeps the log any more.
	file, size, err := k.store.Put(ctx, r.ID, packed)
	if err != nil {
		return err
	}

	// The number of events lets those of the next turn go on without a gap.
	turn := catalog.ThreadTurn{
		File:   file,
		Bytes:  uint32(size),
		Events: uint32(r.Last - r.First + 1),
		Failed: r.Status != Done,
	}
	// Refused where the fence is another: then another node ends it, with all that was said.
	_, err = k.catalog.Propose(ctx, &catalog.EndTurn{Thread: r.ID, Fence: log.Fence(), Turn: turn})
	return err
}

// abandon ends a turn of which nothing can be kept.
func (k *keeper) abandon(ctx context.Context, id string, fence uint64) {
	ctx, cancel := context.WithTimeout(ctx, proposeTime)
	defer cancel()

	// How many events were seen, on nodes that are gone, is not known. So it takes as many numbers
	// as a turn can have: none of them comes again for something else.
	turn := catalog.ThreadTurn{Events: lostEvents, Failed: true}
	_, err := k.catalog.Propose(ctx, &catalog.EndTurn{Thread: id, Fence: fence, Turn: turn})
	if _, refused := catalog.Refused(err); err != nil && !refused {
		k.log.Warn("a question that cannot go on was not ended", "err", err)
	}
}

// handOver gives a turn to its other copy when this node stops.
func (k *keeper) handOver(id string, log *thread.Log) {
	// Another node has it already where the fence is another.
	h := k.catalog.View().Thread(id)
	if h == nil || h.Run.Fence != log.Fence() {
		return
	}

	for _, node := range h.Run.Copies {
		if node == k.nodes.Self() || !k.nodes.Alive(node) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), handTime)
		defer cancel()

		// Where this fails the copy finds out by itself that this node is gone.
		move := &catalog.MoveRun{Thread: id, Fence: h.Run.Fence, Node: node, Copies: []string{node}}
		_, _ = k.catalog.Propose(ctx, move)
		return
	}
}
