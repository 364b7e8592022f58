package api

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host/hosttest"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/shard/change"
)

// The oracle of non-interference. A world is a cluster with repositories, of which a viewer
// may see some. A second cluster only has these. Every route, page and tool is called on
// both clusters, and the answers must be the same bytes:
//
//	world ─┬─ with    all repositories, some of them hidden from the viewer ─┐
//	       └─ without only those that the viewer may see                    ─┴─ equal, request by request
//
// Both clusters have the same connections: that one enforces permissions, or that a host refuses its
// token, changes what is told. What lies there does not.
//
// A page that was slow on one side is not compared, because it was begun before it was
// complete and has another status and frame.
//
// Without permissions metrics are not compared, because they measure the process, which also
// works for hidden repositories.
//
// Not compared (see alike): times and durations, the index and age of the catalog, numbers of
// repositories, ids and addresses of nodes, and random values of a cluster.
//
// A failure prints its seed: go test ./api -run 'TestNonInterference_hiddenRepositoriesChangeNoAnswer$' -worlds 1 -world SEED.
var (
	worldCount = flag.Int("worlds", 3, "random worlds of the oracle of non-interference")
	worldSeed  = flag.Uint64("world", 1, "seed of the first world")
)

// pool has repositories that worlds copy, because commits are slow.
type pool struct {
	dir   string
	names []string
}

const poolSize = 26

// surePack is the number of index files from which on they are packed, however their sizes differ in the
// pool. Less than that, but eight or more, may be.
const surePack = 12

func newPool(t *testing.T) *pool {
	p := &pool{dir: t.TempDir()}
	day := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range poolSize {
		name := string(rune('a'+i)) + []string{"pp", "x", "lib", "core"}[i%4]
		p.names = append(p.names, name)
		when := day.AddDate(0, 0, i)
		text := func(word string, n int) string {
			return strings.Repeat(fmt.Sprintf("a %s swims past only-%s\n", word, name), n)
		}

		r := nodetest.NewRepo(t, filepath.Join(p.dir, name), nil)
		r.CommitAs("Ada Lovelace", when, "begin", map[string]string{"main.go": "package main\n\nfunc main() {\n\t// shark\n}\n", "docs/a.md": text("whale", 1+i%5)})
		r.Git("update-ref", "-d", "HEAD") // the commit of NewRepo has the current time
		r.CommitAs("Ada Lovelace", when, "begin", map[string]string{"main.go": "package main\n\nfunc main() {\n\t// shark\n}\n", "docs/a.md": text("whale", 1+i%5)})
		r.Git("tag", "v1")
		if i%3 == 0 {
			r.Git("branch", "side")
		}
		r.CommitAs([]string{"Ada Lovelace", "Bob Ross"}[i%2], when.Add(time.Hour), "swim of "+name, map[string]string{
			"main.go": "package main\n\nfunc main() {\n\tSwim()\n}\n\n// Swim is how a shark gets on.\nfunc Swim() {}\n", "README.md": text("shark", i%7), "go.mod": fmt.Sprintf("module example.com/%s\n\nrequire example.com/shark v1.%d.0\n", name, i), "x.bin": "\x00\x01shark",
		})
	}
	return p
}

// world is a random choice of repositories and of the viewer's permissions.
type world struct {
	seed     uint64
	open     []string         // of a connection that is open to all
	granted  []string         // of a connection with permissions, granted to the viewer
	hidden   []string         // of that connection, not granted to the viewer
	gone     []string         // of a host that has refused the token for so long that they are hidden from everybody
	host     *hosttest.Server // that refuses
	bare     *hosttest.Server // the same without these repositories
	kind     string           // of viewer: member, service, guest
	nodes    int              // 3 with one of them stopped, else 1
	symbols  bool
	streamed int // shards in a part of a stream

	good *sync.Map // routes with a good answer for somebody, in any world
}

func draw(p *pool, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 7))
	w := &world{seed: seed, good: &sync.Map{}, nodes: 1, kind: []string{"member", "member", "member", "service", "guest"}[r.IntN(5)], symbols: r.IntN(6) == 0, streamed: 1 + r.IntN(3)}
	if r.IntN(25) == 0 {
		w.nodes, w.symbols = 3, false // symbols come later, and might not be on both nodes yet
	}

	// Without permissions everybody sees copies and jobs. A third of the worlds is like this,
	// with a hidden connection.
	told := seed%3 == 1
	if told {
		w.nodes = 1
	}

	// Many files are packed into one, and the viewer may see some of its repositories. In
	// every second world there are fewer, so that copies keep the file of their original.
	names := slices.Clone(p.names)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	take := func(n int) (some []string) {
		some, names = names[:n], names[n:]
		slices.Sort(some)
		return some
	}
	w.open = take(1 + r.IntN(4))
	if w.kind == "member" {
		w.granted = take(r.IntN(5))
	}
	w.hidden = take(1 + r.IntN(10))
	if seed%2 == 0 {
		w.granted, w.hidden = w.granted[:min(len(w.granted), 1)], w.hidden[:min(len(w.hidden), 2)]
	}
	if told {
		w.granted, w.hidden = nil, nil
	}
	if told || w.nodes == 1 && r.IntN(2) == 0 {
		w.gone = take(1 + r.IntN(3))
	}
	return w
}

// ofGone returns the name of a repository of the hidden connection.
func (w *world) ofGone(name string) string {
	return w.host.Address() + "/acme/" + name
}

// serve starts the hosts of the hidden connection.
func (w *world) serve(t *testing.T, p *pool) {
	var repos []hosttest.Repo
	for i, name := range w.gone {
		repos = append(repos, hosttest.Repo{ID: int64(i + 1), Owner: "acme", Name: name, Branch: "main", Git: filepath.Join(p.dir, name, ".git")})
	}
	w.host = hosttest.Start(t, hosttest.Gitea(), repos...)
	w.bare = hosttest.Start(t, hosttest.Gitea(), hosttest.Repo{ID: 1, Owner: "acme", Name: "excluded"})
}

// hide makes a host refuse the token for so long that its repositories are hidden. passed is how far
// the node's clock is ahead.
func hide(t *testing.T, host *hosttest.Server, n *nodetest.Node, passed *atomic.Int64) {
	host.Do(func(s *hosttest.State) { *s.Token = "another" })
	ask := func(until func(operate.ConnectionStatus) bool) {
		if _, err := n.Operate.SyncConnection(t.Context(), account.Operator(), "gone"); err != nil {
			t.Fatal(err)
		}
		n.Wait("the refusal", func() error {
			for _, c := range n.Status().Connections {
				if c.Name == "gone" && until(c) {
					return nil
				}
			}
			return fmt.Errorf("%+v", n.Status().Connections)
		})
	}

	ask(func(c operate.ConnectionStatus) bool { return !c.RefusedAt.IsZero() })
	passed.Store(int64(catalog.ServeRefused))
	ask(func(c operate.ConnectionStatus) bool { return !c.HiddenAt.IsZero() })
}

// listed waits until the visible repositories were listed after the clock change, and nothing is
// left to do.
func listed(n *nodetest.Node) {
	since := time.Now().Add(catalog.ServeRefused / 2)
	n.Wait("the listings that are due", func() error {
		s := n.Status()
		late := slices.ContainsFunc(s.Connections, func(c operate.ConnectionStatus) bool { return c.Name != "gone" && c.EndedAt.Before(since) })
		// The refused connection waits for its next try.
		if late || s.Jobs.Pending+s.Jobs.Running > s.Jobs.Retrying {
			return fmt.Errorf("jobs %+v, %+v", s.Jobs, s.Connections)
		}
		return nil
	})
}

// aims returns some visible and some hidden repositories, and one that never existed.
func (w *world) aims() aims {
	r := rand.New(rand.NewPCG(w.seed, 8))
	a := aims{pick: r.IntN}
	for _, list := range [][]string{w.open, w.granted, w.hidden} {
		for _, name := range list[:min(len(list), 2)] {
			a.repos = append(a.repos, "local/"+name)
		}
	}
	for _, name := range w.gone {
		a.repos = append(a.repos, w.ofGone(name))
	}
	a.repos = append(a.repos, "local/never")
	return a
}

// side is one of the two clusters of a world.
type side struct {
	url, key string
	strip    []string          // specific to this cluster: paths, ids, addresses
	random   map[string]string // random values by what stands for them in requests
	shared   int               // repositories that share the index of one of which they are a copy
}

// build makes a cluster with the repositories of a world, with or without the hidden ones.
func (w *world) build(t *testing.T, p *pool, hidden bool) *side {
	ctx := context.Background()
	dir := t.TempDir()
	closed := w.granted
	sources := map[string]string{} // of repositories with their own name
	if hidden && len(w.hidden) > 0 {
		// One has a name that is the start of an address of a visible repository's revision.
		alike := w.open[0] + "@v1"
		sources[alike] = w.hidden[0]
		closed = slices.Concat(w.granted, w.hidden, []string{alike})

		// Some have the files of a visible one, and share its index, or it shares theirs.
		for _, name := range slices.Concat(w.open[:1], w.granted[:min(len(w.granted), 1)]) {
			for _, copied := range []string{"0-" + name, "z-" + name} {
				sources[copied] = name
				closed = append(closed, copied)
			}
		}
	}
	for folder, names := range map[string][]string{"open": w.open, "closed": closed} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.CopyFS(filepath.Join(dir, folder, name), os.DirFS(filepath.Join(p.dir, cmp.Or(sources[name], name)))); err != nil {
				t.Fatal(err)
			}
		}
	}

	host, refused := w.bare, ""
	if hidden {
		host = w.host
	}
	if host != nil {
		refused = fmt.Sprintf(`"gone": {"type": "gitea", "url": %q, "token": {"env": "T"}, "orgs": ["acme"], "exclude": {"repos": ["acme/excluded"]}},`, host.URL)
	}

	// The node's clock depends on how long the token has been refused.
	var passed atomic.Int64
	cfg := nodetest.Config{
		Env: map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true", "T": hosttest.Token},
		File: fmt.Sprintf(`{"connections": {`+refused+`
			"open": {"type": "git", "url": "file://%[1]s/open/*", "revisions": {"branches": ["**"], "tags": ["**"]}},
			"closed": {"type": "git", "url": "file://%[1]s/closed/*", "enforcePermissions": %[2]t, "revisions": {"branches": ["**"], "tags": ["**"]}}},
			"contexts": {"all": {"include": ["**"]}, "none": {"include": ["local/never"]}}}`, dir, len(w.hidden) > 0),
		Edit: func(o *node.Options) {
			o.StreamBatch, o.History, o.MinCopyText = w.streamed, change.Bound{All: true}, 1
			o.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
			if w.symbols {
				o.Ctags = ""
			}
		},
	}
	all := len(w.open) + len(closed)
	if hidden {
		all += len(w.gone)
	}
	var nodes []*nodetest.Node
	var n *nodetest.Node
	if w.nodes == 1 {
		n = nodetest.Start(t, cfg)
		nodes = append(nodes, n)
	} else {
		fleet := nodetest.StartFleet(t, w.nodes, cfg)
		nodes, n = fleet.Nodes, fleet.Nodes[0]
		n.Wait("all copies", func() error {
			s := n.Status()
			waits := slices.ContainsFunc(s.Members, func(m node.MemberStatus) bool { return m.Role == "nonvoter" }) // else the crash may take the majority
			if s.Placement.UnderReplicated > 0 || s.Repos.Indexed != all || len(s.Members) != w.nodes || waits {
				return fmt.Errorf("%+v, %+v", s.Placement, s.Repos)
			}
			return nil
		})
		defer func() {
			fleet.Crash(2)
			n.Wait("the crash to be noticed, and another leader where it was the leader", func() error { return settled(n.Status(), fleet.Nodes[2].ID()) })
		}()
	}
	n.WaitIndexed(all)
	if w.nodes == 1 && w.seed%2 == 1 {
		n.Wait("the pack", func() error {
			if files, _ := filepath.Glob(filepath.Join(n.Dir, "shards", "*.shard")); len(files) >= surePack {
				return fmt.Errorf("%d files", len(files))
			}
			return nil
		})
		n.WaitIndexed(all)
	}

	for _, x := range nodes {
		x.WaitHistory()
	}

	if host != nil {
		hide(t, host, n, &passed)
		listed(n)
	}

	s := &side{key: w.viewer(t, ctx, n), strip: []string{dir}}
	for _, x := range nodes {
		s.strip = append(s.strip, x.ID(), x.ClusterAddr(), x.GossipAddr())
	}
	// Nothing was pushed yet, so only copies have .dead files.
	dead, _ := filepath.Glob(filepath.Join(n.Dir, "shards", "*.dead"))
	s.shared = len(dead)
	w.watch(t, ctx, n, s, dir, closed)
	// Give both clusters much time, because a timeout would be a difference.
	parts := partsOf(n.Node)
	parts.suggest = newSuggester(n.Node, time.Minute)
	s.url = "http://" + start(t, parts, func(o *Options) { o.Gatherer = n.Metrics }).Addr().String()
	return s
}

// settled returns what is still to come after a node has crashed. Until the others elect a
// leader, they name the crashed one, or none for a moment.
func settled(s *node.StatusResponse, gone string) error {
	amiss := s.Leader == "" || s.Leader == gone
	for _, m := range s.Members {
		amiss = amiss || (m.Health == "dead") != (m.ID == gone) || m.Role == "leader" && m.ID != s.Leader
	}
	if amiss {
		return fmt.Errorf("led by %q: %+v", s.Leader, s.Members)
	}
	return nil
}

// A cluster is settled when only the crashed node is gone, and another leads.
func TestNonInterference_clusterIsSettledOnceAnotherNodeLeads(t *testing.T) {
	t.Parallel()
	member := func(id, role, health string) node.MemberStatus {
		return node.MemberStatus{ID: id, Role: role, Health: health}
	}
	for _, c := range []struct {
		leader  string
		members []node.MemberStatus
		want    bool
	}{
		{"a", []node.MemberStatus{member("a", "leader", "alive"), member("b", "voter", "alive"), member("c", "voter", "dead")}, true},
		{"c", []node.MemberStatus{member("a", "voter", "alive"), member("b", "voter", "alive"), member("c", "leader", "dead")}, false},
		{"", []node.MemberStatus{member("a", "voter", "alive"), member("b", "voter", "alive"), member("c", "voter", "dead")}, false},
		{"a", []node.MemberStatus{member("a", "leader", "alive"), member("b", "voter", "dead"), member("c", "voter", "dead")}, false},
		{"a", []node.MemberStatus{member("a", "leader", "alive"), member("b", "voter", "dead"), member("c", "voter", "alive")}, false},
	} {
		if err := settled(&node.StatusResponse{Leader: c.leader, Members: c.members}, "c"); (err == nil) != c.want {
			t.Errorf("led by %q: %v, want settled: %t", c.leader, err, c.want)
		}
	}
}

// viewer makes the viewer on a cluster, and returns the key.
func (w *world) viewer(t *testing.T, ctx context.Context, n *nodetest.Node) string {
	by := account.Operator()
	req := account.CreateKeyRequest{Name: "laptop"}
	switch w.kind {
	case "guest":
		return ""
	case "member":
		req.User = "ann@example.com"
		if _, err := n.People.CreateUser(ctx, by, account.CreateUserRequest{Email: req.User}); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, name := range w.granted {
			names = append(names, "local/"+name)
		}
		if _, err := n.People.Grant(ctx, by, account.GrantRequest{User: req.User, Add: names}); err != nil {
			t.Fatal(err)
		}
	}
	k, err := n.Keys.CreateKey(ctx, by, req)
	if err != nil {
		t.Fatal(err)
	}
	return k.Key
}

// ask sends a request and returns the answer to compare.
func (s *side) ask(x shot) (string, error) {
	req, err := http.NewRequest(x.method, s.url+s.fill(x.target), strings.NewReader(x.body))
	if err != nil {
		return "", err
	}
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	req.Header.Set("Accept", "application/json, text/event-stream, text/html")
	req.Header.Set(headerRequest, "the-same") // a node would make a different one each time
	if req.Header.Set("Content-Type", "application/json"); strings.HasPrefix(x.target, "/login") || strings.HasPrefix(x.target, "/settings") || strings.HasPrefix(x.target, "/watches") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := oracleClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}

	var out strings.Builder
	fmt.Fprintln(&out, resp.Status)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		if name != "Date" && name != "Content-Length" && name != "Server-Timing" && name != "Etag" {
			fmt.Fprintf(&out, "%s: %s\n", name, strings.Join(resp.Header[name], "\n"))
		}
	}
	out.Write(body)
	text := s.alike(out.String())

	// Each side continues from its own cursor.
	after, ok := x.goesOn(body)
	if !ok {
		return text, nil
	}
	rest, err := s.ask(after)
	return text + "\n" + rest, err
}

// goesOn returns the request for the next page, twice at most.
func (x shot) goesOn(answer []byte) (shot, bool) {
	var got struct{ Next string }
	var asked object
	if x.target != "/api/search" || json.Unmarshal(answer, &got) != nil || got.Next == "" || json.Unmarshal([]byte(x.body), &asked) != nil {
		return x, false
	}

	asked["after"] = got.Next
	n, _ := asked["answers"].(float64)
	asked["answers"] = n + 1 // a member for this test, which the search ignores
	return post(x.target, asked), n < 2
}

var oracleClient = &http.Client{
	Timeout:       time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// unlike are differences between two equal clusters.
var unlike = []struct {
	expr *regexp.Regexp
	with string
}{
	// A search may remember candidates of an earlier one, and then loads less.
	{regexp.MustCompile(`"(catalogIndex|catalogAgeMs|repositoryId|repoId|id|keyId|duration|ngramLookups|indexBytesLoaded|wait|planningDuration|searchDuration|matchTreeConstruction|matchTreeSearch|uptimeSeconds|indexedAt|applied|lag)":("[^"]*"|[0-9.]+)`), `"$1":0`},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9.]+(Z|[+-][0-9:]+)?`), "TIME"},
	{regexp.MustCompile(`(<time datetime="TIME" title="TIME">)[^<]*`), "${1}AGO"}, // one of the clusters may be older
	{regexp.MustCompile(`(made|used) ([0-9]+ (minutes?|hours?) ago|just now)`), "${1} AGO"},
	{regexp.MustCompile(`[0-9.,]+ ?(ns|µs|ms|seconds|second|s)\b`), "DURATION"},
	{regexp.MustCompile(`data-key="[0-9]+"`), "NUMBER"},
	{regexp.MustCompile(`"next":"[^"]+"`), `"next":"CURSOR"`},
	{regexp.MustCompile(`(catalog|Catalog:?) [0-9,]+`), "catalog 0"},
	{regexp.MustCompile(`Catalog</dt><dd>[0-9,]+`), "Catalog</dt><dd>0"},
	{regexp.MustCompile(`shoal_[0-9a-f]{8}`), "PREFIX"},
	{regexp.MustCompile(`name="revoke" value="[0-9a-f]{8}"`), `name="revoke" value="ID"`},
	{regexp.MustCompile(`urn:shoal:watch:OWN-WATCH:[0-9a-f]{24}`), "urn:shoal:watch:OWN-WATCH:ID"},
	{regexp.MustCompile(`Location: /watches/[0-9a-f]{16}`), "Location: /watches/ID"},
	{regexp.MustCompile(`shoalfeed_[0-9a-f]{64}`), "TOKEN"},
	{regexp.MustCompile(`(key|req|k|u)_?[0-9a-f]{12,16}\b`), "ID"},
}

// alike removes what is specific to this cluster from an answer.
func (s *side) alike(text string) string {
	text = s.blank(text)
	for _, x := range s.strip {
		text = strings.ReplaceAll(text, x, "HERE")
	}
	text = strings.ReplaceAll(text, strings.TrimPrefix(s.url, "http://"), "HERE")
	for _, x := range unlike {
		text = x.expr.ReplaceAllString(text, x.with)
	}
	return text
}

// compare sends all requests to both sides, and returns the differences.
func (w *world) compare(with, without *side) (asked int, differ []string) {
	routes := slices.Sorted(maps.Keys(askedRoutes))
	for _, route := range routes {
		if route == "GET /metrics" && len(w.hidden) == 0 {
			continue
		}
		for _, x := range askedRoutes[route](w.aims()) {
			a, err := with.ask(x)
			b, other := without.ask(x)
			asked++
			if strings.HasPrefix(b, "200 ") {
				w.good.Store(route, true)
			}
			if err = cmp.Or(err, other); err != nil {
				differ = append(differ, fmt.Sprintf("%s: %v", route, err))
				continue
			}
			if begun(a) != begun(b) {
				asked--
				continue
			}
			if w.nodes > 1 && slices.Contains([]string{"GET /api/status", "GET /settings", "GET /settings/nodes"}, route) {
				a, b = unordered(a), unordered(b) // members are sorted by random ids
			}
			if a != b {
				differ = append(differ, fmt.Sprintf("%s %s %s\n%s", x.method, x.target, x.body, firstDifference(a, b)))
			}
		}
	}
	return asked, differ
}

// unanswerable are routes without a good answer in any world: without a model there are no
// conversations.
var unanswerable = []string{
	"POST /api/chat", "POST /api/chat/blocking", "POST /api/chat/{id}/messages", "POST /chat", "POST /chat/{id}",
	"GET /api/chat/{id}", "GET /api/chat/{id}/events", "GET /chat/{id}", "GET /chat/{id}/events",
}

// begun reports whether a page was sent before it was complete.
func begun(answer string) bool { return strings.Contains(answer, "\nX-Accel-Buffering: ") }

// unordered returns the sorted pieces of an answer.
func unordered(text string) string {
	pieces := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("<>{},\n", r) })
	pieces = slices.DeleteFunc(pieces, func(p string) bool { return strings.Trim(p, "0123456789") == "" }) // positions in the log
	slices.Sort(pieces)
	return strings.Join(pieces, "\n")
}

// firstDifference shows where two answers begin to differ.
func firstDifference(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(s string) string { return s[max(0, i-120):min(len(s), i+200)] }
	return fmt.Sprintf("  with:    …%s\n  without: …%s", around(a), around(b))
}

// TestNonInterference_hiddenRepositoriesChangeNoAnswer compares the two clusters of each world. -worlds is their number.
func TestNonInterference_hiddenRepositoriesChangeNoAnswer(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	var mu sync.Mutex
	asked, worlds, three, shared := 0, 0, 0, 0
	good := &sync.Map{}
	t.Cleanup(func() {
		for route, action := range accesses {
			if _, ok := good.Load(route); !ok && !slices.Contains(unanswerable, route) && action != "rights.read" && action != "audit.read" {
				t.Errorf("%s was never answered well: nothing is compared there", route)
			}
		}
		fmt.Printf("non-interference: %d comparisons over %d worlds, %d of them of three nodes with one down, %d copies with a shared index\n", asked, worlds, three, shared)
	})
	places := make(chan struct{}, min(3+*worldCount/20, 8))
	for i := range *worldCount {
		w := draw(p, *worldSeed+uint64(i))
		w.good = good
		if len(w.gone) > 0 {
			w.serve(t, p)
		}
		t.Run(fmt.Sprint(w.seed), func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			with, without := w.build(t, p, true), w.build(t, p, false)
			n, differ := w.compare(with, without)
			for _, d := range differ[:min(len(differ), 5)] {
				t.Errorf("world %d (%s, %d nodes, %d open, %d granted, %d hidden, %d of a host that refuses): %s", w.seed, w.kind, w.nodes, len(w.open), len(w.granted), len(w.hidden), len(w.gone), d)
			}
			if len(differ) > 5 {
				t.Errorf("world %d: %d more", w.seed, len(differ)-5)
			}
			mu.Lock()
			defer mu.Unlock()
			asked, worlds, shared = asked+n, worlds+1, shared+with.shared
			if w.nodes > 1 {
				three++
			}
		})
	}
}
