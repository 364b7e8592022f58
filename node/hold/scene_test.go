package hold

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/place"
)

// disks is a world whose nodes have disks. Each disk has names of files and keys of mirrors.
type disks struct {
	*clustertest.World
	t      *testing.T
	copies int
	have   map[string]map[string]bool
}

func newDisks(t *testing.T, nodes, repos, copies int) *disks {
	d := &disks{World: clustertest.New(t, oneConnection, nodes), t: t, copies: copies, have: map[string]map[string]bool{}}
	d.Repos("a", named(repos)...)
	return d
}

// shardOf returns the only shard of a repository.
func shardOf(id catalog.RepoID) catalog.ShardRef {
	return catalog.ShardRef{ID: fmt.Sprintf("%064x", id), Text: 4000, Bytes: 2000}
}

// index gives a repository a generation that is on one node.
func (d *disks) index(id catalog.RepoID, node string) {
	d.Index(id, node, shardOf(id))
	for key, file := range d.pieces(id) {
		d.put(node, file)
		d.Confirm(node, key)
	}
}

// pieces returns the pieces of a repository, by the keys of their holders.
func (d *disks) pieces(id catalog.RepoID) map[string]string {
	out := map[string]string{catalog.MirrorKey(id): catalog.MirrorKey(id)}
	for key, file := range FilesOf(id, shardOf(id)) {
		out[key] = file
	}
	return out
}

func (d *disks) put(node, file string) {
	if d.have[node] == nil {
		d.have[node] = map[string]bool{}
	}
	d.have[node][file] = true
}

func (d *disks) scene(node string) *scene {
	return &scene{
		view: d.View(), self: node, wanted: d.copies, now: d.Now(), alive: d.Alive,
		has:       func(file string) bool { return d.have[node][file] },
		stored:    func(id catalog.RepoID) bool { return d.have[node][catalog.MirrorKey(id)] },
		busy:      func(catalog.RepoID) bool { return false },
		fresh:     func(repo *catalog.Repo) bool { return d.have[node][catalog.MirrorKey(repo.ID)] },
		rewritten: func(catalog.RepoID, string, int) bool { return false },
	}
}

// copy does the work that a node finds, and reports whether there was any. It fails the test if a
// node is asked for a file that it does not have.
func (d *disks) copy(node string) bool {
	w := d.scene(node).decideAll()
	fetch := func(what string, from []string) {
		if !d.have[from[0]][what] {
			d.t.Errorf("%s copies %s from %s, which has it not", node, what, from[0])
		}
		d.put(node, what)
	}
	for file, from := range w.files {
		fetch(file, from)
	}
	for id, from := range w.mirrors {
		fetch(catalog.MirrorKey(id), from)
	}

	if len(w.held) > 0 {
		d.Confirm(node, w.held...)
	}
	if len(w.giveUps) > 0 {
		d.Drop(node, w.giveUps...)
	}
	return len(w.files)+len(w.mirrors)+len(w.held)+len(w.giveUps) > 0
}

// settle lets all live nodes copy until none finds any work.
func (d *disks) settle() {
	for range 100 {
		busy := false
		for _, id := range d.live() {
			busy = d.copy(id) || busy
		}
		if !busy {
			return
		}
	}
	d.t.Error("the nodes copy without end")
}

func (d *disks) live() (ids []string) {
	for m := range d.View().Members() {
		if m.State != catalog.MemberRemoved && d.Alive(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// copiesOf returns the live holders of a key.
func (d *disks) copiesOf(key string) (ids []string) {
	for _, id := range d.View().Holders(key) {
		if d.Alive(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Each row has the targets of a repository's shard, its holders, the nodes that cannot be reached,
// those that are leaving, and those that may then give up their copy.
func TestCopyRemoval_happensOnlyWhileEnoughCopiesRemain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, targets, holders, dead, leaving, given string }{
		{"it has moved", "1 2", "1 2 3", "", "", "3"},
		{"a target has not taken it yet", "1 2", "1 3", "", "", ""},
		{"a target cannot be reached", "1 2", "1 2 3", "2", "", ""},
		{"neither can", "1 2", "1 2 3", "1 2", "", ""},
		{"nobody else has it", "1 2", "3", "", "", ""},
		{"two that are not wanted do not rely on each other", "1", "1 2 3", "", "", "3"},
		{"one of them cannot be reached", "1", "1 2 3", "2", "", ""},
		{"the node is the one that leaves", "1 2", "1 2 3", "", "3", "3"},
		{"two leave and one remains", "1", "1 2 3", "", "2 3", "2 3"},
		{"two leave and the one that remains has it not", "1", "2 3", "", "2 3", ""},
		{"only two can be reached, and one has it", "1 2", "1 3", "2", "", ""},
		{"all others are away, and it is no target", "1", "1 3", "2", "", ""},
	} {
		d := newDisks(t, 3, 1, 2)
		d.index(1, "n1")
		key := catalog.ShardKey(shardOf(1).ID)
		d.Drop("n1", key)

		ids := func(numbers string) (out []string) {
			for _, n := range strings.Fields(numbers) {
				out = append(out, "n"+n)
			}
			return out
		}
		d.Target(place.GroupOf(1), ids(c.targets)...)
		for _, id := range ids(c.holders) {
			d.Confirm(id, key)
		}
		for _, id := range ids(c.leaving) {
			d.Do(&catalog.SetMemberState{ID: id, State: catalog.MemberDraining})
		}
		d.Lose(ids(c.dead)...)

		var given []string
		for _, id := range ids(c.holders) {
			if d.Alive(id) && slices.Contains(d.scene(id).decideAll().giveUps, key) {
				given = append(given, strings.TrimPrefix(id, "n"))
			}
		}
		if got := strings.Join(given, " "); got != c.given {
			t.Errorf("%s: wanted on %q, held by %q, without %q, leaving %q: %q give it up, want %q", c.why, c.targets, c.holders, c.dead, c.leaving, got, c.given)
		}
	}
}

// Machines are lost, come back, come back empty, join and leave at random, one at a time, with or
// without copying in between. No node ever gives up a needed copy, whatever others give up at the
// same moment. In the end every copy is where it should be and nowhere else.
func TestCopyRemoval_neverRemovesNeededCopies(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		s := &faultyDisks{disks: newDisks(t, 3, 12, 2), rng: rand.New(rand.NewPCG(seed, 1)), silent: map[string]time.Duration{}, next: 4}
		for i := range 12 {
			s.index(catalog.RepoID(i+1), fmt.Sprintf("n%d", i%3+1))
		}
		s.place(true)
		s.settle()

		for range 60 {
			what := s.step()
			s.check(fmt.Sprintf("seed %d, after %s", seed, what))
			if t.Failed() {
				return
			}
		}
		s.end(seed)
	}
}

// faultyDisks is disks with random faults.
type faultyDisks struct {
	*disks
	rng    *rand.Rand
	silent map[string]time.Duration // how long each unreachable node has been silent
	next   int                      // number of the next node to join
}

// step makes a random change and returns its name.
func (s *faultyDisks) step() string {
	switch roll := s.rng.IntN(10); {
	case roll == 0 && len(s.silent) == 0 && len(s.live()) > 2:
		id := s.pick()
		if s.last(id) {
			return "nothing" // two losses at once are more than two copies survive
		}
		s.Lose(id)
		s.silent[id] = time.Duration(s.rng.IntN(2)) * deadAfter
		return id + " is lost"
	case roll == 1 && len(s.silent) > 0:
		for id := range s.silent {
			s.Find(id)
			delete(s.silent, id)
			return id + " is back"
		}
	case roll == 2 && len(s.silent) > 0 && s.next < 12:
		for id := range s.silent {
			s.silent[id] = deadAfter
		}
		s.next++
		s.Join(fmt.Sprintf("n%d", s.next-1))
		return "another joins in its place"
	case roll == 3:
		id := s.pick()
		state := catalog.MemberDraining
		if s.View().Member(id).State == catalog.MemberDraining || s.takers() < 3 {
			state = catalog.MemberAlive
		}
		s.Do(&catalog.SetMemberState{ID: id, State: state})
		return id + " is drained or taken back"
	case roll < 6:
		s.place(s.rng.IntN(2) == 0)
		return "placement"
	}
	id := s.pick()
	s.copy(id)
	return "a look of " + id
}

func (s *faultyDisks) pick() string {
	live := s.live()
	return live[s.rng.IntN(len(live))]
}

// last reports whether a node has the only copy of something.
func (s *faultyDisks) last(id string) bool {
	for repo := range s.View().Repos() {
		for key := range KeysOf(repo) {
			if slices.Equal(s.copiesOf(key), []string{id}) {
				return true
			}
		}
	}
	return false
}

func (s *faultyDisks) place(balance bool) {
	nodes := nodesOf(s.World)
	for i := range nodes {
		nodes[i].Silent = s.silent[nodes[i].ID]
	}
	s.Do(Place(Placement{View: s.View(), Nodes: nodes, Copies: s.copies, Balance: balance})...)
}

func (s *faultyDisks) takers() int {
	n := 0
	for _, id := range s.live() {
		if s.View().Member(id).State == catalog.MemberAlive {
			n++
		}
	}
	return n
}

// check assumes that all nodes give up at once what they would give up, and counts the remaining
// copies in the simplest way.
func (s *faultyDisks) check(when string) {
	given := map[string][]string{}
	for _, id := range s.live() {
		for _, key := range s.scene(id).decideAll().giveUps {
			given[key] = append(given[key], id)
		}
	}
	for key, by := range given {
		live := s.copiesOf(key)
		if left := len(live) - len(by); left < min(s.copies, s.takers()) {
			s.t.Errorf("%s: %q give up %s at once, which %q have", when, by, key, live)
		}
	}
	for repo := range s.View().Repos() {
		for key := range KeysOf(repo) {
			if len(s.copiesOf(key)) == 0 {
				s.t.Errorf("%s: nobody has %s", when, key)
			}
		}
	}
}

// end brings all nodes back and checks where everything is.
func (s *faultyDisks) end(seed uint64) {
	for id := range s.silent {
		s.Find(id)
	}
	clear(s.silent)
	for m := range s.View().Members() {
		s.Do(&catalog.SetMemberState{ID: m.ID, State: catalog.MemberAlive})
	}
	s.place(true)
	s.settle()

	for repo := range s.View().Repos() {
		targets := slices.Sorted(slices.Values(RepoTargets(s.View(), repo.ID)))
		for key := range KeysOf(repo) {
			holders := slices.Sorted(slices.Values(s.View().Holders(key)))
			if len(targets) != s.copies || !slices.Equal(holders, targets) {
				s.t.Errorf("seed %d: %s should be on %q, and is on %q", seed, key, targets, holders)
			}
		}
	}
}
