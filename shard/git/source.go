package git

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Source is a file or a part of it.
type Source struct {
	Path      string
	OID       string // of the blob, hex
	Kind      Kind
	Size      int64 // of the whole file in git, bytes
	Content   []byte
	Encoding  charset.Encoding // of the file in git; Content is UTF-8 without a byte order mark, unless SourceOptions.Raw is set
	FirstLine int              // number of the first line of Content, from 1
	Lines     int              // number of lines in Content; the last may be cut
	Total     int              // number of lines of the file; -1 if reading stopped before its end
	Binary    bool             // a NUL byte is among the first 8,000 bytes of its text
	Cut       bool             // MaxBytes cut off a part of what was asked for
	LFS       bool             // Content is a pointer of Git LFS, not the file
}

// SourceOptions selects a part of a file. The zero value selects all of it, up to 64 MiB.
type SourceOptions struct {
	FirstLine int   // from 1; 0 means 1
	Lines     int   // 0 means all
	MaxBytes  int64 // of Content; 0 means 64 MiB
	Count     bool  // read to the end of the file and set Total
	Raw       bool  // Content is the bytes in git

	Skipped func(part []byte) // called with each part of the lines before FirstLine, in order; the part is valid until it returns
}

// Source reads a file of a commit, only as far as needed. The content of a symlink is its target.
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

	// Only blobs have content; a symlink is a blob too.
	s := Source{Path: path, FirstLine: o.FirstLine}
	err = f.with(ctx, func(c reader) error {
		e, err := c.findEntry(commit, path)
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
		return c.Contents(e.oid, func(info run.ObjectInfo, r io.Reader) error {
			if info.Kind != "blob" {
				return fmt.Errorf("object %s is missing or not a blob", e.oid)
			}

			s.Size = info.Size
			if err := s.read(r, o); err != nil {
				return fmt.Errorf("read %q: %w", path, err)
			}
			return nil
		})
	})
	return s, err
}

// lfsPointer is the beginning of each pointer file of Git LFS.
const lfsPointer = "version https://git-lfs.github.com/spec/v1\n"

// fileBuffer is the number of bytes of a file that are read at once.
const fileBuffer = 64 << 10

// read reads the selected lines.
func (s *Source) read(file io.Reader, o SourceOptions) error {
	in := bufio.NewReaderSize(&body{r: file, left: s.Size}, fileBuffer)
	head, err := in.Peek(4 * charset.BinaryHead) // enough UTF-32 to decide whether it is binary
	if err != nil && err != io.EOF {
		return err
	}

	var text []byte
	text, s.Encoding = charset.Decode(nil, head)
	s.Binary = charset.Binary(text, s.Encoding)
	s.LFS = s.Size < 1024 && bytes.HasPrefix(head, []byte(lfsPointer))

	// A symbolic link contains a name, even if it looks like something else.
	raw := o.Raw || s.Kind == Symlink
	if !raw {
		in, _ = charset.NewReader(in, fileBuffer)
	}

	// If the options select the whole file, do not read it line by line.
	if o.FirstLine == 1 && o.Lines == 0 && s.Size <= o.MaxBytes && (raw || s.Encoding == charset.None) {
		err = s.readWhole(in)
	} else {
		err = s.readLines(in, o)
	}
	s.Lines = countLines(s.Content)
	return err
}

// body reads a file of a known size. It is an error if the file ends early.
type body struct {
	r    io.Reader
	left int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if err == io.EOF && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// readWhole reads all of a file.
func (s *Source) readWhole(in *bufio.Reader) error {
	s.Content = make([]byte, s.Size)
	if _, err := io.ReadFull(in, s.Content); err != nil {
		return err
	}
	s.Total = countLines(s.Content)
	return nil
}

// readLines reads the selected lines into s.Content. With o.Count it continues to the end of the
// file, and then sets s.Total.
func (s *Source) readLines(in *bufio.Reader, o SourceOptions) error {
	s.Total = -1
	line, last := 1, byte('\n') // number of the next line; last byte that was read
	for {
		// A part is a line, or a piece of a line that is longer than the buffer.
		part, err := in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull && err != io.EOF {
			return err
		}
		if len(part) == 0 {
			break
		}
		last = part[len(part)-1]

		switch {
		case line < o.FirstLine && o.Skipped != nil:
			o.Skipped(part)
		case line >= o.FirstLine && (o.Lines == 0 || line < o.FirstLine+o.Lines):
			s.addPart(part, o.MaxBytes)
		}
		if last == '\n' {
			line++
		}

		done := s.Cut || o.Lines != 0 && line >= o.FirstLine+o.Lines
		if done && !o.Count && !atEnd(in) {
			return nil
		}
	}

	s.Total = line - 1
	if last != '\n' {
		s.Total = line
	}
	return nil
}

// atEnd reports whether nothing is left to read.
func atEnd(in *bufio.Reader) bool {
	_, err := in.Peek(1)
	return err == io.EOF
}

// addPart adds a part of the selected lines to Content, which may have at most maxBytes.
func (s *Source) addPart(part []byte, maxBytes int64) {
	if s.Cut {
		return
	}
	if over := int64(len(s.Content)+len(part)) - maxBytes; over > 0 {
		part = part[:max(0, int64(len(part))-over)]
		s.Cut = true
	}
	s.Content = append(s.Content, part...)
}

// countLines counts lines. The last one may lack a newline.
func countLines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}
