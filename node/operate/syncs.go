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
	Fence uint64 // of the attempt: grows with each
	Began time.Time
	Ended time.Time
	Repos int    // that the connection had then, of a good one
	Error string // why it failed; "" of a good one
}

// ConnectionResponse is a connection with its last listings.
type ConnectionResponse struct {
	ConnectionStatus
	Syncs []Listing `json:"syncs"` // newest first; at most maxSyncs
}

// Listing is a SyncRun for people and programs.
type Listing struct {
	BeganAt time.Time `json:"beganAt"`
	TookMs  int64     `json:"tookMs"`
	State   string    `json:"state"`          // synced, failed
	Repos   *int      `json:"repos,omitzero"` // nil of one that failed: it has not changed what there is
	Error   string    `json:"error,omitzero"`
}

// listings are attempts as they are told.
func listings(all []SyncRun) (out []Listing) {
	for _, s := range all {
		x := Listing{s.Began, s.Ended.Sub(s.Began).Milliseconds(), "failed", nil, s.Error}
		if s.Error == "" {
			x.State, x.Repos = "synced", &s.Repos
		}
		out = append(out, x)
	}
	return out
}

// ConnectionRequest names a connection to another node.
type ConnectionRequest struct{ Name string }

// syncsCall asks a node for the listings of a connection that it remembers.
var syncsCall = call.To[ConnectionRequest, []SyncRun]("syncs")

const (
	maxSyncs  = 10                     // of a connection, that are remembered and told
	syncsLook = 2 * time.Second        // between two looks at the catalog
	syncsTime = 300 * time.Millisecond // that other nodes have to tell theirs
)

// syncLog remembers how listings ended, in memory. The catalog has the last
// attempt of each connection only. Each node notes what it sees there of the whole
// cluster, and whoever is asked asks all of them, so the list outlasts the restart of
// a node; after one of all nodes at once it begins with the last attempt.
type syncLog struct {
	mu      sync.Mutex             // guards the fields below
	running map[string]catalog.Job // at the last look, by connection
	ended   map[string][]SyncRun   // by connection, oldest first
}

func newSyncLog() *syncLog {
	return &syncLog{running: map[string]catalog.Job{}, ended: map[string][]SyncRun{}}
}

// look notes what has ended since the last look; of several attempts of one connection
// the last.
func (l *syncLog) look(view *catalog.View) {
	l.mu.Lock()
	defer l.mu.Unlock()

	known := map[string]bool{}
	for c := range view.Connections() {
		known[c.Name] = true
		j := view.Job(catalog.JobSync, c.Name)
		if j == nil {
			continue
		}

		l.lookAt(c, j)
	}

	// What is told of a connection goes with it.
	for name := range l.ended {
		if !known[name] {
			delete(l.ended, name)
			delete(l.running, name)
		}
	}
}

// lookAt looks at the job of a connection. Callers hold the lock.
func (l *syncLog) lookAt(c *catalog.Connection, j *catalog.Job) {
	was := l.running[c.Name]
	delete(l.running, c.Name)

	switch j.State {
	case catalog.JobRunning:
		// The previous run may have ended unseen: of it the job has kept all
		// but when it began.
		if was.Fence != j.Fence && j.FinishedAt.After(was.GrantedAt) {
			l.note(c, &was, j)
		}
		l.running[c.Name] = *j

	case catalog.JobWaiting:
		// One that was given back undone has no end.
		if j.FinishedAt.After(j.GrantedAt) {
			l.note(c, j, j)
		}
	default:
		l.note(c, j, j)
	}
}

// note keeps an attempt; end is the job as it was after it. Callers hold the lock.
func (l *syncLog) note(c *catalog.Connection, attempt, end *catalog.Job) {
	// Before the first there is none, and each is noted once.
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

// of is what is remembered of a connection.
func (l *syncLog) of(connection string) []SyncRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ended[connection])
}

// NoteSyncs looks at the catalog again and again, until ctx ends.
func (s *Syncer) NoteSyncs(ctx context.Context) error {
	for clock.Wait(ctx, syncsLook) {
		s.syncs.look(s.cluster.View())
	}
	return nil
}

// Connection is one connection with its last listings, as all nodes that answer
// at once remember them.
func (s *Syncer) Connection(ctx context.Context, _ account.Owner, name string) (*ConnectionResponse, error) {
	view := s.cluster.View()
	c := view.Connection(name)
	if c == nil {
		return nil, noConnection(name)
	}

	// The view that is told is the one whose listings are: what has just ended is among them.
	s.syncs.look(view)
	all := s.syncs.of(name)

	ctx, cancel := context.WithTimeout(ctx, syncsTime)
	defer cancel()
	for _, told := range syncsCall.AskAll(ctx, s.cluster, s.others(view), &ConnectionRequest{Name: name}) {
		all = append(all, *told...)
	}
	return &ConnectionResponse{ConnectionStatus: s.StateOf(view, c), Syncs: listings(joinedSyncs(all))}, nil
}

// others lists the other nodes that can be reached.
func (s *Syncer) others(view *catalog.View) (ids []string) {
	for m := range view.Members() {
		if m.State != catalog.MemberRemoved && m.ID != s.cluster.Self() && s.cluster.Alive(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// joinedSyncs is the newest of what nodes remember, each attempt once.
func joinedSyncs(all []SyncRun) []SyncRun {
	slices.SortFunc(all, func(a, b SyncRun) int { return cmp.Compare(b.Fence, a.Fence) })
	all = slices.CompactFunc(all, func(a, b SyncRun) bool { return a.Fence == b.Fence })
	return all[:min(maxSyncs, len(all))]
}

// serveSyncs tells another node of the listings that this one remembers.
func (s *Syncer) serveSyncs(_ context.Context, req *ConnectionRequest) (*[]SyncRun, error) {
	runs := s.syncs.of(req.Name)
	return &runs, nil
}
