package git

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Where blanks do not count, git lists a file that differs in nothing else, and
// then has neither a patch nor numbers of it:
//
//	:100644 100644 <oid> <oid> M NUL a NUL
//	:100644 100644 <oid> <oid> M NUL b NUL
//	NUL
//	diff --git a/b b/b                        of a there is none
//
// So what follows the list belongs to a file by its name there, and not by its place.

// passBlank passes over the files of the list of which git has nothing, from the
// one that is next; this reports whether a file is the one that git tells of.
func (d *diffReader) passBlank(this func(f *FileDiff) bool) error {
	if !d.o.IgnoreBlanks {
		return nil
	}
	for d.file < len(d.diff.Files) && d.diff.Files[d.file].mayBeBlank() && !this(&d.diff.Files[d.file]) {
		d.blank = append(d.blank, d.file)
		d.file++
	}

	// Past the end of a whole list nothing can follow: rather no answer than one
	// that leaves out changes.
	if d.file == len(d.diff.Files) && !d.diff.Cut {
		return errors.New("git diff-tree told of a file that it had not listed")
	}
	return nil
}

// passRest passes over the files that are left when git has said all.
func (d *diffReader) passRest() {
	for i := d.file; d.o.IgnoreBlanks && i < len(d.diff.Files); i++ {
		if d.diff.Files[i].mayBeBlank() {
			d.blank = append(d.blank, i)
		}
	}
}

// dropBlank takes the files out of the list that differ in blanks alone.
func (d *diffReader) dropBlank() {
	if len(d.blank) == 0 {
		return
	}

	// Both are in the order of the list.
	kept, blank := d.diff.Files[:0], d.blank
	for i, f := range d.diff.Files {
		if len(blank) > 0 && blank[0] == i {
			blank = blank[1:]
			continue
		}
		kept = append(kept, f)
	}
	d.diff.Files = kept
}

// mayBeBlank reports whether all that changed in a file may be blanks: it has its
// name, its type and its mode still.
func (f *FileDiff) mayBeBlank() bool { return f.Status == 'M' && f.OldMode == f.NewMode }

// heads reports whether a line begins the patch of a file. Of a very long line
// only the beginning is known.
func (f *FileDiff) heads(line []byte) bool {
	head := []byte("diff --git " + quoted("a/"+f.OldPath) + " " + quoted("b/"+f.NewPath))
	return bytes.Equal(line, head) || len(line) >= maxLine && bytes.HasPrefix(head, line)
}

// quoted is a path as git writes it where core.quotePath is off: see unquote.
func quoted(s string) string {
	plain := true
	for i := range len(s) {
		plain = plain && s[i] >= ' ' && s[i] != 0x7f && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return s
	}

	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		c := s[i]
		k := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c)

		// A letter where there is one, else three octal digits.
		switch {
		case k >= 0:
			b.WriteString(`\` + `abtnvfr"\`[k:k+1])
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
