package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// MaxRefs is the greatest number of references that a repository may have.
const MaxRefs = 200_000

// ErrManyRefs means that a repository has more than MaxRefs references.
var ErrManyRefs = fmt.Errorf("more than %d branches and tags", MaxRefs)

const (
	maxLooseRef   = 4 << 10  // bytes in a file with one reference
	maxPackedRefs = 64 << 20 // bytes in the file with many references
)

// Refs reads the references of the repository in root, by full name. It reads loose ones first,
// because git writes packed references before it removes loose ones. The ids are in hex. The error
// is ErrAskGit for a symbolic reference, a name that git might refuse, or another form of storage,
// and ErrManyRefs if there are too many.
func Refs(root *os.Root) (map[string]string, error) {
	refs := map[string]string{}
	err := Walk(root, "refs", func(name string, _ fs.DirEntry) error {
		// Git writes a new value to a .lock file, and then renames it.
		if strings.HasSuffix(name, ".lock") {
			return nil
		}
		return readLooseRef(root, name, refs)
	})

	if err == nil {
		err = readPackedRefs(root, refs)
	}

	// Git would not read so many references either.
	if errors.Is(err, ErrManyRefs) {
		return nil, err
	}
	if err != nil {
		return nil, wrapAskGit(err)
	}
	return refs, nil
}

// readLooseRef adds a reference that has its own file to refs.
func readLooseRef(root *os.Root, name string, refs map[string]string) error {
	text, err := ReadFile(root, name, maxLooseRef)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was packed or removed meanwhile
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

// readPackedRefs adds the references in the file packed-refs to refs, except those that are there
// already.
//
//	# pack-refs with: peeled fully-peeled sorted
//	<id> refs/heads/main
//	<id> refs/tags/v1
//	^<id>                      the commit of the tag above
func readPackedRefs(root *os.Root, refs map[string]string) error {
	text, err := ReadFile(root, "packed-refs", maxPackedRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	// The line with the commit of a tag is not needed.
	for line := range bytes.Lines(text) {
		if line[0] == '#' || line[0] == '^' {
			continue
		}

		oid, name, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if !IsID(oid) || !PlainRef(name) {
			return fmt.Errorf("%.80q is no plain reference", name)
		}

		// A loose reference is newer than the packed one with its name.
		if _, loose := refs[name]; !loose {
			refs[name] = oid
		}

		if len(refs) > MaxRefs {
			return ErrManyRefs
		}
	}
	return nil
}

// PlainRef reports whether git certainly accepts a name for a reference.
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

// IsID reports whether s is a complete object id in hex.
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
