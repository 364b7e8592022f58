package job

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/place"
)

// Input is everything that a plan depends on, besides the table of kinds.
type Input struct {
	View  *catalog.View
	Now   time.Time
	Nodes []hold.Node
	Look  Look // the due schedules; grants are always planned
}

// Limits of a plan.
const (
	lateSlack   = 30 * time.Second // a job is revoked this long after its deadline
	maxCommands = 256              // per plan
)

// plan returns the due commands: revoke jobs of lost nodes, enqueue due jobs, and grant waiting
// jobs to nodes with room. It depends only on its arguments.
func plan(ks kinds, in Input) []catalog.Command {
	p := newPlanner(ks, in)

	// Revoke first, because the jobs that stay limit how many can be granted.
	p.revokeLostJobs()
	for _, k := range ks {
		if k.Look&in.Look != 0 {
			k.Enqueue(p)
		}
	}
	p.grantWaitingJobs()
	return p.commands
}

type planner struct {
	in        Input
	kinds     kinds
	settings  config.Settings
	commands  []catalog.Command
	running   map[string]map[catalog.JobKind]int // by node
	total     map[catalog.JobKind]int            // sum of running
	packCache map[string][]*hold.ClassFile       // cache of packClasses
	lookCount int                                // number of waiting jobs looked at, for tests
}

func newPlanner(ks kinds, in Input) *planner {
	return &planner{
		in:       in,
		kinds:    ks,
		settings: in.View.File().Settings,
		running:  map[string]map[catalog.JobKind]int{},
		total:    map[catalog.JobKind]int{},
	}
}

// addIfRoom appends a command to the plan, or returns false if the plan is full.
func (p *planner) addIfRoom(c catalog.Command) bool {
	if len(p.commands) >= maxCommands {
		return false
	}
	p.commands = append(p.commands, c)
	return true
}

// nodeByID returns the node with this id, or nil.
func (p *planner) nodeByID(id string) *hold.Node {
	for i := range p.in.Nodes {
		if p.in.Nodes[i].ID == id {
			return &p.in.Nodes[i]
		}
	}
	return nil
}

// nodeTakesJobs reports whether the node with an id may get jobs.
func (p *planner) nodeTakesJobs(id string) bool {
	n := p.nodeByID(id)
	return n != nil && takesJobs(n)
}

func takesJobs(n *hold.Node) bool { return n.Alive && !n.Closed && n.Disk < hold.DiskStop }

// elapsed reports whether d has passed since a time.
func (p *planner) elapsed(since time.Time, d time.Duration) bool {
	return !p.in.Now.Before(since.Add(d))
}

// mayEnqueue reports whether a job may be enqueued again: it never ran, is done, or failed for good
// at least retry ago.
func (p *planner) mayEnqueue(j *catalog.Job, retry time.Duration) bool {
	return j == nil || j.State == catalog.JobDone || j.State == catalog.JobFailed && p.elapsed(j.FinishedAt, retry)
}

// revokeLostJobs revokes jobs of nodes that are removed, restarted or silent for too long, and jobs past
// their deadline. It counts the others as running.
func (p *planner) revokeLostJobs() {
	for j := range p.in.View.JobsOf(catalog.JobRunning) {
		if why := p.revokeReason(j); why != "" {
			p.addIfRoom(&catalog.RevokeJob{Kind: j.Kind, Subject: j.Subject, Fence: j.Fence, Reason: why, NotBefore: p.in.Now})
			continue
		}
		p.countRunning(j.Node, j.Kind)
	}
}

// revokeReason returns why a running job must be taken from its node; "" if it need not.
func (p *planner) revokeReason(j *catalog.Job) string {
	n := p.nodeByID(j.Node)

	switch {
	case n == nil:
		return "its node was removed"
	case n.Epoch != j.Epoch: // the epoch changes with each start
		return "its node has restarted"
	case n.Lost():
		return "its node cannot be reached"
	case p.in.Now.After(j.Deadline.Add(lateSlack)):
		return "it is past its deadline"
	}
	return ""
}

// countRunning counts one running job of a node.
func (p *planner) countRunning(node string, kind catalog.JobKind) {
	if p.running[node] == nil {
		p.running[node] = map[catalog.JobKind]int{}
	}
	p.running[node][kind]++
	p.total[kind]++
}

// grantWaitingJobs grants waiting jobs to nodes: requests by people first, then first indexes, then the
// longest waiting. Each kind of job has a queue in this order. grant always takes the first job of
// all queues, until the nodes are full: thousands of jobs may wait.
func (p *planner) grantWaitingJobs() {
	var queues []jobQueue
	for i := range p.kinds {
		if k := &p.kinds[i]; p.hasRoom(k) {
			q := jobQueue{kind: k}
			var stop func()
			q.next, stop = iter.Pull(p.in.View.JobsToGrant(k.Job, p.in.Now))
			defer stop()
			if q.advance(p) {
				queues = append(queues, q)
			}
		}
	}

	for len(queues) > 0 {
		at := firstQueue(queues)
		q := &queues[at]
		full := p.grantJob(q.kind, q.head)
		if len(p.commands) >= maxCommands {
			return
		}
		if full || !q.advance(p) {
			queues = slices.Delete(queues, at, at+1)
		}
	}
}

// jobQueue is the queue of waiting jobs of a kind.
type jobQueue struct {
	kind *Kind
	head *catalog.Job                // first job
	next func() (*catalog.Job, bool) // returns the job after it, or false
}

// advance moves the queue to its next job. It returns false at the end.
func (l *jobQueue) advance(p *planner) (ok bool) {
	l.head, ok = l.next()
	p.lookCount++
	return ok
}

// firstQueue returns the index of the queue whose head must be granted first.
func firstQueue(queues []jobQueue) (first int) {
	for i := range queues {
		if queues[i].head.GrantedBefore(queues[first].head) {
			first = i
		}
	}
	return first
}

// grantJob grants a job, if it may begin and a node has room. full means that no node has room for
// another job of this kind.
func (p *planner) grantJob(k *Kind, j *catalog.Job) (full bool) {
	if k.Blocked != nil && k.Blocked(p, j) {
		return false
	}

	// If no suitable node has room, another job of this kind may still suit another node.
	n := p.chooseNode(k, j)
	if n == nil {
		return false
	}

	p.addIfRoom(&catalog.GrantJob{
		Kind:     j.Kind,
		Subject:  j.Subject,
		Node:     n.ID,
		Epoch:    n.Epoch,
		Deadline: p.in.Now.Add(k.Timeout(p.settings)),
	})
	p.countRunning(n.ID, j.Kind)
	return !p.hasRoom(k)
}

// hasRoom reports whether any node could take a job of a kind.
func (p *planner) hasRoom(k *Kind) bool {
	return p.total[k.Job] < k.perCluster(p.settings) && slices.ContainsFunc(p.in.Nodes, func(n hold.Node) bool {
		return takesJobs(&n) && p.running[n.ID][k.Job] < k.perNode(p.settings)
	})
}

// isRunning reports whether a job is running.
func (p *planner) isRunning(kind catalog.JobKind, subject string) bool {
	j := p.in.View.Job(kind, subject)
	return j != nil && j.State == catalog.JobRunning
}

// chooseNode returns the node to run a job: a home node if there are any, then the least busy, then
// the one with the best score.
func (p *planner) chooseNode(k *Kind, j *catalog.Job) *hold.Node {
	var home []string
	if k.Home != nil {
		var bound bool
		home, bound = k.Home(p, j)
		if bound && len(home) == 0 {
			return nil // only nodes that are away may run the job
		}
	}

	// Jobs with the same key prefer the same node, which has what they need.
	key := place.Key(j.Subject)
	if k.Key != nil {
		key = k.Key(j)
	}

	var best *hold.Node
	for i := range p.in.Nodes {
		n := &p.in.Nodes[i]

		if !takesJobs(n) || len(home) > 0 && !slices.Contains(home, n.ID) || p.running[n.ID][k.Job] >= k.perNode(p.settings) {
			continue
		}
		if best == nil || p.prefersNode(key, n, best, k.Job) {
			best = n
		}
	}
	return best
}

// prefersNode reports whether n should run a job rather than other: it runs fewer jobs of the kind,
// or as many and has the higher score for the key.
func (p *planner) prefersNode(key uint64, n, other *hold.Node, kind catalog.JobKind) bool {
	score := func(n *hold.Node) float64 { return place.Score(key, place.Member{ID: n.ID, Weight: n.Weight}) }
	return cmp.Or(cmp.Compare(p.running[n.ID][kind], p.running[other.ID][kind]), cmp.Compare(score(other), score(n))) < 0
}

// nodesWithMost returns the nodes with the highest value of held.
func nodesWithMost(nodes []string, held func(id string) int64) (most []string) {
	best := int64(-1)
	for _, id := range nodes {
		n := held(id)
		if n > best {
			most, best = nil, n
		}
		if n == best {
			most = append(most, id)
		}
	}
	return most
}
