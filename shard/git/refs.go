package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// refFiles reads the references of the mirror from its files. It returns false if the configuration
// differs from the one the mirror was made with: then the caller asks git, which reports what is
// wrong.
func (b *base) refFiles() (map[string]string, bool) {
	// A configuration may store references elsewhere, for example in tables.
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

// hasLooseRefs reports whether any reference of the mirror has its own file. If the directory cannot
// be read, it returns true.
func (b *base) hasLooseRefs() bool {
	loose := errors.New("loose") // ends the walk
	err := filepath.WalkDir(filepath.Join(b.dir, "refs"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			return loose
		}
		return err
	})
	return err != nil
}

// mark is a file that is written last, when a mirror is complete. It names the hash algorithm.
const mark = "shoal-mirror"

// formatOf returns the hash algorithm of the mirror in dir; empty if there is no complete mirror.
func formatOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, mark))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}

	// A directory is no mirror if somebody has removed a part of it.
	for _, name := range []string{"HEAD", "objects", "refs", "config"} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(string(text)), nil
}

// configOf returns the configuration of a mirror.
func configOf(format string) string {
	version, extensions := "0", ""
	if format != "sha1" {
		version, extensions = "1", "[extensions]\n\tobjectformat = "+format+"\n"
	}
	return "[core]\n\trepositoryformatversion = " + version + "\n\tfilemode = true\n\tbare = true\n" + extensions
}
