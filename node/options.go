package node

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/oauth"
	"github.com/shoalsearch/shoal/node/trace"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/file"
)

// Options configures a node. The zero value of each optional field is useful; New copies the
// struct.
type Options struct {
	Dir        string // data directory; created when missing
	ConfigPath string // configuration file; "" for an empty catalog

	// Allowed limits what a configuration sent over the network may use, beyond what the
	// configuration in force uses already.
	Allowed config.Allowance

	Name            string   // of the node, for people; "" means none
	ClusterListen   string   // host:port of raft and calls; "127.0.0.1:0" picks a port
	GossipListen    string   // host:port of memberlist
	Advertise       string   // host that others reach this node by; "" means the listen host
	Join            []string // gossip addresses or DNS names of others
	BootstrapExpect int      // nodes that form a new cluster together; 0 means 1
	ClusterKeyFile  string   // "" means Dir/cluster.key
	Zone            string   // "" means "default"
	Weight          float64  // share of data; 0 means 1
	Replicas        int      // copies of each shard; 0 means 2

	// History is how much of what commits changed is indexed; the zero value means nothing.
	History change.Bound

	// BaseURL is the prefix of every link, without a trailing slash; "" means AUTH_URL of
	// the configuration or of LookupEnv, and OwnURL without one.
	BaseURL, OwnURL string

	Ctags   string // path of universal-ctags; "" looks on PATH, "off" indexes without symbols
	Version string // of the binary

	// BackupAge is the age from which the newest backup of the catalog counts as old; 0 for never.
	// A cluster without any backup gets no warning.
	BackupAge time.Duration

	// Dial and Reach let a test simulate the network between nodes. Dial opens every connection
	// to another node. Reach reports whether gossip may reach an address ("udp": one way, "tcp":
	// both ways).
	Dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	Reach func(network, addr string) bool

	// Build and Formats let a test simulate another version of the program: which catalog entries
	// it applies and which index files it reads. Zero means this version.
	Build   catalog.Build
	Formats *file.Formats

	Timing  float64       // multiplies the timeouts of the cluster; 0 means 1
	Hold    time.Duration // how long a write waits for a leader; 0 means 5 s
	Backoff time.Duration // after the first failure of a job; 0 means 30 s

	// Cores is how many processors searches and jobs share; 0 means GOMAXPROCS. With a larger
	// GOMAXPROCS, the node still reads requests while all Cores work.
	Cores int

	// StreamBatch is how many shards one part of a streamed answer covers; 0 means 64.
	StreamBatch int

	// ToolTime bounds index searches by tools; 0 means 5 seconds. At the bound they return what
	// they found so far.
	ToolTime time.Duration

	// SliceBytes bounds the text in one shard of a repository; 0 means 512 MiB. A repository with
	// four times as much index is placed shard by shard.
	SliceBytes int64

	// MinCopyText is the text in bytes from which on a copy of another repository shares its index
	// files; 0 means 1 MiB.
	MinCopyText int64

	Tracer     *trace.Tracer                    // nil traces nothing
	Slow       time.Duration                    // searches of shards here that take as long are logged; 0 for none
	Log        *slog.Logger                     // nil discards
	Registerer prometheus.Registerer            // nil keeps the metrics to itself
	Now        func() time.Time                 // nil means the clock of the machine
	LookupEnv  func(name string) (string, bool) // nil means an empty environment

	// HostRecord is the directory that records answers of code hosts; "" records none.
	HostRecord string

	// Documents fetches the metadata documents of OAuth clients; nil fetches them from the web,
	// with precautions.
	Documents oauth.Fetcher

	// Providers sends requests to identity providers; nil uses the default transport with the
	// environment's proxy.
	Providers http.RoundTripper

	// Space returns the bytes free for this process on the volume of a directory, and its total
	// without what the file system reserves. Zeros mean unknown. nil asks the file system.
	// Placement depends on it, so a test that must not depend on its machine sets it.
	Space func(dir string) (free, total int64)
}
