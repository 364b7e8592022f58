package operate

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// SyncRun is an attempt to list a connection that has ended.
type SyncRun struct {
	Fence uint64 // of the attempt; grows with each
	Began time.Time
	Ended time.Time
	Repos int    // the connection's repositories then; 0 if it failed
	Error string // why it failed; "": it did not
}

// ConnectionResponse is a connection with its last listings.
type ConnectionResponse struct {
	ConnectionStatus
	Syncs []Listing `json:"syncs"` // newest first; at most maxSyncs
}

// Listing is a SyncRun as the API shows it.
type Listing struct {
	BeganAt time.Time `json:"beganAt"`
	TookMs  int64     `json:"tookMs"`
	State   string    `json:"state"`          // synced or failed
	Repos   *int      `json:"repos,omitzero"` // nil if it failed, because then nothing has changed
	Error   string    `json:"error,omitzero"`
}

// toListings converts attempts for the API.
func toListings(all []SyncRun) (out []Listing) {
	for _, s := range all {
		x := Listing{s.Began, s.Ended.Sub(s.Began).Milliseconds(), "failed", nil, s.Error}
		if s.Error == "" {
			x.State, x.Repos = "synced", &s.Repos
		}
		out = append(out, x)
	}
	return out
}

// ConnectionRequest asks another node about a connection.
type ConnectionRequest struct{ Name string }

// syncsCall asks a node for the listings of a connection that it remembers.
var syncsCall = call.To[ConnectionRequest, []SyncRun]("syncs")

const (
	maxSyncs      = 10                     // listings remembered and shown per connection
	syncsInterval = 2 * time.Second        // between two looks at the catalog
	syncsTimeout  = 300 * time.Millisecond // for other nodes to answer
)

// syncLog remembers in memory how listings ended. The catalog has only the last attempt of each
// connection. Each node records the attempts of the whole cluster from the catalog, and a list asks
// all nodes. So lists survive the restart of a node. After a restart of all nodes at once, they
// begin with the last attempt.
type syncLog struct {
	mu      sync.Mutex             // guards the fields below
	running map[string]catalog.Job // running jobs at the last look, by connection
	ended   map[string][]SyncRun   // by connection, oldest first
}

func newSyncLog() *syncLog {
	return &syncLog{running: map[string]catalog.Job{}, ended: map[string][]SyncRun{}}
}

// recordEndedRuns records the attempts that ended since the last look. If several of one connection ended, it
// records the last.
func (l *syncLog) recordEndedRuns(view *catalog.View) {
	l.mu.Lock()
	defer l.mu.Unlock()

	known := map[string]bool{}
	for c := range view.Connections() {
		known[c.Name] = true
		j := view.Job(catalog.JobSync, c.Name)
		if j == nil {
			continue
		}

		l.recordEndedRunOf(c, j)
	}

	for name := range l.ended {
		if !known[name] {
			delete(l.ended, name)
			delete(l.running, name)
		}
	}
}

// recordEndedRunOf looks at the job of a connection. Callers hold the lock.
func (l *syncLog) recordEndedRunOf(c *catalog.Connection, j *catalog.Job) {
	was := l.running[c.Name]
	delete(l.running, c.Name)

	switch j.State {
	case catalog.JobRunning:
		// The previous run ended between two looks. The job has everything about it except its
		// beginning.
		if was.Fence != j.Fence && j.FinishedAt.After(was.GrantedAt) {
			l.addRun(c, &was, j)
		}
		l.running[c.Name] = *j

	case catalog.JobWaiting:
		// A run that was given back has no end.
		if j.FinishedAt.After(j.GrantedAt) {
			l.addRun(c, j, j)
		}
	default:
		l.addRun(c, j, j)
	}
}

// addRun records an attempt. The argument end is the job after the attempt. Callers hold the lock.
func (l *syncLog) addRun(c *catalog.Connection, attempt, end *catalog.Job) {
	// Fence 0 means no attempt. Record each attempt once.
	list := l.ended[c.Name]
	if attempt.Fence == 0 || len(list) > 0 && list[len(list)-1].Fence >= attempt.Fence {
		return
	}

	run := SyncRun{Fence: attempt.Fence, Began: attempt.GrantedAt, Ended: end.FinishedAt, Error: end.Error}
	if run.Error == "" {
		run.Repos = int(c.Repos)
	}
	if list = append(list, run); len(list) > maxSyncs {
		list = slices.Delete(list, 0, len(list)-maxSyncs)
	}
	l.ended[c.Name] = list
}

// runsOf returns the remembered attempts of a connection.
func (l *syncLog) runsOf(connection string) []SyncRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ended[connection])
}

// NoteSyncs looks at the catalog repeatedly until ctx ends.
func (s *Syncer) NoteSyncs(ctx context.Context) error {
	for clock.Wait(ctx, syncsInterval) {
		s.syncs.recordEndedRuns(s.cluster.View())
	}
	return nil
}

// Connection returns one connection with its last listings, as remembered by all nodes that answer
// in time.
func (s *Syncer) Connection(ctx context.Context, _ account.Owner, name string) (*ConnectionResponse, error) {
	view := s.cluster.View()
	c := view.Connection(name)
	if c == nil {
		return nil, unknownConnection(name)
	}

	// Look first, so that the listings match the view.
	s.syncs.recordEndedRuns(view)
	all := s.syncs.runsOf(name)

	ctx, cancel := context.WithTimeout(ctx, syncsTimeout)
	defer cancel()
	for _, told := range syncsCall.AskAll(ctx, s.cluster, s.otherMembers(view), &ConnectionRequest{Name: name}) {
		all = append(all, *told...)
	}
	return &ConnectionResponse{ConnectionStatus: s.StateOf(view, c), Syncs: toListings(joinedSyncs(all))}, nil
}

// otherMembers returns the other reachable members.
func (s *Syncer) otherMembers(view *catalog.View) (ids []string) {
	for m := range view.Members() {
		if m.State != catalog.MemberRemoved && m.ID != s.cluster.Self() && s.cluster.Alive(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// joinedSyncs returns the newest of several nodes' attempts, each once.
func joinedSyncs(all []SyncRun) []SyncRun {
	slices.SortFunc(all, func(a, b SyncRun) int { return cmp.Compare(b.Fence, a.Fence) })
	all = slices.CompactFunc(all, func(a, b SyncRun) bool { return a.Fence == b.Fence })
	return all[:min(maxSyncs, len(all))]
}

// serveSyncs returns the attempts that this node remembers.
func (s *Syncer) serveSyncs(_ context.Context, req *ConnectionRequest) (*[]SyncRun, error) {
	runs := s.syncs.runsOf(req.Name)
	return &runs, nil
}
