package node

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/node/history"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/node/operate"
)

// StatusResponse is the state of the cluster as this node sees it.
type StatusResponse struct {
	Version      string                     `json:"version"`
	Node         string                     `json:"node"`   // id of the node that answers
	Leader       string                     `json:"leader"` // id; "" when there is none
	CatalogIndex uint64                     `json:"catalogIndex"`
	CatalogAge   time.Duration              `json:"catalogAgeMs,format:milli"` // whole milliseconds
	Level        LevelStatus                `json:"level"`
	Members      []MemberStatus             `json:"members"`
	Repos        RepoCounts                 `json:"repos"`
	Jobs         JobCounts                  `json:"jobs"`
	Connections  []operate.ConnectionStatus `json:"connections"`
	Running      []operate.JobStatus        `json:"running"` // whole cluster; progress of this node's jobs
	Failed       []operate.JobStatus        `json:"failed"`  // last failures, at most 100
	Config       configure.FileStatus       `json:"config"`
	Storage      StorageStatus              `json:"storage"`
	Placement    PlacementStatus            `json:"placement"`
	Tolerates    Tolerance                  `json:"tolerates"`
	Verdict      Verdict                    `json:"verdict"`
	Permissions  *job.PermissionState       `json:"permissions,omitzero"` // for owners
	Watches      WatchStatus                `json:"watches,omitzero"`     // for owners who may see every repository
	Warnings     []string                   `json:"warnings"`

	// CertificateEnds is when this node's API certificate expires, for owners; zero with plain
	// HTTP.
	CertificateEnds time.Time `json:"certificateEnds,omitzero"`
}

// Tolerance counts how many nodes, whichever they are, may fail now.
type Tolerance struct {
	// Searches counts the nodes without which every search would still be complete; -1 if
	// something has no live copy now.
	Searches Spare `json:"searches,omitzero"`
	Writes   int   `json:"writes"` // nodes without which changes still work; -1: changes do not work now
}

// Spare is a number of nodes, or Untold.
type Spare int

// Untold replaces the number for a viewer who may not see every repository.
const Untold Spare = math.MinInt

// IsZero reports whether the number is Untold, which JSON omits. 0 nodes is an alarm and stays.
func (s Spare) IsZero() bool { return s == Untold }

// LevelStatus is the level of the catalog: the set of rules by which all nodes apply changes.
type LevelStatus struct {
	Number   int      `json:"number"`
	Version  string   `json:"version"`  // the first release that can apply it
	Next     int      `json:"next"`     // a higher level that some members can apply; 0 means none
	WaitsFor []string `json:"waitsFor"` // ids of the members that cannot apply Next yet
}

func levelOf(view *catalog.View) LevelStatus {
	level := view.Level()
	next, waitsFor := view.NextLevel()
	return LevelStatus{int(level.Number), level.Version, int(next), waitsFor}
}

// PlacementStatus summarizes where the data lies.
type PlacementStatus struct {
	Groups          int      `json:"groups"`          // placement units with targets
	UnderReplicated int      `json:"underReplicated"` // repositories with fewer live copies than wanted
	Short           []string `json:"short"`           // names of at most 20 of them, for owners
	NoLiveCopy      int      `json:"noLiveCopy"`      // of UnderReplicated, those with something that has no live copy; they are rebuilt from their remotes
	Missing         []string `json:"missing"`         // names of at most 20 of NoLiveCopy, for owners
	Moves           int      `json:"moves"`           // copies into this node under way
}

// MemberStatus is one node of the cluster.
type MemberStatus struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`    // for people; "" when unknown
	Address  string  `json:"address"` // for calls
	API      string  `json:"api"`     // base of its API, "" when unknown
	Zone     string  `json:"zone"`
	Role     string  `json:"role"`   // leader, voter, nonvoter
	Health   string  `json:"health"` // alive, suspect, dead, left
	Draining bool    `json:"draining"`
	Left     int     `json:"left"`    // while draining: visible repositories with too few copies on other nodes
	Drained  bool    `json:"drained"` // draining, and the other nodes have enough copies of all its data
	Weight   float64 `json:"weight"`
	Version  string  `json:"version"`
	Level    int     `json:"level"`  // highest level that its program can apply; 0 = not reported
	Groups   int     `json:"groups"` // placement groups assigned to it
	Bytes    int64   `json:"bytes"`
	Applied  uint64  `json:"applied"`
	Lag      uint64  `json:"lag"` // entries behind the answering node

	// For owners, from a node that answers in time.
	ConfigHash    string `json:"configHash"`    // hash of its own configuration file; "" means no file
	ConfigDiffers bool   `json:"configDiffers"` // its file is not in force, or refused

	// For owners, as the node last reported.
	DiskUsed  int       `json:"diskUsed"` // percent of the volume of its data directory
	Searches  int       `json:"searches"` // under way
	StartedAt time.Time `json:"startedAt,omitzero"`
}

// RepoCounts counts the repositories that the viewer may see.
type RepoCounts struct {
	Total       int `json:"total"`
	Indexed     int `json:"indexed"`
	Failed      int `json:"failed"`
	Unfetchable int `json:"unfetchable"` // not indexed, and their host refuses to serve them now
}

// JobCounts counts jobs.
type JobCounts struct {
	Pending  int `json:"pending"` // waiting, or between two attempts
	Running  int `json:"running"`
	Failed   int `json:"failed"`   // gave up; `shoal repo reindex` or a sync starts them again
	Retrying int `json:"retrying"` // pending jobs whose last attempt failed
}

// StorageStatus counts what this node has on disk.
type StorageStatus struct {
	Shards      int   `json:"shards"`
	ShardBytes  int64 `json:"shardBytes"`
	MirrorBytes int64 `json:"mirrorBytes"` // last measured about a second after a fetch
	Quarantined int   `json:"quarantined"` // damaged index files, put aside for inspection
	DiskFree    int64 `json:"diskFree"`
	DiskTotal   int64 `json:"diskTotal"`

	UnknownSymbols int `json:"unknownSymbols"` // index files here with unknown symbols, because ctags failed

	Rebuild RebuildStatus  `json:"rebuild"`
	History history.Status `json:"history"` // of the commits of the mirrors here
}

// WatchStatus counts watches.
type WatchStatus struct {
	Watches int `json:"watches"`
	Failing int `json:"failing"` // whose receiver does not take what is sent
	Backlog int `json:"backlog"` // repositories with something new that no watch has been checked against
}

// RebuildStatus is the progress of rebuilding index files of an earlier version.
type RebuildStatus struct {
	Done   int           `json:"done"`
	Of     int           `json:"of"`                  // 0 means no file is of an earlier version
	Unread int           `json:"unread"`              // files left that this version cannot read, so searches lack them
	Took   time.Duration `json:"tookMs,format:milli"` // so far, in whole milliseconds
}

// ReadyResponse says whether a load balancer should send requests to this node.
type ReadyResponse struct {
	Ready   bool
	Reasons []string // why not
}

// maxListed bounds the jobs in a status.
const maxListed = 100

// maxShort bounds the repository names with too few copies in a status.
const maxShort = 20

// Status returns the state of the cluster, as far as the viewer may see it.
func (n *Node) Status(ctx context.Context, v catalog.Viewer) (*StatusResponse, error) {
	seen, err := n.gate.Repos(v)
	if err != nil {
		return nil, err
	}

	// Count copies on live nodes only: a copy on a silent node does not help now.
	view, visible := seen.View, seen.Set
	tally := n.census.At(view, hold.LiveOf(n.cluster.Members()))

	out := &StatusResponse{
		Version:      n.opt.Version,
		Node:         n.cluster.Self(),
		Leader:       n.cluster.Leader(),
		CatalogIndex: view.Index(),
		CatalogAge:   n.cluster.Age().Truncate(time.Millisecond),
		Level:        levelOf(view),
		Repos:        repoCounts(tally, visible),
		Jobs:         jobCounts(view, tally, v.Role == catalog.RoleOwner),
		Storage:      n.storage(),
		Members:      n.memberStatus(view, tally),
	}

	short := tally.Shortage(n.opt.Replicas)
	out.Tolerates = tolerance(out.Members, short, out.Leader)
	out.Placement = n.placementStatus(view, tally, short)
	out.Running, out.Failed = n.jobStatus(ctx, view, visible)

	// Only owners see names of connections, paths of files, and the errors of jobs, which contain
	// them.
	if v.Role != catalog.RoleOwner {
		out.Running, out.Failed = withoutErrors(out.Running), withoutErrors(out.Failed)
		for i := range out.Members {
			m := &out.Members[i]
			m.Name, m.Address, m.API, m.Zone = "", "", "", ""
			m.DiskUsed, m.Searches, m.StartedAt = 0, 0, time.Time{}
		}
		out.Storage, out.Placement.Short, out.Placement.Missing = StorageStatus{}, nil, nil
		if seen.Blind() {
			out.hideTotals()
		}
		out.Verdict = verdictOf(out, n.opt.Replicas, n.cluster.Faults()...)
		return out, nil
	}

	out.Verdict = verdictOf(out, n.opt.Replicas, n.cluster.Faults()...).With(n.urgentProblems()...).upgrading(differentVersionsText(n.cluster.Members()))
	out.Config = n.config.State()
	for c := range view.Connections() {
		out.Connections = append(out.Connections, n.Operate.Syncer.StateOf(view, c))
	}

	out.Permissions, out.Watches = n.permissions.Of(view), n.watchStatus(seen)
	out.Warnings = slices.Concat(n.warnings(view, tally), permissionWarnings(out.Permissions))
	out.Storage.UnknownSymbols = sumOf(n.jobs.Symbols.Unknown())
	out.addFiles(n.Config.NodeFiles(ctx))
	return out, nil
}

// watchStatus counts watches. Whoever may not see every repository gets no numbers: a watch of
// somebody else fails or waits because of repositories that the viewer may not see.
func (n *Node) watchStatus(visible *account.Repos) (s WatchStatus) {
	if visible.Blind() {
		return s
	}
	s.Watches, s.Failing = n.Watches.Total()
	for range visible.View.Backlogs() {
		s.Backlog++
	}
	return s
}

// placementStatus summarizes where the data lies. Callers remove the names for viewers who are no
// owners.
func (n *Node) placementStatus(view *catalog.View, t *hold.Tally, short hold.Shortage) PlacementStatus {
	return PlacementStatus{
		Groups:          len(visibleUnits(view, t)),
		UnderReplicated: int(short.Few.GetCardinality()),
		Short:           hold.FirstNames(view, short.Few, maxShort),
		NoLiveCopy:      int(short.None.GetCardinality()),
		Missing:         hold.FirstNames(view, short.None, maxShort),
		Moves:           n.data.copier.Moves(view),
	}
}

// visibleUnits returns the units with targets that contain visible repositories.
func visibleUnits(view *catalog.View, t *hold.Tally) map[uint64]*catalog.Group {
	units := map[uint64]*catalog.Group{}
	for unit := range t.Units {
		if g := view.Group(unit); g != nil {
			units[unit] = g
		}
	}
	return units
}

// Enforces reports whether some connection enforces permissions, so that viewers may see
// different repositories.
func (n *Node) Enforces() bool { return n.cluster.View().Enforces() }

// hideTotals removes sums over repositories that the viewer may not see.
func (s *StatusResponse) hideTotals() {
	s.Jobs, s.Storage, s.Placement = JobCounts{}, StorageStatus{}, PlacementStatus{}
	s.Tolerates.Searches = Untold
	for i := range s.Members {
		m := &s.Members[i]
		m.Groups, m.Bytes, m.Left, m.Drained = 0, 0, 0, false
	}

	// Index jobs are already limited to repositories that the viewer may see. Jobs of other kinds may be
	// about hidden ones.
	isOtherKind := func(j operate.JobStatus) bool { return j.Kind != catalog.JobIndex.String() }
	s.Running, s.Failed = slices.DeleteFunc(s.Running, isOtherKind), slices.DeleteFunc(s.Failed, isOtherKind)
}

// tolerance counts how many nodes may fail. Searches need a live copy of everything; changes need
// more than half of the voters.
func tolerance(members []MemberStatus, short hold.Shortage, leader string) Tolerance {
	voters, answering := 0, 0
	for _, m := range members {
		if m.Role == "nonvoter" {
			continue
		}
		voters++
		if m.Health == "alive" {
			answering++
		}
	}

	// Searches work while one copy of everything is left. Changes need a majority of voters.
	t := Tolerance{Searches: Spare(short.Fewest - 1), Writes: answering - (voters/2 + 1)}

	// Without a leader no change is possible, however many voters answer.
	if leader == "" {
		t.Writes = -1
	}
	t.Writes = max(t.Writes, -1)
	return t
}

func (n *Node) memberStatus(view *catalog.View, t *hold.Tally) []MemberStatus {
	// Count for all members in one pass, since it goes through the catalog.
	groups := map[uint32]int{}
	for _, g := range visibleUnits(view, t) {
		for _, number := range g.Nodes {
			groups[number]++
		}
	}

	var list []MemberStatus

	for _, m := range n.cluster.Members() {
		s := MemberStatus{
			ID:      m.ID,
			Name:    m.Name,
			Address: m.Addr,
			API:     m.API,
			Zone:    m.Zone,
			Role:    roleOf(&m),
			Health:  healthOf(&m),

			Draining:  m.State == catalog.MemberDraining,
			Weight:    float64(m.Weight) / 100,
			Version:   m.Version,
			Level:     int(m.Highest),
			Groups:    groups[m.Number],
			Bytes:     t.Bytes[m.Number],
			Applied:   m.Load.Applied,
			DiskUsed:  int(m.Load.DiskUsed),
			Searches:  int(m.Load.Searches),
			StartedAt: m.Load.StartedAt,
		}

		if s.Draining {
			s.Left, s.Drained = n.Operate.Left(view, m.ID)
		}

		// A node knows its own index better than its last report.
		if m.Self {
			s.Applied = view.Index()
		}

		// The index is unsigned: a member ahead of this node has no lag.
		if s.Applied < view.Index() {
			s.Lag = view.Index() - s.Applied
		}

		list = append(list, s)
	}
	return list
}

// repoCounts counts the repositories in visible; nil means all. Indexed ones can be searched now.
func repoCounts(t *hold.Tally, visible *roaring.Bitmap) RepoCounts {
	count := func(set *roaring.Bitmap) int {
		if visible == nil {
			return int(set.GetCardinality())
		}
		return int(set.AndCardinality(visible))
	}
	return RepoCounts{Total: count(t.Shown), Indexed: count(t.Searchable), Failed: count(t.Failed), Unfetchable: count(t.Unfetchable)}
}

// jobCounts counts the jobs of visible repositories. A sync job of a hidden connection counts for
// owners only.
func jobCounts(view *catalog.View, t *hold.Tally, owner bool) JobCounts {
	counts := maps.Clone(t.Jobs)
	for c := range view.Connections() {
		if j := view.Job(catalog.JobSync, c.Name); j != nil && !owner && !c.HiddenAt.IsZero() {
			counts[j.State]--
		}
	}

	// A job between two attempts counts as waiting too.
	retrying := counts[catalog.JobBackoff]
	return JobCounts{Pending: counts[catalog.JobWaiting] + retrying, Running: counts[catalog.JobRunning], Failed: counts[catalog.JobFailed], Retrying: retrying}
}

// jobStatus lists the running jobs, and the failed ones, newest first. Running jobs show their
// progress if their node answers in time.
func (n *Node) jobStatus(ctx context.Context, view *catalog.View, visible *roaring.Bitmap) (running, failed []operate.JobStatus) {
	progress := n.Operate.Progress(ctx, view)
	for j := range view.JobsOf(catalog.JobRunning, catalog.JobBackoff, catalog.JobFailed) {
		s := operate.JobStatusOf(j)
		if j.Kind.OfRepo() {
			repo := view.Repo(catalog.SubjectRepo(j.Subject))

			// An orphaned repository is in no visible set. Without permissions everybody may
			// still see the job that removes it.
			if repo == nil || !visible.Contains(repo.ID) && (!repo.Orphaned() || view.Enforces()) {
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
			s.SetProgress(p)
		}
		running = append(running, s)
	}

	slices.SortStableFunc(running, func(a, b operate.JobStatus) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Subject, b.Subject))
	})
	slices.SortStableFunc(failed, func(a, b operate.JobStatus) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Subject, b.Subject))
	})
	return running[:min(len(running), maxListed)], failed[:min(len(failed), maxListed)]
}

// withoutErrors returns what every viewer may see of jobs: which repositories they index, without
// error texts.
func withoutErrors(jobs []operate.JobStatus) []operate.JobStatus {
	var out []operate.JobStatus
	for _, j := range jobs {
		if j.Kind == catalog.JobIndex.String() {
			j.Error = ""
			out = append(out, j)
		}
	}
	return out
}

func (n *Node) storage() StorageStatus {
	s := StorageStatus{History: n.history.Status(), Shards: len(n.set.Names()), ShardBytes: n.set.Bytes(), MirrorBytes: n.mirrors.Bytes(), Quarantined: n.set.Quarantined()}
	s.DiskFree, s.DiskTotal = n.opt.Space(n.opt.Dir)
	if old := n.set.Older(); old.Left > 0 {
		s.Rebuild = RebuildStatus{old.Of - old.Left, old.Of, old.Unread, n.opt.Now().Sub(old.Began).Truncate(time.Millisecond)}
	}
	return s
}

// Ready reports whether this node can answer: it has a current catalog and is not leaving.
func (n *Node) Ready() ReadyResponse {
	var r ReadyResponse
	if err := n.cluster.Ready(); err != nil {
		r.Reasons = append(r.Reasons, err.Error())
	}

	// With an outdated catalog the node could admit a revoked account. If the cluster was given
	// up, cluster.Ready has said so.
	if err := n.Keys.Current(); err != nil && n.cluster.Outlived() == nil {
		r.Reasons = append(r.Reasons, err.Error())
	}

	// A draining node still answers, but a load balancer should use other nodes.
	if m := n.cluster.View().Member(n.cluster.Self()); m != nil && m.State == catalog.MemberDraining {
		r.Reasons = append(r.Reasons, "this node is being drained")
	}
	if n.stopping.Load() {
		r.Reasons = append(r.Reasons, "this node stops")
	}
	// A node in this state has just started, or cannot reach other nodes.
	if r.Reasons == nil && n.hearsNobody() {
		r.Reasons = append(r.Reasons, "this node hears none of the others, and lacks repositories that only they have")
	}
	// The age of the catalog alone would blame the network.
	for _, fault := range n.cluster.Faults() {
		if len(r.Reasons) > 0 && !slices.Contains(r.Reasons, fault) {
			r.Reasons = append(r.Reasons, fault)
		}
	}
	r.Ready = len(r.Reasons) == 0
	return r
}

// hearsNobody reports whether no other member answers and searches lack something because of it.
// It calls other members only if there is no leader, and waits call.StallTime at most.
func (n *Node) hearsNobody() bool {
	if n.cluster.Leader() != "" {
		return false
	}

	var others []string
	live := hold.Live{}
	for _, m := range n.cluster.Members() {
		if m.Self {
			live[m.Number] = true
		} else {
			others = append(others, m.ID)
		}
	}
	if len(others) == 0 || len(n.peers.Answering(context.Background(), others)) > 0 {
		return false
	}
	return !new(hold.Census).At(n.cluster.View(), live).Shortage(n.opt.Replicas).None.IsEmpty()
}

// addFiles adds each node's configuration file to its member, and a warning if the file is
// refused or not in force.
func (out *StatusResponse) addFiles(files map[string]*configure.FileStatus) {
	for i := range out.Members {
		m := &out.Members[i]
		f := files[m.ID]

		// The node has no file, or did not answer in time.
		if f == nil {
			continue
		}

		m.ConfigHash, m.ConfigDiffers = f.FileHash, f.Differs
		switch {
		case len(f.Errors) > 0:
			out.warn("node %s refuses its configuration file %s: %s", cluster.Called(m.Name, m.ID), f.Path, strings.Join(f.Errors, " "))
		case f.Differs:
			out.warn("node %s has a configuration file that is not in force: %s, hash %.12s; in force is %.12s. Change the file, or run shoal config apply",
				cluster.Called(m.Name, m.ID), f.Path, f.FileHash, f.Hash)
		}
	}
}
