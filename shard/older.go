package shard

import (
	"time"

	"github.com/shoalsearch/shoal/shard/file"
)

// Rebuild is how far the files of earlier versions are made anew. They are not
// damaged, and answer meanwhile where this program reads them.
type Rebuild struct {
	Left   int       // files of an earlier version that are in use
	Unread int       // of these, the ones that this program does not read: their text is missing until then
	Of     int       // the most that Left has been since it was 0
	Began  time.Time // since when it is not 0
}

// Older counts the files of a version before the one that is written now.
func (s *Set) Older() Rebuild {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.older()
}

// older is Older with the mutex held.
func (s *Set) older() Rebuild {
	r, written := &s.rebuild, s.versions()
	r.Left, r.Unread = 0, 0
	for _, unused := range s.unread {
		if unused.IsZero() {
			r.Unread++
		}
	}
	for _, e := range s.files {
		if e.unused.IsZero() && e.f.Older(written) {
			r.Left++
		}
	}

	if r.Left += r.Unread; r.Left == 0 {
		*r = Rebuild{}
	} else if r.Of = max(r.Of, r.Left); r.Began.IsZero() {
		r.Began = s.opt.Now()
	}
	return *r
}

// versions is the versions of the files that are written now.
func (s *Set) versions() file.Versions { return s.opt.Formats.Written(s.opt.Level()) }

// Written names the versions of the files that are written now: the same text
// gives other files under another name.
func (s *Set) Written() string { return s.versions().String() }
