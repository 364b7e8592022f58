package git

import (
	"sync"
)

// Mirror is one bare repository on this disk: the branches and tags of a
// remote, kept by [Mirror.Fetch] and read by everything else. A Mirror holds
// no file open when idle except the processes of its reading pool. All
// methods may be called at the same time; fetches of one Mirror take turns,
// and readers are never blocked by them.
type Mirror struct {
	dir string

	fetching sync.Mutex // held while the references change

	mu    sync.Mutex // guards the fields below
	state *refState  // of the last look at the references; nil when unknown
	pool  pool
	shut  bool
}

// Open returns the mirror in dir, which need not exist before the first
// fetch. It does no I/O.
func Open(dir string) *Mirror {
	return &Mirror{dir: dir}
}

// Dir is the directory of the mirror.
func (m *Mirror) Dir() string { return m.dir }
