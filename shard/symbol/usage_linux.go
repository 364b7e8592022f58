package symbol

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// tick is the unit of CPU time in /proc, which is the same on all machines.
const tick = 10 * time.Millisecond

// usageOf adds up the usage of the processes of a group, because the program may be a script. It
// returns false if that cannot be read.
func usageOf(group int) (sum usage, ok bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return usage{}, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return usage{}, false
	}

	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // the process has ended meanwhile
		}
		if u, processGroup := parseStat(stat); processGroup == group {
			sum.cpu += u.cpu
			sum.busy = sum.busy || u.busy
			ok = true
		}
	}
	return sum, ok
}

// parseStat reads a line of /proc/N/stat: the usage of a process and its ended children, and its
// process group; -1 if the line has another form.
func parseStat(stat []byte) (u usage, group int) {
	// The program's name is in brackets, and may contain any character.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return usage{}, -1
	}
	group, err := strconv.Atoi(string(fields[2]))
	if err != nil {
		return usage{}, -1
	}

	// These are user and system time, of the process and of its children.
	for _, f := range fields[11:15] {
		ticks, _ := strconv.ParseInt(string(f), 10, 64)
		u.cpu += time.Duration(ticks) * tick
	}
	u.busy = fields[0][0] == 'R' || fields[0][0] == 'D'
	return u, group
}
