package run

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// What git needs grows with the objects that it works on, and what a
// repository makes of its objects must not: some hundred bytes of deltas
// unpack to any number of gigabytes, some trees to any number of paths. So the
// memory of each run, and of the listing of files, is bounded by
//
//	a fixed amount + a multiple of the bytes that the objects take on disk
//
// A run that would need more fails alone, with runErrTooLarge.
const (
	GitMemory    = 160 << 20 // bytes of any run
	gitShare     = 6         // more for each byte stored: walking a large history takes about 3
	ListMemory   = 48 << 20  // bytes of listing files
	ListShare    = 32        // more for each byte stored
	ObjectMemory = 200       // bytes that receiving one object takes, besides its text
	MostReceive  = 2 << 30   // bytes for what a remote only announces
)

// Allowance is how many bytes of memory a run may take.
func (c *Command) Allowance() int64 {
	if c.Memory != 0 {
		return c.Memory
	}
	return GitMemory + gitShare*(c.Stored+StoredIn(c.Dir))
}

// start starts a run that process made ready. release has to be called when it
// has ended.
func (c *Command) start(cmd *exec.Cmd) (release func(), err error) {
	release, err = start(cmd, c.Writes)
	if err == nil {
		bound(cmd.Process, c.Allowance())
	}
	if err == nil && c.File > 0 {
		boundFiles(cmd.Process, c.File)
	}
	return release, err
}

// StoredIn is how many bytes the packs of a repository take.
func StoredIn(dir string) (bytes int64) {
	if dir == "" {
		return 0
	}
	EachPack(dir, func(name string, e os.DirEntry) {
		if info, err := e.Info(); err == nil && strings.HasSuffix(name, ".pack") {
			bytes += Occupied(info)
		}
	})
	return bytes
}

// EachPack calls use with the files among the packs of a repository.
func EachPack(dir string, use func(path string, e os.DirEntry)) {
	packs := filepath.Join(dir, "objects", "pack")
	entries, err := os.ReadDir(packs)
	if err != nil {
		return
	}
	for _, e := range entries {
		use(filepath.Join(packs, e.Name()), e)
	}
}

// Occupied is what a file takes on disk: not more than its size, and less when
// it has holes.
func Occupied(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(info.Size(), s.Blocks*512)
	}
	return info.Size()
}
