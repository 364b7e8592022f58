package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// MaxRefs is how many references of a repository are read.
const MaxRefs = 200_000

// ErrManyRefs means that there are more.
var ErrManyRefs = fmt.Errorf("more than %d branches and tags", MaxRefs)

const (
	maxLooseRef   = 4 << 10  // bytes of a file with one reference
	maxPackedRefs = 64 << 20 // bytes of the file with many
)

// Refs reads the references of the repository in root, by full name: the
// loose ones first, since git writes the packed ones before it removes those.
// The ids are in hex. A symbolic reference, a name that git might not take, or
// references kept in another form are ErrAskGit; too many are ErrManyRefs.
func Refs(root *os.Root) (map[string]string, error) {
	refs := map[string]string{}
	err := Walk(root, "refs", func(name string, _ fs.DirEntry) error {
		// Git is writing it; until it is renamed, the old value holds.
		if strings.HasSuffix(name, ".lock") {
			return nil
		}
		return looseRef(root, name, refs)
	})

	if err == nil {
		err = packedRefs(root, refs)
	}

	// Git would read them all to say the same.
	if errors.Is(err, ErrManyRefs) {
		return nil, err
	}
	if err != nil {
		return nil, ask(err)
	}
	return refs, nil
}

// looseRef adds the reference in a file of its own.
func looseRef(root *os.Root, name string, refs map[string]string) error {
	text, err := ReadFile(root, name, maxLooseRef)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // packed or gone meanwhile
	}
	if err != nil {
		return err
	}

	oid := strings.TrimSuffix(string(text), "\n")
	if !IsID(oid) || !PlainRef(name) {
		return fmt.Errorf("%.80q is no plain reference", name)
	}
	refs[name] = oid
	if len(refs) > MaxRefs {
		return ErrManyRefs
	}
	return nil
}

// packedRefs adds the references of packed-refs that are not there yet.
//
//	# pack-refs with: peeled fully-peeled sorted
//	<id> refs/heads/main
//	<id> refs/tags/v1
//	^<id>                      what the tag above leads to
func packedRefs(root *os.Root, refs map[string]string) error {
	text, err := ReadFile(root, "packed-refs", maxPackedRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	// The line of what a tag leads to is not needed: who wants it reads the tag.
	for line := range bytes.Lines(text) {
		if line[0] == '#' || line[0] == '^' {
			continue
		}

		oid, name, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if !IsID(oid) || !PlainRef(name) {
			return fmt.Errorf("%.80q is no plain reference", name)
		}

		// A loose reference is newer than the packed one of its name.
		if _, loose := refs[name]; !loose {
			refs[name] = oid
		}

		if len(refs) > MaxRefs {
			return ErrManyRefs
		}
	}
	return nil
}

// PlainRef reports whether git certainly takes a name for that of a reference.
func PlainRef(name string) bool {
	if !strings.HasPrefix(name, "refs/") || strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.HasSuffix(name, ".") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("~^:?*[\\", r) }) < 0
}

// IsID reports whether s is a whole object id in hex.
func IsID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}
