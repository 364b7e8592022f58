package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/api"
	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/heap"
	"github.com/shoalsearch/shoal/node/trace"
)

// serve runs a node and its API until ctx ends.
func serve(ctx context.Context, f serveFlags) error {
	// SIGHUP rereads the configuration file. Catch it first, because by default it would end the
	// process.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer func() {
		signal.Stop(hangups)
		close(hangups)
	}()

	if f.demo != "" {
		if err := prepareDemo(&f); err != nil {
			return err
		}
	}
	if err := f.check(); err != nil {
		return wrapStartFailure(err)
	}
	log, err := f.logger()
	if err != nil {
		return wrapStartFailure(err)
	}

	n, srv, err := f.open(ctx, log)
	if err != nil {
		return wrapStartFailure(err)
	}
	go func() {
		for range hangups {
			log.Info("told to look at the configuration file again (SIGHUP)", "path", f.config)
			n.Config.ReloadConfig()
		}
	}()

	f.warnPlain(srv, log)
	warnUnread(os.Getenv, log)
	warnMisspelt(os.Environ(), log)
	log.Info("serving", "api", srv.Addr().String(), "version", buildVersion(), "data", f.dataDir)
	return errors.Join(runBoth(ctx, n, srv, &f, log), f.tracer.Close())
}

// open makes the node and its API, which listens already. On an error it closes both.
func (f *serveFlags) open(ctx context.Context, log *slog.Logger) (*node.Node, *api.Server, error) {
	limits, err := processLimits(f.rate, log)
	if err != nil {
		return nil, nil, err
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	// Go's scheduler polls the network when it is idle, and otherwise every 10 ms. If searches
	// used all threads, requests would wait that long, so allow more threads than searches use.
	cores := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(cores + spareThreads)
	heap.KeepRoom()

	// Fail before the node joins the cluster. Otherwise a node in a restart loop could take over the
	// leadership each time.
	if err := f.tryOut(ctx); err != nil {
		return nil, nil, err
	}

	if f.tracer, err = trace.New(ctx, f.environment, buildVersion(), f.name, log); err != nil {
		return nil, nil, err
	}

	// The routes need the node's parts.
	n, err := node.New(f.nodeOptions(log, reg, cores))
	if err != nil {
		return nil, nil, err
	}
	opt := f.apiOptions(log, reg, limits)
	opt.Finish = func(ctx context.Context) {
		n.Ask.FinishChats(ctx, func(running int) {
			if running > 0 {
				log.Info("this node answers its questions before it stops, for at most ten minutes", "questions", running)
			}
		})
	}
	srv, err := api.New(n, opt)
	if err != nil {
		// Run with an ended context is the only way to close a node.
		stopped, stop := context.WithCancel(ctx)
		stop()
		return nil, nil, errors.Join(err, n.Run(stopped))
	}
	return n, srv, nil
}

// spareThreads is the number of threads beside those that search.
const spareThreads = 2

// warnPlain warns if keys cross the network unencrypted.
func (f *serveFlags) warnPlain(srv *api.Server, log *slog.Logger) {
	host, _, _ := net.SplitHostPort(srv.Addr().String()) // a listener's address always parses
	if !isLoopback(host) && !f.secure() {
		log.Warn("the API speaks plain HTTP on a non-loopback address: keys cross the network in clear. Set --tls-cert and --tls-key, or --acme-domain, or put a load balancer with TLS in front of it", "listen", f.listen)
	}
}

// runBoth runs the API and the node. The API ends first, so that no request meets closed files.
func runBoth(ctx context.Context, n *node.Node, srv *api.Server, f *serveFlags, log *slog.Logger) error {
	g, ctx := errgroup.WithContext(ctx)

	// The node ends when the API has ended, not with ctx.
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNode()

	// The API ends with ctx or with the node.
	apiCtx, stopAPI := context.WithCancel(ctx)

	g.Go(func() error {
		defer stopAPI()
		return n.Run(nodeCtx)
	})
	g.Go(func() error {
		defer stopNode()
		return srv.Run(apiCtx)
	})

	// systemd learns that the API listens and still answers.
	unit := supervisorOf(os.Getenv, log)
	unit.notify("READY=1")
	context.AfterFunc(ctx, func() { unit.notify("STOPPING=1") })
	g.Go(func() error {
		unit.reportAlive(apiCtx, srv.Addr().String(), f.secure())
		return nil
	})

	// On loopback, anonymous access is limited to this machine.
	if host, _, _ := net.SplitHostPort(srv.Addr().String()); !isLoopback(host) {
		g.Go(func() error {
			watchOpen(apiCtx, n.AnonymousAccess, func() {
				warnOpen(os.Stderr, f.listen)
				log.Warn("anonymous access is on and the API listens on a non-loopback address", "listen", f.listen)
			})
			return nil
		})
	}
	if f.demo != "" {
		g.Go(func() error { return runDemo(apiCtx, f, os.Stderr) })
	}
	return g.Wait()
}

// watchOpen warns each time anonymous access is turned on: before the start by the environment,
// or later by a configuration.
func watchOpen(ctx context.Context, open func() bool, warn func()) {
	for was := false; ; {
		now := open()
		if now && !was {
			warn()
		}
		was = now
		if !clock.Wait(ctx, time.Second) {
			return
		}
	}
}

func (f *serveFlags) nodeOptions(log *slog.Logger, reg prometheus.Registerer, cores int) node.Options {
	record, _ := f.environment(recordVariable)
	return node.Options{
		HostRecord: record,
		Dir:        f.dataDir,
		ConfigPath: f.config,
		Allowed:    f.allowed,
		LookupEnv:  f.environment,
		Ctags:      f.ctags,
		Cores:      cores,

		ClusterListen:   f.clusterListen,
		GossipListen:    f.gossipListen,
		Advertise:       f.advertise,
		Join:            splitList(f.join),
		BootstrapExpect: f.expect,
		ClusterKeyFile:  f.keyFile,
		Name:            f.name,
		Zone:            f.zone,
		Weight:          f.weight,
		Replicas:        f.replicas,
		History:         f.history,

		BaseURL:    f.baseURL,
		OwnURL:     f.ownURL(),
		Version:    buildVersion(),
		Tracer:     f.tracer,
		Slow:       f.slow,
		BackupAge:  f.backupAge,
		Log:        log,
		Registerer: reg,
	}
}

func (f *serveFlags) apiOptions(log *slog.Logger, reg *prometheus.Registry, limits api.Limits) api.Options {
	return api.Options{
		Listen:         f.listen,
		MetricsListen:  f.metricsListen,
		MetricsKeyFile: f.metricsKey,
		DataDir:        f.dataDir,
		TLSCert:        f.tlsCert,
		TLSKey:         f.tlsKey,
		ACME:           f.acme,

		AllowedHosts:   splitList(f.hosts),
		EmbedAncestors: f.embed,
		Limits:         limits,
		TrustedProxies: f.trusted,
		Linger:         f.linger,

		Version:    buildVersion(),
		Tracer:     f.tracer,
		Slow:       f.slow,
		Log:        log,
		Gatherer:   reg,
		Registerer: reg,
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
