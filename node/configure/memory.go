package configure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/shoalsearch/shoal/cluster/disk"
)

// memoryFile is the file of the data directory that remembers.
const memoryFile = "config-file.json"

// maxSeen is how many files are remembered.
const maxSeen = 64

// memory is the hashes of the configuration files that this node had, on
// disk. It belongs to one goroutine.
type memory struct {
	Seen []string `json:"seen"` // the newest last, each once

	path string
}

// recall reads the memory of a data directory; there is none at first.
func recall(path string) (memory, error) {
	m := memory{path: path}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}

	// A broken memory is not taken for none: nobody knows then what the node had offered.
	if err != nil {
		return m, fmt.Errorf("configuration: %s, which remembers what this node's file was, cannot be read: move it away, and the configuration in force stays: %w", path, err)
	}
	return m, nil
}

// see makes a file the newest.
func (m *memory) see(hash string) error {
	if n := len(m.Seen); n > 0 && m.Seen[n-1] == hash {
		return nil
	}

	// Each once: one that comes back is the newest again.
	seen := slices.DeleteFunc(slices.Clone(m.Seen), func(h string) bool { return h == hash })
	seen = append(seen, hash)
	seen = seen[max(0, len(seen)-maxSeen):]

	// On disk first: what is not written there is not remembered.
	data, err := json.Marshal(memory{Seen: seen})
	if err != nil {
		return err
	}
	if _, err := disk.Replace(m.path, bytes.NewReader(append(data, '\n'))); err != nil {
		return err
	}
	m.Seen = seen
	return nil
}
