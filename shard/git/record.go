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

// Whoever may push decides how long the texts of a repository are, and some
// hundred bytes of a pack unfold to any length. So no text is held before it is
// measured: what is longer than these is shortened while it is read, and says so.
const (
	maxSubject = 16 << 10 // bytes, as all below
	maxBody    = 64 << 10
	maxPerson  = 1 << 10 // a name or an address
	maxField   = 1 << 10 // an id, a time, a status
	maxPath    = 4 << 10 // as long as a path that can be asked for
	maxParents = 256     // parents of a commit
	maxRefName = 1 << 10 // as long as a name that can be asked for

	answerTexts = 4 << 20 // all texts of one answer
	leastText   = 256     // each text, when the others of the answer took all of that
)

// room is how many bytes of text an answer may still take.
type room int

func newRoom() *room {
	r := room(answerTexts)
	return &r
}

// most is how much of a text may be kept that alone might have so many bytes.
func (r *room) most(alone int) int { return min(alone, max(int(*r), leastText)) }

// take shortens a text to what it may have, and counts it. The result keeps
// nothing else in memory.
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

// shortened is the beginning of a text, with a remark on how long the text is.
func shortened(begin string, length int) string {
	// Half a letter at the end would be shown as damage.
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
	Refs        []string // full names of branches and tags that point at it
	Head        bool     // HEAD points at it
}

// commitFormat ends each field with a NUL; messages cannot hold one.
const commitFormat = "--format=%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%s%x00%b"

// records reads what git prints with a NUL after each field. It is the only way
// in which text of a repository comes in through a pipe.
type records struct {
	src  *bufio.Reader
	room *room // of the texts in the answer
	buf  []byte
}

func newRecords(r io.Reader) *records {
	return &records{src: bufio.NewReaderSize(r, 64<<10), room: newRoom()}
}

// next reads up to the next NUL and keeps so many bytes at most; length is that
// of the whole. The text is valid until the next call. io.EOF where nothing
// follows, io.ErrUnexpectedEOF where the NUL is missing.
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

// field reads a field that is shortened where it is longer than most.
func (r *records) field(most int) (string, error) {
	text, length, err := r.next(most)
	if length > len(text) {
		return shortened(string(text), length), err
	}
	return string(text), err
}

// part is field of a record that has begun: its end is not a good one.
func (r *records) part(most int) (string, error) {
	s, err := r.field(most)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return s, err
}

// text is part of a text that counts towards the size of the answer.
func (r *records) text(alone int) (string, error) {
	s, err := r.part(r.room.most(alone))
	*r.room -= room(len(s))
	return s, err
}

// commit reads what commitFormat prints of one commit; io.EOF where none begins.
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

// parents reads the ids of the parents, the first ones where there are too many.
func (r *records) parents() ([]string, error) {
	const id = 64 + 1 // bytes of the longest, and a blank
	text, length, err := r.next(maxParents * id)
	ids := strings.Fields(string(text))

	// The last one may be cut in two.
	if length > len(text) {
		ids = ids[:len(ids)-1]
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return ids[:min(len(ids), maxParents)], err
}

// commits reads one commit after the other, up to the end.
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

// readLine reads a line of any length, of which only the first 64 KiB are
// kept, without its newline.
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

// unixTime reads seconds since 1970; nonsense is the zero time.
func unixTime(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}
