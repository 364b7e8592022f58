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

// The descriptors that a node needs. Files of the index take none once they
// are open; git, the other nodes and the clients do.
const (
	fewestDescriptors = 256  // fewer: a node does not start
	usualDescriptors  = 4096 // fewer: it warns
	mostConnections   = 65536
)

// processLimits are what this process may use, and so what clients may use of it.
func processLimits(rate float64, log *slog.Logger) (api.Limits, error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return api.Limits{}, fmt.Errorf("limit of open files: %w", err)
	}

	// What clients may open follows from it: beyond that they wait, and git still works.
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

// memoryFor is a quarter of the memory that this process may use: what the
// runtime was told, what its control group allows, or what the machine has.
func memoryFor(root fs.FS) int64 {
	// Where nothing is known, and what is assumed at the least: a quarter of less serves nobody.
	const usual, least = 4 << 30, 256 << 20
	most := int64(math.MaxInt64)

	// The runtime says the largest number where nobody set a limit.
	if told := debug.SetMemoryLimit(-1); told > 0 {
		most = told
	}

	// The tightest counts: a container sees the memory of the whole machine.
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

// groupMemory is the least limit of the process's control group and those
// above it, 0 where there is none.
func groupMemory(root fs.FS) (least int64) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}

	for line := range strings.Lines(string(text)) {
		// Only the line of the second version of control groups has no controllers in it.
		_, path, found := strings.Cut(strings.TrimSpace(line), "::")
		if !found {
			continue
		}

		// A group may take no more than any group above it.
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

// machineMemory is the memory of the machine, 0 where that is not known.
func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64) // malformed: not known
			return kib << 10
		}
	}
	return 0
}
