package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/chronicle"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/node/environ"
	"github.com/shoalsearch/shoal/node/history"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/node/mail"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/oauth"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/signin"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/node/thread"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Node is one node. Its exported fields are its parts, which New sets once. They
// and the methods are safe for concurrent use.
type Node struct {
	Keys      *account.Keyring
	People    *account.People
	Sessions  *account.Sessions
	Passwords *account.Passwords
	Search    *symbols.Finder
	Browse    *browse.Browser
	Ask       *ask.Asker
	Operate   *operate.Operations
	Config    *configure.Configurer
	Chronicle *chronicle.Chronicle

	opt     Options
	began   time.Time
	cluster *cluster.Cluster
	set     *shard.Set
	mirrors *hold.Mirrors
	env     *environ.Environment
	config  *configure.File
	data    dataParts
	history *history.Keeper
	jobs    *job.Jobs
	peers   *call.Peers
	threads *thread.Store
	lanes   lanes
	gate    *account.Gate
	agents  *oauth.Server
	doors   *signin.Server
	metrics *metrics
	tags    tagger
	noGit   string // warning while git is not installed; "" when it is

	permissions job.Permissions // cached answers of code hosts, for metrics and status
	census      hold.Census     // cached counts of the catalog, for metrics and status

	closers  closers     // resources that New opened
	wired    atomic.Bool // true once New has made every part
	stopping atomic.Bool
}

// New opens the data directory and makes the parts. On an error it closes everything again.
// Otherwise the caller must call Run, which closes everything when it ends.
func New(opt Options) (*Node, error) {
	// git runs in other working directories, where a relative path would point elsewhere.
	dir, err := filepath.Abs(opt.Dir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	opt.Dir = dir
	opt = withDefaults(opt)
	n := &Node{opt: opt, began: opt.Now(), lanes: newLanes(opt.Cores)}
	shard.TrimClassifier()

	// On an error close what is open. Otherwise Run does when it ends.
	if err := n.open(); err != nil {
		n.closers.close(opt.Log)
		return nil, err
	}

	post, err := mail.Read(opt.LookupEnv)
	if err != nil {
		n.closers.close(opt.Log)
		return nil, err
	}

	// From here on nothing fails. Lower parts come first, since the upper ones use them.
	tools := n.wireAccess()
	n.wireDoors(tools)
	n.wireMail(post)

	// The data of this node, the jobs that keep it current, and the parts that answer from it.
	n.wireTags()
	n.wireData()
	n.wireJobs(tools)
	n.metrics = newMetrics(n)
	n.wireReaders()
	n.wireAsker()
	n.wireOwners()

	// No call of another node arrives before Run.
	n.handle()
	n.wired.Store(true)
	return n, nil
}

// wireAccess makes the parts that decide who a caller is and what the caller may see. It returns
// the tools for talking to code hosts.
func (n *Node) wireAccess() host.Tools {
	file := func() *config.File { return n.cluster.View().File() }
	n.env = environ.New(environ.Deps{File: file, Process: n.opt.LookupEnv, Now: n.opt.Now, Log: n.opt.Log})

	n.gate = account.NewGate(n.cluster)
	n.Keys = account.NewKeyring(n.cluster, n.env.Lookup, n.opt.Now, n.opt.Log)
	n.People = account.NewPeople(n.cluster)
	n.Sessions = account.NewSessions(n.Keys, n.env.Lookup)
	n.Passwords = account.NewPasswords(n.Keys, n.Sessions, n.env.Lookup)

	apps := func() []config.App { return file().Apps }
	tools := host.NewTools(n.env.Secret, n.env.Lookup, apps, n.opt.Now)
	tools.Forget = n.env.Forget
	tools.Record(n.opt.HostRecord)
	tools.Answers = host.NewAnswers(filepath.Join(n.opt.Dir, "answers"))
	return tools
}

// wireDoors makes the two sign-in servers: OAuth for programs, and sign-in by identity providers
// for people.
func (n *Node) wireDoors(tools host.Tools) {
	n.agents = oauth.New(oauth.Deps{
		Cluster: n.cluster,
		BaseURL: n.BaseURL,
		Lookup:  n.env.Lookup,
		Fetch:   n.opt.Documents,
		Now:     n.opt.Now,
		Log:     n.opt.Log,
	})

	// A browser carries sealed state while a person signs in. The OAuth server's secrets seal it,
	// so the node keeps no others.
	people := account.NewIdentities(n.Passwords)
	n.doors = signin.New(signin.Deps{
		Accounts: people,
		Tokens:   people.Tokens(),
		Sealer:   n.agents.Envelope(),
		File:     func() *config.File { return n.cluster.View().File() },
		Lookup:   n.env.Lookup,
		Secret:   n.env.Secret,

		Hosts:     tools,
		Transport: n.opt.Providers,
		BaseURL:   n.BaseURL,
		Now:       n.opt.Now,
		Log:       n.opt.Log,
	})
}

// open locks the data directory and opens the files in it.
func (n *Node) open() (err error) {
	// One process at a time uses a data directory.
	if err := os.MkdirAll(n.opt.Dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	unlock, err := lockDir(n.opt.Dir)
	if err != nil {
		return err
	}
	n.closers.add("lock of the data directory", unlock)

	if err := closeToOthers(n.opt.Dir); err != nil {
		return err
	}

	if n.mirrors, err = hold.OpenMirrors(filepath.Join(n.opt.Dir, "mirrors")); err != nil {
		return err
	}
	n.closers.add("mirrors", func() { n.mirrors.Close() })

	// Small indexes of an earlier run are of no use.
	if err := os.RemoveAll(n.scratchDir()); err != nil {
		return fmt.Errorf("small indexes: %w", err)
	}

	n.set, err = shard.OpenSet(filepath.Join(n.opt.Dir, "shards"), shard.SetOptions{
		Now: n.opt.Now, Workers: n.opt.Cores, Damaged: n.damaged, Formats: n.opt.Formats,
		Level: func() uint64 { return n.cluster.View().Level().Number },
	})
	if err != nil {
		return fmt.Errorf("shards: %w", err)
	}
	n.closers.add("shards", func() { n.set.Close() })

	file, err := configure.Find(n.opt.ConfigPath, n.opt.Dir)
	if err != nil {
		return err
	}

	// cluster.New reads the catalog from the log. It opens no connection before Run.
	if n.cluster, err = cluster.New(n.clusterOptions()); err != nil {
		return err
	}
	n.closers.add("catalog", func() { n.cluster.Close() })
	if old := n.set.Older(); old.Left > 0 {
		n.opt.Log.Info("index files of an earlier version are made anew in the background", "files", old.Left, "unreadable_until_then", old.Unread)
	}
	n.config = configure.NewFile(file, n.cluster, n.opt.Log, n.opt.Now)
	return nil
}

// scratchDir is the directory of the small indexes of commits that no index has.
func (n *Node) scratchDir() string { return filepath.Join(n.opt.Dir, "scratch") }

func withDefaults(opt Options) Options {
	opt.Cores = cmp.Or(opt.Cores, runtime.GOMAXPROCS(0))
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = clock.Now
	}
	if opt.Space == nil {
		opt.Space = diskSpace
	}

	// A node never reads the process environment by itself: its caller passes LookupEnv.
	if opt.LookupEnv == nil {
		opt.LookupEnv = func(string) (string, bool) { return "", false }
	}
	if opt.Registerer == nil {
		opt.Registerer = prometheus.NewRegistry()
	}

	// With two copies, losing one node loses no data.
	if opt.Replicas <= 0 {
		opt.Replicas = 2
	}
	if opt.ClusterKeyFile == "" {
		opt.ClusterKeyFile = filepath.Join(opt.Dir, "cluster.key")
	}

	if opt.Version == "" {
		opt.Version = "dev"
	}
	opt.BaseURL = strings.TrimRight(opt.BaseURL, "/")
	return opt
}

func (n *Node) clusterOptions() cluster.Options {
	o := n.opt
	return cluster.Options{
		DataDir:       o.Dir,
		ClusterListen: o.ClusterListen,
		GossipListen:  o.GossipListen,

		Advertise:       o.Advertise,
		API:             cmp.Or(o.BaseURL, o.OwnURL),
		Name:            o.Name,
		Join:            o.Join,
		BootstrapExpect: o.BootstrapExpect,

		ClusterKeyFile: o.ClusterKeyFile,
		Zone:           o.Zone,
		Weight:         o.Weight,
		Version:        o.Version,
		Now:            o.Now,
		Log:            o.Log,

		Metrics:  o.Registerer,
		Audit:    n.audit,
		Timing:   o.Timing,
		HoldTime: o.Hold,
		Dial:     o.Dial,
		Reach:    o.Reach,
		Errors:   call.WireKinds(),
		Build:    o.Build,
	}
}

// wireTags starts the processes that find symbols, and checks that git is installed.
func (n *Node) wireTags() {
	// Without git the node still starts: it can search what it has, and its status shows the
	// problem.
	if !run.Installed() {
		n.noGit = "git is not on PATH: nothing can be fetched, indexed or browsed on this node until it is installed"
		n.opt.Log.Error(n.noGit)
	}
	n.tags = newTagger(n.opt.Ctags, n.opt.Cores, n.opt.Log)
	if n.tags.close != nil {
		n.closers.add("symbol processes", n.tags.close)
	}
}

// lanes limit concurrent work on the processors. Cheap searches never wait behind expensive
// searches or reads of mirrors.
type lanes struct{ light, heavy, long, reads *call.Lane }

func newLanes(cores int) lanes {
	// Light searches are short, so several share a core. Heavy ones use half of the cores. One
	// that runs long gives its place to another heavy search. Reads mostly wait for git and the
	// disk, not for a core.
	return lanes{
		light: call.NewLane("searches", 4*cores, 128*cores),
		heavy: call.NewLane("searches", max(1, cores/2), 32*cores),
		long:  call.NewLane("searches", 2*cores, 0),
		reads: call.NewLane("reads of repositories", max(16, 8*cores), 1024),
	}
}

// searches returns how many searches run and how many wait.
func (l lanes) searches() (running, waiting int) {
	r1, w1 := l.light.Busy()
	r2, w2 := l.heavy.Busy()
	r3, _ := l.long.Busy() // nothing waits in this lane
	return r1 + r2 + r3, w1 + w2
}

// wireReaders makes the parts that answer viewers: Browse and Search.
func (n *Node) wireReaders() {
	// Searches and reads share peers, so that both learn which node is slow.
	n.peers = call.NewPeers(n.cluster, n.cluster.Alive)

	n.Browse = browse.New(browse.Deps{
		Cluster:  n.cluster,
		Gate:     n.gate,
		Mirrors:  n.mirrors,
		Peers:    n.peers,
		Outlines: n.tags.outlines,
		Reads:    n.lanes.reads,

		Fresh: func(view *catalog.View, repo *catalog.Repo) bool {
			return n.data.copier.Fresh(context.Background(), view, repo)
		},
		Scratch: n.scratchDir(),
		Options: n.buildOptions().With,
		BaseURL: n.BaseURL,
		Now:     n.opt.Now,
		Log:     n.opt.Log,
	})
	n.closers.add("small indexes of commits", n.Browse.CloseScratch)

	n.history = history.New(history.Deps{
		Dir:     filepath.Join(n.opt.Dir, "history"),
		View:    n.cluster.View,
		Mirrors: n.mirrors,
		Bound:   n.opt.History,
		Busy:    func() bool { return len(n.jobs.Runner.Running()) > 0 },
		Rest:    func() time.Duration { return hold.Rest(n.cluster.View().RepoCount()) },
		Now:     n.opt.Now,
		Log:     n.opt.Log,
	})

	n.Search = symbols.New(search.New(search.Deps{
		Cluster:   n.cluster,
		Gate:      n.gate,
		Set:       n.set,
		Scanner:   n.Browse,
		Histories: n.history,
		Peers:     n.peers,

		Light:   n.lanes.light,
		Heavy:   n.lanes.heavy,
		Long:    n.lanes.long,
		Matches: n.defaultMatches,
		Done:    n.metrics.search,

		Batch:   n.opt.StreamBatch,
		Time:    n.opt.ToolTime,
		BaseURL: n.BaseURL,
		Tracer:  n.opt.Tracer,
		Slow:    call.Slow{After: n.opt.Slow, Log: n.opt.Log},
		Log:     n.opt.Log,
	}))
}

// wireAsker makes the part that answers questions with a language model.
func (n *Node) wireAsker() {
	timing := cmp.Or(n.opt.Timing, 1)
	n.threads = thread.New(thread.Deps{
		Dir:   filepath.Join(n.opt.Dir, "threads"),
		Net:   n.cluster,
		View:  n.cluster.View,
		Alive: n.cluster.Alive,

		Secret:   n.cluster.Secret,
		Age:      n.cluster.Age,
		Replicas: n.opt.Replicas,
		Timing:   timing,
		Now:      n.opt.Now,
		Log:      n.opt.Log,
	})

	// The model sees what its user may see: it uses the gate and the same parts as people.
	n.Ask = ask.New(ask.Deps{
		Catalog: n.cluster,
		Nodes:   n.cluster,
		Net:     n.cluster,
		Threads: n.threads,
		Gate:    n.gate,
		Models:  model.New(model.Deps{Secret: n.env.Secret, Forget: n.env.Forget, Lookup: n.env.Lookup, GoogleToken: n.env.GoogleToken, Wait: clock.Wait}),
		Sources: ask.Sources{Search: n.Search, Browse: n.Browse},

		Lookup:  n.env.Lookup,
		Timing:  timing,
		Now:     n.opt.Now,
		BaseURL: n.BaseURL,
		Log:     n.opt.Log,
	})
}

// audit returns the audit rule of the current configuration.
func (n *Node) audit() cluster.Audit { return chronicle.Rule(n.env) }

// wireOwners makes the parts with which owners run the cluster.
func (n *Node) wireOwners() {
	n.Operate = operate.New(operate.Deps{
		Cluster: n.cluster,
		Gate:    n.gate,

		Running:     n.jobs.Runner.Running,
		Following:   n.jobs.Poller.Following,
		Called:      n.jobs.Follower.Called,
		Hint:        n.jobs.Follower.Hint,
		FirstSecret: n.Keys.WebhookSecret, KnownSecret: n.Keys.KnownWebhookSecret,
		Snapshot: n.cluster.Snapshot,
		Chats:    n.threads.Archive,
		Backup:   filepath.Join(n.opt.Dir, "last-backup"),
		Audited:  func() bool { return !n.audit().Off },

		Replicas: n.opt.Replicas,
		Now:      n.opt.Now,
		Log:      n.opt.Log,
	})

	// Config only compares this node's file: the configuration in force is in the catalog.
	n.Config = configure.New(configure.Deps{
		Catalog: n.cluster,
		Members: n.cluster.Members,
		Net:     n.cluster,
		Gate:    n.gate,
		File:    n.config,
		Allowed: n.opt.Allowed,
		Log:     n.opt.Log,
	})

	n.Chronicle = chronicle.New(chronicle.Deps{
		Net:     n.cluster,
		Self:    n.cluster.Self(),
		Dir:     filepath.Join(n.opt.Dir, "audit"),
		View:    n.cluster.View,
		Members: n.cluster.Members,
		Leader:  n.cluster.Leader,

		Rule:   n.audit,
		Policy: func() chronicle.Policy { return chronicle.PolicyOf(n.env) },
		Secret: n.cluster.Secret,
		Now:    n.opt.Now,
		Log:    n.opt.Log,
	})
}

// handle registers the handlers of calls from other nodes. New calls it before Run.
func (n *Node) handle() {
	pushesCall.Serve(n.cluster, n.servePushes)
	raftCall.Serve(n.cluster, n.serveRaft)
	n.data.transfers.Handle(n.cluster)
}

// damaged counts an index file that the set has put aside, and tells the collector. While New is
// still wiring it does neither: the collector finds the file missing later.
func (n *Node) damaged(name string, err error) {
	n.opt.Log.Error("a shard file is damaged and was put aside", "file", name, "err", err)
	if n.wired.Load() {
		n.metrics.damaged.Inc()
		n.data.collector.Damaged()
	}
}

// Run serves until ctx ends, then stops in order: jobs return their leases before the node leaves
// the cluster, and files close last.
func (n *Node) Run(ctx context.Context) error {
	defer n.closers.close(n.opt.Log)

	// The cluster outlives the other parts: stopping jobs return their leases through it.
	clusterCtx, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	left := make(chan error, 1)
	workCtx, stopWork := context.WithCancelCause(ctx)
	defer stopWork(nil)
	go func() {
		err := n.cluster.Run(clusterCtx)
		left <- err
		stopWork(errors.Join(errors.New("the cluster part has ended"), err))
	}()

	// If one part ends with an error, all end.
	g, gctx := errgroup.WithContext(workCtx)
	for _, part := range []func(context.Context) error{
		n.jobs.Leader.Run, n.jobs.Runner.Run, n.jobs.Poller.Run, n.jobs.Follower.Run, n.jobs.Symbols.Run,
		n.data.copier.Run, n.data.collector.Run, n.data.scrubber.Run, n.history.Run,
		n.config.Run, n.Keys.Run, n.Sessions.Run, n.agents.Run, n.Ask.Run, n.threads.Run, n.runLoad, n.Chronicle.Run, n.Operate.NoteSyncs, n.proposePermissionSync,
	} {
		g.Go(func() error { return part(gctx) })
	}
	err := g.Wait()
	n.opt.Log.Debug("stopped", "part", "jobs")

	// The cluster part stops last: the parts above returned their leases through it.
	n.stopping.Store(true)
	leave()
	err = errors.Join(err, <-left)
	n.opt.Log.Debug("stopped", "part", "cluster")
	return err
}

// OAuth returns the server that gives programs access on behalf of people.
func (n *Node) OAuth() *oauth.Server { return n.agents }

// SignIn returns the server that signs people in by identity providers.
func (n *Node) SignIn() *signin.Server { return n.doors }

// BaseURL returns the prefix of every link, without a trailing slash. It follows the
// configuration in force.
func (n *Node) BaseURL() string {
	if n.opt.BaseURL != "" {
		return n.opt.BaseURL
	}
	text, _ := n.env.Lookup("AUTH_URL")
	base, _ := config.BaseURL(text) // invalid counts as unset
	return cmp.Or(base, n.opt.OwnURL)
}

// ID returns the node's id in the cluster.
func (n *Node) ID() string { return n.cluster.Self() }

// diskUsed returns how full the volume of the data directory is, in percent.
func (n *Node) diskUsed() uint8 {
	free, total := n.opt.Space(n.opt.Dir)

	// A volume of unknown size counts as empty.
	if total <= 0 {
		return 0
	}
	return uint8(100 * (total - free) / total)
}

// ClusterAddr returns the address at which other nodes call this one.
func (n *Node) ClusterAddr() string { return n.cluster.ClusterAddr() }

// GossipAddr returns the address that other nodes can join by.
func (n *Node) GossipAddr() string { return n.cluster.GossipAddr() }

// runLoad publishes this node's load to the other nodes.
func (n *Node) runLoad(ctx context.Context) error {
	for {
		running, waiting := n.lanes.searches()
		n.cluster.SetLoad(cluster.Load{
			Searches:  uint32(running + waiting),
			DiskUsed:  n.diskUsed(),
			Applied:   n.cluster.View().Index(),
			StartedAt: n.began,
			Replicas:  uint32(n.opt.Replicas),
			Backup:    n.Operate.Archive.Saved(),
		})

		// Load balancing, searches and placement use it; two seconds is fresh enough for all of
		// them.
		if !clock.Wait(ctx, 2*time.Second) {
			return nil
		}
	}
}
