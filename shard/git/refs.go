package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxRefFile bounds a file with packed references that is read here.
const maxRefFile = 64 << 20

// refFiles reads the references of a repository from their files, loose ones
// first, since git writes the packed ones before it removes those. It reports
// false for anything out of the ordinary: git is to be asked then.
func refFiles(dir string) (refs map[string]string, ok bool) {
	refs = map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // packed or gone meanwhile
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".lock") {
			return nil
		}
		if !d.Type().IsRegular() || !plainRef(name) {
			return errUnsuited
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		oid := strings.TrimSuffix(string(text), "\n")
		if err != nil || !isHex(oid) {
			return errUnsuited
		}
		refs[name] = oid
		return nil
	})
	if err != nil {
		return nil, false
	}
	return refs, packedRefs(filepath.Join(dir, "packed-refs"), refs)
}

// refFiles is those of the mirror. Where its configuration is not the one that
// it was made with, git is to be asked, and sees what is wrong.
func (m *Mirror) refFiles() (map[string]string, bool) {
	format, err := formatOf(m.dir)
	text, err2 := os.ReadFile(filepath.Join(m.dir, "config"))
	if err != nil || err2 != nil || string(text) != configOf(format) {
		return nil, false
	}
	return refFiles(m.dir)
}

// packedRefs adds the references of a file that are not there yet.
func packedRefs(path string, refs map[string]string) bool {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRefFile {
		return false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(text) {
		if line[0] == '#' || line[0] == '^' { // what an annotated tag leads to
			continue
		}
		oid, name, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if !isHex(oid) || !plainRef(name) {
			return false
		}
		if _, loose := refs[name]; !loose {
			refs[name] = oid
		}
	}
	return true
}

// plainRef tells that git surely takes a name for that of a reference.
func plainRef(name string) bool {
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

// looseRefs tells whether a reference of the mirror has a file of its own.
func (m *Mirror) looseRefs() bool {
	loose := errors.New("loose")
	err := filepath.WalkDir(filepath.Join(m.dir, "refs"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			return loose
		}
		return err
	})
	return err != nil
}

// writeRefs gives a mirror without references its first ones, and HEAD.
func (m *Mirror) writeRefs(refs map[string]string, head string) error {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fmt.Fprintf(&text, "%s %s\n", refs[name], name)
	}
	if err := m.replace("packed-refs", text.Bytes()); err != nil {
		return err
	}
	return m.replace("HEAD", []byte(head+"\n"))
}

// replace writes a file of the mirror as a whole.
func (m *Mirror) replace(name string, text []byte) error {
	path := filepath.Join(m.dir, name)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	f, err := os.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".lock"))
	}
	return os.Rename(path+".lock", path)
}

// ordinaryConfig tells that nothing in the config file of a repository changes
// what its references are or which of them it shows.
func ordinaryConfig(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, "config"))
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return false
	}
	text, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		return false
	}
	small := bytes.ToLower(text)
	for _, word := range []string{"refstorage", "hiderefs", "namespace", "include", "worktreeconfig", "partialclone"} {
		if bytes.Contains(small, []byte(word)) {
			return false
		}
	}
	return true
}
