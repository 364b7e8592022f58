package node

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// leafRequest is a search of some shards of one node.
type leafRequest struct {
	Q        boxed
	Groups   []leafGroup
	Matches  int
	Files    int // at most; 0 for no limit of its own
	Shards   int // that the whole search asks
	Context  int
	Whole    bool
	CountAll bool
	NoChunks bool
	Heavy    bool
	Within   time.Duration // until the answer is of no more use
}

// verdict is what came of one shard.
type verdict uint8

// The verdicts.
const (
	verdictNone    verdict = iota // no answer
	verdictDone                   // searched; only a limit can have cut it
	verdictMissing                // the node does not have the files
	verdictDamaged                // a file fails its checksum
	verdictLate                   // the deadline passed before all of it was searched
)

// leafResponse is the answer: a verdict for each group of the request, and
// what the groups that are done have.
type leafResponse struct {
	Verdicts []verdict
	Without  []uint32 // repositories that were left out of groups that are done: a file of theirs is missing
	Files    []shard.File
	Stats    shard.Stats
	Cut      bool
	Wait     time.Duration
	Applied  uint64 // index of the leaf's catalog
}

// boxed carries a query through gob, which needs a struct around an interface.
type boxed struct{ Q query.Q }

func box(q query.Q) boxed { return boxed{q} }

// registerQueries tells gob of the nodes that a leaf can see. Doing so again
// is harmless.
func registerQueries() {
	for _, q := range []query.Q{&query.And{}, &query.Or{}, &query.Not{}, query.Const(false), &query.Text{}, &query.Lang{}, &query.Rev{}, &query.Repos{}} {
		gob.Register(q)
	}
}

// searchLeaf searches shards of this node. A repository of which a part is
// missing is not searched at all, so that no answer mixes generations.
func (n *Node) searchLeaf(ctx context.Context, req *leafRequest) (*leafResponse, error) {
	out := &leafResponse{Verdicts: make([]verdict, len(req.Groups)), Applied: n.cluster.View().Index()}
	leave, wait, err := n.lanes.enter(ctx, req.Heavy)
	out.Wait = wait
	if err != nil {
		return nil, err
	}
	defer leave()
	defer n.measure(req, time.Now())
	view := n.acquire(req, out)
	defer view.Release()
	res, err := view.Search(ctx, shard.Request{
		Q: req.Q.Q, MaxMatches: req.Matches, MaxFiles: req.Files, Shards: req.Shards, CountAll: req.CountAll, ContextLines: req.Context, Whole: req.Whole,
		NoChunks: req.NoChunks, Rank: n.ranker(req), MemoryLimit: memoryLimit,
	})
	if err != nil {
		return nil, err
	}
	out.Files, out.Stats, out.Cut = res.Files, res.Stats, res.Cut
	failed := map[string]bool{}
	for _, p := range res.Failed {
		failed[p.Shard] = true
	}
	late := ctx.Err() != nil
	for i := range req.Groups {
		switch {
		case out.Verdicts[i] != verdictNone:
		case failed[req.Groups[i].group.Parts[0].Shard]:
			out.Verdicts[i] = verdictDamaged
		case late && res.Cut:
			out.Verdicts[i] = verdictLate
		default:
			out.Verdicts[i] = verdictDone
		}
	}
	return out, nil
}

// measure counts the time of a search for the units that it searched. Packs are
// left out: they get no extra copies.
func (n *Node) measure(req *leafRequest, began time.Time) {
	view := n.cluster.View()
	units := make([]uint64, 0, len(req.Groups))
	for i := range req.Groups {
		p := req.Groups[i].group.Parts[0]
		repo := view.Repo(p.Repo)
		if repo == nil {
			continue
		}
		id := fileID(p.Shard)
		for _, s := range repo.Shards {
			if s.Pack == 0 && s.ID == id {
				units = append(units, job.UnitOf(p.Repo, s))
			}
		}
	}
	n.searched.Add(units, time.Since(began))
}

// askSearched asks a node how long it searched each unit so far.
func (n *Node) askSearched(ctx context.Context, node string) (map[uint64]time.Duration, error) {
	out, err := n.cluster.Call(ctx, node, methodSearched, nil)
	if err != nil {
		return nil, err
	}
	var used map[uint64]time.Duration
	return used, decode(out, &used)
}

func (n *Node) serveSearched(context.Context, cluster.Peer, []byte) ([]byte, error) {
	return encode(n.searched.Used())
}

// acquire takes the parts of the repositories that are here completely, and
// says which are not.
func (n *Node) acquire(req *leafRequest, out *leafResponse) *shard.View {
	incomplete := map[uint32]bool{}
	complete := func(repo uint32) bool { return !incomplete[repo] }
	for {
		var groups []*shard.Group
		without := map[uint32]bool{}
		for i := range req.Groups {
			g := req.Groups[i].group
			if len(incomplete) > 0 {
				have := within(g, complete)
				if have == nil {
					out.Verdicts[i] = verdictMissing
					continue
				}
				if len(have.Parts) < len(g.Parts) {
					for _, p := range g.Parts {
						if incomplete[p.Repo] {
							without[p.Repo] = true
						}
					}
					g = have
				}
			}
			groups = append(groups, g)
		}
		view, missing := n.set.AcquireGroups(groups)
		if len(missing) == 0 {
			out.Without = slices.Sorted(maps.Keys(without))
			return view
		}
		view.Release()
		for _, p := range missing {
			incomplete[p.Repo] = true
		}
	}
}

// ranker names repositories for the order of an answer.
func (n *Node) ranker(req *leafRequest) func(repo uint32) (string, float64) {
	if len(req.Groups) == 0 {
		return nil
	}
	ranks := req.Groups[0].rank // the same for all
	return func(repo uint32) (string, float64) {
		r := ranks[repo]
		return r.name, float64(r.recency) / 255
	}
}

// serveLeaf answers the root of another node.
func (n *Node) serveLeaf(ctx context.Context, _ cluster.Peer, in []byte) ([]byte, error) {
	var req leafRequest
	if err := decode(in, &req); err != nil {
		return nil, err
	}
	if err := n.groups.unpack(n.cluster.View(), &req); err != nil {
		return nil, err
	}
	if req.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, req.Within)
		defer cancel()
	}
	res, err := n.searchLeaf(ctx, &req)
	if err != nil {
		return nil, err
	}
	return encode(res)
}

// askLeaf searches shards of a node, this one or another. With a deadline the
// leaf is given a little less, so that what it has by then arrives.
func (n *Node) askLeaf(ctx context.Context, node string, req *leafRequest) (*leafResponse, error) {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		req.Within = max(left-min(left/10, 300*time.Millisecond), time.Millisecond)
	}
	if node == n.cluster.Self() {
		local, cancel := ctx, context.CancelFunc(func() {})
		if req.Within > 0 {
			local, cancel = context.WithTimeout(ctx, req.Within)
		}
		defer cancel()
		return n.searchLeaf(local, req)
	}
	for i := range req.Groups {
		req.Groups[i].pack()
	}
	in, err := encode(req)
	if err != nil {
		return nil, err
	}
	out, err := n.cluster.Call(ctx, node, methodLeaf, in)
	if err != nil {
		return nil, err
	}
	res := new(leafResponse)
	if err := decode(out, res); err != nil {
		return nil, err
	}
	if len(res.Verdicts) != len(req.Groups) {
		return nil, fmt.Errorf("%d verdicts for %d shards", len(res.Verdicts), len(req.Groups))
	}
	return res, nil
}

// encode and decode are the form of calls between nodes: a version byte, then
// gob, which skips fields that the other side does not know.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte(codecVersion)
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b.Bytes(), nil
}

func decode(in []byte, v any) error {
	if len(in) == 0 || in[0] != codecVersion {
		return errors.New("a message of another version")
	}
	if err := gob.NewDecoder(bytes.NewReader(in[1:])).Decode(v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}

const codecVersion = 2

// The methods that nodes call on each other.
const (
	methodLeaf     = "search"
	methodBrowse   = "browse"
	methodStatus   = "status"
	methodSearched = "searched"
)
