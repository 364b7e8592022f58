package operate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
)

func TestJobsRequest_refusesInvalidFilters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		req  JobsRequest
		good bool
	}{
		{JobsRequest{}, true},
		{JobsRequest{State: "running", Kind: "index"}, true},
		{JobsRequest{State: "asleep"}, false},
		{JobsRequest{Kind: "laundry"}, false},
		{JobsRequest{PerPage: 101}, false},
	} {
		if err := tt.req.check(); (err == nil) != tt.good || err != nil && !errors.Is(err, call.ErrInvalid) {
			t.Errorf("%+v: %v, want good: %v", tt.req, err, tt.good)
		}
	}
}

// worldCluster implements Cluster with the reachability of a World.
type worldCluster struct {
	Cluster
	w *clustertest.World
}

func (r worldCluster) Alive(node string) bool { return r.w.Alive(node) }

func (worldCluster) NameOf(string) string { return "" }

// A leaving node gives away hidden repositories too, but does not count them.
func TestDrainProgress_doesNotCountHiddenRepositories(t *testing.T) {
	t.Parallel()
	file := `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`
	w := clustertest.New(t, file, 2)
	w.Repos("a", "r")
	w.Confirm("n1", catalog.MirrorKey(1))
	d := &Drainer{cluster: worldCluster{w: w}, replicas: 2}
	check := func(left int, done bool) {
		t.Helper()
		if got, is := d.Left(w.View(), "n1"); got != left || is != done {
			t.Errorf("left are %d, done %t; want %d, %t", got, is, left, done)
		}
	}
	check(1, false)

	w.Hide("a")
	check(0, false)
	w.Confirm("n2", catalog.MirrorKey(1))
	check(0, true)
}

// A job's id leads back to its key.
func TestJobID_leadsBackToItsKey(t *testing.T) {
	t.Parallel()
	for _, key := range []catalog.JobKey{
		{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(7)},
		{Kind: catalog.JobSync, Subject: "work"},
		{Kind: catalog.JobAccountSync, Subject: catalog.ReaderKey("https://git.example.com", "42")},
	} {
		if got, ok := jobKeyOf(jobID(key)); !ok || got != key {
			t.Errorf("%q: %+v, %v; want %+v", jobID(key), got, ok, key)
		}
	}
	for _, id := range []string{"", "index", "laundry:7"} {
		if got, ok := jobKeyOf(id); ok {
			t.Errorf("%q: %+v", id, got)
		}
	}
}

// A repeated event is recognised within an hour, while its id is remembered.
func TestWebhookDelivery_isRecognizedIfRepeatedWithinAnHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	d := newDeliveries(func() time.Time { return now })
	event := func(connection, id string) WebhookRequest {
		return WebhookRequest{Connection: connection, Delivery: id}
	}

	d.recordHandled(event("work", "1"))
	for _, tt := range []struct {
		req  WebhookRequest
		want bool
	}{
		{event("work", "1"), true},
		{event("work", "2"), false},
		{event("other", "1"), false},
		{event("work", ""), false}, // events without an id never repeat
	} {
		if got := d.wasHandled(tt.req); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.req, got, tt.want)
		}
	}

	now = now.Add(deliveryLife)
	if d.wasHandled(event("work", "1")) {
		t.Error("remembered for longer than its life")
	}

	for i := range maxDeliveries + 1 {
		d.recordHandled(event("many", fmt.Sprint(i)))
	}
	if d.wasHandled(event("many", "0")) || !d.wasHandled(event("many", "1")) || len(d.handled) != maxDeliveries {
		t.Errorf("%d events are remembered, want the last %d", len(d.handled), maxDeliveries)
	}
}

func TestSameRemote_ignoresSpellingOfTheURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"https://me@Host.example/Org/app.git/", "https://host.example/Org/app", true},
		{"HTTPS://host.example/app", "https://host.example/app", true},
		{"https://host.example/Org/app", "https://host.example/org/app", false}, // paths are case-sensitive
		{"https://host.example/app", "ssh://host.example/app", false},
		{"git@host.example:org/app.git", "git@host.example:org/app", true},
	} {
		if got := sameRemote(tt.a, tt.b); got != tt.want {
			t.Errorf("%s and %s: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

// An event concerns the repositories of its connection that it names, or all if it names none.
func TestPushEvent_concernsTheRepositoriesThatItNames(t *testing.T) {
	t.Parallel()
	repo := &catalog.Repo{
		Name:        "git.example.com/org/app",
		RepoFacts:   catalog.RepoFacts{CloneURL: "https://git.example.com/org/app.git"},
		Connections: []catalog.RepoConnection{{Name: "work"}},
	}
	for _, tt := range []struct {
		connection string
		event      host.Event
		want       bool
	}{
		{"work", host.Event{}, true},
		{"other", host.Event{}, false},
		{"work", host.Event{Paths: []string{"org/app"}}, true},
		{"work", host.Event{Paths: []string{"rg/app"}}, false}, // only whole parts of the path match
		{"work", host.Event{URLs: []string{"https://git.example.com/org/app"}}, true},
		{"work", host.Event{URLs: []string{"https://git.example.com/org/other"}}, false},
		{"other", host.Event{Paths: []string{"org/app"}}, false},
	} {
		if got := concernsRepo(&WebhookRequest{Connection: tt.connection, Event: tt.event}, repo); got != tt.want {
			t.Errorf("%s, %+v: %v, want %v", tt.connection, tt.event, got, tt.want)
		}
	}
}

func TestCompareJobs_ordersByUrgency(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 1, 31, 12, minute, 0, 0, time.UTC) }
	early := JobInfo{JobStatus: JobStatus{Started: at(1), NextTry: at(1)}, Queued: at(1), Finished: at(1)}
	late := JobInfo{JobStatus: JobStatus{Started: at(2), NextTry: at(2)}, Queued: at(2), Finished: at(2)}

	for state, earlyFirst := range map[catalog.JobState]bool{
		catalog.JobRunning: true, // longest running first
		catalog.JobWaiting: true,
		catalog.JobBackoff: true,
		catalog.JobFailed:  false, // last failed first
		catalog.JobDone:    false,
	} {
		if got := compareJobs(state, &early, &late) < 0; got != earlyFirst {
			t.Errorf("%v: the early one first: %v, want %v", state, got, earlyFirst)
		}
	}
}
