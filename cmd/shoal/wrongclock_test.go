package main

import (
	"bytes"
	words "encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wrongClock shows a program, and what it starts, another time than the machine has. The program runs as it is: the
// kernel hands its calls that read the date to the test, which answers them. Time since the start is not changed, as
// when somebody sets a clock.
type wrongClock struct {
	ahead atomic.Int64 // a time.Duration
}

// wrongClockEnv makes this test program the wrapper: it sets the filter and becomes the program of its arguments.
const wrongClockEnv = "SHOAL_TEST_WRONG_CLOCK"

func init() {
	if os.Getenv(wrongClockEnv) != "" {
		fmt.Fprintln(os.Stderr, becomeFiltered(os.Args[1:]))
		os.Exit(1)
	}
}

// Calls of the kernel for amd64.
const callBreak, callGettimeofday, callPrctl, callTime, callClock = 12, 96, 158, 201, 228

// seccompCall and seccompAnswer are the kernel's seccomp_notif and seccomp_notif_resp.
type (
	seccompCall struct {
		ID         uint64
		PID, Flags uint32
		Number     int32
		Arch       uint32
		Pointer    uint64
		Args       [6]uint64
	}
	seccompAnswer struct {
		ID    uint64
		Value int64
		Error int32
		Flags uint32
	}
)

// becomeFiltered sends the calls about dates to file 3 and runs a program in place of this one.
func becomeFiltered(args []string) error {
	runtime.LockOSThread()
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(value uint32, then, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: then, Jf: otherwise}
	}
	filter := []unix.SockFilter{
		load(4), equal(unix.AUDIT_ARCH_X86_64, 0, 8),
		load(0), equal(callBreak, 7, 0), equal(callPrctl, 6, 0), equal(callTime, 5, 0), equal(callGettimeofday, 4, 0), equal(callClock, 0, 2),
		load(16), equal(unix.CLOCK_REALTIME, 1, 0),
		{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	listener, _, code := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if code != 0 {
		return fmt.Errorf("seccomp: %w", code)
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return err
	}
	for _, file := range []int{3, 4, int(listener)} {
		unix.CloseOnExec(file)
	}
	if err := os.Unsetenv(wrongClockEnv); err != nil {
		return err
	}
	return syscall.Exec(args[0], args, os.Environ())
}

// start starts a command under this clock. It is there once the command has become the program.
func (c *wrongClock) start(cmd *exec.Cmd) error {
	if runtime.GOARCH != "amd64" {
		return errors.New("another clock is written for amd64 only")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "pair")
	defer theirs.Close()
	// The user of the program may not search the directory of this one, so it is opened here.
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	cmd.Args = append([]string{"wrong-clock", cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.ExtraFiles = "/proc/self/fd/4", []*os.File{theirs, self}
	cmd.Env = append(cmd.Env, wrongClockEnv+"=1")
	if err := cmd.Start(); err != nil {
		return err
	}
	theirs.Close() // so that the read ends if the wrapper fails
	space := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), space, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(space[:n])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("the wrapper sent no listener: %v", err)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	go c.answer(files[0])
	return nil
}

// answer answers the calls of the program and of its children until all have ended.
func (c *wrongClock) answer(listener int) {
	defer unix.Close(listener)
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			return
		}
		var call seccompCall
		if _, _, code := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&call))); code != 0 {
			continue // the caller was killed
		}
		answer := seccompAnswer{ID: call.ID}
		if err := c.handle(&call, &answer); err != nil {
			answer.Error, answer.Flags = 0, unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
	}
}

// handle writes the time into the memory of the caller.
func (c *wrongClock) handle(call *seccompCall, answer *seccompAnswer) error {
	if call.Number == callPrctl || call.Number == callBreak {
		answer.Flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
		return hideLibrary(call.PID)
	}
	now := time.Now().Add(time.Duration(c.ahead.Load()))
	seconds, rest, at := uint64(now.Unix()), uint64(now.Nanosecond()), call.Args[0]
	switch call.Number {
	case callTime:
		answer.Value = now.Unix()
		rest = 0
	case callGettimeofday:
		rest /= 1000
	case callClock:
		at = call.Args[1]
	}
	if at == 0 {
		return nil
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", call.PID), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	text := words.NativeEndian.AppendUint64(nil, seconds)
	if call.Number != callTime {
		text = words.NativeEndian.AppendUint64(text, rest)
	}
	_, err = memory.WriteAt(text, int64(at))
	return err
}

// hideLibrary renames the functions of the kernel's library in the memory of a program that is being started, so that
// the program reads the date by calls. Each program calls for memory or a thread before it looks for them.
func hideLibrary(pid uint32) error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return err
		}
		memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer memory.Close()
		text := make([]byte, to-from)
		if _, err := memory.ReadAt(text, from); err != nil {
			return err
		}
		if hidden := bytes.ReplaceAll(text, []byte("__vdso_"), []byte("__none_")); !bytes.Equal(hidden, text) {
			_, err = memory.WriteAt(hidden, from)
			return err
		}
	}
	return nil
}

func TestWrongClock_isSeenByAProgramAndItsChildren(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("NOT RUN: the numbers of the kernel's calls are those of amd64")
	}
	for _, ahead := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		var c wrongClock
		c.ahead.Store(int64(ahead))
		cmd := exec.Command("sh", "-c", "date +%s; git var GIT_COMMITTER_IDENT")
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "TZ=UTC")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := c.start(cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		var date, ident int64
		if _, err := fmt.Sscanf(strings.ReplaceAll(out.String(), "\n", " "), "%d a <a@example.com> %d", &date, &ident); err != nil {
			t.Fatalf("%v: %q", err, out.String())
		}
		for what, at := range map[string]int64{"date": date, "git": ident} {
			if off := time.Unix(at, 0).Sub(time.Now().Add(ahead)).Abs(); off > 10*time.Minute {
				t.Errorf("%s is wrong by %s", what, off)
			}
		}
	}
}
