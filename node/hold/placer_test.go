package hold

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// placerWorld is a Placer with a world whose nodes copy at once what they should hold.
type placerWorld struct {
	*disks
	placer *Placer
	nodes  []Node
}

// newPlacerWorld returns three nodes with copies of 16 placed repositories.
func newPlacerWorld(t *testing.T) *placerWorld {
	d := newDisks(t, 3, 16, 2)
	for i := range 16 {
		d.index(catalog.RepoID(i+1), fmt.Sprintf("n%d", i%3+1))
	}
	log := slog.New(slog.DiscardHandler)
	b := &placerWorld{disks: d, placer: NewPlacer(d.Node("n1"), 2, log, d.Now), nodes: nodesOf(d.World)}
	b.place()
	b.settle()
	return b
}

func (b *placerWorld) place() {
	b.t.Helper()
	b.placer.Place(b.t.Context(), b.View(), b.nodes)
}

// targets returns the nodes that should hold each repository.
func (b *placerWorld) targets() (all [][]string) {
	for repo := range b.View().Repos() {
		all = append(all, RepoTargets(b.View(), repo.ID))
	}
	return all
}

// of returns how many repositories a node should hold.
func (b *placerWorld) of(id string) int {
	n := 0
	for _, ids := range b.targets() {
		if slices.Contains(ids, id) {
			n++
		}
	}
	return n
}

// While a silent node may come back, a new member is no reason to move data: that would give up
// live copies for a plan that counts a dead node.
func TestPlacement_doesNotMoveDataWhileAMemberIsSilent(t *testing.T) {
	t.Parallel()
	b := newPlacerWorld(t)
	before := b.targets()

	b.Lose("n3")
	b.Join("n4")
	b.nodes = nodesOf(b.World)
	b.nodes[2].Silent = LostAfter
	b.place()
	if got := b.targets(); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("with n3 silent and n4 new the targets are\n%v\nwant\n%v", got, before)
	}

	// It does not wait forever: after some time the new member gets data.
	b.Pass(balanceAfter)
	b.place()
	if b.of("n4") == 0 {
		t.Error("ten minutes later the newcomer still gets nothing")
	}
}

// A machine that comes back empty at its old address takes the places of the one that it replaces,
// and nothing else until all copies are complete again.
func TestPlacement_aReplacementNodeFirstGetsTheLostNodesData(t *testing.T) {
	t.Parallel()
	b := newPlacerWorld(t)
	before, lost := b.targets(), b.of("n3")

	b.Lose("n3")
	b.Join("n4")
	b.nodes = nodesOf(b.World)
	b.nodes[2].Replaced, b.nodes[2].Silent = true, replacedAfter
	b.place()
	if b.of("n3") != 0 {
		t.Errorf("n3 is gone and should have %d repositories", b.of("n3"))
	}
	for i, ids := range b.targets() {
		for _, id := range before[i] {
			if id != "n3" && !slices.Contains(ids, id) {
				t.Errorf("repository %d moves from %v to %v before the places of n3 are filled", i+1, before[i], ids)
			}
		}
	}

	// The copies are complete: now the new member gets its share of the rest.
	b.settle()
	b.place()
	b.settle()
	if got := b.of("n4"); got < min(lost, 8) {
		t.Errorf("n4 has %d repositories in the end, n3 had %d", got, lost)
	}
	for repo := range b.View().Repos() {
		for key := range KeysOf(repo) {
			if live := b.copiesOf(key); len(live) != 2 {
				t.Errorf("%s is on %v", key, live)
			}
		}
	}
}

func TestSilentNode_countsAsLostAfterItsTimeLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		node       Node
		lost, gone bool
	}{
		{Node{Alive: true, Silent: time.Hour, Replaced: true}, false, false},
		{Node{Silent: LostAfter - 1}, false, false},
		{Node{Silent: LostAfter}, true, false},
		{Node{Silent: deadAfter}, true, true},
		{Node{Silent: replacedAfter - 1, Replaced: true}, false, false},
		{Node{Silent: replacedAfter, Replaced: true}, true, true},
	} {
		if c.node.Lost() != c.lost || c.node.Gone() != c.gone {
			t.Errorf("%+v: lost %v, gone %v", c.node, c.node.Lost(), c.node.Gone())
		}
	}
}
