package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// A view is a git directory inside the mirror through which git reads a foreign repository:
//
//	config                    the few settings that say how to read it
//	HEAD, packed-refs, refs/, reftable/, shallow     copies
//	objects/info/alternates   where its objects are
//
// So git reads only objects from the foreign directory. It does not read its configuration, which
// may include any file of the machine or name programs, its hooks, or a reference that is a pipe.
const viewName = "view"

// makeView makes a view of the repository in the new directory to. config comes from viewConfig.
func (f *foreign) makeView(ctx context.Context, to string, config []byte) error {
	for _, name := range []string{"objects/info", "refs"} {
		if err := os.MkdirAll(filepath.Join(to, name), 0o700); err != nil {
			return err
		}
	}

	if err := os.WriteFile(filepath.Join(to, "config"), config, 0o600); err != nil {
		return err
	}

	head, err := pack.ReadFile(f.head, "HEAD", maxHead)
	if err != nil {
		return err
	}

	if err := os.WriteFile(filepath.Join(to, "HEAD"), head, 0o600); err != nil {
		return err
	}

	// Copy the files of references, because git can read all their formats.
	left := int64(maxViewRefs)
	for _, name := range []string{"packed-refs", "refs", "reftable"} {
		if err := f.copyTree(ctx, name, to, &left); err != nil {
			return err
		}
	}

	left = maxShallow
	if err := f.copyTree(ctx, "shallow", to, &left); err != nil {
		return err
	}

	var stores strings.Builder
	for _, s := range f.stores {
		if strings.ContainsAny(s.path, "\n\"") {
			return fmt.Errorf("%q: git cannot read objects in a directory of such a name", s.path)
		}

		stores.WriteString(s.path + "\n")
	}
	return os.WriteFile(filepath.Join(to, "objects/info/alternates"), []byte(stores.String()), 0o600)
}

// viewConfig returns the configuration of the view: the settings of the repository that describe
// its format and its hidden references. It ignores files that the configuration includes.
func (f *foreign) viewConfig(ctx context.Context) ([]byte, error) {
	text, err := f.config()
	if err != nil {
		return nil, err
	}

	// Most configurations contain no such setting. Then there is no need to ask git.
	var out bytes.Buffer
	out.WriteString("[core]\n\tbare = true\n")
	if lower := bytes.ToLower(text); !bytes.Contains(lower, []byte("extensions")) && !bytes.Contains(lower, []byte("hiderefs")) {
		return out.Bytes(), nil
	}

	// Git reads it from standard input, so it opens no file and follows no include.
	c := &run.Command{Args: []string{"config", "--no-includes", "--file", "-", "--list", "-z"}, Stdin: bytes.NewReader(text)}
	listed, err := c.Output(ctx)
	if err != nil {
		return nil, err
	}

	for setting := range strings.SplitSeq(string(listed), "\x00") {
		key, value, _ := strings.Cut(setting, "\n")
		section, name, _ := strings.Cut(key, ".")
		switch {
		case key == "core.repositoryformatversion", name == "hiderefs":
		case section == "extensions" && name != "worktreeconfig" && name != "partialclone" && name != "relativeworktrees":
		default:
			continue
		}

		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(value)
		fmt.Fprintf(&out, "[%s]\n\t%s = \"%s\"\n", section, name, quoted)
	}
	return out.Bytes(), nil
}

// copyTree copies a file of the common directory, or the files below a directory, to the directory
// to. It subtracts their sizes from left, and fails if they have more bytes. It skips locks, and a
// file that does not exist.
func (f *foreign) copyTree(ctx context.Context, name, to string, left *int64) error {
	copyFile := func(name string, _ fs.DirEntry) error {
		if strings.HasSuffix(name, ".lock") {
			return nil
		}

		in, info, err := pack.OpenFile(f.common, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}

		if err != nil {
			return err
		}
		defer in.Close()

		const fileCost = 512 // bytes that a file counts, besides its content
		if *left -= info.Size() + fileCost; *left < 0 {
			return fmt.Errorf("%s: %w", name, ErrTooLarge)
		}

		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}

		return errors.Join(ctx.Err(), copyTo(path, io.LimitReader(in, info.Size())))
	}

	info, err := f.common.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.IsDir():
		err = pack.Walk(f.common, name, copyFile)
	case err == nil:
		err = copyFile(name, nil)
	}

	if err != nil {
		return fmt.Errorf("copy %s of %s: %w", name, f.asked, err)
	}
	return nil
}

// formatOfConfig returns the hash algorithm that the configuration of a view names.
func formatOfConfig(config []byte) string {
	if bytes.Contains(bytes.ToLower(config), []byte(`objectformat = "sha256"`)) {
		return "sha256"
	}
	return "sha1"
}
