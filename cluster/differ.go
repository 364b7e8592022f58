package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// What happens if nodes have applied one log to different states.
//
// The state of the majority of voters is right. Before a leader publishes its hash, it asks the
// voters for theirs after the same entry:
//	the majority has the leader's hash     the hash goes into the log; a node with
//	                                       another one replaces its state
//	the majority has another hash          the leader hands over to a node with that
//	                                       hash, and replaces its own state
//	no hash has a majority                 the leader refuses writes until one has;
//	                                       searches continue
// Replacing a state does not touch raft's log and votes. The node loads the leader's state, applies
// the rest of its own log to it, and takes a snapshot for the next start.

// ErrDisputed is returned for writes while no majority of the voters has the same state. It wraps
// ErrNoLeader.
var ErrDisputed = fmt.Errorf("%w: the catalogs of the nodes differ, and no majority of them has the same one", ErrNoLeader)

// Methods between members.
const (
	methodHash  = "cluster.hash"  // returns a node's state hash after an entry
	methodState = "cluster.state" // returns the leader's state, as a snapshot
)

// Times and limits; times at Timing 1.
const (
	hashTime     = 2 * time.Second // for the voters to send their hashes
	stateTime    = 2 * time.Minute // to fetch the state of the leader
	replacePause = time.Second     // between two tries

	maxKeys   = 5           // per table
	maxCopies = 3           // copies of replaced states that stay
	differing = "differing" // folder of these copies in the data directory
)

// standing is the result of comparing the hashes of the voters.
type standing int

const (
	unproved standing = iota // no two differ, but no majority has answered
	agreed                   // a majority has this node's state
	outvoted                 // a majority has another state
	disputed                 // some differ, and none has a majority
)

// standingOf compares the hashes that voters have sent, including this node's. It also returns the
// voters that have the majority's hash.
func standingOf(self string, hashes map[string]uint64, voters int) (standing, []string) {
	groups := map[uint64][]string{}
	for node, hash := range hashes {
		groups[hash] = append(groups[hash], node)
	}
	for hash, nodes := range groups {
		if len(nodes) <= voters/2 {
			continue
		}
		slices.Sort(nodes)
		if own, votes := hashes[self]; votes && own != hash {
			return outvoted, nodes
		}
		return agreed, nodes
	}
	if len(groups) > 1 {
		return disputed, nil
	}
	return unproved, nil
}

// arbiter finds out which state the majority has, and replaces this node's state if it differs. Its
// methods are safe for concurrent use.
type arbiter struct {
	*env
	network *network
	replica *replica

	disputed  atomic.Bool  // this node leads, and no state has a majority
	confirmed atomic.Bool  // this node leads, and a majority has its state
	replaced  atomic.Int64 // number of replaced states since the start
	lastText  atomic.Pointer[string]
}

// registerHandlers registers the handlers for other members.
func (a *arbiter) registerHandlers() {
	a.network.handle(methodHash, a.serveHash)
	a.network.handleStream(methodState, a.serveState)
}

// resign resets the findings, which are valid only while this node leads.
func (a *arbiter) resign() {
	a.disputed.Store(false)
	a.confirmed.Store(false)
}

// judge asks the voters for their hashes after an entry. If the majority's hash differs from the
// leader's, it acts as described above.
func (a *arbiter) judge(ctx context.Context, index, hash uint64) standing {
	voters := a.replica.voters()
	hashes := a.askHashes(ctx, voters, index)
	hashes[a.network.self.node] = hash
	result, nodes := standingOf(a.network.self.node, hashes, len(voters))

	a.confirmed.Store(result == agreed)
	if a.disputed.Swap(result == disputed) != (result == disputed) {
		a.logDispute(result, index, hashes)
	}
	if result == outvoted {
		a.handOverToMajority(ctx, index, nodes)
	}
	return result
}

// logDispute logs the begin or end of a dispute.
func (a *arbiter) logDispute(what standing, index uint64, hashes map[string]uint64) {
	if what != disputed {
		a.log.Info("a majority of the nodes has one catalog again: changes are taken", "entry", index)
		return
	}
	var each []string
	for node, hash := range hashes {
		each = append(each, fmt.Sprintf("%s has %016x", node, hash))
	}
	slices.Sort(each)
	a.log.Error("the catalogs of the nodes differ, and no majority has the same one: searches go on, and nothing is changed until one has; docs/upgrade.md says what to do",
		"entry", index, "states", strings.Join(each, ", "))
}

// askHashes asks voters for their hashes concurrently. The result lacks voters that do not answer in time
// or do not know the hash.
func (a *arbiter) askHashes(ctx context.Context, voters []string, index uint64) map[string]uint64 {
	ctx, cancel := context.WithTimeout(ctx, a.scaled(hashTime))
	defer cancel()

	var mu sync.Mutex
	var calls sync.WaitGroup
	hashes := map[string]uint64{}
	for _, node := range voters {
		if node == a.network.self.node || !a.network.alive(node) {
			continue
		}
		calls.Go(func() {
			out, err := a.network.call(ctx, node, methodHash, catalog.EncodeReply(index, nil))
			if err != nil {
				return
			}
			if hash, _, err := catalog.DecodeReply(out); err == nil {
				mu.Lock()
				hashes[node] = hash
				mu.Unlock()
			}
		})
	}
	calls.Wait()
	return hashes
}

// serveHash returns this node's state hash after an entry, once it has applied it.
func (a *arbiter) serveHash(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
	index, _, err := catalog.DecodeReply(in)
	if err != nil {
		return nil, err
	}
	if err := a.replica.machine.await(ctx, index); err != nil {
		return nil, err
	}
	hash, known := a.replica.machine.hashAt(index)
	if !known {
		return nil, fmt.Errorf("cluster: the state after entry %d is not known any more", index)
	}
	return catalog.EncodeReply(hash, nil), nil
}

// handOverToMajority hands the lead to one of the nodes, which have the majority's state.
func (a *arbiter) handOverToMajority(ctx context.Context, index uint64, nodes []string) {
	a.log.Error("this node leads, and a majority of the nodes has another catalog: it hands over, and takes theirs", "entry", index, "majority", strings.Join(nodes, ", "))
	a.replica.machine.markSuspect()
	for _, node := range nodes {
		err := a.replica.transferLead(ctx, node)
		if err == nil {
			return
		}
		a.log.Info("the leadership was not handed over", "peer", node, "error", err)
	}
}

// serveState sends this node's state, if the majority has the same.
func (a *arbiter) serveState(_ context.Context, _ Peer, _ []byte, out io.Writer) error {
	if !a.confirmed.Load() || !a.replica.leading.Load() {
		return errNotLeader
	}
	return a.replica.view().Save(out)
}

// run replaces the state of this node whenever it differs from the majority's.
func (a *arbiter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.replica.machine.differs:
		}
		for a.replica.machine.differing() {
			if err := a.replaceState(ctx); err != nil {
				a.log.Warn("the catalog of this node differs from that of the majority and is not replaced yet", "error", err)
			}
			if !a.pause(ctx, a.scaled(replacePause)) {
				return
			}
		}
	}
}

// replaceState replaces this node's state by the leader's.
func (a *arbiter) replaceState(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.scaled(stateTime))
	defer cancel()
	leader := a.replica.leader()
	if leader == "" || leader == a.network.self.node {
		return ErrNoLeader
	}

	s, err := a.fetchState(ctx, leader)
	if err != nil {
		return err
	}
	if err := a.replica.machine.await(ctx, s.Index()); err != nil {
		return err
	}

	// Replace the wrong state even if it cannot be copied.
	copied, err := a.saveDifferingCopy()
	if err != nil {
		a.log.Warn("the catalog that differs is not kept", "error", err)
	}

	before, after, err := a.replica.machine.replaceState(s, a.replica.store)
	if err != nil {
		return err
	}
	a.reportReplaced(before, after, copied)

	// Take a snapshot: otherwise the next start would begin with the old state.
	if err := a.replica.raft.Snapshot().Error(); err != nil {
		return fmt.Errorf("cluster: keep the catalog that was replaced: %w", err)
	}
	return nil
}

// fetchState reads the leader's catalog.
func (a *arbiter) fetchState(ctx context.Context, leader string) (*catalog.State, error) {
	r, err := a.network.stream(ctx, leader, methodState, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return a.replica.machine.build.Load(r)
}

// reportReplaced logs, and keeps for the status, in which tables this node's catalog differed from
// the majority's before it was replaced.
func (a *arbiter) reportReplaced(before, after *catalog.View, copied string) {
	var tables []string
	for _, d := range before.Differences(after, maxKeys) {
		tables = append(tables, d.String())
	}
	what := strings.Join(tables, "; ")
	a.replaced.Add(1)
	text := fmt.Sprintf("the catalog of this node differed from that of the majority and was replaced at entry %d: %s", after.Index(), what)
	if copied != "" {
		text += "; the former one is in " + copied
	}
	a.lastText.Store(&text)
	a.log.Error("the catalog of this node differed from that of the majority of the nodes, and was replaced by that of the leader", "entry", after.Index(), "tables", what, "copy", copied)
}

// lastReport implements [Cluster.Replaced].
func (a *arbiter) lastReport() string {
	if text := a.lastText.Load(); text != nil {
		return *text
	}
	return ""
}

// saveDifferingCopy writes the differing state to the data directory, and deletes the oldest of such copies.
func (a *arbiter) saveDifferingCopy() (path string, err error) {
	dir := filepath.Join(a.replica.self.home.dir, differing)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	view := a.replica.view()
	path = filepath.Join(dir, fmt.Sprintf("%020d-%016x.snapshot", view.Index(), view.Hash()))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, keyFileMode)
	if err != nil {
		return "", err
	}
	if err := errors.Join(view.Save(f), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}

	old, err := filepath.Glob(filepath.Join(dir, "*.snapshot")) // sorted by entry
	for len(old) > maxCopies && err == nil {
		err, old = os.Remove(old[0]), old[1:]
	}
	return path, err
}
