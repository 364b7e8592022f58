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

// maxHunks bounds the text of a difference, in bytes.
const maxHunks = 64 << 20

// Diff compares two references: directly (two dots), or the second with where the
// two parted (three).
func (b *Browser) Diff(ctx context.Context, v catalog.Viewer, req DiffRequest) (*DiffResponse, error) {
	if req.Base == "" || req.Head == "" {
		return nil, call.Fail(call.ErrInvalid, "base and head must both be given")
	}
	if req.MaxBytes < 0 || req.MaxBytes > maxHunks {
		return nil, call.Fail(call.ErrInvalid, "a difference has at most %d bytes", maxHunks)
	}
	if err := req.paged(); err != nil {
		return nil, err
	}

	return route(ctx, b, v, req.Repo, diffOperation, req)
}

// paged checks what is asked of the pages of a difference.
func (req *DiffRequest) paged() error {
	if req.Page == 0 && req.PerPage == 0 {
		return nil
	}
	if req.Stat {
		return call.Fail(call.ErrInvalid, "stat tells of all files at once: leave out page and perPage")
	}
	return call.CheckPage(&req.Page, &req.PerPage, perPage)
}

var diffOperation = operation[DiffRequest, DiffResponse]{name: "diff", run: answerDiff, heavy: true}

// answerDiff compares two commits. Large diffs are cut; the answer says so.
func answerDiff(ctx context.Context, s *site, req DiffRequest) (*DiffResponse, error) {
	base, err := s.resolve(ctx, req.Base)
	if err != nil {
		return nil, err
	}

	// Both by name: two branches may have nothing in common, and still be compared.
	head, err := s.resolve(ctx, req.Head)
	if err != nil {
		return nil, err
	}

	if req.MergeBase {
		if base, err = s.parted(ctx, req, base, head); err != nil {
			return nil, err
		}
	}

	// What is told beside the patch is found meanwhile.
	var told toldCommit
	var failed error
	wait := beside(func() {
		if req.Message {
			told, failed = s.tellCommit(ctx, base, head)
		}
	})

	// What was deleted is in the base alone.
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
		err = s.inNeither(ctx, base, head, req.Path)
	}
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}

	// The commits are told, for names move: who pages through it asks for these.
	out := &DiffResponse{Files: make([]DiffFile, len(d.Files)), Cut: d.Cut, BaseCommit: base, HeadCommit: head, Commit: told.CommitInfo, FirstTag: told.first}
	if req.PerPage > 0 {
		out.Total, out.AtLeast = d.Total, d.AtLeast
	}
	for i := range d.Files {
		out.Files[i] = diffFile(&d.Files[i])
	}
	return out, nil
}

// beside runs f in the background. wait waits for its end, and panics with what f has
// panicked with: there it would end the node, and here it ends the request.
func beside(f func()) (wait func()) {
	ended := make(chan string, 1)
	go func() { ended <- call.Caught(f) }()

	return func() {
		if trouble := <-ended; trouble != "" {
			panic(trouble)
		}
	}
}

// toldCommit is a commit whose change a difference is.
type toldCommit struct {
	CommitInfo
	first *FirstTag // nil where it cannot be told
}

// tellCommit tells of a commit what is told of it beside its patch, where the other
// one is its parent: of nothing else is a difference the change.
func (s *site) tellCommit(ctx context.Context, parent, commit string) (told toldCommit, err error) {
	c, err := s.mirror.Show(ctx, commit)
	if err != nil || !slices.Contains(c.Parents, parent) {
		return told, err
	}
	people, err := s.people(ctx, false)
	if err != nil {
		return told, err
	}
	told.CommitInfo = s.commitInfos(ctx, []git.Commit{c}, people)[0]

	// An addition: where it cannot be had, the difference stands without it.
	if first, err := s.mirror.FirstTag(ctx, commit); err == nil && first.Tags > 0 {
		told.first = &FirstTag{Name: first.Name, Release: first.Release, Late: first.Late, Whole: first.Whole}
	}
	return told, nil
}

// parted is the commit from which two parted.
func (s *site) parted(ctx context.Context, req DiffRequest, base, head string) (string, error) {
	commit, err := s.mirror.MergeBase(ctx, base, head)
	if errors.Is(err, git.ErrNoBase) {
		return "", call.Fail(call.ErrInvalid, "%q and %q in repository %q have no commit in common, so that they parted nowhere: compare them directly (with two dots, or without mergeBase)", req.Base, req.Head, s.repo.Name)
	}
	return commit, err
}

// Returns are the lines of the body, from 0, that differ from one of the other side by the
// "\r" at their end alone. Without it nobody would see what changed.
func (h *DiffHunk) Returns() map[int]bool {
	if !strings.Contains(h.Body, "\r") {
		return nil
	}
	lines := strings.Split(h.Body, "\n")
	has := map[string]bool{}
	for _, line := range lines {
		has[line] = true
	}

	out := map[int]bool{}
	opposite := map[byte]string{'-': "+", '+': "-"}
	for i, line := range lines {
		text, ends := strings.CutSuffix(line, "\r")
		if ends && text != "" && opposite[text[0]] != "" && has[opposite[text[0]]+text[1:]] {
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

	// Empty where only modes or names changed, never nil: a list in every answer.
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

// Blame finds where each line of a file comes from.
func (b *Browser) Blame(ctx context.Context, v catalog.Viewer, req BlameRequest) (*BlameResponse, error) {
	if req.Texts && (req.Lines < 1 || req.Lines > blameTexts) {
		return nil, call.Fail(call.ErrInvalid, "texts are of 1 to %d lines", blameTexts)
	}
	return route(ctx, b, v, req.Repo, blameOperation, req)
}

var blameOperation = operation[BlameRequest, BlameResponse]{name: "blame", run: answerBlame, heavy: true}

// answerBlame tells for ranges of lines the commit that wrote them, and each commit once.
func answerBlame(ctx context.Context, s *site, req BlameRequest) (*BlameResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	req.Path = s.pathOf(ctx, commit, req.Path)
	out := &BlameResponse{Commit: commit}
	b, err := s.blame(ctx, commit, req, out)
	if err != nil {
		return nil, s.explain(ctx, err, commit, req.Path)
	}

	// Commits stand once: a file has few of them and thousands of lines.
	bodies, err := s.bodies(ctx, req, b)
	if err != nil {
		return nil, err
	}

	people, err := s.people(ctx, req.Verbatim)
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

// inNeither is the failure of a path that neither of two commits has.
func (s *site) inNeither(ctx context.Context, base, head, path string) error {
	if _, err := s.mirror.Stat(ctx, base, path); err == nil || strings.Trim(path, "/.") == "" {
		return nil
	}
	_, err := s.mirror.Stat(ctx, head, path)
	return s.explain(ctx, err, head, path)
}

// Of a blame with texts, how many lines it may have, and how many bytes they may.
const (
	blameTexts = 10
	blameBytes = 64 << 10
)

// bodies reads the bodies of the messages of a blame with texts, by hash.
func (s *site) bodies(ctx context.Context, req BlameRequest, b git.Blame) (map[string]string, error) {
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

// blame asks for the whole file or, within a time, for some of its lines.
func (s *site) blame(ctx context.Context, commit string, req BlameRequest, out *BlameResponse) (b git.Blame, err error) {
	// The whole file is bounded by its size, and not by a time: pages draw all of it.
	binary := call.Fail(call.ErrInvalid, "%s is a binary file: it has no lines", paths.Quoted(req.Path))
	if req.Lines <= 0 {
		b, err = s.mirror.Blame(ctx, git.BlameQuery{Commit: commit, Path: req.Path, Verbatim: req.Verbatim})
		if errors.Is(err, git.ErrBinary) {
			err = binary
		}
		return b, err
	}

	// Lines are counted first, so that a run beyond the end is an empty answer, not an error of git.
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

	// Within a time: of a file with a long history some lines are an answer.
	return s.mirror.Blame(ctx, git.BlameQuery{
		Commit: commit, Path: src.Path, First: req.First, Last: min(req.First+req.Lines-1, src.Total), Within: changeTime, Verbatim: req.Verbatim,
	})
}

// changeTime is how long the history is looked at for one answer of a tool;
// then what was found is the answer.
const changeTime = 5 * time.Second
