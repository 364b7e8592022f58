package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// skipBlank leaves out the blank lines at the beginning.
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

// author is "name <e-mail>" of who wrote a commit.
func author(text []byte, people *Mailmap) []byte {
	head, _, _ := bytes.Cut(text, []byte("\n\n"))
	for line := range bytes.Lines(head) {
		who, ok := bytes.CutPrefix(line, []byte("author "))
		if !ok {
			continue
		}
		who = who[:bytes.LastIndexByte(who, '>')+1]
		if people == nil {
			return who
		}
		name, email, _ := parseIdentity(string(who))
		name, email = people.Author(name, email)
		return fmt.Appendf(nil, "%s <%s>", name, email)
	}
	return nil
}

// textFilter is a filter of texts that ignores case: a text matches that contains
// plain, or has a line that matches one of exprs.
type textFilter struct {
	plain string // with the letters of ASCII in lower case; "" for none
	exprs []*regexp.Regexp
}

// newPlainFilter matches what contains a text. Bytes that are no UTF-8 have no case, and
// cannot stand in an expression.
func newPlainFilter(text string) *textFilter {
	if isASCII(text) || !utf8.ValidString(text) {
		return &textFilter{plain: string(lower(nil, []byte(text)))}
	}
	return &textFilter{exprs: []*regexp.Regexp{regexp.MustCompile("(?i)" + regexp.QuoteMeta(text))}}
}

// newTextFilter matches what contains a text, or matches it as a basic regular
// expression. In those ( ) { } | + ? are plain characters.
func newTextFilter(text string) (*textFilter, error) {
	w := newPlainFilter(text)
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

// in reports whether a text matches. low is room to work in.
func (w *textFilter) in(text []byte, low *[]byte) bool {
	if w.plain != "" {
		*low = lower((*low)[:0], text)
		if bytes.Contains(*low, []byte(w.plain)) {
			return true
		}
	}

	// An expression is held against each line, so that ^ and $ mean the line's ends.
	for _, e := range w.exprs {
		for line := range bytes.Lines(text) {
			if e.Match(bytes.TrimSuffix(line, []byte("\n"))) {
				return true
			}
		}
	}
	return false
}

// mostReaders is how many goroutines read the texts of commits for one question.
func mostReaders() int { return min(4, runtime.GOMAXPROCS(0)) }

// maxBatch is how many commits are read at a time at most.
const maxBatch = 4096

// eachText reads the commits of a walk and calls look with each of them, in
// several goroutines; low is room for look to work in. The results go to use,
// one after the other in the order of the walk, until it returns false or the
// walk ends.
//
// The commits come in batches. The first has the size that is given, so that a
// page without a filter reads no more than it shows; each further one is four
// times as large, because so far little was found. An error of look ends it.
func eachText[T any](ctx context.Context, w *walk, first int, look func(id, text []byte, low *[]byte) (T, error), use func(T) bool) error {
	readers := []*pack.Store{w.c.store}
	defer func() {
		for _, p := range readers[1:] {
			p.Close()
		}
	}()

	// Batch after batch, until somebody has enough.
	batch, results := make([]uint32, 0, maxBatch), make([]T, maxBatch)
	for size := min(max(first, 1), maxBatch); ; size = min(size*4, maxBatch) {
		var ended error
		batch, ended = w.batch(batch[:0], size)
		if ended != nil && ended != io.EOF && ended != errLate {
			return ended
		}

		// A reader for each 64 commits, up to a few.
		n := max(1, min(mostReaders(), len(batch)/64))
		for len(readers) < n {
			p, err := pack.Open(w.c.dir)
			if err != nil {
				return err
			}
			readers = append(readers, p)
		}
		if err := readTexts(ctx, w.c, readers[:n], batch, results, look); err != nil {
			return err
		}

		// In the order of the walk, whoever read them.
		for i := range batch {
			if !use(results[i]) {
				return nil
			}
		}

		// The walk has ended; errLate goes on to the caller.
		switch {
		case ended == io.EOF:
			return nil
		case ended != nil:
			return ended
		}
	}
}

// batch appends the next commits, so many or until the walk ends with an
// error.
func (w *walk) batch(dst []uint32, size int) ([]uint32, error) {
	for len(dst) < size {
		pos, err := w.next()
		if err != nil {
			return dst, err
		}
		dst = append(dst, pos)
	}
	return dst, nil
}

// readTexts looks over a batch of commits, each reader at a run of them.
func readTexts[T any](ctx context.Context, c *chronicle, readers []*pack.Store, batch []uint32, results []T, look func(id, text []byte, low *[]byte) (T, error)) error {
	fails := make([]error, len(readers))
	var wg sync.WaitGroup
	for k, p := range readers {
		from, to := k*len(batch)/len(readers), (k+1)*len(batch)/len(readers)
		wg.Go(func() {
			var buf, low []byte
			fails[k] = pack.Protect(func() error {
				for i := from; i < to; i++ {
					// A commit takes microseconds, so ctx is asked now and then only.
					if i&63 == 0 && ctx.Err() != nil {
						return context.Cause(ctx)
					}

					id := c.id(batch[i])
					var err error
					if buf, err = p.Read(buf[:0], pack.Commit, id); err != nil {
						return err
					}
					if results[i], err = look(id, buf, &low); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}

	wg.Wait()
	return errors.Join(fails...)
}

// basicIsSafe reports whether s is more than plain text, and certainly an
// expression that git accepts: a bad one would fail the whole call.
func basicIsSafe(s string) bool {
	if !strings.ContainsAny(s, `.*^$[`) || strings.ContainsAny(s, `\`) {
		return false
	}

	// Without backslashes ( ) { } | + ? are plain in a basic expression.
	plain := strings.NewReplacer("(", "x", ")", "x", "{", "x", "}", "x", "|", "x", "+", "x", "?", "x").Replace(s)
	_, err := syntax.Parse(plain, syntax.Perl)
	return err == nil && !strings.Contains(s, "[:") && !strings.Contains(s, "[.") && !strings.Contains(s, "[=")
}
