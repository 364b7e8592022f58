package git

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Whoever may push decides how long the texts of a repository are, and some hundred bytes of a pack
// can decompress to any length. So the readers shorten a text that is longer than these limits
// while they read it, and say so in the text.
const (
	maxSubject = 16 << 10 // bytes, as all below
	maxBody    = 64 << 10
	maxPerson  = 1 << 10 // a name or an address
	maxField   = 1 << 10 // an id, a time, a status
	maxPath    = 4 << 10 // the longest path a caller may ask for
	maxParents = 256     // parents of a commit
	maxRefName = 1 << 10 // the longest name a caller may ask for

	answerTexts = 4 << 20 // of all texts of one answer
	leastText   = 256     // of each text even after earlier texts of the answer have used up answerTexts
)

// room counts the bytes of text that an answer may still take.
type room int

// newRoom returns the room of an empty answer.
func newRoom() *room {
	r := room(answerTexts)
	return &r
}

// allowed returns how many bytes to keep of a text that may have at most maxBytes.
func (r *room) allowed(maxBytes int) int { return min(maxBytes, max(int(*r), leastText)) }

// shorten shortens a text to what is allowed, and subtracts it from the room. The result is a copy,
// so that the longer text can be freed.
func (r *room) shorten(text string, maxBytes int) string {
	if n := r.allowed(maxBytes); len(text) > n {
		text = shortened(text[:n], len(text))
	} else {
		text = strings.Clone(text)
	}
	*r -= room(len(text))
	return text
}

// shortenCommit shortens the texts of a commit.
func (r *room) shortenCommit(c *Commit) {
	c.AuthorName, c.AuthorEmail = r.shorten(c.AuthorName, maxPerson), r.shorten(c.AuthorEmail, maxPerson)
	c.Subject, c.Body = r.shorten(c.Subject, maxSubject), r.shorten(c.Body, maxBody)
}

// shortened returns the beginning of a text with a remark on the full length.
func shortened(begin string, length int) string {
	// Drop an incomplete letter at the end: it would be displayed as damage.
	for i := 0; i < utf8.UTFMax && i < len(begin); i++ {
		if c := begin[len(begin)-1-i]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(begin[len(begin)-1-i:]) {
				begin = begin[:len(begin)-1-i]
			}
			break
		}
	}
	return fmt.Sprintf("%s… (shortened: %d bytes in all)", begin, length)
}

// Commit is a commit.
type Commit struct {
	Hash        string
	Parents     []string
	AuthorName  string
	AuthorEmail string
	AuthorTime  time.Time
	CommitTime  time.Time
	Subject     string
	Body        string
	Refs        []string // full names of the branches and tags that point at it
	Head        bool     // HEAD points at it
}

// commitFormat ends each field with a NUL, which messages cannot contain.
const commitFormat = "--format=%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%s%x00%b"

// records reads fields with a NUL after each, from the output of git.
type records struct {
	src  *bufio.Reader
	room *room // for the texts in the answer
	buf  []byte
}

func newRecords(r io.Reader) *records {
	return &records{src: bufio.NewReaderSize(r, 64<<10), room: newRoom()}
}

// readBytes reads a field and keeps at most its first maxBytes; length is the full length. The text
// is valid until the next call. The error is io.EOF if nothing follows, and io.ErrUnexpectedEOF if
// the NUL is missing.
func (r *records) readBytes(maxBytes int) (text []byte, length int, err error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.src.ReadSlice(0)
		ends := err == nil
		if ends {
			part = part[:len(part)-1]
		}
		length += len(part)
		r.buf = append(r.buf, part[:min(len(part), max(0, maxBytes-len(r.buf)))]...)

		switch {
		case ends:
			return r.buf, length, nil
		case err == io.EOF && length > 0:
			return r.buf, length, io.ErrUnexpectedEOF
		case err != bufio.ErrBufferFull:
			return r.buf, length, err
		}
	}
}

// readField reads a field and shortens it to maxBytes. Its error is io.EOF if nothing follows.
func (r *records) readField(maxBytes int) (string, error) {
	text, length, err := r.readBytes(maxBytes)
	if length > len(text) {
		return shortened(string(text), length), err
	}
	return string(text), err
}

// readInnerField is readField for a field in the middle of a record: if nothing follows, its error is
// io.ErrUnexpectedEOF.
func (r *records) readInnerField(maxBytes int) (string, error) {
	s, err := r.readField(maxBytes)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return s, err
}

// readText is like readInnerField, and counts the field towards the size of the answer.
func (r *records) readText(maxBytes int) (string, error) {
	s, err := r.readInnerField(r.room.allowed(maxBytes))
	*r.room -= room(len(s))
	return s, err
}

// readCommit reads one commit as commitFormat prints it. The error is io.EOF at the end of the
// output.
func (r *records) readCommit() (c Commit, err error) {
	if c.Hash, err = r.readField(maxField); err != nil {
		return c, err
	}

	var seconds [2]string
	parents, err := r.readParents()
	c.Parents = parents
	for _, f := range []struct {
		to       *string
		maxBytes int
	}{{&c.AuthorName, maxPerson}, {&c.AuthorEmail, maxPerson}, {&seconds[0], maxField}, {&seconds[1], maxField}, {&c.Subject, maxSubject}, {&c.Body, maxBody}} {
		if err == nil {
			*f.to, err = r.readText(f.maxBytes)
		}
	}

	c.AuthorTime, c.CommitTime = unixTime(seconds[0]), unixTime(seconds[1])
	c.Body = strings.TrimRight(c.Body, "\n")
	return c, err
}

// readParents reads a field with the ids of the parents, and keeps the first maxParents.
func (r *records) readParents() ([]string, error) {
	const id = 64 + 1 // bytes of the longest id and a blank
	text, length, err := r.readBytes(maxParents * id)
	ids := strings.Fields(string(text))

	// The last id may be incomplete.
	if length > len(text) {
		ids = ids[:len(ids)-1]
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return ids[:min(len(ids), maxParents)], err
}

// readCommits calls use with each commit until the end of the output.
func (r *records) readCommits(use func(Commit) error) error {
	for {
		c, err := r.readCommit()
		if err == nil {
			err = use(c)
		}
		if err != nil {
			return ignoreEOF(err)
		}
	}
}

// readLine reads a line of any length and keeps only its first 64 KiB, without the newline.
func readLine(in *bufio.Reader) (string, error) {
	part, err := in.ReadSlice('\n')
	line := strings.TrimSuffix(string(part), "\n")
	for err == bufio.ErrBufferFull {
		_, err = in.ReadSlice('\n')
	}
	if err == io.EOF && line != "" {
		return line, nil
	}
	return line, err
}

// ignoreEOF returns nil for io.EOF, and any other error as it is.
func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// unixTime parses seconds since 1970; it returns the zero time for anything else.
func unixTime(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}
