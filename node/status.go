package node

import (
	"context"
	"time"
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
	Warnings     []string
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
	MirrorBytes int64
	Quarantined int
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

// Status describes the cluster.
func (n *Node) Status(ctx context.Context, v Viewer, req StatusRequest) (*StatusResponse, error) {
	return nil, errUnfinished
}

// Ready reports whether this node can answer.
func (n *Node) Ready() ReadyResponse { return ReadyResponse{Reasons: []string{"starting"}} }

// Drain begins or watches the drain of a node: calling it again tells the progress.
func (n *Node) Drain(ctx context.Context, v Viewer, req DrainRequest) (*DrainResponse, error) {
	return nil, errUnfinished
}

// Remove forgets a node for good.
func (n *Node) Remove(ctx context.Context, v Viewer, req RemoveRequest) (*RemoveResponse, error) {
	return nil, errUnfinished
}
