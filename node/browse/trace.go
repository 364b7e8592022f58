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

// TraceRequest asks which commits changed a text, or some lines of a file.
// One of Text, Expr and First is set.
type TraceRequest struct {
	Repo, Ref    string // Ref as of CommitsRequest
	Path         string // a file or directory; with First the file
	Text         string // how often it stands in a file changed
	Expr         string // an expression that a changed line matches
	First, Last  int    // lines of Path at Ref, from 1
	NoMerges     bool
	Verbatim     bool   // as of CommitsRequest
	Since, Until string // as of CommitsRequest
	Limit        int    // 1..100; 0 means 50
}

// TraceResponse is the commits, newest first. What is looked at is bounded by
// time: AtLeast and Reached are as of a CommitsResponse.
type TraceResponse struct {
	Commit  string // where the walk began
	Shallow bool   // as of CommitsResponse
	Commits []CommitInfo
	Paths   map[string][]string // by hash: at most 10 files with the change
	Total   int                 // found; more than Commits where Limit left some out
	AtLeast bool
	Reached time.Time

	// Where lines are followed and AtLeast is set: what they were in the parent
	// of the last commit.
	From                string
	FromFirst, FromLast int

	Changed map[string]git.ChangedLines // by hash: of the newest 20, where a text or an expression was looked for
	Unread  int                         // files that may have such a change and were too large to be read
	Large   []string                    // paths of the first three of them
}

// Trace looks through the history of a repository for a change.
func (b *Browser) Trace(ctx context.Context, v catalog.Viewer, req TraceRequest) (*TraceResponse, error) {
	since, until, err := b.period(req.Since, req.Until)
	if err != nil {
		return nil, err
	}
	req.Since, req.Until = stampOf(since), stampOf(until)
	if req.Limit < 0 || req.Limit > 100 {
		return nil, call.Fail(call.ErrInvalid, "a page has at most 100 commits")
	}
	return route(ctx, b, v, req.Repo, traceOperation, req)
}

var traceOperation = operation[TraceRequest, TraceResponse]{name: "trace", run: answerTrace, heavy: true}

// answerTrace lists the commits that changed a file, lines of it, or a text anywhere.
func answerTrace(ctx context.Context, s *site, req TraceRequest) (*TraceResponse, error) {
	commit, not, err := s.resolveRange(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	since, _ := time.Parse(time.RFC3339, req.Since) // "" and what Trace wrote
	until, _ := time.Parse(time.RFC3339, req.Until)

	req.Path = s.pathOf(ctx, commit, req.Path)

	// A range beyond the end would be an error of git in words that nobody understands.
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
		return nil, s.explain(ctx, err, commit, req.Path)
	}
	if len(page.Commits) == 0 {
		if err := s.neverThere(ctx, commit, req.Path); err != nil {
			return nil, err
		}
	}

	people, err := s.people(ctx, req.Verbatim)
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

// hasLines fails where the file, or the first of the lines, is not there.
func (s *site) hasLines(ctx context.Context, commit string, req TraceRequest) error {
	src, err := s.mirror.Source(ctx, commit, req.Path, git.SourceOptions{Lines: 1, Count: true})
	switch {
	case err != nil:
		return s.explain(ctx, err, commit, req.Path)
	case src.Binary:
		return call.Fail(call.ErrInvalid, "%s is a binary file: it has no lines", paths.Quoted(req.Path))
	case src.Encoding > charset.UTF8Mark: // git counts other lines in it
		return call.Fail(call.ErrInvalid, "%s is in %s, and the history of lines is known of texts in UTF-8 alone; ask for the commits of its path", paths.Quoted(req.Path), src.Encoding)
	case req.Last > src.Total:
		return call.Fail(call.ErrInvalid, "%s ends at line %d", paths.Quoted(req.Path), src.Total)
	}
	return nil
}
