package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/api"
	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/node"
)

// serveFlags are the flags of `shoal serve` after the environment filled in
// what was not given.
type serveFlags struct {
	config, dataDir, listen, clusterListen, gossipListen string
	advertise, join, keyFile, zone, ctags, baseURL       string
	expect, replicas                                     int
	weight                                               float64
	logFormat, logLevel                                  string
	demo                                                 string
	anonymous                                            bool    // whatever the environment says
	rate                                                 float64 // requests a second of one client
	lingerText                                           string
	linger                                               time.Duration // lingerText, by check
}

func newServe(getenv func(string) string) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node",
		Long: "Run a node of a shoal. Alone it is a cluster of one; with --join it becomes a member of another's.\n" +
			"Every flag can be given by the environment variable in brackets.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	text := func(p *string, name, usual, usage string, env ...string) {
		for i := len(env) - 1; i >= 0; i-- {
			if v := getenv(env[i]); v != "" {
				usual = v
			}
		}
		fs.StringVar(p, name, usual, usage+" ["+strings.Join(env, ", ")+"]")
	}
	text(&f.config, "config", "", "configuration file", "CONFIG_PATH")
	text(&f.dataDir, "data-dir", "./data", "data directory", "SHOAL_DATA_DIR")
	text(&f.listen, "listen", "127.0.0.1:7700", "API, tool server, web pages, metrics", "SHOAL_LISTEN")
	text(&f.clusterListen, "cluster-listen", "127.0.0.1:7701", "raft and node-to-node calls", "SHOAL_CLUSTER_LISTEN")
	text(&f.gossipListen, "gossip-listen", "127.0.0.1:7702", "membership", "SHOAL_GOSSIP_LISTEN")
	text(&f.advertise, "advertise", "", "host that other nodes reach this one by (default the listen host)", "SHOAL_ADVERTISE")
	text(&f.join, "join", "", "gossip addresses or DNS names of other nodes, comma-separated", "SHOAL_JOIN")
	text(&f.keyFile, "cluster-key-file", "", "cluster key (default <data-dir>/cluster.key)", "SHOAL_CLUSTER_KEY_FILE")
	text(&f.zone, "zone", "default", "failure domain of this node", "SHOAL_ZONE")
	text(&f.ctags, "ctags", "", "universal-ctags program; off for no symbols (default found on PATH)", "CTAGS_COMMAND")
	text(&f.baseURL, "base-url", "", "prefix of every link (default http://<listen>)", "SHOAL_BASE_URL", "AUTH_URL")
	text(&f.logFormat, "log-format", "text", "text or json", "SHOAL_LOG_FORMAT")
	text(&f.logLevel, "log-level", "info", "debug, info, warn or error", "SHOAL_LOG_LEVEL")
	fs.IntVar(&f.expect, "bootstrap-expect", envInt(getenv, "SHOAL_BOOTSTRAP_EXPECT", 1), "nodes that form a new cluster together [SHOAL_BOOTSTRAP_EXPECT]")
	fs.IntVar(&f.replicas, "replicas", envInt(getenv, "SHOAL_REPLICAS", 2), "copies of the index [SHOAL_REPLICAS]")
	fs.Float64Var(&f.weight, "weight", envFloat(getenv, "SHOAL_WEIGHT", 1), "share of the data [SHOAL_WEIGHT]")
	fs.Float64Var(&f.rate, "rate-limit", envFloat(getenv, "SHOAL_RATE_LIMIT", 0), "requests a second of one client, 429 beyond; 0 for no limit [SHOAL_RATE_LIMIT]")
	text(&f.lingerText, "linger", "", "how long a node that is told to stop still answers, so that load balancers notice (default 2s, 0s for a node alone)", "SHOAL_LINGER")
	fs.StringVar(&f.demo, "demo", "", "serve the git checkout in this directory to try things out")
	return cmd
}

// envInt reads a number; one that is malformed becomes 0, which is refused later.
func envInt(getenv func(string) string, name string, usual int) int {
	v := getenv(name)
	if v == "" {
		return usual
	}
	n, _ := strconv.Atoi(v)
	return n
}

func envFloat(getenv func(string) string, name string, usual float64) float64 {
	v := getenv(name)
	if v == "" {
		return usual
	}
	n, _ := strconv.ParseFloat(v, 64)
	return n
}

// check refuses values that no node can run with, all at once, and fills in
// those that follow from others.
func (f *serveFlags) check() error {
	var errs []error
	for _, a := range []struct{ flag, addr string }{{"--listen", f.listen}, {"--cluster-listen", f.clusterListen}, {"--gossip-listen", f.gossipListen}} {
		if _, _, err := net.SplitHostPort(a.addr); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: want host:port", a.flag, a.addr))
		}
	}
	if f.expect < 1 {
		errs = append(errs, errors.New("--bootstrap-expect: want a number of at least 1"))
	}
	if f.replicas < 1 {
		errs = append(errs, errors.New("--replicas: want a number of at least 1"))
	}
	if !(f.weight > 0) {
		errs = append(errs, errors.New("--weight: want a number above 0"))
	}
	if f.rate < 0 {
		errs = append(errs, errors.New("--rate-limit: want a number of at least 0"))
	}
	usual := "2s"
	if f.expect == 1 && f.join == "" {
		usual = "0s"
	}
	var err error
	if f.linger, err = time.ParseDuration(first(f.lingerText, usual)); err != nil || f.linger < 0 {
		errs = append(errs, fmt.Errorf("--linger %q: want a duration such as 2s", f.lingerText))
	}
	if host, _, err := net.SplitHostPort(f.clusterListen); err == nil && wildcard(host) && f.advertise == "" {
		errs = append(errs, errors.New("--advertise: required, because --cluster-listen is a wildcard address"))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	f.keyFile = first(f.keyFile, filepath.Join(f.dataDir, "cluster.key"))
	f.baseURL = strings.TrimSuffix(first(f.baseURL, "http://"+f.listen), "/")
	return nil
}

func wildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

func (f *serveFlags) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", f.logLevel)
	}
	opt := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, opt)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, opt)), nil
	}
	return nil, fmt.Errorf("--log-format %q: want text or json", f.logFormat)
}

// serve runs a node and its API until ctx ends.
func serve(ctx context.Context, f serveFlags) error {
	if f.demo != "" {
		if err := prepareDemo(&f); err != nil {
			return err
		}
	}
	if err := f.check(); err != nil {
		return err
	}
	log, err := f.logger()
	if err != nil {
		return err
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// The scheduler of Go looks at the network when it has nothing else to run,
	// and every 10 ms. With searches on all cores a request would wait that long
	// to be read, so there is more room than the searches may take.
	cores := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(cores + spareThreads)
	n, err := node.New(f.nodeOptions(log, reg, cores))
	if err != nil {
		return err
	}
	srv, err := api.New(n, api.Options{
		Listen: f.listen, OwnerKey: auth.NewOperator(f.keyFile, time.Now).Is, Limits: api.Limits{Rate: f.rate}, Linger: f.linger,
		Version: buildVersion(), Log: log, Gatherer: reg, Registerer: reg,
	})
	if err != nil {
		// A node ends in one way only: with the context of its Run.
		stopped, stop := context.WithCancel(ctx)
		stop()
		return errors.Join(err, n.Run(stopped))
	}
	if host, _, _ := net.SplitHostPort(srv.Addr().String()); n.AnonymousAccess() && !isLoopback(host) {
		warnOpen(os.Stderr, f.listen)
		log.Warn("anonymous access is on and the API listens on a non-loopback address", "listen", f.listen)
	}
	log.Info("serving", "api", srv.Addr().String(), "version", buildVersion(), "data", f.dataDir)
	return runBoth(ctx, n, srv, &f)
}

// spareThreads is how many threads may run beside those that search.
const spareThreads = 2

// runBoth runs the API and the node. The API ends first, so that no request
// meets a node whose files are closed.
func runBoth(ctx context.Context, n *node.Node, srv *api.Server, f *serveFlags) error {
	g, ctx := errgroup.WithContext(ctx)
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNode()
	failing, fail := context.WithCancel(ctx)
	g.Go(func() error {
		defer fail() // without its node the API has nothing to serve
		return n.Run(nodeCtx)
	})
	g.Go(func() error {
		defer stopNode()
		return srv.Run(failing)
	})
	if f.demo != "" {
		g.Go(func() error { return runDemo(failing, f, os.Stderr) })
	}
	return g.Wait()
}

func (f *serveFlags) nodeOptions(log *slog.Logger, reg prometheus.Registerer, cores int) node.Options {
	return node.Options{
		Dir: f.dataDir, ConfigPath: f.config,
		ClusterListen: f.clusterListen, GossipListen: f.gossipListen, Advertise: f.advertise,
		Join: splitList(f.join), BootstrapExpect: f.expect, ClusterKeyFile: f.keyFile,
		Zone: f.zone, Weight: f.weight, Replicas: f.replicas,
		Cores:   cores,
		BaseURL: f.baseURL, APIListen: f.listen, Ctags: f.ctags, Version: buildVersion(),
		Log: log, Registerer: reg, LookupEnv: f.environment,
	}
}

// splitList splits a comma-separated list and drops empty parts.
func splitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
