package shard

import (
	"os"
	"testing"
)

// TestFailedWriteIsReported loses the file while it is written.
func TestFailedWriteIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := newFileWriter(dir, kindShard)
	if err != nil {
		t.Fatal(err)
	}
	w.add(secBlocks, make([]byte, 3*writeBytes))
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
	w.add(secPaths, make([]byte, 10*writeBytes))
	if name, _, err := w.finish(); err == nil {
		t.Errorf("%s, no error", name)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
