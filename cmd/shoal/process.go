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
	minDescriptors  = 256   // with fewer, a node does not start
	warnDescriptors = 4096  // with fewer, it warns
	maxConnections  = 65536 // of clients, however many descriptors there are
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

	if files.Cur < warnDescriptors {
		log.Warn("the limit of open files is low: raise it with ulimit -n, or with LimitNOFILE= in a systemd unit",
			"limit", files.Cur, "want", warnDescriptors, "connections", connections)
	}

	return api.Limits{Rate: rate, Connections: connections, Memory: memoryFor(os.DirFS("/"))}, nil
}

// connectionsFor returns the limit of clients' connections: half of the descriptors. The rest of the
// node uses the other half.
func connectionsFor(descriptors uint64) (int, error) {
	if descriptors < minDescriptors {
		return 0, fmt.Errorf("the limit of open files is %d, and a node needs %d at least: raise it with ulimit -n, or with LimitNOFILE= in a systemd unit", descriptors, minDescriptors)
	}
	return int(min(descriptors/2, maxConnections)), nil
}

// memoryFor returns a quarter of this process's memory limit: the lowest of GOMEMLIMIT, its
// control group and the machine.
func memoryFor(root fs.FS) int64 {
	// usual applies if nothing is known. A quarter of less than least would be useless.
	const usual, least = 4 << 30, 256 << 20
	lowest := int64(math.MaxInt64)

	// Without GOMEMLIMIT this is the largest number.
	if limit := debug.SetMemoryLimit(-1); limit > 0 {
		lowest = limit
	}

	// A container sees the whole machine's memory, so take the lowest limit.
	for _, found := range []int64{groupMemory(root), machineMemory(root)} {
		if found > 0 {
			lowest = min(lowest, found)
		}
	}

	if lowest == math.MaxInt64 {
		lowest = usual
	}
	return max(lowest, least) / 4
}

// groupMemory returns the lowest limit of the process's control group and its parents; 0 if there
// is none.
func groupMemory(root fs.FS) (lowest int64) {
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
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && bad == nil && (lowest == 0 || n < lowest) {
				lowest = n
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return lowest
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
