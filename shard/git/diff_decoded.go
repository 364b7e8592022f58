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

// Git calls a text in UTF-16 or UTF-32 binary. So both sides of such a file are decoded into files
// outside of a repository, which git then compares. A missing side has no file:
//
//	<mirror>/tmp_objdir-.../old/000000      a fetch removes what a killed process leaves
//	<mirror>/tmp_objdir-.../new/000000
//	<mirror>/tmp_objdir-.../new/000001

// Limits of decoding in one difference. Other files stay binary.
const (
	decodedLooks = 1000     // files that git calls binary and that are read
	decodedBytes = 32 << 20 // bytes in git, of both sides
)

// decoded is the files that are decoded for one difference.
type decoded struct {
	dir  string
	left int64 // bytes that may still be decoded
	at   []int // by file in dir: its index in the difference
}

// decode adds the changes of decoded texts to files that git calls binary.
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

// mayBeCoded reports whether a file may have an encoding that git does not know. Git takes a short
// text without a NUL for UTF-8.
func (f *FileDiff) mayBeCoded() bool {
	marked := func(h Hunk) bool { return strings.Contains(h.Body, "\xff\xfe") || strings.Contains(h.Body, "\xfe\xff") }
	ordinary := func(mode string) bool { return mode == "000000" || strings.HasPrefix(mode, "100") }
	return (f.Binary || slices.ContainsFunc(f.Hunks, marked)) && ordinary(f.OldMode) && ordinary(f.NewMode)
}

// decodeFile writes the texts of both sides of a file, if one of them must be decoded.
func (h *diffs) decodeFile(ctx context.Context, w *decoded, base, head string, i int, f *FileDiff) error {
	coded := false
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
		around, o.MaxBytes = 0, decodedBytes*4 // no line may be missing from the count
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
	d.dropAlike(w.at)
	return nil
}

// patches reads patches of files whose names are their indexes.
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

// dropAlike removes those files from the list that differ only in blanks, if blanks are ignored.
func (d *diffReader) dropAlike(of []int) {
	for _, i := range slices.Backward(of) {
		if f := &d.diff.Files[i]; d.o.IgnoreBlanks && f.mayBeBlank() && f.Added+f.Removed == 0 {
			d.diff.Files = slices.Delete(d.diff.Files, i, i+1)
			d.diff.Total--
		}
	}
}
