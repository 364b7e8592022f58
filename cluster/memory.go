package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/disk"
)

// mark is a place in the history of a node: it had this entry, which was
// committed, on its disk, and voted in no term before this one any more.
type mark struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
}

// before reports whether a node that is at m now has gone back in time, as
// far as old tells: what was committed is never dropped, and terms only grow.
func (m mark) before(old mark) bool { return m.Index < old.Index || m.Term < old.Term }

// memory is what this node remembers of the history of the others. A node that
// comes back with less has lost what others count on, as when its disk was
// replaced by an older image: entries that it acknowledged, and votes.
//
// It may lag behind the truth, so a node that agrees with it is not proved to
// be whole; a node that does not is proved to be older than itself.
type memory struct {
	path string

	mu      sync.Mutex // guards the fields below
	cluster string     // whose nodes they are
	marks   map[string]mark
	latest  contact // when this node last had all that was committed, and up to which entry
	changed bool    // since it was kept
}

// memoryFile is the form of peers.json.
type memoryFile struct {
	Cluster string          `json:"cluster"`
	Nodes   map[string]mark `json:"nodes"`
	Current contact         `json:"current,omitzero"`
}

// openMemory reads what was kept in a data directory. It is an aid: where it
// cannot be read, the node begins with none.
func openMemory(dir string) (*memory, error) {
	m := &memory{path: filepath.Join(dir, "peers.json"), marks: map[string]mark{}}
	data, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("cluster: peers.json: %w", err)
	}

	var f memoryFile
	if err := json.Unmarshal(data, &f); err != nil {
		return m, fmt.Errorf("cluster: peers.json: %w", err)
	}

	// A file that says null has no map, and notes are written into it.
	if f.Nodes != nil {
		m.cluster, m.marks, m.latest = f.Cluster, f.Nodes, f.Current
	}
	return m, nil
}

// of is what is remembered of a node of a cluster.
func (m *memory) of(cluster, node string) mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cluster != m.cluster {
		return mark{}
	}
	return m.marks[node]
}

// note remembers that a node has come as far as now.
func (m *memory) note(cluster, node string, now mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enter(cluster)

	old := m.marks[node]
	if now = (mark{max(now.Index, old.Index), max(now.Term, old.Term)}); now != old {
		m.marks[node], m.changed = now, true
	}
}

// enter forgets what was of another cluster.
func (m *memory) enter(cluster string) {
	if cluster != m.cluster {
		m.cluster, m.marks, m.latest = cluster, map[string]mark{}, contact{}
	}
}

// currentEvery is how much later a moment has to be that is written down for itself.
const currentEvery = 20 * time.Second

// current is the moment that was written down in a cluster.
func (m *memory) current(cluster string) contact {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cluster != m.cluster {
		return contact{}
	}
	return m.latest
}

// noteCurrent remembers when this node had all that was committed in its cluster.
func (m *memory) noteCurrent(cluster string, c contact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enter(cluster)
	if c.At.Sub(m.latest.At) >= currentEvery {
		m.latest, m.changed = c, true
	}
}

// keep writes to the disk what is new. Nodes that are no members any more
// are forgotten.
func (m *memory) keep(member func(node string) bool) error {
	m.mu.Lock()
	if !m.changed {
		m.mu.Unlock()
		return nil
	}

	for node := range m.marks {
		if !member(node) {
			delete(m.marks, node)
		}
	}

	data, err := json.Marshal(memoryFile{m.cluster, m.marks, m.latest})
	m.changed = false
	m.mu.Unlock()

	// Written outside of the lock: whoever notes something does not wait for the disk.
	if err == nil {
		_, err = disk.Replace(m.path, bytes.NewReader(data))
	}
	if err != nil {
		m.unkept()
		return fmt.Errorf("cluster: peers.json: %w", err)
	}
	return nil
}

// unkept has the next keep write what this one could not.
func (m *memory) unkept() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = true
}
