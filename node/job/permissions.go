package job

import (
	"cmp"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
)

// PermissionState is how far code hosts have said who may read what.
type PermissionState struct {
	Sync     catalog.PermissionSync // whether they are asked
	Hosts    []HostPermissions      // by name
	Unlinked int                    // active accounts that are linked to nobody at a code host

	// How many are asked for at once now, and may be, in the cluster.
	PeopleRunning, PeopleLimit int
	ReposRunning, ReposLimit   int
}

// HostPermissions is what one code host has said.
type HostPermissions struct {
	Host   string  // as the catalog names it: github:github.com
	People Answers // of what people may read
	Repos  Answers // of who may read repositories
}

// Answers counts what is asked of one host, and how it answered.
type Answers struct {
	Wanted   int       // are asked for
	Answered int       // of these: the last good answer counts
	Ended    int       // of these: it is too old to count
	Refused  int       // of these: the host lets the person in no more
	Failing  int       // of these: the last tries have failed
	Newest   time.Time // good answer; zero where there is none
	Oldest   time.Time // good answer
}

// good notes a good answer.
func (a *Answers) good(at time.Time) {
	a.Answered++
	if at.After(a.Newest) {
		a.Newest = at
	}
	if a.Oldest.IsZero() || at.Before(a.Oldest) {
		a.Oldest = at
	}
}

// PermissionsOf tells how far code hosts have said who may read what.
func PermissionsOf(view *catalog.View) *PermissionState {
	settings := view.File().Settings
	s := &PermissionState{
		Sync:        view.PermissionSync(),
		PeopleLimit: settings.MaxAccountPermissionSyncJobs,
		ReposLimit:  settings.MaxRepoPermissionSyncJobs,
	}
	if s.Sync != catalog.PermissionSyncOn {
		return s
	}

	// Each host has its row as soon as something is asked of it.
	hosts := map[string]*HostPermissions{}
	at := func(site string) *HostPermissions {
		h := hosts[site]
		if h == nil {
			h = &HostPermissions{Host: site}
			hosts[site] = h
		}
		return h
	}

	countPeople(view, at)
	countRepoAnswers(view, at)
	for _, h := range hosts {
		s.Hosts = append(s.Hosts, *h)
	}
	slices.SortFunc(s.Hosts, func(a, b HostPermissions) int { return cmp.Compare(a.Host, b.Host) })

	for range view.JobsOfKind(catalog.JobAccountSync, catalog.JobRunning) {
		s.PeopleRunning++
	}
	for range view.JobsOfKind(catalog.JobRepoSync, catalog.JobRunning) {
		s.ReposRunning++
	}

	s.Unlinked = unlinked(view)
	return s
}

// countPeople counts the people in whose name hosts are asked.
func countPeople(view *catalog.View, at func(site string) *HostPermissions) {
	for x := range view.HostTokens() {
		if view.IdentityAt(x.Site, x.Subject) == nil {
			continue // the provider is in the configuration no more
		}

		a := &at(x.Site).People
		a.Wanted++

		switch r := view.Reader(x.Site, x.Subject); {
		case r == nil || r.Began == 0:
		case r.Issue != "":
			a.Refused++
			continue // the job says the same once more
		case r.Stale:
			a.Ended++
		default:
			a.good(r.At)
		}

		if AccessIssue(view.Job(catalog.JobAccountSync, catalog.ReaderKey(x.Site, x.Subject))) != "" {
			a.Failing++
		}
	}
}

// countRepoAnswers counts the repositories of which hosts are asked.
func countRepoAnswers(view *catalog.View, at func(site string) *HostPermissions) {
	failing := map[catalog.RepoID]bool{}
	for j := range view.JobsOfKind(catalog.JobRepoSync, catalog.JobFailed, catalog.JobBackoff) {
		failing[catalog.SubjectRepo(j.Subject)] = AccessIssue(j) != ""
	}

	asked := map[string]bool{} // connections, by whether they tell of readers
	for _, c := range view.File().Connections {
		asked[c.Shared().Name] = view.PermissionSync().Enforces(c.Shared()) && host.ReadershipOf(c) != host.Untold
	}

	ended := map[string]*roaring.Bitmap{}

	// Both go by the numbers of repositories: one walk of each is much less than looking all of them up.
	wanted, answers := view.Asked(), slices.Collect(view.Accesses())
	for repo := range view.Repos() {
		if !wanted.Contains(repo.ID) || !slices.ContainsFunc(repo.Connections, func(c catalog.RepoConnection) bool { return asked[c.Name] }) {
			continue
		}

		site := catalog.SiteOf(repo.ExternalID)
		if ended[site] == nil {
			ended[site] = view.EndedAccess(site)
		}

		a := &at(site).Repos
		a.Wanted++
		if failing[repo.ID] {
			a.Failing++
		}

		for len(answers) > 0 && answers[0].Repo < repo.ID {
			answers = answers[1:]
		}

		switch {
		case len(answers) == 0 || answers[0].Repo != repo.ID:
		case ended[site].Contains(repo.ID):
			a.Ended++
		default:
			a.good(answers[0].At)
		}
	}
}

// unlinked counts the active accounts that no code host knows.
func unlinked(view *catalog.View) (n int) {
	linked := func(x *catalog.Identity) bool { return view.SiteOfIdentity(x) != "" }
	for a := range view.Accounts() {
		if a.State == catalog.AccountActive && !slices.ContainsFunc(view.IdentitiesOf(a.ID), linked) {
			n++
		}
	}
	return n
}
