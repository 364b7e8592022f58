package git

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// ScanOptions says which files of a commit are read by a scan.
type ScanOptions struct {
	Dir     string                 // only below this directory, or this file; empty is all
	Keep    func(path string) bool // nil keeps every file
	MaxSize int64                  // larger files are passed over; 0 is 2 MiB
}

// Scan reads the files of a commit in the order of their paths and hands
// each to visit, whose content is valid during the call only; visit returns
// false to end the scan. It is how a commit that is not indexed is searched:
// as the index would, only slower. passed counts the files that were larger
// than MaxSize.
func (m *Mirror) Scan(ctx context.Context, commit string, o ScanOptions, visit func(e Entry, content []byte) bool) (passed int, err error) {
	files, err := m.Files(ctx, commit, o)
	if err != nil {
		return 0, err
	}
	if o.MaxSize <= 0 {
		o.MaxSize = 2 << 20
	}
	all := len(files)
	files = slices.DeleteFunc(files, func(e Entry) bool { return e.Size > o.MaxSize })
	b, err := m.Blobs(ctx, func(yield func(string) bool) {
		for _, e := range files {
			if !yield(e.OID) {
				return
			}
		}
	})
	if err != nil {
		return 0, err
	}
	defer b.Close()
	var buf []byte
	for _, e := range files {
		buf, err = b.Next(buf[:0])
		if err != nil {
			return 0, fmt.Errorf("read %q: %w", e.Path, err)
		}
		if !visit(e, buf) {
			break
		}
	}
	return all - len(files), nil
}

// Files lists the files and symlinks of a commit with their sizes, as Scan
// would read them but of any size, in the order of their paths.
func (m *Mirror) Files(ctx context.Context, commit string, o ScanOptions) ([]Entry, error) {
	dir, err := cleanPath(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := checkCommit(commit); err != nil {
		return nil, err
	}
	files, ok := m.listings.get(commit)
	if !ok {
		for e, err := range m.Tree(ctx, commit) {
			if err != nil {
				return nil, err
			}
			files = append(files, e)
		}
		if len(files) < 200_000 {
			m.listings.put(commit, files)
		}
	}
	kept := make([]Entry, 0, len(files))
	for _, e := range files {
		below := dir == "" || e.Path == dir || strings.HasPrefix(e.Path, dir) && e.Path[len(dir)] == '/'
		if below && (o.Keep == nil || o.Keep(e.Path)) {
			kept = append(kept, e)
		}
	}
	return kept, nil
}
