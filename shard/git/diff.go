package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// DiffRange is a run of lines.
type DiffRange struct {
	Start int `json:"start"`
	Lines int `json:"lines"`
}

// Hunk is one change in a file. Body holds its lines, each with its first
// byte ' ', '+', '-' or '\' and its newline.
type Hunk struct {
	Old, New DiffRange
	Heading  string
	Body     string
}

// FileDiff is the change of one file.
type FileDiff struct {
	OldPath string // empty if the file was added
	NewPath string // empty if the file was deleted
	Status  byte   // A added, M modified, D deleted, R renamed, T changed type
	OldMode string // as git writes it; 000000 if there was no file
	NewMode string
	Binary  bool
	Added   int // number of added lines in Hunks
	Removed int
	Hunks   []Hunk
	Cut     bool // a limit removed hunks

	Similarity int // of a renamed file, in percent
}

// DiffOptions limits a diff. The zero value means the defaults.
type DiffOptions struct {
	Path     string // a file or directory; empty means all
	Context  int    // lines around a change; 0 means 3, negative none
	MaxBytes int    // bytes of hunks; 0 means 16 MiB
	MaxFiles int    // 0 means 10,000
	Stat     bool   // count lines, and return no hunks

	IgnoreBlanks bool // ignore lines that differ only in blanks, and files without other changes

	// Skip and Limit select a part of the files, and only their hunks. They do not work with Stat.
	// MaxFiles limits the files that are counted; with a part, 0 means 100,000.
	Skip  int
	Limit int // 0 means all
}

// Diff is the difference of two commits.
type Diff struct {
	Files []FileDiff // in the order of their paths
	Cut   bool       // a limit removed something
	late  bool       // the limit was a time limit

	Total   int  // number of changed files, also of those that are not in Files
	AtLeast bool // there are more files than Total
}

const (
	diffTime = 60 * time.Second
	maxLine  = 1 << 20 // bytes in a line of a diff; the rest is dropped
)

// diffs compares commits line by line.
type diffs struct {
	*base
	files  *files
	tasks  *run.Tasks         // runs work that continues after its caller has returned
	cached *run.Flights[Diff] // cached, because many readers of a part ask for the next one
}

// Diff compares two commits directly (two dots), and finds renames. MaxBytes limits the hunks, but
// not the names of files. The caller must not change the result.
func (h *diffs) Diff(ctx context.Context, base, head string, o DiffOptions) (Diff, error) {
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
		if o.Limit > 0 {
			o.MaxFiles = 100_000
		}
	}

	key := fmt.Sprint(h.dir, "\x00", base, head, path, "\x00", o.Context, o.MaxBytes, o.MaxFiles, o.Stat, o.IgnoreBlanks, o.Skip, o.Limit)
	size := func(d Diff) int64 { return d.size() }
	return h.cached.Do(ctx, h.tasks, key, size, func(ctx context.Context) (Diff, error) {
		return h.diff(ctx, base, head, path, o)
	})
}

// size returns about how much memory a difference takes. It returns -1 for a difference that a time
// limit has cut, which must not be cached because it may be complete the next time.
func (d *Diff) size() int64 {
	n := int64(100)
	for i := range d.Files {
		f := &d.Files[i]
		n += 300 + int64(len(f.OldPath)+len(f.NewPath))
		for _, h := range f.Hunks {
			n += 100 + int64(len(h.Body)+len(h.Heading))
		}
	}

	if d.late {
		return -1
	}
	return n
}

// diff compares two commits below a clean path. The caller has set all limits in o.
func (h *diffs) diff(ctx context.Context, base, head, path string, o DiffOptions) (Diff, error) {
	around := 3
	if o.Context != 0 {
		around = max(0, o.Context)
	}

	// Git prints the list of files, and then the numbers of lines or the patches.
	c := h.git("diff-tree", "-r", "-z", "-M", "--raw", "--no-ext-diff", "--no-textconv")
	if o.Stat {
		c.Args = append(c.Args, "--numstat")
	} else {
		c.Args = append(c.Args, "--patch", "--full-index", "--no-color", "--unified="+strconv.Itoa(around))
	}
	if o.IgnoreBlanks {
		c.Args = append(c.Args, "--ignore-all-space")
	}

	c.Args = append(c.Args, "--end-of-options", base, head, "--")
	if path != "" {
		c.Args = append(c.Args, path)
	}
	c.Timeout, c.Limit = diffTime, 8<<30

	d := &diffReader{o: o}
	err := c.Stream(ctx, func(r io.Reader) error {
		d.in = newRecords(r)
		return d.read()
	})

	// After the time limit, return what was read so far.
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && len(d.diff.Files) > 0 {
		d.cutFrom(d.file)
		d.diff.late, err = true, nil
	}

	if err != nil {
		return Diff{}, fmt.Errorf("compare: %w", err)
	}
	d.dropBlank()
	d.takePart()
	err = h.compareDecodable(ctx, base, head, d, around)
	return d.diff, err
}

// diffReader parses a list of files, with NULs between the fields, and then their patches in the
// same order.
type diffReader struct {
	o     DiffOptions
	in    *records
	diff  Diff
	file  int    // index of the file whose patch is being read
	blank []int  // indexes of the files that differ only in blanks
	bytes int    // bytes of hunks read so far
	paths int    // bytes of paths read so far
	long  []byte // buffer for a line that is longer than the buffer of in
	body  []byte // body of the hunk that is being read
}

// read reads the output of git diff-tree.
func (d *diffReader) read() error {
	if err := d.readList(); err != nil {
		return err
	}
	if d.o.Stat {
		return d.readNumbers()
	}

	d.file = -1
	halfRead := false // the first of the two patches of a type change was read
	line, err := d.readLine()
	for err == nil {
		if !bytes.HasPrefix(line, []byte("diff --git ")) {
			return fmt.Errorf("git diff-tree said %.80q", line)
		}

		// Git prints a type change, such as from a file to a link, as a deletion and an addition.
		if d.file >= 0 && d.diff.Files[d.file].Status == 'T' && !halfRead {
			halfRead = true
		} else {
			d.file, halfRead = d.file+1, false
			if err := d.skipBlankFiles(func(f *FileDiff) bool { return f.isFirstLine(line) }); err != nil {
				return err
			}
		}

		// The next files are beyond MaxFiles, or after the requested part.
		if d.file >= len(d.diff.Files) || d.isPastPart() {
			return run.ErrStop
		}
		line, err = d.readPatch(&d.diff.Files[d.file])
	}

	if err == io.EOF {
		d.file++
		d.skipRemainingBlank()
		return nil
	}
	return err
}

// readList reads the list of files into d.diff.Files:
// ":100644 100644 <oid> <oid> M" NUL path NUL, two paths for a rename.
func (d *diffReader) readList() error {
	for {
		first, err := d.in.src.Peek(1)
		if err == io.EOF {
			return nil
		}

		if err != nil {
			return err
		}

		if first[0] == 0 { // separates the list from the patches
			d.in.src.Discard(1)
			return nil
		}

		if first[0] != ':' {
			return nil
		}

		// Read modes, ids and status.
		head, err := d.in.readInnerField(maxField)
		if err != nil {
			return err
		}

		f := strings.Fields(head)
		if len(f) != 5 {
			return fmt.Errorf("git diff-tree said %.80q", head)
		}

		// Read one path, or two for a renamed file.
		path, err := d.in.readInnerField(maxPath)
		if err != nil {
			return err
		}

		// Added and deleted files have only one side.
		file := FileDiff{OldPath: path, NewPath: path, Status: f[4][0], OldMode: f[0][1:], NewMode: f[1]}
		switch file.Status {
		case 'A':
			file.OldPath = ""
		case 'D':
			file.NewPath = ""

		// Read both paths: the next row begins after them.
		case 'R', 'C':
			if file.NewPath, err = d.in.readInnerField(maxPath); err != nil {
				return err
			}
			file.Similarity, _ = strconv.Atoi(f[4][1:])
		}

		d.paths += len(file.OldPath) + len(file.NewPath)
		if len(d.diff.Files) == d.o.MaxFiles || d.paths > maxPaths {
			d.diff.Cut, d.diff.AtLeast = true, true
			continue // read the list to its end, because the patches follow
		}

		d.diff.Files = append(d.diff.Files, file)
	}
}

// readNumbers reads how many lines were added to and removed from each file: "12 TAB 3 TAB path
// NUL", for a rename "12 TAB 3 TAB NUL old NUL new NUL", and dashes for a binary file.
func (d *diffReader) readNumbers() error {
	for ; ; d.file++ {
		text, length, err := d.in.readBytes(maxPath + maxField)
		if err == io.EOF {
			d.skipRemainingBlank()
			return nil
		}
		if err != nil {
			return err
		}

		entry := string(text)
		fields := strings.SplitN(entry, "\t", 3)
		if len(fields) != 3 {
			return fmt.Errorf("git diff-tree said %.80q", entry)
		}

		// The names of a rename follow separately.
		for skip := 0; fields[2] == "" && skip < 2; skip++ {
			if _, _, err := d.in.readBytes(0); err != nil {
				return err
			}
		}

		// Shorten a long path as readList has done.
		path := fields[2]
		if length -= len(entry) - len(path); length > maxPath {
			path = shortened(path[:maxPath], length)
		}

		// Files that differ only in blanks are missing here. They are not renamed, so compare one
		// name.
		if err := d.skipBlankFiles(func(f *FileDiff) bool { return f.NewPath == path }); err != nil {
			return err
		}
		if d.file >= len(d.diff.Files) { // this file and all after it are beyond MaxFiles
			return run.ErrStop
		}

		f := &d.diff.Files[d.file]
		f.Binary = fields[0] == "-"
		f.Added, _ = strconv.Atoi(fields[0])
		f.Removed, _ = strconv.Atoi(fields[1])
	}
}

// readLine reads a line without its newline; of a line longer than maxLine about the first maxLine
// bytes. The result is valid until the next call.
func (d *diffReader) readLine() ([]byte, error) {
	part, err := d.in.src.ReadSlice('\n')
	if err == nil {
		return part[:len(part)-1], nil
	}

	// The line is longer than the buffer: collect its parts, up to maxLine.
	d.long = d.long[:0]
	for {
		if len(d.long) < maxLine {
			d.long = append(d.long, part...)
		}

		switch {
		case err == nil:
			return bytes.TrimSuffix(d.long, []byte{'\n'}), nil
		case err == io.EOF && len(d.long) > 0:
			return d.long, nil
		case err != bufio.ErrBufferFull:
			return nil, err
		}

		part, err = d.in.src.ReadSlice('\n')
	}
}

// readPatch reads the patch of a file, and returns the first line of the next patch.
func (d *diffReader) readPatch(f *FileDiff) (next []byte, err error) {
	for {
		line, err := d.readLine()
		if err != nil {
			return nil, err
		}

		switch {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			return line, nil
		case bytes.HasPrefix(line, []byte("Binary files ")):
			f.Binary = true

		// Read a hunk, unless there are MaxBytes of hunks already.
		case bytes.HasPrefix(line, []byte("@@ ")):
			if d.bytes > d.o.MaxBytes && d.o.Limit == 0 {
				d.cutFrom(d.file)
				return nil, run.ErrStop
			}
			if err := d.readHunk(f, string(line)); err != nil {
				return nil, err
			}
		}
	}
}

// cutFrom marks the files from index i on as incomplete.
func (d *diffReader) cutFrom(i int) {
	d.diff.Cut = true
	for ; i < len(d.diff.Files); i++ {
		if i >= 0 {
			d.diff.Files[i].Cut = true
		}
	}
}

// readHunk reads the lines of a hunk, as many as its header says, and adds it to f.
func (d *diffReader) readHunk(f *FileDiff, header string) error {
	h, err := parseHunkHeader(header)
	if err != nil {
		return err
	}

	// oldLeft and newLeft are how many lines of the old and the new file still follow.
	d.body = d.body[:0]
	for oldLeft, newLeft := h.Old.Lines, h.New.Lines; oldLeft > 0 || newLeft > 0 || d.noNewlineFollows(); {
		line, err := d.readLine()
		if err != nil {
			return err
		}

		switch {
		case len(line) == 0 || line[0] == ' ':
			oldLeft, newLeft = oldLeft-1, newLeft-1
		case line[0] == '-':
			oldLeft--
			f.Removed++
		case line[0] == '+':
			newLeft--
			f.Added++
		}

		// Skip the text of a hunk that is not in the requested part.
		if !d.isInPart() {
			continue
		}

		d.bytes += len(line) + 1
		if d.bytes <= d.o.MaxBytes {
			d.body = append(append(d.body, line...), '\n')
		} else {
			f.Cut, d.diff.Cut = true, true
		}
	}

	h.Body = string(withoutMarks(h, d.body))
	if h.Body != "" {
		f.Hunks = append(f.Hunks, h)
	}
	return nil
}

// withoutMarks removes the byte order mark from the first line of the old and of the new file in
// the body of a hunk, unless only one of them has it: then the mark is the change.
func withoutMarks(h Hunk, body []byte) []byte {
	const mark = "\ufeff"
	// firstLine returns the offset of the text of line 1 of a side, whose lines begin with one of
	// signs; -1 if the hunk does not have line 1.
	firstLine := func(start int, signs string) int {
		for at := 0; start == 1 && at < len(body); at += bytes.IndexByte(body[at:], '\n') + 1 {
			if strings.IndexByte(signs, body[at]) >= 0 {
				return at + 1
			}
		}
		return -1
	}
	hasMark := func(at int) bool { return at >= 0 && bytes.HasPrefix(body[at:], []byte(mark)) }

	old, now := firstLine(h.Old.Start, " -"), firstLine(h.New.Start, " +")
	if old >= 0 && now >= 0 && hasMark(old) != hasMark(now) {
		return body
	}
	for _, at := range slices.Compact([]int{max(old, now), min(old, now)}) {
		if hasMark(at) {
			body = slices.Delete(body, at, at+len(mark))
		}
	}
	return body
}

// noNewlineFollows reports whether the next line is "\ No newline at end of file", which git does
// not count.
func (d *diffReader) noNewlineFollows() bool {
	b, err := d.in.src.Peek(1)
	return err == nil && b[0] == '\\'
}

// parseHunkHeader parses "@@ -1,2 +3,4 @@ heading". A single line has no count, as in "@@ -1 +3,4
// @@".
func parseHunkHeader(line string) (Hunk, error) {
	bad := func() error { return fmt.Errorf("git diff-tree said %.80q", line) }
	rest, ok := strings.CutPrefix(line, "@@ -")
	old, rest, ok2 := strings.Cut(rest, " +")
	next, heading, ok3 := strings.Cut(rest, " @@")
	if !ok || !ok2 || !ok3 {
		return Hunk{}, bad()
	}

	h := Hunk{Heading: strings.TrimPrefix(heading, " ")}
	for _, x := range []struct {
		text string
		to   *DiffRange
	}{{old, &h.Old}, {next, &h.New}} {
		start, lines, hasCount := strings.Cut(x.text, ",")

		x.to.Lines = 1
		var err error
		if x.to.Start, err = strconv.Atoi(start); err != nil {
			return Hunk{}, bad()
		}
		if hasCount {
			if x.to.Lines, err = strconv.Atoi(lines); err != nil {
				return Hunk{}, bad()
			}
		}
	}
	return h, nil
}
