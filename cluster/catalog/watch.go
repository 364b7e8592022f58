package catalog

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// Watch is a search that an account keeps. Its owner is notified of what matches among the things
// that are indexed after the watch was made.
type Watch struct {
	ID      string // random
	Account string // the owner; the watch finds what the owner may see
	Name    string
	Query   string
	Regexp  bool // the toggles of the query
	Case    bool
	Words   bool
	Shared  bool // other accounts may read it; each sees what was found in its own repositories
	Created time.Time
	Since   uint64 // index of the entry that set the query

	Feed   []byte // hash of the token of its feed; empty: no feed
	URL    string // of its webhook; "": none
	Secret []byte // by which the webhook is signed, sealed
	Mail   bool

	Delivered uint64    // number of the newest notice that was sent, or given up
	Failing   time.Time // since when its receiver fails; zero: it does not
	Problem   string    // of the last attempt
	Missed    uint64    // notices that were given up
}

// Sends reports whether notices of the watch are sent anywhere.
func (w *Watch) Sends() bool { return w.URL != "" || w.Mail }

// Notice is what one check of a repository found for a watch.
type Notice struct {
	Number uint64 // ascending
	ID     string // the same for the same hits
	Watch  string
	Repo   RepoID
	At     time.Time
	Hits   []Hit  // the newest
	Total  uint32 // of all hits
}

// Hit is a commit or a file that matches.
type Hit struct {
	Commit string
	Path   string // "" for a commit
	Line   uint32 // of the first match; 0 for a commit
	Title  string // of the commit, or the line
	Author string // of the commit
	At     time.Time
}

// Backlog is the part of a repository's history that no watch has been checked against. It exists
// from an index of new commits until the check. No index makes one while there are no watches.
type Backlog struct {
	Repo  RepoID
	From  []Revision // the newest that was checked
	First uint64     // index of the entry that made it, or that moved From
	Last  uint64     // index of the newest entry that indexed commits
}

// Limits of watches.
const (
	maxWatches      = 20_000
	maxWatchesOfOne = 100
	maxWatchName    = 100
	maxWatchQuery   = 2000
	maxWatchURL     = 1000
	maxWatchSecret  = 1 << 10
	maxNotices      = 10_000
	maxNoticesOfOne = 500

	// maxNoticesOfRepo bounds the notices of one watch about one repository. So a busy repository does
	// not push out notices about other repositories, which a reader may see although not the busy one.
	maxNoticesOfRepo = 50

	maxHits    = 10 // of one notice
	maxHitText = 200
	maxHitPath = 500
)

// PutWatch creates a watch, or changes it.
type PutWatch struct {
	Watch Watch // Created, Since and the state of deliveries do not count
	New   bool
}

// DeleteWatch removes a watch and its notices.
type DeleteWatch struct{ ID string }

// FinishChecks stores what checks of repositories found, and moves their backlogs in the same
// entry.
type FinishChecks struct{ Checks []Check }

// Check is a check of one repository.
type Check struct {
	Repo    RepoID
	First   uint64     // of the backlog that was read; another one refuses the check
	To      []Revision // that was checked; empty: this part moves nothing, because another one follows
	Notices []Notice   // without Number and At
}

// NoteDeliveries stores how far the notices of watches were sent.
type NoteDeliveries struct{ Deliveries []Delivery }

// Delivery is how far the notices of one watch were sent.
type Delivery struct {
	Watch   string
	Number  uint64 // of the newest notice that was sent or given up; 0: no change
	Missed  uint64 // given up since the last Delivery
	Failing time.Time
	Problem string
}

func (c *PutWatch) apply(t *txn) Result {
	w, old := c.Watch, t.watches.Get(c.Watch.ID)
	a := t.accounts.Get(w.Account)
	switch {
	case w.ID == "" || len(w.ID) > 64 || strings.ContainsRune(w.ID, 0) || w.Name == "" || len(w.Name) > maxWatchName || w.Query == "" || len(w.Query) > maxWatchQuery || len(w.URL) > maxWatchURL || len(w.Secret) > maxWatchSecret:
		return refuse(Invalid, fmt.Sprintf("a watch has a name of 1 to %d bytes, a query of 1 to %d, and an address of at most %d", maxWatchName, maxWatchQuery, maxWatchURL))
	case a == nil || a.State != AccountActive:
		return refuse(NotFound, "there is no such account")
	case c.New && old != nil:
		return refuse(Conflict, "there is a watch of that id already")
	case !c.New && (old == nil || old.Account != w.Account):
		return refuse(NotFound, "there is no such watch")
	case len(w.Feed) > 0 && t.feedTaken(&w):
		return refuse(Conflict, "there is a feed with that token already")
	case c.New && t.watches.Len() >= maxWatches:
		return refuse(Conflict, "there are as many watches as a cluster may have: remove some")
	case c.New && len(t.WatchesOf(w.Account)) >= maxWatchesOfOne:
		return refuse(Conflict, fmt.Sprintf("an account may have %d watches: remove some", maxWatchesOfOne))
	}

	w.Created, w.Since, w.Delivered, w.Failing, w.Problem, w.Missed = t.now, t.index, numberAt(t.index), time.Time{}, "", 0
	if old != nil {
		w.Created, w.Missed = old.Created, old.Missed
		if old.Query == w.Query && old.Regexp == w.Regexp && old.Case == w.Case && old.Words == w.Words {
			w.Since = old.Since
		}
		if old.Sends() {
			w.Delivered = old.Delivered
		}
	}
	if old != nil && len(old.Feed) > 0 {
		t.watchFeeds.Delete(string(old.Feed))
	}
	if len(w.Feed) > 0 {
		t.watchFeeds.Set(string(w.Feed), w.ID)
	}
	t.watches.Set(w.ID, &w)
	t.watchOwners.Set(ownedThread(w.Account, w.ID), struct{}{})
	return Result{ID: t.index}
}

// feedTaken reports whether another watch has the token of a feed.
func (t *txn) feedTaken(w *Watch) bool {
	id, ok := t.watchFeeds.Get(string(w.Feed))
	return ok && id != w.ID
}

// numberAt returns the number of the first notice of an entry.
func numberAt(index uint64) uint64 { return index << 16 }

func (c *DeleteWatch) apply(t *txn) Result {
	w := t.watches.Get(c.ID)
	if w == nil {
		return refuse(NotFound, "there is no such watch")
	}
	t.dropWatch(w)
	return Result{ID: t.index}
}

func (t *txn) dropWatch(w *Watch) {
	for n := range slices.Values(slices.Collect(t.noticesOf(w.ID))) {
		t.dropNotice(n)
	}
	t.watches.Delete(w.ID)
	if len(w.Feed) > 0 {
		t.watchFeeds.Delete(string(w.Feed))
	}
	t.watchOwners.Delete(ownedThread(w.Account, w.ID))
}

func (t *txn) dropNotice(n *Notice) {
	t.notices.Delete(n.Number)
	t.watchNotices.Delete(noticeKey(n))
}

// dropWatchesOf removes the watches of an account.
func (t *txn) dropWatchesOf(account string) {
	for _, w := range t.WatchesOf(account) {
		t.dropWatch(w)
	}
}

// noteBacklog remembers that new commits of a repository were indexed. The first index of a
// repository is no news: it would report its whole past.
func (t *txn) noteBacklog(old, now *Repo) {
	if t.watches.Len() == 0 || !old.Indexed() || slices.Equal(old.Revisions, now.Revisions) {
		return
	}
	b := Backlog{Repo: now.ID, From: old.Revisions, First: t.index}
	if before := t.backlogs.Get(now.ID); before != nil {
		b = *before
	}
	b.Last = t.index
	t.backlogs.Set(b.Repo, &b)
}

func (c *FinishChecks) apply(t *txn) Result {
	for _, check := range c.Checks {
		for i := range check.Notices {
			n := &check.Notices[i]
			if n.Watch == "" || n.ID == "" || len(n.ID) > 64 || len(n.Hits) == 0 || len(n.Hits) > maxHits || slices.ContainsFunc(n.Hits, Hit.large) {
				return refuse(Invalid, "a notice is malformed")
			}
		}
	}

	done, number := 0, numberAt(t.index)
	for _, check := range c.Checks {
		b := t.backlogs.Get(check.Repo)
		if b == nil || b.First != check.First {
			continue // another node has checked it
		}
		done++
		for _, n := range check.Notices {
			n.Repo, n.At, n.Number = check.Repo, t.now, number
			if t.addNotice(n) {
				number++
			}
		}
		t.moveBacklog(b, check.To)
	}
	if done == 0 {
		return refuse(Stale, "these checks were made already")
	}
	return Result{ID: t.index}
}

// large reports whether a text of a hit is beyond its limit.
func (h Hit) large() bool {
	return len(h.Commit) > 64 || len(h.Path) > maxHitPath || len(h.Title) > maxHitText || len(h.Author) > maxHitText
}

// moveBacklog notes that a repository was checked up to some revisions.
func (t *txn) moveBacklog(b *Backlog, to []Revision) {
	repo := t.repos.Get(b.Repo)
	switch {
	case len(to) == 0 && repo != nil && len(repo.Revisions) > 0:
	case repo == nil || slices.Equal(repo.Revisions, to):
		t.backlogs.Delete(b.Repo)
	default:
		moved := *b
		moved.From, moved.First = to, t.index
		t.backlogs.Set(b.Repo, &moved)
	}
}

// addNotice stores a notice without the hits that its watch has already. It reports whether any
// are left.
func (t *txn) addNotice(n Notice) bool {
	w := t.watches.Get(n.Watch)
	if w == nil {
		return false
	}

	// A check that is repeated, by another node or further on, reports nothing twice.
	var have, here []*Notice
	for old := range t.noticesOf(w.ID) {
		have = append(have, old)
		if old.Repo == n.Repo {
			here = append(here, old)
		}
	}
	n.Hits = slices.DeleteFunc(slices.Clone(n.Hits), func(h Hit) bool {
		return slices.ContainsFunc(here, func(old *Notice) bool { return slices.ContainsFunc(old.Hits, h.same) })
	})
	if len(n.Hits) == 0 {
		return false
	}
	switch {
	case len(here) >= maxNoticesOfRepo:
		t.giveUp(here[0])
	case len(have) >= maxNoticesOfOne:
		t.giveUp(have[0])
	}
	if t.notices.Len() >= maxNotices {
		t.giveUp(t.oldestNotice())
	}
	t.notices.Set(n.Number, &n)
	t.watchNotices.Set(noticeKey(&n), n.Number)
	return true
}

func (t *tables) oldestNotice() *Notice {
	for n := range t.notices.Records() {
		return n
	}
	return nil
}

func (h Hit) same(other Hit) bool { return h.Commit == other.Commit && h.Path == other.Path }

// giveUp removes a notice for which there is no room. If it was not sent yet, its watch counts it
// as missed.
func (t *txn) giveUp(n *Notice) {
	t.dropNotice(n)
	if w := t.watches.Get(n.Watch); w != nil && w.Sends() && w.Delivered < n.Number {
		now := *w
		now.Missed++
		t.watches.Set(now.ID, &now)
	}
}

func (c *NoteDeliveries) apply(t *txn) Result {
	for _, d := range c.Deliveries {
		w := t.watches.Get(d.Watch)
		if w == nil || len(d.Problem) > maxHitText {
			continue
		}
		now := *w
		now.Delivered = max(w.Delivered, d.Number)
		now.Missed, now.Failing, now.Problem = w.Missed+d.Missed, d.Failing, d.Problem
		t.watches.Set(now.ID, &now)
	}
	return Result{ID: t.index}
}

func noticeKey(n *Notice) string { return fmt.Sprintf("%s\x00%016x", n.Watch, n.Number) }

func (s *State) indexWatch(w *Watch) error {
	s.watchOwners.Set(ownedThread(w.Account, w.ID), struct{}{})
	if len(w.Feed) > 0 {
		s.watchFeeds.Set(string(w.Feed), w.ID)
	}
	return nil
}

func (s *State) indexNotice(n *Notice) error {
	s.watchNotices.Set(noticeKey(n), n.Number)
	return nil
}

// WatchesOf returns the watches of an account, by id.
func (t *tables) WatchesOf(account string) (all []*Watch) {
	for id := range tree.Under(t.watchOwners.From, ownedThread(account, "")) {
		all = append(all, t.watches.Get(id))
	}
	return all
}

// noticesOf iterates over the notices of a watch, the oldest first.
func (t *tables) noticesOf(watch string) iter.Seq[*Notice] {
	return func(yield func(*Notice) bool) {
		for _, number := range tree.Under(t.watchNotices.From, watch+"\x00") {
			if !yield(t.notices.Get(number)) {
				return
			}
		}
	}
}

// WatchByFeed returns the watch with a hash of the token of its feed, or nil.
func (v *View) WatchByFeed(hash []byte) *Watch {
	if id, ok := v.watchFeeds.Get(string(hash)); ok && len(hash) > 0 {
		return v.watches.Get(id)
	}
	return nil
}

// Watch returns the watch with an id, or nil.
func (v *View) Watch(id string) *Watch { return v.watches.Get(id) }

// Watches iterates over all watches by id.
func (v *View) Watches() iter.Seq[*Watch] { return v.watches.Records() }

// SameWatches reports whether another view has the same watches.
func (v *View) SameWatches(other *View) bool { return v.watches.Same(&other.watches) }

// SameNotices reports whether another view has the same notices and watches.
func (v *View) SameNotices(other *View) bool {
	return v.notices.Same(&other.notices) && v.SameWatches(other)
}

// NoticesOf returns the notices of a watch, the oldest first.
func (v *View) NoticesOf(watch string) []*Notice { return slices.Collect(v.noticesOf(watch)) }

// Backlogs iterates over the backlogs by repository.
func (v *View) Backlogs() iter.Seq[*Backlog] { return v.backlogs.Records() }

// SameBacklogs reports whether another view has the same backlogs.
func (v *View) SameBacklogs(other *View) bool { return v.backlogs.Same(&other.backlogs) }
