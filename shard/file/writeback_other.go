//go:build !linux

package file

import "os"

func writeback(*os.File, int64, int64) {}
