package main

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"
)

// An image whose programs cannot run on its kind of machine is refused.
func TestCheckPrograms_refusesProgramsOfAnotherMachine(t *testing.T) {
	t.Parallel()
	program := func(machine byte) string {
		return "\x7fELF\x02\x01\x01" + string(make([]byte, 11)) + string([]byte{machine, 0}) + "more"
	}
	for name, c := range map[string]struct {
		files []string
		arch  string
		good  bool
	}{
		"amd64":             {[]string{"", "text", program(62), program(62)}, "amd64", true},
		"arm64":             {[]string{program(183)}, "arm64", true},
		"one of another":    {[]string{program(183), program(62)}, "arm64", false},
		"all of another":    {[]string{program(62)}, "arm64", false},
		"no program at all": {[]string{"text", "a text that is longer than the head of a program"}, "amd64", false},
		"a kind unknown":    {[]string{program(62)}, "riscv64", false},
	} {
		path := filepath.Join(t.TempDir(), "root.tar")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(file)
		for _, text := range c.files {
			if err := w.WriteHeader(&tar.Header{Name: "f", Mode: 0o644, Size: int64(len(text))}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		file.Close()
		if err := checkPrograms(path, c.arch); (err == nil) != c.good {
			t.Errorf("%s: %v, want good %t", name, err, c.good)
		}
	}
}
