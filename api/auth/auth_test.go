package auth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// keyring knows one member's key.
type keyring struct {
	key       string
	anonymous bool
	closed    bool // the socket makes nobody an operator
	stale     bool // changes may have been missed
}

func (k keyring) Authenticate(_ context.Context, key string) (catalog.Viewer, error) {
	if key != k.key {
		return catalog.Viewer{}, unauthenticated("unknown")
	}
	return catalog.Viewer{Role: catalog.RoleMember, Name: "ci"}, nil
}

func (k keyring) MetricsViewer(_ context.Context, key string) (catalog.Viewer, bool) {
	return catalog.Viewer{Role: catalog.RoleMetrics, Name: "prometheus"}, key == metricsKey
}

const metricsKey = account.KeyPrefix + "3333333333333333333333333333333333333333333333333333333333333333"

func (k keyring) SessionViewer(_ context.Context, token string) (catalog.Viewer, error) {
	if token != "t" {
		return catalog.Viewer{}, unauthenticated("unknown")
	}
	return catalog.Viewer{Role: catalog.RoleMember, Name: "ann"}, nil
}

func (k keyring) AnonymousAccess() bool { return k.anonymous }

func (k keyring) Current() error {
	if k.stale {
		return call.Fail(call.ErrStale, "too old")
	}
	return nil
}

func (k keyring) OperatorBySocket() bool { return !k.closed }

func TestViewer_isDerivedFromTheCredential(t *testing.T) {
	t.Parallel()
	good, unknown := account.KeyPrefix+strings.Repeat("a", 64), account.KeyPrefix+strings.Repeat("c", 64)
	for _, c := range []struct {
		what, authorization, apiKey string
		anonymous                   bool
		want                        string // name of the viewer; "" if refused
	}{
		{"a member's key", "Bearer " + good, "", false, "ci"},
		{"the scheme in any case, blanks around the key", "bearer  " + good + " ", "", false, "ci"},
		{"the other header", "", good, false, "ci"},
		{"Authorization goes before the other header", "Bearer " + unknown, good, false, ""},
		{"no credential", "", "", false, ""},
		{"no credential where anonymous access is on", "", "", true, catalog.Guest().Name},
		{"a bad key where anonymous access is on", "Bearer " + unknown, "", true, ""},
		{"another scheme where anonymous access is on", "Basic " + good, "", true, ""},
		{"a key of another form", "Bearer " + good[:40], "", false, ""},
		{"a key with upper-case digits", "Bearer " + account.KeyPrefix + strings.Repeat("A", 64), "", false, ""},
		{"an empty bearer", "Bearer ", "", true, ""},
	} {
		a := New(keyring{key: good, anonymous: c.anonymous}, nil)
		v, err := a.Viewer(context.Background(), Request{Authorization: c.authorization, APIKey: c.apiKey})
		switch {
		case c.want == "" && !errors.Is(err, call.ErrUnauthenticated):
			t.Errorf("%s: viewer %q, error %v; want a refusal", c.what, v.Name, err)
		case c.want != "" && (err != nil || v.Name != c.want):
			t.Errorf("%s: viewer %q, error %v; want %q", c.what, v.Name, err, c.want)
		}
	}
}

// agentTokens knows one access token.
type agentTokens string

func (k agentTokens) Authenticate(_ context.Context, token string) (catalog.Viewer, error) {
	if token != string(k) {
		return catalog.Viewer{}, call.Fail(call.ErrUnauthenticated, "no")
	}
	return catalog.Viewer{Role: catalog.RoleMember, Name: "agent"}, nil
}

// An agent's access token only opens the tools.
func TestAgentAccessToken_worksOnlyForTheMCPServer(t *testing.T) {
	t.Parallel()
	a := New(keyring{}, agentTokens("shoal_at_good"))
	for _, c := range []struct {
		token string
		tools bool
		want  string
	}{
		{"shoal_at_good", true, "agent"},
		{"shoal_at_bad", true, ""},
		{"shoal_at_good", false, ""},
		{"shoal_rt_good", true, ""},
	} {
		v, err := a.Viewer(t.Context(), Request{Authorization: "Bearer " + c.token, Tools: c.tools})
		if v.Name != c.want || (c.want == "") != errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("%s, for tools %t: viewer %q, error %v; want %q", c.token, c.tools, v.Name, err, c.want)
		}
	}
}

// A node that may have missed a revocation accepts no credential but a key for metrics. Anonymous
// access and the operator's socket still work.
func TestStaleNode_acceptsNoCredential(t *testing.T) {
	t.Parallel()
	good := account.KeyPrefix + strings.Repeat("a", 64)
	a := New(keyring{key: good, anonymous: true, stale: true}, agentTokens("shoal_at_good"))
	for _, c := range []struct {
		what    string
		request Request
		want    string // name of the viewer; "" if refused as stale
	}{
		{"a key", Request{Authorization: "Bearer " + good}, ""},
		{"a key in the other header", Request{APIKey: good}, ""},
		{"a session", Request{Session: "t"}, ""},
		{"a token of an agent", Request{Authorization: "Bearer shoal_at_good", Tools: true}, ""},
		{"a key for metrics, elsewhere", Request{Authorization: "Bearer " + metricsKey}, ""},
		{"a key, at the metrics", Request{Authorization: "Bearer " + good, Metrics: true}, ""},
		{"a key for metrics, at the metrics", Request{Authorization: "Bearer " + metricsKey, Metrics: true}, "prometheus"},
		{"nothing", Request{}, catalog.Guest().Name},
		{"the socket", Request{Socket: true}, catalog.Operator().Name},
	} {
		v, err := a.Viewer(t.Context(), c.request)
		if v.Name != c.want || (c.want == "" && v.Role != catalog.RoleGuest) != errors.Is(err, call.ErrStale) {
			t.Errorf("%s: viewer %q (%v), error %v; want %q", c.what, v.Name, v.Role, err, c.want)
		}
	}
}

// A request by the socket without a credential is the operator's. A key counts there as
// everywhere.
func TestOperatorSocket_requestsWithoutACredentialAreTheOperators(t *testing.T) {
	t.Parallel()
	good := account.KeyPrefix + strings.Repeat("a", 64)
	for _, c := range []struct{ authorization, want string }{
		{"", catalog.Operator().Name},
		{"Bearer " + good, "ci"},
		{"Bearer nonsense", ""},
	} {
		v, err := New(keyring{key: good}, nil).Viewer(t.Context(), Request{Authorization: c.authorization, Socket: true})
		if v.Name != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: viewer %q, error %v; want %q", c.authorization, v.Name, err, c.want)
		}
	}
}

// If the operator's rights are off, a request by the socket needs a credential.
func TestOperatorSocket_rightsCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	good := account.KeyPrefix + strings.Repeat("a", 64)
	for _, c := range []struct {
		what, authorization string
		anonymous           bool
		want                string
	}{
		{"nobody", "", false, ""},
		{"nobody where anonymous access is on", "", true, catalog.Guest().Name},
		{"a key", "Bearer " + good, false, "ci"},
	} {
		keys := keyring{key: good, anonymous: c.anonymous, closed: true}
		v, err := New(keys, nil).Viewer(t.Context(), Request{Authorization: c.authorization, Socket: true})
		if v.Name != c.want || (c.want == "") != errors.Is(err, call.ErrForbidden) {
			t.Errorf("%s: viewer %q, error %v; want %q", c.what, v.Name, err, c.want)
		}
	}
}

// Only its owner may open the socket. Its directory's path may have any length, and the socket
// replaces one that was left behind.
func TestListenSocket_onlyItsOwnerMayOpenTheSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if HasSocket(dir) {
		t.Error("there is a socket in an empty directory")
	}
	for range 2 {
		ln, err := ListenSocket(dir)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, socketName))
		if err != nil || info.Mode().Perm() != 0o600 || !HasSocket(dir) {
			t.Errorf("mode %v, error %v", info.Mode(), err)
		}
		conn, err := DialSocket(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		ln.(*socket).UnixListener.Close() // like a kill: the file stays
	}
	ln, err := ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil || HasSocket(dir) {
		t.Errorf("after the end: %v, still there: %t", err, HasSocket(dir))
	}
}

// Keys of Sourcebot are refused with advice on how to make a valid one.
func TestSourcebotKey_isRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"sbk_" + strings.Repeat("a", 64), "sourcebot-" + strings.Repeat("a", 32)} {
		_, err := New(keyring{anonymous: true}, nil).Viewer(t.Context(), Request{APIKey: key})
		if !errors.Is(err, call.ErrUnauthenticated) || !strings.Contains(err.Error(), "/settings/keys") || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
