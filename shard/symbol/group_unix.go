//go:build unix

package symbol

import (
	"os"
	"syscall"
)

// ownGroup makes a process the head of a group, so that what it starts ends with it: a
// program may be a script.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a process that nobody has waited for yet, and all that it started.
func killGroup(p *os.Process) {
	if p.Kill() == nil {
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
}
