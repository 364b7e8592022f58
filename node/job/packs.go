package job

import (
	"cmp"
	"maps"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
)

// A search has a cost per file, so thousands of small repositories are slower than one with all of
// their text. So their files are joined into packs in the background. A file is copied as a whole.
// So repositories share a pack only if the same members should hold them. Such repositories form a
// class, and each class has at most one pack job.
//	repository indexed   ->  a file of its own
//	eight small files    ->  one pack               a byte only moves into a file
//	packs, more files    ->  a larger pack          four times the size
//	a push               ->  the pack, a side file with what died, a delta
//	half of it dead                             ->  what is live is written again
//	a part moved to another class               ->  a node with the pack writes the part, then it is copied

// Limits of packing.
const (
	maxPackText      = 512 << 20 // bytes of text in a pack
	maxPackRepos     = 16 << 10  // repositories in a pack
	minPackFiles     = 8         // least number of files to join
	minPackFilesBusy = 2048      // the same while repositories wait for their first index
	packGrowth       = 3         // a file is written again only with others that have this multiple of its text
)

// packableFiles returns the files that may be packed, by the subject of their class.
func packableFiles(view *catalog.View) map[string][]*hold.ClassFile {
	out := map[string][]*hold.ClassFile{}
	for class, files := range hold.ClassesOf(view).Files {
		for _, f := range files {
			if len(f.Repos) > 0 {
				out[class] = append(out[class], f)
			}
		}
	}
	return out
}

// choosePack returns the files of a class to join: the smallest ones as far as packGrowth allows, if
// there are enough, and those with much dead text. So each byte is written a logarithmic number of
// times, and once more when as many bytes are dead. settled means that no repository waits for its
// first index.
func choosePack(files []*hold.ClassFile, settled bool) []*hold.ClassFile {
	slices.SortFunc(files, func(a, b *hold.ClassFile) int { return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.ID, b.ID)) })

	least := minPackFiles
	if !settled {
		least = minPackFilesBusy
	}

	// From small to large: a file joins the smaller ones if these have enough text.
	take, sum, repos := 0, int64(0), 0
	for i, f := range files {
		if sum+f.Text > maxPackText || repos+len(f.Repos) > maxPackRepos {
			break
		}
		if f.Text*packGrowth <= sum {
			take = i + 1
		}
		sum, repos = sum+f.Text, repos+len(f.Repos)
	}

	if take < least {
		take = 0
	}

	chosen := slices.Clone(files[:take])
	sum = 0
	for _, f := range chosen {
		sum += f.Text
	}

	// Dead text slows down each search, so also take worn files, whatever their size.
	for _, f := range files[take:] {
		if f.Worn() && sum+f.Text <= maxPackText {
			chosen = append(chosen, f)
			sum += f.Text
		}
	}
	return chosen
}

// enqueuePacks enqueues pack jobs for classes with enough files.
func enqueuePacks(p *planner) {
	settled := hold.FirstIndexesDone(p.in.View)
	classes := p.packClasses()
	for _, subject := range slices.Sorted(maps.Keys(classes)) {
		j := p.in.View.Job(catalog.JobPack, subject)
		if !p.mayEnqueue(j, p.settings.ReindexInterval) || len(choosePack(classes[subject], settled)) == 0 {
			continue
		}
		if !p.addIfRoom(&catalog.EnqueueJob{Kind: catalog.JobPack, Subject: subject}) {
			return
		}
	}
}

// packClasses returns the files that may be packed, cached for this plan.
func (p *planner) packClasses() map[string][]*hold.ClassFile {
	if p.packCache == nil {
		p.packCache = packableFiles(p.in.View)
	}
	return p.packCache
}

// packHome returns the live nodes that should hold the files of a class. Of these it returns those
// that have most of the files already. bound means that no other node may run the job.
func packHome(p *planner, j *catalog.Job) (home []string, bound bool) {
	members, _ := catalog.SubjectMembers(j.Subject)
	for _, number := range members {
		if m := p.in.View.MemberNumber(number); m != nil && p.nodeTakesJobs(m.ID) {
			home = append(home, m.ID)
		}
	}

	files := p.packClasses()[j.Subject]
	return nodesWithMost(home, func(id string) (held int64) {
		for _, f := range files {
			if p.in.View.Holds(id, catalog.ShardKey(f.ID)) {
				held += f.Text
			}
		}
		return held
	}), len(members) > 0
}
