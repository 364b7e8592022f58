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
	"github.com/shoalsearch/shoal/shard/file"
)

// Options is how a node is started. The zero value of each optional field is
// useful; New copies the struct.
type Options struct {
	Dir        string // data directory; created when missing
	ConfigPath string // configuration file; "" for an empty catalog

	// Allowed is what configurations may use that come over the network, beyond what the
	// one in force uses.
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

	// BaseURL is the prefix of every link, without a trailing slash; "" means AUTH_URL of
	// the configuration or of LookupEnv, and OwnURL without one.
	BaseURL, OwnURL string

	Ctags   string // path of universal-ctags; "" looks on PATH, "off" indexes without symbols
	Version string // of the binary

	// Dial and Reach let a test stand between nodes: Dial opens every connection
	// to another one, Reach says whether gossip may pass to an address ("udp": one way, "tcp": both).
	Dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	Reach func(network, addr string) bool

	// Build and Formats let a test be a program of another version: what it applies, and
	// which index files it reads. Zero means this one.
	Build   catalog.Build
	Formats *file.Formats

	Timing  float64       // multiplies the timeouts of the cluster; 0 means 1
	Hold    time.Duration // how long a write waits for a leader; 0 means 5 s
	Backoff time.Duration // after the first failure of a job; 0 means 30 s

	// Cores is how many processors searches and jobs use together; 0 means
	// GOMAXPROCS. Where that is more, requests are read while all cores work.
	Cores int

	// StreamBatch is how many shards one part of a streamed answer comes from;
	// 0 means 64.
	StreamBatch int

	// ToolTime bounds searches of tools in the index; 0 means 5 seconds. They end
	// with what was found so far.
	ToolTime time.Duration

	// SliceBytes is the text that one shard of a repository holds at most; 0
	// means 512 MiB. A repository with four times as much index is placed shard
	// by shard.
	SliceBytes int64

	Slow       time.Duration                    // searches of shards here that take as long are logged; 0 for none
	Log        *slog.Logger                     // nil discards
	Registerer prometheus.Registerer            // nil keeps the metrics to itself
	Now        func() time.Time                 // nil means the clock of the machine
	LookupEnv  func(name string) (string, bool) // nil means an empty environment

	// HostRecord is the directory that answers of code hosts are written to; "" for none.
	HostRecord string

	// Documents fetches what clients say of themselves at addresses of their own;
	// nil means from the web, with care.
	Documents oauth.Fetcher

	// Providers is by which identity providers are asked; nil means the usual way,
	// with the proxy of the environment.
	Providers http.RoundTripper

	// Space is the bytes of the volume of a directory that are free for this
	// process and all that are not kept for others, zeros when that cannot be
	// told; nil asks the file system. A volume decides how much data its node
	// is given, so whoever must not depend on the machine's sets it.
	Space func(dir string) (free, total int64)
}
