package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// LogQuery selects commits.
type LogQuery struct {
	Commit string   // id of the commit to start at
	Not    string   // id of a commit whose history is left out; "" leaves nothing out
	Path   string   // only commits that change it
	Query  string   // text in the message, ignoring case: a literal, or a basic regular expression
	Words  []string // literals that the message must all contain, each from the start of a word, ignoring case; only if Query is ""
	Author string   // text in name or e-mail, as Query
	People *Mailmap // maps authors; nil uses the names in the commits
	Since  time.Time
	Until  time.Time
	Skip   int
	Limit  int // 0 means 50

	NoMerges bool // only commits with fewer than two parents
}

// LogPage is a page of commits, newest first.
type LogPage struct {
	Commits []Commit
	Total   int       // number of commits on all pages
	AtLeast bool      // there may be more than Total: the search stopped early, or counting still runs
	Reached time.Time // if the search stopped early: commits of this time and older were not checked

	Paths []string // set by Follow: the name of the file in each of Commits
}

// logs lists commits.
type logs struct {
	*base
	tasks    *run.Tasks                 // runs work that continues after its caller has returned
	pages    *run.Flights[LogPage]      // of history with a filter, cached because the same words are searched again
	totals   *run.Flights[int]          // by filter
	counting chan struct{}              // a slot for each running count
	single   *lru.Cache[string, Commit] // by id, without references
}

func newLogs(b *base, tasks *run.Tasks, pages *run.Flights[LogPage]) *logs {
	return &logs{
		base:     b,
		tasks:    tasks,
		pages:    pages,
		totals:   run.NewFlights[int](maxCachedAnswers),
		counting: make(chan struct{}, maxCounts),
		single:   lru.New[string, Commit](maxCachedAnswers),
	}
}

// How long a reader waits for a page: less if something was found.
const (
	logTime = 15 * time.Second
	logSoon = 4 * time.Second
)

// Log lists commits. When its time is over it returns what it has found, with Reached set: the same
// query with Until continues there. It does not wait long for the count of a long history; counting
// continues for the next page.
func (h *logs) Log(ctx context.Context, q LogQuery) (LogPage, error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}

	q.Skip = max(0, q.Skip)

	s, err := h.refs(ctx)
	if err != nil {
		return LogPage{}, err
	}

	filter, err := q.arguments()
	if err != nil {
		return LogPage{}, err
	}

	work := func(ctx context.Context) (LogPage, error) { return h.page(ctx, q, filter) }

	// A plain page costs less to read than to cache.
	var page LogPage
	if !q.filtersTexts() && q.Path == "" {
		page, err = work(ctx)
	} else {
		key := fmt.Sprint(h.dir, "\x00", q.key(filter), "\x00", q.Skip, q.Limit)
		page, err = h.pages.Do(ctx, h.tasks, key, func(p LogPage) int64 { return p.size() }, work)
	}
	if err != nil {
		return LogPage{}, fmt.Errorf("read history: %w", err)
	}

	page = page.withRefs(s)
	h.setTotal(ctx, q, filter, &page)
	return page, nil
}

// key returns a text that identifies what the query with this filter selects, for caches.
func (q *LogQuery) key(filter []string) string {
	if q.People == nil || q.Author == "" {
		return strings.Join(filter, "\x00")
	}
	return q.People.oid + "\x00" + strings.Join(filter, "\x00")
}

// setReading makes git read texts as the filter needs it: ignoring case in all languages, and with
// mapped authors.
func (q *LogQuery) setReading(c *run.Command) {
	if utf8.ValidString(q.Query + q.Author + strings.Join(q.Words, "")) {
		c.Env = append(c.Env, "LC_ALL=C.UTF-8")
	}
	if q.People != nil && q.Author != "" {
		c.Args, c.Config = append(c.Args, "--use-mailmap"), []string{"mailmap.blob", q.People.oid}
	}
}

// withRefs returns the page with the references of its commits. Cached pages have none, because
// references move.
func (p LogPage) withRefs(s *refState) LogPage {
	p.Commits = slices.Clone(p.Commits)
	for i := range p.Commits {
		p.Commits[i] = p.Commits[i].withRefs(s)
	}
	return p
}

// withRefs returns the commit with the references that point at it.
func (c Commit) withRefs(s *refState) Commit {
	c.Refs, c.Head = s.byCommit[c.Hash], c.Hash == s.head
	return c
}

// At finds the newest commit at or before a time in the history of a commit; ErrNoRef if the
// history begins later.
func (h *logs) At(ctx context.Context, commit string, until time.Time) (Commit, error) {
	q := LogQuery{Commit: commit, Until: until, Limit: 1}
	args, err := q.arguments()
	if err != nil {
		return Commit{}, err
	}

	page, err := h.page(ctx, q, args)
	switch {
	case err != nil:
		return Commit{}, fmt.Errorf("read history: %w", err)
	case len(page.Commits) > 0:
		return page.Commits[0], nil
	case page.AtLeast:
		return Commit{}, fmt.Errorf("read history: %w", context.DeadlineExceeded)
	}
	return Commit{}, fmt.Errorf("%w: nothing was committed by %s", ErrNoRef, until.UTC().Format(time.DateTime))
}

// setTotal sets Total and AtLeast of a page: the number of commits on all pages. It counts the
// commits, unless the page is the last one.
func (h *logs) setTotal(ctx context.Context, q LogQuery, filter []string, page *LogPage) {
	listed := q.Skip + len(page.Commits) // on this page and those before it
	switch isLast := len(page.Commits) < q.Limit; {
	case page.AtLeast:
		page.Total = listed
	case isLast && (len(page.Commits) > 0 || q.Skip == 0):
		page.Total = listed
	default:
		if page.Total, page.AtLeast = h.count(ctx, q, filter); page.AtLeast && len(page.Commits) > 0 {
			page.Total = max(page.Total, listed)
		}
	}
}

// size returns about how many bytes of memory a page takes; negative if it must not be cached,
// because it may be longer the next time.
func (p *LogPage) size() int64 {
	if p.AtLeast {
		return -1
	}
	n := int64(200)
	for i := range p.Commits {
		c := &p.Commits[i]
		n += 400 + int64(len(c.Subject)+len(c.Body)+len(c.AuthorName)+len(c.AuthorEmail))
	}
	for _, path := range p.Paths {
		n += 20 + int64(len(path))
	}
	return n
}

// page reads a page of history. It asks git if packs and graph have no answer.
func (h *logs) page(ctx context.Context, q LogQuery, filter []string) (LogPage, error) {
	page, err := h.read(ctx, q)
	if errors.Is(err, pack.ErrAskGit) {
		return h.askLog(ctx, q, filter)
	}
	return page, err
}

// read reads a page of history from the commit graph and the packs.
func (h *logs) read(ctx context.Context, q LogQuery) (page LogPage, err error) {
	c, err := openChronicle(h.dir)
	if err != nil {
		return page, err
	}
	defer c.close()

	now := h.now
	began := now()
	w, err := c.begin(q, func() error {
		took := now().Sub(began)
		if took > logTime || took > logSoon && len(page.Commits) > 0 {
			return errLate
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return page, err
	}

	// Skip the commits of earlier pages without reading their texts.
	more, err := w.skipCommits(q.Skip)
	var ids [][]byte
	if more && err == nil {
		ids, err = w.nextIDs(q.Limit)
	}

	// If time is over, the page has what was found, and says how far the search has reached.
	if errors.Is(err, errLate) {
		page.AtLeast, page.Reached, err = true, time.Unix(w.reached, 0).UTC(), nil
	}
	if err == nil {
		page.Commits, err = h.readTexts(ctx, c, ids)
	}
	return page, err
}

// readTexts reads commits from the packs, and those that only git can read in one run of git. The
// result has the order of ids.
func (h *logs) readTexts(ctx context.Context, c *chronicle, ids [][]byte) (list []Commit, err error) {
	texts := newRoom()
	var foreign []string
	for _, id := range ids {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		one, ok, err := c.commit(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			foreign = append(foreign, one.Hash)
		}
		texts.shortenCommit(&one)
		list = append(list, one)
	}

	byGit, err := h.readCommits(ctx, foreign)
	if err == nil && len(byGit) != len(foreign) {
		err = fmt.Errorf("git knows %d of %d commits: %w", len(byGit), len(foreign), ErrNoRef)
	}
	for i := range list {
		if len(byGit) > 0 && list[i].Hash == byGit[0].Hash {
			list[i], byGit = byGit[0], byGit[1:]
		}
	}
	return list, err
}

// skipCommits skips the next n commits. It returns false if there are fewer.
func (w *walk) skipCommits(n int) (more bool, err error) {
	for range n {
		if _, err := w.next(); err == io.EOF {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// appendNext appends the positions of the next commits until dst has size of them. It stops early if
// the walk returns an error.
func (w *walk) appendNext(dst []uint32, size int) ([]uint32, error) {
	for len(dst) < size {
		pos, err := w.next()
		if err != nil {
			return dst, err
		}
		dst = append(dst, pos)
	}
	return dst, nil
}

// nextIDs returns the ids of up to limit next commits.
func (w *walk) nextIDs(limit int) (ids [][]byte, err error) {
	positions, ended := w.appendNext(nil, limit)
	err = pack.Protect(func() error {
		for _, pos := range positions {
			ids = append(ids, bytes.Clone(w.c.id(pos)))
		}
		return nil
	})
	return ids, cmp.Or(err, ignoreEOF(ended))
}

// filtersTexts reports whether a query filters commits by their texts.
func (q *LogQuery) filtersTexts() bool { return q.Query != "" || len(q.Words) > 0 || q.Author != "" }

// begin starts the walk for a query.
func (c *chronicle) begin(q LogQuery, stop func() error) (*walk, error) {
	// Git is about as fast at finding where two histories part, which needs a walk through both, and
	// at searching texts.
	if q.Not != "" || q.filtersTexts() {
		return nil, pack.ErrAskGit
	}

	path, err := cleanPath(q.Path)
	if err != nil {
		return nil, err
	}
	w, err := c.walk(q.Commit, path)
	if err != nil {
		return nil, err
	}
	w.stop, w.noMerges = stop, q.NoMerges

	// A zero time means no limit.
	if !q.Since.IsZero() {
		w.since = q.Since.Unix()
	}
	if !q.Until.IsZero() {
		w.until = q.Until.Unix()
	}
	return w, nil
}

// Show returns one commit. It is shared: nobody may change it.
func (h *logs) Show(ctx context.Context, commit string) (c Commit, err error) {
	s, err := h.refs(ctx)
	if err != nil {
		return c, err
	}

	if c, ok := h.single.Get(commit); ok {
		return c.withRefs(s), nil
	}

	// The commit is the first of its own history. Use git if the packs do not have it.
	page, err := h.read(ctx, LogQuery{Commit: commit, Limit: 1})
	if err == nil && len(page.Commits) == 1 {
		c = page.Commits[0]
	} else {
		c, err = h.readCommit(ctx, commit)
	}

	if err == nil && len(c.Subject)+len(c.Body) <= maxCachedMessage {
		h.single.Put(commit, c, 1)
	}
	return c.withRefs(s), err
}

// maxCachedMessage is the length in bytes of the longest message that Show caches.
const maxCachedMessage = 16 << 10
