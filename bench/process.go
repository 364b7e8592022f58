package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what a finished process has used and printed.
type usage struct {
	CPU, Wall time.Duration
	PeakBytes int64 // of memory
	Out       []byte
	Code      int
}

// measure runs a command. Exit code 1 is no error, because a grep without matches exits with it.
func measure(ctx context.Context, dir string, env []string, name string, args ...string) (usage, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	if cmd.ProcessState == nil { // the command did not start
		return usage{}, fmt.Errorf("run %s: %w", name, err)
	}

	// CPU and PeakBytes include those of child processes.
	u := usage{
		Wall: time.Since(start),
		CPU:  cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
		Out:  out.Bytes(),
		Code: cmd.ProcessState.ExitCode(),
	}

	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.PeakBytes = ru.Maxrss << 10
	}
	if u.Code > 1 || u.Code < 0 {
		return u, fmt.Errorf("run %s: exit code %d: %s", name, u.Code, bytes.TrimSpace(errs.Bytes()))
	}
	return u, nil
}

// procUsage returns the CPU time of a running process, and that of its children that have ended.
func procUsage(pid int) (own, children time.Duration, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}

	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var ticks [4]int64 // utime, stime, cutime, cstime
	for i := range ticks {
		if ticks[i], err = strconv.ParseInt(fields[11+i], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("process %d: %w", pid, err)
		}
	}

	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick, nil
}

// procMemory returns the peak, resident and anonymous memory of a process, in bytes.
func procMemory(pid int) (peak, resident, anonymous int64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, 0, err
	}

	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}

		kib, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			continue
		}

		switch f[0] {
		case "VmHWM:":
			peak = kib << 10
		case "VmRSS:":
			resident = kib << 10
		case "RssAnon:":
			anonymous = kib << 10
		}
	}

	return peak, resident, anonymous, nil
}
