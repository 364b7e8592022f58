package ask

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/node/thread"
)

// Limits of the lookups at the leader of threads that this node does not know.
const (
	missesAtOnce = 4
	missTime     = 5 * time.Second // as long as a write waits for a leader
)

// Limits of the cache of turns.
const (
	recentBytes = 16 << 20
	unpacked    = 8 // a turn in memory takes about this many times the bytes of its file
)

// archive reads threads and their turns, as far as a viewer may see them.
type archive struct {
	gate    *account.Gate
	catalog Catalog
	store   *thread.Store

	recent *lru.Cache[string, *turnFile] // turns by file; shared, so nobody may change them
	misses chan struct{}                 // places for lookups at the leader
}

// visibleThread returns a thread that a viewer may see: the viewer's own or a shared one. Any other
// thread does not exist.
func (a *archive) visibleThread(v catalog.Viewer, id string) (*catalog.Thread, error) {
	// One error for all reasons, so that guessing ids does not reveal which exist.
	h := a.catalog.View().Thread(id)
	if h == nil || v.Role == catalog.RoleNone || !h.Public && !owns(v, h) {
		return nil, noChat()
	}
	return h, nil
}

// visibleOrNewThread returns a thread that a viewer may see, also one that has just begun on another
// node: if this node does not know the id, it asks the leader. Without a leader it returns an error
// instead of "no such chat", because it cannot know.
func (a *archive) visibleOrNewThread(ctx context.Context, v catalog.Viewer, id string) (*catalog.Thread, error) {
	// Only ask the leader about an unknown id of the right form.
	if len(id) != idLength || a.catalog.View().Thread(id) != nil {
		return a.visibleThread(v, id)
	}

	select {
	case a.misses <- struct{}{}:
		err := a.sync(ctx)
		<-a.misses
		if err != nil {
			return nil, err
		}
	default: // somebody is guessing ids
		return nil, call.Fail(call.ErrOverloaded, "Too many chats are looked for at once.")
	}
	return a.visibleThread(v, id)
}

// sync brings this node's view up to the leader's.
func (a *archive) sync(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, missTime)
	defer cancel()

	_, err := a.catalog.Sync(short)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return call.Fail(call.ErrNoLeader, "Whether there is such a chat cannot be told while the cluster has no leader. Try again in a few seconds.")
}

// Sees returns an error if the viewer may not see the thread or it does not exist.
func (a *archive) Sees(ctx context.Context, v catalog.Viewer, id string) error {
	_, err := a.visibleOrNewThread(ctx, v, id)
	return err
}

// ownThread returns a thread that belongs to the viewer. A thread shared by somebody else does not.
func (a *archive) ownThread(ctx context.Context, v catalog.Viewer, id string) (*catalog.Thread, error) {
	h, err := a.visibleOrNewThread(ctx, v, id)
	if err != nil {
		return nil, err
	}
	if !owns(v, h) {
		return nil, noChat()
	}
	return h, nil
}

// Chats lists the viewer's threads, the last changed first. total counts all of them. A guest has
// no list.
func (a *archive) Chats(ctx context.Context, v catalog.Viewer, skip, limit int) (chats []Chat, total int, err error) {
	// All guests are one owner: a list would show each guest the questions of the others.
	switch v.Role {
	case catalog.RoleNone:
		return nil, 0, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	case catalog.RoleGuest:
		return nil, 0, nil
	}

	// Break ties by id, so that pages are stable.
	all := a.catalog.View().ThreadsOf(ownerOf(v))
	slices.SortFunc(all, func(x, y *catalog.Thread) int {
		return cmp.Or(y.Changed.Compare(x.Changed), strings.Compare(x.ID, y.ID))
	})

	for _, h := range all[min(skip, len(all)):min(skip+limit, len(all))] {
		chats = append(chats, a.threadSummary(ctx, v, h))
	}
	return chats, len(all), nil
}

// threadSummary returns a thread without its turns.
func (a *archive) threadSummary(ctx context.Context, v catalog.Viewer, h *catalog.Thread) Chat {
	c := Chat{ID: h.ID, Public: h.Public, Mine: owns(v, h), Running: h.Run.Fence != 0, Created: h.Created, Changed: h.Changed, Count: len(h.Turns)}
	if c.Running {
		c.Count++
	}
	name, err := a.store.Open(ctx, h.Title)
	if c.Title = string(name); err != nil {
		c.Title = "(its title cannot be opened now)"
	}
	return c
}

// readTurn returns what was said in a turn that has ended. after is the number of the last event
// before it.
func (a *archive) readTurn(ctx context.Context, id string, after int, turn catalog.ThreadTurn) (*turnFile, error) {
	k, err := a.readTurnFile(ctx, id, turn)
	// While the file has only the question, the turn's node was lost.
	if err == nil && k.Report.Status == Running {
		return lostTurn(k.Report, after, int(turn.Events)), nil
	}
	return k, err
}

// readTurnFile reads the file of a turn.
func (a *archive) readTurnFile(ctx context.Context, id string, turn catalog.ThreadTurn) (*turnFile, error) {
	// Files never change, so the cache is never stale.
	k, ok := a.recent.Get(turn.File)
	if !ok {
		b, err := a.store.Get(ctx, id, turn.File)
		if err != nil {
			return nil, call.Fail(call.ErrUnavailable, "What was said cannot be read now: %v.", err)
		}
		if k, err = unpack(b); err != nil {
			return nil, err
		}
		a.recent.Put(turn.File, k, unpacked*int64(len(b)))
	}

	// A forked thread shares the files of the original, with its id.
	one := *k
	one.Report.ID = id
	return &one, nil
}

// lostTurn returns the turn of a question whose node was lost. after and events are the turn's range
// of event numbers.
func lostTurn(question Report, after, events int) *turnFile {
	const why = "The node that answered this question was lost, and what it had found with it. Ask again."
	last := after + events
	question.Status, question.Error, question.First, question.Last = Failed, why, after+1, last

	// The last events get the last numbers, because viewers may have seen any of the others.
	return &turnFile{Report: question, Events: []Event{
		{N: after + 1, Kind: KindTurn, Text: question.Query},
		{N: last - 1, Kind: KindError, Text: why},
		{N: last, Kind: KindDone, Text: string(Failed)},
	}}
}

// earlierTurns returns the turns so far for the model, as the asker may see them now.
func (a *archive) earlierTurns(ctx context.Context, v catalog.Viewer, h *catalog.Thread) ([]*Report, error) {
	var out []*Report
	for _, turn := range h.Turns {
		k, err := a.readTurn(ctx, h.ID, 0, turn)
		if err != nil {
			return nil, err
		}

		// Filter by what the asker may see now: the model must not repeat what the asker has lost
		// access to.
		r := a.sightOf(v, k.Report.Sight).filterReport(k.Report)
		out = append(out, &r)
	}
	return out, nil
}

// sightOf returns what a viewer may see of a turn. asked is the set of repositories that the
// asker could see.
func (a *archive) sightOf(v catalog.Viewer, asked []byte) *sight {
	repos, err := a.gate.Repos(v)
	// If permissions cannot be checked, show nothing.
	if err != nil {
		return &sight{}
	}

	// If the set is unreadable, show the answer but not how it was found.
	set, err := catalog.ReadSet(asked)
	if err != nil {
		return &sight{repos: repos}
	}
	return &sight{repos, roaring.AndNot(set, repos.Set).IsEmpty()}
}
