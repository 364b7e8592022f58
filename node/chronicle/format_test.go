package chronicle

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file has lines of older and newer releases. Each line is read, or counted as one of a newer
// version. The file is not changed.
func TestAuditFile_linesOfOtherVersionsAreReadOrCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newTestTrail(dir, Policy{Disk: 1 << 30})
	at := time.Now().Add(-time.Hour).UTC()
	line := func(minute int, rest string) string {
		return `{"id": "n1-` + at.Format("150405") + `", "timestamp": "` + at.Add(time.Duration(minute)*time.Minute).Format(time.RFC3339) + `", ` + rest + "}\n"
	}
	text := line(0, `"action": "code.searched", "actorId": "a", "node": "n1"`) +
		line(1, `"action": "file.read", "actorId": "a", "node": "n1", "latency": {"ms": 3}, "status": 200`) +
		line(2, `"action": "file.read", "actorId": "a", "node": "n1", "status": {"code": 200}`) +
		`{"id": "n1-cut", "timesta` + "\n"
	path := filepath.Join(dir, b.allSeries()[0].fileName(at))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	b.running(t, func() {
		got := b.list(t, look{Limit: 10})
		if len(got.Lines) != 2 || got.Lines[0].Action != "file.read" || got.Lines[0].Status != 200 || got.Newer != 1 {
			t.Errorf("%d lines, %d of a newer version: %+v", len(got.Lines), got.Newer, got.Lines)
		}
	})
	if after, err := os.ReadFile(path); err != nil || string(after) != text {
		t.Errorf("the file is now %q, %v", after, err)
	}
}
