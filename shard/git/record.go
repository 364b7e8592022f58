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
// can decompress to any length. So the readers measure a text before they hold it: they shorten one
// that is longer than these limits while they read it, and say so in the text.
const (
	maxSubject = 16 << 10 // bytes, as all below
	maxBody    = 64 << 10
	maxPerson  = 1 << 10 // a name or an address
	maxField   = 1 << 10 // an id, a time, a status
	maxPath    = 4 << 10 // the longest path a caller may ask for
	maxParents = 256     // parents of a commit
	maxRefName = 1 << 10 // the longest name a caller may ask for

	answerTexts = 4 << 20 // all texts of one answer
	leastText   = 256     // each text, once the others in the answer have used up answerTexts
)

// room counts the bytes of text that an answer may still take.
type room int

func newRoom() *room {
	r := room(answerTexts)
	return &r
}

// most returns how many bytes to keep of a text whose own limit is alone.
func (r *room) most(alone int) int { return min(alone, max(int(*r), leastText)) }

// take shortens a text to what it may take, and counts it. The result is a copy, so the longer text
// can be freed.
func (r *room) take(text string, alone int) string {
	if most := r.most(alone); len(text) > most {
		text = shortened(text[:most], len(text))
	} else {
		text = strings.Clone(text)
	}
	*r -= room(len(text))
	return text
}

// takeCommit shortens the texts of a commit.
func (r *room) takeCommit(c *Commit) {
	c.AuthorName, c.AuthorEmail = r.take(c.AuthorName, maxPerson), r.take(c.AuthorEmail, maxPerson)
	c.Subject, c.Body = r.take(c.Subject, maxSubject), r.take(c.Body, maxBody)
}

// shortened returns the beginning of a text with a remark on the full length.
func shortened(begin string, length int) string {
	// Drop half a letter at the end: it would be displayed as damage.
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

// records reads the output of git, with a NUL after each field. All text of a repository that comes
// through a pipe passes through it.
type records struct {
	src  *bufio.Reader
	room *room // for the texts in the answer
	buf  []byte
}

func newRecords(r io.Reader) *records {
	return &records{src: bufio.NewReaderSize(r, 64<<10), room: newRoom()}
}

// next reads up to the next NUL and keeps at most most bytes; length is the full length. The text
// is valid until the next call. The error is io.EOF if nothing follows, and io.ErrUnexpectedEOF if
// the NUL is missing.
func (r *records) next(most int) (text []byte, length int, err error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.src.ReadSlice(0)
		whole := err == nil
		if whole {
			part = part[:len(part)-1]
		}
		length += len(part)
		r.buf = append(r.buf, part[:min(len(part), max(0, most-len(r.buf)))]...)

		switch {
		case whole:
			return r.buf, length, nil
		case err == io.EOF && length > 0:
			return r.buf, length, io.ErrUnexpectedEOF
		case err != bufio.ErrBufferFull:
			return r.buf, length, err
		}
	}
}

// field reads a field and shortens it to most bytes.
func (r *records) field(most int) (string, error) {
	text, length, err := r.next(most)
	if length > len(text) {
		return shortened(string(text), length), err
	}
	return string(text), err
}

// part reads a field in the middle of a record, where the end of the output is an error.
func (r *records) part(most int) (string, error) {
	s, err := r.field(most)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return s, err
}

// text reads a field in the middle of a record, and counts it towards the size of the answer.
func (r *records) text(alone int) (string, error) {
	s, err := r.part(r.room.most(alone))
	*r.room -= room(len(s))
	return s, err
}

// commit reads one commit as commitFormat prints it. The error is io.EOF at the end of the output.
func (r *records) commit() (c Commit, err error) {
	if c.Hash, err = r.field(maxField); err != nil {
		return c, err
	}

	var seconds [2]string
	parents, err := r.parents()
	c.Parents = parents
	for _, f := range []struct {
		to   *string
		most int
	}{{&c.AuthorName, maxPerson}, {&c.AuthorEmail, maxPerson}, {&seconds[0], maxField}, {&seconds[1], maxField}, {&c.Subject, maxSubject}, {&c.Body, maxBody}} {
		if err == nil {
			*f.to, err = r.text(f.most)
		}
	}

	c.AuthorTime, c.CommitTime = unixTime(seconds[0]), unixTime(seconds[1])
	c.Body = strings.TrimRight(c.Body, "\n")
	return c, err
}

// parents reads the ids of the parents, and keeps only the first if there are too many.
func (r *records) parents() ([]string, error) {
	const id = 64 + 1 // bytes of the longest id and a blank
	text, length, err := r.next(maxParents * id)
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

// commits reads commits until the end of the output.
func (r *records) commits(use func(Commit) error) error {
	for {
		c, err := r.commit()
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
