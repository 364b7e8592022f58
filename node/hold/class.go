package hold

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

// A search pays for each file that it has to look into, so thousands of small repositories are
// slower than one with all of their text. Package node/job joins their files into packs. A file is
// copied as a whole, so repositories share a pack only if the same members should hold them. Such
// repositories are a class. The name of the class is the subject of its pack job.

// ownFileText: a repository with more bytes of text keeps its own file.
const ownFileText = 32 << 20

// ClassFile is a shard file as used by the repositories of one class.
type ClassFile struct {
	ID    string
	Whole int64           // bytes of text in a pack, dead or not; 0 for a file of one repository
	Live  int64           // bytes of text that belong to repositories of the class
	Text  int64           // bytes of text of Repos: only these are packed
	Repos []*catalog.Repo // repositories of the class that no job is about to change

	// Partly reports that some members of the class hold the file and others do not. They would
	// have to copy it, together with text that they do not need.
	Partly bool
}

// Worn reports whether the class should rewrite its part of the file: if the part is less than half
// of the file, or less than three quarters and the rest would be copied in vain.
func (f *ClassFile) Worn() bool {
	return 2*f.Live < f.Whole || f.Partly && 4*f.Live < 3*f.Whole
}

// Classes says which repositories may share files, and which files they have.
type Classes struct {
	Files map[string]map[string]*ClassFile // files of small repositories, by class and id

	byGroup map[uint64]string
}

// ClassesOf returns the classes of a view.
func ClassesOf(view *catalog.View) *Classes {
	// A running job builds on the present files, so they stay as they are until the job ends.
	changing := map[catalog.RepoID]bool{}
	for j := range view.JobsOfKind(catalog.JobIndex, catalog.JobRunning, catalog.JobWaiting) {
		changing[catalog.SubjectRepo(j.Subject)] = true
	}

	alone := memberCount(view) < 2
	c := &Classes{Files: map[string]map[string]*ClassFile{}, byGroup: map[uint64]string{}}
	for repo := range view.Repos() {
		if repo.Orphaned() || !repo.Indexed() {
			continue
		}

		class := c.classOfRepo(view, repo, alone)
		if class == "" {
			continue
		}

		for _, s := range repo.Shards {
			// Slices and files above ownFileText are large: joining them gains nothing.
			if s.Slice != 0 || s.Pack == 0 && s.Text > ownFileText {
				continue
			}

			f := c.addFile(view, class, s)
			f.Live += s.Text
			if !changing[repo.ID] {
				f.Text += s.Text
				f.Repos = append(f.Repos, repo)
			}
		}
	}
	return c
}

// classOfRepo returns the class of a repository, computed once for each placement group; "" while nobody
// knows which members should hold it.
func (c *Classes) classOfRepo(view *catalog.View, repo *catalog.Repo, alone bool) string {
	group := place.GroupOf(repo.ID)
	class, ok := c.byGroup[group]
	if !ok {
		class = classOfGroup(view, group, alone)
		c.byGroup[group] = class
	}
	return class
}

// addFile returns the ClassFile of a shard in a class. It makes one on first use.
func (c *Classes) addFile(view *catalog.View, class string, s catalog.ShardRef) *ClassFile {
	files := c.Files[class]
	if files == nil {
		files = map[string]*ClassFile{}
		c.Files[class] = files
	}
	f := files[s.ID]
	if f == nil {
		f = &ClassFile{ID: s.ID, Whole: s.Pack, Partly: s.Pack > 0 && isPartlyHeld(view, class, s.ID)}
		files[s.ID] = f
	}
	return f
}

// isPartlyHeld reports whether some members of a class hold a file and others do not.
func isPartlyHeld(view *catalog.View, class, id string) bool {
	members, _ := catalog.SubjectMembers(class)
	holders, have := view.Holders(catalog.ShardKey(id)), 0
	for _, number := range members {
		if m := view.MemberNumber(number); m != nil && slices.Contains(holders, m.ID) {
			have++
		}
	}
	return have > 0 && have < len(members)
}

// memberCount returns the number of members without removed ones.
func memberCount(view *catalog.View) int {
	n := 0
	for m := range view.Members() {
		if m.State != catalog.MemberRemoved {
			n++
		}
	}
	return n
}

// classOfGroup returns the class of a placement group; "" while nobody knows which members should
// hold it. A cluster of one member places nothing and has one class.
func classOfGroup(view *catalog.View, group uint64, alone bool) string {
	g := view.Group(group)
	if g == nil {
		if alone {
			return catalog.PackSubject(nil)
		}
		return ""
	}

	// Removed members hold nothing: the class consists of the other members.
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

// Rewrites finds the packs that are about to be rewritten for a class. It works out the classes on
// first use. It belongs to one goroutine.
type Rewrites struct {
	view    *catalog.View
	classes *Classes // nil until the first use
}

// RewritesOf returns the Rewrites of a view.
func RewritesOf(view *catalog.View) *Rewrites { return &Rewrites{view: view} }

// Due reports whether the part of a pack that belongs to a repository's class is about to be
// written to its own file: at once, or as soon as no job is about to change its repositories.
func (r *Rewrites) Due(repo catalog.RepoID, id string) bool {
	if r.classes == nil {
		r.classes = ClassesOf(r.view)
	}
	f := r.classes.Files[r.classes.byGroup[place.GroupOf(repo)]][id]
	return f != nil && f.Worn()
}
