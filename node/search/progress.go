package search

import (
	"sync/atomic"

	"github.com/shoalsearch/shoal/shard"
)

// Progress is how far a search has come. Other goroutines may read it while the search runs.
type Progress struct {
	work               atomic.Pointer[shard.Progress] // of the present attempt
	answered, required atomic.Int64
}

// Done is the work of a search up to some moment.
type Done struct {
	ShardsAnswered int64 `json:"shardsAnswered"`
	ShardsRequired int64 `json:"shardsRequired"`
	FilesDecided   int64 `json:"filesDecided"` // of Files
	Files          int64 `json:"filesConsidered"`
	Found          int64 `json:"matchesFound"`
	Bytes          int64 `json:"bytesRead"` // bytes of text
}

// Now returns the work done so far. This node's work counts while it goes on, the work of another
// node when that node has answered.
func (p *Progress) Now() Done {
	d := Done{ShardsAnswered: p.answered.Load(), ShardsRequired: p.required.Load()}
	if work := p.work.Load(); work != nil {
		d.Files, d.FilesDecided, d.Found, d.Bytes = work.Now()
	}
	return d
}

// begin starts counting from zero, since a search may start again.
func (p *Progress) begin() *shard.Progress {
	work := &shard.Progress{}
	p.work.Store(work)
	p.answered.Store(0)
	p.required.Store(0)
	return work
}
