package job

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/host"
)

// pushes is a Gitea server that reports which repositories of acme were pushed to.
type pushes struct {
	*httptest.Server
	mu    sync.Mutex
	at    map[int64]time.Time // by the server's repository id
	calls []string
	down  bool
	page  int // entries per page; 0: all on one page
}

func newPushes(t *testing.T) *pushes {
	t.Helper()
	p := &pushes{at: map[int64]time.Time{}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *pushes) push(id int64, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[id] = at
}

func (p *pushes) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	repo := func(id int64) map[string]any {
		return map[string]any{"id": id, "full_name": fmt.Sprintf("acme/r%d", id), "updated_at": p.at[id]}
	}
	path, id := strings.TrimPrefix(r.URL.Path, "/api/v1/"), int64(0)
	switch n, _ := fmt.Sscanf(path, "repositories/%d", &id); {
	case p.down:
		w.WriteHeader(http.StatusBadRequest)
	case n == 1 && (id >= foreign || p.at[id].IsZero()):
		w.WriteHeader(http.StatusNotFound)
	case n == 1:
		_ = json.NewEncoder(w).Encode(repo(id))
	case path == "orgs/acme":
		_ = json.NewEncoder(w).Encode(map[string]any{"id": 7})
	case path == "repos/search":
		ids := []int64{}
		for id := range p.at {
			ids = append(ids, id)
		}
		slices.SortFunc(ids, func(a, b int64) int { return p.at[b].Compare(p.at[a]) })
		var list []map[string]any
		for _, id := range ids {
			list = append(list, repo(id))
		}
		w.Header().Set("X-Total-Count", fmt.Sprint(len(list)))
		if n := p.page; n > 0 {
			at, _ := strconv.Atoi(r.URL.Query().Get("page"))
			from := min((at-1)*n, len(list))
			if list = list[from:]; len(list) > n {
				list = list[:n]
				q := r.URL.Query()
				q.Set("page", strconv.Itoa(at+1))
				w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.Path, q.Encode()))
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "data": list})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// foreign is the first id of repositories that the connection does not select.
const foreign = 1000

// pushWorld is a cluster whose connection lists two repositories of the server, both indexed. It
// has a follower and a poller for the first node.
type pushWorld struct {
	*clustertest.World
	server *pushes
	follow *Follower
	poll   *Poller
	told   []string // nodes that got a signal
}

func newPushWorld(t *testing.T, nodes int) *pushWorld {
	t.Helper()
	w := &pushWorld{server: newPushes(t)}
	w.World = clustertest.New(t, fmt.Sprintf(`{"connections": {"a": {"type": "gitea", "url": %q, "orgs": ["acme"]}}}`, w.server.URL), nodes)
	n := w.Node("n1")
	now := w.Now()
	prefix := "gitea:" + strings.TrimPrefix(w.server.URL, "http://") + ":"

	fence := w.Grant(catalog.JobSync, "a", "n1")
	page := &catalog.SyncPage{Connection: "a", Fence: fence}
	for id := range int64(2) {
		w.server.push(id+1, now.Add(-48*time.Hour))
		page.Repos = append(page.Repos, catalog.ListedRepo{Name: fmt.Sprintf("h/acme/r%d", id+1), Target: "orgs/acme", RepoFacts: catalog.RepoFacts{
			ExternalID: prefix + fmt.Sprint(id+1), PushedAt: now.Add(-48 * time.Hour), CloneURL: fmt.Sprintf("https://h/%d", id),
		}})
	}
	w.Do(page, &catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.View().Connection("a").Hash, Complete: true, Listed: 2})
	for id := range catalog.RepoID(2) {
		fence := w.Grant(catalog.JobIndex, catalog.RepoSubject(id+1), "n1")
		w.Do(&catalog.FinishIndex{Repo: id + 1, Fence: fence, Holder: "n1", InputKey: wantedKey("o", w.View(), w.View().Repo(id+1)) + ".x"})
	}

	tools := host.Tools{Transport: http.DefaultTransport, Budgets: host.NewBudgets(w.Now), Now: w.Now, Wait: func(context.Context, time.Duration) error { return nil }}
	w.poll = newPoller(n, nil, nil, func() string { return "o" }, func(catalog.RepoID) bool { return false }, w.Now)
	var mu sync.Mutex
	w.follow = newFollower(n, tools, func(_ context.Context, node string, s *Signal) error {
		mu.Lock()
		defer mu.Unlock()
		w.told = append(w.told, node)
		if node == "n1" {
			w.poll.Hear(s)
		}
		return nil
	}, w.poll.lastLook, slog.New(slog.DiscardHandler), w.Now)
	return w
}

// round advances the clock, runs the due looks, and ends all polls.
func (w *pushWorld) round(t *testing.T, pass time.Duration) (polled []catalog.RepoID) {
	t.Helper()
	w.Pass(pass)
	for _, conn := range w.follow.dueConnections() {
		w.follow.lookForPushes(t.Context(), conn)
	}
	polled = w.poll.duePolls(10)
	for _, id := range polled {
		w.poll.recordPoll(id, "", false, false)
	}
	return polled
}

// A reported repository is polled at once and once more, and the others only once a day. Nothing
// enters the log of the cluster.
func TestPushFollower_reportedPushesReplacePolling(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 1)
	w.round(t, 2*clockSlack)
	index := w.View().Index()
	for range 200 {
		if due := w.round(t, 31*time.Second); len(due) != 0 {
			t.Fatalf("%v are polled though nothing was pushed", due)
		}
	}

	w.server.push(2, w.Now())
	if due := w.round(t, 31*time.Second); !slices.Equal(due, []catalog.RepoID{2}) {
		t.Errorf("after a push to 2 %v are polled", due)
	}
	if due := w.round(t, 46*time.Second); !slices.Equal(due, []catalog.RepoID{2}) {
		t.Errorf("a while after the push to 2 %v are polled", due)
	}
	if due := w.round(t, 31*time.Second); len(due) != 0 {
		t.Errorf("later %v are polled", due)
	}
	if f := w.poll.Following("a"); f.Signal != "updated_at" || !f.Live || f.Problem != "" || f.Every != 30*time.Second {
		t.Errorf("the state is %+v", f)
	}
	if now := w.View().Index(); now != index {
		t.Errorf("the log went from %d to %d", index, now)
	}

	// Each repository is still polled once a day.
	seen := map[catalog.RepoID]int{}
	for range 26 * 60 {
		for _, id := range w.round(t, time.Minute) {
			seen[id]++
		}
	}
	if seen[1] != 1 || seen[2] != 1 {
		t.Errorf("within a day polls were %v", seen)
	}
}

// If a host does not report, its repositories are polled.
func TestPushFollower_pollsIfTheHostIsSilent(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 1)
	w.round(t, 2*clockSlack)
	w.server.mu.Lock()
	w.server.down = true
	w.server.mu.Unlock()
	polled := map[catalog.RepoID]int{}
	for range 90 {
		for _, id := range w.round(t, time.Minute) {
			polled[id]++
		}
	}
	if f := w.poll.Following("a"); f.Live || !strings.Contains(f.Problem, "400") {
		t.Errorf("the state is %+v", f)
	}
	if polled[1] == 0 || polled[2] == 0 {
		t.Errorf("polls within an hour and a half: %v", polled)
	}
}

// A restarted node does not poll what was indexed since its last push.
func TestPushFollower_pollsOnlyNewPushesAfterARestart(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 1)
	w.Pass(10 * time.Hour)
	w.poll.began = w.Now()
	w.server.push(1, w.Now().Add(-time.Hour))
	if due := w.poll.duePolls(10); len(due) != 0 {
		t.Errorf("before the first word of the host %v are polled", due)
	}
	if due := w.round(t, time.Second); !slices.Equal(due, []catalog.RepoID{1}) {
		t.Errorf("%v are polled, want 1", due)
	}
}

// One node asks the host, and all nodes get the signal.
func TestPushFollower_oneNodeAsksTheHostForAllNodes(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 3)
	asking := 0
	for _, n := range []string{"n1", "n2", "n3"} {
		f := newFollower(w.Node(n), w.follow.hosts, w.follow.tell, w.follow.lastLook, w.follow.log, w.Now)
		for _, conn := range f.dueConnections() {
			asking++
			f.lookForPushes(t.Context(), conn)
		}
	}
	slices.Sort(w.told)
	if asking != 1 || !slices.Equal(w.told, []string{"n1", "n2", "n3"}) {
		t.Errorf("%d nodes ask and tell %v", asking, w.told)
	}
}

// Another node takes over the connection: it continues from the last look, without reading a whole
// day of pushes.
func TestPushFollower_takeoverContinuesFromTheLastLook(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 1)
	w.server.page = 2
	for id := range int64(20) {
		w.server.push(id+1, w.Now().Add(-time.Hour))
	}
	w.round(t, 2*clockSlack)

	calls := func(told func(string, string) time.Time) int {
		w.server.mu.Lock()
		w.server.calls = nil
		w.server.mu.Unlock()
		w.Pass(time.Minute)
		f := newFollower(w.Node("n1"), w.follow.hosts, w.follow.tell, told, w.follow.log, w.Now)
		for _, conn := range f.dueConnections() {
			f.askHost(t.Context(), conn, f.known[conn.Shared().Name])
		}
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		return len(w.server.calls)
	}
	if n := calls(w.poll.lastLook); n != 2 {
		t.Errorf("another node makes %d calls, want one for the owner and one page", n)
	}

	// No node knows a look for another definition of the connection.
	another := func(name, _ string) time.Time { return w.poll.lastLook(name, "another") }
	if n := calls(another); n != 11 {
		t.Errorf("for a connection that is another one it makes %d calls, want one for the owner and 10 pages", n)
	}
}

// A repository that the catalog lacks causes a listing.
func TestPushFollower_newRepositoryCausesAListing(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 1)
	w.round(t, time.Hour)
	if j := w.View().Job(catalog.JobSync, "a"); j.State != catalog.JobDone {
		t.Errorf("with nothing new a listing is %v", j.State)
	}
	w.server.push(3, w.Now())
	w.round(t, time.Minute)
	if j := w.View().Job(catalog.JobSync, "a"); j.State != catalog.JobWaiting {
		t.Errorf("with a new repository a listing is %v", j.State)
	}
}

// A hinted listing starts at once, but the next one only after a pause: listings for hints may use
// a quarter of the host's calls. Pushes to repositories that the connection leaves out also give
// hints.
func TestHintedListing_staysWithinTheRateLimit(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 1)
	w.Pass(time.Hour)
	job := func() *catalog.Job { return w.View().Job(catalog.JobSync, "a") }
	list := func(calls uint32) {
		t.Helper()
		fence := w.Grant(catalog.JobSync, "a", "n1")
		w.follow.Hint("a") // a hint arrives while the listing runs
		w.follow.listHinted(t.Context())
		if job().Rerun {
			t.Error("a hint during a listing makes it begin anew")
		}
		w.Do(&catalog.FinishListing{Total: 2, FinishSync: catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.View().Connection("a").Hash, Complete: true, Account: catalog.Account{Calls: calls}}})
	}

	w.follow.Hint("a")
	w.follow.Hint("another")
	w.follow.listHinted(t.Context())
	if j := job(); j.State != catalog.JobWaiting || !j.Urgent {
		t.Fatalf("a first hint leaves a job that is %v", j.State)
	}
	for _, c := range []struct {
		calls uint32
		wait  time.Duration
	}{{1, 30 * time.Second}, {200, 200 * 4 * time.Hour / 14_400}, {100_000, 15 * time.Minute}} {
		list(c.calls)
		index := w.View().Index()
		for passed := time.Duration(0); passed < c.wait; passed += c.wait / 10 {
			w.follow.Hint("a")
			w.follow.listHinted(t.Context())
			if j := job(); j.State != catalog.JobDone {
				t.Fatalf("%v after a listing of %d calls a job is %v", passed, c.calls, j.State)
			}
			w.Pass(c.wait / 10)
		}
		if now := w.View().Index(); now != index {
			t.Errorf("hints wrote %d entries", now-index)
		}
		w.follow.listHinted(t.Context())
		if j := job(); j.State != catalog.JobWaiting {
			t.Errorf("%v after a listing of %d calls a job is %v", c.wait, c.calls, j.State)
		}
	}
	if len(w.follow.hints) != 0 {
		t.Errorf("hints stay: %v", w.follow.hints)
	}
}

// The node that asks for pushes also lists. After a failure any node may list.
func TestListingJob_runsOnTheNodeThatFollowsPushes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {
		"a": {"type": "github", "token": {"env": "T"}, "orgs": ["acme"]}, "b": {"type": "github", "token": {"env": "T"}, "orgs": ["other"]},
		"c": {"type": "github", "token": {"env": "U"}, "orgs": ["acme"]}}}`, 5)
	w.plan()
	var nodes []string
	for _, name := range []string{"a", "b", "c"} {
		j := w.View().Job(catalog.JobSync, name)
		if asks := askerOf(w.Node("n1").Members(), w.View().File().Connection(name)); j.Node != asks {
			t.Errorf("%s is listed by %s and asked for by %s", name, j.Node, asks)
		}
		nodes = append(nodes, j.Node)
	}
	if nodes[0] != nodes[1] {
		t.Errorf("connections of one credential are listed by %s and %s", nodes[0], nodes[1])
	}
	p := newPlanner(w.kinds, Input{View: w.View(), Now: w.Now(), Nodes: w.nodes})
	if home, bound := syncHome(p, &catalog.Job{Kind: catalog.JobSync, Subject: "a", State: catalog.JobBackoff}); home != nil || bound {
		t.Errorf("after a failure only %v may list", home)
	}
}

// If a host reports many repositories that the connection does not have, they are looked up in
// small groups.
func TestListNewRepositories_limitsLookups(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 1)
	const many = 3 * maxLookups / 2
	w.round(t, time.Hour)
	for id := range int64(many) {
		w.server.push(foreign+id, w.Now())
	}

	for round, want := range []int{maxLookups, many, many} {
		w.round(t, time.Minute)
		looked := 0
		for _, path := range w.server.calls {
			if strings.HasPrefix(path, "/api/v1/repositories/") {
				looked++
			}
		}
		if looked != want {
			t.Errorf("round %d: %d were looked up, want %d", round, looked, want)
		}
	}
}

// A commit to a directory is found within a minute, however old the commit before it is.
func TestPollInterval_ofADirectoryIsShort(t *testing.T) {
	t.Parallel()
	l := newListener(t, noSignal, 1, 1, nil)
	l.Pass(48 * time.Hour)
	last := l.Now()
	l.poll.polls[1] = poll{at: last}
	for url, atMost := range map[string]time.Duration{"https://h/x.git": 50 * time.Minute, "file:///x": busyPause} {
		repo := *l.View().Repo(1)
		repo.CloneURL, repo.PushedAt = url, last.Add(-100*time.Minute)
		if got := l.poll.nextPoll(l.View(), &repo, wantedPart(repo.InputKey), last).Sub(last); got > atMost || got < atMost*9/10 {
			t.Errorf("%s is polled after %v, want %v or a tenth less", url, got, atMost)
		}
	}
	for repos, want := range map[int]time.Duration{450: busyPause, 4500: 450 * time.Second} {
		if got := localPause(repos); got != want {
			t.Errorf("%d directories are polled after %v, want %v", repos, got, want)
		}
	}
}

// The longer ago the last push was, the longer a repository is not polled.
func TestPollInterval_isHalfOfTheTimeSinceTheLastPush(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]time.Duration{
		0: busyPause, time.Minute: busyPause, 10 * time.Minute: 5 * time.Minute, -time.Hour: time.Hour,
		time.Hour: 30 * time.Minute, 3 * time.Hour: time.Hour, 1000 * time.Hour: time.Hour,
	} {
		got := adaptivePause(&catalog.Repo{ID: 1, RepoFacts: catalog.RepoFacts{PushedAt: now.Add(-age)}}, poll{}, now, time.Hour)
		if got > want || got < want*9/10 {
			t.Errorf("a push %v ago: %v, want %v", age, got, want)
		}
	}
}
