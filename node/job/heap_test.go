package job

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
)

// gogcNow returns the present GOGC.
func gogcNow() int {
	p := debug.SetGCPercent(100)
	debug.SetGCPercent(p)
	return p
}

// A large listing keeps the heap small while it runs; a small one does not. Not parallel: the
// setting belongs to the process.
func TestLargeListing_lowersGOGCWhileItRuns(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	w := newWorld(t, oneConnection, 1)
	nothing := func(context.Context, catalog.Command) error { return nil }
	l := newListing(w.View, nothing, &catalog.Job{Subject: "a"})
	for i := range largeListing {
		if got := gogcNow(); got != 100 {
			t.Fatalf("after %d repositories: %d", i, got)
		}
		name := fmt.Sprint("h/x/", i)
		if err := l.Repo(t.Context(), host.Repo{ExternalID: name, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if got := gogcNow(); got >= 100 {
		t.Errorf("after %d repositories: %d", largeListing, got)
	}
	l.resetGC()
	if got := gogcNow(); got != 100 {
		t.Errorf("afterwards: %d", got)
	}
}
