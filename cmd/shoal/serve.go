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
	// SIGHUP makes the node read its configuration file again. Catch the signal before anything else,
	// because by default it ends the process.
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

	f.warnPlainHTTP(srv, log)
	warnUnread(os.Getenv, log)
	warnMisspelt(os.Environ(), log)
	log.Info("serving", "api", srv.Addr().String(), "version", buildVersion(), "data", f.dataDir)
	return errors.Join(runBoth(ctx, n, srv, &f, log), f.tracer.Close())
}

// open makes the node and its API, whose listeners are open. On an error it closes what it has opened.
func (f *serveFlags) open(ctx context.Context, log *slog.Logger) (*node.Node, *api.Server, error) {
	limits, err := processLimits(f.rate, log)
	if err != nil {
		return nil, nil, err
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	// Go's scheduler polls the network when a thread is idle, otherwise every 10 ms. Allow more threads
	// than searches use, so that a request need not wait that long.
	cores := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(cores + spareThreads)
	heap.KeepRoom()

	// Check the machine before the node joins the cluster. Otherwise a node in a restart loop could take
	// over the leadership each time.
	if err := f.checkMachine(ctx); err != nil {
		return nil, nil, err
	}

	if f.tracer, err = trace.New(ctx, f.environment, buildVersion(), f.name, log); err != nil {
		return nil, nil, err
	}

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
		// Run with an ended context closes the node. There is no other way.
		stopped, stop := context.WithCancel(ctx)
		stop()
		return nil, nil, errors.Join(err, n.Run(stopped))
	}
	return n, srv, nil
}

// spareThreads is the number of threads besides those that search.
const spareThreads = 2

// warnPlainHTTP warns if clients send keys over the network unencrypted.
func (f *serveFlags) warnPlainHTTP(srv *api.Server, log *slog.Logger) {
	host, _, _ := net.SplitHostPort(srv.Addr().String()) // a listener's address always parses
	if !isLoopback(host) && !f.secure() {
		log.Warn("the API speaks plain HTTP on a non-loopback address: keys cross the network in clear. Set --tls-cert and --tls-key, or --acme-domain, or put a load balancer with TLS in front of it", "listen", f.listen)
	}
}

// runBoth runs the API and the node until ctx or one of them ends. The API ends before the node, so that
// no request uses closed files.
func runBoth(ctx context.Context, n *node.Node, srv *api.Server, f *serveFlags, log *slog.Logger) error {
	g, ctx := errgroup.WithContext(ctx)

	// The node's context ends when the API has ended, not when ctx ends.
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNode()

	// The API's context ends when ctx or the node ends.
	apiCtx, stopAPI := context.WithCancel(ctx)

	g.Go(func() error {
		defer stopAPI()
		return n.Run(nodeCtx)
	})
	g.Go(func() error {
		defer stopNode()
		return srv.Run(apiCtx)
	})

	// Tell systemd that the API listens, and from time to time that it still answers.
	unit := supervisorOf(os.Getenv, log)
	unit.notify("READY=1")
	context.AfterFunc(ctx, func() { unit.notify("STOPPING=1") })
	g.Go(func() error {
		unit.reportAlive(apiCtx, srv.Addr().String(), f.secure())
		return nil
	})

	// On another address than loopback, anonymous access is open to other machines.
	if host, _, _ := net.SplitHostPort(srv.Addr().String()); !isLoopback(host) {
		g.Go(func() error {
			watchAnonymous(apiCtx, n.AnonymousAccess, func() {
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

// watchAnonymous calls warn each time anonymous access has been turned on: at the start by the
// environment, or later by a configuration.
func watchAnonymous(ctx context.Context, isOn func() bool, warn func()) {
	for wasOn := false; ; {
		on := isOn()
		if on && !wasOn {
			warn()
		}
		wasOn = on
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
		Listen:        f.listen,
		MetricsListen: f.metricsListen,
		DataDir:       f.dataDir,
		TLSCert:       f.tlsCert,
		TLSKey:        f.tlsKey,
		ACME:          f.acme,

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
