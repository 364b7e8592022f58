package catalog

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// sessionOf returns a session that a test begins.
func sessionOf(b *book, n byte, account string) *PutSession {
	return &PutSession{Session{ID: fmt.Sprint("s", n), Hash: bytes.Repeat([]byte{n}, keyHashLen), Account: account, Idle: time.Hour, Expires: b.now.Add(10 * time.Hour)}}
}

func (b *book) sessions() (ids string) {
	for s := range b.s.View().Sessions() {
		ids += s.ID + " "
	}
	return ids
}

func (b *book) person(id string, role Role) *User {
	b.t.Helper()
	b.do(&PutAccount{Account: User{ID: id, Email: id + "@x", Role: role, State: AccountActive}})
	return b.s.View().Account(id)
}

func TestSessions_endWithTheirAccountOrKey(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.person("root", RoleOwner)
	for i, id := range []string{"ann", "bob", "cat"} {
		b.person(id, RoleMember)
		b.do(sessionOf(b, byte(i+1), id))
	}
	b.do(&CreateKey{Key{ID: "k", Name: "k", Hash: bytes.Repeat([]byte{99}, keyHashLen), Account: "cat", Role: RoleMember}})
	byKey := sessionOf(b, 4, "cat")
	byKey.Session.Key = "k"
	b.do(byKey)

	ann := *b.s.View().Account("ann")
	ann.State = AccountSuspended
	b.do(&PutAccount{Account: ann, Instead: ann.Changed})
	if got := b.sessions(); got != "s2 s3 s4 " {
		t.Errorf("after a suspension there are %s", got)
	}
	b.refused(NotFound, sessionOf(b, 5, "ann"))

	b.do(&DeleteAccount{ID: "bob"})
	if got := b.sessions(); got != "s3 s4 " {
		t.Errorf("after a deletion there are %s", got)
	}
	b.do(&RevokeKey{ID: "k"})
	if got := b.sessions(); got != "s3 " {
		t.Errorf("after the key was revoked there are %s", got)
	}
	if b.s.View().SessionByHash(bytes.Repeat([]byte{4}, keyHashLen)) != nil || b.s.View().SessionByHash(bytes.Repeat([]byte{3}, keyHashLen)) == nil {
		t.Error("the hashes are not those of the sessions that are there")
	}
}

func TestSessions_expireAndAboveTheLimitTheOldestEnds(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.person("ann", RoleMember)
	b.person("bob", RoleMember)
	b.do(sessionOf(b, 200, "bob"))
	for n := range byte(maxSessionsOf + 3) {
		b.now = b.now.Add(time.Second)
		b.do(sessionOf(b, n+1, "ann"))
	}
	v := b.s.View()
	if n := v.sessions.Len(); n != maxSessionsOf+1 || v.Session("s3") != nil || v.Session("s4") == nil || v.Session("s200") == nil {
		t.Errorf("%d sessions are left: %s", n, b.sessions())
	}

	// Use extends a session, but not beyond Expires.
	for range 9 {
		b.now = b.now.Add(59 * time.Minute)
		b.do(&TouchSessions{Used: b.now, IDs: []string{"s10"}})
	}
	if got := b.sessions(); got != "s10 " {
		t.Errorf("of those that nobody used there are %s", got)
	}
	b.now = b.now.Add(70 * time.Minute)
	if !b.s.View().Session("s10").Ended(b.now) {
		t.Error("a session in use goes on past its end")
	}
	b.do(&TouchSessions{Used: b.now, IDs: []string{"s10"}})
	if got := b.sessions(); got != "" {
		t.Errorf("past the end there are %s", got)
	}
}

func TestEndSessions_doesNotEndTheCurrentOne(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.person("ann", RoleMember)
	b.person("bob", RoleMember)
	for n, id := range []string{"ann", "ann", "ann", "bob"} {
		b.do(sessionOf(b, byte(n+1), id))
	}
	b.do(&EndSessions{Account: "ann", But: "s2"})
	if got := b.sessions(); got != "s2 s4 " {
		t.Errorf("there are %s", got)
	}
	b.do(&EndSessions{IDs: []string{"s2", "never"}})
	if got := b.sessions(); got != "s4 " {
		t.Errorf("there are %s", got)
	}
}
