package git

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// If blanks are ignored, git lists a file that differs only in blanks, but prints neither a patch
// nor numbers for it:
//
//	:100644 100644 <oid> <oid> M NUL a NUL
//	:100644 100644 <oid> <oid> M NUL b NUL
//	NUL
//	diff --git a/b b/b                        a has no patch
//
// So a patch belongs to the file that it names, not to the next file of the list.

// skipBlankFiles moves d.file to the file to which the next text of git belongs. It skips the files
// before it, which differ only in blanks, and adds them to d.blank. hasText reports whether the text
// belongs to a file.
func (d *diffReader) skipBlankFiles(hasText func(f *FileDiff) bool) error {
	if !d.o.IgnoreBlanks {
		return nil
	}
	for d.file < len(d.diff.Files) && d.diff.Files[d.file].mayBeBlank() && !hasText(&d.diff.Files[d.file]) {
		d.blank = append(d.blank, d.file)
		d.file++
	}

	// The text belongs to no file of a complete list. Fail, because the result would lack its
	// changes.
	if d.file == len(d.diff.Files) && !d.diff.Cut {
		return errors.New("git diff-tree told of a file that it had not listed")
	}
	return nil
}

// skipRemainingBlank adds the files after git's last text, which differ only in blanks, to d.blank.
func (d *diffReader) skipRemainingBlank() {
	for i := d.file; d.o.IgnoreBlanks && i < len(d.diff.Files); i++ {
		if d.diff.Files[i].mayBeBlank() {
			d.blank = append(d.blank, i)
		}
	}
}

// dropBlank removes the files in d.blank, which differ only in blanks, from the diff.
func (d *diffReader) dropBlank() {
	if len(d.blank) == 0 {
		return
	}

	changed, blank := d.diff.Files[:0], d.blank
	for i, f := range d.diff.Files {
		if len(blank) > 0 && blank[0] == i {
			blank = blank[1:]
			continue
		}
		changed = append(changed, f)
	}
	d.diff.Files = changed
}

// mayBeBlank reports whether a file may differ only in blanks: its name, type and mode are
// unchanged.
func (f *FileDiff) mayBeBlank() bool { return f.Status == 'M' && f.OldMode == f.NewMode }

// isFirstLine reports whether a line is the first line of the patch of a file. Of a line longer than
// maxLine it has only the beginning.
func (f *FileDiff) isFirstLine(line []byte) bool {
	head := []byte("diff --git " + quotePath("a/"+f.OldPath) + " " + quotePath("b/"+f.NewPath))
	return bytes.Equal(line, head) || len(line) >= maxLine && bytes.HasPrefix(head, line)
}

// quotePath returns a path as git writes it with core.quotePath off. It is the inverse of unquote.
func quotePath(s string) string {
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

		// The escape is a letter if there is one, otherwise three octal digits.
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
