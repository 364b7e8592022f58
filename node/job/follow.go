package job

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/place"
)

// Follower asks the hosts of connections about twice a minute which repositories were pushed to,
// and notifies the pollers of all nodes. For each credential one node asks. During a partition two
// may ask, which only costs calls. Nothing of this enters the cluster's log.
type Follower struct {
	cluster Cluster
	hosts   host.Tools
	tell    Tell
	// lastLook returns when any node last began to ask the host of a connection with this
	// definition; zero: never.
	lastLook func(connection, hash string) time.Time
	log      *slog.Logger
	now      func() time.Time

	mu    sync.Mutex // guards the fields below
	known map[string]*followed
	hooks map[string]bool // connections whose webhook was called since the last round
	hints map[string]bool // connections that should be listed soon, see Hint
}

// Tell sends a signal to a node, possibly this one.
type Tell func(ctx context.Context, node string, s *Signal) error

// Signal is what one node tells the others about a connection.
type Signal struct {
	Connection string
	Hook       bool // a webhook was called; all other fields are empty

	Name    string        // name of the host's API that was asked
	Targets []string      // selections of the connection that the answer covers
	Sure    bool          // a repository without a new mark was certainly not pushed to
	Lag     time.Duration // for how long after a mark further pushes may go unnoticed
	Every   time.Duration // pause between two looks
	Problem string        // why the last look failed; "": it did not
	Hash    string        // hash of the definition of the connection
	Since   time.Time     // start of the last successful look; zero: none
	Marks   []host.Mark   // marks of the last minutes
}

// followed is the state of a connection that this node asks for.
type followed struct {
	hash    string // hash of its definition
	host    host.Host
	next    time.Time // start of the next look
	running bool
	since   time.Time // start of the last successful look
	recent  map[string]recentMark
	others  map[string]time.Time // by external id: when a repository was looked up that the catalog lacks
}

// recentMark is a mark that is repeated in each signal for a while, so that a node that missed one
// signal loses nothing.
type recentMark struct {
	mark host.Mark
	seen time.Time
}

const (
	remember    = 10 * time.Minute // how long marks are repeated
	overlap     = 5 * time.Minute  // a look begins this long before the last one, since the host's clock and index are inexact
	firstLook   = 24 * time.Hour   // how far back the first look reaches
	lookTime    = 10 * time.Minute // time limit of a look
	tellTime    = 5 * time.Second  // time limit of sending a signal
	othersAgain = time.Hour        // pause between look-ups of a repository that the connection leaves out
	listPause   = 10 * time.Minute // pause between listings for new repositories
	maxLookups  = 50               // repositories to look up after one look; the next look continues
)

func newFollower(c Cluster, hosts host.Tools, tell Tell, lastLook func(connection, hash string) time.Time, log *slog.Logger, now func() time.Time) *Follower {
	return &Follower{
		cluster:  c,
		hosts:    hosts,
		tell:     tell,
		lastLook: lastLook,
		log:      log,
		now:      now,
		known:    map[string]*followed{},
		hooks:    map[string]bool{},
		hints:    map[string]bool{},
	}
}

// Run asks code hosts for recent pushes until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()

	for {
		for _, conn := range f.dueConnections() {
			wg.Go(func() { f.lookForPushes(ctx, conn) })
		}

		// A webhook call needs no look: only notify the other nodes.
		for _, name := range f.takeCalled() {
			f.sendToAll(ctx, &Signal{Connection: name, Hook: true})
		}

		f.listHinted(ctx)

		if !clock.Wait(ctx, time.Second) {
			return nil
		}
	}
}

// Called records that a webhook of a connection was called. It is safe for concurrent use.
func (f *Follower) Called(connection string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hooks[connection] = true
}

// Hint asks for a listing of a connection, because a repository may be new or gone. The listing
// starts at once, or some time after the last one: every push to a repository that the connection
// leaves out also gives a hint. It is safe for concurrent use.
func (f *Follower) Hint(connection string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hints[connection] = true
}

// listHinted enqueues the hinted listings that are due.
func (f *Follower) listHinted(ctx context.Context) {
	view, now := f.cluster.View(), f.now()
	f.mu.Lock()
	var due []string
	for name := range f.hints {
		c, j := view.Connection(name), view.Job(catalog.JobSync, name)
		switch {
		// A waiting job begins later than the hint, so it covers it.
		case c == nil || j != nil && j.State == catalog.JobWaiting:
			delete(f.hints, name)
		case now.Before(hintedSync(view.File().Connection(name), c, j)) || j != nil && j.State == catalog.JobRunning:
		default:
			delete(f.hints, name)
			due = append(due, name)
		}
	}
	f.mu.Unlock()

	for _, name := range due {
		if _, err := f.cluster.Propose(ctx, &catalog.EnqueueJob{Kind: catalog.JobSync, Subject: name, Urgent: true}); err != nil {
			f.Hint(name)
		}
	}
}

// takeCalled returns the connections whose webhook was called since the last takeCalled.
func (f *Follower) takeCalled() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.hooks {
		names = append(names, name)
	}
	clear(f.hooks)
	return names
}

// dueConnections returns the connections whose host this node must ask now, marked as running. It
// forgets connections that are gone, or whose host another node asks now.
func (f *Follower) dueConnections() (due []config.Connection) {
	view, members, now := f.cluster.View(), f.cluster.Members(), f.now()
	f.mu.Lock()
	defer f.mu.Unlock()

	mine := map[string]bool{}
	for _, conn := range view.File().Connections {
		record := view.Connection(conn.Shared().Name)
		if _, tells := host.SignalOf(conn); !tells || record == nil || record.Synced == "" || askerOf(members, conn) != f.cluster.Self() {
			continue
		}

		// Start afresh if the definition of the connection has changed.
		mine[record.Name] = true
		k := f.known[record.Name]
		if k == nil || k.hash != record.Hash && !k.running {
			k = &followed{hash: record.Hash, since: f.lastLook(record.Name, record.Hash), recent: map[string]recentMark{}, others: map[string]time.Time{}}
			f.known[record.Name] = k
		}

		if !k.running && !now.Before(k.next) {
			k.running = true
			due = append(due, conn)
		}
	}

	// Forget connections that are gone, or that another node asks for now.
	for name, k := range f.known {
		if !mine[name] && !k.running {
			delete(f.known, name)
		}
	}
	return due
}

// askerOf returns the live member that asks the host of a connection. It is the same for all
// connections with one credential, because the host counts their calls together.
func askerOf(members []cluster.Member, conn config.Connection) (node string) {
	key := askerKey(conn)
	for _, m := range members {
		if m.Alive && m.State == catalog.MemberAlive && (node == "" || prefersAsker(key, m.ID, node)) {
			node = m.ID
		}
	}
	return node
}

// askerKey returns the key that decides which node asks the host of a connection.
func askerKey(conn config.Connection) uint64 { return place.Key(host.CredentialKey(conn)) }

// prefersAsker reports whether node should ask the host rather than other.
func prefersAsker(key uint64, node, other string) bool {
	return place.Score(key, place.Member{ID: node}) > place.Score(key, place.Member{ID: other})
}

// lookForPushes asks the host of a connection about pushes, and notifies all nodes.
func (f *Follower) lookForPushes(ctx context.Context, conn config.Connection) {
	name := conn.Shared().Name
	f.mu.Lock()
	k := f.known[name]
	f.mu.Unlock()

	// Only this goroutine uses k while it is marked as running.
	signal := f.askHost(ctx, conn, k)
	if ctx.Err() == nil {
		f.sendToAll(ctx, signal)
		f.enqueueIfNew(ctx, conn, k)
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	k.next, k.running = f.now().Add(signal.Every), false
}

// askHost asks the host once, and returns the signal.
func (f *Follower) askHost(ctx context.Context, conn config.Connection, k *followed) *Signal {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	row, _ := host.SignalOf(conn)
	signal := &Signal{
		Connection: conn.Shared().Name,
		Name:       row.Name,
		Sure:       row.Sure,
		Lag:        row.Lag,
		Every:      row.Every(0, host.Allowance{}),
	}
	began := f.now()

	targets, calls, err := k.addMarks(ctx, conn, f.hosts, began, row.Lag)
	// After a failure k.since stays, so the next look covers the same time, too.
	if err != nil {
		signal.Problem = clipError(err.Error())
		signal.Every = max(signal.Every, waitAfterFailure(err, began))
	} else {
		signal.Targets = targets
		k.since = began
		signal.Every = row.Every(calls, allowanceOf(k.host))
	}

	signal.Hash, signal.Since = k.hash, k.since

	// Repeat marks for a while, for nodes that missed a signal.
	for id, m := range k.recent {
		signal.Marks = append(signal.Marks, m.mark)
		if began.Sub(m.seen) > remember {
			delete(k.recent, id)
		}
	}
	return signal
}

// addMarks asks the host and adds the new marks to k.recent. It returns the selections that the
// answer covers, and the number of calls.
func (k *followed) addMarks(ctx context.Context, conn config.Connection, tools host.Tools, now time.Time, lag time.Duration) (targets []string, calls int, err error) {
	if k.host == nil {
		if k.host, err = host.Open(conn, tools); err != nil {
			return nil, 0, err
		}
	}

	changer, ok := k.host.(host.Changer)
	if !ok {
		return nil, 0, errors.New("the host does not tell of pushes")
	}

	// Let looks overlap, because the host may register a push late. Another node may have made the
	// last look: this node got its marks, too.
	since := now.Add(-firstLook)
	if k.since.After(since) {
		since = k.since.Add(-overlap - lag)
	}

	before := allowanceOf(k.host).Calls
	targets, err = changer.Changed(ctx, since, func(m host.Mark) {
		if old, known := k.recent[m.ExternalID]; !known || markText(old.mark) != markText(m) {
			k.recent[m.ExternalID] = recentMark{m, now}
		}
	})
	return targets, int(allowanceOf(k.host).Calls - before), err
}

// waitAfterFailure returns how long to leave a host alone after a failure.
func waitAfterFailure(err error, now time.Time) time.Duration {
	var limited interface{ NotBefore() time.Time }
	if errors.As(err, &limited) && limited.NotBefore().After(now) {
		return limited.NotBefore().Sub(now)
	}
	return 2 * time.Minute
}

// sendToAll sends a signal to all live nodes. A node that misses it gets the same marks with the next
// one.
func (f *Follower) sendToAll(ctx context.Context, s *Signal) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()

	// Send concurrently: a slow node must not delay the others.
	var wg sync.WaitGroup
	for _, m := range f.cluster.Members() {
		if !m.Alive {
			continue
		}
		wg.Go(func() {
			if err := f.tell(ctx, m.ID, s); err != nil && ctx.Err() == nil {
				f.log.Debug("a node was not told of pushes", "node", m.ID, "connection", s.Connection, "err", err)
			}
		})
	}

	wg.Wait()
}

// enqueueIfNew enqueues a listing of a connection if a mark names a repository that the connection
// selects and the catalog lacks.
func (f *Follower) enqueueIfNew(ctx context.Context, conn config.Connection, k *followed) {
	view, now := f.cluster.View(), f.now()
	j := view.Job(catalog.JobSync, conn.Shared().Name)
	finder, ok := k.host.(host.Finder)

	// A waiting or running listing finds new repositories anyway.
	if !ok || j == nil || j.State != catalog.JobDone || now.Sub(j.FinishedAt) < listPause {
		return
	}

	// Forget old look-ups, so that these repositories are looked up again.
	maps.DeleteFunc(k.others, func(_ string, at time.Time) bool { return now.Sub(at) >= othersAgain })

	// Each look-up costs a call, and a host may report all of its repositories.
	lookupsLeft := maxLookups
	for id := range k.recent {
		if _, other := k.others[id]; other || view.RepoByExternalID(id) != nil {
			continue
		}
		if lookupsLeft--; lookupsLeft < 0 {
			return
		}

		k.others[id] = now
		if _, chosen, err := finder.Lookup(ctx, id); err != nil || !chosen {
			continue
		}

		// One listing finds all new repositories.
		if _, err := f.cluster.Propose(ctx, &catalog.EnqueueJob{Kind: catalog.JobSync, Subject: conn.Shared().Name}); err == nil {
			f.log.Info("the host has a new repository; the connection is listed again", "connection", conn.Shared().Name)
		}
		return
	}
}
