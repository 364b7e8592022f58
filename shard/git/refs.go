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

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// refFiles reads the references of the mirror from its files. Where its
// configuration is not the one that it was made with, git is to be asked, and
// sees what is wrong.
func (b *base) refFiles() (map[string]string, bool) {
	// A configuration may put references elsewhere, as into tables.
	format, err := formatOf(b.dir)
	text, err2 := os.ReadFile(filepath.Join(b.dir, "config"))
	if err != nil || err2 != nil || string(text) != configOf(format) {
		return nil, false
	}

	root, err := os.OpenRoot(b.dir)
	if err != nil {
		return nil, false
	}
	defer root.Close()

	refs, err := pack.Refs(root)
	return refs, err == nil
}

// looseRefs reports whether a reference of the mirror has a file of its own.
func (b *base) looseRefs() bool {
	loose := errors.New("loose")
	err := filepath.WalkDir(filepath.Join(b.dir, "refs"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			return loose
		}
		return err
	})
	return err != nil
}

// writeRefs gives a mirror without references its first ones, and HEAD.
func (u *updater) writeRefs(refs map[string]string, head string) error {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fmt.Fprintf(&text, "%s %s\n", refs[name], name)
	}
	if err := u.replace("packed-refs", text.Bytes()); err != nil {
		return err
	}
	return u.replace("HEAD", []byte(head+"\n"))
}

// replace writes a file of the mirror so that readers see the old text or the new
// one, by git's own lock.
func (u *updater) replace(name string, text []byte) error {
	path := filepath.Join(u.dir, name)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}

	f, err := os.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}

	// On the disk before it has its name: a crash must not leave an empty file.
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".lock"))
	}
	return os.Rename(path+".lock", path)
}
