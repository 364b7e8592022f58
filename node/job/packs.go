package job

import (
	"cmp"
	"maps"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
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
	packRepos  = 16 << 10  // repositories in a pack
	packLeast  = 8         // files are worth a pack
	packMany   = 2048      // while repositories wait for their first index: as many as fill a pack
	packGrowth = 3         // a file is written anew only with others that have so many times its text
)

// packable is the files that may be packed, by the subject of the class:
// those of a repository that is not about to change.
func packable(view *catalog.View) map[string][]*hold.ClassFile {
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

// choosePack says which files of a class are best written into one: the
// smallest ones, as many as go with the rule of growth, where they are enough,
// and those that are worn. So each byte is written a logarithmic number of
// times, and again when as much as it has died.
func choosePack(files []*hold.ClassFile, calm bool) []*hold.ClassFile {
	slices.SortFunc(files, func(a, b *hold.ClassFile) int { return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.ID, b.ID)) })

	least := packLeast
	if !calm {
		least = packMany
	}

	// Go from small to large: a file joins those before it where these have enough text.
	take, sum, repos := 0, int64(0), 0
	for i, f := range files {
		if sum+f.Text > packText || repos+len(f.Repos) > packRepos {
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

	// What has died in a file costs each search, so worn ones go in whatever they weigh.
	for _, f := range files[take:] {
		if f.Worn() && sum+f.Text <= packText {
			chosen = append(chosen, f)
			sum += f.Text
		}
	}
	return chosen
}

// enqueuePacks asks for a pack where files have gathered.
func enqueuePacks(p *planner) {
	calm, classes := hold.Calm(p.in.View), p.packClasses()
	for _, subject := range slices.Sorted(maps.Keys(classes)) {
		j := p.in.View.Job(catalog.JobPack, subject)
		if !p.idle(j, p.settings.ReindexInterval) || len(choosePack(classes[subject], calm)) == 0 {
			continue
		}
		if !p.add(&catalog.EnqueueJob{Kind: catalog.JobPack, Subject: subject}) {
			return
		}
	}
}

// packClasses is the files that may be packed in the view of the plan.
func (p *planner) packClasses() map[string][]*hold.ClassFile {
	if p.packable == nil {
		p.packable = packable(p.in.View)
	}
	return p.packable
}

// packHome is the live nodes that should hold the files of a class, and
// whether it matters. Where some of them have more of the files than others, it
// is those: a newcomer may have nothing yet.
func packHome(p *planner, j *catalog.Job) (home []string, bound bool) {
	members, _ := catalog.SubjectMembers(j.Subject)
	for _, number := range members {
		if m := p.in.View.MemberNumber(number); m != nil && p.open(m.ID) {
			home = append(home, m.ID)
		}
	}

	// By bytes of text: what it has need not be copied.
	files := p.packClasses()[j.Subject]
	return mostOf(home, func(id string) (held int64) {
		for _, f := range files {
			if p.in.View.Holds(id, catalog.ShardKey(f.ID)) {
				held += f.Text
			}
		}
		return held
	}), len(members) > 0
}
