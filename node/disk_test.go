package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A volume with much reserved space is not full. Otherwise a node there would get no data.
func TestReservedDiskSpace_isNotCountedAsUsed(t *testing.T) {
	t.Parallel()
	free, total := freeSpace(&unix.Statfs_t{Bsize: 4096, Blocks: 252, Bfree: 182, Bavail: 22})
	if free != 22*4096 || total != 92*4096 {
		t.Errorf("free %d, total %d blocks, want 22 and 92", free/4096, total/4096)
	}
}

// An operator who reads only the log learns why nothing is built any more.
func TestVolume_logsOnceWhenItFillsAndWhenItHasRoom(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	volume := volumeLog{log: slog.New(slog.NewTextHandler(&log, nil)), dir: "/data"}
	for _, c := range []struct {
		used int
		want string // "" means that nothing is logged
	}{
		{84, ""},
		{85, "the node is given no more data"},
		{94, ""},
		{96, "nothing more is copied to the node or built on it"},
		{99, ""},
		{90, "the node is given no more data"},
		{40, "the volume has room again"},
		{40, ""},
	} {
		log.Reset()
		volume.note("n1", c.used)
		if got := log.String(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d %%: logged %q, want %q", c.used, got, c.want)
		}
	}
}
