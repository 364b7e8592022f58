package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// testCluster is a cluster in a test: one log, and nodes that apply it at once, or later while they are
// held.
type testCluster struct {
	t     testing.TB
	mu    sync.Mutex // guards the fields below
	now   time.Time
	log   *catalog.State
	index uint64
	views []*catalog.View // by index
	plain map[string][]byte
	vars  map[string]string // variables of the operator
	down  bool              // there is no leader
	nodes []*place
}

// place is a node with its own view of the catalog.
type place struct {
	*testCluster
	*Server
	first   bool
	held    bool
	heard   time.Time // when it last heard of the leader, while held
	applied uint64
	changed chan struct{}
}

const base = "https://code.example"

// newTestCluster returns nodes that know the accounts ann, a member, and olga, an owner.
func newTestCluster(t testing.TB, nodes int) *testCluster {
	w := &testCluster{t: t, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), log: catalog.New(), plain: map[string][]byte{}}
	w.views = []*catalog.View{w.log.View()}
	for i := range nodes {
		p := &place{testCluster: w, first: i == 0, changed: make(chan struct{})}
		p.Server = New(Deps{
			Cluster: p, BaseURL: func() string { return base }, Lookup: w.variable, Now: w.clock,
			Fetch: noDocuments{}, Log: slog.New(slog.DiscardHandler),
		})
		w.nodes = append(w.nodes, p)
	}
	for id, role := range map[string]catalog.Role{"ann": catalog.RoleMember, "olga": catalog.RoleOwner} {
		w.do(&catalog.PutAccount{Account: catalog.User{ID: id, Email: id + "@example.com", Role: role, State: catalog.AccountActive}})
	}
	if whole, err := w.nodes[0].rings.maintain(context.Background()); err != nil || whole {
		_, err = w.nodes[0].rings.maintain(context.Background())
		if err != nil {
			t.Fatal(err)
		}
	}
	w.pass(settleTime)
	return w
}

type noDocuments struct{}

func (noDocuments) Fetch(context.Context, string) ([]byte, error) {
	return nil, errors.New("it cannot be fetched")
}

func (w *testCluster) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// variable returns a variable of the test.
func (w *testCluster) variable(name string) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, ok := w.vars[name]
	return text, ok
}

// pass advances the clock.
func (w *testCluster) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// do applies a command that must be accepted.
func (w *testCluster) do(cmd catalog.Command) {
	w.t.Helper()
	if _, err := w.nodes[0].Propose(context.Background(), cmd); err != nil {
		w.t.Fatal(err)
	}
}

func (p *place) View() *catalog.View {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.views[p.applied]
}

func (p *place) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// applyLocked applies the rest of the log to a node.
func (p *place) applyLocked() {
	p.applied = p.index
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *place) Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return 0, fmt.Errorf("%w: of a test", cluster.ErrNoLeader)
	}
	p.index++
	results := p.log.Apply(catalog.Entry{Index: p.index, At: p.now, Node: "n", Commands: cmds})
	p.views = append(p.views, p.log.View())
	for _, other := range p.nodes {
		if !other.held || other == p {
			other.applyLocked()
		}
	}
	for _, r := range results {
		if r.Err != nil {
			return p.index, fmt.Errorf("refused: %w", r.Err)
		}
	}
	return p.index, nil
}

func (p *place) Await(ctx context.Context, index uint64) error {
	for {
		changed := p.Changed()
		if p.View().Index() >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *place) Sync(context.Context) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.applyLocked()
	return p.applied, nil
}

func (p *place) AwaitOn(context.Context, uint64, ...string) []string { return nil }
func (p *place) Members() []cluster.Member                           { return nil }
func (p *place) Leading() bool                                       { return p.first }

func (p *place) Age() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held {
		return 0
	}
	return p.now.Sub(p.heard)
}

func (p *place) Secret(ctx context.Context, name string) ([]byte, error) {
	if p.View().Secret(name) == nil {
		if _, err := p.Propose(ctx, &catalog.SetSecret{Name: name, Sealed: []byte{1}, IfAbsent: true}); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plain[name] == nil {
		p.plain[name] = make([]byte, 32)
		rand.Read(p.plain[name])
	}
	return p.plain[name], nil
}

// hold stops a node from applying entries. release lets it catch up.
func (p *place) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.heard = true, p.now
}

func (p *place) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = false
	p.applyLocked()
}

// entries returns the length of the log.
func (w *testCluster) entries() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.index
}

// The default lifetimes.
const (
	usualCode    = time.Minute
	usualAccess  = time.Hour
	usualConsent = 90 * 24 * time.Hour
)

const (
	callback = "http://localhost/callback"
	verifier = "a-verifier-of-a-test-that-is-long-enough-0123456789"
)

func challengeOf(verifier string) string {
	h := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(h[:])
}

// ann consents in most tests.
var ann = Person{Account: "ann", Session: "s1"}

// registered returns the id of a client that registered itself.
func (p *place) registered() string {
	p.t.Helper()
	r, err := p.Register(context.Background(), []byte(`{"client_name":"Agent","redirect_uris":["`+callback+`"]}`))
	if err != nil {
		p.t.Fatal(err)
	}
	return r.ClientID
}

// request returns an authorization request of a client.
func request(client string) url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {"http://localhost:4711/callback"}, "state": {"st"},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"}, "resource": {base + "/api/mcp"}, "scope": {"openid mcp offline_access"},
	}
}

// code consents for a client, and returns the code in the redirect.
func (p *place) code(who Person, client string) string {
	p.t.Helper()
	asked, err := p.Authorize(context.Background(), who, request(client))
	if err != nil {
		p.t.Fatal(err)
	}
	to, err := p.Decide(context.Background(), who, asked.Form, true)
	if err != nil {
		p.t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(to, "http://localhost:4711/callback?") || u.Query().Get("state") != "st" || u.Query().Get("iss") != base {
		p.t.Fatalf("sent to %s (%v)", to, err)
	}
	return u.Query().Get("code")
}

func codeForm(code, client string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {client}, "redirect_uri": {"http://localhost:4711/callback"},
		"code_verifier": {verifier}, "resource": {base + "/api/mcp"},
	}
}

func refreshForm(token, client string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {client}}
}

// enter performs a whole sign-in of a client for ann.
func (p *place) enter(client string) *Tokens {
	p.t.Helper()
	got, err := p.Exchange(context.Background(), "", codeForm(p.code(ann, client), client))
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// wants fails unless an error has this OAuth code.
func wants(t testing.TB, what string, err error, code string) {
	t.Helper()
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

func (p *place) good(token string) bool {
	v, err := p.Authenticate(context.Background(), token)
	return err == nil && v.Account == "ann" && v.Role == catalog.RoleMember
}
