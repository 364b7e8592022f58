package shard

import "sync/atomic"

// Progress counts what a search has done so far, for somebody who looks on while
// it goes on. At any time decided <= files. Nil counts nothing.
type Progress struct {
	files, decided, found, bytes atomic.Int64
}

// Add counts work that was done elsewhere.
func (p *Progress) Add(files, decided, found, bytes int64) {
	if p == nil {
		return
	}
	p.files.Add(files)
	p.decided.Add(decided)
	p.found.Add(found)
	p.bytes.Add(bytes)
}

// Now is the files that may match, how many of them are decided, the matches in
// those, and the bytes of text that were read for them.
func (p *Progress) Now() (files, decided, found, bytes int64) {
	decided = p.decided.Load() // first: files grows before it
	return p.files.Load(), decided, p.found.Load(), p.bytes.Load()
}
