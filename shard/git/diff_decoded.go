package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// For git, a text in UTF-16 or UTF-32 is binary. So compareDecodable writes both sides of such a file
// in UTF-8 to files outside of a repository, and lets git compare these. A missing side has no
// file:
//
//	<mirror>/tmp_objdir-.../old/000000      if the process is killed, the next fetch removes it
//	<mirror>/tmp_objdir-.../new/000000
//	<mirror>/tmp_objdir-.../new/000001

// Limits of decoding in one difference. Other files stay binary.
const (
	maxDecodedFiles = 1000     // files that are read to find out whether they are text
	maxDecodedBytes = 32 << 20 // bytes in git, of both sides of all files
)

// decoded is the directory of the files that are decoded for one difference.
type decoded struct {
	dir  string
	left int64 // bytes that may still be decoded
	at   []int // by file in dir: its index in the difference
}

// compareDecodable replaces the changes of files in UTF-16 and UTF-32, which are binary for git, by
// those of their texts.
func (h *diffs) compareDecodable(ctx context.Context, base, head string, d *diffReader, around int) (err error) {
	w := &decoded{left: maxDecodedBytes}
	defer func() {
		if w.dir != "" {
			err = errors.Join(err, os.RemoveAll(w.dir))
		}
	}()

	read := 0 // number of files read so far
	for i := range d.diff.Files {
		if f := &d.diff.Files[i]; f.mayBeUTF16() && read < maxDecodedFiles {
			read++
			if err := h.decodeFile(ctx, w, base, head, i, f); err != nil {
				return fmt.Errorf("decode %q and %q: %w", f.OldPath, f.NewPath, err)
			}
		}
	}
	if len(w.at) == 0 {
		return nil
	}
	return d.compareDecoded(ctx, w, around)
}

// mayBeUTF16 reports whether a file may be text in UTF-16 or UTF-32: git says that it is binary,
// or, if the text has no NUL, a hunk contains a byte order mark.
func (f *FileDiff) mayBeUTF16() bool {
	hasMark := func(h Hunk) bool { return strings.Contains(h.Body, "\xff\xfe") || strings.Contains(h.Body, "\xfe\xff") }
	isFileOrMissing := func(mode string) bool { return mode == "000000" || strings.HasPrefix(mode, "100") }
	return (f.Binary || slices.ContainsFunc(f.Hunks, hasMark)) && isFileOrMissing(f.OldMode) && isFileOrMissing(f.NewMode)
}

// decodeFile writes the texts of both sides of file i to w, if at least one of them is in UTF-16 or
// UTF-32, and both are text.
func (h *diffs) decodeFile(ctx context.Context, w *decoded, base, head string, i int, f *FileDiff) error {
	isCoded := false    // a side is in UTF-16 or UTF-32
	var texts [2][]byte // nil for a missing side
	for side, at := range [2][2]string{{base, f.OldPath}, {head, f.NewPath}} {
		if at[1] == "" {
			continue
		}
		begin, err := h.files.Source(ctx, at[0], at[1], SourceOptions{Lines: 1, MaxBytes: 4})
		if errors.Is(err, ErrNoPath) { // the path is too long to be stored
			return nil
		}
		if err != nil {
			return err
		}
		if w.left -= begin.Size; begin.Binary || w.left < 0 {
			w.left += begin.Size
			return nil
		}
		whole, err := h.files.Source(ctx, at[0], at[1], SourceOptions{})
		if err != nil {
			return err
		}
		texts[side] = append([]byte{}, whole.Content...)
		isCoded = isCoded || whole.Encoding > charset.UTF8Mark
	}
	if !isCoded {
		return nil
	}

	for side, text := range texts {
		if text == nil {
			continue
		}
		if err := w.writeSide(h.dir, [2]string{"old", "new"}[side], text); err != nil {
			return err
		}
	}
	w.at = append(w.at, i)
	return nil
}

// writeSide writes one side, "old" or "new", of the next file.
func (w *decoded) writeSide(mirror, side string, text []byte) (err error) {
	if w.dir == "" {
		if w.dir, err = os.MkdirTemp(mirror, "tmp_objdir-decoded-*"); err != nil {
			return err
		}
		if err := errors.Join(os.Mkdir(filepath.Join(w.dir, "old"), 0o700), os.Mkdir(filepath.Join(w.dir, "new"), 0o700)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(w.dir, side, fmt.Sprintf("%06d", len(w.at))), text, 0o600)
}

// compareDecoded lets git compare the files in w, and stores their changes in d.
func (d *diffReader) compareDecoded(ctx context.Context, w *decoded, around int) error {
	o := d.o
	o.Skip, o.Limit, o.MaxBytes = 0, 0, max(0, d.o.MaxBytes-d.bytes)
	if o.Stat {
		around, o.MaxBytes = 0, maxDecodedBytes*4 // no line may be missing from the count
	}
	c := &run.Command{Args: []string{"diff", "--no-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--unified=" + strconv.Itoa(around)}}
	if o.IgnoreBlanks {
		c.Args = append(c.Args, "--ignore-all-space")
	}
	c.Args = append(c.Args, "--", filepath.Join(w.dir, "old"), filepath.Join(w.dir, "new"))
	c.Timeout, c.Limit, c.Stored = diffTime, 8<<30, maxDecodedBytes

	in := &diffReader{o: o}
	for _, i := range w.at {
		f := d.diff.Files[i]
		f.Binary, f.Hunks, f.Added, f.Removed, f.Cut = false, nil, 0, 0, false
		in.diff.Files = append(in.diff.Files, f)
	}

	err := c.Stream(ctx, func(r io.Reader) error {
		in.in = newRecords(r)
		return in.readPatches()
	})
	// Exit code 1 means that files differ.
	if failed := (*run.Failure)(nil); err != nil && !(errors.As(err, &failed) && failed.Exit == 1) {
		return fmt.Errorf("compare decoded texts: %w", err)
	}

	for k, i := range w.at {
		d.diff.Files[i] = in.diff.Files[k]
		if o.Stat {
			d.diff.Files[i].Hunks = nil
		}
	}
	d.diff.Cut = d.diff.Cut || in.diff.Cut
	d.dropBlankDecoded(w.at)
	return nil
}

// readPatches reads patches of files whose names are their indexes in d.diff.Files.
func (d *diffReader) readPatches() error {
	line, err := d.readLine()
	for err == nil {
		name := string(line[strings.LastIndexByte(string(line), '/')+1:])
		if d.file, err = strconv.Atoi(name); err != nil || d.file >= len(d.diff.Files) {
			return fmt.Errorf("git diff said %.80q", line)
		}
		line, err = d.readPatch(&d.diff.Files[d.file])
	}
	return ignoreEOF(err)
}

// dropBlankDecoded removes, if blanks are ignored, those of the files with the given indexes that
// differ only in blanks.
func (d *diffReader) dropBlankDecoded(indexes []int) {
	for _, i := range slices.Backward(indexes) {
		if f := &d.diff.Files[i]; d.o.IgnoreBlanks && f.mayBeBlank() && f.Added+f.Removed == 0 {
			d.diff.Files = slices.Delete(d.diff.Files, i, i+1)
			d.diff.Total--
		}
	}
}
