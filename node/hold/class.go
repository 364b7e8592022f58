package hold

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

// A search pays for each file that it has to look into, so thousands of small
// repositories are slower than one that has all of their text. Their files are
// joined into packs (package node/job). Repositories share a pack only where
// the same members should hold them, since a file is copied as a whole: those
// are a class. Its name is the subject of its pack job.

// packOwn is the text, in bytes, from which on a repository keeps a file of
// its own.
const packOwn = 32 << 20

// ClassFile is a shard file as the repositories of one class have it.
type ClassFile struct {
	ID    string
	Whole int64           // bytes of text of a pack, dead or not; 0 for a file of one repository
	Live  int64           // of those the repositories of the class have
	Text  int64           // of these, the ones that are not about to change: only they are packed
	Repos []*catalog.Repo // that are not about to change

	// Partly is set where some members of the class hold it and others do not:
	// it would have to be copied, with what those have no use for.
	Partly bool
}

// Worn reports whether a file is written anew for what the class has of it: less
// than half, or less than three quarters where the rest would be copied in vain.
func (f *ClassFile) Worn() bool {
	return 2*f.Live < f.Whole || f.Partly && 4*f.Live < 3*f.Whole
}

// Classes is which repositories may share files, and those that they have.
type Classes struct {
	Files map[string]map[string]*ClassFile // of small repositories, by class and id

	byGroup map[uint64]string
}

// ClassesOf works out the classes of a view.
func ClassesOf(view *catalog.View) *Classes {
	// What a running job builds on stays as it is until that job has ended.
	changing := map[catalog.RepoID]bool{}
	for j := range view.JobsOfKind(catalog.JobIndex, catalog.JobRunning, catalog.JobWaiting) {
		changing[catalog.SubjectRepo(j.Subject)] = true
	}

	c, alone := &Classes{Files: map[string]map[string]*ClassFile{}, byGroup: map[uint64]string{}}, memberCount(view) < 2
	for repo := range view.Repos() {
		if repo.Orphaned() || !repo.Indexed() {
			continue
		}

		class := c.class(view, repo, alone)
		if class == "" {
			continue
		}

		for _, s := range repo.Shards {
			// Slices are large, and so is a file of its own above packOwn: joining them gains nothing.
			if s.Slice != 0 || s.Pack == 0 && s.Text > packOwn {
				continue
			}

			f := c.file(view, class, s)
			f.Live += s.Text
			if !changing[repo.ID] {
				f.Text += s.Text
				f.Repos = append(f.Repos, repo)
			}
		}
	}
	return c
}

// class is that of a repository; empty while it is not known who should hold it.
func (c *Classes) class(view *catalog.View, repo *catalog.Repo, alone bool) string {
	group := place.GroupOf(repo.ID)
	class, ok := c.byGroup[group]
	if !ok {
		class = classOf(view, group, alone)
		c.byGroup[group] = class
	}
	return class
}

// file is a file of a class, which is made when it is seen first.
func (c *Classes) file(view *catalog.View, class string, s catalog.ShardRef) *ClassFile {
	files := c.Files[class]
	if files == nil {
		files = map[string]*ClassFile{}
		c.Files[class] = files
	}
	f := files[s.ID]
	if f == nil {
		f = &ClassFile{ID: s.ID, Whole: s.Pack, Partly: s.Pack > 0 && partlyHeld(view, class, s.ID)}
		files[s.ID] = f
	}
	return f
}

// partlyHeld reports whether some members of a class hold a file and others do not.
func partlyHeld(view *catalog.View, class, id string) bool {
	members, _ := catalog.SubjectMembers(class)
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

// classOf is the class of a placement group; empty while it is not known who
// should hold it. A cluster of one member places nothing and has one class.
func classOf(view *catalog.View, group uint64, alone bool) string {
	g := view.Group(group)
	if g == nil {
		if alone {
			return catalog.PackSubject(nil)
		}
		return ""
	}

	// Removed members hold nothing: the class is of those that are left.
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

// Rewrites finds which packs are about to be written anew for a class, as far
// as anybody asks. It belongs to one goroutine.
type Rewrites struct {
	view    *catalog.View
	classes *Classes // once anybody asks
}

// RewritesOf returns the Rewrites of a view.
func RewritesOf(view *catalog.View) *Rewrites { return &Rewrites{view: view} }

// Due reports whether what the class of a repository has of a pack is about to
// be written to a file of its own: at once, or when its repositories, which are
// polled all the time, are not about to change.
func (r *Rewrites) Due(repo catalog.RepoID, id string) bool {
	if r.classes == nil {
		r.classes = ClassesOf(r.view)
	}
	f := r.classes.Files[r.classes.byGroup[place.GroupOf(repo)]][id]
	return f != nil && f.Worn()
}
