package account

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

func TestCredentials_areRefusedIfTheCatalogIsTooOld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bound string
		age   time.Duration
		stale bool
	}{
		{"", 10 * time.Minute, false},
		{"", 10*time.Minute + 1, true},
		{"1h", 59 * time.Minute, false},
		{"1h", 61 * time.Minute, true},
		{"0", 1000 * time.Hour, false},
		{"", cluster.UnknownAge, true},
		{"soon", 10 * time.Minute, false},
		{"soon", 11 * time.Minute, true}, // an invalid value opens nothing
	} {
		l := newCountingCatalog(t)
		l.person("ann@example.com", catalog.RoleMember)
		l.age = c.age
		k := NewKeyring(l, func(string) (string, bool) { return c.bound, true }, l.time, nil)
		if err := k.Current(); errors.Is(err, call.ErrStale) != c.stale {
			t.Errorf("%s=%q, %v old: %v; stale is %t", AgeVariable, c.bound, c.age, err, c.stale)
		}
	}
}

// A wrong clock, or another cluster key, makes the catalog look old. The answer names it.
func TestCurrent_namesTheFaultOfThisNode(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	l.person("ann@example.com", catalog.RoleMember)
	l.age, l.faults = time.Hour, []string{"the clock of this node is 1h0m0s ahead"}
	k := NewKeyring(l, func(string) (string, bool) { return "", false }, l.time, nil)
	if err := k.Current(); err == nil || !strings.Contains(err.Error(), "for 1h0m0s; the clock of this node is 1h0m0s ahead.") {
		t.Error(err)
	}
}

// A node without a catalog has no credentials to refuse.
func TestCredentials_ofANodeWithoutACatalogAreNotRefused(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	l.age = 1000 * time.Hour
	k := NewKeyring(l, func(string) (string, bool) { return "", false }, l.time, nil)
	if err := k.Current(); err != nil {
		t.Error(err)
	}
}

// A key may have been revoked in the cluster that replaced this one, even if this node recently
// heard of its own leader.
func TestCredentials_areRefusedByAReplacedCluster(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	l.person("ann@example.com", catalog.RoleMember)
	l.outlived = errors.New("the cluster was given up")
	k := NewKeyring(l, func(string) (string, bool) { return "0", true }, l.time, nil)
	if err := k.Current(); !errors.Is(err, call.ErrStale) || !strings.Contains(err.Error(), "given up") {
		t.Errorf("credentials: %v", err)
	}
}
