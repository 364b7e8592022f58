package job

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/place"
)

// Node is a member as the planner sees it.
type Node struct {
	ID     string
	Epoch  uint64
	Zone   string
	Weight float64
	Alive  bool
	Silent time.Duration // for how long it has not been reached, at Timing 1
	Closed bool          // draining: takes no job
	Disk   int           // percent of its volume in use
}

// Input is all that a plan depends on.
type Input struct {
	View  *catalog.View
	Now   time.Time
	Nodes []Node
	// Look asks for the kinds of jobs whose schedule is looked at: it happens
	// at the polling intervals of the settings, and of packs at one of its own.
	// Grants are made always.
	LookSync, LookRepos, LookPacks bool
}

// The bounds of a plan.
const (
	lostAfter   = 25 * time.Second // a silent node loses its jobs
	lateSlack   = 30 * time.Second // a job that is this much past its deadline is taken away
	maxCommands = 256              // of one plan
	syncTime    = time.Hour        // deadline of a connection sync
	collectTime = 10 * time.Minute // deadline of a collection
	rebuildWait = 10 * time.Second // after an index, until a lost one is built again
	partialWait = 10 * time.Minute // until an incomplete listing is tried again
)

// Plan says which commands are due: jobs to enqueue because their time has
// come, running jobs to take away from nodes that are lost, waiting jobs to
// grant to nodes with room. It depends on nothing but its input.
func Plan(in Input) []catalog.Command {
	p := &planner{in: in, settings: in.View.File().Settings, running: map[string]map[catalog.JobKind]int{}, total: map[catalog.JobKind]int{}}
	p.revoke()
	if in.LookSync {
		p.enqueueSyncs()
	}
	if in.LookRepos {
		p.enqueueRepos()
	}
	if in.LookPacks {
		p.enqueuePacks()
	}
	p.grant()
	return p.out
}

type planner struct {
	in       Input
	settings config.Settings
	out      []catalog.Command
	running  map[string]map[catalog.JobKind]int // by node
	total    map[catalog.JobKind]int
	classes  map[string][]*packFile // of the view, once they are asked for
}

func (p *planner) add(c catalog.Command) bool {
	if len(p.out) >= maxCommands {
		return false
	}
	p.out = append(p.out, c)
	return true
}

func (p *planner) node(id string) *Node {
	for i := range p.in.Nodes {
		if p.in.Nodes[i].ID == id {
			return &p.in.Nodes[i]
		}
	}
	return nil
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
	switch {
	case n == nil:
		return "its node was removed"
	case n.Epoch != j.Epoch:
		return "its node has restarted"
	case !n.Alive && n.Silent >= lostAfter:
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

// enqueueSyncs asks for a sync of the connections whose time has come.
func (p *planner) enqueueSyncs() {
	for c := range p.in.View.Connections() {
		j := p.in.View.Job(catalog.JobSync, c.Name)
		due := false
		switch {
		case j == nil:
			due = true
		case j.State == catalog.JobDone && c.Hash != c.Synced:
			due = !p.in.Now.Before(j.FinishedAt.Add(min(partialWait, p.settings.ResyncConnectionInterval)))
		case j.State == catalog.JobDone, j.State == catalog.JobFailed:
			due = !p.in.Now.Before(j.FinishedAt.Add(p.settings.ResyncConnectionInterval))
		}
		if due && !p.add(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: c.Name}) {
			return
		}
	}
}

// enqueueRepos asks for the first index of new repositories, and for the
// collection of those that no connection lists any more. Later indexing
// begins with a poll that found something new.
func (p *planner) enqueueRepos() {
	for r := range p.in.View.Repos() {
		subject := catalog.RepoSubject(r.ID)
		if r.Orphaned() {
			j := p.in.View.Job(catalog.JobCollect, subject)
			idle := j == nil || j.State == catalog.JobDone || j.State == catalog.JobFailed && !p.in.Now.Before(j.FinishedAt.Add(p.settings.ReindexInterval))
			if idle && !p.in.Now.Before(r.OrphanedAt.Add(p.settings.RepoGarbageCollectionGrace)) {
				if !p.add(&catalog.EnqueueJob{Kind: catalog.JobCollect, Subject: subject}) {
					return
				}
			}
			continue
		}
		j := p.in.View.Job(catalog.JobIndex, subject)
		if r.Indexed() {
			if p.orphanedData(r) && (j == nil || j.State == catalog.JobDone) && !p.add(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: subject}) {
				return
			}
			continue
		}
		if j == nil || j.State == catalog.JobDone || j.State == catalog.JobFailed && !p.in.Now.Before(j.FinishedAt.Add(p.settings.ReindexInterval)) {
			if !p.add(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: subject}) {
				return
			}
		}
	}
}

// orphanedData tells that nobody has a part of the generation of a
// repository any more, or only nodes that have been silent for long: it must
// be built again. A generation that is lost right after it was made is not
// made again at once.
func (p *planner) orphanedData(r *catalog.Repo) bool {
	if p.in.Now.Before(r.IndexedAt.Add(min(rebuildWait, p.settings.ReindexInterval))) {
		return false
	}
	lost := func(key string) bool {
		for _, id := range p.in.View.Holders(key) {
			if n := p.node(id); n != nil && (n.Alive || n.Silent < deadAfter) {
				return false
			}
		}
		return true
	}
	if lost(catalog.MirrorKey(r.ID)) {
		return true
	}
	for _, s := range r.Shards {
		if lost(catalog.ShardKey(s.ID)) || s.Dead != "" && lost(catalog.ShardKey(s.Dead)) || s.Symbols != "" && lost(catalog.ShardKey(s.Symbols)) {
			return true
		}
	}
	return false
}

// grant gives waiting jobs to nodes: those that a person asked for first,
// then repositories that were never indexed, then the longest waiting.
func (p *planner) grant() {
	var queue waiting
	open := map[catalog.JobKind]bool{}
	for _, kind := range catalog.JobKinds() {
		if open[kind] = p.room(kind); !open[kind] {
			continue // thousands may wait, and are not looked at
		}
		for j := range p.in.View.JobsOfKind(kind, catalog.JobWaiting, catalog.JobBackoff) {
			if !p.in.Now.Before(j.NotBefore) {
				queue = append(queue, j)
			}
		}
	}
	heap.Init(&queue)
	for len(queue) > 0 && slices.Contains(slices.Collect(maps.Values(open)), true) {
		j := heap.Pop(&queue).(*catalog.Job)
		if !open[j.Kind] || p.blocked(j) {
			continue
		}
		n := p.choose(j)
		if n == nil {
			continue
		}
		if !p.add(&catalog.GrantJob{Kind: j.Kind, Subject: j.Subject, Node: n.ID, Epoch: n.Epoch, Deadline: p.in.Now.Add(p.time(j.Kind))}) {
			return
		}
		p.count(n.ID, j.Kind)
		open[j.Kind] = p.room(j.Kind)
	}
}

// room tells whether any node could take a job of a kind.
func (p *planner) room(kind catalog.JobKind) bool {
	return p.total[kind] < p.clusterCap(kind) && slices.ContainsFunc(p.in.Nodes, func(n Node) bool {
		return n.Alive && !n.Closed && n.Disk < diskStop && p.running[n.ID][kind] < p.nodeCap(kind)
	})
}

// blocked tells that another job on the same repository is running.
func (p *planner) blocked(j *catalog.Job) bool {
	other := catalog.JobIndex
	switch j.Kind {
	case catalog.JobIndex:
		other = catalog.JobCollect
		if r := p.in.View.Repo(catalog.SubjectRepo(j.Subject)); r == nil || r.Orphaned() {
			return true
		}
	case catalog.JobCollect:
	default:
		return false
	}
	o := p.in.View.Job(other, j.Subject)
	return o != nil && o.State == catalog.JobRunning
}

func (p *planner) clusterCap(kind catalog.JobKind) int {
	switch kind {
	case catalog.JobSync:
		return p.settings.MaxConnectionSyncJobs
	case catalog.JobAccountSync:
		return p.settings.MaxAccountPermissionSyncJobs
	case catalog.JobRepoSync:
		return p.settings.MaxRepoPermissionSyncJobs
	}
	return 1 << 30
}

func (p *planner) nodeCap(kind catalog.JobKind) int {
	switch kind {
	case catalog.JobIndex:
		return p.settings.MaxRepoIndexingJobs
	case catalog.JobCollect:
		return p.settings.MaxRepoGarbageCollectionJobs
	case catalog.JobPack:
		return 1
	}
	return 1 << 30
}

func (p *planner) time(kind catalog.JobKind) time.Duration {
	switch kind {
	case catalog.JobIndex, catalog.JobPack:
		return p.settings.RepoIndexTimeout
	case catalog.JobCollect:
		return collectTime
	}
	return syncTime
}

// choose finds the node to run a job: for a repository one of its home, for a
// pack one of those that should hold it, else any; of these the least busy, and
// among equals the one with the highest score.
func (p *planner) choose(j *catalog.Job) *Node {
	key := subjectKey(j)
	home := p.home(j)
	if j.Kind == catalog.JobPack {
		var bound bool
		if home, bound = p.packHome(j.Subject); bound && len(home) == 0 {
			return nil
		}
	}
	var best *Node
	for i := range p.in.Nodes {
		n := &p.in.Nodes[i]
		if !n.Alive || n.Closed || n.Disk >= diskStop || len(home) > 0 && !slices.Contains(home, n.ID) {
			continue
		}
		if p.running[n.ID][j.Kind] >= p.nodeCap(j.Kind) {
			continue
		}
		if best == nil || p.better(key, n, best, j.Kind) {
			best = n
		}
	}
	return best
}

func (p *planner) better(key uint64, n, than *Node, kind catalog.JobKind) bool {
	a, b := p.running[n.ID][kind], p.running[than.ID][kind]
	if a != b {
		return a < b
	}
	return place.Score(key, place.Member{ID: n.ID, Weight: n.Weight}) > place.Score(key, place.Member{ID: than.ID, Weight: than.Weight})
}

// home is the nodes that may index a repository; empty when any will do. Of
// those with the mirror it is those that have most of the files, because a build
// copies the others to where it runs, and one of them may be the pack of many
// repositories. So what moves is indexed by its old holders until the files are
// where they should be, and from then on there.
func (p *planner) home(j *catalog.Job) []string {
	repo := p.in.View.Repo(catalog.SubjectRepo(j.Subject))
	if j.Kind != catalog.JobIndex || repo == nil {
		return nil
	}
	cannot := func(id string) bool { return !p.open(id) || p.node(id).Disk >= diskStop }
	targets := slices.DeleteFunc(targetsOf(p.in.View, groupOf(repo.ID)), cannot)
	holders := slices.DeleteFunc(p.in.View.Holders(catalog.MirrorKey(repo.ID)), cannot)
	if len(holders) == 0 {
		return targets
	}
	home := mostOf(holders, func(id string) int64 { return heldOf(p.in.View, repo, id) })
	if slices.ContainsFunc(home, func(id string) bool { return slices.Contains(targets, id) }) {
		home = slices.DeleteFunc(home, func(id string) bool { return !slices.Contains(targets, id) })
	}
	return home
}

// open tells that a node takes jobs.
func (p *planner) open(id string) bool {
	n := p.node(id)
	return n != nil && n.Alive && !n.Closed
}

// heldOf is how much of the live generation of a repository a node has. Side
// files, whose sizes are not known, count next to nothing.
func heldOf(view *catalog.View, repo *catalog.Repo, node string) (held int64) {
	for _, s := range repo.Shards {
		for key := range filesOf(repo.ID, s) {
			if !view.Holds(node, key) {
				continue
			}
			held++
			if key == catalog.ShardKey(s.ID) {
				held += s.Bytes
			}
		}
	}
	return held
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

func subjectKey(j *catalog.Job) uint64 {
	if id := catalog.SubjectRepo(j.Subject); j.Kind == catalog.JobIndex && id != 0 {
		return place.GroupOf(id)
	}
	return place.Key(j.Subject)
}
