package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// An error with a cause outside a file is not reported as damage of the file.
func TestStorageError_withAnotherCauseIsNotReportedAsDamage(t *testing.T) {
	t.Parallel()
	for cause, says := range map[error]string{
		syscall.EACCES:                 "may not use /d/raft/raft.db: give it to that user, as `chown -R",
		syscall.EPERM:                  "may not use",
		syscall.EROFS:                  "mounted read-only",
		syscall.EIO:                    "the disk of /d/raft/raft.db fails",
		syscall.ENOSPC:                 "is full: make space",
		syscall.EDQUOT:                 "is full: make space",
		syscall.EMFILE:                 "raise the limit",
		syscall.ENOMEM:                 "no memory",
		bbolterrors.ErrTimeout:         "in use by another process",
		bbolterrors.ErrVersionMismatch: "another version of the program",
	} {
		err := faultOf("/d/raft/raft.db", &fs.PathError{Op: "open", Path: "raft.db", Err: cause})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "damaged") {
			t.Errorf("%v: %v", cause, err)
		}
	}
	if err := faultOf("raft.db", errDamaged); err != nil {
		t.Errorf("damage: %v", err)
	}
}

// A log of another bbolt version is not damaged.
func TestRaftLog_ofAnotherBboltVersionIsNotReportedAsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logIn(t, dir)
	path := filepath.Join(dir, logFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, int(binary.NativeEndian.Uint32(data[headAt+8:]))} {
		head := data[at+headAt : at+headAt+headSummed]
		binary.NativeEndian.PutUint32(head[4:], 99)
		sum := fnv.New64a()
		sum.Write(head)
		binary.NativeEndian.PutUint64(data[at+headAt+headSummed:], sum.Sum64())
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(dir, offlineWatchdog()); err == nil || strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), "another version") {
		t.Errorf("got %v", err)
	}
}

// If the log file changes under a running node, the process exits with a sentence.
func TestRaftLog_damagedWhileOpenEndsTheProcess(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 8 {
		dir := t.TempDir()
		logIn(t, dir)
		var said []string
		dog := offlineWatchdog()
		dog.exit = func(reason string) { said = append(said, reason) }
		s, err := openStore(dir, dog)
		if err != nil {
			t.Fatal(err)
		}

		f, err := os.OpenFile(filepath.Join(dir, logFile), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, _ := f.Stat()
		page := int64(os.Getpagesize())
		junk := make([]byte, info.Size()-2*page)
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		if _, err := f.WriteAt(junk, 2*page); err != nil {
			t.Fatal(err)
		}
		f.Close()

		_, _ = s.FirstIndex()
		_, _ = s.LastIndex()
		for i := range uint64(20) {
			_ = s.GetLog(i, new(raft.Log))
		}
		_, _ = s.Get(currentTerm)
		if len(said) == 0 {
			t.Errorf("round %d: a log of which nothing is left is read", round)
		}
		for _, reason := range said {
			if !strings.Contains(reason, "raft log") {
				t.Errorf("round %d: it ends with %q", round, reason)
			}
		}
	}
}

// Commands that run as root leave no file that the service cannot use.
func TestRestoreAndRecover_filesBelongToTheOwnerOfTheDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can do as root does")
	}
	const service = 12345
	n := start(t, options(t, t.TempDir()))
	n.propose(&catalog.Noop{})
	var saved bytes.Buffer
	if err := n.Snapshot(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	n.stop()

	home := t.TempDir()
	if err := os.Chown(home, service, service); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(home, "data") // created by the command itself
	if _, err := Restore(made, n.o.ClusterKeyFile, &saved); err != nil {
		t.Fatal(err)
	}
	expectOwner(t, made, service)

	if _, err := Recover(made); err != nil {
		t.Fatal(err)
	}
	expectOwner(t, made, service)
}

func expectOwner(t *testing.T, dir string, uid uint32) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err := errors.Join(err, syscall.Lstat(path, &st)); err != nil {
			return err
		}
		if files++; st.Uid != uid {
			return fmt.Errorf("%s belongs to %d", path, st.Uid)
		}
		return nil
	})
	if err != nil || files < 5 {
		t.Errorf("%d files, %v", files, err)
	}
}
