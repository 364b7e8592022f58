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

// keeper stores turns in files: the question while a turn runs, everything when it has ended. The
// catalog names the file and the node that runs the turn. It is safe for concurrent use.
type keeper struct {
	catalog Catalog
	nodes   Nodes
	store   *thread.Store
	log     *slog.Logger
}

// firstCommand returns the command that begins a turn on this node.
func (k *keeper) firstCommand(ctx context.Context, v catalog.Viewer, q *Question) (*catalog.BeginTurn, error) {
	c := &catalog.BeginTurn{Thread: q.Thread, Owner: ownerOf(v), Node: k.nodes.Self()}
	if q.Thread == "" {
		var err error
		// A guest's thread is public, because a guest cannot be recognized later.
		c.Thread, c.New, c.Public = newID(), true, q.Public || v.Role == catalog.RoleGuest
		if c.Title, err = k.store.Seal(ctx, []byte(titleOf(q.Query))); err != nil {
			return nil, call.WriteError(err)
		}
		if c.Asked, err = k.questionTag(ctx, v, q); err != nil {
			return nil, call.WriteError(err)
		}
	}

	return c, nil
}

// questionTag returns a hash of the question, by which a repeated request finds the same thread.
func (k *keeper) questionTag(ctx context.Context, v catalog.Viewer, q *Question) (uint64, error) {
	return k.store.Tag(ctx, strings.Join([]string{ownerOf(v), q.Query, strings.Join(q.Repos, "\n"), q.Model.Provider, q.Model.Model}, "\x00"))
}

// beginTurn stores the question and registers the turn for this node in the catalog. It returns the
// turn's fence.
func (k *keeper) beginTurn(ctx context.Context, first *catalog.BeginTurn, question Report) (fence uint64, err error) {
	packed, err := pack(&turnFile{Report: question})
	if err != nil {
		return 0, err
	}

	// Write the file first: once the catalog names it, it must exist.
	file, size, err := k.store.Put(ctx, first.Thread, packed)
	if err != nil {
		return 0, call.Fail(call.ErrUnavailable, "The question cannot be kept: %v", err)
	}

	// If this node is lost, nobody knows how many events viewers saw. So a lost turn takes as
	// many numbers as it could have used, and no number is ever used twice.
	first.Lost = catalog.ThreadTurn{File: file, Bytes: uint32(size), Events: lostEvents, Failed: true}
	return k.catalog.Propose(ctx, first)
}

// endTurn writes everything that was said to a file, and then ends the turn in the catalog.
func (k *keeper) endTurn(ctx context.Context, fence uint64, r *Report, packed []byte) error {
	// Write the file first: once the turn has ended, the catalog names only this file.
	file, size, err := k.store.Put(ctx, r.ID, packed)
	if err != nil {
		return err
	}

	// The number of events tells the next turn where its numbers begin.
	turn := catalog.ThreadTurn{
		File:   file,
		Bytes:  uint32(size),
		Events: uint32(r.Last - r.First + 1),
		Failed: r.Status != Done,
	}
	// The catalog refuses it if another node has ended this turn as lost.
	_, err = k.catalog.Propose(ctx, &catalog.EndTurn{Thread: r.ID, Fence: fence, Turn: turn})
	return err
}

// endLostTurn ends a turn whose node is lost. Only its question remains.
func (k *keeper) endLostTurn(ctx context.Context, h *catalog.Thread) {
	ctx, cancel := context.WithTimeout(ctx, proposeTime)
	defer cancel()

	_, err := k.catalog.Propose(ctx, &catalog.EndTurn{Thread: h.ID, Fence: h.Run.Fence, Turn: h.Run.Lost})
	if _, refused := catalog.Refused(err); err != nil && !refused {
		k.log.Warn("a question whose node is lost was not ended", "err", err)
	}
}
