package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReplaceFile_writesTheWholeFileWithItsMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"old", "a longer new text", ""} {
		n, err := Replace(path, strings.NewReader(text))
		if err != nil || n != int64(len(text)) {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("%q, %v, want %q", got, err, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestReplaceFile_errorNamesTheGivenPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nosuch", "file")
	if _, err := Replace(path, strings.NewReader("")); err == nil || err.Error() != "write "+path+": no such file or directory" {
		t.Error(err)
	}
}

func TestReplaceFile_doesNotTouchTheOldFileAfterAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the source broke off")
	if _, err := Replace(path, iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Fatalf("error %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v, %v: want the old file alone", all, err)
	}
}
