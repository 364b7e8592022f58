package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// askLog reads a page with git. If that takes too long, the page has what was found and says how far
// git has reached. A reader waits less if git has found something.
func (h *logs) askLog(ctx context.Context, q LogQuery, filter []string) (page LogPage, err error) {
	for _, within := range []time.Duration{logSoon, logTime} {
		c := h.git("log", "-z", "--no-show-signature", "--no-patch", commitFormat,
			"--skip="+strconv.Itoa(q.Skip), "--max-count="+strconv.Itoa(q.Limit))
		q.setReading(c)
		c.Args = append(c.Args, filter...)
		c.Timeout, c.Limit = within, 4<<30

		err = c.Stream(ctx, func(r io.Reader) error {
			return newRecords(r).readCommits(func(c Commit) error {
				page.Commits = append(page.Commits, c)
				return nil
			})
		})

		// Continue only if the time limit of this run is over, but not the time of the caller.
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return page, err
		}
		if n := len(page.Commits); n > 0 {
			page.Reached = page.Commits[n-1].CommitTime
			break
		}
	}
	page.AtLeast = true
	return page, nil
}

// arguments returns the filters as arguments of git log, and the start.
func (q *LogQuery) arguments() ([]string, error) {
	path, err := cleanPath(q.Path)
	if err != nil {
		return nil, err
	}

	args, err := q.textFilters()
	if err != nil {
		return nil, err
	}

	if q.NoMerges {
		args = append(args, "--no-merges")
	}

	if !q.Since.IsZero() {
		// Each commit counts by its own time: --since would stop at the first older one.
		args = append(args, "--since-as-filter="+gitTime(q.Since))
	}

	if !q.Until.IsZero() {
		args = append(args, "--until="+gitTime(q.Until))
		if q.Until.Unix() < 0 {
			args = append(args, "--max-count=0") // no commit has such a time
		}
	}

	revision, err := q.revision()
	if err != nil {
		return nil, err
	}

	// After this, a name that begins with a dash is not an option.
	args = append(args, "--end-of-options", revision, "--")
	if path != "" {
		args = append(args, path)
	}
	return args, nil
}

// gitTime writes a time for git. Git reads seconds only with nine digits, and no time before 1970.
func gitTime(t time.Time) string {
	return time.Unix(max(t.Unix(), 0), 0).UTC().Format(time.RFC3339)
}

// revision returns the start and the excluded history as one argument for git.
func (q *LogQuery) revision() (string, error) {
	if err := checkCommit(q.Commit); err != nil || q.Not == "" {
		return q.Commit, err
	}
	return q.Not + ".." + q.Commit, checkCommit(q.Not)
}

// textFilters returns the filters by message and author. Each text is searched as a literal, and
// also as an expression if it is one.
func (q *LogQuery) textFilters() ([]string, error) {
	var args []string

	// A message must contain all words.
	if len(q.Words) > 0 {
		if q.Query != "" || len(q.Words) > 20 {
			return nil, fmt.Errorf("a filter of commits is at most 20 words: %w", ErrBadPath)
		}
		args = append(args, "--all-match")
	}

	for _, word := range q.Words {
		if strings.ContainsAny(word, "\x00\n") || word == "" || len(word) > 1000 {
			return nil, fmt.Errorf("a word is part of one line of at most 1,000 bytes: %w", ErrBadPath)
		}
		args = append(args, "--grep="+wordStart(word)+quoteBasic(word))
	}

	// Search the texts as literals and as expressions.
	for _, f := range []struct{ option, text string }{{"--grep=", q.Query}, {"--author=", q.Author}} {
		if f.text == "" {
			continue
		}
		if strings.ContainsAny(f.text, "\x00\n") || len(f.text) > 1000 {
			return nil, fmt.Errorf("a filter of commits is one line of at most 1,000 bytes: %w", ErrBadPath)
		}

		args = append(args, f.option+quoteBasic(f.text))
		if basicIsSafe(f.text) {
			args = append(args, f.option+f.text)
		}
	}

	if len(args) > 0 {
		args = append(args, "--basic-regexp", "--regexp-ignore-case")
	}
	return args, nil
}

// wordStart returns the expression that precedes a word in a filter. A word that begins with a
// letter, a digit or an underscore must be at the start of a word of the message: cap does not find
// escape.
func wordStart(word string) string {
	if c := word[0]; c < utf8.RuneSelf && (c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z') {
		return `\b`
	}
	return ""
}

// quoteBasic returns a basic regular expression that matches s literally.
func quoteBasic(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`\.[]*^$`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// basicIsSafe reports whether s is not just plain text, and is certainly an expression that git
// accepts: a bad one would make the whole call fail.
func basicIsSafe(s string) bool {
	if !strings.ContainsAny(s, `.*^$[`) || strings.ContainsAny(s, `\`) {
		return false
	}

	// Without backslashes, ( ) { } | + ? are literal in a basic expression.
	plain := strings.NewReplacer("(", "x", ")", "x", "{", "x", "}", "x", "|", "x", "+", "x", "?", "x").Replace(s)
	_, err := syntax.Parse(plain, syntax.Perl)
	return err == nil && !strings.Contains(s, "[:") && !strings.Contains(s, "[.") && !strings.Contains(s, "[=")
}

// readCommit reads a commit without its references.
func (h *logs) readCommit(ctx context.Context, commit string) (found Commit, err error) {
	if err := checkCommit(commit); err != nil {
		return found, err
	}

	// With options ended on both sides, git must take the text between for a commit.
	c := h.git("log", "-z", "--no-show-signature", "--no-patch", "--max-count=1", commitFormat, "--end-of-options", commit, "--")
	c.Limit = 4 << 30 // the reader shortens long texts
	err = c.Stream(ctx, func(r io.Reader) error {
		return newRecords(r).readCommits(func(c Commit) error {
			found = c
			return nil
		})
	})
	return found, err
}

// readCommits reads commits in the given order.
func (h *logs) readCommits(ctx context.Context, commits []string) (list []Commit, err error) {
	if len(commits) == 0 {
		return nil, nil
	}

	// Unsorted, git keeps the order of the input; otherwise it sorts by time.
	c := h.git("log", "-z", "--no-show-signature", "--no-patch", "--no-walk=unsorted", "--stdin", commitFormat)
	c.Stdin = strings.NewReader(strings.Join(commits, "\n") + "\n")
	c.Limit = 4 << 30 // the reader shortens long texts
	err = c.Stream(ctx, func(r io.Reader) error {
		return newRecords(r).readCommits(func(c Commit) error {
			list = append(list, c)
			return nil
		})
	})
	return list, err
}
