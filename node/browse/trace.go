package browse

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/git"
)

// TraceRequest asks which commits changed a text, or some lines of a file. Exactly one of Text,
// Expr and First is set.
type TraceRequest struct {
	Repo, Ref    string // Ref as in CommitsRequest
	Path         string // a file or directory; with First, a file
	Text         string // find commits that change how often this text occurs in a file
	Expr         string // find commits that change a line matching this regular expression
	First, Last  int    // follow these lines of Path at Ref, from 1
	NoMerges     bool
	Verbatim     bool   // as in CommitsRequest
	Since, Until string // as in CommitsRequest
	Limit        int    // 1..100; 0 means 50
}

// TraceResponse lists commits, newest first. The search is limited in time: AtLeast and Reached
// are as in CommitsResponse.
type TraceResponse struct {
	Commit  string // where the search began
	Shallow bool   // as in CommitsResponse
	Commits []CommitInfo
	Paths   map[string][]string // by hash: at most 10 changed files
	Total   int                 // commits found; Commits has at most Limit of them
	AtLeast bool
	Reached time.Time

	// If AtLeast is set while following lines: the file and its lines in the parent of the last
	// commit.
	From                string
	FromFirst, FromLast int

	Changed map[string]git.ChangedLines // by hash, for the newest 20, with Text or Expr
	Unread  int                         // files that may have the change but were too large to read
	Large   []string                    // paths of the first three of these
}

// Trace searches the history of a repository for changes.
func (b *Browser) Trace(ctx context.Context, v catalog.Viewer, req TraceRequest) (*TraceResponse, error) {
	since, until, err := b.parsePeriod(req.Since, req.Until)
	if err != nil {
		return nil, err
	}
	req.Since, req.Until = formatTime(since), formatTime(until)
	if req.Limit < 0 || req.Limit > 100 {
		return nil, call.Fail(call.ErrInvalid, "a page has at most 100 commits")
	}
	return route(ctx, b, v, req.Repo, traceOperation, req)
}

var traceOperation = operation[TraceRequest, TraceResponse]{name: "trace", run: answerTrace, heavy: true}

// answerTrace lists the commits that changed lines of a file, or a text anywhere.
func answerTrace(ctx context.Context, s *site, req TraceRequest) (*TraceResponse, error) {
	commit, not, err := s.resolveRange(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	since, _ := time.Parse(time.RFC3339, req.Since) // as Trace wrote it; "" stays zero
	until, _ := time.Parse(time.RFC3339, req.Until)

	req.Path = s.pathOf(ctx, commit, req.Path)

	// Check the range first: git's own error would be incomprehensible.
	if req.First > 0 {
		if err := s.hasLines(ctx, commit, req); err != nil {
			return nil, err
		}
	}

	page, err := s.mirror.Trace(ctx, git.TraceQuery{
		Commit: commit,
		Not:    not,
		Path:   req.Path,
		Text:   req.Text,
		Expr:   req.Expr,

		Lines:    [2]int{req.First, req.Last},
		NoMerges: req.NoMerges,
		Since:    since,
		Until:    until,
		Limit:    req.Limit,
		Time:     changeTime,
	})
	if err != nil {
		return nil, s.explainError(ctx, err, commit, req.Path)
	}
	if len(page.Commits) == 0 {
		if err := s.checkExisted(ctx, commit, req.Path); err != nil {
			return nil, err
		}
	}

	people, err := s.mailmap(ctx, req.Verbatim)
	if err != nil {
		return nil, err
	}
	shallow, err := s.mirror.Shallow()
	if err != nil {
		return nil, err
	}
	return &TraceResponse{
		Commit:    commit,
		Shallow:   shallow,
		Commits:   s.commitInfos(ctx, page.Commits, people),
		Paths:     page.Paths,
		Total:     page.Total,
		AtLeast:   page.AtLeast,
		Reached:   page.Reached,
		From:      page.From,
		FromFirst: page.FromLines[0],
		FromLast:  page.FromLines[1],
		Changed:   page.Changed,
		Unread:    len(page.Unread),
		Large:     page.Unread[:min(len(page.Unread), 3)],
	}, nil
}

// hasLines returns an error if the file or the range of lines does not exist.
func (s *site) hasLines(ctx context.Context, commit string, req TraceRequest) error {
	src, err := s.mirror.Source(ctx, commit, req.Path, git.SourceOptions{Lines: 1, Count: true})
	switch {
	case err != nil:
		return s.explainError(ctx, err, commit, req.Path)
	case src.Binary:
		return call.Fail(call.ErrInvalid, "%s is a binary file: it has no lines", paths.Quoted(req.Path))
	case src.Encoding > charset.UTF8Mark: // git counts its lines differently
		return call.Fail(call.ErrInvalid, "%s is in %s, and the history of lines is known of texts in UTF-8 alone; ask for the commits of its path", paths.Quoted(req.Path), src.Encoding)
	case req.Last > src.Total:
		return call.Fail(call.ErrInvalid, "%s ends at line %d", paths.Quoted(req.Path), src.Total)
	}
	return nil
}
