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
	ShardsAnswered int64 `json:"shardsAnswered"`
	ShardsRequired int64 `json:"shardsRequired"`
	FilesDecided   int64 `json:"filesDecided"` // of those that may match
	Files          int64 `json:"filesConsidered"`
	Found          int64 `json:"matchesFound"`
	Bytes          int64 `json:"bytesRead"` // of text
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

// begin counts anew, as of a search that is tried again.
func (p *Progress) begin() *shard.Progress {
	work := &shard.Progress{}
	p.work.Store(work)
	p.answered.Store(0)
	p.required.Store(0)
	return work
}
