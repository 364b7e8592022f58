package git

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
)

// FuzzGitOutputReaders_neverPanic gives the readers of git's output texts that git would never
// print. They must return errors, and never more than their input.
func FuzzGitOutputReaders_neverPanic(f *testing.F) {
	f.Add([]byte("100644 name\x00aaaaaaaaaaaaaaaaaaaa40000 dir\x00bbbbbbbbbbbbbbbbbbbb"))
	f.Add([]byte(":100644 100644 a b M\x00path\x00\x00diff --git a/x b/x\n@@ -1,2 +1 @@ head\n-a\n-b\n+c\n\\ No newline\n"))
	f.Add([]byte("0123456789012345678901234567890123456789 1 1 1\nauthor Ann\nfilename \"a\\tb\\303\"\n\tline\n"))
	f.Add([]byte("shoal mirror 1\nsha1\nref: refs/heads/main\n1\n0123456789012345678901234567890123456789 refs/heads/main\nPACK"))
	f.Add([]byte("hash\x00parents\x00name\x00mail\x001\x002\x00subject\x00body\n\x00"))
	f.Add([]byte("hash\x00parents\x00name\x00mail\x001\x002\x00subject\x00body\n\x00\nR095\x00old\x00new\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data, 20)
		if err == nil {
			for _, e := range entries {
				if e.name == "" || strings.ContainsAny(e.name, "/\x00") || e.name == ".." {
					t.Errorf("a tree has the name %q", e.name)
				}
			}
		}
		for _, o := range []DiffOptions{{}, {IgnoreBlanks: true}, {Stat: true}, {Stat: true, IgnoreBlanks: true}} {
			o.MaxBytes, o.MaxFiles = 100, 3
			d := &diffReader{o: o, in: newRecords(bytes.NewReader(data))}
			d.read()
			d.dropBlank()
		}
		b := newBlameReader()
		b.read(bytes.NewReader(data))
		for _, r := range b.blame.Ranges {
			if r.Lines < 1 {
				t.Errorf("a blame has the range %+v", r)
			}
		}
		newRecords(bytes.NewReader(data)).readCommits(func(Commit) error { return nil })
		readFollowed(newRecords(bytes.NewReader(data)), func(Commit, string) error { return nil })
		if to, err := readHeader(bufio.NewReader(bytes.NewReader(data))); err == nil {
			for name := range to.refs {
				if !strings.HasPrefix(name, "refs/") {
					t.Errorf("a copy has the reference %q", name)
				}
			}
		}
		l := &listing{refs: map[string]string{}}
		l.read(bytes.NewReader(data))
		unquote(string(data))
		for _, o := range []SourceOptions{{}, {FirstLine: 2, Lines: 3, MaxBytes: 10, Count: true}, {FirstLine: 1, Lines: 1, MaxBytes: 5}} {
			if o.MaxBytes == 0 {
				o.MaxBytes = 1 << 20
			}
			s := Source{Size: int64(len(data)), FirstLine: max(1, o.FirstLine)}
			o.FirstLine = s.FirstLine
			if err := s.read(bytes.NewReader(data), o); err != nil && err != io.EOF {
				t.Errorf("reading %d bytes: %v", len(data), err)
			}
			if s.Total >= 0 && s.Total != countLines(data) {
				t.Errorf("%d lines, want %d (%+v)", s.Total, countLines(data), o)
			}
		}
	})
}
