package git

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// boundary is the set of commits whose parents a repository lacks, by id, because its remote lacks
// them too. It is empty if the repository has all of its history.
type boundary map[string]bool

// shallowFile is the file of a repository that lists its boundary.
const shallowFile = "shallow"

// Shallow reports whether the repository lacks a part of its history, because its remote lacks it
// too.
func (b *base) Shallow() (bool, error) {
	cut, err := shallowOf(b.dir)
	return len(cut) > 0, err
}

// shallowOf reads the boundary of a repository.
func shallowOf(dir string) (boundary, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()

	text, err := pack.ReadFile(root, shallowFile, maxShallow)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which commits have no parents here: %w", err)
	}

	out := boundary{}
	for id := range strings.FieldsSeq(string(text)) {
		out[id] = true
	}
	return out, nil
}

// lines returns the ids as sorted lines.
func (b boundary) lines() string {
	var out strings.Builder
	for _, id := range slices.Sorted(maps.Keys(b)) {
		out.WriteString(id + "\n")
	}
	return out.String()
}

// mark returns a text that stands for the boundary in a list of the ids that a copy has. It cannot
// be an id.
func (b boundary) mark() string { return fmt.Sprintf("shallow %x", sha256.Sum256([]byte(b.lines()))) }

// write writes the boundary to a file. It removes the file if the boundary is empty.
func (b boundary) write(name string) error {
	if len(b) == 0 {
		if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}

	// Git may read the file at any moment, so it must appear as a whole.
	temp := name + ".new"
	if err := os.WriteFile(temp, []byte(b.lines()), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, name)
}
