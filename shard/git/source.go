package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
)

// Source is a file, or a part of it.
type Source struct {
	Path      string
	OID       string // of the blob, hex
	Kind      Kind
	Size      int64 // of the whole file, bytes
	Content   []byte
	FirstLine int  // of Content, from 1
	Lines     int  // in Content, the last perhaps cut
	Total     int  // lines of the file; -1 when the reading stopped before its end
	Binary    bool // a NUL byte among the first 8,000
	Cut       bool // MaxBytes ended Content before what was asked for
	LFS       bool // the content is a pointer of Git LFS, not the file
}

// SourceOptions says which part of a file is wanted. The zero value is all
// of it, up to 64 MiB.
type SourceOptions struct {
	FirstLine int   // from 1; 0 is 1
	Lines     int   // 0 is all
	MaxBytes  int64 // of Content; 0 is 64 MiB
	Count     bool  // read on to the end for Total
}

// Source reads a file of a commit. Only as much is read as is needed; the
// content of a symlink is its target.
func (f *files) Source(ctx context.Context, commit, path string, o SourceOptions) (Source, error) {
	path, err := cleanPath(path)
	if err != nil {
		return Source{}, err
	}

	if err := checkCommit(commit); err != nil {
		return Source{}, err
	}

	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	o.FirstLine = max(1, o.FirstLine)

	// Only blobs have a content; a symlink is one too.
	s := Source{Path: path, FirstLine: o.FirstLine}
	err = f.pool.with(ctx, func(c *catFile) error {
		e, err := c.find(commit, path)
		if err != nil {
			return err
		}

		switch e.kind {
		case Dir:
			return fmt.Errorf("%q: %w", path, ErrIsDir)
		case Submodule:
			return fmt.Errorf("%q is a submodule, at commit %s of another repository: %w", path, e.oid, ErrNoPath)
		}

		s.OID, s.Kind = e.oid, e.kind
		return c.contents(e.oid, func(info objectInfo, r io.Reader) error {
			if info.kind != "blob" {
				return fmt.Errorf("object %s is missing or not a blob", e.oid)
			}

			s.Size = info.size
			return s.read(r, o)
		})
	})
	return s, err
}

// lfsPointer begins the pointer files of Git LFS.
const lfsPointer = "version https://git-lfs.github.com/spec/v1\n"

// binaryHead is how many bytes at the beginning of a file say whether it is
// binary, as git has it.
const binaryHead = 8000

// read takes the wanted lines.
func (s *Source) read(r io.Reader, o SourceOptions) error {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(int(min(binaryHead, s.Size)))
	if err != nil {
		return err
	}

	s.Binary = bytes.IndexByte(head, 0) >= 0
	s.LFS = s.Size < 1024 && bytes.HasPrefix(head, []byte(lfsPointer))

	// All that is there and wanted needs no line to be found.
	if o.FirstLine == 1 && o.Lines == 0 && s.Size <= o.MaxBytes {
		err = s.readWhole(in)
	} else {
		err = s.readLines(in, o)
	}
	s.Lines = countLines(s.Content)
	return err
}

// readWhole takes all of a file.
func (s *Source) readWhole(in *bufio.Reader) error {
	s.Content = make([]byte, s.Size)
	if _, err := io.ReadFull(in, s.Content); err != nil {
		return err
	}
	s.Total = countLines(s.Content)
	return nil
}

// readLines takes some lines, and reads on to the end where they are counted.
// Before each part
//
//	done bytes of the file were read, and line is the number of the next one's line
func (s *Source) readLines(in *bufio.Reader, o SourceOptions) error {
	s.Total = -1
	done, line, last := int64(0), 1, byte('\n')
	for done < s.Size {
		// A line, or a part of one that is longer than the buffer.
		part, err := in.ReadSlice('\n')
		if len(part) == 0 || err != nil && err != bufio.ErrBufferFull && err != io.EOF {
			return cmp.Or(err, io.ErrUnexpectedEOF)
		}
		done += int64(len(part))
		last = part[len(part)-1]

		if line >= o.FirstLine && (o.Lines == 0 || line < o.FirstLine+o.Lines) {
			s.take(part, o.MaxBytes)
		}
		if last == '\n' {
			line++
		}

		past := s.Cut || o.Lines != 0 && line >= o.FirstLine+o.Lines
		if past && !o.Count && done < s.Size {
			return nil
		}
	}

	s.Total = line - 1
	if last != '\n' {
		s.Total = line
	}
	return nil
}

// take adds a part of the wanted lines, up to a bound in bytes.
func (s *Source) take(part []byte, most int64) {
	if s.Cut {
		return
	}
	if over := int64(len(s.Content)+len(part)) - most; over > 0 {
		part = part[:max(0, int64(len(part))-over)]
		s.Cut = true
	}
	s.Content = append(s.Content, part...)
}

// countLines counts lines; the last one need not end with a newline.
func countLines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}
