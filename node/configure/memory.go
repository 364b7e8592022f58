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

// memoryFile is the name of the memory in the data directory.
const memoryFile = "config-file.json"

// maxSeen is how many files are remembered.
const maxSeen = 64

// memory has the hashes of this node's former configuration files, on disk. Only one goroutine may
// use it.
type memory struct {
	Seen []string `json:"seen"` // newest last, each once

	path string
}

// readMemory reads the memory in a data directory. Without a file, it is empty.
func readMemory(path string) (memory, error) {
	m := memory{path: path}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}

	// A broken memory must not count as empty, because the node would not know which files it has
	// proposed.
	if err != nil {
		return m, fmt.Errorf("configuration: %s, which remembers what this node's file was, cannot be read: move it away, and the configuration in force stays: %w", path, err)
	}
	return m, nil
}

// remember makes a file the newest.
func (m *memory) remember(hash string) error {
	if n := len(m.Seen); n > 0 && m.Seen[n-1] == hash {
		return nil
	}

	// Keep each once: a returning file becomes the newest.
	hashes := slices.DeleteFunc(slices.Clone(m.Seen), func(h string) bool { return h == hash })
	hashes = append(hashes, hash)
	hashes = hashes[max(0, len(hashes)-maxSeen):]

	// Write to disk first, so that memory and disk agree.
	data, err := json.Marshal(memory{Seen: hashes})
	if err != nil {
		return err
	}
	if _, err := disk.Replace(m.path, bytes.NewReader(append(data, '\n'))); err != nil {
		return err
	}
	m.Seen = hashes
	return nil
}
