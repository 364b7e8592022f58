package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// Why names the deciding reasons, and how old the answers behind them are.
func TestWhyVisible_namesTheDecidingReasonsWithTheirAge(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 3)
	why := func(account string, repo RepoID) (out string) {
		view := b.s.View()
		for _, r := range view.Why(view.Account(account), view.Repo(repo)) {
			if mark := map[bool]string{true: "+", false: "-"}[r.Sees]; r.Stops {
				out += " !" + r.Kind
			} else {
				out += " " + mark + r.Kind
			}
			if !r.At.IsZero() {
				out += "@"
			}
			if r.Text == "" || !strings.HasSuffix(r.Text, ".") && !strings.Contains(r.Text, ": ") {
				t.Errorf("%s says %q", r.Kind, r.Text)
			}
		}
		return strings.TrimSpace(out)
	}
	check := func(repo RepoID, want string) {
		t.Helper()
		b.sees("ann") // sees also compares the reasons with the visible set
		if got := why("ann", repo); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}

	check(ids[0], "-closed -grant -host_by_person")
	b.endOfPerson(ids, "p0", b.begin(JobAccountSync, ReaderKey(hSite, "p0")), []bool{true, false, false})
	check(ids[0], "-closed -grant +host_by_person@")
	check(ids[1], "-closed -grant -host_by_person@")
	b.endOfRepo(ids[1], b.begin(JobRepoSync, RepoSubject(ids[1])), []bool{true})
	check(ids[1], "-closed -grant +host_by_repository@")

	b.do(&SetGrants{Account: "ann", Source: GrantedByOwner, Add: []RepoID{ids[2]}})
	check(ids[2], "-closed +grant@ -host_by_person@")
	b.do(&RefuseReader{Site: hSite, Subject: "p0", Fence: b.begin(JobAccountSync, ReaderKey(hSite, "p0")), Issue: "the token was taken back"})
	check(ids[2], "-closed +grant@ -host_account@ -host_by_person@")
	b.do(&SayPermissionSync{Node: "n1", Permissions: PermissionSyncUnset})
	check(ids[2], "+open +grant@ -sync")

	b.do(&PutAccount{Account: User{ID: "bob", Email: "bob@x", Role: RoleOwner, State: AccountActive}}) // the last active owner could not be suspended
	owner := *b.s.View().Account("ann")
	owner.Role = RoleOwner
	b.do(&PutAccount{Account: owner, Instead: owner.Changed})
	check(ids[2], "-role +open +grant@ -sync")

	a := *b.s.View().Account("ann")
	a.State = AccountSuspended
	b.do(&PutAccount{Account: a, Instead: a.Changed})
	check(ids[2], "!account -role +open +grant@ -sync")
}

// A reason from a host names the person there, the token's connection, and what the host left out.
func TestWhyVisible_namesPersonAndConnection(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 2)
	b.do(&LinkIdentity{Identity: Identity{Provider: hProvider, Subject: "p0", Account: "ann", Login: "annie"}})
	last := func(repo RepoID) Reason {
		view := b.s.View()
		all := view.Why(view.Account("ann"), view.Repo(repo))
		return all[len(all)-1]
	}
	say := func(repo RepoID, want string, connections ...string) {
		t.Helper()
		r := last(repo)
		if r.Text != want || r.Person != "annie (p0)" || !slices.Equal(r.Connections, connections) {
			t.Errorf("%q of %q by %q, want %q by %q", r.Text, r.Person, r.Connections, want, connections)
		}
	}

	say(ids[0], "bitbucket:h.example.com has not said yet what annie (p0) may read.")
	b.endOfPerson(ids, "p0", b.begin(JobAccountSync, ReaderKey(hSite, "p0")), []bool{true, false})
	say(ids[0], "bitbucket:h.example.com lists it as one that annie (p0) may read, asked with the person's own token.")
	b.endOfRepo(ids[1], b.begin(JobRepoSync, RepoSubject(ids[1])), []bool{true})
	say(ids[1], "bitbucket:h.example.com lists annie (p0) as a reader of it, asked with the token of host.", "host")

	fence := b.begin(JobAccountSync, ReaderKey(hSite, "p0"))
	list := encodeSet(roaring.BitmapOf(ids...))
	b.do(&FinishReaderAccess{Site: hSite, Subject: "p0", Fence: fence, Instead: b.s.View().Reader(hSite, "p0").Changed, Remove: list, Note: "without the organisations acme"})
	say(ids[0], "bitbucket:h.example.com names it neither among what annie (p0) may read, nor annie (p0) among its readers. Its last list of the person's was not whole: without the organisations acme")
}
