package configure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	if err := replaceFile(m.path, append(data, '\n')); err != nil {
		return err
	}
	m.Seen = seen
	return nil
}

// replaceFile writes a file so that after a crash it is the old or the new one.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well

	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
