package catalog

import (
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// token returns a host token of the person p0.
func token(sealed string) HostToken {
	return HostToken{Provider: hProvider, Subject: "p0", Site: hSite, Sealed: []byte(sealed)}
}

// kept returns the stored token of p0, and whether a job that asks the host is queued.
func (b *book) kept() (sealed string, asked bool) {
	v := b.s.View()
	if x := v.IdentityAt(hSite, "p0"); x != nil {
		sealed = string(v.HostToken(x).Sealed)
	}
	return sealed, v.Job(JobAccountSync, ReaderKey(hSite, "p0")) != nil
}

// A token stays as long as its identity and the account's right to sign in. A job may only replace
// the token that it used.
func TestHostToken_isDeletedWithItsIdentity(t *testing.T) {
	t.Parallel()
	ends := map[string]Command{
		"unlinked":  &UnlinkIdentity{Account: "ann", Provider: hProvider, Subject: "p0"},
		"suspended": &PutAccount{Account: User{ID: "ann", Email: "ann@x", Role: RoleMember, State: AccountSuspended}},
		"deleted":   &DeleteAccount{ID: "ann"},
	}
	for what, end := range ends {
		b, _ := observed(t, 1)
		b.do(&PutAccount{Account: User{ID: "root", Email: "root@x", Role: RoleOwner, State: AccountActive}})
		b.do(&SetPassword{Account: "ann", Hash: "h"})
		b.do(&PutHostToken{Token: token("1"), Account: "ann", Ask: true})
		if sealed, asked := b.kept(); sealed != "1" || !asked {
			t.Fatalf("%s: the token is %q, asked %t", what, sealed, asked)
		}
		if c, ok := end.(*PutAccount); ok {
			c.Instead = b.s.View().Account("ann").Changed
		}
		b.do(end)
		if sealed, asked := b.kept(); sealed != "" || asked {
			t.Errorf("%s: the token is %q, asked %t", what, sealed, asked)
		}
		b.refused(NotFound, &PutHostToken{Token: token("2"), Account: "ann"})
	}
}

func TestHostToken_aJobReplacesOnlyTheTokenItUsed(t *testing.T) {
	t.Parallel()
	b, _ := observed(t, 1)
	b.refused(NotFound, &PutHostToken{Token: token("1"), Account: "ben"})
	b.do(&PutHostToken{Token: token("1"), Account: "ann", Ask: true})
	fence := b.grant(JobAccountSync, ReaderKey(hSite, "p0"))
	used := b.s.View().HostToken(b.s.View().IdentityAt(hSite, "p0")).Set

	b.refused(Stale, &PutHostToken{Token: token("2"), Account: "ann", Fence: fence - 1, Instead: used})
	b.do(&PutHostToken{Token: token("2"), Account: "ann", Fence: fence, Instead: used})
	b.refused(Stale, &PutHostToken{Token: token("3"), Account: "ann", Fence: fence, Instead: used})
	if sealed, _ := b.kept(); sealed != "2" {
		t.Errorf("the token is %q", sealed)
	}

	// A token from a sign-in meanwhile stays.
	b.do(&PutHostToken{Token: token("4"), Account: "ann"})
	b.refused(Invalid, &PutHostToken{Token: token(""), Account: "ann"})
	if sealed, _ := b.kept(); sealed != "4" {
		t.Errorf("the token is %q", sealed)
	}
}

// An expired listing removes only what it alone allowed. A later answer about a repository stays.
func TestExpireAccess_keepsAnswersThatCameAfterTheExpiredList(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 3)
	b.endOfRepo(ids[0], b.begin(JobRepoSync, RepoSubject(ids[0])), []bool{true}) // before the listing
	b.endOfPerson(ids, "p0", b.begin(JobAccountSync, ReaderKey(hSite, "p0")), []bool{true, true, true})
	b.now = b.now.Add(time.Hour)
	b.endOfRepo(ids[1], b.begin(JobRepoSync, RepoSubject(ids[1])), []bool{true}) // after the listing
	if got := b.sees("ann"); !slices.Equal(got, ids) {
		t.Fatalf("ann sees %v", got)
	}

	b.do(&AgeAccess{Before: b.now, Readers: []string{ReaderKey(hSite, "p0")}})
	if got := b.sees("ann"); !slices.Equal(got, ids[1:2]) {
		t.Errorf("with an old listing ann sees %v, want %v", got, ids[1:2])
	}
	b.endOfPerson(ids, "p0", b.begin(JobAccountSync, ReaderKey(hSite, "p0")), []bool{true, true, true})
	if got := b.sees("ann"); !slices.Equal(got, ids) {
		t.Errorf("after a new one ann sees %v", got)
	}
}

// A deleted repository is also deleted from listings of readers.
func TestFinishCollect_removesTheRepositoryFromReaderListings(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 1)
	b.endOfPerson(ids, "p0", b.begin(JobAccountSync, ReaderKey(hSite, "p0")), []bool{true})
	fence := b.begin(JobSync, "host")
	b.do(&FinishSync{Connection: "host", Fence: fence, Complete: true})
	b.do(&EnqueueJob{Kind: JobCollect, Subject: RepoSubject(ids[0])})
	b.do(&FinishCollect{Repo: ids[0], Fence: b.grant(JobCollect, RepoSubject(ids[0]))})
	if r := b.s.View().Reader(hSite, "p0"); !r.Complete().Equals(roaring.New()) {
		t.Errorf("they may read %v", r.Complete())
	}
}

// Status and metrics ask who is known to a host for each person at once.
func TestSiteOfIdentity_allocatesNothing(t *testing.T) { // alone, as it counts allocations
	b, _ := observed(t, 1)
	b.do(&PutHostToken{Token: token("1"), Account: "ann", Ask: true})
	view := b.s.View()
	known := view.IdentityAt(hSite, "p0")
	if known == nil || view.SiteOfIdentity(known) != hSite {
		t.Fatalf("p0 of %s is %+v", hSite, known)
	}
	if n := testing.AllocsPerRun(100, func() { view.SiteOfIdentity(known) }); n > 0 {
		t.Errorf("the host of an identity takes %v allocations, want none", n)
	}
}
