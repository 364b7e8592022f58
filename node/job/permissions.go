package job

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
)

// PermissionState is how far code hosts have said who may read what.
type PermissionState struct {
	Sync     catalog.PermissionSync `json:"sync"`     // whether they are asked
	Hosts    []HostPermissions      `json:"hosts"`    // by name
	Unlinked int                    `json:"unlinked"` // active accounts that are linked to nobody at a code host

	// How many are asked for at once now, and may be, in the cluster.
	PeopleRunning int `json:"peopleRunning"`
	PeopleLimit   int `json:"peopleLimit"`
	ReposRunning  int `json:"reposRunning"`
	ReposLimit    int `json:"reposLimit"`
}

// HostPermissions is what one code host has said.
type HostPermissions struct {
	Host   string  `json:"host"`   // as the catalog names it: github:github.com
	People Answers `json:"people"` // of what people may read
	Repos  Answers `json:"repos"`  // of who may read repositories
}

// Answers counts what is asked of one host, and how it answered.
type Answers struct {
	Wanted   int       `json:"wanted"`          // are asked for
	Answered int       `json:"answered"`        // of these: the last good answer counts
	Ended    int       `json:"ended"`           // of these: it is too old to count
	Refused  int       `json:"refused"`         // of these: the host lets the person in no more
	Failing  int       `json:"failing"`         // of these: the last tries have failed
	Newest   time.Time `json:"newest,omitzero"` // good answer; zero where there is none
	Oldest   time.Time `json:"oldest,omitzero"` // good answer
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

// Permissions counts how far code hosts have said who may read what. It keeps what two
// views have in common, so that a look at 100,000 repositories walks over what changed.
// The zero value is ready; it is safe for concurrent use.
type Permissions struct {
	mu    sync.Mutex // guards the fields below
	index uint64     // of the view that last is of
	last  *PermissionState

	asked  *roaring.Bitmap            // repositories of which hosts were asked at that view
	bySite map[string]*roaring.Bitmap // the same, apart by their hosts
}

// Of is the state at a view. It is shared: nobody may change it.
func (p *Permissions) Of(view *catalog.View) *PermissionState {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || p.index != view.Index() {
		p.last, p.index = p.count(view), view.Index()
	}
	return p.last
}

func (p *Permissions) count(view *catalog.View) *PermissionState {
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
	p.countRepoAnswers(view, at)
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
func (p *Permissions) countRepoAnswers(view *catalog.View, at func(site string) *HostPermissions) {
	p.follow(view)
	failing, answered := roaring.New(), roaring.New()
	for j := range view.JobsOfKind(catalog.JobRepoSync, catalog.JobFailed, catalog.JobBackoff) {
		if AccessIssue(j) != "" {
			failing.Add(catalog.SubjectRepo(j.Subject))
		}
	}

	// One walk over the answers for the times; all else is counted by sets.
	times := make([]time.Time, 0, p.asked.GetCardinality())
	numbers := make([]catalog.RepoID, 0, cap(times))
	for x := range view.Accesses() {
		if p.asked.Contains(x.Repo) {
			numbers, times = append(numbers, x.Repo), append(times, x.At)
		}
	}
	answered.AddMany(numbers)

	for site, wanted := range p.bySite {
		a := &at(site).Repos
		ended := roaring.And(view.EndedAccess(site), answered)
		a.Wanted = int(wanted.GetCardinality())
		a.Failing = int(wanted.AndCardinality(failing))
		a.Ended = int(wanted.AndCardinality(ended))

		for i, id := range numbers {
			if wanted.Contains(id) && !ended.Contains(id) {
				a.good(times[i])
			}
		}
	}
}

// follow brings the repositories of which hosts are asked up to a view.
func (p *Permissions) follow(view *catalog.View) {
	asked := askedOf(view)
	if asked == p.asked {
		return
	}
	if p.asked == nil {
		p.asked, p.bySite = roaring.New(), map[string]*roaring.Bitmap{}
	}

	// A number stays with its host for good, so those that were there before stay where they are.
	for it := roaring.AndNot(asked, p.asked).Iterator(); it.HasNext(); {
		id := it.Next()
		site := catalog.SiteOf(view.Repo(id).ExternalID)
		if p.bySite[site] == nil {
			p.bySite[site] = roaring.New()
		}
		p.bySite[site].Add(id)
	}
	for site, set := range p.bySite {
		if set.And(asked); set.IsEmpty() {
			delete(p.bySite, site)
		}
	}
	p.asked = asked
}

// askedOf are the repositories whose hosts are asked who may read them, by the token of
// a connection of a kind that tells.
func askedOf(view *catalog.View) *roaring.Bitmap {
	wanted := view.Asked()
	return view.CachedSet("asked by a connection", func() func(*catalog.Repo) bool {
		asked := map[string]bool{} // connections, by whether they tell of readers
		for _, c := range view.File().Connections {
			asked[c.Shared().Name] = view.PermissionSync().Enforces(c.Shared()) && host.ReadershipOf(c) != host.Untold
		}
		return func(r *catalog.Repo) bool {
			return wanted.Contains(r.ID) && slices.ContainsFunc(r.Connections, func(c catalog.RepoConnection) bool { return asked[c.Name] })
		}
	})
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
