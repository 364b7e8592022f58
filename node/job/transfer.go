package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// The calls with which nodes copy from each other. The only parameter of a
// file is its hash.
const (
	MethodFile     = "file"     // stream: a shard or side file by name
	MethodMirror   = "mirror"   // stream: a mirror by number, without what the caller has
	MethodPrefetch = "prefetch" // call: take files of a generation before it is published
)

// The bounds of copying.
const (
	copiesIn     = 4           // streams into this node at once
	copiesOut    = 4           // streams out of it
	copyRate     = 256 << 20   // bytes a second into this node
	spreadTime   = time.Minute // a publication waits for a second copy at most
	prefetchHold = time.Minute // files taken before their generation is known stay
)

// mirrorCall asks for a mirror.
type mirrorCall struct {
	Repo catalog.RepoID
	Have []string // tips that the caller has
}

// prefetchCall asks to take files from the caller, which is about to make them
// the next generation of a repository.
type prefetchCall struct {
	Names      []string
	Repo       catalog.RepoID
	Generation uint64 // index of the one that is live
}

// Transfers moves files and mirrors between nodes.
type Transfers struct {
	r       *Runner
	in, out chan struct{}
	rate    *pace
	name    *regexp.Regexp // of files that may be asked for
	copied  atomic.Int64   // bytes that came in
}

// Copied is how many bytes of files and mirrors this node has copied from
// others since it started.
func (t *Transfers) Copied() int64 { return t.copied.Load() }

// NewTransfers returns the Transfers of a runner, which uses it too.
func NewTransfers(r *Runner) *Transfers {
	t := &Transfers{
		r: r, in: make(chan struct{}, copiesIn), out: make(chan struct{}, copiesOut), rate: &pace{perSecond: copyRate},
		name: regexp.MustCompile(`^[0-9a-f]{64}\.(shard|dead|symbols)$`),
	}
	r.transfers = t
	return t
}

// Handle serves the other nodes. It must be called before the cluster runs.
func (t *Transfers) Handle(c *cluster.Cluster) {
	c.HandleStream(MethodFile, t.serveFile)
	c.HandleStream(MethodMirror, t.serveMirror)
	c.Handle(MethodPrefetch, t.servePrefetch)
}

func (t *Transfers) serveFile(ctx context.Context, _ cluster.Peer, in []byte, out io.Writer) error {
	name := string(in)
	if !t.name.MatchString(name) {
		return errors.New("that is not the name of an index file")
	}
	if err := enter(ctx, t.out); err != nil {
		return err
	}
	defer func() { <-t.out }()
	f, _, err := t.r.opt.Set.Export(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(out, &reader{ctx: ctx, r: f})
	return err
}

func (t *Transfers) serveMirror(ctx context.Context, _ cluster.Peer, in []byte, out io.Writer) error {
	var call mirrorCall
	if err := json.Unmarshal(in, &call); err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	if !t.r.opt.Mirrors.Has(call.Repo) {
		return errors.New("the mirror is not here")
	}
	if err := enter(ctx, t.out); err != nil {
		return err
	}
	defer func() { <-t.out }()
	return t.r.opt.Mirrors.Get(call.Repo).Export(ctx, call.Have, out)
}

// servePrefetch takes the files of a generation that the caller is about to
// publish, so that it is never on one disk only.
func (t *Transfers) servePrefetch(ctx context.Context, from cluster.Peer, in []byte) ([]byte, error) {
	var call prefetchCall
	if err := json.Unmarshal(in, &call); err != nil {
		return nil, fmt.Errorf("prefetch: %w", err)
	}
	release := t.r.guard(call.Names)
	for _, name := range call.Names {
		if err := t.File(ctx, name, []string{from.Node}); err != nil {
			release()
			return nil, err
		}
	}
	t.r.await(call, time.Now().Add(prefetchHold))
	release()
	return nil, nil
}

// File copies a file from the first of the nodes that gives it. One that is
// here already is fine.
func (t *Transfers) File(ctx context.Context, name string, from []string) error {
	if !t.name.MatchString(name) {
		return errors.New("that is not the name of an index file")
	}
	if t.r.opt.Set.Has(name) {
		return nil
	}
	if t.full() {
		return errDisk
	}
	if err := enter(ctx, t.in); err != nil {
		return err
	}
	defer func() { <-t.in }()
	err := fmt.Errorf("copy %s: no node has it", name)
	for _, node := range from {
		if err = t.file(ctx, name, node); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (t *Transfers) file(ctx context.Context, name, node string) error {
	rc, err := t.r.opt.Cluster.Stream(ctx, node, MethodFile, []byte(name))
	if err != nil {
		return fmt.Errorf("copy %s from %s: %w", name, node, err)
	}
	defer rc.Close()
	if err := t.r.opt.Set.Import(ctx, name, &reader{ctx: ctx, r: rc, rate: t.rate, count: &t.copied}); err != nil {
		return fmt.Errorf("copy %s from %s: %w", name, node, err)
	}
	return nil
}

// Mirror makes the mirror of a repository a copy of that of the first node
// which gives it.
func (t *Transfers) Mirror(ctx context.Context, id catalog.RepoID, from []string) error {
	if t.full() {
		return errDisk
	}
	if err := enter(ctx, t.in); err != nil {
		return err
	}
	defer func() { <-t.in }()
	m := t.r.opt.Mirrors.Get(id)
	have, err := m.Tips(ctx)
	if err != nil {
		have = nil // a damaged copy is made anew
	}
	in, err := json.Marshal(mirrorCall{Repo: id, Have: have})
	if err != nil {
		return err
	}
	err = fmt.Errorf("copy mirror %d: no node has it", id)
	for _, node := range from {
		var rc io.ReadCloser
		if rc, err = t.r.opt.Cluster.Stream(ctx, node, MethodMirror, in); err != nil {
			continue
		}
		err = m.Import(ctx, &reader{ctx: ctx, r: rc, rate: t.rate, count: &t.copied})
		rc.Close()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("copy mirror %d: %w", id, err)
}

var errDisk = errors.New("the disk is nearly full")

func (t *Transfers) full() bool {
	return t.r.opt.DiskUsed != nil && t.r.opt.DiskUsed() >= diskStop
}

func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reader ends with its context, keeps to a pace and counts.
type reader struct {
	ctx   context.Context
	r     io.Reader
	rate  *pace
	count *atomic.Int64
}

// Read reads from the stream.
func (r *reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(b)
	if r.count != nil {
		r.count.Add(int64(n))
	}
	if r.rate != nil && n > 0 && !sleep(r.ctx, r.rate.take(n, time.Now())) {
		return n, r.ctx.Err()
	}
	return n, err
}

// pace is a bound of bytes a second, for many streams together.
type pace struct {
	perSecond float64

	mu   sync.Mutex // guards the field below
	next time.Time  // when the bytes taken so far are paid for
}

// take says how long to wait after n bytes.
func (p *pace) take(n int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(float64(n) / p.perSecond * float64(time.Second)))
	return max(p.next.Sub(now)-100*time.Millisecond, 0) // bursts of a tenth of a second are free
}

// spread has another node take the files of a generation that is about to be
// published, and returns that node. Where none does in time, the publication
// goes on alone. The catalog learns of both copies at once: a node that dies in
// that moment takes nothing with it, not even until the other has confirmed.
func (r *Runner) spread(ctx context.Context, repo catalog.RepoID, names []string) (second string) {
	if r.transfers == nil || r.opt.Replicas < 2 || len(names) == 0 {
		return ""
	}
	call := prefetchCall{Names: names, Repo: repo}
	if old := r.opt.Cluster.View().Repo(repo); old != nil {
		call.Generation = old.GenerationAt
	}
	in, err := json.Marshal(call)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, spreadTime)
	defer cancel()
	for _, node := range r.neighbours(repo, names) {
		if err = r.prefetch(ctx, node, in); err == nil {
			return node
		}
		r.opt.Log.Warn("a second copy could not be made before publishing", "repo", repo, "node", node, "err", err)
	}
	return ""
}

// prefetch asks a node to take files, for as long as it is alive: one that
// has stopped would hold up the publication for all of its time.
func (r *Runner) prefetch(ctx context.Context, node string, in []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for sleep(ctx, time.Second) {
			if !r.opt.Cluster.Alive(node) {
				cancel(errors.New("the node cannot be reached any more"))
			}
		}
	}()
	_, err := r.opt.Cluster.Call(ctx, node, MethodPrefetch, in)
	return err
}

// neighbours are the other live nodes that should have a repository, and those
// that have some of the files already. Those with most of them come first: a push
// leaves a pack as it is, and it is not copied for what the push has added.
func (r *Runner) neighbours(id catalog.RepoID, names []string) []string {
	view := r.opt.Cluster.View()
	ids := neighbours(view, id, names, r.opt.Set.Size)
	return slices.DeleteFunc(ids, func(node string) bool {
		return node == r.opt.Cluster.Self() || !r.opt.Cluster.Alive(node)
	})
}

func neighbours(view *catalog.View, id catalog.RepoID, names []string, size func(name string) int64) []string {
	ids, held := targetsOf(view, groupOf(id)), map[string]int64{}
	for _, name := range names {
		file, _, _ := strings.Cut(name, ".")
		for _, node := range view.Holders(catalog.ShardKey(file)) {
			if held[node] == 0 && !slices.Contains(ids, node) && view.Member(node).State == catalog.MemberAlive {
				ids = append(ids, node)
			}
			held[node] += size(name)
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(held[b], held[a]) })
	return ids
}

// ensure copies the files of the live generation that are not here.
func (r *Runner) ensure(ctx context.Context, repo *catalog.Repo) {
	if r.transfers == nil || r.complete(repo) {
		return
	}
	view := r.opt.Cluster.View()
	for _, s := range repo.Shards {
		for key, file := range filesOf(repo.ID, s) {
			if r.opt.Set.Has(file) {
				continue
			}
			if err := r.transfers.File(ctx, file, r.sources(view, key)); err != nil {
				return // it is built instead
			}
		}
	}
}

// lost tells that a file of the live generation is neither here nor on another
// live node.
func (r *Runner) lost(view *catalog.View, repo *catalog.Repo) bool {
	for _, s := range repo.Shards {
		for key, file := range filesOf(repo.ID, s) {
			if !r.opt.Set.Has(file) && len(r.sources(view, key)) == 0 {
				return true
			}
		}
	}
	return false
}

// sources are the live holders of a key beside this node, in an order of
// this node's own, so that not everybody asks the same.
func (r *Runner) sources(view *catalog.View, key string) []string {
	return orderBy(r.opt.Cluster.Self()+key, view.Holders(key), func(id string) bool {
		return id != r.opt.Cluster.Self() && r.opt.Cluster.Alive(id)
	})
}
