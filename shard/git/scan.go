package git

import (
	"context"
	"fmt"
	"slices"
)

// Scan reads files in the order given and calls visit with each; the content is
// valid during the call only, and visit returns false to end the scan. It is how
// a commit is searched that is not indexed. Files larger than maxSize bytes (0 is
// 2 MiB) are passed over; a size below 0 is looked up.
func (f *files) Scan(ctx context.Context, files []Entry, maxSize int64, visit func(e Entry, content []byte) bool) error {
	if maxSize <= 0 {
		maxSize = 2 << 20
	}

	// Sizes first: they say what is passed over.
	read, err := f.Sized(ctx, files)
	if err != nil {
		return err
	}

	read = slices.DeleteFunc(read, func(e Entry) bool { return e.Size > maxSize })
	if len(read) == 0 {
		return nil
	}

	b, err := f.Blobs(ctx, func(yield func(string) bool) {
		for _, e := range read {
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
	for _, e := range read {
		if buf, err = b.Next(buf[:0]); err != nil {
			return fmt.Errorf("read %q: %w", e.Path, err)
		}

		if !visit(e, buf) {
			break
		}
	}
	return nil
}

// Sized is files with their sizes: those below 0 are looked up. The list that is
// given stays as it is.
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

// Files lists the files and symlinks of a commit that keep says yes to (nil
// keeps all), with their sizes, in the order of their paths.
func (f *files) Files(ctx context.Context, commit string, keep func(path string) bool) ([]Entry, error) {
	if err := checkCommit(commit); err != nil {
		return nil, err
	}

	files, ok := f.listings.Get(commit)

	// The listing of a commit never changes: it is kept, unless it is huge.
	if !ok {
		for e, err := range f.Tree(ctx, commit) {
			if err != nil {
				return nil, err
			}
			files = append(files, e)
		}

		if len(files) < 200_000 {
			f.listings.Put(commit, files)
		}
	}

	kept := make([]Entry, 0, len(files))
	for _, e := range files {
		if keep == nil || keep(e.Path) {
			kept = append(kept, e)
		}
	}
	return kept, nil
}
