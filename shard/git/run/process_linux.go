package run

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup returns attributes that make a process the leader of its own process group, so that
// killGroup also kills its children. If writes is set, the kernel kills the process when the thread
// that started it ends: a node that is killed must not leave a process that holds locks.
func ownGroup(writes bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if writes {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}

// startProcess starts cmd. For a process that writes it keeps the thread that starts it alive until
// the caller calls release, because the process would die with the thread.
func startProcess(cmd *exec.Cmd, writes bool) (release func(), err error) {
	if !writes {
		return func() {}, cmd.Start()
	}

	// The thread that starts the process waits for release.
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		<-done
	}()

	err = <-started
	if err != nil {
		close(done)
		return nil, err
	}
	return func() { close(done) }, nil
}

// killGroup kills a process and everything that it started.
func killGroup(p *os.Process) error {
	if p == nil {
		return nil
	}
	if err := syscall.Kill(-p.Pid, syscall.SIGKILL); err != nil {
		return p.Kill()
	}
	return nil
}

// enlargePipe enlarges the pipe f to 1 MiB, so that writer and reader wait less often.
func enlargePipe(f *os.File) {
	const setPipeSize = 1031 // F_SETPIPE_SZ
	if raw, err := f.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, 1<<20)
		})
	}
}

// limitMemory limits the memory that a process, and each of its children, may write to. Memory that
// it maps to read, such as packs and their indexes, does not count.
func limitMemory(p *os.Process, bytes int64) {
	limit := unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	// If this fails, the process has ended and needs no limit.
	_ = unix.Prlimit(p.Pid, unix.RLIMIT_DATA, &limit, nil)
}

// limitFiles limits the size of each file that a process, and each of its children, writes. A
// process that writes more is killed without a core dump.
func limitFiles(p *os.Process, bytes int64) {
	limit, none := unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}, unix.Rlimit{}
	_ = unix.Prlimit(p.Pid, unix.RLIMIT_CORE, &none, nil)
	_ = unix.Prlimit(p.Pid, unix.RLIMIT_FSIZE, &limit, nil)
}

// FreeAt returns how many bytes may be written to the volume of a directory; 0 if unknown.
func FreeAt(dir string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0
	}
	return int64(s.Bavail) * int64(s.Bsize)
}
