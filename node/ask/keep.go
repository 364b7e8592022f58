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

const proposeTime = 5 * time.Second

// keeper keeps turns: the question while they run, and all that was said once they
// have ended, in files, and in the catalog who runs them. It is safe for concurrent
// use.
type keeper struct {
	catalog Catalog
	nodes   Nodes
	store   *thread.Store
	log     *slog.Logger
}

// firstCommand is the command that lets this node answer a question.
func (k *keeper) firstCommand(ctx context.Context, v catalog.Viewer, q *Question) (*catalog.BeginTurn, error) {
	c := &catalog.BeginTurn{Thread: q.Thread, Owner: ownerOf(v), Node: k.nodes.Self()}
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

	return c, nil
}

// tag is by what a first question is found again.
func (k *keeper) tag(ctx context.Context, v catalog.Viewer, q *Question) (uint64, error) {
	return k.store.Tag(ctx, strings.Join([]string{ownerOf(v), q.Query, strings.Join(q.Repos, "\n"), q.Model.Provider, q.Model.Model}, "\x00"))
}

// begin keeps the question and makes known that this node answers it. It returns the
// fence.
func (k *keeper) begin(ctx context.Context, first *catalog.BeginTurn, question Report) (fence uint64, err error) {
	packed, err := pack(&kept{Report: question})
	if err != nil {
		return 0, err
	}

	// The file first: once the catalog names it, it has to be there.
	file, size, err := k.store.Put(ctx, first.Thread, packed)
	if err != nil {
		return 0, call.Fail(call.ErrUnavailable, "The question cannot be kept: %v", err)
	}

	// How many events were seen, on a node that is lost, is not known. So the turn takes as many
	// numbers as it can have had: none of them comes again for something else.
	first.Lost = catalog.ThreadTurn{File: file, Bytes: uint32(size), Events: lostEvents, Failed: true}
	return k.catalog.Propose(ctx, first)
}

// end keeps what was said in a turn as a file, and then ends it in the catalog.
func (k *keeper) end(ctx context.Context, fence uint64, r *Report, packed []byte) error {
	// The file first: once the turn has ended in the catalog it names nothing else.
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
	// Refused where this node was taken for lost meanwhile.
	_, err = k.catalog.Propose(ctx, &catalog.EndTurn{Thread: r.ID, Fence: fence, Turn: turn})
	return err
}

// lose ends a turn whose node is lost: its question stays.
func (k *keeper) lose(ctx context.Context, h *catalog.Thread) {
	ctx, cancel := context.WithTimeout(ctx, proposeTime)
	defer cancel()

	_, err := k.catalog.Propose(ctx, &catalog.EndTurn{Thread: h.ID, Fence: h.Run.Fence, Turn: h.Run.Lost})
	if _, refused := catalog.Refused(err); err != nil && !refused {
		k.log.Warn("a question whose node is lost was not ended", "err", err)
	}
}
