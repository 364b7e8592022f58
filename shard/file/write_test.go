package file

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriter_writesTheDocumentedExample compares a file with the example in the package comment.
func TestWriter_writesTheDocumentedExample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := NewWriter(dir, KindDead, Release.Written(1))
	if err != nil {
		t.Fatal(err)
	}
	w.Add(1, []byte("abc"))
	w.Add(2, []byte("hel"), []byte("lo"))
	id, size, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}

	got, err := os.ReadFile(filepath.Join(dir, id.Name(KindDead)))
	if err != nil || size != int64(len(got)) {
		t.Fatalf("size %d, read %d, %v", size, len(got), err)
	}
	number := func(n byte) string { return hex.EncodeToString([]byte{n, 0, 0, 0, 0, 0, 0, 0}) }
	want := hex.EncodeToString([]byte("SHOALIDX")) + "0200000002000000" +
		"6162630000000000" + "68656c6c6f" +
		"02000000" + "01000000" + number(1) + number(16) + number(3) + number(2) + number(24) + number(5) + "xxxxxxxx" +
		number(29) + number(60) + "xxxxxxxx" + "00000000" + hex.EncodeToString([]byte("SHOALEND"))
	for i, have := 0, hex.EncodeToString(got); i < max(len(have), len(want)); i += 2 {
		if i >= len(have) || i >= len(want) || want[i:i+2] != "xx" && have[i:i+2] != want[i:i+2] {
			t.Fatalf("byte %d:\n%s, want\n%s", i/2, have, want)
		}
	}

	f, err := Open(filepath.Join(dir, id.Name(KindDead)), KindDead, &Release)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := f.Bytes(2); err != nil || !bytes.Equal(b, []byte("hello")) {
		t.Fatalf("section 2: %q, %v", b, err)
	}
	if _, err := Open(filepath.Join(dir, id.Name(KindDead)), KindShard, &Release); err == nil || !strings.Contains(err.Error(), "another kind") {
		t.Fatalf("opened as another kind: %v", err)
	}
}

// TestWriter_reportsAFailedWrite closes the file while it is written.
func TestWriter_reportsAFailedWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := NewWriter(dir, KindShard, Release.Written(1))
	if err != nil {
		t.Fatal(err)
	}
	w.Add(1, make([]byte, 3*writeBytes))
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
	w.Add(2, make([]byte, 10*writeBytes))
	if name, _, err := w.Finish(); err == nil {
		t.Errorf("%s, no error", name)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
