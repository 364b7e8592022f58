package catalog

import (
	"strings"
	"testing"
)

// What decides is named, with how old the answer is that it stands on.
func TestWhereARightComesFromIsTold(t *testing.T) {
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
		b.sees("ann") // which compares the reasons with what holds
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

	a := *b.s.View().Account("ann")
	a.State = AccountSuspended
	b.do(&PutAccount{Account: a, Instead: a.Changed})
	check(ids[2], "!account +open +grant@ -sync")
}
