package main

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// flagsOf returns the flags of `shoal serve` for an environment and arguments.
func flagsOf(t *testing.T, env map[string]string, args ...string) (serveFlags, error) {
	t.Helper()
	var f serveFlags
	cmd := newServeCommand(func(name string) string { return env[name] }, &f)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return f, f.check()
}

// An invalid value stops the start, and never counts as zero.
func TestServe_invalidValuesStopTheStart(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"SHOAL_RATE_LIMIT": "abc", "SHOAL_WEIGHT": "heavy", "SHOAL_REPLICAS": "two", "SHOAL_BOOTSTRAP_EXPECT": "3.5",
		"SHOAL_LINGER": "soon", "SHOAL_TRUSTED_PROXIES": "everybody", "SHOAL_LISTEN": "7700", "SHOAL_METRICS_LISTEN": "9100",
		"SHOAL_BASE_URL": "not a url", "SHOAL_TLS_CERT": "cert.pem", "SHOAL_EMBED_ANCESTORS": "https://*.example.com",
		"REQUIRE_APPROVAL_NEW_MEMBERS": "off", "AUTH_SESSION_MAX_AGE_SECONDS": "1d", "AUTH_EE_ALLOW_EMAIL_ACCOUNT_LINKING": "0",
		"SHOAL_OAUTH_REFRESH_GRACE": "31m", "SHOAL_ASK_RETENTION_DAYS": "0", "SHOAL_OPERATOR_SOCKET": "perhaps", "SHOAL_MAX_PERMISSION_AGE": "5s",
		"SHOAL_AUDIT_QUERIES": "some", "SHOAL_AUDIT_DISK_MB": "4g",
		"PERMISSION_SYNC_ENABLED": "ture", "EXPERIMENT_EE_PERMISSION_SYNC_ENABLED": "yes", "FORCE_ENABLE_ANONYMOUS_ACCESS": "please", "DEFAULT_MAX_MATCH_COUNT": "many",
		"SHOAL_OAUTH_CIMD": "false", "SOURCEBOT_CHAT_MAX_STEP_COUNT": "0", "GITLAB_CLIENT_QUERY_TIMEOUT_SECONDS": "10m",
		"AUTH_EMAIL_CODE_LOGIN_ENABLED": "true", "OAUTH_ACCESS_TOKEN_TTL_SECONDS": "1h", "OAUTH_AUTHORIZATION_CODE_TTL_SECONDS": "3600", "OAUTH_REFRESH_TOKEN_TTL_SECONDS": "0",
		"SOURCEBOT_EE_AUDIT_RETENTION_DAYS": "-1", "SOURCEBOT_EE_AUDIT_LOGGING_ENABLED": "maybe",
	} {
		_, err := flagsOf(t, map[string]string{name: value})
		if err == nil {
			t.Fatalf("%s=%s is taken", name, value)
		}
		if (strings.HasPrefix(name, "SHOAL_R") || strings.HasPrefix(name, "SHOAL_O") || strings.HasPrefix(name, "SHOAL_A") || strings.HasPrefix(name, "SHOAL_MAX")) && !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	for _, args := range [][]string{
		{"--weight", "1e300"}, {"--weight", "inf"}, {"--weight", "nan"}, {"--rate-limit", "nan"}, {"--rate-limit", "-1"},
		{"--zone", strings.Repeat("z", 300)}, {"--node-name", strings.Repeat("n", 64)}, {"--node-name", "a b"}, {"--node-name", "a\x1b[2J"}, {"--replicas", "0"}, {"--cluster-listen", "0.0.0.0:7701"},
		{"--config", "https://example.com/shoal.json"}, {"--allowed-hosts", "https://code.example.com"}, {"--allowed-hosts", "a.example.com,*.example.com"},
		{"--embed-ancestors", "*"}, {"--embed-ancestors", "https://wiki.example.com/page"},
		{"--acme-domain", "a.example.com"}, {"--acme-directory", "https://ca.example.com"}, {"--acme-domain", "localhost", "--acme-directory", "https://ca.example.com"},
		{"--acme-domain", "a.example.com", "--acme-directory", "https://ca.example.com", "--tls-cert", "c", "--tls-key", "k"}, {"--acme-domain", "a.example.com,b.example.com", "--acme-directory", "https://ca.example.com"},
		{"--acme-domain", "a.example.com", "--acme-directory", "http://ca.example.com"}, {"--acme-email", "ann@example.com"},
		{"--join", "10.0.0.1:99999"}, {"--join", "10.0.0.1:7702,10.0.0.2:"}, {"--join", "10.0.0.1:0"}, {"--join", "http://10.0.0.1:7702"}, {"--join", ":7702"}, {"--join", "a:b:c"},
	} {
		if _, err := flagsOf(t, nil, args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

func TestJoinFlag_readsAddressesOfOtherNodes(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"10.0.0.1:7702", "10.0.0.1", "n1.example", "n1.example:7702", "[2001:db8::1]:7702", "2001:db8::1", "[2001:db8::1]", "_shoal._tcp.example.com"} {
		if _, err := flagsOf(t, nil, "--join", entry); err != nil {
			t.Errorf("%s: %v", entry, err)
		}
	}
}

// A node that listens on a wildcard address advertises the address of the route to the others.
func TestAdvertisedAddress_isThatOfTheRouteToOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ join, want, says string }{
		{"n1.example,127.0.0.1:7702", "", "name the address that other nodes reach this one by"},
		{"", "", "name the address that other nodes reach this one by"},
	} {
		f, err := flagsOf(t, nil, "--cluster-listen", "0.0.0.0:7701", "--join", c.join)
		if f.advertise != c.want || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %q, %v", c.join, f.advertise, err)
		}
	}

	// Each address of this machine routes to itself.
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		ip := a.(*net.IPNet).IP
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		for _, join := range []string{ip.String(), "n1.example," + net.JoinHostPort(ip.String(), "7702")} {
			if f, err := flagsOf(t, nil, "--cluster-listen", "0.0.0.0:7701", "--join", join); err != nil || f.advertise != ip.String() {
				t.Errorf("%s: %q, %v", join, f.advertise, err)
			}
		}
	}
}

func TestOwnURL_isDerivedFromTheListenAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "http://127.0.0.1:7700"},
		{[]string{"--listen", "0.0.0.0:80", "--cluster-listen", "10.0.0.1:7701"}, "http://10.0.0.1:80"},
		{[]string{"--listen", ":7700", "--cluster-listen", ":7701", "--advertise", "n1.example"}, "http://n1.example:7700"},
		{[]string{"--tls-cert", "c", "--tls-key", "k"}, "https://127.0.0.1:7700"},
		{[]string{"--base-url", "https://shoal.example/"}, "https://shoal.example"},
	} {
		f, err := flagsOf(t, nil, c.args...)
		if got := cmp.Or(f.baseURL, f.ownURL()); err != nil || got != c.want {
			t.Errorf("%v: %q, %v; want %q", c.args, got, err, c.want)
		}
	}
}

// Anonymous access is logged as a warning whenever it begins: at the start, or with a new
// configuration.
func TestAnonymousAccess_isLoggedAsAWarning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		on, warned := false, 0
		ctx, cancel := context.WithCancel(t.Context())
		go watchAnonymous(ctx, func() bool { return on }, func() { warned++ })
		for i, want := range []int{0, 1, 1, 1, 2} {
			on = i != 0 && i != 3
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if warned != want {
				t.Errorf("step %d: warned %d times, want %d", i, warned, want)
			}
		}
		cancel()
	})
}

// A checkout for a demo must have its own history, because others cannot be indexed.
func TestDemo_needsACheckoutWithItsOwnHistory(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, dir := range []string{"clone/.git", "clone/a/b", "linked", "plain"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(top, "linked", ".git"), "gitdir: ../clone/.git/worktrees/linked\n")

	for dir, says := range map[string]string{"clone": "", "clone/a/b": "", "linked": "Name a checkout with a .git directory", "plain": "no git repository there"} {
		root, err := checkoutRoot(filepath.Join(top, dir))
		if says == "" && (err != nil || root != filepath.Join(top, "clone")) {
			t.Errorf("%s: %q, %v", dir, root, err)
		}
		if says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", dir, err, says)
		}
	}
}
