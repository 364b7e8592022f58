package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	"github.com/shoalsearch/shoal/node/mail"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/oauth"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/signin"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/node/thread"
	"github.com/shoalsearch/shoal/node/watch"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git/run"
)

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

	// Remove small indexes of an earlier run.
	if err := os.RemoveAll(n.scratchDir()); err != nil {
		return fmt.Errorf("small indexes: %w", err)
	}

	n.set, err = shard.OpenSet(filepath.Join(n.opt.Dir, "shards"), shard.SetOptions{
		Now: n.opt.Now, Workers: n.opt.Cores, Damaged: n.onDamagedFile, Unreadable: n.onUnreadableFile, Formats: n.opt.Formats,
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

// withDefaults returns the options with defaults for those that are not set.
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

// wireReaders makes the parts that answer viewers: Browse and Search.
func (n *Node) wireReaders() {
	// Searches and reads share peers, so that both learn which node is slow.
	n.peers = call.NewPeers(n.cluster, n.cluster.Alive)

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
		Paths:   n.history.Paths,
		Scratch: n.scratchDir(),
		Options: n.buildOptions().With,
		BaseURL: n.BaseURL,
		Now:     n.opt.Now,
		Log:     n.opt.Log,
	})
	n.closers.add("small indexes of commits", n.Browse.CloseScratch)

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
		Done:    n.metrics.countSearch,

		Batch:   n.opt.StreamBatch,
		Time:    n.opt.ToolTime,
		BaseURL: n.BaseURL,
		Tracer:  n.opt.Tracer,
		Slow:    call.Slow{After: n.opt.Slow, Log: n.opt.Log},
		Log:     n.opt.Log,
	}))

	n.Watches = watch.New(watch.Deps{
		Cluster:   n.cluster,
		Gate:      n.gate,
		Current:   n.Keys.Current,
		Histories: n.history,
		Mirrors:   n.mirrors,
		Search:    n.Search,
		Lookup:    n.env.Lookup,
		Mail:      n.post,
		BaseURL:   n.BaseURL,
		Now:       n.opt.Now,
		Log:       n.opt.Log,
	})
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
