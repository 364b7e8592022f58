package catalog

import (
	"fmt"
	"testing"
	"time"
)

// consenting returns a catalog with an account and an API key of it, and a function that returns a
// PutConsent command for the account.
func consenting(t *testing.T) (b *book, consent func(id string) *PutConsent) {
	t.Helper()
	b = newBook(t)
	b.do(&PutAccount{Account: User{ID: "ann", Email: "ann@x", Role: RoleMember, State: AccountActive}})
	b.do(&CreateKey{Key{ID: "k", Name: "k", Account: "ann", Hash: make([]byte, 32), Role: RoleMember}})
	return b, func(id string) *PutConsent {
		return &PutConsent{Since: b.s.View().Account("ann").Changed,
			Consent: Consent{ID: id, Account: "ann", Client: make([]byte, 32), Name: "Agent", Expires: b.now.Add(90 * 24 * time.Hour)}}
	}
}

func TestPutConsent_codeIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	b, consent := consenting(t)
	again := consent("c")
	b.do(again)
	b.refused(Conflict, again)

	// An ended consent also blocks its id, for as long as its code could be shown.
	b.do(&EndConsents{IDs: []string{"c", "never"}})
	b.refused(Conflict, again)
	b.now = b.now.Add(rememberConsent + time.Second)
	b.do(consent("d"))
	if b.s.View().Consent("c") != nil {
		t.Error("a consent that ended long ago is kept")
	}
}

func TestRotateConsent_refreshTokenIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	b, consent := consenting(t)
	b.do(consent("c"))
	until := b.now.Add(time.Hour)
	if g := b.do(&RotateConsent{ID: "c", From: 1, Expires: until}); g != 2 {
		t.Errorf("generation %d after the first, want 2", g)
	}
	b.refused(Stale, &RotateConsent{ID: "c", From: 1, Expires: until})
	b.refused(Stale, &RotateConsent{ID: "c", From: 3, Expires: until})
	b.refused(NotFound, &RotateConsent{ID: "never", From: 1, Expires: until})
	b.refused(Invalid, &RotateConsent{ID: "c", From: 2, Expires: b.now})
	b.refused(Invalid, &RotateConsent{ID: "c", From: 2, Expires: b.now.Add(2 * maxConsentAge)})
	b.now = until
	b.refused(NotFound, &RotateConsent{ID: "c", From: 2, Expires: until.Add(time.Hour)})
}

func TestConsent_endsWithAccountOrKey(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(b *book){
		"by name":    func(b *book) { b.do(&EndConsents{IDs: []string{"c"}}) },
		"by account": func(b *book) { b.do(&EndConsents{Account: "ann"}) },
		"suspension": func(b *book) {
			b.do(&PutAccount{Account: User{ID: "ann", Email: "ann@x", Role: RoleMember, State: AccountSuspended}, Instead: b.s.View().Account("ann").Changed})
		},
		"deletion":       func(b *book) { b.do(&DeleteAccount{ID: "ann"}) },
		"revoked key":    func(b *book) { b.do(&RevokeKey{ID: "k"}) },
		"time":           func(b *book) { b.now = b.now.Add(90 * 24 * time.Hour) },
		"nothing at all": nil,
	} {
		b, consent := consenting(t)
		c := consent("c")
		c.Consent.Key = "k"
		b.do(c)
		if end == nil {
			b.do(&RotateConsent{ID: "c", From: 1, Expires: b.now.Add(time.Hour)})
			continue
		}
		end(b)
		if x := b.s.View().Consent("c"); x.Lives(b.now) {
			t.Errorf("%s does not end a consent", what)
		}
		b.refused(NotFound, &RotateConsent{ID: "c", From: 1, Expires: b.now.Add(time.Hour)})
	}
}

func TestPutConsent_refusedAfterAccountChange(t *testing.T) {
	t.Parallel()
	b, consent := consenting(t)
	before, revoked := consent("c"), consent("d")
	revoked.Consent.Key = "other"
	b.refused(NotFound, revoked)
	for _, state := range []AccountState{AccountSuspended, AccountActive} {
		b.do(&PutAccount{Account: User{ID: "ann", Email: "ann@x", Role: RoleMember, State: state}, Instead: b.s.View().Account("ann").Changed})
		b.refused(NotFound, before)
	}
	b.do(consent("c"))
}

func TestConsents_aboveTheLimitTheLeastUsedIsDeleted(t *testing.T) {
	t.Parallel()
	b, consent := consenting(t)
	for i := range maxConsentsOf + 3 {
		b.now = b.now.Add(time.Second)
		b.do(consent(fmt.Sprintf("c%03d", i)))
	}
	v := b.s.View()
	if v.Consent("c002") != nil || v.Consent("c003") == nil || v.Consent(fmt.Sprintf("c%03d", maxConsentsOf+2)) == nil {
		t.Error("the ones that were not used for longest did not make room")
	}
}

func TestDropSecrets_deletesNoPermanentSecret(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for _, name := range []string{"lasting", "ring/1", "ring/2"} {
		b.do(&SetSecret{Name: name, Sealed: []byte{1}})
	}
	b.do(&DropSecrets{Names: []string{"lasting", "ring/1", "never/1"}})
	v := b.s.View()
	if v.Secret("lasting") == nil || v.Secret("ring/1") != nil || v.Secret("ring/2") == nil {
		t.Error("the wrong secrets were dropped")
	}
}
