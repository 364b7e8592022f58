package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

func TestRegressionProof_letsANodeVoteOnlyIfEnoughVotersFoundNoLoss(t *testing.T) {
	t.Parallel()
	pos := func(term, index uint64) raftPosition { return raftPosition{term, index} }
	agree := func(p raftPosition) recallReply { return recallReply{Last: p} }
	for _, c := range []struct {
		name    string
		moved   bool
		applied uint64
		answers map[string]recallReply
		proved  bool
		bar     raftPosition
		why     string
	}{
		{name: "nobody answers", why: "1 of 3 voters"},
		{name: "one other of three", answers: map[string]recallReply{"b": agree(pos(2, 9))}, proved: true},
		{name: "a node that does not vote is no voter", answers: map[string]recallReply{"x": agree(pos(2, 9))}, why: "1 of 3 voters"},
		{name: "moved: one is not enough", moved: true, answers: map[string]recallReply{"b": agree(pos(2, 9))}, why: "start the nodes [c]"},
		{name: "moved: all agree", moved: true, answers: map[string]recallReply{"b": agree(pos(2, 3)), "c": agree(pos(3, 1))}, proved: true, bar: pos(3, 1)},
		{name: "moved: all agree and this node has most", moved: true, answers: map[string]recallReply{"b": agree(pos(2, 3)), "c": agree(pos(2, 4))}, proved: true, bar: pos(2, 5)},
		{name: "a leader that has more", applied: 7, answers: map[string]recallReply{"b": {Leads: true, Index: 8}, "c": agree(pos(2, 9))}, why: "7 of the leader's 8"},
		{name: "a leader, caught up", moved: true, applied: 8, answers: map[string]recallReply{"b": {Leads: true, Index: 8}}, proved: true},
		{name: "a leader that is elsewhere", answers: map[string]recallReply{"b": {Leader: "c"}}, why: "node c leads"},
		{name: "they still take this node for the leader", answers: map[string]recallReply{"b": {Leader: "a"}}, proved: true},
	} {
		p := &prover{self: "a", moved: c.moved, voters: func() []string { return []string{"a", "b", "c"} },
			applied: func() uint64 { return c.applied }, ownPosition: func() raftPosition { return pos(2, 5) }}
		v := p.judge(c.answers)
		if v.proved != c.proved || v.bar != c.bar || c.why != "" && (v.why == nil || !strings.Contains(v.why.Error(), c.why)) {
			t.Errorf("%s: %+v, want proved %v, bar %v, why %q", c.name, v, c.proved, c.bar, c.why)
		}
	}
}

// why returns the reason why this node does not vote, or nil.
func (b *ballot) why() error {
	switch s := b.state.Load(); {
	case s == nil:
		return errUnproved
	case s.proved:
		return nil
	default:
		return s.why
	}
}

func TestVote_isGivenOnlyToLogsNotBehind(t *testing.T) {
	t.Parallel()
	var b ballot
	if b.proved() || b.allows(raftPosition{9, 9}) || b.why() == nil {
		t.Error("a node votes before it has proved anything")
	}
	b.close(errors.New("a reason"))
	if b.allows(raftPosition{9, 9}) || b.why().Error() != "a reason" {
		t.Error("a node votes while there is a reason against it")
	}
	b.open(raftPosition{3, 7})
	for p, want := range map[raftPosition]bool{{3, 7}: true, {3, 6}: false, {2, 100}: false, {4, 1}: true} {
		if b.allows(p) != want {
			t.Errorf("a vote for a log up to %v: %v", p, !want)
		}
	}
}

func TestMemoryOfPeers_survivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := openMemory(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.recordMark("c1", "a", mark{5, 2})
	m.recordMark("c1", "a", mark{4, 3})
	m.recordMark("c1", "b", mark{9, 1})
	m.recordMark("c1", "gone", mark{9, 1})
	if got := m.markOf("c1", "a"); got != (mark{5, 3}) {
		t.Errorf("of a it remembers %v", got)
	}
	if err := m.save(func(node string) bool { return node != "gone" }); err != nil {
		t.Fatal(err)
	}

	m, err = openMemory(dir)
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]mark{"a": {5, 3}, "b": {9, 1}, "gone": {}} {
		if got := m.markOf("c1", node); got != want {
			t.Errorf("after a restart it remembers %v of %s, want %v", got, node, want)
		}
	}
	for now, older := range map[mark]bool{{5, 3}: false, {6, 9}: false, {4, 9}: true, {9, 2}: true} {
		if now.before(m.markOf("c1", "a")) != older {
			t.Errorf("%v is onRegress: %v", now, !older)
		}
	}

	// It remembers nothing about another cluster.
	if m.markOf("c2", "a") != (mark{}) {
		t.Error("it takes a node for that of another cluster")
	}
	if err := os.WriteFile(filepath.Join(dir, "peers.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := openMemory(dir); err == nil || m == nil {
		t.Errorf("a damaged file: %v, %v", m, err)
	}
}

func TestFollowers_detectALostCommittedEntry(t *testing.T) {
	t.Parallel()
	m, err := openMemory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	commit := uint64(0)
	var told []string
	f := &followers{memory: m, cluster: func() string { return "c" }, commit: func() uint64 { return commit }, term: func() uint64 { return 0 },
		onRegress: func(node string, why error) { told = append(told, why.Error()) }, match: map[string]uint64{}}
	entries := func(prev uint64, n int) *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{PrevLogEntry: prev, PrevLogTerm: 1, Entries: make([]*raft.Log, n)}
	}
	ok := func(last uint64) *raft.AppendEntriesResponse {
		return &raft.AppendEntriesResponse{Term: 2, LastLog: last, Success: true}
	}

	// An uncommitted entry may be lost: another leader may replace it.
	f.evaluateAnswer("b", f.rememberedMark("b"), entries(10, 5), ok(10))
	f.evaluateAnswer("b", f.rememberedMark("b"), entries(12, 0), ok(12))
	if commit = 13; len(told) > 0 {
		t.Fatalf("told %q", told)
	}
	f.evaluateAnswer("b", f.rememberedMark("b"), entries(10, 5), ok(10))
	f.evaluateAnswer("b", f.rememberedMark("b"), &raft.AppendEntriesRequest{}, ok(15))
	if len(told) > 0 || m.markOf("c", "b") != (mark{13, 2}) {
		t.Fatalf("told %q, remembers %v", told, m.markOf("c", "b"))
	}

	// A heartbeat that was answered before an entry arrived, but is read after it.
	early := f.rememberedMark("b")
	f.evaluateAnswer("b", early, entries(13, 5), ok(15))
	commit = 18
	f.evaluateAnswer("b", f.rememberedMark("b"), entries(18, 0), ok(18))
	f.evaluateAnswer("b", early, &raft.AppendEntriesRequest{}, ok(15))
	if len(told) > 0 || m.markOf("c", "b") != (mark{18, 2}) {
		t.Fatalf("answers that overtake each other: told %q, remembers %v", told, m.markOf("c", "b"))
	}

	// An answer to a call of an earlier lead of this node has that term.
	f.evaluateAnswer("b", f.rememberedMark("b"), entries(18, 1), &raft.AppendEntriesResponse{Term: 1, LastLog: 19, Success: true})
	if len(told) > 0 || m.markOf("c", "b") != (mark{18, 2}) {
		t.Fatalf("an answer of an earlier term: told %q, remembers %v", told, m.markOf("c", "b"))
	}

	// A committed entry must not be lost.
	f.evaluateAnswer("b", f.rememberedMark("b"), entries(15, 1), &raft.AppendEntriesResponse{Term: 2, LastLog: 12})
	if len(told) != 1 || !strings.Contains(told[0], "went back in time") {
		t.Errorf("told %q", told)
	}
}

// A node that leads again has another log than in its earlier lead. So what followers matched then
// must not count.
func TestFollowers_forgetMatchesOfAnEarlierLead(t *testing.T) {
	t.Parallel()
	m, err := openMemory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	commit, term := uint64(90), uint64(3)
	var told []string
	f := &followers{memory: m, cluster: func() string { return "c" }, commit: func() uint64 { return commit }, term: func() uint64 { return term },
		onRegress: func(_ string, why error) { told = append(told, why.Error()) }, match: map[string]uint64{}}
	call := func(term, prev uint64, n int) *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{Term: term, PrevLogEntry: prev, PrevLogTerm: min(prev, 1), Entries: make([]*raft.Log, n)}
	}
	answer := func(last uint64) *raft.AppendEntriesResponse {
		return &raft.AppendEntriesResponse{Term: term, LastLog: last, Success: true}
	}

	// In term 3, b takes ten entries that are never committed; another leader replaces them by two.
	// In term 5 this node leads again and commits entry 100 with c, while the disk of b is slow.
	f.evaluateAnswer("b", f.rememberedMark("b"), call(3, 90, 10), answer(90))
	term, commit = 5, 100
	heartbeat := &raft.AppendEntriesRequest{Term: 5}
	f.evaluateAnswer("b", f.rememberedMark("b"), heartbeat, answer(92))
	f.evaluateAnswer("b", f.rememberedMark("b"), heartbeat, answer(92))
	if got := m.markOf("c", "b"); len(told) > 0 || got.Index > 92 {
		t.Fatalf("told %q, remembers %v of a follower that has 92 entries", told, got)
	}

	// A late answer of term 3 arrives.
	f.evaluateAnswer("b", f.rememberedMark("b"), call(3, 90, 10), answer(92))
	if got := m.markOf("c", "b"); len(told) > 0 || got.Index > 92 {
		t.Fatalf("told %q, remembers %v after an old answer", told, got)
	}

	// The same when this node no longer leads: the commit index is then from another leader.
	f.evaluateAnswer("b", f.rememberedMark("b"), call(5, 92, 3), answer(92))
	term, commit = 6, 110
	f.evaluateAnswer("b", f.rememberedMark("b"), call(5, 95, 15), answer(95))
	if got := m.markOf("c", "b"); len(told) > 0 || got.Index > 95 {
		t.Fatalf("told %q, remembers %v by the commits of another leader", told, got)
	}
}

// A new term begins while the question of a starting node is under way. The other node learns of it
// first, and would take the starting node for an old image.
func TestStartCheck_isRepeatedAfterANewTerm(t *testing.T) {
	t.Parallel()
	for _, later := range []mark{{10, 4}, {11, 3}} {
		now := mark{10, 3}
		_, err := askUntilStable(t.Context(), func() mark { return now }, func(said mark) ([]byte, error) {
			now = later // the leader's heartbeat comes in between
			if said.before(later) {
				return nil, refusedOlder(said, later)
			}
			return nil, nil
		})
		if err != nil {
			t.Errorf("a node that came to %v meanwhile: %v", later, err)
		}
	}
	_, err := askUntilStable(t.Context(), func() mark { return mark{10, 3} }, func(said mark) ([]byte, error) {
		return nil, refusedOlder(said, mark{12, 3})
	})
	if err == nil {
		t.Error("a node that is older is not refused")
	}
}

// The answer comes at the deadline of the round, so the question cannot be repeated.
func TestStartCheck_ignoresAnOutdatedRefusalAtTheDeadline(t *testing.T) {
	t.Parallel()
	for later, refuses := range map[mark]bool{{10, 3}: true, {12, 3}: false} {
		ctx, end := context.WithCancel(t.Context())
		now := mark{10, 3}
		_, err := askUntilStable(ctx, func() mark { return now }, func(said mark) ([]byte, error) {
			now = later
			end()
			return nil, refusedOlder(said, mark{12, 3})
		})
		if err == nil || (refusalIn(err) != nil) != refuses {
			t.Errorf("a node that came to %v meanwhile: %v", later, err)
		}
	}
}

// copyDir copies a data directory that is in use, as cp -a does.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// imageBack overwrites the files of a directory with those of a copy, as restoring a disk image
// does: only their content differs.
func imageBack(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// refusedNode starts a node that must stop by itself with a sentence.
func refusedNode(t *testing.T, o Options, sentence string) {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context()) }()
	if err := <-done; err == nil || !strings.Contains(err.Error(), sentence) {
		t.Errorf("the node ended with %v, want %q", err, sentence)
	}
}

func threeNodes(t *testing.T) *testNodes {
	t.Helper()
	f := newTestNodes(t)
	for range 3 {
		f.add(3)
	}
	f.settled(3, f.n...)
	return f
}

func TestCopiedNode_isRefusedWhileTheOriginalRuns(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"leader", "follower"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := threeNodes(t)
			f.leader().propose(set("before", "v"))
			victim := f.leader()
			if kind == "follower" {
				victim = others(f.n, victim)[0]
			}

			clone := copyDir(t, f.dirs[slices.Index(f.n, victim)])
			refusedNode(t, f.with(clone, 3), "runs already")

			leader := f.leader()
			if kind == "leader" && leader != victim {
				t.Errorf("the copy has cost the original its lead")
			}
			for i, n := range f.n {
				n.propose(set(fmt.Sprint("after", i), "v"))
				if err := n.Ready(); err != nil {
					t.Errorf("node %d: %v", i, err)
				}
			}
		})
	}
}

func TestOnlyVoter_aCopyOfItIsRefused(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
	f.add(1)
	until(t, "the first node stands", func() bool { return f.n[0].Ready() == nil && f.n[0].founded() })
	f.add(1)
	f.settled(1, f.n...)
	clone := copyDir(t, f.dirs[0])
	refusedNode(t, f.with(clone, 1), "runs already")
	for _, n := range f.n {
		n.propose(set("after", "v"))
	}
}

func TestOldDiskImage_isDetected(t *testing.T) {
	t.Parallel()
	f := threeNodes(t)
	victim := others(f.n, f.leader())[0]
	i := slices.Index(f.n, victim)
	image := copyDir(t, f.dirs[i])
	for k := range 30 {
		f.leader().propose(set(fmt.Sprint("k", k), "v"))
	}
	until(t, "the others remember how far it came", func() bool {
		return f.leader().proof.memory.markOf(victim.self.cluster(), victim.Self()).Index >= f.leader().View().Index()-1
	})
	victim.stop()
	imageBack(t, image, f.dirs[i])
	f.n = others(f.n, victim)
	refusedNode(t, f.with(f.dirs[i], 3), "went back in time")
	f.n[0].propose(set("after", "v"))
}

// Two faults at once: the entries are on the leader and on the node that forgets them, and the
// leader is absent. No node may lead before it returns.
func TestOldDiskImage_neverLosesAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	f := threeNodes(t)
	leader := f.leader()
	b, c := others(f.n, leader)[0], others(f.n, leader)[1]
	ib, ic, ia := slices.Index(f.n, b), slices.Index(f.n, c), slices.Index(f.n, leader)
	image := copyDir(t, f.dirs[ib])
	c.stop()
	for k := range 30 {
		leader.propose(set(fmt.Sprint("k", k), "v"))
	}
	b.stop()
	leader.stop()

	f.dirs[ib] = image
	f.n = nil
	nb, nc := start(t, f.with(f.dirs[ib], 3)), (*testNode)(nil)
	f.n = []*testNode{nb}
	nc = start(t, f.with(f.dirs[ic], 3))
	f.n = append(f.n, nc)
	until(t, "the node that forgot says why it does not vote", func() bool {
		why := nb.ballot.why()
		return why != nil && strings.Contains(why.Error(), "nobody knows whether it is whole: start the nodes ["+leader.Self())
	})
	// The node that forgot answers the third node, which would vote for any log not behind its own.
	until(t, "the other may vote", func() bool { return nc.ballot.proved() })
	if nb.Leader() != "" || nc.Leader() != "" {
		t.Error("a leader without what was acknowledged")
	}

	na := start(t, f.with(f.dirs[ia], 3))
	f.n = append(f.n, na)
	na.propose(set("after", "v"))
	for _, n := range []*testNode{na, nc} {
		until(t, "all that was acknowledged is there", func() bool {
			for k := range 30 {
				if secretOf(n.View(), fmt.Sprint("k", k)) != "v" {
					return false
				}
			}
			return secretOf(n.View(), "after") == "v"
		})
	}
}

// A moved node with a full disk cannot record where its log lies. It keeps running, and votes as
// soon as there is room.
func TestRegressionProof_fullDiskOnlyDelaysTheVote(t *testing.T) {
	t.Parallel()
	f := threeNodes(t)
	victim := others(f.n, f.leader())[0]
	i := slices.Index(f.n, victim)
	victim.stop()
	moved := copyDir(t, f.dirs[i])
	f.n = others(f.n, victim)

	c, err := New(f.with(moved, 3))
	if err != nil {
		t.Fatal(err)
	}
	free := block(t, filepath.Join(moved, "node.json"))
	n := run(t, c)
	f.n = append(f.n, n)
	until(t, "it says why it does not vote", func() bool {
		why := n.ballot.why()
		return why != nil && strings.Contains(why.Error(), "node.json")
	})

	free()
	until(t, "it votes", n.ballot.proved)
	n.propose(set("after", "v"))
}
