package job

import (
	"cmp"
	"maps"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// A search pays for each file that it has to look into, so thousands of small
// repositories are slower than one that has all of their text. Their files are
// joined into packs, in the background. Repositories share a pack only where
// the same members should hold them, since a file is copied as a whole: those
// are a class, and each class has at most one pack job.
//
//	repository indexed   ->  a file of its own
//	eight small files    ->  one pack               a byte moves only into a file
//	packs, more files    ->  a larger pack          four times the size
//	a push               ->  the pack, a side file that says what died, a delta
//	half of it dead                             ->  what is alive is written anew
//	a part moved to another class               ->  the part is written by one who has it, and only then copied

// The bounds of packing.
const (
	packText   = 512 << 20 // of text in a pack
	packOwn    = 32 << 20  // a repository with a file of more text keeps it
	packRepos  = 16 << 10  // repositories in a pack
	packLeast  = 8         // files are worth a pack
	packMany   = 2048      // while repositories wait for their first index: as many as fill a pack
	packGrowth = 3         // a file is written anew only with others that have so many times its text
)

// packFile is a shard file as the repositories of one class have it.
type packFile struct {
	id    string
	whole int64 // bytes of text of a pack, dead or not
	live  int64 // of the repositories of the class
	text  int64 // of those that are not about to change: only these are packed
	repos []*catalog.Repo
	// Some members of the class hold it and others do not: it would have to
	// be copied, with what those have no use for.
	partly bool
}

// worn tells that a file is written anew for what the class has of it: less
// than half, or less than three quarters where the rest would be copied in vain.
func (f *packFile) worn() bool {
	return 2*f.live < f.whole || f.partly && 4*f.live < 3*f.whole
}

// packClasses is the files that may be packed, by the subject of the class:
// those of a repository that is not about to change.
func packClasses(view *catalog.View) map[string][]*packFile {
	packable := map[string][]*packFile{}
	for subject, files := range classesOf(view).files {
		for _, f := range files {
			if len(f.repos) > 0 {
				packable[subject] = append(packable[subject], f)
			}
		}
	}
	return packable
}

// classes is which repositories may share files, and those that they have.
type classes struct {
	subjects map[uint64]string               // by placement group
	files    map[string]map[string]*packFile // of small repositories, by subject and id
}

func classesOf(view *catalog.View) *classes {
	changing := map[catalog.RepoID]bool{}
	for j := range view.JobsOfKind(catalog.JobIndex, catalog.JobRunning, catalog.JobWaiting) {
		changing[catalog.SubjectRepo(j.Subject)] = true
	}
	c, alone := &classes{map[uint64]string{}, map[string]map[string]*packFile{}}, memberCount(view) < 2
	for repo := range view.Repos() {
		if repo.Orphaned() || !repo.Indexed() {
			continue
		}
		group := groupOf(repo.ID)
		subject, ok := c.subjects[group]
		if !ok {
			subject = packSubject(view, group, alone)
			c.subjects[group] = subject
		}
		if subject == "" {
			continue
		}
		files := c.files[subject]
		if files == nil {
			files = map[string]*packFile{}
			c.files[subject] = files
		}
		for _, s := range repo.Shards {
			if s.Slice != 0 || s.Pack == 0 && s.Text > packOwn {
				continue
			}
			f := files[s.ID]
			if f == nil {
				f = &packFile{id: s.ID, whole: s.Pack, partly: s.Pack > 0 && partlyHeld(view, subject, s.ID)}
				files[s.ID] = f
			}
			f.live += s.Text
			if !changing[repo.ID] {
				f.text += s.Text
				f.repos = append(f.repos, repo)
			}
		}
	}
	return c
}

// partlyHeld tells that some members of a class hold a file and others do not.
func partlyHeld(view *catalog.View, subject, id string) bool {
	members, _ := catalog.SubjectMembers(subject)
	holders, have := view.Holders(catalog.ShardKey(id)), 0
	for _, number := range members {
		if m := view.MemberNumber(number); m != nil && slices.Contains(holders, m.ID) {
			have++
		}
	}
	return have > 0 && have < len(members)
}

func memberCount(view *catalog.View) int {
	n := 0
	for m := range view.Members() {
		if m.State != catalog.MemberRemoved {
			n++
		}
	}
	return n
}

// packSubject is the class of a placement group; empty while it is not known
// who should hold it.
func packSubject(view *catalog.View, group uint64, alone bool) string {
	g := view.Group(group)
	if g == nil {
		if alone {
			return catalog.PackSubject(nil)
		}
		return ""
	}
	var members []uint32
	for _, n := range g.Nodes {
		if m := view.MemberNumber(n); m != nil && m.State != catalog.MemberRemoved {
			members = append(members, n)
		}
	}
	if len(members) == 0 {
		return ""
	}
	return catalog.PackSubject(members)
}

// calm tells that no repository is about to get its first index: until then
// it is cheaper to wait for more.
func calm(view *catalog.View) bool {
	for j := range view.JobsOfKind(catalog.JobIndex, catalog.JobRunning, catalog.JobWaiting) {
		if r := view.Repo(catalog.SubjectRepo(j.Subject)); r != nil && !r.Indexed() {
			return false
		}
	}
	return true
}

// choosePack says which files of a class are best written into one: the
// smallest ones, as many as go with the rule of growth, where they are enough,
// and those that are worn. So each byte is written a logarithmic number of
// times, and again when as much as it has died.
func choosePack(files []*packFile, calm bool) []*packFile {
	slices.SortFunc(files, func(a, b *packFile) int { return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.id, b.id)) })
	least := packLeast
	if !calm {
		least = packMany
	}
	take, sum, repos := 0, int64(0), 0
	for i, f := range files {
		if sum+f.text > packText || repos+len(f.repos) > packRepos {
			break
		}
		if f.text*packGrowth <= sum {
			take = i + 1
		}
		sum, repos = sum+f.text, repos+len(f.repos)
	}
	if take < least {
		take = 0
	}
	chosen := slices.Clone(files[:take])
	sum = 0
	for _, f := range chosen {
		sum += f.text
	}
	for _, f := range files[take:] {
		if f.worn() && sum+f.text <= packText {
			chosen = append(chosen, f)
			sum += f.text
		}
	}
	return chosen
}

// enqueuePacks asks for a pack where files have gathered.
func (p *planner) enqueuePacks() {
	calm := calm(p.in.View)
	classes := p.packClasses()
	for _, subject := range slices.Sorted(maps.Keys(classes)) {
		j := p.in.View.Job(catalog.JobPack, subject)
		idle := j == nil || j.State == catalog.JobDone || j.State == catalog.JobFailed && !p.in.Now.Before(j.FinishedAt.Add(p.settings.ReindexInterval))
		if !idle || len(choosePack(classes[subject], calm)) == 0 {
			continue
		}
		if !p.add(&catalog.EnqueueJob{Kind: catalog.JobPack, Subject: subject}) {
			return
		}
	}
}

// packClasses is that of the view.
func (p *planner) packClasses() map[string][]*packFile {
	if p.classes == nil {
		p.classes = packClasses(p.in.View)
	}
	return p.classes
}

// packHome is the live nodes that should hold the files of a class, and
// whether it matters. Where some of them have more of the files than others, it
// is those: a newcomer may have nothing yet.
func (p *planner) packHome(subject string) (home []string, bound bool) {
	members, _ := catalog.SubjectMembers(subject)
	for _, number := range members {
		if m := p.in.View.MemberNumber(number); m != nil && p.open(m.ID) {
			home = append(home, m.ID)
		}
	}
	files := p.packClasses()[subject]
	return mostOf(home, func(id string) (held int64) {
		for _, f := range files {
			if p.in.View.Holds(id, catalog.ShardKey(f.id)) {
				held += f.text
			}
		}
		return held
	}), len(members) > 0
}
