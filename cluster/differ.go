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

// What happens where nodes have applied one log to different states.
//
// The state that the majority of the voters has counts. Before a leader tells its
// hash it asks the voters for theirs after the same entry:
//
//	the leader's is that of the majority   its hash goes into the log; a node that
//	                                       had another replaces its state
//	another one is                         the leader hands over to a node that has
//	                                       it, and replaces its own state
//	none is                                nothing is changed until one is: the leader
//	                                       takes no writes, searches go on
//
// A state is replaced beside raft, whose log and votes stay: the node loads the
// state of the leader, applies the rest of its own log to it, and takes a snapshot,
// so that the next start begins with it.

// ErrDisputed is returned for writes while no majority of the voters has one state.
// It is an ErrNoLeader.
var ErrDisputed = fmt.Errorf("%w: the catalogs of the nodes differ, and no majority of them has the same one", ErrNoLeader)

// Methods of calls about states.
const (
	methodHash  = "cluster.hash"  // the state hash of a node after an entry
	methodState = "cluster.state" // the state of the leader, as a snapshot
)

// Times and bounds of what is done about a difference; times at Timing 1.
const (
	hashTime     = 2 * time.Second // for the voters to tell their hashes
	stateTime    = 2 * time.Minute // for the state of the leader to come
	replacePause = time.Second     // between two tries

	keysNamed  = 5           // of each table
	statesKept = 3           // of those that were replaced
	differing  = "differing" // folder of the data directory for them
)

// standing is what the hashes of the voters come to.
type standing int

const (
	unproved standing = iota // no two differ, and no majority has told
	agreed                   // a majority has the state of this node
	outvoted                 // a majority has another one
	disputed                 // some differ, and no majority has the same
)

// standingOf compares the hashes that voters have told, that of this node among them, and
// names the voters that have the majority's.
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

// arbiter finds out whose state counts, and replaces that of this node where it is
// another one. Its methods are safe for concurrent use.
type arbiter struct {
	*env
	network *network
	replica *replica

	disputed  atomic.Bool  // this node leads, and no majority has one state
	confirmed atomic.Bool  // this node leads, and a majority has its state
	replaced  atomic.Int64 // states of this node, since it was started
	last      atomic.Pointer[string]
}

// answer lets other members ask this one.
func (a *arbiter) answer() {
	a.network.handle(methodHash, a.serveHash)
	a.network.handleStream(methodState, a.serveState)
}

// resign forgets what was found while this node led.
func (a *arbiter) resign() {
	a.disputed.Store(false)
	a.confirmed.Store(false)
}

// judge asks the voters for their hashes after an entry at which this leader had
// one, and does what follows where its own is not the majority's.
func (a *arbiter) judge(ctx context.Context, index, hash uint64) standing {
	voters := a.replica.voters()
	hashes := a.ask(ctx, voters, index)
	hashes[a.network.self.node] = hash
	what, nodes := standingOf(a.network.self.node, hashes, len(voters))

	a.confirmed.Store(what == agreed)
	if a.disputed.Swap(what == disputed) != (what == disputed) {
		a.say(what, index, hashes)
	}
	if what == outvoted {
		a.yield(ctx, index, nodes)
	}
	return what
}

// say logs that a dispute has begun or ended.
func (a *arbiter) say(what standing, index uint64, hashes map[string]uint64) {
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

// ask asks voters for their hashes, all at once. Who does not answer in time, or
// knows none, is left out.
func (a *arbiter) ask(ctx context.Context, voters []string, index uint64) map[string]uint64 {
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

// serveHash tells the state hash of this node after an entry, once it is applied.
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

// yield hands the lead over to a node that has the majority's state.
func (a *arbiter) yield(ctx context.Context, index uint64, nodes []string) {
	a.log.Error("this node leads, and a majority of the nodes has another catalog: it hands over, and takes theirs", "entry", index, "majority", strings.Join(nodes, ", "))
	a.replica.machine.suspect()
	for _, node := range nodes {
		err := a.replica.transfer(ctx, node)
		if err == nil {
			return
		}
		a.log.Info("the leadership was not handed over", "peer", node, "error", err)
	}
}

// serveState sends the state of this node, while that is the majority's.
func (a *arbiter) serveState(_ context.Context, _ Peer, _ []byte, out io.Writer) error {
	if !a.confirmed.Load() || !a.replica.leading.Load() {
		return errNotLeader
	}
	return a.replica.view().Save(out)
}

// run replaces the state of this node whenever it differs, until the context ends.
func (a *arbiter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.replica.machine.differs:
		}
		for a.replica.machine.differing() {
			if err := a.replace(ctx); err != nil {
				a.log.Warn("the catalog of this node differs from that of the majority and is not replaced yet", "error", err)
			}
			if !a.pause(ctx, a.scaled(replacePause)) {
				return
			}
		}
	}
}

// replace gives this node the state of the leader.
func (a *arbiter) replace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.scaled(stateTime))
	defer cancel()
	leader := a.replica.leader()
	if leader == "" || leader == a.network.self.node {
		return ErrNoLeader
	}

	s, err := a.fetch(ctx, leader)
	if err != nil {
		return err
	}
	if err := a.replica.machine.await(ctx, s.Index()); err != nil {
		return err
	}

	// Without a copy it goes on: a state that is wrong helps nobody.
	copied, err := a.keepCopy()
	if err != nil {
		a.log.Warn("the catalog that differs is not kept", "error", err)
	}

	before, after, err := a.replica.machine.swap(s, a.replica.store)
	if err != nil {
		return err
	}
	a.report(before, after, copied)

	// The next start would begin with the old state otherwise.
	if err := a.replica.raft.Snapshot().Error(); err != nil {
		return fmt.Errorf("cluster: keep the catalog that was replaced: %w", err)
	}
	return nil
}

func (a *arbiter) fetch(ctx context.Context, leader string) (*catalog.State, error) {
	r, err := a.network.stream(ctx, leader, methodState, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return a.replica.machine.build.Load(r)
}

// report tells the operator what differed.
func (a *arbiter) report(before, after *catalog.View, copied string) {
	var tables []string
	for _, d := range before.Differences(after, keysNamed) {
		tables = append(tables, d.String())
	}
	what := strings.Join(tables, "; ")
	a.replaced.Add(1)
	text := fmt.Sprintf("the catalog of this node differed from that of the majority and was replaced at entry %d: %s", after.Index(), what)
	if copied != "" {
		text += "; the former one is in " + copied
	}
	a.last.Store(&text)
	a.log.Error("the catalog of this node differed from that of the majority of the nodes, and was replaced by that of the leader", "entry", after.Index(), "tables", what, "copy", copied)
}

// said is [Cluster.Replaced].
func (a *arbiter) said() string {
	if text := a.last.Load(); text != nil {
		return *text
	}
	return ""
}

// keepCopy writes the state that differs beside the others that differed, of which
// the newest stay.
func (a *arbiter) keepCopy() (path string, err error) {
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

	old, err := filepath.Glob(filepath.Join(dir, "*.snapshot")) // in the order of their entries
	for len(old) > statesKept && err == nil {
		err, old = os.Remove(old[0]), old[1:]
	}
	return path, err
}
