package git

import (
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What git needs grows with the objects that it works on, and what a
// repository makes of its objects must not: some hundred bytes of deltas
// unpack to any number of gigabytes, some trees to any number of paths. So the
// memory of each run, and of the listing of files, is bounded by
//
//	a fixed amount + a multiple of the bytes that the objects take on disk
//
// A run that would need more fails alone, with ErrTooLarge.
const (
	gitMemory    = 160 << 20 // bytes of any run
	gitShare     = 6         // more for each byte stored: walking a large history takes about 3
	listMemory   = 48 << 20  // bytes of listing files
	listShare    = 32        // more for each byte stored
	objectMemory = 200       // bytes that receiving one object takes, besides its text
	mostReceive  = 2 << 30   // bytes for what a remote only announces
)

// allowance is how many bytes of memory a run may take.
func (c *command) allowance() int64 {
	if c.memory != 0 {
		return c.memory
	}
	return gitMemory + gitShare*(c.stored+storedIn(c.dir))
}

// start starts a run that process made ready. release has to be called when it
// has ended.
func (c *command) start(cmd *exec.Cmd) (release func(), err error) {
	release, err = start(cmd, c.writes)
	if err == nil {
		bound(cmd.Process, c.allowance())
	}
	if err == nil && c.file > 0 {
		boundFiles(cmd.Process, c.file)
	}
	return release, err
}

// storedIn is how many bytes the packs of a repository take.
func storedIn(dir string) (bytes int64) {
	if dir == "" {
		return 0
	}
	eachPack(dir, func(name string, e os.DirEntry) {
		if info, err := e.Info(); err == nil && strings.HasSuffix(name, ".pack") {
			bytes += occupied(info)
		}
	})
	return bytes
}

// eachPack calls use with the files among the packs of a repository.
func eachPack(dir string, use func(path string, e os.DirEntry)) {
	packs := filepath.Join(dir, "objects", "pack")
	entries, err := os.ReadDir(packs)
	if err != nil {
		return
	}
	for _, e := range entries {
		use(filepath.Join(packs, e.Name()), e)
	}
}

// announced is how many bytes of memory a fetch needs that ran out of memory. The
// half pack that it left says in its first bytes how many objects the remote
// announced. The result is 0 when that does not explain it. The half pack is
// removed.
func (u *updater) announced() (memory int64) {
	eachPack(u.dir, func(path string, _ os.DirEntry) {
		if !strings.HasPrefix(filepath.Base(path), "tmp_") {
			return
		}

		defer os.Remove(path)
		f, err := os.Open(path)
		if err != nil {
			return
		}
		defer f.Close()

		var head [12]byte
		if _, err := io.ReadFull(f, head[:]); err == nil && string(head[:4]) == "PACK" {
			memory = max(memory, objectMemory*int64(binary.BigEndian.Uint32(head[8:])))
		}
	})

	// What fits into the usual memory did not run out of it for that.
	if memory < gitMemory/4 {
		return 0
	}
	return gitMemory + min(memory, mostReceive)
}
