package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/query"
)

var worldCount = flag.Int("worlds", 60, "random worlds of watches")

// world is a cluster of a few nodes with one catalog, in which repositories get commits while nodes
// die, mirrors move, rights change, and receivers fail. The commits are texts: git and its index
// have tests of their own.
type world struct {
	receiving sync.Mutex // held by a receiver
	t         *testing.T
	r         *rand.Rand
	state     *catalog.State
	index     uint64
	now       time.Time

	nodes  map[string]*Watches
	alive  map[string]bool
	leader string
	lost   bool // the next answer of the catalog is lost on its way

	commits map[catalog.RepoID][]string // what each commit says, oldest first
	refuses map[string]bool             // receivers, by watch
	sent    map[string][]sent           // what receivers took, by watch
	firsts  map[catalog.RepoID]int      // commits of the first index
	sum     worldSum
}

// sent is what a receiver took.
type sent struct {
	id, repo string
	at       time.Time
	total    int // of commits, of which a notice has the newest ten
	commits  []string
}

const worldEpoch = uint64(1) << 24

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 11)), state: catalog.New(), now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
		nodes: map[string]*Watches{}, alive: map[string]bool{}, commits: map[catalog.RepoID][]string{}, refuses: map[string]bool{}, sent: map[string][]sent{}, firsts: map[catalog.RepoID]int{},
	}
	raw := []byte(`{"connections": {"a": {"type": "git", "url": "https://localhost/r", "enforcePermissions": true}}}`)
	file, err := config.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	w.do(&catalog.InitCluster{ID: "c"})
	w.do(catalog.NewSetConfig(raw, file))
	for i := range 3 {
		id := fmt.Sprintf("n%d", i+1)
		w.do(&catalog.PutMember{Member: catalog.Member{ID: id, Epoch: worldEpoch, Weight: 100, Zone: "z", Addr: id}})
		w.alive[id] = true
		w.start(id)
	}
	w.leader = "n1"
	fence := w.do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "a", Node: "n1", Epoch: worldEpoch, Deadline: w.now.Add(time.Hour)})
	page := &catalog.SyncPage{Connection: "a", Fence: fence}
	for i := range 3 {
		page.Repos = append(page.Repos, catalog.ListedRepo{Name: fmt.Sprintf("r%d", i), RepoFacts: catalog.RepoFacts{ExternalID: fmt.Sprintf("git:localhost:%d", i)}})
	}
	w.do(page)
	for i := range 3 {
		a := fmt.Sprintf("a%d", i)
		w.do(&catalog.PutAccount{Account: catalog.User{ID: a, Email: a + "@example.com", Role: catalog.RoleMember, State: catalog.AccountActive}})
	}
	for repo := range w.state.View().Repos() {
		w.push(repo.ID)
		w.firsts[repo.ID] = len(w.commits[repo.ID])
		for i := range 3 {
			if w.r.IntN(3) > 0 {
				w.do(&catalog.SetGrants{Account: fmt.Sprintf("a%d", i), Source: catalog.GrantedByOwner, Add: []catalog.RepoID{repo.ID}})
			}
		}
	}
	for i := range 6 {
		id := fmt.Sprintf("w%d", i)
		x := catalog.Watch{ID: id, Account: fmt.Sprintf("a%d", i%3), Name: id, Query: fmt.Sprintf("type:commit word%d", i%4), URL: "https://receiver.example.com/" + id}
		x.Secret, _ = w.nodes["n1"].box.Seal(context.Background(), []byte("s"), id)
		w.do(&catalog.PutWatch{Watch: x, New: true})
	}
	return w
}

// do applies a command, and returns its number.
func (w *world) do(c catalog.Command) uint64 {
	w.t.Helper()
	w.index++
	r := w.state.Apply(catalog.Entry{Index: w.index, At: w.now, Node: "n1", Commands: []catalog.Command{c}})[0]
	if r.Err != nil {
		w.t.Fatalf("%T: %v", c, r.Err)
	}
	return r.ID
}

// start starts a node, which remembers nothing.
func (w *world) start(id string) {
	n := &worldNode{w, id}
	x := New(Deps{Cluster: n, Gate: account.NewGate(n), Current: func() error { return nil }, Histories: n, Lookup: func(string) (string, bool) { return "", false },
		BaseURL: func() string { return "https://shoal.example.com" }, Now: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler)})
	x.client = &http.Client{Transport: n}
	x.news = n.news
	w.nodes[id] = x
}

// push adds commits to a repository and indexes them on some live node.
func (w *world) push(id catalog.RepoID) {
	w.sum.Pushes++
	for range 1 + w.r.IntN(2) {
		w.commits[id] = append(w.commits[id], fmt.Sprintf("word%d word%d", w.r.IntN(4), w.r.IntN(4)))
	}
	holder := w.anyNode()
	w.do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id)})
	fence := w.do(&catalog.GrantJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(id), Node: holder, Epoch: worldEpoch, Deadline: w.now.Add(time.Hour)})
	w.do(&catalog.FinishIndex{Repo: id, Fence: fence, Holder: holder, Revisions: []catalog.Revision{{Name: "HEAD", Commit: commitID(id, len(w.commits[id]))}},
		Shards: []catalog.ShardRef{{ID: fmt.Sprintf("%064x", w.index), Bytes: 1}}})
}

// commitID is the id of the commit with a number from 1.
func commitID(id catalog.RepoID, n int) string { return fmt.Sprintf("%08x%032x", id, n) }

func (w *world) anyNode() string {
	var live []string
	for id, is := range w.alive {
		if is {
			live = append(live, id)
		}
	}
	slices.Sort(live)
	return live[w.r.IntN(len(live))]
}

// worldNode is what one node knows of the world.
type worldNode struct {
	w  *world
	id string
}

func (n *worldNode) View() *catalog.View                                          { return n.w.state.View() }
func (n *worldNode) Await(context.Context, uint64) error                          { return nil }
func (n *worldNode) Outlived() error                                              { return nil }
func (n *worldNode) Self() string                                                 { return n.id }
func (n *worldNode) Alive(id string) bool                                         { return n.w.alive[id] }
func (n *worldNode) Leading() bool                                                { return n.w.leader == n.id }
func (n *worldNode) Secret(context.Context, string) ([]byte, error)               { return make([]byte, 32), nil }
func (n *worldNode) Off() bool                                                    { return false }
func (n *worldNode) News(*catalog.Repo, []catalog.Revision) (*change.News, error) { return nil, nil }

// Propose applies commands. Sometimes the entry is lost, or the answer to it.
func (n *worldNode) Propose(_ context.Context, cmds ...catalog.Command) (uint64, error) {
	w := n.w
	if w.lost && w.r.IntN(2) == 0 {
		return 0, errors.New("the entry is lost")
	}
	w.index++
	for _, r := range w.state.Apply(catalog.Entry{Index: w.index, At: w.now, Node: n.id, Commands: cmds}) {
		if r.Err != nil {
			return 0, r.Err
		}
	}
	if w.lost {
		return 0, errors.New("the answer is lost")
	}
	return w.index, nil
}

// news returns the commits behind a revision. A node that does not have them yet returns nil.
func (n *worldNode) news(repo *catalog.Repo, before []catalog.Revision) (newCommits, bool, error) {
	w := n.w
	if w.lost && w.r.IntN(4) == 0 {
		return nil, false, nil
	}
	var from, to int
	fmt.Sscanf(before[0].Commit[8:], "%x", &from)
	fmt.Sscanf(repo.Revisions[0].Commit[8:], "%x", &to)
	return &worldNews{w, repo.ID, from, to}, false, nil
}

type worldNews struct {
	w        *world
	repo     catalog.RepoID
	from, to int
}

func (n *worldNews) Close() {}
func (n *worldNews) Texts(_ context.Context, look func([]byte)) error {
	for _, text := range n.w.commits[n.repo][n.from:n.to] {
		look([]byte(text))
	}
	return nil
}

func (n *worldNews) Search(_ context.Context, req change.LogSearch) (*change.LogMatches, error) {
	var word string
	query.Map(req.Q, func(q query.Q) query.Q {
		if t, ok := q.(*query.Text); ok {
			word = t.Pattern
		}
		return q
	})
	out := &change.LogMatches{}
	for i := n.to; i > n.from; i-- {
		text := n.w.commits[n.repo][i-1]
		if !strings.Contains(text, word) {
			continue
		}
		if out.Total++; len(out.Commits) < req.Limit {
			out.Commits = append(out.Commits, change.CommitMatch{ID: commitID(n.repo, i), Message: text, Author: "Ann <a@b>", CommitTime: n.w.now})
		}
	}
	return out, nil
}

// RoundTrip is the receiver of all webhooks.
func (n *worldNode) RoundTrip(r *http.Request) (*http.Response, error) {
	w := n.w
	// The watches of a round are told side by side.
	w.receiving.Lock()
	defer w.receiving.Unlock()
	var body delivery
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.t.Fatal(err)
	}
	x := w.state.View().Watch(body.Watch.ID)
	repo := w.state.View().RepoByName(body.Repo)
	if repo == nil || !w.state.View().Visible(catalog.Viewer{Role: catalog.RoleMember, Account: x.Account}).Contains(repo.ID) {
		w.t.Errorf("%s is told of %s, which its owner may not see", x.ID, body.Repo)
	}
	status := http.StatusOK
	if w.refuses[x.ID] {
		status = http.StatusServiceUnavailable
	}
	// A receiver may take a request whose answer is lost.
	if took := !w.refuses[x.ID] || w.r.IntN(3) == 0; took {
		s := sent{id: body.ID, repo: body.Repo, at: body.At, total: body.Total}
		for _, h := range body.Hits {
			s.commits = append(s.commits, h.Commit)
		}
		w.sent[x.ID] = append(w.sent[x.ID], s)
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(&bytes.Buffer{}), Request: r}, nil
}

// run lets a live node work, and the leader send.
func (w *world) run() {
	w.now = w.now.Add(time.Duration(1+w.r.IntN(30)) * time.Second)
	w.nodes[w.anyNode()].round(context.Background())
	if w.alive[w.leader] {
		w.nodes[w.leader].sendRound(context.Background())
	}
}

// kill kills a node, or starts it again.
func (w *world) kill() {
	id := fmt.Sprintf("n%d", 1+w.r.IntN(3))
	live := 0
	for _, is := range w.alive {
		if is {
			live++
		}
	}
	if w.alive[id] && live == 1 {
		return
	}
	if w.alive[id] = !w.alive[id]; w.alive[id] {
		w.start(id)
	} else {
		w.sum.Kills++
	}
	if !w.alive[w.leader] {
		w.leader = w.anyNode()
	}
}

// move gives the mirror of a repository to a live node, and takes it from all others.
func (w *world) move(id catalog.RepoID) {
	w.sum.Moves++
	key, to := catalog.MirrorKey(id), w.anyNode()
	for i := range 3 {
		c := &catalog.Confirm{Node: fmt.Sprintf("n%d", i+1), Epoch: worldEpoch}
		if c.Node == to {
			c.Held = []string{key}
		} else {
			c.Lost = []string{key}
		}
		w.do(c)
	}
}

// Whatever happens to nodes, mirrors, rights and receivers: a watch tells of each matching commit
// that its owner could see all the time, in order; again only with the same id; and nobody is told
// of what they may not see.
func TestWatches_tellEachMatchOnceInRandomWorlds(t *testing.T) {
	t.Parallel()
	var sum worldSum
	for seed := range uint64(*worldCount) {
		w := newWorld(t, seed)
		touched := map[string]bool{} // account and repository: the right changed
		for range 60 {
			w.lost = w.r.IntN(4) == 0
			switch w.r.IntN(9) {
			case 0, 1:
				w.push(catalog.RepoID(1 + w.r.IntN(3)))
			case 2:
				w.kill()
			case 3:
				id := fmt.Sprintf("w%d", w.r.IntN(6))
				w.refuses[id] = !w.refuses[id]
			case 4:
				a, repo := fmt.Sprintf("a%d", w.r.IntN(3)), catalog.RepoID(1+w.r.IntN(3))
				w.sum.Rights++
				if touched[fmt.Sprint(a, repo)] = true; w.r.IntN(2) == 0 {
					w.do(&catalog.SetGrants{Account: a, Source: catalog.GrantedByOwner, Add: []catalog.RepoID{repo}})
				} else {
					w.do(&catalog.SetGrants{Account: a, Source: catalog.GrantedByOwner, Remove: []catalog.RepoID{repo}})
				}
			case 5:
				w.move(catalog.RepoID(1 + w.r.IntN(3)))
			default:
				w.run()
			}
		}

		// At last everything works.
		w.lost, w.refuses = false, map[string]bool{}
		for id := range w.alive {
			if !w.alive[id] {
				w.alive[id] = true
				w.start(id)
			}
		}
		for range 400 {
			w.now = w.now.Add(time.Minute)
			w.run()
		}
		w.judge(seed, touched)
		sum.add(w)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d worlds: %+v", *worldCount, sum)
	if sum.Told < 3**worldCount {
		t.Errorf("%d matches in %d worlds are too few for this test", sum.Told, *worldCount)
	}
}

// worldSum counts what happened in worlds.
type worldSum struct {
	Pushes, Kills, Moves, Rights int
	Told                         int // matches that a receiver took
	Counted                      int // matches beyond the ten of a notice, which only counts them
	Again                        int // notices that a receiver took once more, with the same id
}

func (s *worldSum) add(w *world) {
	n := &w.sum
	s.Pushes, s.Kills, s.Moves, s.Rights = s.Pushes+n.Pushes, s.Kills+n.Kills, s.Moves+n.Moves, s.Rights+n.Rights
	s.Told, s.Counted, s.Again = s.Told+n.Told, s.Counted+n.Counted, s.Again+n.Again
}

// judge compares what receivers took with what they should.
func (w *world) judge(seed uint64, touched map[string]bool) {
	view := w.state.View()
	for b := range view.Backlogs() {
		w.t.Errorf("seed %d: repository %d was never checked", seed, b.Repo)
	}
	for x := range view.Watches() {
		ids, last := map[string]string{}, time.Time{}
		counted := map[string]int{} // by repository: commits that notices count and do not have
		seen := map[string]bool{}
		for _, s := range w.sent[x.ID] {
			if seen[s.id] {
				w.sum.Again++
			} else {
				if seen[s.id] = true; s.at.Before(last) {
					w.t.Errorf("seed %d: %s is told of %s out of order", seed, x.ID, s.id)
				}
				last = s.at
				if len(s.commits) == hitsAtMost {
					counted[s.repo] += s.total - hitsAtMost
				}
			}
			for _, c := range s.commits {
				if id := ids[c]; id != "" && id != s.id {
					w.t.Errorf("seed %d: %s is told of %s by %s and %s", seed, x.ID, c, id, s.id)
				}
				ids[c] = s.id
			}
		}
		w.sum.Told += len(ids)
		visible := view.Visible(catalog.Viewer{Role: catalog.RoleMember, Account: x.Account})
		word := strings.TrimPrefix(x.Query, "type:commit ")
		for repo, texts := range w.commits {
			if touched[fmt.Sprint(x.Account, repo)] || !visible.Contains(repo) {
				continue
			}
			var missing []int
			for i, text := range texts {
				// The first index is no news.
				if i >= w.firsts[repo] && strings.Contains(text, word) && ids[commitID(repo, i+1)] == "" && x.Missed == 0 {
					missing = append(missing, i+1)
				}
			}
			if len(missing) > counted[view.Repo(repo).Name] {
				w.t.Errorf("seed %d: %s was not told of commits %d of repository %d: %+v", seed, x.ID, missing, repo, x)
			}
			w.sum.Counted += len(missing)
		}
	}
}
