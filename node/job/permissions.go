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

// PermissionState tells how far code hosts have answered who may read what.
type PermissionState struct {
	Sync     catalog.PermissionSync `json:"sync"`     // whether hosts are asked
	Hosts    []HostPermissions      `json:"hosts"`    // by name
	Unlinked int                    `json:"unlinked"` // active accounts without a linked identity at a code host

	// Running questions now, and their limits, in the cluster.
	PeopleRunning int `json:"peopleRunning"`
	PeopleLimit   int `json:"peopleLimit"`
	ReposRunning  int `json:"reposRunning"`
	ReposLimit    int `json:"reposLimit"`
}

// HostPermissions counts the answers of one code host.
type HostPermissions struct {
	Host   string  `json:"host"`   // the site in the catalog: github:github.com
	People Answers `json:"people"` // about what people may read
	Repos  Answers `json:"repos"`  // about who may read repositories
}

// Answers counts the questions to one host, and its answers.
type Answers struct {
	Wanted   int       `json:"wanted"`          // questions that are asked
	Answered int       `json:"answered"`        // of these: the last good answer counts
	Ended    int       `json:"ended"`           // of these: the answer is too old to count
	Refused  int       `json:"refused"`         // of these: the host no longer lets the person in
	Failing  int       `json:"failing"`         // of these: the last tries have failed
	Newest   time.Time `json:"newest,omitzero"` // newest good answer; zero: none
	Oldest   time.Time `json:"oldest,omitzero"` // oldest good answer
}

// addGood counts an answer that still counts, given at a time.
func (a *Answers) addGood(at time.Time) {
	a.Answered++
	if at.After(a.Newest) {
		a.Newest = at
	}
	if a.Oldest.IsZero() || at.Before(a.Oldest) {
		a.Oldest = at
	}
}

// Permissions computes PermissionStates. It caches data between views, so that with 100,000
// repositories only changes cost. The zero value is ready to use. It is safe for concurrent use.
type Permissions struct {
	mu    sync.Mutex // guards the fields below
	index uint64     // index of the view of last
	last  *PermissionState

	asked  *roaring.Bitmap            // result of askedRepos at that view
	bySite map[string]*roaring.Bitmap // the same, by host
}

// Of returns the state at a view, cached until the catalog changes. The caller must not change it.
func (p *Permissions) Of(view *catalog.View) *PermissionState {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || p.index != view.Index() {
		p.last, p.index = p.countState(view), view.Index()
	}
	return p.last
}

// countState computes the state at a view.
func (p *Permissions) countState(view *catalog.View) *PermissionState {
	settings := view.File().Settings
	s := &PermissionState{
		Sync:        view.PermissionSync(),
		PeopleLimit: settings.MaxAccountPermissionSyncJobs,
		ReposLimit:  settings.MaxRepoPermissionSyncJobs,
	}
	if s.Sync != catalog.PermissionSyncOn {
		return s
	}

	// at returns the row of a host, and adds it on first use.
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

	s.Unlinked = countUnlinked(view)
	return s
}

// countPeople counts the people in whose names hosts are asked.
func countPeople(view *catalog.View, at func(site string) *HostPermissions) {
	for x := range view.HostTokens() {
		if view.IdentityAt(x.Site, x.Subject) == nil {
			continue // the provider is no longer configured
		}

		a := &at(x.Site).People
		a.Wanted++

		switch r := view.Reader(x.Site, x.Subject); {
		case r == nil || r.Began == 0:
		case r.Issue != "":
			a.Refused++
			continue // the job would only report the same again
		case r.Stale:
			a.Ended++
		default:
			a.addGood(r.At)
		}

		if AccessIssue(view.Job(catalog.JobAccountSync, catalog.ReaderKey(x.Site, x.Subject))) != "" {
			a.Failing++
		}
	}
}

// countRepoAnswers counts the repositories whose hosts are asked.
func (p *Permissions) countRepoAnswers(view *catalog.View, at func(site string) *HostPermissions) {
	p.updateAsked(view)
	failing, answered := roaring.New(), roaring.New()
	for j := range view.JobsOfKind(catalog.JobRepoSync, catalog.JobFailed, catalog.JobBackoff) {
		if AccessIssue(j) != "" {
			failing.Add(catalog.SubjectRepo(j.Subject))
		}
	}

	// Read the time of each answer once. Set operations count everything else.
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
				a.addGood(times[i])
			}
		}
	}
}

// updateAsked brings p.asked and p.bySite up to date with a view.
func (p *Permissions) updateAsked(view *catalog.View) {
	asked := askedRepos(view)
	if asked == p.asked {
		return
	}
	if p.asked == nil {
		p.asked, p.bySite = roaring.New(), map[string]*roaring.Bitmap{}
	}

	// A repository never changes its host, so only add new ones and remove old ones.
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

// askedRepos returns the repositories for which a connection's token is used to ask the host who may
// read them.
func askedRepos(view *catalog.View) *roaring.Bitmap {
	wanted := view.Asked()
	return view.CachedSet("asked by a connection", func() func(*catalog.Repo) bool {
		asked := map[string]bool{} // by connection: whether its host tells about readers
		for _, c := range view.File().Connections {
			asked[c.Shared().Name] = view.PermissionSync().Enforces(c.Shared()) && host.ReadershipOf(c) != host.Untold
		}
		return func(r *catalog.Repo) bool {
			return wanted.Contains(r.ID) && slices.ContainsFunc(r.Connections, func(c catalog.RepoConnection) bool { return asked[c.Name] })
		}
	})
}

// countUnlinked counts the active accounts without an identity at a code host.
func countUnlinked(view *catalog.View) (n int) {
	linked := func(x *catalog.Identity) bool { return view.SiteOfIdentity(x) != "" }
	for a := range view.Accounts() {
		if a.State == catalog.AccountActive && !slices.ContainsFunc(view.IdentitiesOf(a.ID), linked) {
			n++
		}
	}
	return n
}
