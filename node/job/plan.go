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

	// Revoke first: the remaining jobs count as running and limit the grants.
	p.revoke()
	for _, k := range ks {
		if k.Look&in.Look != 0 {
			k.Enqueue(p)
		}
	}
	p.grant()
	return p.out
}

type planner struct {
	in        Input
	kinds     kinds
	settings  config.Settings
	out       []catalog.Command
	running   map[string]map[catalog.JobKind]int // by node
	total     map[catalog.JobKind]int
	packable  map[string][]*hold.ClassFile // cache of packClasses
	lookCount int                          // number of waiting jobs looked at
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

// add appends a command to the plan. It returns false if the plan is full.
func (p *planner) add(c catalog.Command) bool {
	if len(p.out) >= maxCommands {
		return false
	}
	p.out = append(p.out, c)
	return true
}

// node returns the node with this id, or nil.
func (p *planner) node(id string) *hold.Node {
	for i := range p.in.Nodes {
		if p.in.Nodes[i].ID == id {
			return &p.in.Nodes[i]
		}
	}
	return nil
}

// open reports whether a node takes jobs.
func (p *planner) open(id string) bool {
	n := p.node(id)
	return n != nil && takesJobs(n)
}

func takesJobs(n *hold.Node) bool { return n.Alive && !n.Closed && n.Disk < hold.DiskStop }

// elapsed reports whether d has passed since a time.
func (p *planner) elapsed(since time.Time, d time.Duration) bool {
	return !p.in.Now.Before(since.Add(d))
}

// idle reports whether a job may be enqueued again: it never ran, is done, or failed for good at
// least retry ago.
func (p *planner) idle(j *catalog.Job, retry time.Duration) bool {
	return j == nil || j.State == catalog.JobDone || j.State == catalog.JobFailed && p.elapsed(j.FinishedAt, retry)
}

// revoke revokes jobs of nodes that are removed, restarted or silent for too long, and jobs past
// their deadline. It counts the others as running.
func (p *planner) revoke() {
	for j := range p.in.View.JobsOf(catalog.JobRunning) {
		if why := p.lost(j); why != "" {
			p.add(&catalog.RevokeJob{Kind: j.Kind, Subject: j.Subject, Fence: j.Fence, Reason: why, NotBefore: p.in.Now})
			continue
		}
		p.count(j.Node, j.Kind)
	}
}

// lost returns why a running job must be taken from its node; "" if it need not.
func (p *planner) lost(j *catalog.Job) string {
	n := p.node(j.Node)

	// A restarted node has a new epoch, and none of its old jobs.
	switch {
	case n == nil:
		return "its node was removed"
	case n.Epoch != j.Epoch:
		return "its node has restarted"
	case n.Lost():
		return "its node cannot be reached"
	case p.in.Now.After(j.Deadline.Add(lateSlack)):
		return "it is past its deadline"
	}
	return ""
}

// count counts one running job of a node.
func (p *planner) count(node string, kind catalog.JobKind) {
	if p.running[node] == nil {
		p.running[node] = map[catalog.JobKind]int{}
	}
	p.running[node][kind]++
	p.total[kind]++
}

// grant grants waiting jobs to nodes: requests by people first, then first indexes, then the
// longest waiting. It stops when the nodes are full, because thousands of jobs may wait.
func (p *planner) grant() {
	var lines []line
	for i := range p.kinds {
		if k := &p.kinds[i]; p.hasRoom(k) {
			l := line{kind: k}
			var stop func()
			l.next, stop = iter.Pull(p.in.View.JobsToGrant(k.Job, p.in.Now))
			defer stop()
			if l.step(p) {
				lines = append(lines, l)
			}
		}
	}

	for len(lines) > 0 {
		at := firstLine(lines)
		l := &lines[at]
		full := p.grantTo(l.kind, l.head)
		if len(p.out) >= maxCommands {
			return
		}
		if full || !l.step(p) {
			lines = slices.Delete(lines, at, at+1)
		}
	}
}

// line is the queue of waiting jobs of a kind.
type line struct {
	kind *Kind
	head *catalog.Job
	next func() (*catalog.Job, bool)
}

// step advances to the next job. It returns false at the end.
func (l *line) step(p *planner) (ok bool) {
	l.head, ok = l.next()
	p.lookCount++
	return ok
}

// firstLine returns the index of the line whose head is to be granted first.
func firstLine(lines []line) (first int) {
	for i := range lines {
		if lines[i].head.GrantedBefore(lines[first].head) {
			first = i
		}
	}
	return first
}

// grantTo grants a job, if it may begin and a node has room. full means that no node has room for
// another job of this kind.
func (p *planner) grantTo(k *Kind, j *catalog.Job) (full bool) {
	if k.Blocked != nil && k.Blocked(p, j) {
		return false
	}

	// No suitable node has room. Other jobs of the kind may suit other nodes.
	n := p.choose(k, j)
	if n == nil {
		return false
	}

	p.add(&catalog.GrantJob{
		Kind:     j.Kind,
		Subject:  j.Subject,
		Node:     n.ID,
		Epoch:    n.Epoch,
		Deadline: p.in.Now.Add(k.Timeout(p.settings)),
	})
	p.count(n.ID, j.Kind)
	return !p.hasRoom(k)
}

// hasRoom reports whether any node could take a job of a kind.
func (p *planner) hasRoom(k *Kind) bool {
	return p.total[k.Job] < k.perCluster(p.settings) && slices.ContainsFunc(p.in.Nodes, func(n hold.Node) bool {
		return takesJobs(&n) && p.running[n.ID][k.Job] < k.perNode(p.settings)
	})
}

// runs reports whether a job is running.
func (p *planner) runs(kind catalog.JobKind, subject string) bool {
	j := p.in.View.Job(kind, subject)
	return j != nil && j.State == catalog.JobRunning
}

// choose returns the node to run a job: a home node if there are any, then the least busy, then the
// one with the best score.
func (p *planner) choose(k *Kind, j *catalog.Job) *hold.Node {
	var home []string
	if k.Home != nil {
		var bound bool
		// Bound to nodes that are all absent: wait.
		if home, bound = k.Home(p, j); bound && len(home) == 0 {
			return nil
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
		if best == nil || p.better(key, n, best, k.Job) {
			best = n
		}
	}
	return best
}

// better reports whether n suits a job better than than.
func (p *planner) better(key uint64, n, than *hold.Node, kind catalog.JobKind) bool {
	score := func(n *hold.Node) float64 { return place.Score(key, place.Member{ID: n.ID, Weight: n.Weight}) }
	return cmp.Or(cmp.Compare(p.running[n.ID][kind], p.running[than.ID][kind]), cmp.Compare(score(than), score(n))) < 0
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
