package ask

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Chat is a thread as one viewer sees it.
type Chat struct {
	ID      string
	Title   string
	Public  bool
	Mine    bool // the viewer goes on with it, and may change it
	Running bool // the last turn is being answered
	Created time.Time
	Changed time.Time
	Turns   []Report // none in a list
	Count   int      // of turns
}

func noChat() error { return call.Fail(call.ErrNotFound, "There is no such chat.") }

// ownerOf is whose the threads of a viewer are: an account's, a key's that
// belongs to no account, or the operator's; "" for all guests together.
func ownerOf(v catalog.Viewer) string {
	switch {
	case v.Account != "":
		return "account " + v.Account
	case v.KeyID != "":
		return "key " + v.KeyID
	case v.Role == catalog.RoleGuest:
		return ""
	}
	return "operator"
}

// owns reports whether a viewer may go on with a thread. One of a guest is that
// of every guest who has its link.
func owns(v catalog.Viewer, h *catalog.Thread) bool {
	return v.Role != catalog.RoleNone && h.Owner == ownerOf(v)
}

// visible finds a thread that a viewer may see: his own, or a shared one.
// Any other one is not there.
func (a *Asker) visible(v catalog.Viewer, id string) (*catalog.Thread, error) {
	h := a.d.View().Thread(id)
	if h == nil || v.Role == catalog.RoleNone || !h.Public && !owns(v, h) {
		return nil, noChat()
	}
	return h, nil
}

// fresh is visible for a thread that may have begun on another node a moment
// ago: where there is none, this node asks the leader what is new.
func (a *Asker) fresh(ctx context.Context, v catalog.Viewer, id string) (*catalog.Thread, error) {
	if len(id) != idLength || a.d.View().Thread(id) != nil {
		return a.visible(v, id)
	}
	select {
	case a.misses <- struct{}{}:
		ctx, cancel := context.WithTimeout(ctx, missTime)
		_, _ = a.d.Sync(ctx) // without a leader this node's view is what there is
		cancel()
		<-a.misses
	default: // somebody tries ids
	}
	return a.visible(v, id)
}

// Misses that ask the leader at a time, and for how long.
const (
	missesAtOnce = 4
	missTime     = 2 * time.Second
)

// Sees fails where there is no such thread for a viewer.
func (a *Asker) Sees(ctx context.Context, v catalog.Viewer, id string) error {
	_, err := a.fresh(ctx, v, id)
	return err
}

// changeable finds a thread that a viewer may change or delete.
func (a *Asker) changeable(ctx context.Context, v catalog.Viewer, id string) (*catalog.Thread, error) {
	h, err := a.fresh(ctx, v, id)
	switch {
	case err != nil:
		return nil, err
	case !owns(v, h):
		return nil, call.Fail(call.ErrForbidden, "This is somebody else's thread.")
	case h.Owner == "":
		return nil, call.Fail(call.ErrForbidden, "A guest's thread is everybody's who has its link: nobody changes it. It goes after some days.")
	}
	return h, nil
}

// Chats lists the threads of a viewer, those that changed last first; total is
// how many there are. A guest has no list.
func (a *Asker) Chats(ctx context.Context, v catalog.Viewer, skip, most int) (chats []Chat, total int, err error) {
	switch v.Role {
	case catalog.RoleNone:
		return nil, 0, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	case catalog.RoleGuest:
		return nil, 0, nil
	}

	all := slices.SortedFunc(a.d.View().ThreadsOf(ownerOf(v)), func(x, y *catalog.Thread) int {
		return cmp.Or(y.Changed.Compare(x.Changed), strings.Compare(x.ID, y.ID))
	})

	for _, h := range all[min(skip, len(all)):min(skip+most, len(all))] {
		chats = append(chats, a.brief(ctx, v, h))
	}
	return chats, len(all), nil
}

func (a *Asker) brief(ctx context.Context, v catalog.Viewer, h *catalog.Thread) Chat {
	c := Chat{ID: h.ID, Public: h.Public, Mine: owns(v, h), Running: h.Run.Fence != 0, Created: h.Created, Changed: h.Changed, Count: len(h.Turns)}
	if c.Running {
		c.Count++
	}
	name, err := a.d.Threads.Open(ctx, h.Title)
	if c.Title = string(name); err != nil {
		c.Title = "(its title cannot be opened now)"
	}
	return c
}

// Chat is a thread that the viewer may see, with what he may see of it, as far
// as it is.
func (a *Asker) Chat(ctx context.Context, v catalog.Viewer, id string) (*Chat, error) {
	h, err := a.fresh(ctx, v, id)
	if err != nil {
		return nil, err
	}

	c := a.brief(ctx, v, h)
	for _, turn := range h.Turns {
		k, err := a.said(ctx, h.ID, turn)
		if err != nil {
			return nil, err
		}
		c.Turns = append(c.Turns, a.sightOf(v, k.Report.Sight).report(k.Report))
	}

	if !c.Running {
		return &c, nil
	}

	// What is being answered is where it runs. It may end meanwhile: then the
	// thread is looked at once more.
	r, err := a.runningTurn(ctx, h, 0, 0)
	if err != nil {
		return nil, err
	}

	if r.Elsewhere {
		if now := a.d.View().Thread(id); now != nil && now.Run.Fence == h.Run.Fence {
			c.Turns = append(c.Turns, Report{ID: id, Status: Running, First: h.Events() + 1})
			return &c, nil
		}
		return a.Chat(ctx, v, id)
	}
	c.Turns = append(c.Turns, a.sightOf(v, r.Report.Sight).report(r.Report))
	return &c, nil
}

// said is what was said in a turn that has ended.
func (a *Asker) said(ctx context.Context, id string, turn catalog.ThreadTurn) (*kept, error) {
	if turn.File == "" {
		return &kept{Report: Report{ID: id, Status: Failed, Error: "All nodes that had this question went away at once: it is lost. Ask it again."}}, nil
	}

	if k := a.recent.get(turn.File); k != nil {
		return k, nil
	}

	b, err := a.d.Threads.Get(ctx, id, turn.File)
	if err != nil {
		return nil, call.Fail(call.ErrUnavailable, "What was said cannot be read now: %v.", err)
	}

	k, err := unpack(b)
	if err != nil {
		return nil, err
	}
	k.Report.ID = id // a copy of a thread has the turns of the other one
	a.recent.put(turn.File, k)
	return k, nil
}

// earlier is what was said in a thread, as its asker may see it, for the model.
func (a *Asker) earlier(ctx context.Context, v catalog.Viewer, h *catalog.Thread) ([]*Report, error) {
	var out []*Report
	for _, turn := range h.Turns {
		if turn.File == "" {
			continue
		}
		k, err := a.said(ctx, h.ID, turn)
		if err != nil {
			return nil, err
		}

		r := a.sightOf(v, k.Report.Sight).report(k.Report)
		out = append(out, &r)
	}
	return out, nil
}

// sight is what a viewer may see of a turn.
type sight struct {
	repos *account.Repos // nil for nobody
	whole bool           // the viewer can see all that the asker could
}

func (a *Asker) sightOf(v catalog.Viewer, asked []byte) *sight {
	repos, err := a.d.Gate.Repos(v)
	if err != nil {
		return &sight{}
	}
	set := roaring.New()
	if _, err := set.FromBuffer(asked); err != nil {
		return &sight{repos: repos}
	}
	return &sight{repos, roaring.AndNot(set, repos.Set).IsEmpty()}
}

func (s *sight) sees(repo string) bool {
	if s.repos == nil {
		return false
	}
	_, err := s.repos.ByName(repo)
	return err == nil
}

// report is a report without the sources that the viewer may not see: their
// citations are gone from the text.
func (s *sight) report(r Report) Report {
	answer := r.Answer
	r.Answer = nil
	for _, p := range answer {
		if p.Cite == nil || p.Cite.State == Unverified || s.sees(p.Cite.Repo) {
			r.Answer = append(r.Answer, p)
		}
	}
	r.Reads = slices.DeleteFunc(slices.Clone(r.Reads), func(x Read) bool { return !s.sees(x.Repo) })
	r.Repos = slices.DeleteFunc(slices.Clone(r.Repos), func(name string) bool { return !s.sees(name) })
	return r
}

// event is an event as the viewer may see it. It keeps its number.
func (s *sight) event(e Event) Event {
	switch e.Kind {
	case KindCall, KindResult, KindReasoning:
		if !s.whole {
			e.Text = ""
		}
	case KindCite:
		if e.Cite != nil && e.Cite.State != Unverified && !s.sees(e.Cite.Repo) {
			e.Kind, e.Cite = KindText, nil
		}
	}
	return e
}

// WatchChat gives the events of a thread after a number to fn, as the viewer
// may see them, until the last one of its last turn, or until ctx ends or fn
// fails. It does not matter where the turn runs, nor that its node goes away.
func (a *Asker) WatchChat(ctx context.Context, v catalog.Viewer, id string, after int, fn func(Event) error) error {
	for {
		changed := a.d.Changed()

		h, err := a.fresh(ctx, v, id)
		if err != nil {
			return err
		}

		ended, err := a.replay(ctx, v, h, &after, fn)
		if err != nil || ended && h.Run.Fence == 0 {
			return err
		}

		ended, err = a.follow(ctx, v, h, &after, fn)
		if err != nil || ended {
			return err
		}

		// The turn has moved, or is about to.
		timer := time.NewTimer(a.scaled(lookPause))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}

// Watcher lets events of threads be watched.
type Watcher interface {
	WatchChat(ctx context.Context, v catalog.Viewer, id string, after int, fn func(Event) error) error
}

// Follow is WatchChat for connections that must not be silent for long: every so
// often it calls alive, between two events.
func Follow(ctx context.Context, w Watcher, v catalog.Viewer, id string, after int, every time.Duration, fn func(Event) error, alive func() error) error {
	for {
		some, cancel := context.WithTimeout(ctx, every)
		err := w.WatchChat(some, v, id, after, func(e Event) error {
			after = e.N
			return fn(e)
		})
		paused := some.Err() != nil
		cancel()

		// A pause is no end.
		if err == nil || ctx.Err() != nil || !paused {
			return err
		}
		if err := alive(); err != nil {
			return err
		}
	}
}

// replay gives out the events of the turns that have ended.
func (a *Asker) replay(ctx context.Context, v catalog.Viewer, h *catalog.Thread, after *int, fn func(Event) error) (bool, error) {
	at := 0
	for _, turn := range h.Turns {
		if at += int(turn.Events); at <= *after {
			continue
		}
		k, err := a.said(ctx, h.ID, turn)
		if err != nil {
			return false, err
		}

		may := a.sightOf(v, k.Report.Sight)
		for _, e := range k.Events {
			if e.N <= *after {
				continue
			}
			if err := fn(may.event(e)); err != nil {
				return false, err
			}
			*after = e.N
		}
	}
	return true, nil
}

// follow gives out the events of the turn that is being answered; ended says
// that its last one was among them.
func (a *Asker) follow(ctx context.Context, v catalog.Viewer, h *catalog.Thread, after *int, fn func(Event) error) (ended bool, err error) {
	for h.Run.Fence != 0 {
		r, err := a.runningTurn(ctx, h, *after, watchWait)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil || r.Elsewhere && len(r.Events) == 0 {
			return false, nil // whoever goes on has all that was given out
		}

		may := a.sightOf(v, r.Report.Sight)
		for _, e := range r.Events {
			if e.N != *after+1 {
				return false, fmt.Errorf("event %d after %d", e.N, *after)
			}
			if err := fn(may.event(e)); err != nil {
				return false, err
			}
			*after = e.N
		}

		if r.Ended {
			return true, nil
		}
		if _, err := a.visible(v, h.ID); err != nil {
			return false, err // it was deleted, or is not shared any more
		}
	}
	return false, nil
}

// StopChat ends the turn of the viewer's thread that is being answered. What
// was said is kept.
func (a *Asker) StopChat(ctx context.Context, v catalog.Viewer, id string) error {
	h, err := a.fresh(ctx, v, id)
	if err != nil {
		return err
	}
	if !owns(v, h) {
		return call.Fail(call.ErrForbidden, "This is somebody else's thread.")
	}
	if h.Run.Fence == 0 {
		return nil
	}
	return a.stopTurn(ctx, h)
}

// ChangeChat gives the viewer's thread another title, where that is not empty,
// and shares it or takes that back, where public is not nil.
func (a *Asker) ChangeChat(ctx context.Context, v catalog.Viewer, id, name string, public *bool) error {
	h, err := a.changeable(ctx, v, id)
	if err != nil {
		return err
	}

	c := &catalog.ChangeThread{Thread: id, Public: h.Public}
	if public != nil {
		c.Public = *public
	}

	if name != "" {
		if c.Title, err = a.d.Threads.Seal(ctx, []byte(title(name))); err != nil {
			return call.WriteError(err)
		}
	}

	_, err = a.d.Propose(ctx, c)
	return call.WriteError(err)
}

// DeleteChat deletes the viewer's thread. A turn that is being answered ends.
func (a *Asker) DeleteChat(ctx context.Context, v catalog.Viewer, id string) error {
	if _, err := a.changeable(ctx, v, id); err != nil {
		return err
	}
	_, err := a.d.Propose(ctx, &catalog.DeleteThread{Thread: id})
	return call.WriteError(err)
}

// ForkChat makes a thread of the viewer's own of one that he may see, and
// returns its id.
func (a *Asker) ForkChat(ctx context.Context, v catalog.Viewer, id string) (string, error) {
	h, err := a.fresh(ctx, v, id)
	if err != nil {
		return "", err
	}
	c := &catalog.ForkThread{From: id, Thread: newID(), Owner: ownerOf(v), Title: h.Title, Public: v.Role == catalog.RoleGuest}
	if _, err := a.d.Propose(ctx, c); err != nil {
		return "", beginError(err)
	}
	return c.Thread, nil
}

// How long threads are kept after they changed last.
const (
	retainGuestDays = 7
	deletedAtOnce   = 100
)

// keeps is for how long a thread is kept after it changed last.
func (a *Asker) keeps(h *catalog.Thread) time.Duration {
	text, _ := a.d.Lookup("SHOAL_ASK_RETENTION_DAYS")
	days, _ := config.ThreadDays(text) // one that cannot be read is the usual one
	if h.Owner == "" {
		days = min(days, retainGuestDays)
	}
	return time.Duration(days) * 24 * time.Hour
}

// retain deletes the threads that are too old, and those of accounts that are
// gone. The leader does it.
func (a *Asker) retain(ctx context.Context, now time.Time) {
	view := a.d.View()
	var old []catalog.Command
	for h := range view.Threads() {
		id, isAccount := strings.CutPrefix(h.Owner, "account ")
		gone := isAccount && view.Account(id) == nil
		if h.Run.Fence == 0 && (gone || now.Sub(h.Changed) > a.keeps(h)) && len(old) < deletedAtOnce {
			old = append(old, &catalog.DeleteThread{Thread: h.ID, Changed: h.Changed})
		}
	}

	if len(old) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, proposeTime)
	defer cancel()
	if _, err := a.d.Propose(ctx, old...); err != nil {
		a.d.Log.Warn("old questions were not deleted", "err", err)
	}
}
