package git

import (
	"io/fs"
	"syscall"
)

// inode tells the change time and the links of a file, which even a hard
// link would alter.
func inode(info fs.FileInfo) any {
	s := info.Sys().(*syscall.Stat_t)
	return []any{s.Ctim, s.Nlink}
}
