package auth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// socketName is the file name of the operator's socket in the data directory.
const socketName = "api.sock"

// HasSocket reports whether the data directory has an operator's socket. A killed node leaves its
// socket there, so nobody may listen on it.
func HasSocket(dataDir string) bool {
	info, err := os.Stat(filepath.Join(dataDir, socketName))
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// ListenSocket opens the operator's socket in an existing data directory that this process has
// locked. It replaces the socket of an earlier process. Closing the listener removes the socket.
func ListenSocket(dataDir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dataDir, socketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("operator's socket: %w", err)
	}
	var ln net.Listener
	err := withShortPath(dataDir, func(path string) (err error) {
		// Set the mode before the socket has a name, so that no other user can ever open it.
		ownerOnly := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
			var failed error
			if err := raw.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) }); err != nil {
				return err
			}
			return failed
		}}
		ln, err = ownerOnly.Listen(context.Background(), "unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("operator's socket: %w", err)
	}
	unix := ln.(*net.UnixListener)
	unix.SetUnlinkOnClose(false) // Close removes it: the path below /proc is no longer valid then
	return &socket{unix, filepath.Join(dataDir, socketName)}, nil
}

// socket removes its file when it is closed.
type socket struct {
	*net.UnixListener
	path string
}

// Close implements [net.Listener].
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if removeErr := os.Remove(s.path); err == nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = removeErr
	}
	return err
}

// DialSocket connects to the operator's socket of a data directory.
func DialSocket(ctx context.Context, dataDir string) (conn net.Conn, err error) {
	err = withShortPath(dataDir, func(path string) (err error) {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "unix", path)
		return err
	})
	var failed *net.OpError
	if errors.As(err, &failed) {
		err = failed.Err // leave out the path below /proc, which means nothing to a user
	}
	return conn, err
}

// withShortPath calls f with a short path of the socket, because the system limits the paths of sockets
// to 107 bytes. The path is valid until f returns.
func withShortPath(dataDir string, f func(path string) error) error {
	dir, err := os.Open(dataDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return f("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + socketName)
}
