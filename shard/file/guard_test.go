package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Only memory that cannot be read is damage. A panic for another reason is a mistake of the program,
// whose place is named.
func TestGuard_tellsDamageFromAMistakeOfTheProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(data)
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}

	var list []int
	var table map[string]int
	var nobody *File
	for name, row := range map[string]struct {
		task    func() error
		damaged bool
	}{
		"truncated file":   {func() error { _ = data[5000]; return errors.New(string(data[5000:5001])) }, true},
		"index":            {func() error { return errors.New(string(rune(list[3]))) }, false},
		"slice":            {func() error { list = list[:5]; return nil }, false},
		"nil map":          {func() error { table["a"] = 1; return nil }, false},
		"nil pointer":      {func() error { return errors.New(nobody.name) }, false},
		"panic of its own": {func() error { panic("no such case") }, false},
	} {
		err := Guard(row.task)
		if !Unusable(err) || errors.Is(err, ErrDamaged) != row.damaged {
			t.Errorf("%s: %v", name, err)
		}
		if !row.damaged && !strings.Contains(err.Error(), "guard_test.go:") {
			t.Errorf("%s does not name the place: %v", name, err)
		}
	}
	if err := Guard(func() error { return os.ErrNotExist }); err != os.ErrNotExist {
		t.Error(err)
	}
}
