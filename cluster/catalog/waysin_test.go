package catalog

import (
	"bytes"
	"testing"
	"time"
)

func linkOf(b *book, id, account string) *PutLink {
	return &PutLink{Link{ID: id, Hash: bytes.Repeat([]byte(id), keyHashLen)[:keyHashLen], Account: account, Expires: b.now.Add(time.Hour)}}
}

func TestALinkIsGoodOnceAndForItsAccount(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.person("ann", RoleMember)
	b.person("bob", RoleMember)
	b.do(linkOf(b, "1", "ann"))
	b.do(linkOf(b, "2", "ann")) // in place of the first
	b.do(sessionOf(b, 1, "ann"))
	b.refused(NotFound, &SetPassword{Account: "ann", Hash: "h", Link: "1"})
	b.refused(NotFound, &SetPassword{Account: "bob", Hash: "h", Link: "2"})
	b.do(&SetPassword{Account: "ann", Hash: "h", Link: "2"})
	b.refused(NotFound, &SetPassword{Account: "ann", Hash: "other", Link: "2"})
	if p := b.s.View().PasswordOf("ann"); p == nil || p.Hash != "h" || b.sessions() != "" {
		t.Errorf("the password is %+v, sessions of before: %q", p, b.sessions())
	}

	b.do(linkOf(b, "3", "ann"))
	b.now = b.now.Add(time.Hour)
	b.refused(NotFound, &LinkIdentity{Identity: Identity{Provider: "p", Subject: "1", Account: "ann"}, Link: "3"})
	b.do(linkOf(b, "4", "ann"))
	ann := *b.s.View().Account("ann")
	ann.State = AccountSuspended
	b.do(&PutAccount{Account: ann, Instead: ann.Changed})
	b.refused(NotFound, &SetPassword{Account: "ann", Hash: "h", Link: "4"})
	b.refused(NotFound, linkOf(b, "5", "ann"))
}

func TestSomebodyAtAProviderIsOneAccount(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.person("ann", RoleMember)
	b.person("bob", RoleMember)
	known := Identity{Provider: "p", Subject: "7", Account: "ann"}
	b.do(&LinkIdentity{Identity: known})
	b.do(&LinkIdentity{Identity: known}) // again, with a new name perhaps
	taken := known
	taken.Account = "bob"
	b.refused(Conflict, &LinkIdentity{Identity: taken})
	b.refused(Conflict, &UnlinkIdentity{Account: "ann", Provider: "p", Subject: "7"})
	b.refused(NotFound, &UnlinkIdentity{Account: "bob", Provider: "p", Subject: "7"})
	b.do(&SetPassword{Account: "ann", Hash: "h"})
	b.do(&UnlinkIdentity{Account: "ann", Provider: "p", Subject: "7"})

	// Whoever joins is an account and an identity, or neither.
	join := func(id, email, subject string) *Join {
		return &Join{User{ID: id, Email: email, Role: RoleMember, State: AccountPending}, Identity{Provider: "p", Subject: subject, Account: id}}
	}
	b.refused(Conflict, join("cat", "ann@x", "8"))
	b.do(join("cat", "cat@x", "8"))
	b.refused(Conflict, join("dan", "dan@x", "8"))
	if a := b.s.View().Account("cat"); a == nil || a.State != AccountPending || b.s.View().Identity("p", "8").Account != "cat" {
		t.Errorf("who joined is %+v", a)
	}
	b.refused(NotFound, sessionOf(b, 1, "cat"))
	b.do(&DeleteAccount{ID: "cat"})
	if v := b.s.View(); v.Identity("p", "8") != nil || len(v.IdentitiesOf("cat")) != 0 {
		t.Error("the identity of a deleted account is there")
	}
}
