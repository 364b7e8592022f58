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

// memory is what this node remembers of the history of the others. A node that returns with less
// has lost entries or votes that others count on, as after restoring an old disk image.
//
// The memory may lag behind. So agreeing with it does not prove that a node is complete, but being
// behind it proves that a node lost data.
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

// openMemory reads peers.json. The memory is only an aid: if it cannot be read, the node starts
// with an empty one, and the error.
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

// note remembers a point in a node's history.
func (m *memory) note(cluster, node string, now mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enter(cluster)

	old := m.marks[node]
	if now = (mark{max(now.Index, old.Index), max(now.Term, old.Term)}); now != old {
		m.marks[node], m.changed = now, true
	}
}

// enter clears the memory if it is about another cluster.
func (m *memory) enter(cluster string) {
	if cluster != m.cluster {
		m.cluster, m.marks, m.lastContact = cluster, map[string]mark{}, contact{}
	}
}

// currentEvery is the least time between two recorded contacts.
const currentEvery = 20 * time.Second

// current returns the recorded contact, if it is about this cluster.
func (m *memory) current(cluster string) contact {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cluster != m.cluster {
		return contact{}
	}
	return m.lastContact
}

// noteCurrent records when this node had everything that was committed in its cluster.
func (m *memory) noteCurrent(cluster string, c contact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enter(cluster)
	if c.At.Sub(m.lastContact.At) >= currentEvery {
		m.lastContact, m.changed = c, true
	}
}

// keep writes changes to disk. It drops nodes that are no longer members.
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
