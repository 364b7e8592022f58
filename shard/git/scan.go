package git

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Scan searches a commit that has no index. It reads files in the given order and calls visit with
// each; content is valid only during the call, and visit returns false to end the scan. It skips
// files larger than maxSize bytes (0 means 2 MiB), and looks up sizes below 0.
func (f *files) Scan(ctx context.Context, files []Entry, maxSize int64, visit func(e Entry, content []byte) bool) error {
	if maxSize <= 0 {
		maxSize = 2 << 20
	}

	small, err := f.Sized(ctx, files)
	if err != nil {
		return err
	}

	small = slices.DeleteFunc(small, func(e Entry) bool { return e.Size > maxSize })
	if len(small) == 0 {
		return nil
	}

	b, err := f.Blobs(ctx, func(yield func(string) bool) {
		for _, e := range small {
			if !yield(e.OID) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	defer b.Close()

	var buf []byte
	for _, e := range small {
		if buf, err = b.Next(buf[:0]); err != nil {
			return fmt.Errorf("read %q: %w", e.Path, err)
		}

		if !visit(e, buf) {
			break
		}
	}
	return nil
}

// Sized returns a copy of the list with all sizes. It looks up the sizes that are below 0.
func (f *files) Sized(ctx context.Context, files []Entry) ([]Entry, error) {
	sized := slices.Clone(files)
	err := f.with(ctx, func(c reader) error {
		return c.sizes(len(sized), func(i int) (string, *int64) {
			if sized[i].Size >= 0 {
				return "", nil
			}
			return sized[i].OID, &sized[i].Size
		})
	})
	return sized, err
}

// maxCachedListing is the number of files from which on Files does not cache the listing of a commit.
const maxCachedListing = 200_000

// Files lists the files and symlinks of a commit for which keep returns true, with sizes, sorted by
// path. If keep is nil, it lists all.
func (f *files) Files(ctx context.Context, commit string, keep func(path string) bool) ([]Entry, error) {
	if err := checkCommit(commit); err != nil {
		return nil, err
	}

	files, ok := f.listings.Get(commit)
	if !ok {
		var err error
		if files, err = f.listFiles(ctx, commit); err != nil {
			return nil, err
		}

		// The listing of a commit never changes, so cache it unless it is huge.
		if len(files) < maxCachedListing {
			f.listings.Put(commit, files, 1)
		}
	}

	selected := make([]Entry, 0, len(files))
	for _, e := range files {
		if keep == nil || keep(e.Path) {
			selected = append(selected, e)
		}
	}
	return selected, nil
}

// listFiles lists all files and symlinks of a commit with their sizes, sorted by path, without
// submodules.
func (f *files) listFiles(ctx context.Context, commit string) (all []Entry, err error) {
	blobs, err := f.Union(ctx, []string{commit})
	if err != nil {
		return nil, err
	}

	// The union lists each blob once; a tree lists it at each of its paths.
	for _, b := range blobs {
		for _, o := range b.Occurrences {
			all = append(all, Entry{Path: o.Path, Kind: o.Kind, OID: b.OID, Size: b.Size})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}
