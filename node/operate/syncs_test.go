package operate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// outcomes returns the error of each listing, or its number of repositories, newest first.
func outcomes(runs []SyncRun) (out []string) {
	for _, r := range runs {
		out = append(out, fmt.Sprintf("%s %s %d %q", r.Began.UTC().Format(time.TimeOnly), r.Ended.Sub(r.Began), r.Repos, r.Error))
	}
	return out
}

// Each attempt to list a connection is recorded once, whenever the looks happen.
func TestSyncLog_recordsEachAttemptOnce(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}, "b": {"type": "git", "url": "file:///y"}}}`, 1)
	l := newSyncLog()
	begin := func() uint64 {
		w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "a"})
		return w.Grant(catalog.JobSync, "a", "n1")
	}
	end := func(fence uint64, err string) {
		if err != "" {
			w.Do(&catalog.FinishJob{Kind: catalog.JobSync, Subject: "a", Fence: fence, Error: err, Permanent: true})
			return
		}
		w.Do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.View().Connection("a").Hash})
	}
	look := func(want ...string) {
		t.Helper()
		l.recordEndedRuns(w.View())
		if got := outcomes(joinedSyncs(l.runsOf("a"))); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	look()

	// A look during the attempt records nothing. The first look after it records the outcome.
	fence := begin()
	look()
	w.Pass(3 * time.Second)
	end(fence, "no route")
	first := `22:13:20 3s 0 "no route"`
	look(first)
	look(first)

	// The next attempt begins before a look.
	w.Pass(time.Minute)
	fence = begin()
	l.recordEndedRuns(w.View())
	w.Pass(time.Second)
	end(fence, "")
	second := `22:14:23 1s 0 ""`
	fence = begin()
	look(second, first)

	// A released job was not done.
	w.Do(&catalog.ReleaseJob{Kind: catalog.JobSync, Subject: "a", Fence: fence})
	look(second, first)

	for i := range maxSyncs + 2 {
		end(begin(), fmt.Sprint(i))
		l.recordEndedRuns(w.View())
	}
	if got := joinedSyncs(append(l.runsOf("a"), l.runsOf("a")...)); len(got) != maxSyncs || got[0].Error != fmt.Sprint(maxSyncs+1) {
		t.Errorf("%d are told: %q", len(got), outcomes(got))
	}
	if got := l.runsOf("b"); len(got) != 0 {
		t.Errorf("of a connection that was never listed: %q", outcomes(got))
	}
}

// A connection is returned with its listings from the nodes that answer.
func TestConnection_isReturnedWithItsLastListings(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	got, err := d.ops.Connection(t.Context(), account.Operator(), "work")
	if err != nil || got.Name != "work" || got.State != "synced" || len(got.Syncs) != 1 || *got.Syncs[0].Repos != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := d.ops.Connection(t.Context(), account.Operator(), "home"); err != nil || got.State != "pending" || len(got.Syncs) != 0 {
		t.Errorf("one that was never listed: %+v, %v", got, err)
	}
	if got, err := d.ops.Connection(t.Context(), account.Operator(), "none"); !errors.Is(err, call.ErrNotFound) {
		t.Errorf("one that is not there: %+v, %v", got, err)
	}
}
