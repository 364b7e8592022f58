package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/shoalsearch/shoal/api"
)

// Numbers of file descriptors. Open index files use none; git, other nodes and clients do.
const (
	fewestDescriptors = 256  // with fewer, a node does not start
	usualDescriptors  = 4096 // with fewer, it warns
	mostConnections   = 65536
)

// processLimits derives the limits for clients from those of this process.
func processLimits(rate float64, log *slog.Logger) (api.Limits, error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return api.Limits{}, fmt.Errorf("limit of open files: %w", err)
	}

	// Clients get their share of the descriptors, so that enough remain for git.
	connections, err := connectionsFor(files.Cur)
	if err != nil {
		return api.Limits{}, err
	}

	if files.Cur < usualDescriptors {
		log.Warn("the limit of open files is low: raise it with ulimit -n, or with LimitNOFILE= in a systemd unit",
			"limit", files.Cur, "want", usualDescriptors, "connections", connections)
	}

	return api.Limits{Rate: rate, Connections: connections, Memory: memoryFor(os.DirFS("/"))}, nil
}

// connectionsFor leaves half of the descriptors to the rest of the node.
func connectionsFor(descriptors uint64) (int, error) {
	if descriptors < fewestDescriptors {
		return 0, fmt.Errorf("the limit of open files is %d, and a node needs %d at least: raise it with ulimit -n, or with LimitNOFILE= in a systemd unit", descriptors, fewestDescriptors)
	}
	return int(min(descriptors/2, mostConnections)), nil
}

// memoryFor returns a quarter of this process's memory limit: the lowest of GOMEMLIMIT, its
// control group and the machine.
func memoryFor(root fs.FS) int64 {
	// usual applies if nothing is known. A quarter of less than least would be useless.
	const usual, least = 4 << 30, 256 << 20
	most := int64(math.MaxInt64)

	// Without GOMEMLIMIT this is the largest number.
	if limit := debug.SetMemoryLimit(-1); limit > 0 {
		most = limit
	}

	// A container sees the whole machine's memory, so take the lowest limit.
	for _, found := range []int64{groupMemory(root), machineMemory(root)} {
		if found > 0 {
			most = min(most, found)
		}
	}

	if most == math.MaxInt64 {
		most = usual
	}
	return max(most, least) / 4
}

// groupMemory returns the lowest limit of the process's control group and its parents; 0 if there
// is none.
func groupMemory(root fs.FS) (least int64) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}

	for line := range strings.Lines(string(text)) {
		// The line of cgroup v2 has no controllers between the colons.
		_, path, found := strings.Cut(strings.TrimSpace(line), "::")
		if !found {
			continue
		}

		// The limits of parent groups apply too.
		for dir := path; ; dir = filepath.Dir(dir) {
			raw, err := fs.ReadFile(root, filepath.Join("sys/fs/cgroup", dir, "memory.max"))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && bad == nil && (least == 0 || n < least) {
				least = n
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return least
}

// machineMemory returns the memory of the machine; 0 if unknown.
func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64) // malformed means unknown
			return kib << 10
		}
	}
	return 0
}
