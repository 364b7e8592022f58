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

// Input is all that a plan depends on, beside the table of kinds.
type Input struct {
	View  *catalog.View
	Now   time.Time
	Nodes []hold.Node
	Look  Look // the schedules to look at; grants are made always
}

// The bounds of a plan.
const (
	lateSlack   = 30 * time.Second // a job that is this much past its deadline is taken away
	maxCommands = 256              // of one plan
)

// plan says which commands are due: running jobs to take away from nodes that
// are lost, jobs to enqueue because their time has come, waiting jobs to grant
// to nodes with room. It depends on nothing but its arguments.
func plan(ks kinds, in Input) []catalog.Command {
	p := newPlanner(ks, in)

	// Revoking goes first: what is left counts as running, and tells the room for grants.
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
	in       Input
	kinds    kinds
	settings config.Settings
	out      []catalog.Command
	running  map[string]map[catalog.JobKind]int // by node
	total    map[catalog.JobKind]int
	packable map[string][]*hold.ClassFile // of the view, once they are asked for
	looks    int                          // at waiting jobs
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

// add takes a command into the plan; false when it is full.
func (p *planner) add(c catalog.Command) bool {
	if len(p.out) >= maxCommands {
		return false
	}
	p.out = append(p.out, c)
	return true
}

// node returns nil for one that is no member any more.
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

// elapsed reports whether some time has passed since then.
func (p *planner) elapsed(since time.Time, d time.Duration) bool {
	return !p.in.Now.Before(since.Add(d))
}

// idle reports whether a job can be asked for again: it was never run or is done,
// or it failed for good and some time has passed.
func (p *planner) idle(j *catalog.Job, retry time.Duration) bool {
	return j == nil || j.State == catalog.JobDone || j.State == catalog.JobFailed && p.elapsed(j.FinishedAt, retry)
}

// revoke takes running jobs from nodes that are gone, restarted, silent for
// too long, or past the deadline; the others are counted.
func (p *planner) revoke() {
	for j := range p.in.View.JobsOf(catalog.JobRunning) {
		if why := p.lost(j); why != "" {
			p.add(&catalog.RevokeJob{Kind: j.Kind, Subject: j.Subject, Fence: j.Fence, Reason: why, NotBefore: p.in.Now})
			continue
		}
		p.count(j.Node, j.Kind)
	}
}

func (p *planner) lost(j *catalog.Job) string {
	n := p.node(j.Node)

	// A node that has started anew has another epoch, and runs nothing of before.
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

func (p *planner) count(node string, kind catalog.JobKind) {
	if p.running[node] == nil {
		p.running[node] = map[catalog.JobKind]int{}
	}
	p.running[node][kind]++
	p.total[kind]++
}

// grant gives waiting jobs to nodes: those that a person asked for first,
// then repositories that were never indexed, then the longest waiting. It looks at no
// more jobs than it takes to fill the nodes: thousands may wait.
func (p *planner) grant() {
	var lines []line
	for i := range p.kinds {
		if k := &p.kinds[i]; p.room(k) {
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

// line is the waiting jobs of a kind, in the order of their turns.
type line struct {
	kind *Kind
	head *catalog.Job
	next func() (*catalog.Job, bool)
}

// step goes on to the next job; false at the end.
func (l *line) step(p *planner) (ok bool) {
	l.head, ok = l.next()
	p.looks++
	return ok
}

// firstLine is the line whose head has its turn first.
func firstLine(lines []line) (first int) {
	for i := range lines {
		if lines[i].head.GrantedBefore(lines[first].head) {
			first = i
		}
	}
	return first
}

// grantTo gives a job to a node, if it may begin and one has room for it. full: no node
// has room for another of its kind.
func (p *planner) grantTo(k *Kind, j *catalog.Job) (full bool) {
	if k.Blocked != nil && k.Blocked(p, j) {
		return false
	}

	// No node has room for it: others of its kind may be for other nodes.
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
	return !p.room(k)
}

// room reports whether any node could take a job of a kind.
func (p *planner) room(k *Kind) bool {
	return p.total[k.Job] < k.perCluster(p.settings) && slices.ContainsFunc(p.in.Nodes, func(n hold.Node) bool {
		return takesJobs(&n) && p.running[n.ID][k.Job] < k.perNode(p.settings)
	})
}

// runs reports whether a job is running.
func (p *planner) runs(kind catalog.JobKind, subject string) bool {
	j := p.in.View.Job(kind, subject)
	return j != nil && j.State == catalog.JobRunning
}

// choose finds the node to run a job: one of its home, else any; of these the
// least busy, and among equals the one with the highest score.
func (p *planner) choose(k *Kind, j *catalog.Job) *hold.Node {
	var home []string
	if k.Home != nil {
		var bound bool
		// Bound to nodes of which none is there: it waits.
		if home, bound = k.Home(p, j); bound && len(home) == 0 {
			return nil
		}
	}

	// Jobs of one key come to the same node as long as it can: it has what they need.
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

// better reports whether a node should rather have a job than another.
func (p *planner) better(key uint64, n, than *hold.Node, kind catalog.JobKind) bool {
	score := func(n *hold.Node) float64 { return place.Score(key, place.Member{ID: n.ID, Weight: n.Weight}) }
	return cmp.Or(cmp.Compare(p.running[n.ID][kind], p.running[than.ID][kind]), cmp.Compare(score(than), score(n))) < 0
}

// mostOf is those of the nodes that have most of something.
func mostOf(nodes []string, held func(id string) int64) (most []string) {
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
