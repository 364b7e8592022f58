package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

// LogQuery selects commits.
type LogQuery struct {
	Commit string // where to begin, an id
	Path   string // only commits that change it
	Query  string // in the message, without regard to case: as it stands, or as a basic regular expression
	Author string // in name or e-mail, likewise
	Since  time.Time
	Until  time.Time
	Skip   int
	Limit  int // 0 is 50
}

// LogPage is a page of commits, newest first.
type LogPage struct {
	Commits []Commit
	Total   int       // of all pages
	AtLeast bool      // there are Total or more: looking ended early, or counting goes on still
	Reached time.Time // when looking ended early: commits of this time and older were not looked at
}

// What a reader waits for a page at most: less when something was found.
const (
	logTime = 15 * time.Second
	logSoon = 4 * time.Second
)

// commitFormat ends each field with a NUL; messages cannot hold one.
const (
	commitFormat = "--format=%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%s%x00%b"
	commitFields = 8
)

// Log lists commits. What takes too long ends with what was found until
// then, Reached set: asking again with Until goes on there. Nobody waits long
// for the count of a long history: it goes on, and the next page has it.
func (m *Mirror) Log(ctx context.Context, q LogQuery) (LogPage, error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}
	q.Skip = max(0, q.Skip)
	s, err := m.refs(ctx)
	if err != nil {
		return LogPage{}, err
	}
	filter, err := q.arguments()
	if err != nil {
		return LogPage{}, err
	}
	work := func(ctx context.Context) (LogPage, error) {
		page, err := m.read(ctx, q)
		if errors.Is(err, errElsewhere) || errors.Is(err, errPack) {
			page, err = m.askLog(ctx, q, filter)
		}
		return page, err
	}
	var page LogPage
	if q.Query == "" && q.Author == "" && q.Path == "" {
		page, err = work(ctx) // costs less than to remember it
	} else {
		key := fmt.Sprint(m.dir, "\x00", strings.Join(filter, "\x00"), "\x00", q.Skip, q.Limit)
		page, err = m.pool.all.pages.do(ctx, key, func(p LogPage) int64 { return p.size() }, work)
	}
	if err != nil {
		return LogPage{}, fmt.Errorf("read history: %w", err)
	}
	page.Commits = slices.Clone(page.Commits) // others have it, too
	for i := range page.Commits {
		c := &page.Commits[i]
		c.Refs, c.Head = s.byCommit[c.Hash], c.Hash == s.head
	}
	seen := q.Skip + len(page.Commits)
	switch last := len(page.Commits) < q.Limit; {
	case page.AtLeast:
		page.Total = seen
	case last && (len(page.Commits) > 0 || q.Skip == 0):
		page.Total = seen // the page itself tells
	default:
		if page.Total, page.AtLeast = m.count(ctx, q, filter); page.AtLeast && len(page.Commits) > 0 {
			page.Total = max(page.Total, seen)
		}
	}
	return page, nil
}

// size is about what a page takes of memory; negative for one that may be
// longer the next time.
func (p *LogPage) size() int64 {
	if p.AtLeast {
		return -1
	}
	n := int64(200)
	for i := range p.Commits {
		c := &p.Commits[i]
		n += 400 + int64(len(c.Subject)+len(c.Body)+len(c.AuthorName)+len(c.AuthorEmail))
	}
	return n
}

// read reads a page of history out of the commit graph and the packs.
func (m *Mirror) read(ctx context.Context, q LogQuery) (page LogPage, err error) {
	c, err := openChronicle(m.dir)
	if err != nil {
		return page, err
	}
	defer c.close()
	began, skip := time.Now(), q.Skip
	w, match, err := c.begin(q, func() error {
		took := time.Since(began)
		if took > logTime || took > logSoon && len(page.Commits) > 0 {
			return errLate
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return page, err
	}
	if match == nil { // what is passed over need not be read
		for ; skip > 0; skip-- {
			if _, err := w.next(); err == io.EOF {
				return page, nil
			} else if err != nil {
				return page, err
			}
		}
	}
	var foreign []int
	type looked struct {
		commit *Commit
		ok     bool
	}
	err = eachText(ctx, w, q.Limit, func(id, text []byte, low *[]byte) looked {
		if match != nil && !match(text, low) {
			return looked{}
		}
		c, ok := parseCommit(id, text)
		return looked{&c, ok}
	}, func(l looked) bool {
		if l.commit == nil {
			return true
		}
		if skip > 0 {
			skip--
			return true
		}
		if !l.ok {
			foreign = append(foreign, len(page.Commits))
		}
		page.Commits = append(page.Commits, *l.commit)
		return len(page.Commits) < q.Limit
	})
	if errors.Is(err, errLate) {
		page.AtLeast, page.Reached, err = true, time.Unix(w.reached, 0).UTC(), nil
	}
	for _, i := range foreign {
		if err != nil {
			break
		}
		if page.Commits[i], err = m.show(ctx, page.Commits[i].Hash); err != nil {
			return page, err
		}
	}
	return page, err
}

// begin starts a walk for a question. match tells whether a commit has the
// texts that are asked for; nil when none are.
func (c *chronicle) begin(q LogQuery, stop func() error) (w *walk, match func(text []byte, low *[]byte) bool, err error) {
	path, err := cleanPath(q.Path)
	if err != nil {
		return nil, nil, err
	}
	if w, err = c.walk(q.Commit, path); err != nil {
		return nil, nil, err
	}
	w.stop = stop
	if !q.Since.IsZero() {
		w.since = q.Since.Unix()
	}
	if !q.Until.IsZero() {
		w.until = q.Until.Unix()
	}
	if q.Query == "" && q.Author == "" {
		return w, nil, nil
	}
	var message, who *wanted
	if q.Query != "" {
		if message, err = newWanted(q.Query); err != nil {
			return nil, nil, err
		}
	}
	if q.Author != "" {
		if who, err = newWanted(q.Author); err != nil {
			return nil, nil, err
		}
	}
	return w, func(text []byte, low *[]byte) bool {
		if who != nil && !who.in(author(text), low) {
			return false
		}
		_, words, _ := bytes.Cut(text, []byte("\n\n"))
		return message == nil || message.in(words, low)
	}, nil
}

// askLog has git read a page.
func (m *Mirror) askLog(ctx context.Context, q LogQuery, filter []string) (page LogPage, err error) {
	c := m.git("log", "-z", "--no-show-signature", "--no-patch", commitFormat,
		"--skip="+strconv.Itoa(q.Skip), "--max-count="+strconv.Itoa(q.Limit))
	c.args = append(c.args, filter...)
	c.timeout, c.limit = logTime, 256<<20
	err = c.stream(ctx, func(r io.Reader) error {
		return readCommits(r, func(c Commit) error {
			page.Commits = append(page.Commits, c)
			return nil
		})
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		page.AtLeast, err = true, nil
	}
	return page, err
}

// arguments are the filters, and where to begin.
func (q *LogQuery) arguments() ([]string, error) {
	if err := checkCommit(q.Commit); err != nil {
		return nil, err
	}
	path, err := cleanPath(q.Path)
	if err != nil {
		return nil, err
	}
	var args []string
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
	if !q.Since.IsZero() {
		args = append(args, "--since=@"+strconv.FormatInt(q.Since.Unix(), 10))
	}
	if !q.Until.IsZero() {
		args = append(args, "--until=@"+strconv.FormatInt(q.Until.Unix(), 10))
	}
	args = append(args, "--end-of-options", q.Commit, "--")
	if path != "" {
		args = append(args, path)
	}
	return args, nil
}

// quoteBasic makes a basic regular expression that matches s as it stands.
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

// basicIsSafe reports whether s has something of an expression in it, and
// is certainly one that git accepts: a bad one would fail the whole call.
func basicIsSafe(s string) bool {
	if !strings.ContainsAny(s, `.*^$[`) || strings.ContainsAny(s, `\`) {
		return false
	}
	// Without backslashes ( ) { } | + ? are plain in a basic expression.
	plain := strings.NewReplacer("(", "x", ")", "x", "{", "x", "}", "x", "|", "x", "+", "x", "?", "x").Replace(s)
	_, err := syntax.Parse(plain, syntax.Perl)
	return err == nil && !strings.Contains(s, "[:") && !strings.Contains(s, "[.") && !strings.Contains(s, "[=")
}

// readCommits parses what commitFormat prints.
func readCommits(r io.Reader, use func(Commit) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var f [commitFields]string
	for {
		for i := range f {
			s, err := in.ReadString(0)
			if err == io.EOF && i == 0 && s == "" {
				return nil
			}
			if err != nil {
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
			f[i] = s[:len(s)-1]
		}
		c := Commit{
			Hash: f[0], Parents: strings.Fields(f[1]), AuthorName: f[2], AuthorEmail: f[3],
			AuthorTime: unix(f[4]), CommitTime: unix(f[5]), Subject: f[6], Body: strings.TrimRight(f[7], "\n"),
		}
		if err := use(c); err != nil {
			return err
		}
	}
}

// unix reads seconds since 1970; nonsense is the zero time.
func unix(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// Show returns one commit.
func (m *Mirror) Show(ctx context.Context, commit string) (Commit, error) {
	s, err := m.refs(ctx)
	if err != nil {
		return Commit{}, err
	}
	c, err := m.show(ctx, commit)
	c.Refs, c.Head = s.byCommit[c.Hash], c.Hash == s.head
	return c, err
}

// show is Show without the references.
func (m *Mirror) show(ctx context.Context, commit string) (found Commit, err error) {
	if err := checkCommit(commit); err != nil {
		return found, err
	}
	c := m.git("log", "-z", "--no-show-signature", "--no-patch", "--max-count=1", commitFormat, "--end-of-options", commit, "--")
	err = c.stream(ctx, func(r io.Reader) error {
		return readCommits(r, func(c Commit) error {
			found = c
			return nil
		})
	})
	return found, err
}

// Author is who wrote commits.
type Author struct {
	Name, Email string
	Commits     int
}

// Authors counts the commits of each author, of a path or of all, most
// first, then by name and e-mail.
func (m *Mirror) Authors(ctx context.Context, commit, path string) ([]Author, error) {
	q := LogQuery{Commit: commit, Path: path}
	filter, err := q.arguments()
	if err != nil {
		return nil, err
	}
	key := strings.Join(filter, "\x00")
	if known, ok := m.authors.get(key); ok {
		return slices.Clone(known), nil
	}
	type identity struct{ name, email string }
	counts := map[identity]int{}
	c := m.git("log", "-z", "--no-show-signature", "--no-patch", "--format=%an%x00%ae")
	c.args = append(c.args, filter...)
	c.timeout, c.limit = time.Minute, 4<<30
	err = c.stream(ctx, func(r io.Reader) error {
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			name, err := in.ReadString(0)
			if err == io.EOF && name == "" {
				return nil
			}
			email, err := in.ReadString(0)
			if err != nil {
				return err
			}
			counts[identity{name[:len(name)-1], email[:len(email)-1]}]++
		}
	})
	if err != nil {
		return nil, fmt.Errorf("count authors: %w", err)
	}
	out := make([]Author, 0, len(counts))
	for id, n := range counts {
		out = append(out, Author{Name: id.name, Email: id.email, Commits: n})
	}
	slices.SortFunc(out, func(a, b Author) int {
		return cmp.Or(cmp.Compare(b.Commits, a.Commits), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Email, b.Email))
	})
	if len(out) < 50_000 {
		m.authors.put(key, out)
	}
	return slices.Clone(out), nil
}
