package browse

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard/git"
)

// maxHunks bounds the hunks of one diff, in bytes.
const maxHunks = 64 << 20

// Diff compares two references: directly (two dots), or the second with the merge base of both
// (three dots).
func (b *Browser) Diff(ctx context.Context, v catalog.Viewer, req DiffRequest) (*DiffResponse, error) {
	if req.Base == "" || req.Head == "" {
		return nil, call.Fail(call.ErrInvalid, "base and head must both be given")
	}
	if req.MaxBytes < 0 || req.MaxBytes > maxHunks {
		return nil, call.Fail(call.ErrInvalid, "a difference has at most %d bytes", maxHunks)
	}
	if err := req.checkPages(); err != nil {
		return nil, err
	}

	return route(ctx, b, v, req.Repo, diffOperation, req)
}

// checkPages checks the page numbers of a diff.
func (req *DiffRequest) checkPages() error {
	if req.Page == 0 && req.PerPage == 0 {
		return nil
	}
	if req.Stat {
		return call.Fail(call.ErrInvalid, "stat tells of all files at once: leave out page and perPage")
	}
	return call.CheckPage(&req.Page, &req.PerPage, perPage)
}

var diffOperation = operation[DiffRequest, DiffResponse]{name: "diff", run: answerDiff, heavy: true}

// answerDiff compares two commits. It cuts a large diff and sets Cut.
func answerDiff(ctx context.Context, s *site, req DiffRequest) (*DiffResponse, error) {
	base, err := s.resolve(ctx, req.Base)
	if err != nil {
		return nil, err
	}

	// Resolve each by itself: branches without a common commit can be compared too.
	head, err := s.resolve(ctx, req.Head)
	if err != nil {
		return nil, err
	}

	if req.MergeBase {
		if base, err = s.mergeBase(ctx, req, base, head); err != nil {
			return nil, err
		}
	}

	// Meanwhile read the commit's message in the background.
	var described describedCommit
	var failed error
	wait := inBackground(func() {
		if req.Message {
			described, failed = s.describeCommit(ctx, base, head)
		}
	})

	// A deleted path exists in base only.
	if req.Path != "" {
		req.Path = s.pathOf(ctx, base, s.pathOf(ctx, head, req.Path))
	}
	d, err := s.mirror.Diff(ctx, base, head, git.DiffOptions{
		Path:         req.Path,
		MaxBytes:     req.MaxBytes,
		Context:      req.Context,
		Stat:         req.Stat,
		IgnoreBlanks: req.IgnoreBlanks,
		Skip:         max(0, req.Page-1) * req.PerPage,
		Limit:        req.PerPage,
	})
	wait()
	if err == nil && len(d.Files) == 0 && req.Path != "" {
		err = s.missingPath(ctx, base, head, req.Path)
	}
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}

	// Return the commits too: branches move, and the next page must compare the same commits.
	out := &DiffResponse{Files: make([]DiffFile, len(d.Files)), Cut: d.Cut, BaseCommit: base, HeadCommit: head, Commit: described.CommitInfo, FirstTag: described.first}
	if req.PerPage > 0 {
		out.Total, out.AtLeast = d.Total, d.AtLeast
	}
	for i := range d.Files {
		out.Files[i] = diffFile(&d.Files[i])
	}
	if req.PerPage > 0 {
		s.openHunks(ctx, head, out.Files)
	}
	return out, nil
}

// inBackground runs f in a goroutine. wait waits for its end and repeats a panic of f. A panic in
// the goroutine would end the node; here it ends the request only.
func inBackground(f func()) (wait func()) {
	ended := make(chan string, 1)
	go func() { ended <- call.Caught(f) }()

	return func() {
		if trouble := <-ended; trouble != "" {
			panic(trouble)
		}
	}
}

// describedCommit is the commit whose change a diff shows.
type describedCommit struct {
	CommitInfo
	first *FirstTag // nil if no tag is known
}

// describeCommit reads the message of a commit and its first tag. It returns nothing unless
// parent is one of the commit's parents: then the diff is not the change of one commit.
func (s *site) describeCommit(ctx context.Context, parent, commit string) (out describedCommit, err error) {
	c, err := s.mirror.Show(ctx, commit)
	if err != nil || !slices.Contains(c.Parents, parent) {
		return out, err
	}
	people, err := s.mailmap(ctx, false)
	if err != nil {
		return out, err
	}
	out.CommitInfo = s.commitInfos(ctx, []git.Commit{c}, people)[0]

	// Ignore an error: without the tag the diff is still an answer.
	if first, err := s.mirror.FirstTag(ctx, commit); err == nil && first.Tags > 0 {
		out.first = &FirstTag{Name: first.Name, Release: first.Release, Late: first.Late, Whole: first.Whole, Parts: first.Parts}
	}
	return out, nil
}

// mergeBase returns the last common commit of two branches.
func (s *site) mergeBase(ctx context.Context, req DiffRequest, base, head string) (string, error) {
	commit, err := s.mirror.MergeBase(ctx, base, head)
	if errors.Is(err, git.ErrNoBase) {
		return "", call.Fail(call.ErrInvalid, "%q and %q in repository %q have no commit in common, so that they parted nowhere: compare them directly (with two dots, or without mergeBase)", req.Base, req.Head, s.repo.Name)
	}
	return commit, err
}

// Returns lists the lines of the body, from 0, whose only change is the "\r" at their end. A page
// must mark these, because the change is invisible.
func (h *DiffHunk) Returns() map[int]bool {
	if !strings.Contains(h.Body, "\r") {
		return nil
	}
	lines := strings.Split(h.Body, "\n")
	lineSet := map[string]bool{}
	for _, line := range lines {
		lineSet[line] = true
	}

	out := map[int]bool{}
	opposite := map[byte]string{'-': "+", '+': "-"}
	for i, line := range lines {
		text, ends := strings.CutSuffix(line, "\r")
		if ends && text != "" && opposite[text[0]] != "" && lineSet[opposite[text[0]]+text[1:]] {
			out[i] = true
		}
	}
	return out
}

func diffFile(f *git.FileDiff) DiffFile {
	out := DiffFile{
		OldPath: f.OldPath,
		NewPath: f.NewPath,
		Status:  f.Status,
		OldMode: f.OldMode,
		NewMode: f.NewMode,
		Binary:  f.Binary,
		Added:   f.Added,
		Removed: f.Removed,
		Cut:     f.Cut,
		Hunks:   make([]DiffHunk, len(f.Hunks)),

		Similarity: f.Similarity,
	}

	// Hunks is an empty list, never nil, if only the mode or the name changed: JSON shows [].
	for i, h := range f.Hunks {
		out.Hunks[i] = DiffHunk{
			OldStart: h.Old.Start,
			OldLines: h.Old.Lines,
			NewStart: h.New.Start,
			NewLines: h.New.Lines,
			Heading:  h.Heading,
			Body:     h.Body,
		}
	}
	return out
}

// Blame returns the commit that wrote each line of a file.
func (b *Browser) Blame(ctx context.Context, v catalog.Viewer, req BlameRequest) (*BlameResponse, error) {
	if req.Texts && (req.Lines < 1 || req.Lines > blameTexts) {
		return nil, call.Fail(call.ErrInvalid, "texts are of 1 to %d lines", blameTexts)
	}
	return route(ctx, b, v, req.Repo, blameOperation, req)
}

var blameOperation = operation[BlameRequest, BlameResponse]{name: "blame", run: answerBlame, heavy: true}

// answerBlame returns ranges of lines with their commits; each commit is listed once.
func answerBlame(ctx context.Context, s *site, req BlameRequest) (*BlameResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	req.Path = s.pathOf(ctx, commit, req.Path)
	out := &BlameResponse{Commit: commit}
	b, err := s.runBlame(ctx, commit, req, out)
	if err != nil {
		return nil, s.explainError(ctx, err, commit, req.Path)
	}

	// Look up each commit once: a file has thousands of lines and few commits.
	bodies, err := s.messageBodies(ctx, req, b)
	if err != nil {
		return nil, err
	}

	people, err := s.mailmap(ctx, req.Verbatim)
	if err != nil {
		return nil, err
	}

	out.Late, out.Past = b.Late, b.Past
	out.Ranges, out.Commits = make([]BlameRange, len(b.Ranges)), make(map[string]BlameCommit, len(b.Commits))
	for i, r := range b.Ranges {
		out.Ranges[i] = BlameRange{Hash: r.Commit, Path: r.Path, StartLine: r.First, LineCount: r.Lines}
	}

	for hash, c := range b.Commits {
		out.Shallow = out.Shallow || c.Edge
		name, email := people.Author(c.AuthorName, c.AuthorEmail)
		out.Commits[hash] = BlameCommit{
			Hash:         c.Hash,
			Message:      c.Summary,
			Date:         c.AuthorTime,
			AuthorName:   name,
			AuthorEmail:  email,
			PreviousHash: c.PreviousHash,
			PreviousPath: c.PreviousPath,
			Body:         bodies[hash],
			Edge:         c.Edge,
		}
	}
	return out, nil
}

// missingPath returns an error if neither of two commits has the path.
func (s *site) missingPath(ctx context.Context, base, head, path string) error {
	if _, err := s.mirror.Stat(ctx, base, path); err == nil || strings.Trim(path, "/.") == "" {
		return nil
	}
	_, err := s.mirror.Stat(ctx, head, path)
	return s.explainError(ctx, err, head, path)
}

// Limits of a blame with texts: lines, and bytes of these lines.
const (
	blameTexts = 10
	blameBytes = 64 << 10
)

// messageBodies returns the message bodies of a blame with texts, by commit hash.
func (s *site) messageBodies(ctx context.Context, req BlameRequest, b git.Blame) (map[string]string, error) {
	found := map[string]string{}
	if !req.Texts {
		return found, nil
	}
	for hash := range b.Commits {
		c, err := s.mirror.Show(ctx, hash)
		if err != nil {
			return nil, err
		}
		found[hash] = c.Body
	}
	return found, nil
}

// runBlame runs git blame on the whole file, or on some lines within changeTime.
func (s *site) runBlame(ctx context.Context, commit string, req BlameRequest, out *BlameResponse) (b git.Blame, err error) {
	// A blame of the whole file has no time limit, since a page shows all of it. Its size is
	// limited.
	binary := call.Fail(call.ErrInvalid, "%s is a binary file: it has no lines", paths.Quoted(req.Path))
	if req.Lines <= 0 {
		b, err = s.mirror.Blame(ctx, git.BlameQuery{Commit: commit, Path: req.Path, Verbatim: req.Verbatim})
		if errors.Is(err, git.ErrBinary) {
			err = binary
		}
		return b, err
	}

	// Count the lines first: beyond the last line the answer is empty, while git would fail.
	part := git.SourceOptions{Lines: 1, Count: true}
	if req.Texts {
		part = git.SourceOptions{FirstLine: req.First, Lines: req.Lines, MaxBytes: blameBytes, Count: true}
	}
	src, err := s.mirror.Source(ctx, commit, req.Path, part)
	switch {
	case err != nil:
		return b, err
	case src.Binary:
		return b, binary
	}

	out.Total = src.Total
	if req.Texts {
		out.Texts = src.Content
	}
	if req.First > src.Total {
		return b, nil
	}

	// With a time limit: if the history is long, some of the lines are an answer too.
	return s.mirror.Blame(ctx, git.BlameQuery{
		Commit: commit, Path: src.Path, First: req.First, Last: min(req.First+req.Lines-1, src.Total), Within: changeTime, Verbatim: req.Verbatim,
	})
}

// changeTime bounds reading history for one answer of a tool. At the bound, the answer is what
// was found so far.
const changeTime = 5 * time.Second
