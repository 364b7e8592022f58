package git

import (
	"fmt"
	"strings"
	"testing"
)

// A commit of many files does not count, but it is one of the commits read, so it may cut the
// history.
func TestFilesChangedTogether_ignoreCommitsOfManyFiles(t *testing.T) {
	t.Parallel()
	var stream strings.Builder
	stream.WriteString("\x01\x00\na\x00b\x00\x01\x00")
	for i := range TogetherFiles + 1 {
		fmt.Fprintf(&stream, "f%d\x00", i)
	}
	counts := map[string]int{}
	commits, looked, err := countTogether(strings.NewReader(stream.String()), counts)
	if err != nil || commits != 1 || looked != 2 || len(counts) != 2 {
		t.Errorf("%d of %d commits count, with %v: %v", commits, looked, counts, err)
	}
}
