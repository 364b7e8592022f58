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

// Follower asks the hosts of connections, every half a minute or so, what was
// pushed to since, and tells the pollers of all nodes. One node asks for each
// credential; two that do after a partition cost some calls, nothing else. None
// of this is in the log of the cluster.
type Follower struct {
	cluster Cluster
	hosts   host.Tools
	tell    Tell
	// told is when the last look began of which any node has told this one, for a
	// connection of a definition; zero for none.
	told func(connection, hash string) time.Time
	log  *slog.Logger
	now  func() time.Time

	mu    sync.Mutex // guards the fields below
	known map[string]*followed
	hooks map[string]bool // connections that a webhook called since the last round
	hints map[string]bool // connections that are to be listed as soon as that is due
}

// Tell brings a signal to a node, this one included.
type Tell func(ctx context.Context, node string, s *Signal) error

// Signal is what a node tells the others of a connection.
type Signal struct {
	Connection string
	Hook       bool // a webhook has called; all else is empty

	Name    string        // of what is looked at
	Targets []string      // selections that were looked at; of others the host does not tell
	Sure    bool          // what has no new mark was not pushed to
	Lag     time.Duration // after a new mark further pushes may go unnoticed for so long
	Every   time.Duration // between two looks
	Problem string        // why the last look failed; empty where it did not
	Hash    string        // of the definition of the connection that was looked at
	Since   time.Time     // when the last look began that did not fail; zero before the first
	Marks   []host.Mark   // of the last minutes
}

// followed is what is known of a connection that this node asks for.
type followed struct {
	hash    string // of its definition
	host    host.Host
	next    time.Time
	running bool
	since   time.Time // of the last look that succeeded
	recent  map[string]recentMark
	others  map[string]time.Time // repositories that the connection does not have, and when they were looked up
}

// recentMark is a mark that is told with each look for a while, so that a node
// which missed one message, or died with it, loses nothing.
type recentMark struct {
	mark host.Mark
	seen time.Time
}

const (
	remember    = 10 * time.Minute // marks are told for so long
	overlap     = 5 * time.Minute  // of two looks: clocks and indexes of hosts are not exact
	firstLook   = 24 * time.Hour   // that the first look reaches back
	lookTime    = 10 * time.Minute // deadline of a look
	tellTime    = 5 * time.Second
	othersAgain = time.Hour        // until a repository that the connection leaves out is looked up again
	listAgain   = 10 * time.Minute // between two listings for new repositories
	mostLookups = 50               // repositories that are looked up after one look; the others after the next
)

func newFollower(c Cluster, hosts host.Tools, tell Tell, told func(connection, hash string) time.Time, log *slog.Logger, now func() time.Time) *Follower {
	return &Follower{
		cluster: c,
		hosts:   hosts,
		tell:    tell,
		told:    told,
		log:     log,
		now:     now,
		known:   map[string]*followed{},
		hooks:   map[string]bool{},
		hints:   map[string]bool{},
	}
}

// Run looks until the context ends.
func (f *Follower) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()

	for {
		for _, conn := range f.due() {
			wg.Go(func() { f.look(ctx, conn) })
		}

		// A call of a webhook needs no look: that it came is what the others are to know.
		for _, name := range f.called() {
			f.spread(ctx, &Signal{Connection: name, Hook: true})
		}

		f.listHinted(ctx)

		if !clock.Wait(ctx, time.Second) {
			return nil
		}
	}
}

// Called notes that a webhook of a connection has called. It may be called
// from any goroutine.
func (f *Follower) Called(connection string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hooks[connection] = true
}

// Hint notes that something was told of a connection which only a listing can find
// out: a repository that is new there, or is there no more. The listing begins at
// once, or some time after the last one: hints come for each push to a repository
// that the connection leaves out, too. It may be called from any goroutine.
func (f *Follower) Hint(connection string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hints[connection] = true
}

// listHinted asks for the listings that are hinted at and due.
func (f *Follower) listHinted(ctx context.Context) {
	view, now := f.cluster.View(), f.now()
	f.mu.Lock()
	var due []string
	for name := range f.hints {
		c, j := view.Connection(name), view.Job(catalog.JobSync, name)
		switch {
		// One that waits begins later than the hint: it finds out.
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

func (f *Follower) called() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.hooks {
		names = append(names, name)
	}
	clear(f.hooks)
	return names
}

// due marks the connections to look at now as running and returns them.
func (f *Follower) due() (due []config.Connection) {
	view, members, now := f.cluster.View(), f.cluster.Members(), f.now()
	f.mu.Lock()
	defer f.mu.Unlock()

	mine := map[string]bool{}
	for _, conn := range view.File().Connections {
		record := view.Connection(conn.Shared().Name)
		if _, tells := host.SignalOf(conn); !tells || record == nil || record.Synced == "" || askerOf(members, conn) != f.cluster.Self() {
			continue
		}

		// What was known of another definition of the connection is no use.
		mine[record.Name] = true
		k := f.known[record.Name]
		if k == nil || k.hash != record.Hash && !k.running {
			k = &followed{hash: record.Hash, since: f.told(record.Name, record.Hash), recent: map[string]recentMark{}, others: map[string]time.Time{}}
			f.known[record.Name] = k
		}

		if !k.running && !now.Before(k.next) {
			k.running = true
			due = append(due, conn)
		}
	}

	// A connection that is gone, or that another node asks for now.
	for name, k := range f.known {
		if !mine[name] && !k.running {
			delete(f.known, name)
		}
	}
	return due
}

// askerOf is the live member that asks the host of a connection: the same for
// all connections of a credential, whose calls the host counts together.
func askerOf(members []cluster.Member, conn config.Connection) (node string) {
	key := askerKey(conn)
	for _, m := range members {
		if m.Alive && m.State == catalog.MemberAlive && (node == "" || asksRather(key, m.ID, node)) {
			node = m.ID
		}
	}
	return node
}

// askerKey is what decides which node asks the host of a connection.
func askerKey(conn config.Connection) uint64 { return place.Key(host.CredentialKey(conn)) }

// asksRather reports whether a node asks rather than another.
func asksRather(key uint64, node, than string) bool {
	return place.Score(key, place.Member{ID: node}) > place.Score(key, place.Member{ID: than})
}

// look asks the host of a connection what was pushed to, and tells all nodes.
func (f *Follower) look(ctx context.Context, conn config.Connection) {
	name := conn.Shared().Name
	f.mu.Lock()
	k := f.known[name]
	f.mu.Unlock()

	// Only this goroutine uses what is known while it is marked as running.
	signal := f.ask(ctx, conn, k)
	if ctx.Err() == nil {
		f.spread(ctx, signal)
		f.listNew(ctx, conn, k)
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	k.next, k.running = f.now().Add(signal.Every), false
}

// ask makes one look.
func (f *Follower) ask(ctx context.Context, conn config.Connection, k *followed) *Signal {
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

	calls, err := k.changed(ctx, conn, f.hosts, began, row.Lag, &signal.Targets)
	// A look that failed has told nothing: the next one begins where this one did.
	if err != nil {
		signal.Problem, signal.Targets = short(err.Error()), nil
		signal.Every = max(signal.Every, waitAfter(err, began))
	} else {
		k.since = began
		signal.Every = row.Every(calls, allowance(k.host))
	}

	signal.Hash, signal.Since = k.hash, k.since

	// Marks are told again for a while: a node that was away hears them, too.
	for id, m := range k.recent {
		signal.Marks = append(signal.Marks, m.mark)
		if began.Sub(m.seen) > remember {
			delete(k.recent, id)
		}
	}
	return signal
}

// changed adds the new marks of a host to the recent ones, and returns how many
// calls that took.
func (k *followed) changed(ctx context.Context, conn config.Connection, tools host.Tools, now time.Time, lag time.Duration, targets *[]string) (calls int, err error) {
	if k.host == nil {
		if k.host, err = host.Open(conn, tools); err != nil {
			return 0, err
		}
	}

	changer, ok := k.host.(host.Changer)
	if !ok {
		return 0, errors.New("the host does not tell of pushes")
	}

	// Looks overlap: what the host took note of late would fall between two. Of a
	// look that another node made all nodes were told.
	since := now.Add(-firstLook)
	if k.since.After(since) {
		since = k.since.Add(-overlap - lag)
	}

	before := allowance(k.host).Calls
	*targets, err = changer.Changed(ctx, since, func(m host.Mark) {
		if old, known := k.recent[m.ExternalID]; !known || stampOf(old.mark) != stampOf(m) {
			k.recent[m.ExternalID] = recentMark{m, now}
		}
	})
	return int(allowance(k.host).Calls - before), err
}

// waitAfter is how long a host is left alone after it failed.
func waitAfter(err error, now time.Time) time.Duration {
	var told interface{ NotBefore() time.Time }
	if errors.As(err, &told) && told.NotBefore().After(now) {
		return told.NotBefore().Sub(now)
	}
	return 2 * time.Minute
}

// spread tells all live nodes. One that cannot be told hears the same marks at
// the next look.
func (f *Follower) spread(ctx context.Context, s *Signal) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()

	// All at once: one node that does not answer must not delay the word to the others.
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

// listNew has a connection listed where its host tells of a repository that
// the catalog does not have, and that the connection chooses.
func (f *Follower) listNew(ctx context.Context, conn config.Connection, k *followed) {
	view, now := f.cluster.View(), f.now()
	j := view.Job(catalog.JobSync, conn.Shared().Name)
	finder, ok := k.host.(host.Finder)

	// A listing that waits or runs finds what is new without being asked for.
	if !ok || j == nil || j.State != catalog.JobDone || now.Sub(j.FinishedAt) < listAgain {
		return
	}

	// What is to be looked up again is forgotten, so that the list ends somewhere.
	maps.DeleteFunc(k.others, func(_ string, at time.Time) bool { return now.Sub(at) >= othersAgain })

	// Each costs a call, and a host may tell of all that it has.
	left := mostLookups
	for id := range k.recent {
		if _, other := k.others[id]; other || view.RepoByExternalID(id) != nil {
			continue
		}
		if left--; left < 0 {
			return
		}

		k.others[id] = now
		if _, chosen, err := finder.Lookup(ctx, id); err != nil || !chosen {
			continue
		}

		// One listing finds all that is new.
		if _, err := f.cluster.Propose(ctx, &catalog.EnqueueJob{Kind: catalog.JobSync, Subject: conn.Shared().Name}); err == nil {
			f.log.Info("the host has a new repository; the connection is listed again", "connection", conn.Shared().Name)
		}
		return
	}
}
