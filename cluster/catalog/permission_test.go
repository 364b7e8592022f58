package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// observed returns a catalog with private repositories of a code host, with synced permissions, and
// with an account linked to the host's person p0.
func observed(t *testing.T, repos int) (*book, []RepoID) {
	t.Helper()
	b := newBook(t)
	b.member("n1")
	b.do(&SayPermissionSync{Node: "n1", Permissions: PermissionSyncOn})
	raw := `{"connections":{"host":{"type":"bitbucket","deploymentType":"server","url":"https://h.example.com","user":"u","token":{"env":"T"},"all":true}},
		"identityProviders":{"bb":{"provider":"bitbucket-server","purpose":"account_linking","clientId":{"env":"A"},"clientSecret":{"env":"B"},"baseUrl":"https://h.example.com/"}}}`
	b.do(&SetConfig{Raw: []byte(raw), Hash: hashText(raw), Instead: InsteadOfAny, Connections: []ConnectionDef{{"host", "bitbucket", "1"}}})
	fence := b.grant(JobSync, "host")
	page := &SyncPage{Connection: "host", Fence: fence}
	for i := range repos {
		page.Repos = append(page.Repos, ListedRepo{Name: fmt.Sprint("h/", i), RepoFacts: RepoFacts{Visibility: Private, ExternalID: fmt.Sprint("bitbucket:h.example.com:", 100+i)}})
	}
	b.do(page)
	b.do(&FinishSync{Connection: "host", Fence: fence, Complete: true, Listed: uint32(repos)})
	b.do(&PutAccount{Account: User{ID: "ann", Email: "ann@x", Role: RoleMember, State: AccountActive}})
	b.do(&LinkIdentity{Identity: Identity{Provider: hProvider, Subject: "p0", Account: "ann"}})

	var ids []RepoID
	for r := range b.s.View().Repos() {
		ids = append(ids, r.ID)
	}
	return b, ids
}

const (
	hSite     = "bitbucket:h.example.com"
	hProvider = "https://h.example.com"
)

// begin grants a job and returns its fence.
func (b *book) begin(kind JobKind, subject string) uint64 {
	b.t.Helper()
	b.do(&EnqueueJob{Kind: kind, Subject: subject, Urgent: true})
	return b.grant(kind, subject)
}

// sees returns what an account sees. It checks that Why agrees for each repository.
func (b *book) sees(account string) []RepoID {
	b.t.Helper()
	view := b.s.View()
	set := view.Visible(Viewer{Role: RoleMember, Account: account})
	if a := view.Account(account); a != nil {
		for r := range view.Repos() {
			why := view.Why(a, r)
			sees := slices.ContainsFunc(why, func(x Reason) bool { return x.Sees }) && !slices.ContainsFunc(why, func(x Reason) bool { return x.Stops })
			if sees != set.Contains(r.ID) {
				b.t.Fatalf("%s sees %s: %t, but the reasons say %t: %+v", account, r.Name, set.Contains(r.ID), sees, why)
			}
		}
	}
	return set.ToArray()
}

// For each person and repository, the complete observation that began last counts, whatever order
// the observations end in. A simple map is the model.
func TestPermissionAnswers_completeAnswerThatBeganLastDecides(t *testing.T) {
	t.Parallel()
	const people, repos = 3, 5
	type cell struct{ person, repo int }
	type fact struct {
		began uint64
		may   bool
	}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		b, ids := observed(t, repos)
		truth := map[cell]bool{} // the permissions at the host
		known := map[cell]fact{} // what the model has observed
		type under struct {
			fence uint64
			saw   []bool // by person or by repository
		}
		ofRepo, ofPerson := map[int]*under{}, map[int]*under{}
		name := func(p int) string { return fmt.Sprint("p", p) }

		for range 400 {
			p, r := rng.IntN(people), rng.IntN(repos)
			switch rng.IntN(6) {
			case 0, 1:
				truth[cell{p, r}] = rng.IntN(2) == 0
			case 2: // a job asks who may read a repository
				if ofRepo[r] == nil {
					u := &under{fence: b.begin(JobRepoSync, RepoSubject(ids[r]))}
					for p := range people {
						u.saw = append(u.saw, truth[cell{p, r}])
					}
					ofRepo[r] = u
				}
			case 3: // a job asks what a person may read
				if ofPerson[p] == nil {
					u := &under{fence: b.begin(JobAccountSync, ReaderKey(hSite, name(p)))}
					for r := range repos {
						u.saw = append(u.saw, truth[cell{p, r}])
					}
					ofPerson[p] = u
				}
			case 4:
				if u := ofRepo[r]; u != nil {
					b.endOfRepo(ids[r], u.fence, u.saw)
					for p, may := range u.saw {
						if known[cell{p, r}].began < u.fence {
							known[cell{p, r}] = fact{u.fence, may}
						}
					}
					delete(ofRepo, r)
				}
			case 5:
				if u := ofPerson[p]; u != nil {
					b.endOfPerson(ids, name(p), u.fence, u.saw)
					for r, may := range u.saw {
						if known[cell{p, r}].began < u.fence {
							known[cell{p, r}] = fact{u.fence, may}
						}
					}
					delete(ofPerson, p)
				}
			}

			var want []RepoID
			for r := range repos {
				if known[cell{0, r}].may {
					want = append(want, ids[r])
				}
			}
			if got := b.sees("ann"); !slices.Equal(got, want) {
				t.Fatalf("seed %d, entry %d: ann sees %v, want %v", seed, b.index, got, want)
			}
		}
	}
}

// endOfRepo ends an observation of a repository: it sends the difference.
func (b *book) endOfRepo(repo RepoID, fence uint64, saw []bool) {
	b.t.Helper()
	v := b.s.View()
	c := &FinishRepoAccess{Repo: repo, Fence: fence, Seen: v.Index()}
	for p, may := range saw {
		subject := fmt.Sprint("p", p)
		had := false
		if r := v.Reader(hSite, subject); r != nil {
			had, _ = r.May(repo)
		}
		switch {
		case may && !had:
			c.Add = append(c.Add, subject)
		case !may && had:
			c.Remove = append(c.Remove, subject)
		}
	}
	b.do(c)
}

// endOfPerson ends a listing of a person: it sends the difference.
func (b *book) endOfPerson(ids []RepoID, subject string, fence uint64, saw []bool) {
	b.t.Helper()
	r := b.s.View().Reader(hSite, subject)
	set := roaring.New()
	for i, may := range saw {
		if may {
			set.Add(ids[i])
		}
	}
	c := &FinishReaderAccess{Site: hSite, Subject: subject, Fence: fence,
		Add: encodeSet(roaring.AndNot(set, r.Complete())), Remove: encodeSet(roaring.AndNot(r.Complete(), set))}
	if r != nil {
		c.Instead = r.Changed
	}
	b.do(c)
}

// A difference is refused if something changed after it was computed, since it does not include
// that change.
func TestPermissionAnswers_aStaleDifferenceIsRefused(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 2)
	seen := b.s.View().Index()
	person := b.begin(JobAccountSync, ReaderKey(hSite, "p0"))
	repo := b.begin(JobRepoSync, RepoSubject(ids[0]))
	b.endOfPerson(ids, "p0", person, []bool{true, true})
	b.refused(Stale, &FinishRepoAccess{Repo: ids[0], Fence: repo, Seen: seen})
	b.endOfRepo(ids[0], repo, []bool{false})
	if got := b.sees("ann"); !slices.Equal(got, ids[1:]) {
		t.Errorf("ann sees %v", got)
	}

	person = b.begin(JobAccountSync, ReaderKey(hSite, "p0"))
	b.refused(Stale, &FinishReaderAccess{Site: hSite, Subject: "p0", Fence: person, Instead: seen})
	b.refused(Stale, &FinishRepoAccess{Repo: ids[0], Fence: repo, Seen: b.index})
	b.refused(Invalid, &FinishReaderAccess{Site: hSite, Subject: "p0", Fence: person, Add: []byte{1}})
}

// Old observations do not count until the host answers again.
func TestExpireAccess_oldPermissionAnswersGiveNoAccess(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 2)
	b.endOfRepo(ids[0], b.begin(JobRepoSync, RepoSubject(ids[0])), []bool{true})
	b.endOfRepo(ids[1], b.begin(JobRepoSync, RepoSubject(ids[1])), []bool{true})
	age := &AgeAccess{Before: b.now, Repos: ids, Readers: []string{ReaderKey(hSite, "p0")}}
	b.do(age)
	if got := b.sees("ann"); !slices.Equal(got, ids) {
		t.Errorf("what was observed just now counts no more: %v", got)
	}
	b.now = b.now.Add(time.Hour)
	age.Before = b.now
	b.do(age)
	if got := b.sees("ann"); len(got) > 0 {
		t.Errorf("what is too old still counts: %v", got)
	}

	// A new answer counts, for a repository or for a person.
	b.endOfRepo(ids[0], b.begin(JobRepoSync, RepoSubject(ids[0])), []bool{true})
	if got := b.sees("ann"); !slices.Equal(got, ids[:1]) {
		t.Errorf("after one good answer ann sees %v", got)
	}
	b.endOfPerson(ids, "p0", b.begin(JobAccountSync, ReaderKey(hSite, "p0")), []bool{true, true})
	if got := b.sees("ann"); !slices.Equal(got, ids) {
		t.Errorf("after a listing ann sees %v", got)
	}
	b.now = b.now.Add(time.Hour)
	b.do(&AgeAccess{Before: b.now, Repos: ids, Readers: []string{ReaderKey(hSite, "p0")}})
	if got := b.sees("ann"); len(got) > 0 {
		t.Errorf("an old listing still counts: %v", got)
	}
}

// A person loses access with the same entry that unlinks the identity, removes the provider,
// suspends the account, or records the host's refusal.
func TestHostAccess_endsWithIdentityProviderOrAccount(t *testing.T) {
	t.Parallel()
	ends := map[string]func(b *book, ids []RepoID){
		"unlinked": func(b *book, _ []RepoID) {
			b.do(&SetPassword{Account: "ann", Hash: "h"})
			b.do(&UnlinkIdentity{Account: "ann", Provider: hProvider, Subject: "p0"})
		},
		"provider gone": func(b *book, _ []RepoID) {
			raw := `{"connections":{"host":{"type":"bitbucket","deploymentType":"server","url":"https://h.example.com","user":"u","token":{"env":"T"},"all":true}}}`
			b.do(&SetConfig{Raw: []byte(raw), Hash: hashText(raw), Instead: InsteadOfAny, Connections: []ConnectionDef{{"host", "bitbucket", "1"}}})
		},
		"suspended": func(b *book, _ []RepoID) {
			b.do(&PutAccount{Account: User{ID: "root", Email: "root@x", Role: RoleOwner, State: AccountActive}})
			b.do(&PutAccount{Account: User{ID: "ann", Email: "ann@x", Role: RoleMember, State: AccountSuspended}, Instead: b.s.View().Account("ann").Changed})
		},
		"refused": func(b *book, _ []RepoID) {
			b.do(&RefuseReader{Site: hSite, Subject: "p0", Fence: b.begin(JobAccountSync, ReaderKey(hSite, "p0")), Issue: "suspended"})
		},
		"collaborator removed": func(b *book, ids []RepoID) {
			b.endOfRepo(ids[0], b.begin(JobRepoSync, RepoSubject(ids[0])), []bool{false})
		},
	}
	for what, end := range ends {
		b, ids := observed(t, 1)
		b.endOfRepo(ids[0], b.begin(JobRepoSync, RepoSubject(ids[0])), []bool{true})
		if got := b.sees("ann"); !slices.Equal(got, ids) {
			t.Fatalf("%s: ann sees %v before", what, got)
		}
		end(b, ids)
		if got := b.sees("ann"); len(got) > 0 {
			t.Errorf("%s: ann still sees %v", what, got)
		}
	}
}

// Permissions are on if one node has them on, and off only if all nodes have them off.
func TestPermissionSync_oneNodeProtectsTheCluster(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 1)
	b.member("n2")
	say := func(n1, n2 PermissionSync, want int) {
		t.Helper()
		b.do(&SayPermissionSync{Node: "n1", Permissions: n1})
		b.do(&SayPermissionSync{Node: "n2", Permissions: n2})
		if got := b.s.View().Visible(Guest()).GetCardinality(); int(got) != want {
			t.Errorf("nodes that are told %d and %d show %d of %d repositories", n1, n2, got, len(ids))
		}
	}
	say(PermissionSyncOn, PermissionSyncOff, 0)
	say(PermissionSyncUnset, PermissionSyncOn, 0)
	say(PermissionSyncOff, PermissionSyncOff, 1)
	say(PermissionSyncOff, PermissionSyncUnset, 1) // the configuration does not enforce them
	b.refused(NotFound, &SayPermissionSync{Node: "n3", Permissions: PermissionSyncOn})
	b.refused(Invalid, &SayPermissionSync{Node: "n1", Permissions: 9})
}

// An observation that may miss readers adds readers, until a complete one replaces it.
func TestPermissionAnswers_partialAnswersRemoveNoReader(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 2)
	partial := func(fence uint64, add, remove []string) {
		t.Helper()
		b.do(&FinishRepoAccess{Repo: ids[0], Fence: fence, Seen: b.index, Partial: true, Add: add, Remove: remove})
	}
	check := func(what string, want ...RepoID) {
		t.Helper()
		if got := b.sees("ann"); !slices.Equal(got, want) {
			t.Errorf("%s: ann sees %v, want %v", what, got, want)
		}
	}
	partial(b.begin(JobRepoSync, RepoSubject(ids[0])), []string{"p0"}, nil)
	check("told by the partial source", ids[0])
	partial(b.begin(JobRepoSync, RepoSubject(ids[0])), nil, []string{"p0"})
	check("taken back by it")
	partial(b.begin(JobRepoSync, RepoSubject(ids[0])), []string{"p0"}, nil)
	b.endOfPerson(ids, "p0", b.begin(JobAccountSync, ReaderKey(hSite, "p0")), []bool{false, true})
	check("after a complete listing", ids[1])
}

// Deleting a repository also deletes its readers.
func TestFinishCollect_removesTheReadersOfTheRepository(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 1)
	b.endOfRepo(ids[0], b.begin(JobRepoSync, RepoSubject(ids[0])), []bool{true, true})
	fence := b.begin(JobSync, "host")
	b.do(&FinishSync{Connection: "host", Fence: fence, Complete: true})
	b.do(&EnqueueJob{Kind: JobCollect, Subject: RepoSubject(ids[0])})
	b.do(&FinishCollect{Repo: ids[0], Fence: b.grant(JobCollect, RepoSubject(ids[0]))})
	v := b.s.View()
	if n, m := v.readers.Len(), v.access.Len(); n+m > 0 {
		t.Errorf("%d readers and %d records of the repository are left", n, m)
	}
}

// An observation that finds no difference changes one small record.
func TestPermissionAnswers_unchangedReadersAreNotWritten(t *testing.T) {
	t.Parallel()
	b, ids := observed(t, 1)
	b.endOfRepo(ids[0], b.begin(JobRepoSync, RepoSubject(ids[0])), []bool{true})
	before := b.s.View().readers.Sum()
	fence := b.begin(JobRepoSync, RepoSubject(ids[0]))
	c := &FinishRepoAccess{Repo: ids[0], Fence: fence, Seen: b.index, Readers: 1}
	if data, err := (&Entry{Commands: []Command{c}}).Encode(); err != nil || len(data) > 64 {
		t.Errorf("an entry of %d bytes, %v", len(data), err)
	}
	b.do(c)
	if b.s.View().readers.Sum() != before {
		t.Error("the readers changed")
	}
}

// Without an identity provider for a host, nobody sees anything by that host.
func TestHostAccess_needsAnIdentityProvider(t *testing.T) {
	t.Parallel()
	b, repos := observed(t, 1)
	b.do(&FinishReaderAccess{Site: hSite, Subject: "p0", Fence: b.begin(JobAccountSync, ReaderKey(hSite, "p0")), Add: encodeSet(roaring.BitmapOf(repos[0]))})
	if got := b.sees("ann"); !slices.Equal(got, repos) {
		t.Fatalf("with the provider ann sees %v, want %v", got, repos)
	}
	raw := `{"connections":{"host":{"type":"bitbucket","deploymentType":"server","url":"https://h.example.com","user":"u","token":{"env":"T"},"all":true}}}`
	b.do(&SetConfig{Raw: []byte(raw), Hash: hashText(raw), Instead: InsteadOfAny, Connections: []ConnectionDef{{"host", "bitbucket", "1"}}})
	if got := b.sees("ann"); len(got) != 0 {
		t.Errorf("without it ann sees %v", got)
	}
}
