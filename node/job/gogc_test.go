package job

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
)

// gogcNow is GOGC as it is set.
func gogcNow() int {
	p := debug.SetGCPercent(100)
	debug.SetGCPercent(p)
	return p
}

// A large listing keeps the heap small until it has ended, and a small one leaves
// it alone. Not parallel: the setting is the process's.
func TestGOGCIsLowWhileAListingIsLarge(t *testing.T) {
	before := gogcNow()
	w := newWorld(t, oneConnection, 1)
	nothing := func(context.Context, catalog.Command) error { return nil }
	l := newListing(w.View, nothing, &catalog.Job{Subject: "a"})
	for i := range largeListing {
		if got := gogcNow(); got != before {
			t.Fatalf("after %d repositories: %d, before %d", i, got, before)
		}
		name := fmt.Sprint("h/x/", i)
		if err := l.Repo(t.Context(), host.Repo{ExternalID: name, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if got, low := gogcNow(), min(before, buildGOGC); got != low {
		t.Errorf("after %d repositories: %d, want %d", largeListing, got, low)
	}
	l.close()
	if got := gogcNow(); got != before {
		t.Errorf("afterwards: %d, before %d", got, before)
	}
}

// Builds of two nodes in one process begin and end in any order: GOGC is low
// while any runs, and afterwards what it was before the first. Not parallel:
// the setting is the process's.
func TestGOGCIsLowWhileAnyNodeOfTheProcessBuilds(t *testing.T) {
	before := gogcNow()
	low := min(before, buildGOGC)

	first, second := smallHeap(), smallHeap()
	if got := gogcNow(); got != low {
		t.Errorf("while two build: %d, want %d", got, low)
	}
	first()
	first() // an end counts once
	if got := gogcNow(); got != low {
		t.Errorf("while one builds: %d, want %d", got, low)
	}
	second()
	if got := gogcNow(); got != before {
		t.Errorf("afterwards: %d, before %d", got, before)
	}
}
