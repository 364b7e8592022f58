package git

import "context"

// ScanOptions says which files of a commit are read by a scan.
type ScanOptions struct {
	Dir     string                 // only below this directory; empty is all
	Keep    func(path string) bool // nil keeps every file
	MaxSize int64                  // larger files are passed over; 0 is 2 MiB
}

// Scan reads the files of a commit in the order of their paths and hands
// each to visit, whose content is valid during the call only; visit returns
// false to end the scan. It is how a commit that is not indexed is searched:
// as the index would, only slower. One blob at two paths is read twice.
func (m *Mirror) Scan(ctx context.Context, commit string, o ScanOptions, visit func(e Entry, content []byte) bool) error {
	return ErrNoRef
}
