package job

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// The counts are right before the first answer, after a good answer, after failures, when the
// answer is too old, and when the host refuses the person.
func TestPermissionCounts_changeWithEachKindOfAnswer(t *testing.T) {
	t.Parallel()
	s := newOwnWorld(t)
	s.Do(&catalog.PutAccount{Account: catalog.User{ID: "bob", Email: "bob@x", Role: catalog.RoleMember, State: catalog.AccountActive}})
	s.Do(&catalog.PutAccount{Account: catalog.User{ID: "eve", Email: "eve@x", Role: catalog.RoleMember, State: catalog.AccountSuspended}})
	var counter Permissions
	now := func() (people, repos Answers) {
		t.Helper()
		state := counter.Of(s.View())
		if anew := new(Permissions).Of(s.View()); !reflect.DeepEqual(state, anew) {
			t.Errorf("what is kept counts %+v, made anew %+v", state, anew)
		}
		if state.Sync != catalog.PermissionSyncOn || state.Unlinked != 1 || state.PeopleLimit != 8 || state.ReposLimit != 8 {
			t.Fatalf("%+v", state)
		}
		if len(state.Hosts) != 1 || state.Hosts[0].Host != ownSite {
			t.Fatalf("hosts %+v", state.Hosts)
		}
		return state.Hosts[0].People, state.Hosts[0].Repos
	}

	people, repos := now()
	if people != (Answers{Wanted: 1}) || repos != (Answers{Wanted: 50}) {
		t.Errorf("before an answer: %+v, %+v", people, repos)
	}

	if err := s.ask("1-3"); err != nil {
		t.Fatal(err)
	}
	first := s.Now().UTC()
	s.Pass(time.Hour)
	subject := catalog.RepoSubject(s.View().RepoByExternalID(ownSite + ":1").ID)
	s.Do(&catalog.EnqueueJob{Kind: catalog.JobRepoSync, Subject: subject})
	fence := s.Grant(catalog.JobRepoSync, subject, "n1")
	if running := new(Permissions).Of(s.View()).ReposRunning; running != 1 {
		t.Errorf("%d repositories are asked for", running)
	}
	s.Do(&catalog.FinishRepoAccess{Repo: s.View().RepoByExternalID(ownSite + ":1").ID, Fence: fence, Seen: s.View().Index(), Readers: 1, Add: []string{"7"}})
	second := s.Now().UTC()
	people, repos = now()
	if people != (Answers{Wanted: 1, Answered: 1, Newest: first, Oldest: first}) || repos != (Answers{Wanted: 50, Answered: 1, Newest: second, Oldest: second}) {
		t.Errorf("after the first answers: %+v, %+v", people, repos)
	}

	// Three failed tries count as a failure. The last answer still counts.
	key := catalog.ReaderKey(ownSite, "7")
	s.Pass(time.Hour)
	s.Do(&catalog.EnqueueJob{Kind: catalog.JobAccountSync, Subject: key, Urgent: true})
	for range 3 {
		fence := s.Grant(catalog.JobAccountSync, key, "n1")
		s.Do(&catalog.FinishJob{Kind: catalog.JobAccountSync, Subject: key, Fence: fence, Error: "down"})
		s.Pass(10 * time.Minute)
	}
	if people, _ = now(); people.Failing != 1 || people.Answered != 1 {
		t.Errorf("after three failures: %+v", people)
	}

	// The answer becomes too old.
	s.Pass(73 * time.Hour)
	s.Do(&catalog.AgeAccess{Before: s.Now().Add(-72 * time.Hour), Readers: []string{key}, Repos: []catalog.RepoID{s.View().RepoByExternalID(ownSite + ":1").ID}})
	people, repos = now()
	if people.Ended != 1 || people.Answered != 0 || repos.Ended != 1 || repos.Answered != 0 || !repos.Newest.IsZero() {
		t.Errorf("three days later: %+v, %+v", people, repos)
	}

	// A refusal is not a failure of the host.
	if err := s.ask("blocked"); err != nil {
		t.Fatal(err)
	}
	if people, _ = now(); people != (Answers{Wanted: 1, Refused: 1}) {
		t.Errorf("refused: %+v", people)
	}
}

// If hosts are not asked, nothing is counted.
func TestPermissionCounts_areZeroWithoutPermissionSync(t *testing.T) {
	t.Parallel()
	s := newOwnWorld(t)
	s.Do(&catalog.SayPermissionSync{Node: "n1", Permissions: catalog.PermissionSyncOff})
	if state := new(Permissions).Of(s.View()); state.Sync != catalog.PermissionSyncOff || len(state.Hosts) != 0 || state.Unlinked != 0 {
		t.Errorf("%+v", state)
	}
}

// Updated counts equal those of a complete walk.
func TestPermissionCounts_equalACountOverAllRepositories(t *testing.T) {
	t.Parallel()
	s := newOwnWorld(t)
	var counter Permissions
	for i := range 6 {
		var ids []string
		for n := range 50 + 3*i {
			if n%7 != i {
				ids = append(ids, fmt.Sprintf("%s:%d", ownSite, n+1))
			}
		}
		s.list("a", ids...)
		got, want := counter.Of(s.View()), new(Permissions).Of(s.View())
		if !reflect.DeepEqual(got, want) {
			t.Errorf("after listing %d: kept %+v, anew %+v", i, got, want)
		}
	}
}
