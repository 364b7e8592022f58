package hold

import (
	"cmp"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

// scene is all that the decisions of a Copier depend on.
type scene struct {
	view   *catalog.View
	self   string
	wanted int // copies of everything
	now    time.Time

	alive  func(node string) bool        // can be reached now
	has    func(file string) bool        // is on this disk
	stored func(id catalog.RepoID) bool  // its mirror is on this disk
	busy   func(id catalog.RepoID) bool  // a job works on the mirror here
	fresh  func(repo *catalog.Repo) bool // the mirror here has the commits of the live generation

	// rewritten reports whether a pack, of which there are so many live copies, is not
	// copied yet, since the part of it that belongs here is about to be
	// written.
	rewritten func(repo catalog.RepoID, id string, live int) bool
}

// work is what a node should do now.
type work struct {
	held      []string                    // keys to confirm
	given     []string                    // keys to give up
	files     map[string][]string         // files to copy, and who has them
	mirrors   map[catalog.RepoID][]string // the same of mirrors
	rewritten map[string]bool             // packs of which a part is awaited

	verdicts map[string]verdict // by key of a file
}

// verdict is what to do with a file, the strongest reason last: the
// repositories of a pack may be of different minds after a move.
type verdict uint8

const (
	giveUp verdict = 1 + iota // it is here, and who should have it has it
	keep                      // it is here, and not everywhere yet where it should be
	want                      // it should be here
)

// decide compares what the view wants of this node with what is here.
//
//	target, not here           copy by hash, then confirm; of a mirror that it counts as a holder of, give up first
//	target, here               confirm
//	no target, others have it  give up; the collector deletes it after the grace period
func (s *scene) decide() *work {
	w := &work{files: map[string][]string{}, mirrors: map[catalog.RepoID][]string{}, rewritten: map[string]bool{}, verdicts: map[string]verdict{}}
	for repo := range s.view.Repos() {
		// What may come back without a clone has its copies until then, wherever they belong.
		if !repo.Kept(s.now) || !repo.Indexed() {
			continue
		}

		targets, placed := s.targets(repo)
		if !placed && !s.view.Holds(s.self, catalog.MirrorKey(repo.ID)) {
			continue
		}

		s.mirror(repo, targets, w)

		// A slice of a large repository is placed by itself.
		for _, ref := range repo.Shards {
			of := targets
			if ref.Slice != 0 {
				if own := TargetsOf(s.view, UnitOf(repo.ID, ref)); len(own) > 0 {
					of = own
				}
			}
			s.shard(repo, ref, of, w)
		}
	}

	for key, v := range w.verdicts {
		if v == giveUp {
			w.given = append(w.given, key)
		}
	}

	// Sorted, so that the same work is the same command.
	slices.Sort(w.given)
	return w
}

// targets is who should hold a repository. In a cluster of one, and before
// the first placement, that is this node.
func (s *scene) targets(repo *catalog.Repo) (ids []string, placed bool) {
	if ids := RepoTargets(s.view, repo.ID); len(ids) > 0 {
		return ids, true
	}
	return []string{s.self}, false
}

// shard notes what a repository wants of the files of a shard.
func (s *scene) shard(repo *catalog.Repo, ref catalog.ShardRef, targets []string, w *work) {
	wanted := slices.Contains(targets, s.self)
	for key, file := range FilesOf(repo.ID, ref) {
		if w.verdicts[key] == want {
			continue // another repository of a pack wants it already
		}

		// A holder is about to write its part of this pack anew: a copy made now would be replaced at once.
		if wanted && ref.Pack > 0 && !s.has(file) && s.waits(repo.ID, ref.ID, w) {
			continue
		}

		held := s.view.Holds(s.self, key)
		switch {
		case wanted:
			w.verdicts[key] = want
			if !s.has(file) {
				if from := s.sources(key); len(from) > 0 {
					w.files[file] = from
				}
			} else if !held {
				w.held = append(w.held, key)
			}

		// What is no longer wanted goes only after its new holders have it.
		case held && s.covered(key, targets):
			w.verdicts[key] = max(w.verdicts[key], giveUp)
		case held:
			w.verdicts[key] = max(w.verdicts[key], keep)
		}
	}
}

// mirror notes what to do with the mirror of a repository.
func (s *scene) mirror(repo *catalog.Repo, targets []string, w *work) {
	// A job is writing it.
	if s.busy(repo.ID) {
		return
	}
	key := catalog.MirrorKey(repo.ID)
	held := s.view.Holds(s.self, key)

	if !slices.Contains(targets, s.self) {
		if held && s.covered(key, targets) {
			w.given = append(w.given, key)
		}
		return
	}

	// Without the commits of the live generation what is found could not be read.
	if s.fresh(repo) {
		if !held {
			w.held = append(w.held, key)
		}
		return
	}

	// It went while it was no target, and became one again meanwhile: the others must not
	// rely on it.
	if held && !s.stored(repo.ID) {
		w.given = append(w.given, key)
	}

	from := s.sources(key)
	if j := s.view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID)); j != nil {
		if i := slices.Index(from, j.Node); i > 0 { // who indexed last is newest
			from[0], from[i] = from[i], from[0]
		}
	}
	if len(from) > 0 {
		w.mirrors[repo.ID] = from
	}
}

// covered reports whether the copy of this node may go: every target has confirmed
// and can be reached, and without this copy as many live ones remain as are
// wanted. Of several that are no targets, those with lower numbers stay where
// the targets are too few: two must not rely on each other.
//
//	given up  =>  targets ⊆ live holders  and  |targets ∪ {holders before this one} live| >= wanted
func (s *scene) covered(key string, targets []string) bool {
	holders := s.view.Holders(key) // by number
	for _, t := range targets {
		if !slices.Contains(holders, t) || !s.alive(t) {
			return false
		}
	}

	remain := len(targets)
	for _, id := range holders[:max(slices.Index(holders, s.self), 0)] {
		if s.alive(id) && !slices.Contains(targets, id) {
			remain++
		}
	}
	return remain >= min(s.wanted, s.takers())
}

// takers is how many members can be reached and may hold data.
func (s *scene) takers() int {
	n := 0
	for m := range s.view.Members() {
		if m.State == catalog.MemberAlive && s.alive(m.ID) {
			n++
		}
	}
	return n
}

// sources are the live holders of a key beside this node.
func (s *scene) sources(key string) []string {
	return sources(s.view, key, s.self, s.alive)
}

// sources are the live holders of a key but for one node, in an order of that
// node's own, so that not everybody asks the same.
func sources(view *catalog.View, key, self string, alive func(node string) bool) []string {
	return orderBy(self+key, view.Holders(key), func(id string) bool { return id != self && alive(id) })
}

// waits reports whether a pack is not copied yet. When repositories of a pack move,
// their new class needs a part of it only; a member that has the pack writes
// that part anew, with what else moved, and copies it to the others. Until then
// the old holders serve. It does not wait where no live member of the class has
// the pack, and not for long.
func (s *scene) waits(repo catalog.RepoID, id string, w *work) bool {
	live, writers := 0, 0

	targets := RepoTargets(s.view, repo)
	for _, node := range s.view.Holders(catalog.ShardKey(id)) {
		if !s.alive(node) {
			continue
		}
		live++
		if slices.Contains(targets, node) {
			writers++
		}
	}

	// Without somebody who has the pack and writes the part, waiting has no end.
	if writers == 0 || !s.rewritten(repo, id, live) {
		return false
	}
	w.rewritten[id] = true
	return true
}

// orderBy lists the ids that are wanted, in an order that depends on the key.
func orderBy(key string, ids []string, wanted func(id string) bool) []string {
	var out []string
	for _, id := range ids {
		if wanted(id) {
			out = append(out, id)
		}
	}
	score := func(id string) float64 { return place.Score(place.Key(key), place.Member{ID: id}) }
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a, b)) })
	return out
}
