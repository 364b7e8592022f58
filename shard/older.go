package shard

import (
	"time"

	"github.com/shoalsearch/shoal/shard/file"
)

// Rebuild is the progress of rebuilding files of earlier versions. They are not damaged, and answer
// until then if this program can read their version.
type Rebuild struct {
	Left   int       // files of an earlier version that are in use
	Unread int       // of these, files that this program cannot read: their text is missing until then
	Of     int       // the highest value of Left since it was last 0
	Began  time.Time // when Left last became more than 0
}

// Older counts the files that have an older version than new ones.
func (s *Set) Older() Rebuild {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.older()
}

// older is like Older. The caller must hold the mutex.
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

// versions returns the versions in which files are written now.
func (s *Set) versions() file.Versions { return s.opt.Formats.Written(s.opt.Level()) }

// Written names the versions in which files are written now. Another version makes another file of
// the same text.
func (s *Set) Written() string { return s.versions().String() }
