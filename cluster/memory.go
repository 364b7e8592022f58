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

// mark is a point in a node's history: it had this committed entry on disk, and had reached this
// term.
type mark struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
}

// before reports whether a node at m has lost data since old: committed entries are never dropped,
// and terms only grow.
func (m mark) before(old mark) bool { return m.Index < old.Index || m.Term < old.Term }

// memory is what this node remembers of the history of the other nodes. A node that is behind its mark
// here has lost entries or votes that others count on, for example because an old disk image was
// restored. The marks may lag, so a node that is not behind may have lost data, too.
type memory struct {
	path string

	mu          sync.Mutex // guards the fields below
	cluster     string     // cluster of the nodes
	marks       map[string]mark
	lastContact contact // when this node last had everything committed, and up to which entry
	changed     bool    // since the last write to disk
}

// memoryFile is the content of peers.json.
type memoryFile struct {
	Cluster string          `json:"cluster"`
	Nodes   map[string]mark `json:"nodes"`
	Current contact         `json:"current,omitzero"`
}

// openMemory reads peers.json. If that fails, it returns an empty memory with the error: the node can
// start without it.
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

	// A file with null has no map.
	if f.Nodes != nil {
		m.cluster, m.marks, m.lastContact = f.Cluster, f.Nodes, f.Current
	}
	return m, nil
}

// markOf returns what is remembered of a node of a cluster.
func (m *memory) markOf(cluster, node string) mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cluster != m.cluster {
		return mark{}
	}
	return m.marks[node]
}

// recordMark remembers a point in a node's history, unless a later one is known.
func (m *memory) recordMark(cluster, node string, now mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resetFor(cluster)

	old := m.marks[node]
	if now = (mark{max(now.Index, old.Index), max(now.Term, old.Term)}); now != old {
		m.marks[node], m.changed = now, true
	}
}

// resetFor clears the memory unless it is about this cluster.
func (m *memory) resetFor(cluster string) {
	if cluster != m.cluster {
		m.cluster, m.marks, m.lastContact = cluster, map[string]mark{}, contact{}
	}
}

// currentEvery is the least time between two recorded contacts.
const currentEvery = 20 * time.Second

// contactFor returns the recorded contact, if it is about this cluster.
func (m *memory) contactFor(cluster string) contact {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cluster != m.cluster {
		return contact{}
	}
	return m.lastContact
}

// recordContact records when this node had everything that was committed in its cluster.
func (m *memory) recordContact(cluster string, c contact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resetFor(cluster)
	if c.At.Sub(m.lastContact.At) >= currentEvery {
		m.lastContact, m.changed = c, true
	}
}

// save writes changes to disk. It drops nodes that are no longer members.
func (m *memory) save(member func(node string) bool) error {
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

	data, err := json.Marshal(memoryFile{m.cluster, m.marks, m.lastContact})
	m.changed = false
	m.mu.Unlock()

	// Write without the lock, so that note does not wait for the disk.
	if err == nil {
		_, err = disk.Replace(m.path, bytes.NewReader(data))
	}
	if err != nil {
		m.markChanged()
		return fmt.Errorf("cluster: peers.json: %w", err)
	}
	return nil
}

// markChanged makes the next keep try again.
func (m *memory) markChanged() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = true
}
