//go:build !linux

package shard

import "os"

func writeback(*os.File, int64, int64) {}
