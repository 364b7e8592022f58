package git

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// parseCommit reads a commit as it is stored. It tells false for one whose
// text is in an encoding that only git knows.
func parseCommit(id, text []byte) (c Commit, ok bool) {
	c.Hash = hex.EncodeToString(id)
	head, message, _ := bytes.Cut(text, []byte("\n\n"))
	if bytes.HasPrefix(text, []byte("\n")) {
		head, message = nil, text[1:]
	}
	latin := false
	for line := range bytes.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch key {
		case "parent":
			c.Parents = append(c.Parents, value)
		case "author":
			c.AuthorName, c.AuthorEmail, c.AuthorTime = parseIdentity(value)
		case "committer":
			_, _, c.CommitTime = parseIdentity(value)
		case "encoding":
			switch strings.ToLower(value) {
			case "utf-8", "utf8":
			case "iso-8859-1", "latin-1", "latin1", "iso8859-1":
				latin = true
			default:
				return c, false
			}
		}
	}
	c.Subject, c.Body = splitMessage(string(message))
	if latin {
		for _, s := range []*string{&c.AuthorName, &c.AuthorEmail, &c.Subject, &c.Body} {
			*s = fromLatin(*s)
		}
	}
	return c, true
}

// fromLatin makes UTF-8 of a text in ISO 8859-1, whose bytes are the numbers
// of its letters.
func fromLatin(s string) string {
	letters := make([]rune, len(s))
	for i := range len(s) {
		letters[i] = rune(s[i])
	}
	return string(letters)
}

// parseIdentity reads `Name <e-mail> seconds zone`.
func parseIdentity(line string) (name, email string, t time.Time) {
	open, end := strings.IndexByte(line, '<'), strings.LastIndexByte(line, '>')
	if open < 0 || end < open {
		return strings.TrimSpace(line), "", t
	}
	seconds, _, _ := strings.Cut(strings.TrimSpace(line[end+1:]), " ")
	return strings.TrimSpace(line[:open]), strings.TrimSpace(line[open+1 : end]), unix(seconds)
}

// splitMessage gives the first paragraph as one line, and the rest.
func splitMessage(message string) (subject, body string) {
	rest := skipBlank(message)
	var lines []string
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		if strings.TrimSpace(line) == "" {
			break
		}
		lines = append(lines, strings.TrimRight(line, " \t\r\f\v"))
		rest = after
	}
	return strings.Join(lines, " "), strings.TrimRight(skipBlank(rest), "\n")
}

// skipBlank leaves out the lines without anything at the beginning.
func skipBlank(s string) string {
	for s != "" {
		line, after, _ := strings.Cut(s, "\n")
		if strings.TrimSpace(line) != "" {
			break
		}
		s = after
	}
	return s
}

// author is the line of a commit that says who wrote it, without the time.
func author(text []byte) []byte {
	head, _, _ := bytes.Cut(text, []byte("\n\n"))
	for line := range bytes.Lines(head) {
		if who, ok := bytes.CutPrefix(line, []byte("author ")); ok {
			return who[:bytes.LastIndexByte(who, '>')+1]
		}
	}
	return nil
}

// wanted is a filter of texts: as it stands or as an expression, without
// regard to case.
type wanted struct {
	plain string // in small letters; only ASCII
	exprs []*regexp.Regexp
}

func newWanted(text string) (*wanted, error) {
	w := &wanted{}
	if isASCII(text) {
		w.plain = strings.ToLower(text)
	} else {
		w.exprs = append(w.exprs, regexp.MustCompile("(?i)"+regexp.QuoteMeta(text)))
	}
	if basicIsSafe(text) {
		expr, err := regexp.Compile("(?i)" + strings.NewReplacer("(", `\(`, ")", `\)`, "{", `\{`, "}", `\}`, "|", `\|`, "+", `\+`, "?", `\?`).Replace(text))
		if err != nil {
			return nil, err
		}
		w.exprs = append(w.exprs, expr)
	}
	return w, nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// in tells whether a text has it in one of its lines. low is room to work in.
func (w *wanted) in(text []byte, low *[]byte) bool {
	if w.plain != "" {
		*low = lower((*low)[:0], text)
		if bytes.Contains(*low, []byte(w.plain)) {
			return true
		}
	}
	for _, e := range w.exprs {
		for line := range bytes.Lines(text) {
			if e.Match(bytes.TrimSuffix(line, []byte("\n"))) {
				return true
			}
		}
	}
	return false
}

// lower appends a text with the letters of ASCII made small.
func lower(dst, text []byte) []byte {
	at := len(dst)
	dst = append(dst, text...)
	for i, c := range dst[at:] {
		if c-'A' < 26 {
			dst[at+i] = c + 'a' - 'A'
		}
	}
	return dst
}

// mostReaders is how many goroutines read the texts of commits for one question.
func mostReaders() int { return min(4, runtime.GOMAXPROCS(0)) }

// maxBatch is how many commits are read at a time at most.
const maxBatch = 4096

// eachText reads the commits that a walk gives, looks them over in several
// goroutines and hands what they found to use, in the order of the walk, until
// it says false or the walk ends. low is room for look to work in.
func eachText[T any](ctx context.Context, w *walk, first int, look func(id, text []byte, low *[]byte) T, use func(T) bool) error {
	readers := []*packs{w.c.packs}
	defer func() {
		for _, p := range readers[1:] {
			p.close()
		}
	}()
	batch, results := make([]uint32, 0, maxBatch), make([]T, maxBatch)
	for size := min(max(first, 1), maxBatch); ; size = min(size*4, maxBatch) {
		batch = batch[:0]
		var ended error
		for len(batch) < size && ended == nil {
			var pos uint32
			if pos, ended = w.next(); ended == nil {
				batch = append(batch, pos)
			}
		}
		if ended != nil && ended != io.EOF && ended != errLate {
			return ended
		}
		n := max(1, min(mostReaders(), len(batch)/64))
		for len(readers) < n {
			p, err := openPacks(w.c.dir)
			if err != nil {
				return err
			}
			readers = append(readers, p)
		}
		if err := readTexts(ctx, w.c, readers[:n], batch, results, look); err != nil {
			return err
		}
		for i := range batch {
			if !use(results[i]) {
				return nil
			}
		}
		switch {
		case ended == io.EOF:
			return nil
		case ended != nil:
			return ended
		}
	}
}

// readTexts looks over a batch of commits, each reader at a run of them.
func readTexts[T any](ctx context.Context, c *chronicle, readers []*packs, batch []uint32, results []T, look func(id, text []byte, low *[]byte) T) error {
	fails := make([]error, len(readers))
	var wg sync.WaitGroup
	for k, p := range readers {
		wg.Go(func() {
			var buf, low []byte
			fails[k] = faultless(func() error {
				for i := k * len(batch) / len(readers); i < (k+1)*len(batch)/len(readers); i++ {
					if i&63 == 0 && ctx.Err() != nil {
						return context.Cause(ctx)
					}
					id := c.id(batch[i])
					var ok bool
					var err error
					if buf, ok, err = p.get(buf[:0], packCommit, id); err != nil {
						return err
					}
					if !ok {
						return errElsewhere
					}
					results[i] = look(id, buf, &low)
				}
				return nil
			})
		})
	}
	wg.Wait()
	return errors.Join(fails...)
}
