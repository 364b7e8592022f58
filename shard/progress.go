package shard

import "sync/atomic"

// Progress counts what a running search has done so far: how many files may match, how many of them
// it has decided, how many matches it found, and the bytes of text it read. decided never exceeds
// files. A nil Progress counts nothing.
type Progress struct {
	files, decided, found, bytes atomic.Int64
}

// Add adds to each of the counts.
func (p *Progress) Add(files, decided, found, bytes int64) {
	if p == nil {
		return
	}
	p.files.Add(files)
	p.decided.Add(decided)
	p.found.Add(found)
	p.bytes.Add(bytes)
}

// Now returns the counts so far.
func (p *Progress) Now() (files, decided, found, bytes int64) {
	decided = p.decided.Load() // load it first: files grows before decided does
	return p.files.Load(), decided, p.found.Load(), p.bytes.Load()
}
