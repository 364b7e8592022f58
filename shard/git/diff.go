package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// DiffRange is a run of lines.
type DiffRange struct{ Start, Lines int }

// Hunk is one change in a file. Body holds its lines, each with its first
// byte ' ', '+', '-' or '\' and its newline.
type Hunk struct {
	Old, New DiffRange
	Heading  string
	Body     string
}

// FileDiff is what changed in a file.
type FileDiff struct {
	OldPath string // empty when added
	NewPath string // empty when deleted
	Status  byte   // A added, M modified, D deleted, R renamed, T of another type
	OldMode string // as git writes it, 000000 when there was no file
	NewMode string
	Binary  bool
	Added   int // lines in Hunks
	Removed int
	Hunks   []Hunk
	Cut     bool // a limit left out hunks
}

// DiffOptions bounds a diff. The zero value has the defaults.
type DiffOptions struct {
	Path     string // a file or directory; empty is all
	Context  int    // lines around a change; 0 is 3, negative none
	MaxBytes int    // of hunks; 0 is 16 MiB
	MaxFiles int    // 0 is 10,000
}

// Diff is the difference of two commits.
type Diff struct {
	Files []FileDiff // in the order of their paths
	Cut   bool       // a limit left something out
}

const (
	diffTime = 60 * time.Second
	maxLine  = 1 << 20 // bytes of a line of a diff; the rest is dropped
)

// Diff compares two commits directly (two dots), with renames found. A limit
// on bytes leaves out hunks, never the names of files.
func (m *Mirror) Diff(ctx context.Context, base, head string, o DiffOptions) (Diff, error) {
	path, err := cleanPath(o.Path)
	if err != nil {
		return Diff{}, err
	}
	for _, commit := range []string{base, head} {
		if err := checkCommit(commit); err != nil {
			return Diff{}, err
		}
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 16 << 20
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 10_000
	}
	around := 3
	if o.Context != 0 {
		around = max(0, o.Context)
	}
	c := m.git("diff-tree", "-r", "-z", "-M", "--raw", "--patch", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
		"--unified="+strconv.Itoa(around), "--end-of-options", base, head, "--")
	if path != "" {
		c.args = append(c.args, path)
	}
	c.timeout, c.limit = diffTime, 8<<30
	d := &diffReader{o: o}
	err = c.stream(ctx, func(r io.Reader) error {
		d.in = bufio.NewReaderSize(r, 64<<10)
		return d.read()
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && len(d.diff.Files) > 0 {
		d.cutFrom(d.file)
		err = nil
	}
	if err != nil {
		return Diff{}, fmt.Errorf("compare: %w", err)
	}
	return d.diff, nil
}

// diffReader parses a list of files, each line between NULs, and then their
// patches in the same order.
type diffReader struct {
	o     DiffOptions
	in    *bufio.Reader
	diff  Diff
	file  int // index of the file whose patch is read
	bytes int // of hunks so far
}

func (d *diffReader) read() error {
	if err := d.raw(); err != nil {
		return err
	}
	d.file = -1
	half := false // the first patch of a type change, which has two, was read
	line, err := d.line()
	for err == nil {
		if !strings.HasPrefix(line, "diff --git ") {
			return fmt.Errorf("git diff-tree said %.80q", line)
		}
		if d.file >= 0 && d.diff.Files[d.file].Status == 'T' && !half {
			half = true
		} else {
			d.file, half = d.file+1, false
		}
		if d.file >= len(d.diff.Files) { // what follows is past MaxFiles
			return errStop
		}
		line, err = d.patch(&d.diff.Files[d.file])
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// raw reads the list of files:
// ":100644 100644 <oid> <oid> M" NUL path NUL, two paths for a rename.
func (d *diffReader) raw() error {
	for {
		first, err := d.in.Peek(1)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if first[0] == 0 { // stands between the list and the patches
			d.in.Discard(1)
			return nil
		}
		if first[0] != ':' {
			return nil
		}
		head, err := d.in.ReadString(0)
		if err != nil {
			return err
		}
		f := strings.Fields(strings.TrimRight(head, "\x00"))
		if len(f) != 5 {
			return fmt.Errorf("git diff-tree said %.80q", head)
		}
		path, err := d.in.ReadString(0)
		if err != nil {
			return err
		}
		path = path[:len(path)-1]
		file := FileDiff{OldPath: path, NewPath: path, Status: f[4][0], OldMode: f[0][1:], NewMode: f[1]}
		switch file.Status {
		case 'A':
			file.OldPath = ""
		case 'D':
			file.NewPath = ""
		case 'R', 'C':
			to, err := d.in.ReadString(0)
			if err != nil {
				return err
			}
			file.NewPath = to[:len(to)-1]
		}
		if len(d.diff.Files) == d.o.MaxFiles {
			d.diff.Cut = true
			continue // the list must be read to its end
		}
		d.diff.Files = append(d.diff.Files, file)
	}
}

// line reads a line without its newline; of a very long one the beginning.
func (d *diffReader) line() (string, error) {
	var long []byte
	for {
		part, err := d.in.ReadSlice('\n')
		if err == nil && long == nil {
			return string(part[:len(part)-1]), nil
		}
		if len(long) < maxLine {
			long = append(long, part...)
		}
		switch {
		case err == nil:
			return string(bytes.TrimSuffix(long, []byte{'\n'})), nil
		case err == io.EOF && len(long) > 0:
			return string(long), nil
		case err != bufio.ErrBufferFull:
			return "", err
		}
	}
}

// patch reads the patch of a file up to the line that begins the next.
func (d *diffReader) patch(f *FileDiff) (next string, err error) {
	for {
		line, err := d.line()
		if err != nil {
			return "", err
		}
		switch {
		case strings.HasPrefix(line, "diff --git "):
			return line, nil
		case strings.HasPrefix(line, "Binary files "):
			f.Binary = true
		case strings.HasPrefix(line, "@@ "):
			if d.bytes > d.o.MaxBytes {
				d.cutFrom(d.file)
				return "", errStop
			}
			if err := d.hunk(f, line); err != nil {
				return "", err
			}
		}
	}
}

// cutFrom marks that the hunks of the files from one on are not all there.
func (d *diffReader) cutFrom(i int) {
	d.diff.Cut = true
	for ; i < len(d.diff.Files); i++ {
		if i >= 0 {
			d.diff.Files[i].Cut = true
		}
	}
}

// hunk reads as many lines as its header announces.
func (d *diffReader) hunk(f *FileDiff, header string) error {
	h, err := parseHunkHeader(header)
	if err != nil {
		return err
	}
	var body strings.Builder
	for oldLeft, newLeft := h.Old.Lines, h.New.Lines; oldLeft > 0 || newLeft > 0 || d.noNewlineFollows(); {
		line, err := d.line()
		if err != nil {
			return err
		}
		switch {
		case line == "" || line[0] == ' ':
			oldLeft, newLeft = oldLeft-1, newLeft-1
		case line[0] == '-':
			oldLeft--
			f.Removed++
		case line[0] == '+':
			newLeft--
			f.Added++
		}
		d.bytes += len(line) + 1
		if d.bytes <= d.o.MaxBytes {
			body.WriteString(line)
			body.WriteByte('\n')
		} else {
			f.Cut, d.diff.Cut = true, true
		}
	}
	h.Body = body.String()
	if h.Body != "" {
		f.Hunks = append(f.Hunks, h)
	}
	return nil
}

// noNewlineFollows sees the remark that can come after the last line.
func (d *diffReader) noNewlineFollows() bool {
	b, err := d.in.Peek(1)
	return err == nil && b[0] == '\\'
}

// parseHunkHeader reads "@@ -1,2 +3,4 @@ heading".
func parseHunkHeader(line string) (Hunk, error) {
	bad := fmt.Errorf("git diff-tree said %.80q", line)
	rest, ok := strings.CutPrefix(line, "@@ -")
	old, rest, ok2 := strings.Cut(rest, " +")
	next, heading, ok3 := strings.Cut(rest, " @@")
	if !ok || !ok2 || !ok3 {
		return Hunk{}, bad
	}
	h := Hunk{Heading: strings.TrimPrefix(heading, " ")}
	for _, x := range []struct {
		text string
		to   *DiffRange
	}{{old, &h.Old}, {next, &h.New}} {
		start, lines, many := strings.Cut(x.text, ",")
		x.to.Lines = 1
		var err error
		if x.to.Start, err = strconv.Atoi(start); err != nil {
			return Hunk{}, bad
		}
		if many {
			if x.to.Lines, err = strconv.Atoi(lines); err != nil {
				return Hunk{}, bad
			}
		}
	}
	return h, nil
}
