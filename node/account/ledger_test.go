package account

import (
	"context"
	"crypto/sha256"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// countingCatalog is the catalog of one node that counts what is written.
type countingCatalog struct {
	t *testing.T

	mu       sync.Mutex // guards the fields below
	state    *catalog.State
	index    uint64
	now      time.Time
	written  map[string]int // commands by name
	age      time.Duration  // of the catalog
	outlived error          // why it is no longer valid
	faults   []string
}

func newCountingCatalog(t *testing.T) *countingCatalog {
	return &countingCatalog{t: t, state: catalog.New(), now: time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC), written: map[string]int{}}
}

func (l *countingCatalog) View() *catalog.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.View()
}

func (l *countingCatalog) Propose(_ context.Context, cmds ...catalog.Command) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index++
	for _, c := range cmds {
		l.written[catalog.CommandName(c)]++
	}

	// Encode and decode, as in the log.
	e := catalog.Entry{At: l.now, Node: "n1", Commands: cmds}
	data, err := e.Encode()
	if err != nil {
		return 0, err
	}
	if e, err = catalog.DecodeEntry(l.index, data); err != nil {
		return 0, err
	}
	for _, r := range l.state.Apply(e) {
		if r.Err != nil {
			return l.index, r.Err
		}
	}
	return l.index, nil
}

func (l *countingCatalog) Sync(context.Context) (uint64, error) { return l.index, nil }

func (l *countingCatalog) Age() time.Duration { return l.age }

func (l *countingCatalog) Outlived() error { return l.outlived }

func (l *countingCatalog) Faults() []string { return l.faults }

func (l *countingCatalog) AwaitOn(context.Context, uint64, ...string) []string { return nil }

func (l *countingCatalog) Members() []cluster.Member { return nil }

// Secret creates the secret by an entry, as in a cluster.
func (l *countingCatalog) Secret(ctx context.Context, name string) ([]byte, error) {
	if l.View().Secret(name) == nil {
		if _, err := l.Propose(ctx, &catalog.SetSecret{Name: name, Sealed: []byte{1}, IfAbsent: true}); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256([]byte(name))
	return sum[:], nil
}

func (l *countingCatalog) time() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *countingCatalog) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

func (l *countingCatalog) entries() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.index
}

// person creates an account.
func (l *countingCatalog) person(email string, role catalog.Role) *UserInfo {
	l.t.Helper()
	u, err := NewPeople(l).CreateUser(l.t.Context(), Operator(), CreateUserRequest{Email: email, Role: role})
	if err != nil {
		l.t.Fatal(err)
	}
	return u
}
