package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/job"
)

// StatusRequest asks for the state of the cluster.
type StatusRequest struct{}

// StatusResponse is the state of the cluster as this node sees it.
type StatusResponse struct {
	Version      string
	Node         string // id of the node that answers
	Leader       string // id; "" when there is none
	CatalogIndex uint64
	CatalogAge   time.Duration
	Members      []MemberStatus
	Repos        RepoCounts
	Jobs         JobCounts
	Connections  []ConnectionStatus
	Running      []JobStatus // of the whole cluster; progress of this node's own
	Failed       []JobStatus // last failures, at most 100
	Config       ConfigStatus
	Storage      StorageStatus
	Placement    PlacementStatus
	Warnings     []string
}

// PlacementStatus is how the data lies on the nodes.
type PlacementStatus struct {
	Groups          int      // units that are placed
	UnderReplicated int      // repositories with fewer live copies than wanted
	Short           []string // names of at most 20 of them, for owners
	Moves           int      // copies into this node that are under way
	Hot             int      // units that have more copies than the rest since they are searched so much
}

// MemberStatus is one node of the cluster.
type MemberStatus struct {
	ID       string
	Address  string // of calls
	API      string // base of its API, "" when unknown
	Zone     string
	Role     string // leader, voter, nonvoter
	Health   string // alive, suspect, dead, left
	Draining bool
	Weight   float64
	Version  string
	Groups   int // placement groups that it should hold
	Bytes    int64
	Applied  uint64
	Lag      uint64 // entries behind the answering node
}

// RepoCounts counts the repositories that the viewer may see.
type RepoCounts struct{ Total, Indexed, Failed int }

// JobCounts counts jobs.
type JobCounts struct{ Pending, Running, Failed int }

// ConnectionStatus is the state of one connection.
type ConnectionStatus struct {
	Name     string
	Type     string
	State    string // pending, syncing, synced, failed, unsupported
	Message  string
	Warnings []string
	Repos    int
	SyncedAt time.Time
}

// JobStatus is one job.
type JobStatus struct {
	Kind     string // sync, index, gc, ...
	Subject  string // connection or repository
	Node     string
	Attempt  int
	Started  time.Time
	Deadline time.Time
	Step     string // fetching, reading, building, ...
	Done     int64  // documents
	Total    int64  // 0 when unknown
	Bytes    int64
	Error    string
	NextTry  time.Time
}

// ConfigStatus is the state of the configuration file.
type ConfigStatus struct {
	Path      string
	Hash      string // of the configuration in force
	LoadedAt  time.Time
	Errors    []string // of the newest file, when it was refused
	RefusedAt time.Time
}

// StorageStatus is what this node has on disk.
type StorageStatus struct {
	Shards      int
	ShardBytes  int64
	MirrorBytes int64 // as last measured: about a second after a fetch
	Quarantined int   // damaged index files that were put aside, kept for a look
	DiskFree    int64
	DiskTotal   int64
}

// ReadyResponse says whether a load balancer should send requests here.
type ReadyResponse struct {
	Ready   bool
	Reasons []string // why not
}

// DrainRequest asks that a node gives away all it holds and leaves. Owners only.
type DrainRequest struct{ Node string }

// DrainResponse tells how far a drain has come.
type DrainResponse struct {
	Node      string
	Done      bool
	Remaining int // shards and mirrors that have too few copies elsewhere
}

// RemoveRequest asks to forget a node for good. Owners only.
type RemoveRequest struct {
	Node       string
	AcceptLoss bool
}

// RemoveResponse lists repositories that lost their last copy.
type RemoveResponse struct {
	Node string
	Lost []string
}

// maxListed is how many jobs a status lists.
const maxListed = 100

// Status describes the cluster.
func (n *Node) Status(ctx context.Context, v Viewer, req StatusRequest) (*StatusResponse, error) {
	if v.Role == RoleNone {
		return nil, fail(ErrUnauthenticated, "Not authenticated")
	}
	view := n.cluster.View()
	visible := view.Visible(v.catalog())
	out := &StatusResponse{
		Version: n.opt.Version, Node: n.cluster.Self(), Leader: n.cluster.Leader(),
		CatalogIndex: view.Index(), CatalogAge: n.cluster.Age(),
		Members: n.memberStatus(view), Repos: countRepos(view, visible), Jobs: countJobs(view),
		Storage: n.storage(),
	}
	short := job.UnderReplicated(view, n.cluster, n.opt.Replicas)
	for range view.Groups() {
		out.Placement.Groups++
	}
	out.Placement.Hot = n.hotUnits(view)
	out.Placement.UnderReplicated, out.Placement.Moves = len(short), n.copier.Moves()
	out.Running, out.Failed = n.jobStatus(ctx, view, visible)
	if v.Role != RoleOwner {
		return out, nil // names of connections and paths are an operator's
	}
	out.Config = n.config.state()
	out.Placement.Short = short[:min(len(short), maxNamed)]
	for c := range view.Connections() {
		out.Connections = append(out.Connections, connectionStatus(view, c))
	}
	out.Warnings = n.warnings(view)
	return out, nil
}

func (n *Node) memberStatus(view *catalog.View) []MemberStatus {
	groups := map[uint32]int{}
	for g := range view.Groups() {
		for _, number := range g.Nodes {
			groups[number]++
		}
	}
	bytes := heldBytes(view)
	var list []MemberStatus
	for _, m := range n.cluster.Members() {
		s := MemberStatus{
			ID: m.ID, Address: m.Addr, API: m.API, Zone: m.Zone, Role: "nonvoter", Health: "dead",
			Draining: m.State == catalog.MemberDraining, Weight: float64(m.Weight) / 100, Version: m.Version,
			Groups: groups[m.Number], Bytes: bytes[m.Number], Applied: m.Load.Applied,
		}
		if m.Voter {
			s.Role = "voter"
		}
		if m.Leader {
			s.Role = "leader"
		}
		if m.Alive {
			s.Health = "alive"
		}
		if m.Self {
			s.Applied = view.Index()
		}
		if s.Applied < view.Index() {
			s.Lag = view.Index() - s.Applied
		}
		list = append(list, s)
	}
	return list
}

// heldBytes is the bytes of shards that each member has confirmed.
func heldBytes(view *catalog.View) map[uint32]int64 {
	sizes := map[string]int64{}
	for repo := range view.Repos() {
		for _, s := range repo.Shards {
			sizes[catalog.ShardKey(s.ID)] += s.Bytes // of a pack each its share
		}
	}
	bytes := map[uint32]int64{}
	for h := range view.Holdings() {
		for _, number := range h.Nodes {
			bytes[number] += sizes[h.Key]
		}
	}
	return bytes
}

// countRepos counts the repositories of a set; nil is all.
func countRepos(view *catalog.View, visible *roaring.Bitmap) RepoCounts {
	var c RepoCounts
	for repo := range view.Repos() {
		if repo.Orphaned() || visible != nil && !visible.Contains(repo.ID) {
			continue
		}
		c.Total++
		if repo.Indexed() && kept(view, repo) {
			c.Indexed++
		}
		if j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID)); j != nil && j.Error != "" && (j.State == catalog.JobFailed || j.State == catalog.JobBackoff) {
			c.Failed++
		}
	}
	return c
}

// kept tells whether some node has each shard of a repository. Nobody has them
// after a catalog was restored, or the last holder was removed, until the
// repository is indexed again.
func kept(view *catalog.View, repo *catalog.Repo) bool {
	for _, s := range repo.Shards {
		if len(view.Holders(catalog.ShardKey(s.ID))) == 0 {
			return false
		}
	}
	return true
}

func countJobs(view *catalog.View) JobCounts {
	var c JobCounts
	for j := range view.JobsOf(catalog.JobWaiting, catalog.JobBackoff, catalog.JobRunning, catalog.JobFailed) {
		switch j.State {
		case catalog.JobRunning:
			c.Running++
		case catalog.JobFailed:
			c.Failed++
		default:
			c.Pending++
		}
	}
	return c
}

// jobStatus lists the running jobs, with the progress of those whose nodes
// answer at once, and the failed ones, newest first.
func (n *Node) jobStatus(ctx context.Context, view *catalog.View, visible *roaring.Bitmap) (running, failed []JobStatus) {
	progress := n.progress(ctx, view)
	for j := range view.JobsOf(catalog.JobRunning, catalog.JobBackoff, catalog.JobFailed) {
		s := JobStatus{
			Kind: job.KindName(j.Kind), Subject: j.Subject, Node: j.Node, Attempt: int(j.Attempt), Started: j.GrantedAt,
			Deadline: j.Deadline, Error: j.Error, NextTry: j.NotBefore,
		}
		if j.Kind == catalog.JobIndex || j.Kind == catalog.JobCollect || j.Kind == catalog.JobRepoSync {
			repo := view.Repo(catalog.SubjectRepo(j.Subject))
			if repo == nil || !visible.Contains(repo.ID) && !repo.Orphaned() {
				continue
			}
			s.Subject = repo.Name
		}
		if j.State != catalog.JobRunning {
			if j.Error != "" {
				failed = append(failed, s)
			}
			continue
		}
		if p, ok := progress[j.Fence]; ok {
			s.Step, s.Done, s.Total, s.Bytes = p.Step, p.Done, p.Total, p.Bytes
		}
		running = append(running, s)
	}
	slices.SortStableFunc(running, func(a, b JobStatus) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Subject, b.Subject))
	})
	slices.SortStableFunc(failed, func(a, b JobStatus) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Subject, b.Subject))
	})
	return running[:min(len(running), maxListed)], failed[:min(len(failed), maxListed)]
}

// progressTime is how long a status waits for the progress of other nodes.
const progressTime = 300 * time.Millisecond

// progress is how far the running attempts are, by fence, of this node and
// of the others that run any.
func (n *Node) progress(ctx context.Context, view *catalog.View) map[uint64]job.Progress {
	all := map[uint64]job.Progress{}
	for _, p := range n.jobs.Running() {
		all[p.Fence] = p
	}
	others := map[string]bool{}
	for j := range view.JobsOf(catalog.JobRunning) {
		if j.Node != n.cluster.Self() && n.cluster.Alive(j.Node) {
			others[j.Node] = true
		}
	}
	ctx, cancel := context.WithTimeout(ctx, progressTime)
	defer cancel()
	answers := make(chan []job.Progress, len(others))
	for node := range others {
		go func() {
			var list []job.Progress
			if out, err := n.cluster.Call(ctx, node, methodStatus, nil); err == nil {
				decode(out, &list)
			}
			answers <- list
		}()
	}
	for range others {
		for _, p := range <-answers {
			all[p.Fence] = p
		}
	}
	return all
}

// hotUnits counts what has more copies than is wanted of everything.
func (n *Node) hotUnits(view *catalog.View) int {
	hot := 0
	for g := range view.Groups() {
		if len(g.Nodes) > n.opt.Replicas {
			hot++
		}
	}
	return hot
}

// serveStatus tells another node of the attempts here.
func (n *Node) serveStatus(ctx context.Context, _ cluster.Peer, _ []byte) ([]byte, error) {
	return encode(n.jobs.Running())
}

func connectionStatus(view *catalog.View, c *catalog.Connection) ConnectionStatus {
	s := ConnectionStatus{Name: c.Name, Type: c.Kind, Message: c.Error, Warnings: c.Warnings, Repos: int(c.Repos), SyncedAt: c.SyncedAt, State: "pending"}
	j := view.Job(catalog.JobSync, c.Name)
	switch {
	case j != nil && j.State == catalog.JobRunning:
		s.State = "syncing"
	case c.Error != "" && j != nil && j.State == catalog.JobFailed && unsupported(c.Kind):
		s.State = "unsupported"
	case c.Error != "":
		s.State = "failed"
	case c.Synced == c.Hash && c.Synced != "":
		s.State = "synced"
	}
	return s
}

// unsupported tells that connections of a kind are valid but not synced yet.
func unsupported(kind string) bool { return kind != "git" }

func (n *Node) storage() StorageStatus {
	s := StorageStatus{Shards: len(n.set.Names()), ShardBytes: n.set.Bytes(), MirrorBytes: n.mirrors.Bytes(), Quarantined: n.set.Quarantined()}
	s.DiskFree, s.DiskTotal = diskSpace(n.opt.Dir)
	return s
}

// warnings says what an operator should look at.
func (n *Node) warnings(view *catalog.View) []string {
	var out []string
	for _, w := range view.File().Warnings {
		out = append(out, "configuration: "+w.Error())
	}
	if n.tags.warning != "" {
		out = append(out, n.tags.warning)
	}
	if n.cluster.Leader() == "" {
		out = append(out, "there is no leader: searches go on, changes wait")
	}
	return out
}

// Ready reports whether this node can answer: it has a catalog, and is not
// leaving.
func (n *Node) Ready() ReadyResponse {
	var r ReadyResponse
	if err := n.cluster.Ready(); err != nil {
		r.Reasons = append(r.Reasons, err.Error())
	}
	if m := n.cluster.View().Member(n.cluster.Self()); m != nil && m.State == catalog.MemberDraining {
		r.Reasons = append(r.Reasons, "this node is being drained")
	}
	if n.stopping.Load() {
		r.Reasons = append(r.Reasons, "this node stops")
	}
	r.Ready = len(r.Reasons) == 0
	return r
}
