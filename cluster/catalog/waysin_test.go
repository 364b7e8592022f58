package catalog

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

func linkOf(b *book, id, account string) *PutLink {
	return &PutLink{Link{ID: id, Hash: bytes.Repeat([]byte(id), keyHashLen)[:keyHashLen], Account: account, Expires: b.now.Add(time.Hour)}}
}

func TestPasswordLink_isRefusedTheSecondTimeAndForOthers(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.person("ann", RoleMember)
	b.person("bob", RoleMember)
	b.do(linkOf(b, "1", "ann"))
	b.do(linkOf(b, "2", "ann")) // replaces the first link
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

func TestLinkIdentity_oneIdentityBelongsToOneAccount(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.person("ann", RoleMember)
	b.person("bob", RoleMember)
	known := Identity{Provider: "p", Subject: "7", Account: "ann"}
	b.do(&LinkIdentity{Identity: known})
	b.do(&LinkIdentity{Identity: known}) // again, perhaps with a new login
	taken := known
	taken.Account = "bob"
	b.refused(Conflict, &LinkIdentity{Identity: taken})
	b.refused(Conflict, &UnlinkIdentity{Account: "ann", Provider: "p", Subject: "7"})
	b.refused(NotFound, &UnlinkIdentity{Account: "bob", Provider: "p", Subject: "7"})
	b.do(&SetPassword{Account: "ann", Hash: "h"})
	b.refused(Conflict, &UnlinkIdentity{Account: "ann", Provider: "p", Subject: "7", NoPassword: true})
	b.do(&UnlinkIdentity{Account: "ann", Provider: "p", Subject: "7"})

	// Join creates both the account and the identity, or neither.
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

// Only providers that are configured for sign-in count as ways in. A code host that only provides
// permissions does not.
func TestUnlinkIdentity_isRefusedForTheLastWayToSignIn(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.person("ann", RoleMember)
	for _, provider := range []string{"sso", "other", "host"} {
		b.do(&LinkIdentity{Identity: Identity{Provider: provider, Subject: "1", Account: "ann"}})
	}
	unlink := func(provider string) *UnlinkIdentity {
		return &UnlinkIdentity{Account: "ann", Provider: provider, Subject: "1", SignIn: []string{"sso", "other"}}
	}
	b.do(unlink("other"))
	b.refused(Conflict, unlink("sso"))
	b.do(unlink("host"))
	b.refused(Conflict, unlink("sso"))
}

func TestLinkIdentity_byEmailNeedsProofOnBothSides(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.do(&PutAccount{Account: User{ID: "ann", Email: "ann@x", Role: RoleMember, State: AccountActive}})
	b.do(&Join{User{ID: "bob", Email: "bob@x", Role: RoleMember, State: AccountActive, Unproven: true}, Identity{Provider: "p", Subject: "bob", Account: "bob"}})
	by := func(account, email, provider, subject string, proven bool) *LinkIdentity {
		return &LinkIdentity{Identity: Identity{Provider: provider, Subject: subject, Account: account, Email: email}, ByEmail: true, Proven: proven}
	}
	b.refused(Conflict, by("ann", "ann@x", "p", "1", false)) // the provider has not proven the address
	b.refused(Conflict, by("ann", "ann@y", "p", "1", true))  // another address
	b.refused(Conflict, by("bob", "bob@x", "q", "1", true))  // nobody proved that the account has the address
	b.do(by("ann", "ann@x", "p", "1", true))
	b.do(by("ann", "ann@x", "p", "1", true))
	b.refused(Conflict, by("ann", "ann@x", "p", "2", true)) // another person at the provider has the address now

	// A provider that a signed-in person links proves the address.
	b.do(&LinkIdentity{Identity: Identity{Provider: "q", Subject: "9", Account: "bob", Email: "bob@x"}, Proven: true})
	if b.s.View().Account("bob").Unproven {
		t.Error("the address is still unproven")
	}
	b.do(by("bob", "bob@x", "r", "1", true))
}

// Anybody with an account at a public provider can sign up, but they cannot fill the catalog.
func TestSignUps_aboveTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	join := func(i int, state AccountState) *Join {
		id := fmt.Sprint("u", i)
		return &Join{User{ID: id, Email: id + "@x", Role: RoleMember, State: state}, Identity{Provider: "p", Subject: id, Account: id}}
	}
	for i := range maxPending {
		b.do(join(i, AccountPending))
	}
	b.refused(Conflict, join(maxPending, AccountPending))
	b.do(join(maxPending, AccountActive))
	b.do(&DeleteAccount{ID: "u0"})
	b.do(join(maxPending+1, AccountPending))
}
