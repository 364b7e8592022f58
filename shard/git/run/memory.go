package run

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Git needs memory in proportion to the objects that it works on. But some hundred bytes of deltas
// can unpack to any number of gigabytes, and some trees to any number of paths. So the memory of
// each run, and of listing files, is limited to
//
//	a fixed amount + a multiple of the bytes that the objects take on disk
//
// A run that needs more fails alone, with ErrTooLarge.
const (
	GitMemory    = 160 << 20 // bytes for each run
	gitShare     = 6         // further bytes for each stored byte: walking a large history takes about 3
	ListMemory   = 48 << 20  // bytes for listing files
	ListShare    = 32        // further bytes for each stored byte
	ObjectMemory = 200       // bytes for receiving one object, besides its text
	MostReceive  = 2 << 30   // greatest number of bytes for data that a remote has only announced
)

// Allowance returns how many bytes of memory a run may use.
func (c *Command) Allowance() int64 {
	if c.Memory != 0 {
		return c.Memory
	}
	return GitMemory + gitShare*(c.Stored+StoredIn(c.Dir))
}

// startLimited starts a run that newProcess has prepared, and limits its memory and files. The caller
// must call release after the run has ended.
func (c *Command) startLimited(cmd *exec.Cmd) (release func(), err error) {
	release, err = startProcess(cmd, c.Writes)
	if err == nil {
		limitMemory(cmd.Process, c.Allowance())
	}
	if err == nil && c.File > 0 {
		limitFiles(cmd.Process, c.File)
	}
	return release, err
}

// StoredIn returns how many bytes the packs of a repository take; 0 if dir is "".
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

// EachPack calls use with each file in the pack directory of a repository.
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

// Occupied returns what a file takes on disk: at most its size, and less if it has holes.
func Occupied(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(info.Size(), s.Blocks*512)
	}
	return info.Size()
}
