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

// Source is a file, or a part of it.
type Source struct {
	Path      string
	OID       string // of the blob, hex
	Kind      Kind
	Size      int64 // of the whole file in git, bytes
	Content   []byte
	Encoding  charset.Encoding // of the file in git; Content is UTF-8 and has no byte order mark, but with SourceOptions.Raw
	FirstLine int              // of Content, from 1
	Lines     int              // in Content, the last perhaps cut
	Total     int              // lines of the file; -1 when the reading stopped before its end
	Binary    bool             // a NUL byte among the first 8,000 of its text
	Cut       bool             // MaxBytes ended Content before what was asked for
	LFS       bool             // the content is a pointer of Git LFS, not the file
}

// SourceOptions says which part of a file is wanted. The zero value is all
// of it, up to 64 MiB.
type SourceOptions struct {
	FirstLine int   // from 1; 0 is 1
	Lines     int   // 0 is all
	MaxBytes  int64 // of Content; 0 is 64 MiB
	Count     bool  // read on to the end for Total
	Raw       bool  // Content is the bytes in git
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
	err = f.with(ctx, func(c reader) error {
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

// lfsPointer begins the pointer files of Git LFS.
const lfsPointer = "version https://git-lfs.github.com/spec/v1\n"

// fileBuffer is how many bytes of a file are read at once.
const fileBuffer = 64 << 10

// read takes the wanted lines.
func (s *Source) read(file io.Reader, o SourceOptions) error {
	in := bufio.NewReaderSize(&body{r: file, left: s.Size}, fileBuffer)
	head, err := in.Peek(4 * charset.BinaryHead) // so much of UTF-32 decides whether it is binary
	if err != nil && err != io.EOF {
		return err
	}

	var text []byte
	text, s.Encoding = charset.Decode(nil, head)
	s.Binary = charset.Binary(text, s.Encoding)
	s.LFS = s.Size < 1024 && bytes.HasPrefix(head, []byte(lfsPointer))

	// A symbolic link holds a name, whatever it begins with.
	raw := o.Raw || s.Kind == Symlink
	if !raw {
		in, _ = charset.NewReader(in, fileBuffer)
	}

	// All that is there and wanted needs no line to be found.
	if o.FirstLine == 1 && o.Lines == 0 && s.Size <= o.MaxBytes && (raw || s.Encoding == charset.None) {
		err = s.readWhole(in)
	} else {
		err = s.readLines(in, o)
	}
	s.Lines = countLines(s.Content)
	return err
}

// body reads a file of a known size; fewer bytes are an error.
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

// readWhole takes all of a file.
func (s *Source) readWhole(in *bufio.Reader) error {
	s.Content = make([]byte, s.Size)
	if _, err := io.ReadFull(in, s.Content); err != nil {
		return err
	}
	s.Total = countLines(s.Content)
	return nil
}

// readLines takes some lines, and reads on to the end where they are counted; line is the
// number of the line that is read next.
func (s *Source) readLines(in *bufio.Reader, o SourceOptions) error {
	s.Total = -1
	line, last := 1, byte('\n')
	for {
		// A line, or a part of one that is longer than the buffer.
		part, err := in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull && err != io.EOF {
			return err
		}
		if len(part) == 0 {
			break
		}
		last = part[len(part)-1]

		if line >= o.FirstLine && (o.Lines == 0 || line < o.FirstLine+o.Lines) {
			s.take(part, o.MaxBytes)
		}
		if last == '\n' {
			line++
		}

		past := s.Cut || o.Lines != 0 && line >= o.FirstLine+o.Lines
		if past && !o.Count && !atEnd(in) {
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
