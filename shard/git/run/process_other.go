//go:build unix && !linux

package run

import (
	"os"
	"os/exec"
	"syscall"
)

func ownGroup(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func startProcess(cmd *exec.Cmd, _ bool) (release func(), err error) {
	return func() {}, cmd.Start()
}

// killGroup kills a process and its process group.
func killGroup(p *os.Process) error {
	if p == nil {
		return nil
	}
	if err := syscall.Kill(-p.Pid, syscall.SIGKILL); err != nil {
		return p.Kill()
	}
	return nil
}

// enlargePipe does nothing: only Linux can enlarge a pipe.
func enlargePipe(*os.File) {}

// limitMemory does nothing here: only GIT_ALLOC_LIMIT limits the memory of a run.
func limitMemory(*os.Process, int64) {}

// limitFiles does nothing: only Linux can limit the files that another process writes.
func limitFiles(*os.Process, int64) {}

// FreeAt returns 0, because the free space is unknown here.
func FreeAt(string) int64 { return 0 }
