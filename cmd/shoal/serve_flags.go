package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/api"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/trace"
	"github.com/shoalsearch/shoal/shard/change"
)

// serveFlags are the flags of `shoal serve`, with defaults from the environment.
type serveFlags struct {
	config, dataDir, listen, clusterListen, gossipListen string
	advertise, join, keyFile, zone, ctags, baseURL, name string
	expect, replicas                                     int
	weight                                               float64
	logFormat, logLevel                                  string
	tlsCert, tlsKey, hosts, metricsListen                string
	acme                                                 api.ACME
	tracer                                               *trace.Tracer // set by open
	trustedText                                          string
	trusted                                              []netip.Prefix // parsed from trustedText by check
	embedText                                            string
	embed                                                []string // parsed from embedText by check
	configEnv, configRoots                               string
	allowed                                              config.Allowance // parsed from configEnv and configRoots by check
	demo                                                 string
	anonymous                                            bool    // turn anonymous access on, whatever the environment says
	envErrs                                              []error // errors of invalid variables
	rate                                                 float64 // requests a second of one client
	lingerText                                           string
	linger                                               time.Duration // parsed from lingerText by check
	slowText                                             string
	slow                                                 time.Duration // parsed from slowText by check
	historyText                                          string
	history                                              change.Bound // parsed from historyText by check
	backupAgeText                                        string
	backupAge                                            time.Duration // parsed from backupAgeText by check
}

func newServe(getenv func(string) string) *cobra.Command {
	return newServeCommand(getenv, &serveFlags{})
}

func newServeCommand(getenv func(string) string, f *serveFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node",
		Long: "Run a node of a shoal. Alone it is a cluster of one. With --join it becomes a member of another's.\n" +
			"Every flag but --demo can be given by the environment variable in brackets.\n\n" +
			"Exit code 78 means: do not start me again as I am. A flag, a file or the data directory has to be changed first, or the\n" +
			"cluster has removed this node. 70 means that its disk failed, stalled or was full. Any other failure is 2, such as a\n" +
			"port or a data directory that another process has. It may be gone at the next start.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), *f)
		},
	}

	f.addTexts(cmd, getenv)
	f.addNumbers(cmd, getenv)
	cmd.Flags().StringVar(&f.demo, "demo", "", "serve the git checkout in this directory to try things out")

	// check reports invalid variables later, so that --help works with them.
	f.envErrs = append(f.envErrs, checkVariables(getenv)...)
	return cmd
}

// addTexts adds the string flags, with defaults from the environment.
func (f *serveFlags) addTexts(cmd *cobra.Command, getenv func(string) string) {
	// Of several variables the first that is set counts. The others are older names.
	text := func(p *string, name, fallback, usage string, env ...string) {
		for _, variable := range slices.Backward(env) {
			fallback = cmp.Or(getenv(variable), fallback)
		}
		cmd.Flags().StringVar(p, name, fallback, usage+" ["+strings.Join(env, ", ")+"]")
	}

	// Files and programs.
	text(&f.config, "config", "", "configuration file", "CONFIG_PATH")
	text(&f.configEnv, "config-env", "", "variables that a configuration over the network may send to its hosts, comma-separated: NAME, GITEA_*@git.example.com (default those that the configuration in force uses)", "SHOAL_CONFIG_ENV")
	text(&f.configRoots, "config-roots", "", "directories below which a configuration over the network may name local repositories, comma-separated (default those that the configuration in force uses)", "SHOAL_CONFIG_ROOTS")
	text(&f.dataDir, "data-dir", "./data", "data directory", "SHOAL_DATA_DIR")
	text(&f.keyFile, "cluster-key-file", "", "cluster key (default <data-dir>/cluster.key)", "SHOAL_CLUSTER_KEY_FILE")
	text(&f.historyText, "history", "200000 commits", "how far back the commits of each repository are indexed: all, off, a number of commits, or of days as \"90 days\"", "SHOAL_HISTORY")
	text(&f.ctags, "ctags", "", "universal-ctags program; off for no symbols (default found on PATH)", "CTAGS_COMMAND")

	// Connections between nodes.
	text(&f.clusterListen, "cluster-listen", "127.0.0.1:7701", "raft and node-to-node calls", "SHOAL_CLUSTER_LISTEN")
	text(&f.gossipListen, "gossip-listen", "127.0.0.1:7702", "membership", "SHOAL_GOSSIP_LISTEN")
	text(&f.advertise, "advertise", "", "host that other nodes reach this one by (default the host of --cluster-listen; where that is a wildcard, the address of this machine that leads to the first address of --join)", "SHOAL_ADVERTISE")
	text(&f.join, "join", "", "gossip addresses or DNS names of other nodes, comma-separated", "SHOAL_JOIN")
	text(&f.name, "node-name", "", "name of this node in status, pages and messages (default the name of the host)", "SHOAL_NODE_NAME")
	text(&f.zone, "zone", "default", "failure domain of this node", "SHOAL_ZONE")

	// Clients.
	text(&f.listen, "listen", "127.0.0.1:7700", "API, tool server, web pages, metrics", "SHOAL_LISTEN")
	text(&f.baseURL, "base-url", "", "prefix of every link (default AUTH_URL, else the address of --listen, or the one that other nodes use where that is a wildcard)", "SHOAL_BASE_URL")
	text(&f.tlsCert, "tls-cert", "", "certificate chain for --listen and --metrics-listen, read again when it changes (default plain HTTP)", "SHOAL_TLS_CERT")
	text(&f.tlsKey, "tls-key", "", "key of --tls-cert", "SHOAL_TLS_KEY")
	text(&f.acme.Domain, "acme-domain", "", "get a certificate for this name of the node, instead of --tls-cert: the authority connects to port 443 of it, which must lead to --listen", "SHOAL_ACME_DOMAIN")
	text(&f.acme.Directory, "acme-directory", "", "ACME address of the authority, whose terms you accept by naming it, such as https://acme-v02.api.letsencrypt.org/directory (no default)", "SHOAL_ACME_DIRECTORY")
	text(&f.acme.Email, "acme-email", "", "address that the authority may write to (default none)", "SHOAL_ACME_EMAIL")
	text(&f.hosts, "allowed-hosts", "", "names that clients may call the API by, comma-separated; * for any. The host of --base-url, localhost and addresses need none", "SHOAL_ALLOWED_HOSTS")
	text(&f.embedText, "embed-ancestors", "", "sites whose pages may show lines of files that anybody may see, by comma: https://wiki.example.com, or 'self' for this site (default none)", "SHOAL_EMBED_ANCESTORS")
	text(&f.trustedText, "trusted-proxies", "", "networks of load balancers whose X-Forwarded-For counts for limits and the audit, comma-separated: 10.0.0.0/24,::1", "SHOAL_TRUSTED_PROXIES")
	text(&f.lingerText, "linger", "", "how long a node that is told to stop still answers, so that load balancers notice (default 2s; 0s with neither --join nor --bootstrap-expect)", "SHOAL_LINGER")

	// Monitoring.
	text(&f.metricsListen, "metrics-listen", "", "another address for /metrics, /livez and /readyz (default only --listen). /metrics wants a key of --role metrics or of an owner at both, unless the address is on loopback and no connection enforces permissions", "SHOAL_METRICS_LISTEN")
	text(&f.logFormat, "log-format", "text", "text or json", "SHOAL_LOG_FORMAT")
	text(&f.backupAgeText, "backup-age", "48h", "shoal status warns when the newest back-up of the catalog is as old as this; 0 for never", "SHOAL_BACKUP_AGE")
	text(&f.slowText, "log-slow", "", "log each search and read that takes as long as this, with what it looked for: 500ms (default none)", "SHOAL_LOG_SLOW")
	text(&f.logLevel, "log-level", "info", "debug, info, warn or error", "SHOAL_LOG_LEVEL")
	offerValues(cmd, "log-format", "text", "json")
	offerValues(cmd, "log-level", "debug", "info", "warn", "error")
}

// addNumbers adds the number flags, with defaults from the environment.
func (f *serveFlags) addNumbers(cmd *cobra.Command, getenv func(string) string) {
	expect := f.envInt(getenv, "SHOAL_BOOTSTRAP_EXPECT", 1)
	replicas := f.envInt(getenv, "SHOAL_REPLICAS", 2)
	weight := f.envFloat(getenv, "SHOAL_WEIGHT", 1)
	rate := f.envFloat(getenv, "SHOAL_RATE_LIMIT", 0)

	fs := cmd.Flags()
	fs.IntVar(&f.expect, "bootstrap-expect", expect, "nodes that form a new cluster together [SHOAL_BOOTSTRAP_EXPECT]")
	fs.IntVar(&f.replicas, "replicas", replicas, "copies of the index and of the git mirrors [SHOAL_REPLICAS]")
	fs.Float64Var(&f.weight, "weight", weight, "share of the data [SHOAL_WEIGHT]")
	fs.Float64Var(&f.rate, "rate-limit", rate, "requests a second of one client, 429 beyond; 0 for no limit [SHOAL_RATE_LIMIT]")
}

// envInt returns a variable that must be a whole number; fallback if it is not set. It stores the error
// of an invalid one for check.
func (f *serveFlags) envInt(getenv func(string) string, name string, fallback int) int {
	text := getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		f.envErrs = append(f.envErrs, fmt.Errorf("%s=%q: want a whole number", name, text))
	}
	return n
}

// envFloat is envInt for any number.
func (f *serveFlags) envFloat(getenv func(string) string, name string, fallback float64) float64 {
	text := getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		f.envErrs = append(f.envErrs, fmt.Errorf("%s=%q: want a number", name, text))
	}
	return n
}

// Limits of a node's own properties.
const (
	maxWeight = 1000
	maxZone   = 64 // bytes
	maxName   = 63 // bytes
)

// check returns one error with all invalid values. If there are none, it sets the values that are parsed
// from flags, and defaults that depend on other flags.
func (f *serveFlags) check() error {
	errs := slices.Clone(f.envErrs)
	errs = append(errs, f.checkListeners()...)
	errs = append(errs, f.checkNumbers()...)
	errs = append(errs, f.readTexts()...)
	errs = append(errs, f.checkReachable()...)
	if err := errors.Join(errs...); err != nil {
		return err
	}

	f.keyFile = cmp.Or(f.keyFile, filepath.Join(f.dataDir, "cluster.key"))
	if host, err := os.Hostname(); err == nil && len(host) <= maxName {
		f.name = cmp.Or(f.name, host)
	}
	f.baseURL = strings.TrimSuffix(f.baseURL, "/")
	return nil
}

// checkListeners checks the syntax of the listen addresses.
func (f *serveFlags) checkListeners() (errs []error) {
	for _, a := range []struct {
		flag, addr string
		optional   bool
	}{
		{"--listen", f.listen, false},
		{"--cluster-listen", f.clusterListen, false},
		{"--gossip-listen", f.gossipListen, false},
		{"--metrics-listen", f.metricsListen, true},
	} {
		if a.optional && a.addr == "" {
			continue
		}

		// The start shows whether the address is available.
		if _, _, err := net.SplitHostPort(a.addr); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: want host:port", a.flag, a.addr))
		}
	}
	return errs
}

// checkNumbers checks the ranges of numbers, and the lengths of names. It negates conditions, because a
// comparison with NaN is false.
func (f *serveFlags) checkNumbers() (errs []error) {
	if f.expect < 1 {
		errs = append(errs, errors.New("--bootstrap-expect: want a number of at least 1"))
	}
	if f.replicas < 1 {
		errs = append(errs, errors.New("--replicas: want a number of at least 1"))
	}

	// Weights are relative. A huge weight is a typing error, and would move all data to one node.
	if !(f.weight > 0 && f.weight <= maxWeight) {
		errs = append(errs, fmt.Errorf("--weight %v: want a number above 0, at most %d", f.weight, maxWeight))
	}
	if len(f.zone) > maxZone {
		errs = append(errs, fmt.Errorf("--zone: want at most %d bytes", maxZone))
	}
	if len(f.name) > maxName || strings.ContainsFunc(f.name, func(r rune) bool { return !unicode.IsGraphic(r) || r == ' ' }) {
		errs = append(errs, fmt.Errorf("--node-name: want at most %d bytes without spaces", maxName))
	}
	if !(f.rate >= 0) {
		errs = append(errs, errors.New("--rate-limit: want a number of at least 0"))
	}
	return errs
}

// readTexts parses the string flags that are durations, networks and the like.
func (f *serveFlags) readTexts() (errs []error) {
	defaultLinger := "2s"
	if f.expect == 1 && f.join == "" { // a single node has no load balancer that must notice its stop
		defaultLinger = "0s"
	}
	var err error
	if f.linger, err = time.ParseDuration(cmp.Or(f.lingerText, defaultLinger)); err != nil || f.linger < 0 {
		errs = append(errs, fmt.Errorf("--linger %q: want a duration such as 2s", f.lingerText))
	}
	if f.slow, err = time.ParseDuration(cmp.Or(f.slowText, "0")); err != nil || f.slow < 0 {
		errs = append(errs, fmt.Errorf("--log-slow %q: want a duration such as 500ms", f.slowText))
	}
	if f.backupAge, err = time.ParseDuration(f.backupAgeText); err != nil || f.backupAge < 0 {
		errs = append(errs, fmt.Errorf("--backup-age %q: want a duration such as 48h", f.backupAgeText))
	}

	if f.history, err = change.ParseBound(f.historyText); err != nil {
		errs = append(errs, fmt.Errorf("--history: %w", err))
	}
	if f.trusted, err = parseNetworks(f.trustedText); err != nil {
		errs = append(errs, fmt.Errorf("--trusted-proxies: %w", err))
	}
	if f.allowed, err = config.ParseAllowance(splitList(f.configEnv), splitList(f.configRoots)); err != nil {
		errs = append(errs, err)
	}
	if f.embed, err = api.ParseAncestors(f.embedText); err != nil {
		errs = append(errs, fmt.Errorf("--embed-ancestors: %w", err))
	}
	return errs
}

// checkReachable checks the flags by which clients and other nodes reach this one. It sets f.advertise if
// the node listens on a wildcard address.
func (f *serveFlags) checkReachable() (errs []error) {
	if (f.tlsCert == "") != (f.tlsKey == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key: want both or none"))
	}
	switch {
	case f.acme == (api.ACME{}):
	case f.tlsCert != "":
		errs = append(errs, errors.New("--acme-domain and --tls-cert: want one of the two"))
	case !strings.Contains(strings.Trim(f.acme.Domain, "."), ".") || strings.ContainsAny(f.acme.Domain, "/:* ,"):
		errs = append(errs, fmt.Errorf("--acme-domain %q: want the one full name of this node, as search-1.example.com", f.acme.Domain))
	case !strings.HasPrefix(f.acme.Directory, "https://"):
		errs = append(errs, fmt.Errorf("--acme-directory %q: want the https address of an authority, as https://acme-v02.api.letsencrypt.org/directory", f.acme.Directory))
	}
	if isWebURL(f.config) {
		errs = append(errs, fmt.Errorf("--config %q: want a file of this machine: fetch it, and put it there again when it changes, or run `shoal config apply`", f.config))
	}
	if f.baseURL != "" && !isWebURL(f.baseURL) {
		errs = append(errs, fmt.Errorf("--base-url %q: want http://host or https://host", f.baseURL))
	}

	// An entry with a scheme or a path matches no request.
	for _, host := range splitList(f.hosts) {
		if host != "*" && strings.ContainsAny(host, "/ \t@*") {
			errs = append(errs, fmt.Errorf("--allowed-hosts %q: want the name of a host, without a scheme or a path, or * for any", host))
		}
	}

	for _, entry := range splitList(f.join) {
		if err := checkJoin(entry); err != nil {
			errs = append(errs, fmt.Errorf("--join %q: %w", entry, err))
		}
	}

	// Other nodes cannot connect to a wildcard address.
	host, _, err := net.SplitHostPort(f.clusterListen)
	if err == nil && isWildcard(host) && f.advertise == "" {
		if f.advertise, err = addressTowards(splitList(f.join)); err != nil {
			errs = append(errs, fmt.Errorf("--advertise: --cluster-listen is a wildcard address: %w", err))
		}
	}
	return errs
}

// addressTowards returns the address from which this machine connects to the first of the others that is
// an IP address. It skips names, which may later mean another machine, and loopback.
func addressTowards(others []string) (string, error) {
	for _, other := range others {
		host, _, err := net.SplitHostPort(other)
		if err != nil {
			host = strings.Trim(other, "[]")
		}
		if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() {
			continue
		}

		// Dialing UDP sends nothing. The system chooses the route, which does not depend on the port.
		conn, err := net.Dial("udp", net.JoinHostPort(host, "7702"))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return conn.LocalAddr().(*net.UDPAddr).IP.String(), nil
	}
	return "", errors.New("name the address that other nodes reach this one by, or the others by addresses in --join")
}

// checkJoin refuses an entry of --join that cannot name a node. The node would start with such an entry,
// and nobody would notice the mistake as long as other nodes find this one.
func checkJoin(entry string) error {
	// A colon comes before a port, except in an IPv6 address.
	host, port := entry, ""
	if _, err := netip.ParseAddr(strings.Trim(entry, "[]")); err != nil && strings.Contains(entry, ":") {
		if host, port, err = net.SplitHostPort(entry); err != nil {
			return errors.New("want host:port, a host, or a service record such as _shoal._tcp.example.com")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("port %q: want a number from 1 to 65535", port)
		}
	}

	if host == "" || strings.ContainsAny(host, "/ \t@") {
		return errors.New("want the name or the address of a host, without a scheme")
	}
	return nil
}

// secure reports whether the API speaks TLS.
func (f *serveFlags) secure() bool { return f.tlsCert != "" || f.acme.Domain != "" }

// ownURL returns the default address of the API in links: that of its domain or listener. If it listens on
// a wildcard address, ownURL takes the host that other nodes use.
func (f *serveFlags) ownURL() string {
	scheme := "http://"
	if f.secure() {
		scheme = "https://"
	}

	host, port, err := net.SplitHostPort(f.listen)
	if f.acme.Domain != "" {
		return scheme + f.acme.Domain // at port 443
	}
	if err == nil && isWildcard(host) {
		cluster, _, _ := net.SplitHostPort(f.clusterListen) // checked before
		return scheme + net.JoinHostPort(cmp.Or(f.advertise, cluster), port)
	}
	return scheme + f.listen
}

// parseNetworks parses a comma-separated list of networks and addresses.
func parseNetworks(text string) (all []netip.Prefix, err error) {
	for _, part := range splitList(text) {
		// An address is a network with one address.
		if addr, err := netip.ParseAddr(part); err == nil {
			all = append(all, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}

		network, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("%q: want a network such as 10.0.0.0/24, or an address", part)
		}

		// Clear the bits after the prefix: with other bits it would match nothing.
		all = append(all, network.Masked())
	}
	return all, nil
}

func isWildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
