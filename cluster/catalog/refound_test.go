package catalog

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// reloaded saves the state of the book and loads it again.
func (b *book) reloaded() *State {
	b.t.Helper()
	var saved bytes.Buffer
	if err := b.s.View().Save(&saved); err != nil {
		b.t.Fatal(err)
	}
	s, err := Load(&saved)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// A snapshot may be older than a revocation. So after a restore nobody is signed in by it, and
// nobody sees what a code host may have closed since.
func TestRestore_endsSessionsAndAccessThatMayHaveBeenRevoked(t *testing.T) {
	t.Parallel()
	b, repos := observed(t, 3)
	token := HostToken{Provider: hProvider, Subject: "p0", Site: hSite, Sealed: []byte("sealed")}
	b.do(&PutHostToken{Token: token, Account: "ann"})
	fence := b.begin(JobAccountSync, ReaderKey(hSite, "p0"))
	may := encodeSet(roaring.BitmapOf(repos[0]))
	b.do(&FinishReaderAccess{Site: hSite, Subject: "p0", Fence: fence, Add: may})
	fence = b.begin(JobRepoSync, RepoSubject(repos[1]))
	b.do(&FinishRepoAccess{Repo: repos[1], Fence: fence, Seen: b.index, Readers: 1, Add: []string{"p0"}})
	b.do(&RefuseReader{Site: hSite, Subject: "gone", Fence: b.begin(JobAccountSync, ReaderKey(hSite, "gone")), Issue: "blocked"})

	// The third repository was public when the snapshot was written.
	fence = b.begin(JobSync, "host")
	page := &SyncPage{Connection: "host", Fence: fence}
	for i, v := range []Visibility{Private, Private, Public} {
		r := b.s.View().Repo(repos[i])
		page.Repos = append(page.Repos, ListedRepo{Name: r.Name, RepoFacts: RepoFacts{Visibility: v, ExternalID: r.ExternalID}})
	}
	b.do(page)
	b.do(&FinishSync{Connection: "host", Fence: fence, Complete: true, Listed: 3})
	if got := b.sees("ann"); !slices.Equal(got, repos) {
		t.Fatalf("before, ann sees %v, want %v", got, repos)
	}

	changed := b.s.View().Account("ann").Changed
	code := &PutConsent{Since: changed, Consent: Consent{ID: "code", Account: "ann", Client: make([]byte, 32), Expires: b.now.Add(time.Hour)}}
	consent := *code
	consent.Consent.ID = "c"
	b.do(&consent)
	b.do(sessionOf(b, 1, "ann"))
	b.do(&PutLink{Link{ID: "l", Hash: bytes.Repeat([]byte{7}, 32), Account: "ann", Expires: b.now.Add(time.Hour)}})
	b.do(&CreateKey{Key{ID: "k", Name: "k", Account: "ann", Hash: make([]byte, 32), Role: RoleMember}})

	for name, restored := range map[string]bool{"restored": true, "recovered": false} {
		t.Run(name, func(t *testing.T) {
			s := b.reloaded()
			now := &book{t: t, s: s, index: b.index, now: b.now}
			node := "n1"
			if restored {
				node = "n2"
			}
			r := s.Refound(Successor{Cluster: "next", Node: node, Restored: restored})
			if r.Sessions != 1 || r.Consents != 1 || r.Links != 1 || restored != slices.Equal(r.Removed, []string{"n1"}) {
				t.Errorf("ended is %+v", r)
			}

			v := s.View()
			if v.SessionByHash(bytes.Repeat([]byte{1}, keyHashLen)) != nil || v.Session("s1") != nil {
				t.Error("the session is there again")
			}
			if c := v.Consent("c"); c == nil || c.Lives(b.now) {
				t.Errorf("the consent is %+v, want one that is remembered and has ended", c)
			}
			now.refused(NotFound, &RotateConsent{ID: "c", From: 1, Expires: b.now.Add(time.Hour)})
			now.refused(NotFound, code)
			if v.LinkByHash(bytes.Repeat([]byte{7}, 32)) != nil {
				t.Error("the invitation is there again")
			}
			if v.Key("k") == nil || v.Account("ann") == nil {
				t.Error("the account or its key is gone")
			}

			// Permissions are enforced at once, even before the node reports its setting.
			if v.PermissionSync() != PermissionSyncOn {
				t.Errorf("permission sync is %s", v.PermissionSync())
			}
			want := repos
			if restored {
				want = nil
			}
			if got := now.sees("ann"); !slices.Equal(got, want) {
				t.Errorf("ann sees %v, want %v", got, want)
			}
			if x := v.Reader(hSite, "gone"); x == nil || x.Issue == "" {
				t.Error("a refusal of the host is forgotten")
			}
			if !restored {
				return
			}

			// The jobs that open the repositories again are queued, and open them.
			now.do(&PutMember{Member{ID: node, Epoch: NewEpoch(2, 5), Addr: "n2:1"}})
			for kind, subject := range map[JobKind]string{JobAccountSync: ReaderKey(hSite, "p0"), JobRepoSync: RepoSubject(repos[1]), JobSync: "host"} {
				if j := v.Job(kind, subject); j == nil || j.State != JobWaiting || j.NotBefore.After(b.now) {
					t.Errorf("%s is %+v, want one that waits for nothing", kind, j)
				}
			}
			grant := &GrantJob{Kind: JobAccountSync, Subject: ReaderKey(hSite, "p0"), Node: node, Epoch: NewEpoch(2, 5), Deadline: b.now.Add(time.Hour)}
			now.do(&FinishReaderAccess{Site: hSite, Subject: "p0", Fence: now.do(grant), Add: may})
			if got := now.sees("ann"); !slices.Equal(got, repos[:1]) {
				t.Errorf("after the host was asked ann sees %v, want %v", got, repos[:1])
			}
		})
	}
}

// A recovery leaves an event if the catalog has events.
func TestRestore_leavesAnAuditEvent(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.member("n1")
	b.apply(&Attribute{Actor: Actor{Type: ActorOperator}}, &PutAccount{Account: User{ID: "ann", Email: "ann@x", Role: RoleMember, State: AccountActive}})
	for action, restored := range map[string]bool{"cluster.restored": true, "cluster.recovered": false} {
		s := b.reloaded()
		s.Refound(Successor{Cluster: "next", Node: "n1", Restored: restored})
		var newest *Event
		for e := range s.View().EventsBefore(0) {
			newest = e
			break
		}
		if newest == nil || newest.Action != action || newest.Target != "next" || newest.Actor.Type != ActorOperator || newest.Message != "0 sessions, 0 consents and 0 links ended" {
			t.Errorf("the newest event is %+v, want %s", newest, action)
		}
	}
}
