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

// Git calls a text in UTF-16 or UTF-32 binary. The change of such a file is that of its
// decoded texts, which git compares as files outside of a repository. A side that is not
// there has no file:
//
//	<mirror>/tmp_objdir-.../old/000000      what a killed process leaves, a fetch sweeps away
//	<mirror>/tmp_objdir-.../new/000000
//	<mirror>/tmp_objdir-.../new/000001

// The bounds of the files of one difference that are decoded; others stay binary.
const (
	decodedLooks = 1000     // at files that git calls binary
	decodedBytes = 32 << 20 // in git, of both sides
)

// decoded is the changes of decoded files.
type decoded struct {
	dir  string
	left int64 // bytes that may still be decoded
	at   []int // in the difference, of each file in dir
}

// decode puts the changes of decoded texts where git has found no text.
func (h *diffs) decode(ctx context.Context, base, head string, d *diffReader, around int) (err error) {
	w := &decoded{left: decodedBytes}
	defer func() {
		if w.dir != "" {
			err = errors.Join(err, os.RemoveAll(w.dir))
		}
	}()

	looks := 0
	for i := range d.diff.Files {
		if f := &d.diff.Files[i]; f.mayBeCoded() && looks < decodedLooks {
			looks++
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

// mayBeCoded reports whether a file may have an encoding that git does not know. It takes a
// short text without a NUL for one in UTF-8.
func (f *FileDiff) mayBeCoded() bool {
	marked := func(h Hunk) bool { return strings.Contains(h.Body, "\xff\xfe") || strings.Contains(h.Body, "\xfe\xff") }
	ordinary := func(mode string) bool { return mode == "000000" || strings.HasPrefix(mode, "100") }
	return (f.Binary || slices.ContainsFunc(f.Hunks, marked)) && ordinary(f.OldMode) && ordinary(f.NewMode)
}

// decodeFile writes the texts of both sides of a file, where one of them has to be decoded.
func (h *diffs) decodeFile(ctx context.Context, w *decoded, base, head string, i int, f *FileDiff) error {
	coded := false
	var texts [2][]byte // nil for a side that is not there
	for side, at := range [2][2]string{{base, f.OldPath}, {head, f.NewPath}} {
		if at[1] == "" {
			continue
		}
		begin, err := h.files.Source(ctx, at[0], at[1], SourceOptions{Lines: 1, MaxBytes: 4})
		if errors.Is(err, ErrNoPath) { // a path that is too long to be kept
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
		coded = coded || whole.Encoding > charset.UTF8Mark
	}
	if !coded {
		return nil
	}

	for side, text := range texts {
		if text == nil {
			continue
		}
		if err := w.write(h.dir, [2]string{"old", "new"}[side], text); err != nil {
			return err
		}
	}
	w.at = append(w.at, i)
	return nil
}

// write writes one side of the next file.
func (w *decoded) write(mirror, side string, text []byte) (err error) {
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

// compareDecoded reads the changes of the files that were written.
func (d *diffReader) compareDecoded(ctx context.Context, w *decoded, around int) error {
	o := d.o
	o.Skip, o.Limit, o.MaxBytes = 0, 0, max(0, d.o.MaxBytes-d.bytes)
	if o.Stat {
		around, o.MaxBytes = 0, decodedBytes*4 // no line may be left out of the count
	}
	c := &run.Command{Args: []string{"diff", "--no-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--unified=" + strconv.Itoa(around)}}
	if o.IgnoreBlanks {
		c.Args = append(c.Args, "--ignore-all-space")
	}
	c.Args = append(c.Args, "--", filepath.Join(w.dir, "old"), filepath.Join(w.dir, "new"))
	c.Timeout, c.Limit, c.Stored = diffTime, 8<<30, decodedBytes

	in := &diffReader{o: o}
	for _, i := range w.at {
		f := d.diff.Files[i]
		f.Binary, f.Hunks, f.Added, f.Removed, f.Cut = false, nil, 0, 0, false
		in.diff.Files = append(in.diff.Files, f)
	}

	err := c.Stream(ctx, func(r io.Reader) error {
		in.in = newRecords(r)
		return in.patches()
	})
	// Exit 1 says that files differ.
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
	d.dropAlike(w.at)
	return nil
}

// patches reads patches whose files are called by their index.
func (d *diffReader) patches() error {
	line, err := d.line()
	for err == nil {
		name := string(line[strings.LastIndexByte(string(line), '/')+1:])
		if d.file, err = strconv.Atoi(name); err != nil || d.file >= len(d.diff.Files) {
			return fmt.Errorf("git diff said %.80q", line)
		}
		line, err = d.patch(&d.diff.Files[d.file])
	}
	return ignoreEOF(err)
}

// dropAlike takes those of some files out of the list that differ in blanks alone, where these
// do not count.
func (d *diffReader) dropAlike(of []int) {
	for _, i := range slices.Backward(of) {
		if f := &d.diff.Files[i]; d.o.IgnoreBlanks && f.mayBeBlank() && f.Added+f.Removed == 0 {
			d.diff.Files = slices.Delete(d.diff.Files, i, i+1)
			d.diff.Total--
		}
	}
}
