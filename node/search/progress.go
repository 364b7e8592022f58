package search

import (
	"sync/atomic"

	"github.com/shoalsearch/shoal/shard"
)

// Progress is how far a search has come. It may be read while the search goes on.
type Progress struct {
	work               atomic.Pointer[shard.Progress] // of the present try
	answered, required atomic.Int64
}

// Done is what a search has done by some moment.
type Done struct {
	ShardsAnswered, ShardsRequired int64
	FilesDecided, Files            int64 // of those that may match
	Found                          int64 // matches
	Bytes                          int64 // of text that were read
}

// Now is what has been done. Other nodes tell of their work when they have ended,
// this one while it goes on.
func (p *Progress) Now() Done {
	d := Done{ShardsAnswered: p.answered.Load(), ShardsRequired: p.required.Load()}
	if work := p.work.Load(); work != nil {
		d.Files, d.FilesDecided, d.Found, d.Bytes = work.Now()
	}
	return d
}

// watched begins to count for whoever looks on. A search that is tried again
// counts anew. What is counted by file or shard is not for a viewer who may not
// see all that is in them.
func (r *root) watched() {
	p := r.req.Progress
	if p == nil || r.blind {
		return
	}
	r.leaf.progress = &shard.Progress{}
	p.work.Store(r.leaf.progress)
	p.answered.Store(0)
	p.required.Store(0)
}

// tell counts an answer: its shards, and the work of another node.
func (r *root) tell(node string, s *shard.Stats) {
	if r.leaf.progress == nil {
		return
	}
	r.req.Progress.answered.Store(int64(r.stats.ShardsAnswered))
	r.req.Progress.required.Store(int64(r.stats.ShardsRequired))
	if node != r.d.Cluster.Self() {
		considered := int64(s.FilesConsidered)
		r.leaf.progress.Add(considered, considered, int64(s.TotalMatches), int64(s.ContentBytes))
	}
}
