package account

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/call"
)

func TestAsOwner_admitsOnlyOwners(t *testing.T) {
	t.Parallel()
	view := catalog.New().View()
	gate := NewGate(&agreed{view: view})
	for role, want := range map[catalog.Role]struct{ reads, administers error }{
		catalog.RoleNone:   {call.ErrUnauthenticated, call.ErrUnauthenticated},
		catalog.RoleGuest:  {nil, call.ErrForbidden},
		catalog.RoleMember: {nil, call.ErrForbidden},
		catalog.RoleOwner:  {nil, nil},
	} {
		v := catalog.Viewer{Role: role, Name: "somebody"}
		if _, err := gate.Repos(v); !errors.Is(err, want.reads) {
			t.Errorf("%s reads: got %v, want %v", role, err, want.reads)
		}
		by, err := AsOwner(v)
		if !errors.Is(err, want.administers) {
			t.Errorf("%s administers: got %v, want %v", role, err, want.administers)
		}
		if err != nil && by != (Owner{}) {
			t.Errorf("%s has a proof beside the error: %+v", role, by)
		}
	}
	if _, err := gate.Repos(Owner{}.Viewer()); !errors.Is(err, call.ErrUnauthenticated) {
		t.Errorf("the zero Owner may read: %v", err)
	}
}

// A node of a replaced cluster does not know which rights the new cluster revoked. It admits
// nobody, and tells why.
func TestPermissionCheck_ofAReplacedClusterAdmitsNobody(t *testing.T) {
	t.Parallel()
	gate := NewGate(&agreed{view: catalog.New().View(), outlived: errors.New("the cluster was given up")})
	for _, v := range []catalog.Viewer{catalog.Guest(), {Role: catalog.RoleMember, Name: "ann"}, catalog.Operator()} {
		_, err := gate.Repos(v)
		if !errors.Is(err, call.ErrUnavailable) || !strings.Contains(err.Error(), "given up") {
			t.Errorf("%s: %v", v.Role, err)
		}

		// The same if another node has admitted them.
		_, err = gate.Again(t.Context(), Pass{Viewer: v}, func(*Repos) bool { return true })
		if !errors.Is(err, call.ErrUnavailable) {
			t.Errorf("%s by another node: %v", v.Role, err)
		}
	}
}

// agreed is a catalog that may advance in Await.
type agreed struct {
	view, next *catalog.View
	outlived   error
}

func (a *agreed) View() *catalog.View { return a.view }
func (a *agreed) Outlived() error     { return a.outlived }

func (a *agreed) Await(_ context.Context, index uint64) error {
	if a.next == nil || a.next.Index() < index {
		return context.DeadlineExceeded
	}
	a.view = a.next
	return nil
}

const enforced = `{"connections": {"c": {"type": "git", "url": "file:///srv/*", "enforcePermissions": true}}}`

// hidden returns a catalog with a repository granted only to ann, at three moments: before the
// grant, with it, and after its revocation.
func hidden(t *testing.T) (before, granted, revoked *catalog.View, repo catalog.RepoID, ann catalog.Viewer) {
	t.Helper()
	w := clustertest.New(t, enforced, 1)
	w.Do(&catalog.PutAccount{Account: catalog.User{ID: "u1", Email: "ann@example.com", Role: catalog.RoleMember, State: catalog.AccountActive}})
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	fence := w.View().Job(catalog.JobSync, "c").Fence
	w.Do(&catalog.SyncPage{Connection: "c", Fence: fence, Repos: []catalog.ListedRepo{{Name: "secret"}}})
	for r := range w.View().Repos() {
		repo = r.ID
	}
	before = w.View()
	w.Do(&catalog.SetGrants{Account: "u1", Source: catalog.GrantedByOwner, Add: []catalog.RepoID{repo}})
	granted = w.View()
	w.Do(&catalog.SetGrants{Account: "u1", Source: catalog.GrantedByOwner, Remove: []catalog.RepoID{repo}})
	return before, granted, w.View(), repo, catalog.Viewer{Role: catalog.RoleMember, Account: "u1"}
}

// The node with the data checks by itself: what it hides stays hidden, whatever the first node saw.
func TestPermissionCheck_isRepeatedByTheNodeWithTheData(t *testing.T) {
	t.Parallel()
	before, granted, revoked, repo, ann := hidden(t)
	sees := func(r *Repos) bool { return r.Set.Contains(repo) }
	root, err := NewGate(&agreed{view: granted}).Repos(ann)
	if err != nil || !sees(root) {
		t.Fatalf("the root sees %v, %v", root, err)
	}

	for what, x := range map[string]struct {
		here *agreed
		pass Pass
		sees bool
		err  error
	}{
		"the same catalog":               {&agreed{view: granted}, root.Pass(), true, nil},
		"a newer one that hides":         {&agreed{view: revoked}, root.Pass(), false, nil},
		"an older one that catches up":   {&agreed{view: before, next: granted}, root.Pass(), true, nil},
		"one that catches up and hides":  {&agreed{view: before, next: revoked}, root.Pass(), false, nil},
		"an older one that stays behind": {&agreed{view: before}, root.Pass(), false, call.ErrUnavailable},
		"a call of nobody":               {&agreed{view: granted}, Pass{Index: root.View.Index()}, false, call.ErrUnavailable},
	} {
		seen, err := NewGate(x.here).Again(t.Context(), x.pass, sees)
		if !errors.Is(err, x.err) || err == nil && sees(seen) != x.sees {
			t.Errorf("%s: got %v, want %v and %v", what, err, x.sees, x.err)
		}
		if x.err != nil && !call.Elsewhere(err) {
			t.Errorf("%s: another node is not asked: %v", what, err)
		}
	}
}

// A viewer stays valid until the account, the key or the consent ends.
func TestViewer_isAdmittedUntilAccountKeyOrConsentEnds(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, enforced, 1)
	ann := catalog.User{ID: "u1", Email: "ann@example.com", Role: catalog.RoleMember, State: catalog.AccountActive}
	w.Do(&catalog.PutAccount{Account: ann})
	w.Do(&catalog.CreateKey{Key: catalog.Key{ID: "k1", Name: "ci", Role: catalog.RoleMember, Account: "u1", Hash: make([]byte, 32)}})
	w.Do(&catalog.PutConsent{Since: w.View().Account("u1").Changed, Consent: catalog.Consent{ID: "c1", Account: "u1", Client: make([]byte, 32), Expires: w.Now().Add(time.Hour)}})

	viewers := map[string]catalog.Viewer{
		"guest": catalog.Guest(), "operator": catalog.Operator(),
		"ann": {Account: "u1"}, "key": {Account: "u1", KeyID: "k1"}, "program": {Account: "u1", KeyID: "c1"}, "unknown": {KeyID: "x"},
	}
	gone := func() string {
		var out []string
		gate := NewGate(&agreed{view: w.View()})
		for name, v := range viewers {
			if err := gate.Still(v); errors.Is(err, call.ErrUnauthenticated) {
				out = append(out, name)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}

	for _, step := range []struct {
		what string
		do   catalog.Command
		gone string
	}{
		{"nothing", nil, "unknown"},
		{"the key is revoked", &catalog.RevokeKey{ID: "k1"}, "key unknown"},
		{"the program is let in no more", &catalog.EndConsents{IDs: []string{"c1"}}, "key program unknown"},
		{"the account is suspended", &catalog.PutAccount{Instead: w.View().Account("u1").Changed, Account: catalog.User{ID: "u1", Email: ann.Email, Role: ann.Role, State: catalog.AccountSuspended}}, "ann key program unknown"},
	} {
		if step.do != nil {
			w.Do(step.do)
		}
		if got := gone(); got != step.gone {
			t.Errorf("%s: %q are gone, want %q", step.what, got, step.gone)
		}
	}
}

// All requests share a viewer's set until one of its inputs changes.
func TestVisibleSet_isSharedBetweenRequests(t *testing.T) {
	t.Parallel()
	_, granted, revoked, repo, ann := hidden(t)
	first, again := granted.Visible(ann), granted.Visible(ann)
	if first != again || !first.Contains(repo) {
		t.Errorf("two requests have the sets %p %v and %p %v", first, first, again, again)
	}
	if set := revoked.Visible(ann); set.Contains(repo) {
		t.Errorf("after the revocation the set is %v", set)
	}
	if set := granted.Visible(ann); !set.Contains(repo) {
		t.Errorf("the older view has lost what it shows: %v", set)
	}
}

// A former name of a visible repository leads to it, even if a hidden repository has taken the
// name.
func TestRepositoryByName_hiddenRepositoryTakesNoFormerName(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, enforced, 1)
	list := func(repos ...catalog.ListedRepo) {
		w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
		w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
		fence := w.View().Job(catalog.JobSync, "c").Fence
		w.Do(&catalog.SyncPage{Connection: "c", Fence: fence, Repos: repos})
		w.Do(&catalog.FinishSync{Connection: "c", Fence: fence, Complete: true, Listed: uint32(len(repos))})
	}
	open := catalog.RepoFacts{ExternalID: "1", Visibility: catalog.Public, Public: true}
	list(catalog.ListedRepo{Name: "old", RepoFacts: open})
	list(catalog.ListedRepo{Name: "new", RepoFacts: open})
	list(catalog.ListedRepo{Name: "new", RepoFacts: open}, catalog.ListedRepo{Name: "old", RepoFacts: catalog.RepoFacts{ExternalID: "2", Visibility: catalog.Private}})

	seen, err := NewGate(&agreed{view: w.View()}).Repos(catalog.Guest())
	if err != nil {
		t.Fatal(err)
	}
	if repo, err := seen.ByName("old"); err != nil || repo.Name != "new" {
		t.Errorf("the former name leads to %v, %v", repo, err)
	}
}
