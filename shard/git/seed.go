package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// seed copies the packs of a local directory into a new mirror, so that the
// first fetch finds nearly everything there: copying bytes costs a fraction
// of packing and indexing them. The copies are files of our own, never links.
// Whatever goes wrong only means that the fetch has more to do; it checks
// that all is there.
func (m *Mirror) seed(ctx context.Context, remote Remote) {
	source, ok := seedable(remote.URL)
	if !ok {
		return
	}
	to := filepath.Join(m.dir, "objects", "pack")
	if err := copyPacks(ctx, filepath.Join(source, "objects", "pack"), to); err != nil {
		entries, _ := os.ReadDir(to)
		for _, e := range entries {
			os.Remove(filepath.Join(to, e.Name()))
		}
	}
}

// seedable is the git directory behind a file address, if its packs hold
// whole histories.
func seedable(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	dir, err := gitDir(filepath.Clean(u.Path))
	if err != nil {
		return "", false
	}
	dir, err = commonDir(dir)
	if err != nil {
		return "", false
	}
	for _, name := range []string{"shallow", "objects/info/alternates"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return "", false
		}
	}
	return dir, true
}

// copyPacks copies pairs of packs and their indexes; a pack whose pair is
// not there, or one that promises objects of another place, ends it.
func copyPacks(ctx context.Context, from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".promisor") {
			return errors.New("a partial clone")
		}
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".pack")
		if !ok || !strings.HasPrefix(base, "pack-") || !e.Type().IsRegular() {
			continue
		}
		// The index last: git looks for a pack only where there is an index.
		for _, ext := range []string{".pack", ".idx"} {
			if err := copyFile(ctx, filepath.Join(from, base+ext), filepath.Join(to, base+ext)); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(ctx context.Context, from, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil { // copy_file_range: shared blocks where the file system can
		out.Close()
		return err
	}
	return out.Close()
}
