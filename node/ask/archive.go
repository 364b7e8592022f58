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

// Misses that ask the leader at a time, and for how long.
const (
	missesAtOnce = 4
	missTime     = 5 * time.Second // as long as a write waits for a leader
)

// What was said in the turns that were read last stays in memory.
const (
	recentBytes = 16 << 20
	unpacked    = 8 // times the bytes of its file a turn takes, about
)

// archive finds threads and what was said in them, as far as a viewer may see it.
type archive struct {
	gate    *account.Gate
	catalog Catalog
	store   *thread.Store

	recent *lru.Cache[string, *kept] // what was said, by file; nobody changes it
	misses chan struct{}             // threads that are looked for at the leader
}

// visible finds a thread that a viewer may see: his own, or a shared one.
// Any other one is not there.
func (a *archive) visible(v catalog.Viewer, id string) (*catalog.Thread, error) {
	// One answer for all reasons: who tries ids must not learn which there are.
	h := a.catalog.View().Thread(id)
	if h == nil || v.Role == catalog.RoleNone || !h.Public && !owns(v, h) {
		return nil, noChat()
	}
	return h, nil
}

// fresh is visible for a thread that may have begun on another node a moment
// ago: where there is none, this node asks the leader what is new. Where nobody
// leads, as after the node that began it was killed, that cannot be told, and is
// not answered with no.
func (a *archive) fresh(ctx context.Context, v catalog.Viewer, id string) (*catalog.Thread, error) {
	// What cannot be an id is not worth a question to the leader, and what is here needs none.
	if len(id) != idLength || a.catalog.View().Thread(id) != nil {
		return a.visible(v, id)
	}

	select {
	case a.misses <- struct{}{}:
		err := a.sync(ctx)
		<-a.misses
		if err != nil {
			return nil, err
		}
	default: // somebody tries ids
		return nil, call.Fail(call.ErrOverloaded, "Too many chats are looked for at once.")
	}
	return a.visible(v, id)
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

// Sees fails where there is no such thread for a viewer.
func (a *archive) Sees(ctx context.Context, v catalog.Viewer, id string) error {
	_, err := a.fresh(ctx, v, id)
	return err
}

// own finds a thread of the viewer's own. One that somebody else shares is no
// work of his.
func (a *archive) own(ctx context.Context, v catalog.Viewer, id string) (*catalog.Thread, error) {
	h, err := a.fresh(ctx, v, id)
	if err != nil {
		return nil, err
	}
	if !owns(v, h) {
		return nil, noChat()
	}
	return h, nil
}

// Chats lists the threads of a viewer, those that changed last first; total is
// how many there are. A guest has no list.
func (a *archive) Chats(ctx context.Context, v catalog.Viewer, skip, most int) (chats []Chat, total int, err error) {
	// Guests are one owner together: a list would show each the questions of all others.
	switch v.Role {
	case catalog.RoleNone:
		return nil, 0, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	case catalog.RoleGuest:
		return nil, 0, nil
	}

	// By id after the time: threads that changed together must not change places between pages.
	all := a.catalog.View().ThreadsOf(ownerOf(v))
	slices.SortFunc(all, func(x, y *catalog.Thread) int {
		return cmp.Or(y.Changed.Compare(x.Changed), strings.Compare(x.ID, y.ID))
	})

	for _, h := range all[min(skip, len(all)):min(skip+most, len(all))] {
		chats = append(chats, a.brief(ctx, v, h))
	}
	return chats, len(all), nil
}

func (a *archive) brief(ctx context.Context, v catalog.Viewer, h *catalog.Thread) Chat {
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

// said is what was said in a turn that has ended, whose events come after a
// number.
func (a *archive) said(ctx context.Context, id string, after int, turn catalog.ThreadTurn) (*kept, error) {
	k, err := a.file(ctx, id, turn)
	// The file of a question stands for a turn whose node was lost.
	if err == nil && k.Report.Status == Running {
		return lost(k.Report, after, int(turn.Events)), nil
	}
	return k, err
}

// file reads the file of a turn.
func (a *archive) file(ctx context.Context, id string, turn catalog.ThreadTurn) (*kept, error) {
	// By file, which never changes: what is kept is never stale.
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

	// A copy of a thread has the turns of the other one.
	one := *k
	one.Report.ID = id
	return &one, nil
}

// lost is the turn of a question whose node was lost, and which took some numbers of
// events after one.
func lost(question Report, after, events int) *kept {
	const why = "The node that answered this question was lost, and what it had found with it. Ask again."
	last := after + events
	question.Status, question.Error, question.First, question.Last = Failed, why, after+1, last

	// The end is behind all numbers that were given to what was said.
	return &kept{Report: question, Events: []Event{
		{N: after + 1, Kind: KindTurn, Text: question.Query},
		{N: last - 1, Kind: KindError, Text: why},
		{N: last, Kind: KindDone, Text: string(Failed)},
	}}
}

// earlier is what was said in a thread, as its asker may see it, for the model.
func (a *archive) earlier(ctx context.Context, v catalog.Viewer, h *catalog.Thread) ([]*Report, error) {
	var out []*Report
	for _, turn := range h.Turns {
		k, err := a.said(ctx, h.ID, 0, turn)
		if err != nil {
			return nil, err
		}

		// As he may see it now: the model must not tell what he has lost the right to read.
		r := a.sightOf(v, k.Report.Sight).report(k.Report)
		out = append(out, &r)
	}
	return out, nil
}

func (a *archive) sightOf(v catalog.Viewer, asked []byte) *sight {
	repos, err := a.gate.Repos(v)
	// Where nothing can be decided nothing is shown.
	if err != nil {
		return &sight{}
	}

	// A set that cannot be read: how the answer was found is then shown to nobody.
	set, err := catalog.ReadSet(asked)
	if err != nil {
		return &sight{repos: repos}
	}
	return &sight{repos, roaring.AndNot(set, repos.Set).IsEmpty()}
}
