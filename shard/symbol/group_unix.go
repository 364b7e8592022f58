//go:build unix

package symbol

import (
	"os"
	"syscall"
)

// ownGroup makes a process the leader of a process group. The program may be a script: then killing
// the group also ends what it started.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a process that nobody has waited for yet, and everything that it started.
func killGroup(p *os.Process) {
	if p.Kill() == nil {
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
}
