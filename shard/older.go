package shard

import (
	"time"

	"github.com/shoalsearch/shoal/shard/file"
)

// Rebuild is the progress of rebuilding files of earlier versions. Searches read such a file until
// it is rebuilt, if this program can read its version.
type Rebuild struct {
	Left   int       // files of an earlier version that are in use
	Unread int       // of these, files that this program cannot read: their text cannot be searched
	Of     int       // the highest value of Left since it was last 0
	Began  time.Time // when Left last became more than 0
}

// Older counts the files whose version is older than the one in which files are written now.
func (s *Set) Older() Rebuild {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.countOlder()
}

// countOlder counts the files for Older and updates s.rebuild. The caller must hold the mutex.
func (s *Set) countOlder() Rebuild {
	r, written := &s.rebuild, s.versions()
	r.Left, r.Unread = 0, 0
	for _, unusedSince := range s.unreadable {
		if unusedSince.IsZero() {
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

// Written returns the versions in which files are written now, as text. The same source gives other
// bytes in another version.
func (s *Set) Written() string { return s.versions().String() }
