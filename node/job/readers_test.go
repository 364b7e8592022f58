package job

import (
	"context"
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

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host"
)

// people parses a list of ids: "3 7-9" is 3, 7, 8 and 9.
func people(list string) (ids []string) {
	for _, word := range strings.Fields(list) {
		first, last, ok := strings.Cut(word, "-")
		if !ok {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		for n := from; n <= to; n++ {
			ids = append(ids, strconv.Itoa(n))
		}
	}
	slices.Sort(ids)
	return ids
}

// readersHost is a code host that answers who may read its repository 7, with one answer after the other.
type readersHost struct {
	*httptest.Server
	mu      sync.Mutex
	answers []string // people, or a status such as "404!"
	asked   int
}

func newReadersHost(t *testing.T) *readersHost {
	t.Helper()
	d := &readersHost{}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	return d
}

func (d *readersHost) serve(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	github := strings.HasSuffix(r.URL.Path, "/collaborators")
	if !github && !strings.HasSuffix(r.URL.Path, "/permissions/users") {
		fmt.Fprint(w, `{"id": 7}`)
		return
	}

	answer := ""
	if d.asked < len(d.answers) {
		answer = d.answers[d.asked]
	}
	d.asked++
	if status, failed := strings.CutSuffix(answer, "!"); failed {
		code, _ := strconv.Atoi(status)
		w.WriteHeader(code)
		fmt.Fprint(w, `{}`)
		return
	}

	form, frame := `{"id": %s, "permissions": {"pull": true}}`, `[%s]`
	if !github {
		form, frame = `{"user": {"id": %s, "active": true}}`, `{"values": [%s], "isLastPage": true}`
	}
	var list []string
	for _, id := range people(answer) {
		list = append(list, fmt.Sprintf(form, id))
	}
	fmt.Fprintf(w, frame, strings.Join(list, ", "))
}

// gate is a world whose repository 1 is the repository 7 of such a host.
type gate struct {
	*world
	host *readersHost
	site string
	sync *readerSyncer
}

// Connections to hosts that tell all readers, and some readers.
const (
	allTold  = `{"type": "github", "url": "{base}", "token": {"env": "T"}, "orgs": ["acme"]}`
	someTold = `{"type": "bitbucket", "deploymentType": "server", "url": "{base}", "user": "u", "token": {"env": "T"}, "all": true}`
)

func newGate(t *testing.T, connection string) *gate {
	t.Helper()
	g := &gate{host: newReadersHost(t)}
	g.world = newWorld(t, `{"connections": {"a": `+strings.ReplaceAll(connection, "{base}", g.host.URL)+`}}`, 1)
	g.site = string(g.View().File().Connections[0].Kind()) + ":" + strings.TrimPrefix(g.host.URL, "http://")
	g.Do(&catalog.SayPermissionSync{Node: "n1", Permissions: catalog.PermissionSyncOn})
	g.list("a", g.site+":7")
	g.sync = &readerSyncer{log: slog.New(slog.DiscardHandler), hosts: host.Tools{
		Transport: http.DefaultTransport, Budgets: host.NewBudgets(g.Now), Now: g.Now,
		Secret: func(context.Context, config.Token) (string, error) { return "sekret", nil },
		Wait:   func(context.Context, time.Duration) error { return nil },
	}}
	return g
}

// list makes a connection list private repositories with these ids.
func (w *world) list(connection string, ids ...string) {
	w.t.Helper()
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: connection})
	page := &catalog.SyncPage{Connection: connection, Fence: w.Grant(catalog.JobSync, connection, "n1")}
	for _, id := range ids {
		page.Repos = append(page.Repos, catalog.ListedRepo{Name: "h/" + id, RepoFacts: catalog.RepoFacts{
			DisplayName: "acme/app", ExternalID: id, Visibility: catalog.Private,
		}})
	}
	w.Do(page, &catalog.FinishSync{Connection: connection, Fence: page.Fence, Hash: w.View().Connection(connection).Hash, Complete: true, Listed: uint32(len(ids))})
}

// ask runs one attempt of the permission sync.
func (g *gate) ask(cluster Cluster) error {
	g.t.Helper()
	a := g.begin(cluster)
	err := g.sync.runJob(g.t.Context(), a)
	if err != nil {
		g.Apply(&catalog.ReleaseJob{Kind: catalog.JobRepoSync, Subject: "1", Fence: a.job.Fence})
	}
	return err
}

// begin grants the job to the node.
func (g *gate) begin(cluster Cluster) *attempt {
	g.t.Helper()
	g.Do(&catalog.EnqueueJob{Kind: catalog.JobRepoSync, Subject: "1"})
	g.Grant(catalog.JobRepoSync, "1", "n1")
	return &attempt{job: g.View().Job(catalog.JobRepoSync, "1"), cluster: cluster}
}

// say reports from a listing of a person that they may read repository 1.
func (g *gate) say(subject string) {
	g.t.Helper()
	key := catalog.ReaderKey(g.site, subject)
	g.Do(&catalog.EnqueueJob{Kind: catalog.JobAccountSync, Subject: key})
	set, err := roaring.BitmapOf(1).ToBytes()
	if err != nil {
		g.t.Fatal(err)
	}
	g.Do(&catalog.FinishReaderAccess{Site: g.site, Subject: subject, Fence: g.Grant(catalog.JobAccountSync, key, "n1"), Add: set})
}

// may returns the stored readers of repository 1.
func (g *gate) may() []string {
	ids := storedReaders(g.View(), g.View().Repo(1))
	slices.Sort(ids)
	return ids
}

// A host's answer counts at once if few readers are lost, and otherwise if it is repeated. Until
// then nothing is written.
func TestRepositorySync_lossOfManyReadersMustBeRepeated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		before string   // readers before
		says   []string // the host's answers, in order
		after  string
		fails  string // part of the error
	}{
		{"nobody was known", "", []string{"1 2"}, "1 2", ""},
		{"one came and one left", "1-3", []string{"2-4"}, "2-4", ""},
		{"the same again", "1-3", []string{"1-3"}, "1-3", ""},
		{"nobody is left, and that twice", "1-3", []string{"", ""}, "", ""},
		{"nobody is left, and then they are back", "1-3", []string{"", "1-3"}, "1-3", "neither is believed"},
		{"nobody is left, and then it fails", "1-3", []string{"", "404!"}, "1-3", "ask again who may read"},
		{"twenty are lost", "1-21", []string{"1"}, "1", ""},
		{"twenty-one are lost, and half stay", "1-42", []string{"1-21"}, "1-21", ""},
		{"more than half are lost, and that twice", "1-43", []string{"1-21", "1-21"}, "1-21", ""},
		{"more than half are lost, then others", "1-43", []string{"1-21", "2-22"}, "1-43", "neither is believed"},
		{"as many came as were lost", "1-43", []string{"101-143"}, "101-143", ""},
		{"the host does not say", "1-3", []string{"404!"}, "1-3", "ask who may read"},
	} {
		g := newGate(t, allTold)
		if c.before != "" {
			g.host.answers = []string{c.before}
			if err := g.ask(g.Node("n1")); err != nil {
				t.Fatal(err)
			}
		}

		g.host.answers, g.host.asked = c.says, 0
		err := g.ask(g.Node("n1"))
		if (c.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: the error is %v, want %q", c.what, err, c.fails)
		}
		if got, want := g.may(), people(c.after); !slices.Equal(got, want) {
			t.Errorf("%s: %v may read it, want %v", c.what, got, want)
		}
		if g.host.asked != len(c.says) {
			t.Errorf("%s: the host was asked %d times, want %d", c.what, g.host.asked, len(c.says))
		}
	}
}

// A host that tells only some readers does not remove access from a person's own listing.
func TestRepositorySync_partialAnswerRemovesNothing(t *testing.T) {
	t.Parallel()
	g := newGate(t, someTold)
	g.say("9")
	for _, step := range []struct{ says, after string }{{"1 2", "1 2 9"}, {"2 3", "2 3 9"}, {"2 9", "2 9"}, {"2", "2 9"}} {
		g.host.answers, g.host.asked = []string{step.says}, 0
		if err := g.ask(g.Node("n1")); err != nil {
			t.Fatal(err)
		}
		if got := g.may(); !slices.Equal(got, people(step.after)) || !g.View().Access(1).Partial {
			t.Errorf("the host says %s: %v may read it, want %s", step.says, got, step.after)
		}
	}
}

// meanwhile is a cluster in which something happens before the first proposal.
type meanwhile struct {
	Cluster
	happens   func()
	proposals int
}

func (m *meanwhile) ProposeAll(ctx context.Context, cmds ...catalog.Command) (uint64, []catalog.Result, error) {
	if m.proposals++; m.proposals == 1 {
		m.happens()
	}
	return m.Cluster.ProposeAll(ctx, cmds...)
}

// A difference is based on the stored state. If a listing changes that, it is computed again, but
// only while the attempt holds the job.
func TestRepositorySync_recomputesAStaleDifference(t *testing.T) {
	t.Parallel()
	g := newGate(t, allTold)
	g.host.answers = []string{"1-3"}
	c := &meanwhile{Cluster: g.Node("n1"), happens: func() { g.say("9") }}
	if err := g.ask(c); err != nil || c.proposals != 2 || !slices.Equal(g.may(), people("1-3 9")) {
		t.Errorf("after a listing: %v with %d proposals, and %v may read it", err, c.proposals, g.may())
	}

	g.host.asked = 0
	c = &meanwhile{Cluster: g.Node("n1")}
	c.happens = func() {
		g.Do(&catalog.RevokeJob{Kind: catalog.JobRepoSync, Subject: "1", Fence: g.View().Job(catalog.JobRepoSync, "1").Fence, Reason: "lost"})
	}
	if err := g.ask(c); !refused(err) || c.proposals != 1 {
		t.Errorf("after the job was taken away: %v with %d proposals", err, c.proposals)
	}
}

// A command has a limited number of people. More people need several commands.
func TestRepositorySync_writesManyReadersInSeveralCommands(t *testing.T) {
	t.Parallel()
	g := newGate(t, allTold)
	for _, step := range []struct {
		found string
		want  uint64 // number of commands
	}{{"1-20000", 1}, {"1-20001", 1}, {"50001-50009", 2}, {"50001-50009 1-20001", 2}} {
		a := g.begin(g.Node("n1"))
		before, found := g.View().Index(), people(step.found)
		if err := g.sync.proposeDifference(t.Context(), a, g.View().Repo(1), found, false); err != nil {
			t.Fatal(err)
		}
		if got := g.View().Index() - before; got != step.want || !slices.Equal(g.may(), found) {
			t.Errorf("%s: %d commands and %d readers, want %d and %d", step.found, got, len(g.may()), step.want, len(found))
		}
		if a.holds() || g.View().Access(1).Readers != uint32(len(found)) {
			t.Errorf("%s: the job has not ended, or the answer is %+v", step.found, g.View().Access(1))
		}
	}
}

// A permission sync that is no longer needed fails for good.
func TestRepositorySync_failsForGoodIfNoLongerNeeded(t *testing.T) {
	t.Parallel()
	g := newGate(t, allTold)
	a := g.begin(g.Node("n1"))
	g.Do(&catalog.SayPermissionSync{Node: "n1", Permissions: catalog.PermissionSyncOff})
	if err := g.sync.runJob(t.Context(), a); err == nil || !strings.Contains(err.Error(), errPermanent.Error()) || g.host.asked > 0 {
		t.Errorf("where nothing is enforced: %v after %d questions", err, g.host.asked)
	}
}

// permissions returns the part of the plan about permissions.
func (w *world) permissions() string {
	var lines []string
	for _, line := range strings.Split(w.plan(), "\n") {
		if strings.Contains(line, "permissions") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, ", ")
}

// answered ends a permission sync successfully.
func (w *world) answered(id catalog.RepoID) {
	w.t.Helper()
	subject := catalog.RepoSubject(id)
	w.Do(&catalog.FinishRepoAccess{Repo: id, Fence: w.View().Job(catalog.JobRepoSync, subject).Fence, Seen: w.View().Index()})
}

func TestJobPlan_schedulesRepositorySyncs(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	w := newWorld(t, `{"connections": {
		"a": {"type": "gitea", "url": "https://a.example", "orgs": ["x"]},
		"b": {"type": "gitea", "url": "https://b.example", "orgs": ["x"], "enforcePermissions": false},
		"c": {"type": "gerrit", "url": "https://c.example"}}}`, 1)
	w.list("a", "gitea:a.example:1")
	w.list("b", "gitea:b.example:2")
	w.list("c", "gerrit:c.example:3")
	tell := func(what, want string) {
		t.Helper()
		if got := w.permissions(); got != want {
			t.Errorf("%s: the plan is %q, want %q", what, got, want)
		}
	}

	tell("nobody wants permissions", "")
	w.Do(&catalog.SayPermissionSync{Node: "n1", Permissions: catalog.PermissionSyncOn})
	tell("of what is closed by a host that tells, only", "enqueue repo_permissions 1")
	tell("there is a node", "grant repo_permissions 1")
	w.answered(1)

	rest := day - day/10 + repoOffset(1, day/5)
	w.Pass(rest - time.Second)
	tell("before its time", "")
	w.list("a", "gitea:a.example:1", "gitea:a.example:4")
	w.Pass(time.Second)
	tell("what was never asked for goes first", "enqueue repo_permissions 4, enqueue repo_permissions 1")
	tell("and is granted first", "grant repo_permissions 4, grant repo_permissions 1")
	w.answered(4)
	w.Do(&catalog.FinishJob{Kind: catalog.JobRepoSync, Subject: "1", Fence: w.View().Job(catalog.JobRepoSync, "1").Fence, Error: "no", Permanent: true})

	w.Pass(leastOld - rest) // since the last good answer for 1
	if got := w.permissions(); strings.Contains(got, "age") {
		t.Errorf("an answer of three days counts: %q", got)
	}
	w.Pass(time.Second)
	if got := w.permissions(); !strings.Contains(got, "age permissions of 1") {
		t.Errorf("an older one does not: %q", got)
	}
	if got := w.permissions(); strings.Contains(got, "age") || !w.View().AccessIsStale(w.View().Repo(1)) {
		t.Errorf("once is enough: %q", got)
	}
	w.answered(1)
	if w.View().AccessIsStale(w.View().Repo(1)) {
		t.Error("a good answer does not end that")
	}
}

func TestPermissionAnswer_expiresAfterSeveralIntervals(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for interval, want := range map[time.Duration]time.Duration{0: 72 * time.Hour, time.Hour: 72 * time.Hour, 24 * time.Hour: 72 * time.Hour, 25 * time.Hour: 75 * time.Hour} {
		if got := now.Sub(AnswersEnd(now, interval)); got != want {
			t.Errorf("asked every %v an answer counts for %v, want %v", interval, got, want)
		}
	}
}

func TestPermissionIssue_isShownAfterThreeFailures(t *testing.T) {
	t.Parallel()
	for want, jobs := range map[string][]*catalog.Job{
		"":  {nil, {State: catalog.JobDone, Error: "x"}, {State: catalog.JobWaiting, Attempt: 9, Error: "x"}, {State: catalog.JobBackoff, Attempt: 2, Error: "x"}},
		"x": {{State: catalog.JobFailed, Error: "x"}, {State: catalog.JobBackoff, Attempt: 3, Error: "x"}},
	} {
		for _, j := range jobs {
			if got := AccessIssue(j); got != want {
				t.Errorf("%+v: %q, want %q", j, got, want)
			}
		}
	}
}
