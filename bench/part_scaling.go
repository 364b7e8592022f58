package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
)

// Targets of part scaling.
const (
	targetMoved    = 1.3                  // bytes copied when a node joins or leaves, divided by the fewest possible
	targetFullest  = 1.15                 // bytes of the fullest node, divided by the mean
	targetOverhead = 3 * time.Millisecond // how much longer the median selective query takes than on one node
)

// scaleRepos is the number of repositories of part scaling.
const scaleRepos = 400

// partScaling searches the same repositories on 1, 3 and 5 nodes, adds a node
// to three, and takes one away.
func partScaling(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "One corpus on 1, 3 and 5 nodes of one machine", Columns: []string{"nodes", "median", "p99", "requests/s at 8 connections", "index of all nodes", "fullest / mean"}}
	root, err := r.corpora.someRepositories(ctx, scaleRepos)
	if err != nil {
		return nil, err
	}

	var one *swarm
	for _, n := range []int{1, 3, 5} {
		w, err := r.swarm(ctx, n, root, scaleRepos)
		if err != nil {
			return nil, err
		}

		if err := r.measureSwarm(ctx, p, w, one); err != nil {
			w.stop()
			return nil, err
		}

		if n == 1 {
			one = w // for the comparison
			defer one.stop()
			continue
		}

		if n == 3 {
			if err := r.moveData(ctx, p, w); err != nil {
				w.stop()
				return nil, err
			}
		}

		w.stop()
	}

	p.note("Times are of selective queries over HTTP, one connection, each time another node. All nodes share the cores of this machine with the client: requests a second cannot grow with them here.")
	p.note("Every shard is on two nodes (on one where there is one). Bytes are those of shards; copies are counted by shoal_copied_bytes_total, mirrors included.")
	return p, nil
}

// measureSwarm adds the row for a number of nodes, and compares three with one.
func (r *run) measureSwarm(ctx context.Context, p *Part, w, one *swarm) error {
	bodies := make([][]byte, 0, len(selectiveQueries()))
	for _, q := range selectiveQueries() {
		bodies = append(bodies, q.body(50, countShown))
	}

	// Measure the latency with one client, and the throughput with many.
	alone, err := w.ask(ctx, 100*r.Repeat, bodies)
	if err != nil {
		return err
	}

	busy := w.load(ctx, 8, 5*time.Second, bodies)
	st, err := w.status(ctx)
	if err != nil {
		return err
	}

	all, top := st.bytes()
	fullest := float64(top) * float64(len(w.nodes)) / float64(all)
	p.row(len(w.nodes), median(alone), quantile(alone, 0.99), busy.perSecond(), bytesize(all), ratio(fullest))
	if len(w.nodes) > 1 {
		p.note("%d nodes: the fullest has %.3g of the mean; target %.3g: %s.", len(w.nodes), fullest, targetFullest, cell(fullest <= targetFullest))
	}

	if len(w.nodes) != 3 {
		return nil
	}
	added, err := overhead(ctx, one, w, 40*r.Repeat, bodies)
	if err != nil {
		return err
	}

	p.note("Three nodes add %s to the median of a selective query, asked in turn with one node; target %s: %s.", cell(added), cell(targetOverhead), cell(added <= targetOverhead))
	return nil
}

// overhead returns how much longer the median query takes on many nodes than on one. It asks both in turn,
// so that other load on the machine affects both alike.
func overhead(ctx context.Context, one, many *swarm, rounds int, bodies [][]byte) (time.Duration, error) {
	var a, b []time.Duration
	for i := range rounds {
		for _, side := range []struct {
			w    *swarm
			took *[]time.Duration
		}{{one, &a}, {many, &b}} {
			// Ask another node each time, and both sides the same query.
			s := side.w.nodes[i%len(side.w.nodes)]
			_, took, err := s.exchange(ctx, bodies[i%len(bodies)])
			if err != nil {
				return 0, err
			}

			*side.took = append(*side.took, took)
		}
	}

	return median(b) - median(a), nil
}

// moveData adds a node to a swarm and then kills another, and adds notes about the bytes copied each time.
func (r *run) moveData(ctx context.Context, p *Part, w *swarm) error {
	before, err := w.status(ctx)
	if err != nil {
		return err
	}

	all, _ := before.bytes()

	m, err := w.movement(ctx)
	if err != nil {
		return err
	}

	if err := w.add(ctx); err != nil {
		return err
	}
	if err := w.waitEven(ctx); err != nil {
		return err
	}

	mirrors, err := w.mirrorShare()
	if err != nil {
		return err
	}

	if err := m.report(ctx, p, "A fourth node joins", int64(float64(all)*mirrors)/int64(len(w.nodes))); err != nil {
		return err
	}

	held, err := w.replaceSecond(ctx, m)
	if err != nil {
		return err
	}
	return m.report(ctx, p, "A node is killed, removed and replaced by the others", int64(float64(held)*mirrors))
}

// replaceSecond kills and removes the second node, and waits until the others have its data. It returns
// how many bytes of shards that node held.
func (w *swarm) replaceSecond(ctx context.Context, m *movement) (held int64, err error) {
	st, err := w.status(ctx)
	if err != nil {
		return 0, err
	}

	lost := w.nodes[1]
	id, held := st.member(lost.url)
	if id == "" {
		return 0, fmt.Errorf("the status does not name the node at %s", lost.url)
	}

	// Do not count what this node has copied, because it is missing from later counts.
	if m.copied, err = w.copiedWithout(ctx, lost); err != nil {
		return 0, err
	}
	m.began = time.Now()
	if err := lost.kill(); err != nil {
		return 0, err
	}
	w.nodes = append(w.nodes[:1], w.nodes[2:]...)
	if err := w.nodes[0].post(ctx, "/api/nodes/"+id+"/remove", []byte("{}"), nil); err != nil {
		return 0, err
	}
	return held, w.waitEven(ctx)
}

// movement is the state of a swarm before data moves.
type movement struct {
	w      *swarm
	began  time.Time
	copied int64 // bytes that all nodes had copied
}

func (w *swarm) movement(ctx context.Context) (*movement, error) {
	copied, err := w.copied(ctx)
	return &movement{w, time.Now(), copied}, err
}

// report adds a note with the bytes copied since then, and makes now the new begin. ideal is the fewest
// bytes possible.
func (m *movement) report(ctx context.Context, p *Part, what string, ideal int64) error {
	now, err := m.w.copied(ctx)
	if err != nil {
		return err
	}
	moved := now - m.copied
	share := float64(moved) / float64(ideal)
	p.note("%s: %s copied in %s, %.3g of the least that can be (%s); target %.3g: %s.", what, cell(bytesize(moved)), cell(time.Since(m.began)), share, cell(bytesize(ideal)), targetMoved, cell(share <= targetMoved))
	m.copied, m.began = now, time.Now()
	return nil
}

// swarm is several nodes of one cluster on this machine.
type swarm struct {
	r      *run
	dir    string
	config string
	key    string // path of the key file
	nodes  []*server
	size   int // bootstrap-expect
	repos  int // that root has
	next   int // number of the next node
}

// swarm starts n nodes, and waits until they have indexed all repositories below root.
func (r *run) swarm(ctx context.Context, n int, root string, repos int) (*swarm, error) {
	w := &swarm{r: r, repos: repos, dir: filepath.Join(r.Dir, fmt.Sprintf("scale-%d", n)), size: n}
	if err := os.RemoveAll(w.dir); err != nil {
		return nil, err
	}

	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, err
	}
	w.config, w.key = filepath.Join(w.dir, "config.json"), filepath.Join(w.dir, "cluster.key")
	if err := writeConfig(w.config, nil, map[string]connection{"M": {"type": "git", "url": "file://" + root + "/*"}}); err != nil {
		return nil, err
	}

	// Give all nodes one key. Only a node that starts alone makes a key.
	if err := os.WriteFile(w.key, []byte(wire.NewKey().Text()+"\n"), 0o600); err != nil {
		return nil, err
	}
	var started []*server
	for range n {
		s, err := w.launch()
		if err != nil {
			w.stop()
			return nil, err
		}

		started = append(started, s)
		w.nodes = append(w.nodes, s)
	}

	// Wait only after all have started, because they form the cluster together.
	for _, s := range started {
		if err := s.waitReady(ctx); err != nil {
			w.stop()
			return nil, err
		}
	}

	if err := w.waitEven(ctx); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// launch starts a node that joins the earlier ones.
func (w *swarm) launch() (*server, error) {
	w.next++
	host := fmt.Sprintf("127.0.%d.%d", 100+w.size, w.next)
	args := []string{"--config", w.config, "--cluster-key-file", w.key, "--ctags", "off", "--bootstrap-expect", fmt.Sprint(w.size),
		"--listen", host + ":7700", "--cluster-listen", host + ":7701", "--gossip-listen", host + ":7702"}
	for i := 1; i < w.next; i++ {
		args = append(args, "--join", fmt.Sprintf("127.0.%d.%d:7702", 100+w.size, i))
	}
	return launch(w.r.Shoal, filepath.Join(w.dir, fmt.Sprintf("n%d", w.next)), "http://"+host+":7700", args)
}

// add starts another node and waits until it is ready.
func (w *swarm) add(ctx context.Context) error {
	s, err := w.launch()
	if err != nil {
		return err
	}
	w.nodes = append(w.nodes, s)
	return s.waitReady(ctx)
}

func (w *swarm) stop() {
	var wg sync.WaitGroup
	for _, s := range w.nodes {
		wg.Go(func() {
			if err := s.stop(); err != nil {
				w.r.Log("stopping a node: %v", err)
			}
		})
	}
	wg.Wait()
}

// swarmStatus is a cluster's status, as far as it is measured.
type swarmStatus struct {
	Members []struct {
		ID, API string
		Bytes   int64
	}
	Repos     struct{ Total, Indexed int }
	Jobs      struct{ Pending, Running int }
	Placement struct{ UnderReplicated, Moves int }
}

func (s *swarmStatus) bytes() (all, top int64) {
	for _, m := range s.Members {
		all, top = all+m.Bytes, max(top, m.Bytes)
	}
	return all, top
}

// member returns the id of the node at an address, and its bytes.
func (s *swarmStatus) member(url string) (id string, bytes int64) {
	for _, m := range s.Members {
		if m.API == url {
			return m.ID, m.Bytes
		}
	}
	return "", 0
}

func (w *swarm) status(ctx context.Context) (*swarmStatus, error) {
	var s swarmStatus
	return &s, w.nodes[0].get(ctx, "/api/status", &s)
}

// waitEven waits until all repositories are indexed and in place, and the status was stable for five
// seconds.
func (w *swarm) waitEven(ctx context.Context) error {
	var last string
	since := time.Now()
	return poll(ctx, time.Hour, 50*time.Millisecond, "the data to lie where it should", func() bool {
		s, err := w.status(ctx)
		if err != nil || s.Repos.Indexed < w.repos || len(s.Members) != len(w.nodes) {
			return false
		}

		// Wait until the status is stable, because a move may be about to begin.
		now := fmt.Sprint(*s)
		if now != last {
			last, since = now, time.Now()
		}
		return s.Jobs.Pending+s.Jobs.Running+s.Placement.UnderReplicated+s.Placement.Moves == 0 && time.Since(since) > 5*time.Second
	})
}

// ask sends n queries one after the other, each to the next node, and returns their times. It leaves out
// the first queries, which open connections.
func (w *swarm) ask(ctx context.Context, n int, bodies [][]byte) ([]time.Duration, error) {
	var all []time.Duration
	for i := range n {
		_, took, err := w.nodes[i%len(w.nodes)].exchange(ctx, bodies[i%len(bodies)])
		if err != nil {
			return nil, err
		}

		if i >= len(bodies)*len(w.nodes) {
			all = append(all, took)
		}
	}

	return all, nil
}

// load is server.load with the connections spread evenly over the nodes.
func (w *swarm) load(ctx context.Context, conns int, length time.Duration, bodies [][]byte) loaded {
	var mu sync.Mutex
	var sum loaded
	var wg sync.WaitGroup
	for i, s := range w.nodes {
		// The first nodes get one more if the number is not divisible.
		own := conns / len(w.nodes)
		if i < conns%len(w.nodes) {
			own++
		}

		wg.Go(func() {
			l := s.load(ctx, own, length, bodies)
			mu.Lock()
			defer mu.Unlock()
			sum.took, sum.errors, sum.wall = append(sum.took, l.took...), sum.errors+l.errors, max(sum.wall, l.wall)
		})
	}

	wg.Wait()
	return sum
}

// copied returns the bytes that all nodes have copied.
func (w *swarm) copied(ctx context.Context) (int64, error) { return w.copiedWithout(ctx, nil) }

// copiedWithout returns the bytes that all nodes but one have copied, by the product's metric.
func (w *swarm) copiedWithout(ctx context.Context, excluded *server) (int64, error) {
	var sum float64
	for _, s := range w.nodes {
		if s == excluded {
			continue
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
		if err != nil {
			return 0, err
		}

		text, err := s.read(req)
		if err != nil {
			return 0, err
		}

		for line := range strings.Lines(string(text)) {
			var n float64
			if _, err := fmt.Sscanf(line, "shoal_copied_bytes_total %g", &n); err == nil {
				sum += n
			}
		}
	}

	return int64(sum), nil
}

// mirrorShare returns how many bytes a move copies for each byte of shards: a group moves with its git
// mirrors.
func (w *swarm) mirrorShare() (float64, error) {
	// Add up all nodes, because a group's shards and mirrors have the same number of copies.
	var shards, mirrors int64
	for _, s := range w.nodes {
		a, err := s.diskBytes("shards")
		if err != nil {
			return 0, err
		}

		b, err := s.diskBytes("mirrors")
		if err != nil {
			return 0, err
		}

		shards, mirrors = shards+a, mirrors+b
	}

	return 1 + float64(mirrors)/float64(shards), nil
}
