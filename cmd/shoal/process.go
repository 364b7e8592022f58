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

// Numbers of file descriptors, which git, other nodes and clients use. Open index files use none.
const (
	minDescriptors  = 256   // a node with fewer does not start
	warnDescriptors = 4096  // a node with fewer warns
	maxConnections  = 65536 // most connections of clients, however many descriptors there are
)

// processLimits derives the limits for clients from the limits of this process, and warns if these are
// low. It fails if the process may open too few files for a node.
func processLimits(rate float64, log *slog.Logger) (api.Limits, error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return api.Limits{}, fmt.Errorf("limit of open files: %w", err)
	}

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

// connectionsFor returns the limit of clients' connections: half of the descriptors. Git, other nodes and
// files use the other half.
func connectionsFor(descriptors uint64) (int, error) {
	if descriptors < minDescriptors {
		return 0, fmt.Errorf("the limit of open files is %d, and a node needs %d at least: raise it with ulimit -n, or with LimitNOFILE= in a systemd unit", descriptors, minDescriptors)
	}
	return int(min(descriptors/2, maxConnections)), nil
}

// memoryFor returns the memory for clients' requests and answers: a quarter of the lowest of GOMEMLIMIT,
// the limit of this process's control group, and the machine's memory. root is the root of the file system.
func memoryFor(root fs.FS) int64 {
	const unknownLimit = 4 << 30 // assumed if no limit is known
	const minLimit = 256 << 20   // assumed for lower limits, whose quarter would be useless
	lowest := int64(math.MaxInt64)

	// Without GOMEMLIMIT this returns the largest number.
	if limit := debug.SetMemoryLimit(-1); limit > 0 {
		lowest = limit
	}

	// In a container the machine's memory is larger than the limit of the control group.
	for _, limit := range []int64{groupMemory(root), machineMemory(root)} {
		if limit > 0 {
			lowest = min(lowest, limit)
		}
	}

	if lowest == math.MaxInt64 {
		lowest = unknownLimit
	}
	return max(lowest, minLimit) / 4
}

// groupMemory returns the lowest memory limit of the process's control group and its parents; 0 if they
// have none.
func groupMemory(root fs.FS) (lowest int64) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}

	for line := range strings.Lines(string(text)) {
		// The line for cgroup v2 has nothing between its two colons.
		_, path, found := strings.Cut(strings.TrimSpace(line), "::")
		if !found {
			continue
		}

		for dir := path; ; dir = filepath.Dir(dir) {
			raw, err := fs.ReadFile(root, filepath.Join("sys/fs/cgroup", dir, "memory.max"))
			if n, parseErr := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && parseErr == nil && (lowest == 0 || n < lowest) {
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
			kib, _ := strconv.ParseInt(fields[1], 10, 64) // 0 after an error
			return kib << 10
		}
	}
	return 0
}
