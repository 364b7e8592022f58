package hold

import (
	"maps"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

// Census counts the repositories, the jobs and the data of a catalog for status, pages and metrics.
// It keeps the counts of the last view and corrects them by the changes since then:
//
//	counts of view 41  ──▶  counts of view 57
//	                    2 repositories and 1 file changed: 3 records are read
//
// It walks over everything only if other members are alive than before, or after very many changes.
// The zero value is ready to use. It is safe for concurrent use.
type Census struct {
	mu    sync.Mutex // guards the fields below
	view  *catalog.View
	live  Live
	tally *Tally
	files map[string]*fileUse // by key of the file
	read  int                 // number of repositories read, for tests
}

// Tally is the result of a Census. It is shared and read-only. Its sets contain repositories, and
// only those that somebody may see.
type Tally struct {
	Shown       *roaring.Bitmap
	Searchable  *roaring.Bitmap // each shard has a live holder
	Unfetchable *roaring.Bitmap // not searchable, and cannot be fetched now
	Failed      *roaring.Bitmap // the last index job failed
	LeftOut     *roaring.Bitmap // has more revisions than are indexed
	Emptied     *roaring.Bitmap // the last fetch found no commit, although its host does not call it empty

	copies []*roaring.Bitmap // copies[n]: indexed repositories whose scarcest file has n live holders

	Units map[uint64]int           // by unit of placement: number of mirrors and shards in it
	Bytes map[uint32]int64         // by number of a member: bytes of shards that it has confirmed
	Jobs  map[catalog.JobState]int // by state; without the jobs of hidden repositories
}

// fileUse is how visible repositories use an index file.
type fileUse struct {
	repos *roaring.Bitmap
	bytes int64 // bytes of the file; of a pack only the shares of these repositories
}

// At returns the tally of a view. live are the members that can be reached.
func (c *Census) At(view *catalog.View, live Live) *Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view == view && maps.Equal(c.live, live) {
		return c.tally
	}

	changes, ok := catalog.Changes{}, false
	if c.tally != nil && maps.Equal(c.live, live) {
		changes, ok = view.Since(c.view)
	}
	if !ok {
		changes = view.Everything()
		c.view, c.live, c.files, c.tally = nil, maps.Clone(live), map[string]*fileUse{}, newTally(len(live))
	}

	f := censusUpdate{
		Census: c,
		tally:  c.tally.clone(),
		shown:  view.Shown(),
		to:     view,
		repos:  roaring.BitmapOf(changes.Repos...),
		keys:   map[string]bool{},
	}
	f.addAffected(&changes)
	f.countJobs(&changes)
	f.countData()
	f.countRepos()
	c.view, c.tally = view, f.tally
	return c.tally
}

// newTally returns the tally of no repositories, while that many members are alive.
func newTally(live int) *Tally {
	t := &Tally{Units: map[uint64]int{}, Bytes: map[uint32]int64{}, Jobs: map[catalog.JobState]int{}, copies: make([]*roaring.Bitmap, live+1)}
	for _, set := range t.sets() {
		*set = roaring.New()
	}
	return t
}

// sets returns pointers to all sets of a tally.
func (t *Tally) sets() []**roaring.Bitmap {
	all := []**roaring.Bitmap{&t.Shown, &t.Searchable, &t.Unfetchable, &t.Failed, &t.LeftOut, &t.Emptied}
	for i := range t.copies {
		all = append(all, &t.copies[i])
	}
	return all
}

// clone returns a copy that may be changed.
func (t *Tally) clone() *Tally {
	n := *t
	n.copies = slices.Clone(t.copies)
	for _, set := range n.sets() {
		*set = (*set).Clone()
	}
	n.Units, n.Bytes, n.Jobs = maps.Clone(t.Units), maps.Clone(t.Bytes), maps.Clone(t.Jobs)
	return &n
}

// censusUpdate moves a census from its view to another one.
type censusUpdate struct {
	*Census
	tally *Tally // becomes the tally of the new view
	shown func(*catalog.Repo) bool
	to    *catalog.View
	repos *roaring.Bitmap // repositories to count again
	keys  map[string]bool // files whose use or holders may have changed
}

// addAffected adds the repositories and files that must be counted again. A changed index job may
// mean that its repository has failed. A changed holder may leave the repositories of a file with
// too few copies.
func (f *censusUpdate) addAffected(changes *catalog.Changes) {
	for _, key := range changes.Jobs {
		if key.Kind == catalog.JobIndex {
			f.repos.Add(catalog.SubjectRepo(key.Subject))
		}
	}

	for _, key := range changes.Holdings {
		if id, ok := catalog.MirrorRepo(key); ok {
			f.repos.Add(id)
			continue
		}
		f.keys[key] = true
		if use := f.files[key]; use != nil {
			f.repos.Or(use.repos)
		}
	}
	f.read += int(f.repos.GetCardinality())
}

// eachRecord calls each(old record, -1) and each(new record, 1), so that the old counts are
// subtracted and the new ones added. It skips a record that does not exist or is hidden.
func (f *censusUpdate) eachRecord(id catalog.RepoID, each func(repo *catalog.Repo, by int)) {
	if f.view != nil {
		if old := f.view.Repo(id); old != nil && f.shown(old) {
			each(old, -1)
		}
	}
	if repo := f.to.Repo(id); repo != nil && f.shown(repo) {
		each(repo, 1)
	}
}

// countJobs subtracts the changed jobs by their old states and adds them by their new ones.
func (f *censusUpdate) countJobs(changes *catalog.Changes) {
	jobs := map[catalog.JobKey]bool{}
	for _, key := range changes.Jobs {
		jobs[key] = true
	}

	// A job counts only while its repository is visible.
	for _, id := range changes.Repos {
		for _, kind := range catalog.JobKinds() {
			if kind.OfRepo() {
				jobs[catalog.JobKey{Kind: kind, Subject: catalog.RepoSubject(id)}] = true
			}
		}
	}

	for key := range jobs {
		f.countJob(f.view, key, -1)
		f.countJob(f.to, key, 1)
	}
}

// countJob adds by, 1 or -1, to the count of jobs in the state that the job has in view.
func (f *censusUpdate) countJob(view *catalog.View, key catalog.JobKey, by int) {
	if view == nil {
		return
	}
	j := view.Job(key.Kind, key.Subject)
	if j == nil {
		return
	}
	if key.Kind.OfRepo() {
		if repo := view.Repo(catalog.SubjectRepo(key.Subject)); repo != nil && !repo.Orphaned() && !f.shown(repo) {
			return
		}
	}
	f.tally.Jobs[j.State] += by
}

// countData corrects the units and the bytes that each node holds, for the repositories that
// changed.
func (f *censusUpdate) countData() {
	for it := f.repos.Iterator(); it.HasNext(); {
		f.eachRecord(it.Next(), func(repo *catalog.Repo, _ int) {
			for _, s := range repo.Shards {
				f.keys[catalog.ShardKey(s.ID)] = true
			}
		})
	}

	f.countBytes(f.view, -1)
	for it := f.repos.Iterator(); it.HasNext(); {
		f.eachRecord(it.Next(), f.countRepoData)
	}
	f.countBytes(f.to, 1)
}

// countBytes adds the bytes of f.keys to their holders in a view (by = 1), or subtracts them (-1).
func (f *censusUpdate) countBytes(view *catalog.View, by int64) {
	for key := range f.keys {
		if use := f.files[key]; use != nil && view != nil {
			for _, number := range view.HolderNumbers(key) {
				f.tally.Bytes[number] += by * use.bytes
			}
		}
	}
}

// countRepoData adds the units and files of one repository (by = 1), or subtracts them (-1). A unit
// is data that is placed as a whole: all small repositories of a group, or one slice of a large
// repository.
func (f *censusUpdate) countRepoData(repo *catalog.Repo, by int) {
	f.addToUnit(place.GroupOf(repo.ID), by)
	for _, s := range repo.Shards {
		if s.Slice != 0 {
			f.addToUnit(UnitOf(repo.ID, s), by)
		}
		for key := range FilesOf(repo.ID, s) {
			use := f.files[key]
			if use == nil {
				use = &fileUse{repos: roaring.New()}
				f.files[key] = use
			}

			// Only the sizes of shards are known, so side files count no bytes.
			setMember(use.repos, repo.ID, by > 0)
			if key == catalog.ShardKey(s.ID) {
				use.bytes += int64(by) * s.OwnBytes()
			}
			if use.repos.IsEmpty() {
				delete(f.files, key)
			}
		}
	}
}

// addToUnit adds by to the number of mirrors and shards in a unit.
func (f *censusUpdate) addToUnit(unit uint64, by int) {
	f.tally.Units[unit] += by
	if f.tally.Units[unit] == 0 {
		delete(f.tally.Units, unit)
	}
}

// setMember adds a repository to a set, or removes it.
func setMember(set *roaring.Bitmap, id catalog.RepoID, contained bool) {
	if contained {
		set.Add(id)
	} else {
		set.Remove(id)
	}
}

// countRepos puts the repositories into their present sets.
func (f *censusUpdate) countRepos() {
	for it := f.repos.Iterator(); it.HasNext(); {
		id := it.Next()
		for _, set := range f.tally.sets() {
			(*set).Remove(id)
		}
		if repo := f.to.Repo(id); repo != nil && f.shown(repo) {
			f.countRepo(repo)
		}
	}
}

// countRepo sets or clears a repository in the sets of the tally: searchable, failed and so on.
func (f *censusUpdate) countRepo(repo *catalog.Repo) {
	t, id := f.tally, repo.ID
	searchable := f.live.Searchable(f.to, repo)
	unfetchable := !searchable && repo.Unfetchable != ""
	setMember(t.Shown, id, true)
	setMember(t.Searchable, id, searchable)
	setMember(t.Unfetchable, id, unfetchable)
	setMember(t.LeftOut, id, repo.LeftOut > 0)
	setMember(t.Emptied, id, repo.NoCommit() && !repo.Empty)

	// The last job decides, whatever was indexed before.
	setMember(t.Failed, id, !unfetchable && f.to.Job(catalog.JobIndex, catalog.RepoSubject(id)).Failing())
	if !repo.Indexed() {
		return
	}

	// The scarcest file of a repository decides.
	fewest := len(f.live)
	for key := range KeysOf(repo) {
		fewest = min(fewest, f.live.Copies(f.to, key))
	}
	t.copies[fewest].Add(id)
}

// Shortage lists the visible indexed repositories that lack live copies. A search of the others
// lacks nothing.
type Shortage struct {
	Few  *roaring.Bitmap // one of their files has fewer live holders than wanted, or than there are live members
	None *roaring.Bitmap // of these: at least one file is on no live node

	Fewest int // live holders of the scarcest file; the number of live members if there are no files
}

// Shortage returns which repositories lack live copies, if that many copies are wanted.
func (t *Tally) Shortage(copies int) Shortage {
	live := len(t.copies) - 1
	s := Shortage{None: t.copies[0], Fewest: live}
	s.Few = roaring.FastOr(t.copies[:min(copies, live)]...)
	if n := slices.IndexFunc(t.copies, func(set *roaring.Bitmap) bool { return !set.IsEmpty() }); n >= 0 {
		s.Fewest = n
	}
	return s
}

// FirstNames returns the names of the repositories in a set in alphabetical order, up to maxNames.
func FirstNames(view *catalog.View, set *roaring.Bitmap, maxNames int) (names []string) {
	// In a large set the first names are soon found in the list of all names. A small set is
	// sorted.
	if int(set.GetCardinality()) > view.RepoCount()/8 {
		for repo := range view.ReposByName() {
			if len(names) == maxNames {
				break
			}
			if set.Contains(repo.ID) {
				names = append(names, repo.Name)
			}
		}
		return names
	}

	for it := set.Iterator(); it.HasNext(); {
		names = append(names, view.Repo(it.Next()).Name)
	}
	slices.Sort(names)
	return names[:min(len(names), maxNames)]
}
