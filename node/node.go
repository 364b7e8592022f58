package node

import (
	"cmp"
	"context"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster"
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
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/node/mail"
	"github.com/shoalsearch/shoal/node/oauth"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/signin"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/node/thread"
	"github.com/shoalsearch/shoal/node/watch"
	"github.com/shoalsearch/shoal/shard"
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
	Watches   *watch.Watches
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
	post    func(context.Context, mail.Letter) error // sends a letter; nil without a mail server
	tags    tagger
	noGit   string // warning while git is not installed; "" when it is

	permissions job.Permissions // cached answers of code hosts, for metrics and status
	census      hold.Census     // cached counts of the catalog, for metrics and status

	closers  closers     // resources that New opened
	wired    atomic.Bool // true once New has made every part
	stopping atomic.Bool
}

// scratchDir is the directory of the small indexes of commits that no index has.
func (n *Node) scratchDir() string { return filepath.Join(n.opt.Dir, "scratch") }

// onDamagedFile counts an index file that the set has put aside, and tells the collector. While New is
// still wiring it does neither: the collector finds the file missing later.
func (n *Node) onDamagedFile(name string, err error) {
	n.opt.Log.Error("a shard file is damaged and was put aside", "file", name, "err", err)
	if n.wired.Load() {
		n.metrics.damaged.Inc()
		n.data.collector.Damaged()
	}
}

// onUnreadableFile counts and logs that an index file could not be used though it is not damaged.
func (n *Node) onUnreadableFile(name string, err error) {
	n.opt.Log.Error("a shard file could not be used, and is kept: this is a mistake of the program, please report it", "file", name, "err", err)
	if n.wired.Load() {
		n.metrics.unusable.Inc()
	}
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

// dataParts are the parts that store this node's data (package hold).
type dataParts struct {
	files     *hold.Files
	transfers *hold.Transfers
	copier    *hold.Copier
	collector *hold.Collector
	scrubber  *hold.Scrubber
}
