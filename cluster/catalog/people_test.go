package catalog

import (
	"fmt"
	"testing"
)

// permit returns a catalog with an enforcing connection and an open one. Each has a public and a
// private repository, and both list one repository.
func permit(t *testing.T, publicToo bool) (*book, map[string]RepoID) {
	t.Helper()
	b := newBook(t)
	b.member("n1")
	raw := fmt.Sprintf(`{"connections":{"loose":{"type":"git","url":"file:///a"},"strict":{"type":"gitea","enforcePermissions":true,"enforcePermissionsForPublicRepos":%t}}}`, publicToo)
	b.do(&SetConfig{Raw: []byte(raw), Hash: hashText(raw), Instead: InsteadOfAny, Connections: []ConnectionDef{{"loose", "git", "1"}, {"strict", "gitea", "1"}}})
	for connection, repos := range map[string][]ListedRepo{
		"loose":  {{Name: "l-private", RepoFacts: RepoFacts{Visibility: Private}}, {Name: "both", RepoFacts: RepoFacts{Visibility: Private, ExternalID: "x"}}},
		"strict": {{Name: "s-private", RepoFacts: RepoFacts{Visibility: Private}}, {Name: "s-internal", RepoFacts: RepoFacts{Visibility: Internal}}, {Name: "s-public", RepoFacts: RepoFacts{Visibility: Public, Public: true}}, {Name: "both", RepoFacts: RepoFacts{Visibility: Private, ExternalID: "x"}}},
	} {
		b.do(&EnqueueJob{Kind: JobSync, Subject: connection, Urgent: true})
		fence := b.grant(JobSync, connection)
		b.do(&SyncPage{Connection: connection, Fence: fence, Repos: repos})
		b.do(&FinishSync{Connection: connection, Fence: fence, Complete: true, Listed: uint32(len(repos))})
	}
	ids := map[string]RepoID{}
	for r := range b.s.View().Repos() {
		ids[r.Name] = r.ID
	}
	return b, ids
}

func TestVisibleRepositories_obeyEnforcedPermissions(t *testing.T) {
	t.Parallel()
	b, ids := permit(t, false)
	for _, id := range []string{"ann", "root", "gone"} {
		role := RoleMember
		if id == "root" {
			role = RoleOwner
		}
		b.do(&PutAccount{Account: User{ID: id, Email: id + "@x", Role: role, State: AccountActive}})
		b.do(&SetGrants{Account: id, Source: GrantedByOwner, Add: []RepoID{ids["s-private"]}})
	}
	b.do(&SetGrants{Account: "root", Source: GrantedByOwner, Remove: []RepoID{ids["s-private"]}})
	gone := b.s.View().Account("gone")
	b.do(&PutAccount{Account: User{ID: "gone", Email: "gone@x", Role: RoleMember, State: AccountSuspended}, Instead: gone.Changed})

	check := func(what string, who Viewer, want string) {
		t.Helper()
		var got string
		v := b.s.View()
		for _, name := range []string{"both", "l-private", "s-internal", "s-private", "s-public"} {
			if v.Visible(who).Contains(ids[name]) {
				got += name + " "
			}
		}
		if got != want {
			t.Errorf("%s sees %q, want %q", what, got, want)
		}
	}
	const all, open = "both l-private s-internal s-private s-public ", "l-private s-public "
	check("the operator", Operator(), all)
	check("a key for all", Viewer{Role: RoleMember, All: true}, all)
	check("a guest", Guest(), open)
	check("nobody", Viewer{}, "")
	check("a key for metrics", Viewer{Role: RoleMetrics}, "")
	check("a key of nobody, of an owner too", Viewer{Role: RoleOwner}, open)
	check("a member", Viewer{Role: RoleMember, Account: "ann"}, "l-private s-private s-public ")
	check("an owner without grants", Viewer{Role: RoleOwner, Account: "root"}, open)
	check("a suspended account", Viewer{Role: RoleMember, Account: "gone"}, "")
	check("a deleted account", Viewer{Role: RoleMember, Account: "never"}, "")

	b.do(&SetGrants{Account: "ann", Source: GrantedByOwner, Remove: []RepoID{ids["s-private"]}})
	check("a member after the revocation", Viewer{Role: RoleMember, Account: "ann"}, open)
	if !b.s.View().Enforces() {
		t.Error("nothing is enforced")
	}
}

func TestPublicRepository_isHiddenFromGuestsWherePermissionsCoverPublicOnes(t *testing.T) {
	t.Parallel()
	b, ids := permit(t, true)
	if b.s.View().Visible(Guest()).Contains(ids["s-public"]) {
		t.Error("a guest sees a public repository of a connection that enforces public ones too")
	}
}

// If the configuration cannot be read, its enforcement is unknown, so nothing is open.
func TestVisibleRepositories_noneArePublicIfTheConfigurationIsUnreadable(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.member("n1")
	b.configure("a")
	b.listing("a", "r")
	v := b.s.View()
	if v.FileError() == nil || !v.Visible(Guest()).IsEmpty() || v.Visible(Operator()).IsEmpty() {
		t.Errorf("error %v, a guest sees %v, the operator %v", v.FileError(), v.Visible(Guest()), v.Visible(Operator()))
	}
}
