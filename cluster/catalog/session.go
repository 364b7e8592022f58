package catalog

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
)

// Session is a browser that somebody signed in with. The token in its cookie
// is not kept, only a hash of it.
type Session struct {
	ID      string // public, in lists and logs
	Hash    []byte // HMAC-SHA-256 of the token
	Account string // who signed in; "" for a key of nobody
	Key     string // id of the API key that was shown; "" for other ways to sign in
	Method  string // how they signed in: key, password, or a provider's name
	Created time.Time
	Used    time.Time     // last use, noted from time to time
	Expires time.Time     // ends then, however much it is used
	Idle    time.Duration // ends when it was not used for that long
	Address string        // where they signed in from
	Agent   string        // what the browser said of itself
}

// Ended reports whether a session has come to its end at a time.
func (s *Session) Ended(now time.Time) bool {
	return !now.Before(s.Expires) || !now.Before(s.Used.Add(s.Idle))
}

// PutSession adds a session. Whoever has very many loses the one that was not
// used for longest.
type PutSession struct{ Session Session }

// EndSessions removes sessions: some by their ids, or all of an account but
// one. What is not there is no failure.
type EndSessions struct {
	IDs     []string
	Account string // "" for none but the ids
	But     string // id of the one of the account that stays; "" for none
}

// TouchSessions notes when sessions were last used, and removes those that
// have ended.
type TouchSessions struct {
	Used time.Time
	IDs  []string
}

// Bounds of sessions.
const (
	maxSessions    = 100000
	maxSessionsOf  = 50 // one account or key of nobody
	longestSession = 400 * 24 * time.Hour
	maxAgentText   = 300
)

// mistake is why a session cannot be kept as it is; "" where it can.
func (s *Session) mistake(now time.Time) string {
	switch {
	case s.ID == "" || len(s.ID) > 64 || len(s.Hash) != keyHashLen || s.Account == "" && s.Key == "":
		return "the session is malformed"
	case len(s.Method) > maxNameText || len(s.Address) > maxNameText || len(s.Agent) > maxAgentText:
		return "the session is malformed"
	case s.Idle <= 0 || s.Idle > longestSession || s.Expires.After(now.Add(longestSession)):
		return "the session lasts too long"
	}
	return ""
}

func (c *PutSession) apply(t *txn) Result {
	s := c.Session
	if why := s.mistake(t.now); why != "" {
		return refuse(Invalid, why)
	}

	// Whoever signs in at the moment when they are suspended does not come in.
	if a := t.accounts.Get(s.Account); s.Account != "" && (a == nil || a.State != AccountActive) {
		return refuse(NotFound, "the account may not sign in")
	}
	if k := t.keys.Get(s.Key); s.Key != "" && (k == nil || k.Account != s.Account) {
		return refuse(NotFound, "there is no such key")
	}
	if _, taken := t.sessionHashes.Get(string(s.Hash)); taken || t.sessions.Get(s.ID) != nil {
		return refuse(Conflict, "the session exists")
	}

	if t.sessions.Len() >= maxSessions {
		return refuse(Conflict, "there are too many sessions")
	}
	t.makeRoomForSession(&s)
	s.Created, s.Used, s.Expires = t.now, t.now, codec.FromMillis(codec.ToMillis(s.Expires))
	t.sessions.Set(s.ID, &s)
	t.sessionHashes.Set(string(s.Hash), s.ID)
	return Result{ID: t.index}
}

// makeRoomForSession removes those of the same account or key that have
// ended, and where there are still very many, the ones not used for longest.
func (t *txn) makeRoomForSession(s *Session) {
	same := t.sessions.Where(func(old *Session) bool {
		return old.Account == s.Account && (s.Account != "" || old.Key == s.Key)
	})
	slices.SortStableFunc(same, func(a, b *Session) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) })
	for i, old := range same {
		if i >= maxSessionsOf-1 || old.Ended(t.now) {
			t.endSession(old)
		}
	}
}

func (c *EndSessions) apply(t *txn) Result {
	for _, id := range c.IDs {
		if s := t.sessions.Get(id); s != nil {
			t.endSession(s)
		}
	}
	if c.Account != "" {
		t.endSessions(func(s *Session) bool { return s.Account == c.Account && s.ID != c.But })
	}
	return Result{ID: t.index}
}

func (c *TouchSessions) apply(t *txn) Result {
	used := codec.FromMillis(codec.ToMillis(c.Used))
	for _, id := range c.IDs {
		if old := t.sessions.Get(id); old != nil && used.After(old.Used) && !old.Ended(t.now) {
			s := *old
			s.Used = used
			t.sessions.Set(id, &s)
		}
	}
	t.endSessions(func(s *Session) bool { return s.Ended(t.now) })
	return Result{}
}

// endSessions removes the sessions for which a condition holds.
func (t *txn) endSessions(gone func(*Session) bool) {
	for _, s := range t.sessions.Where(gone) {
		t.endSession(s)
	}
}

func (t *txn) endSession(s *Session) {
	t.sessionHashes.Delete(string(s.Hash))
	t.sessions.Delete(s.ID)
}

func (s *State) indexSession(x *Session) error {
	if _, taken := s.sessionHashes.Get(string(x.Hash)); taken {
		return fmt.Errorf("session %s has the hash of another", x.ID)
	}
	s.sessionHashes.Set(string(x.Hash), x.ID)
	return nil
}

// SessionByHash finds a session by the HMAC of its token, or returns nil.
func (v *View) SessionByHash(hash []byte) *Session {
	return lookup(&v.sessionHashes, string(hash), &v.sessions)
}

// Session returns nil when there is none of that id.
func (v *View) Session(id string) *Session { return v.sessions.Get(id) }

// Sessions goes through them by id; some may have ended.
func (v *View) Sessions() iter.Seq[*Session] { return v.sessions.Records() }
