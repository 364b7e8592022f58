package hold

import (
	"maps"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

// Census counts the repositories, the jobs and the data of a catalog for status, pages and
// metrics. It keeps the counts of the last view, and corrects them by what has changed:
//
//	counts of view 41  ──▶  counts of view 57
//	                    2 repositories and 1 file changed: 3 records are read
//
// Only other live members, or very many changes, make it walk over everything. The zero
// value is ready. It is safe for concurrent use.
type Census struct {
	mu    sync.Mutex // guards the fields below
	view  *catalog.View
	live  Live
	tally *Tally
	files map[string]*fileUse // by key
	read  int                 // repositories that were looked at, for tests
}

// Tally is what a Census found. It is shared and read-only. Sets are of repositories;
// only repositories that anybody is shown count.
type Tally struct {
	Shown       *roaring.Bitmap
	Searchable  *roaring.Bitmap // each shard has a live holder
	Unfetchable *roaring.Bitmap // neither searchable, nor can it be fetched now
	Failed      *roaring.Bitmap // the last index failed
	LeftOut     *roaring.Bitmap // has more revisions than are indexed
	Emptied     *roaring.Bitmap // the last fetch found no commit, and no host says so

	copies []*roaring.Bitmap // indexed ones, by the live holders of what has the fewest

	Units map[uint64]int           // of placement, with how many mirrors and shards are in each
	Bytes map[uint32]int64         // of shards that a member has confirmed, by its number
	Jobs  map[catalog.JobState]int // by state, but for those of hidden repositories
}

// fileUse is what shown repositories use of an index file.
type fileUse struct {
	repos *roaring.Bitmap
	bytes int64 // of a pack the shares of these repositories
}

// At is the tally of a view with some members alive.
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

	f := following{c, c.tally.clone(), view.Shown(), view, roaring.BitmapOf(changes.Repos...), map[string]bool{}}
	f.widen(&changes)
	f.countJobs(&changes)
	f.countData()
	f.countRepos()
	c.view, c.tally = view, f.tally
	return c.tally
}

// newTally is that of no repositories, while so many members are alive.
func newTally(live int) *Tally {
	t := &Tally{Units: map[uint64]int{}, Bytes: map[uint32]int64{}, Jobs: map[catalog.JobState]int{}, copies: make([]*roaring.Bitmap, live+1)}
	for _, set := range t.sets() {
		*set = roaring.New()
	}
	return t
}

// sets are where the sets of a tally are.
func (t *Tally) sets() []**roaring.Bitmap {
	all := []**roaring.Bitmap{&t.Shown, &t.Searchable, &t.Unfetchable, &t.Failed, &t.LeftOut, &t.Emptied}
	for i := range t.copies {
		all = append(all, &t.copies[i])
	}
	return all
}

// clone is a tally that may be changed.
func (t *Tally) clone() *Tally {
	n := *t
	n.copies = slices.Clone(t.copies)
	for _, set := range n.sets() {
		*set = (*set).Clone()
	}
	n.Units, n.Bytes, n.Jobs = maps.Clone(t.Units), maps.Clone(t.Bytes), maps.Clone(t.Jobs)
	return &n
}

// following takes a census from its view to another one.
type following struct {
	*Census
	tally *Tally // becomes that of the other view
	shown func(*catalog.Repo) bool
	to    *catalog.View
	repos *roaring.Bitmap // to look at
	keys  map[string]bool // of files of which the use or the holders may differ
}

// widen adds what depends on the changes: a repository is failed by its job, and lacks
// copies where a member no longer holds a file of it.
func (f *following) widen(changes *catalog.Changes) {
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

// both calls a function for the old record of a repository, with -1, and for the new one,
// with 1. Those that are gone, new or hidden have no such record.
func (f *following) both(id catalog.RepoID, each func(repo *catalog.Repo, by int)) {
	if f.view != nil {
		if old := f.view.Repo(id); old != nil && f.shown(old) {
			each(old, -1)
		}
	}
	if repo := f.to.Repo(id); repo != nil && f.shown(repo) {
		each(repo, 1)
	}
}

// countJobs takes the jobs out by their old states, and counts them in by the new ones.
func (f *following) countJobs(changes *catalog.Changes) {
	jobs := map[catalog.JobKey]bool{}
	for _, key := range changes.Jobs {
		jobs[key] = true
	}

	// A job counts while its repository is not hidden.
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

func (f *following) countJob(view *catalog.View, key catalog.JobKey, by int) {
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

// countData counts units of placement, and bytes of files at their holders.
func (f *following) countData() {
	for it := f.repos.Iterator(); it.HasNext(); {
		f.both(it.Next(), func(repo *catalog.Repo, _ int) {
			for _, s := range repo.Shards {
				f.keys[catalog.ShardKey(s.ID)] = true
			}
		})
	}

	f.countBytes(f.view, -1)
	for it := f.repos.Iterator(); it.HasNext(); {
		f.both(it.Next(), f.use)
	}
	f.countBytes(f.to, 1)
}

// countBytes adds the bytes of the files to those who hold them at a view.
func (f *following) countBytes(view *catalog.View, by int64) {
	for key := range f.keys {
		if use := f.files[key]; use != nil && view != nil {
			for _, number := range view.HolderNumbers(key) {
				f.tally.Bytes[number] += by * use.bytes
			}
		}
	}
}

// use notes what a repository uses, or with -1 that it does no longer.
func (f *following) use(repo *catalog.Repo, by int) {
	f.putUnit(place.GroupOf(repo.ID), by)
	for _, s := range repo.Shards {
		if s.Slice != 0 {
			f.putUnit(UnitOf(repo.ID, s), by)
		}
		for key := range FilesOf(repo.ID, s) {
			use := f.files[key]
			if use == nil {
				use = &fileUse{repos: roaring.New()}
				f.files[key] = use
			}

			put(use.repos, repo.ID, by > 0)
			if key == catalog.ShardKey(s.ID) {
				use.bytes += int64(by) * s.Bytes
			}
			if use.repos.IsEmpty() {
				delete(f.files, key)
			}
		}
	}
}

func (f *following) putUnit(unit uint64, by int) {
	f.tally.Units[unit] += by
	if f.tally.Units[unit] == 0 {
		delete(f.tally.Units, unit)
	}
}

func put(set *roaring.Bitmap, id catalog.RepoID, in bool) {
	if in {
		set.Add(id)
	} else {
		set.Remove(id)
	}
}

// countRepos puts the repositories into the sets that they belong to now.
func (f *following) countRepos() {
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

func (f *following) countRepo(repo *catalog.Repo) {
	t, id := f.tally, repo.ID
	searchable := f.live.Searchable(f.to, repo)
	unfetchable := !searchable && repo.Unfetchable != ""
	put(t.Shown, id, true)
	put(t.Searchable, id, searchable)
	put(t.Unfetchable, id, unfetchable)
	put(t.LeftOut, id, repo.LeftOut > 0)
	put(t.Emptied, id, repo.NoCommit() && !repo.Empty)

	// The last job counts, whatever was indexed before.
	put(t.Failed, id, !unfetchable && f.to.Job(catalog.JobIndex, catalog.RepoSubject(id)).Failing())
	if !repo.Indexed() {
		return
	}

	// What a repository lacks is what its worst file lacks.
	fewest := len(f.live)
	for key := range KeysOf(repo) {
		fewest = min(fewest, f.live.Copies(f.to, key))
	}
	t.copies[fewest].Add(id)
}

// Shortage is which of the indexed repositories that anybody is shown lack live copies: a
// search lacks nothing of the others.
type Shortage struct {
	Few  *roaring.Bitmap // something of them has fewer live holders than copies are wanted, or than there are live members
	None *roaring.Bitmap // of these: at least one file is on no live node

	Fewest int // live holders of what has the fewest of them; all that live where there is nothing to hold
}

// Shortage is what lacks live copies, where so many are wanted.
func (t *Tally) Shortage(copies int) Shortage {
	live := len(t.copies) - 1
	s := Shortage{None: t.copies[0], Fewest: live}
	s.Few = roaring.FastOr(t.copies[:min(copies, live)]...)
	if n := slices.IndexFunc(t.copies, func(set *roaring.Bitmap) bool { return !set.IsEmpty() }); n >= 0 {
		s.Fewest = n
	}
	return s
}

// FirstNames are the names of the first repositories of a set by name, at most so many.
func FirstNames(view *catalog.View, set *roaring.Bitmap, most int) (names []string) {
	// Of many, those by name are soon found; few are sorted.
	if int(set.GetCardinality()) > view.RepoCount()/8 {
		for repo := range view.ReposByName() {
			if len(names) == most {
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
	return names[:min(len(names), most)]
}
