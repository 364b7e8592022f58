package hold

import (
	"cmp"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
)

// scene is the input for the decisions of a Copier.
type scene struct {
	view   *catalog.View
	self   string
	wanted int // number of wanted copies
	now    time.Time

	alive  func(node string) bool        // reports whether a node can be reached now
	has    func(file string) bool        // reports whether a file is on this disk
	stored func(id catalog.RepoID) bool  // reports whether the mirror of a repository is on this disk
	busy   func(id catalog.RepoID) bool  // reports whether a job works on the mirror here
	fresh  func(repo *catalog.Repo) bool // reports whether the mirror here has the commits of the live generation

	// rewritten reports whether the copy of a pack waits, because the part that belongs here is
	// about to be written to its own file. live is the number of live copies of the pack.
	rewritten func(repo catalog.RepoID, id string, live int) bool
}

// work is what a node should do now.
type work struct {
	held      []string                    // keys to confirm
	giveUps   []string                    // keys to give up
	files     map[string][]string         // files to copy, with the nodes that have them
	mirrors   map[catalog.RepoID][]string // mirrors to copy, with the nodes that have them
	rewritten map[string]bool             // packs that wait for their part to be written

	verdicts map[string]verdict // by key of a file
}

// verdict is the decision about a file. The strongest reason comes last, because the repositories
// of a pack may want different things after a move.
type verdict uint8

const (
	giveUp verdict = 1 + iota // the file is here, and all of its targets have it
	keep                      // the file is here, and some of its targets lack it
	want                      // the file should be here
)

// decideAll compares what the view wants on this node with what is here.
//
//	target, not here           copy by hash, then confirm; if the catalog names this node as a holder of a mirror, give up first
//	target, here               confirm
//	no target, others have it  give up; the collector deletes it after the grace period
func (s *scene) decideAll() *work {
	w := &work{files: map[string][]string{}, mirrors: map[catalog.RepoID][]string{}, rewritten: map[string]bool{}, verdicts: map[string]verdict{}}
	for repo := range s.view.Repos() {
		// A dropped repository may come back without a clone until it is deleted: its copies stay.
		if !repo.Kept(s.now) || !repo.Indexed() {
			continue
		}

		targets, placed := s.targetsOf(repo)
		if !placed && !s.view.Holds(s.self, catalog.MirrorKey(repo.ID)) {
			continue
		}

		s.decideMirror(repo, targets, w)

		// A slice of a large repository has its own placement.
		for _, ref := range repo.Shards {
			shardTargets := targets
			if ref.Slice != 0 {
				if own := TargetsOf(s.view, UnitOf(repo.ID, ref)); len(own) > 0 {
					shardTargets = own
				}
			}
			s.decideShard(repo, ref, shardTargets, w)
		}
	}

	for key, v := range w.verdicts {
		if v == giveUp {
			w.giveUps = append(w.giveUps, key)
		}
	}

	// Sorting makes the same work the same command.
	slices.Sort(w.giveUps)
	return w
}

// targetsOf returns the nodes that should hold a repository. If it is not placed, as in a cluster of
// one or before the first placement, that is this node, and placed is false.
func (s *scene) targetsOf(repo *catalog.Repo) (ids []string, placed bool) {
	if ids := RepoTargets(s.view, repo.ID); len(ids) > 0 {
		return ids, true
	}
	return []string{s.self}, false
}

// decideShard adds to w what this node should do with each file of a shard: copy it, confirm it, keep
// it or give it up. It decides nothing about a pack that a holder is about to rewrite.
func (s *scene) decideShard(repo *catalog.Repo, ref catalog.ShardRef, targets []string, w *work) {
	wanted := slices.Contains(targets, s.self)
	for key, file := range FilesOf(repo.ID, ref) {
		if w.verdicts[key] == want {
			continue // this node already copies or keeps the file, for another repository of the pack
		}

		// A holder is about to write the part of this pack that is needed here: wait for that.
		if wanted && ref.Pack > 0 && !s.has(file) && s.waitsForRewrite(repo.ID, ref.ID, w) {
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

		// This node is no target any more: it gives its copy up once all targets have theirs.
		case held && s.mayGiveUp(key, targets):
			w.verdicts[key] = max(w.verdicts[key], giveUp)
		case held:
			w.verdicts[key] = max(w.verdicts[key], keep)
		}
	}
}

// decideMirror decides about the mirror of a repository.
func (s *scene) decideMirror(repo *catalog.Repo, targets []string, w *work) {
	// A job is writing the mirror.
	if s.busy(repo.ID) {
		return
	}
	key := catalog.MirrorKey(repo.ID)
	held := s.view.Holds(s.self, key)

	if !slices.Contains(targets, s.self) {
		if held && s.mayGiveUp(key, targets) {
			w.giveUps = append(w.giveUps, key)
		}
		return
	}

	// Without the commits of the live generation, nobody could read the files that a search finds.
	if s.fresh(repo) {
		if !held {
			w.held = append(w.held, key)
		}
		return
	}

	// The mirror was removed while this node was no target. Now it is a target again, but still
	// named as a holder: give up, so that no other node relies on this copy.
	if held && !s.stored(repo.ID) {
		w.giveUps = append(w.giveUps, key)
	}

	from := s.sources(key)
	// Ask the node of the last index job first: it has the newest mirror.
	if j := s.view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID)); j != nil {
		if i := slices.Index(from, j.Node); i > 0 {
			from[0], from[i] = from[i], from[0]
		}
	}
	if len(from) > 0 {
		w.mirrors[repo.ID] = from
	}
}

// mayGiveUp reports whether this node may give up its copy: every target has confirmed its copy and
// is alive, and as many live copies remain as are wanted. If there are too few targets, holders
// with lower numbers keep their copies too. Two nodes that both give up would lose the last copy.
//
//	given up  =>  targets ⊆ live holders  and  |targets ∪ {holders before this one} live| >= wanted
func (s *scene) mayGiveUp(key string, targets []string) bool {
	holders := s.view.Holders(key) // sorted by number
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
	return remain >= min(s.wanted, s.countReceivers())
}

// countReceivers returns how many members are alive and may get data.
func (s *scene) countReceivers() int {
	n := 0
	for m := range s.view.Members() {
		if m.State == catalog.MemberAlive && s.alive(m.ID) {
			n++
		}
	}
	return n
}

// sources returns the live holders of a key, without this node.
func (s *scene) sources(key string) []string {
	return liveSources(s.view, key, s.self, s.alive)
}

// liveSources returns the live holders of a key, without one node. Each node gets another order, so
// that they do not all ask the same holder.
func liveSources(view *catalog.View, key, self string, alive func(node string) bool) []string {
	return orderByHash(self+key, view.Holders(key), func(id string) bool { return id != self && alive(id) })
}

// waitsForRewrite reports whether this node should wait instead of copying a pack. After
// repositories move to other nodes, these need only a part of the pack. One of them that has the
// whole pack writes that part to a new file, and the others copy the new file. Until then the old
// holders serve the repositories. There is no use in waiting if no such node is alive.
func (s *scene) waitsForRewrite(repo catalog.RepoID, id string, w *work) bool {
	live := 0    // live holders of the pack
	writers := 0 // live holders that should also hold the repository

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

	if writers == 0 || !s.rewritten(repo, id, live) {
		return false
	}
	w.rewritten[id] = true
	return true
}

// orderByHash returns the ids that wanted accepts, in a pseudorandom order that depends on the key.
func orderByHash(key string, ids []string, wanted func(id string) bool) []string {
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
