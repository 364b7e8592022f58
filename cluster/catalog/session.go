package catalog

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
)

// Session is a browser in which someone is signed in. The token in its cookie is not stored, only
// its hash.
type Session struct {
	ID      string // public, for lists and logs
	Hash    []byte // HMAC-SHA-256 of the token
	Account string // "" for a key without an account
	Key     string // id of the API key used to sign in; "" otherwise
	Method  string // how they signed in: key, password, or a provider's name
	Created time.Time
	Used    time.Time     // last use, recorded from time to time
	Expires time.Time     // ends then, even if it is in use
	Idle    time.Duration // ends when unused for that long
	Address string        // of the client at sign-in
	Agent   string        // the browser's own description
}

// Ended reports whether a session has ended at a time.
func (s *Session) Ended(now time.Time) bool {
	return !now.Before(s.Expires) || !now.Before(s.Used.Add(s.Idle))
}

// PutSession adds a session. An account with too many loses the least recently used one.
type PutSession struct{ Session Session }

// EndSessions removes sessions with these ids, and all of an account but one. Unknown ids are
// ignored.
type EndSessions struct {
	IDs     []string
	Account string // "": only the ids
	But     string // id of a session of the account that stays; "": none
}

// TouchSessions records when sessions were last used, and removes ended ones.
type TouchSessions struct {
	Used time.Time
	IDs  []string
}

// Limits of sessions.
const (
	maxSessions   = 100000
	maxSessionsOf = 50 // per account, or per key without an account
	maxSessionAge = 400 * 24 * time.Hour
	maxAgentText  = 300
)

// malformedReason returns why a session is malformed, or "".
func (s *Session) malformedReason(now time.Time) string {
	switch {
	case s.ID == "" || len(s.ID) > 64 || len(s.Hash) != keyHashLen || s.Account == "" && s.Key == "":
		return "the session is malformed"
	case len(s.Method) > maxNameText || len(s.Address) > maxNameText || len(s.Agent) > maxAgentText:
		return "the session is malformed"
	case s.Idle <= 0 || s.Idle > maxSessionAge || s.Expires.After(now.Add(maxSessionAge)):
		return "the session lasts too long"
	}
	return ""
}

func (c *PutSession) apply(t *txn) Result {
	s := c.Session
	if why := s.malformedReason(t.now); why != "" {
		return refuse(Invalid, why)
	}

	// Refuse if the account was suspended while the person signed in.
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

// makeRoomForSession removes ended sessions of the same account or key, and beyond the limit the
// least recently used ones.
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

// endSessions removes the sessions for which gone holds.
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

// SessionByHash returns the session with the HMAC of a token, or nil.
func (v *View) SessionByHash(hash []byte) *Session {
	return lookup(&v.sessionHashes, string(hash), &v.sessions)
}

// Session returns the session with an id, or nil.
func (v *View) Session(id string) *Session { return v.sessions.Get(id) }

// Sessions iterates over all sessions by id, including ended ones.
func (v *View) Sessions() iter.Seq[*Session] { return v.sessions.Records() }
