package browse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard/git"
)

// perPage is the default length of a page.
const perPage = 50

// cutPage returns one page of a list.
func cutPage[T any](list []T, page, per int) []T {
	if page-1 > len(list)/per {
		return nil
	}
	from := (page - 1) * per
	return list[min(from, len(list)):min(from+per, len(list))]
}

// Commits returns a page of history. Relative dates are relative to now.
func (b *Browser) Commits(ctx context.Context, v catalog.Viewer, req CommitsRequest) (*CommitsResponse, error) {
	if err := call.CheckPage(&req.Page, &req.PerPage, perPage); err != nil {
		return nil, err
	}
	if err := req.checkFollow(); err != nil {
		return nil, err
	}
	since, until, err := b.parsePeriod(req.Since, req.Until)
	if err != nil {
		return nil, err
	}

	// Make the dates absolute here: another node's clock may differ.
	req.Since, req.Until = formatTime(since), formatTime(until)
	return route(ctx, b, v, req.Repo, commitsOperation, req)
}

// checkFollow checks a request for the history of a file through its renames.
func (req *CommitsRequest) checkFollow() error {
	switch {
	case !req.Follow:
		return nil
	case req.Path == "":
		return call.Fail(call.ErrInvalid, "follow needs the path of a file")

	// A filter could leave out the commit of a rename, and the history would end there.
	case req.Query != "" || len(req.Words) > 0 || req.Author != "" || req.Since != "" || req.Until != "" || req.NoMerges:
		return call.Fail(call.ErrInvalid, "follow cannot stand beside a filter of commits: leave out query, author, since and until")
	}
	return nil
}

// parsePeriod parses the bounds since and until.
func (b *Browser) parsePeriod(from, to string) (since, until time.Time, err error) {
	if since, err = b.parseBound("since", from, false); err != nil {
		return since, until, err
	}
	if until, err = b.parseBound("until", to, true); err != nil {
		return since, until, err
	}
	if !since.IsZero() && !until.IsZero() && since.After(until) {
		err = call.Fail(call.ErrInvalid, "since (%s) is after until (%s)", since.Format(time.RFC3339), until.Format(time.RFC3339))
	}
	return since, until, err
}

// formatTime formats a time for another node; "" for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// parseBound parses a date of a request; "" is the zero time.
func (b *Browser) parseBound(name, text string, end bool) (time.Time, error) {
	if strings.TrimSpace(text) == "" {
		return time.Time{}, nil
	}
	t, ok := parseDate(text, b.d.Now(), end)
	if !ok {
		return t, call.Fail(call.ErrInvalid, "%s: %q is no date; write 2026-01-31, 2026-01-31T10:00:00Z, yesterday, last week or 30 days ago", name, text)
	}
	return t, nil
}

var commitsOperation = operation[CommitsRequest, CommitsResponse]{name: "commits", run: answerCommits, heavy: true}

// answerCommits returns a page of the history of a ref.
func answerCommits(ctx context.Context, s *site, req CommitsRequest) (*CommitsResponse, error) {
	commit, excluded, err := s.resolveRange(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	req.Path = s.pathOf(ctx, commit, req.Path)
	if req.Follow {
		return s.followFile(ctx, commit, excluded, req)
	}

	// Commits wrote both, or "" for no bound, which fails to parse and stays zero.
	since, _ := time.Parse(time.RFC3339, req.Since)
	until, _ := time.Parse(time.RFC3339, req.Until)

	people, err := s.mailmap(ctx, req.Verbatim)
	if err != nil {
		return nil, err
	}
	page, err := s.mirror.Log(ctx, git.LogQuery{
		Commit:   commit,
		Not:      excluded,
		Path:     req.Path,
		Query:    req.Query,
		Words:    req.Words,
		Author:   req.Author,
		People:   people,
		NoMerges: req.NoMerges,

		Since: since,
		Until: until,
		Skip:  (req.Page - 1) * req.PerPage,
		Limit: req.PerPage,
	})
	if err != nil {
		return nil, err
	}

	return s.commitsPage(ctx, commit, page, req)
}

// commitsPage converts a page of commits.
func (s *site) commitsPage(ctx context.Context, commit string, page git.LogPage, req CommitsRequest) (*CommitsResponse, error) {
	if page.Total == 0 {
		if err := s.checkExisted(ctx, commit, req.Path); err != nil {
			return nil, err
		}
	}
	shallow, err := s.mirror.Shallow()
	if err != nil {
		return nil, err
	}
	people, err := s.mailmap(ctx, req.Verbatim)
	if err != nil {
		return nil, err
	}
	return &CommitsResponse{
		Commits: s.commitInfos(ctx, page.Commits, people),
		Total:   page.Total,
		AtLeast: page.AtLeast,
		Reached: page.Reached,
		Shallow: shallow,
		Page:    req.Page,
		Per:     req.PerPage,
	}, nil
}

// followFile returns a page of the history of one file through its renames.
func (s *site) followFile(ctx context.Context, commit, excluded string, req CommitsRequest) (*CommitsResponse, error) {
	// A path that is missing now may have existed, so go on. Refuse a directory: git follows
	// files only, and would show a history without renames.
	if e, err := s.mirror.Stat(ctx, commit, req.Path); err == nil && e.Kind == git.Dir {
		return nil, call.Fail(call.ErrInvalid, "%s in repository %q is a directory: follow is of one file", paths.Quoted(req.Path), s.repo.Name)
	}
	page, err := s.mirror.Follow(ctx, git.LogQuery{
		Commit: commit,
		Not:    excluded,
		Path:   req.Path,
		Skip:   (req.Page - 1) * req.PerPage,
		Limit:  req.PerPage,
	})
	if err != nil {
		return nil, err
	}

	out, err := s.commitsPage(ctx, commit, page, req)
	if err != nil {
		return nil, err
	}
	for i := range out.Commits {
		out.Commits[i].Path = page.Paths[i]
	}
	return out, nil
}

// mailmap returns the repository's mailmap; nil with verbatim, so that authors stay as in their
// commits.
func (s *site) mailmap(ctx context.Context, verbatim bool) (*git.Mailmap, error) {
	if verbatim {
		return nil, nil
	}
	return s.mirror.Mailmap(ctx)
}

// commitInfo converts a commit; branch is the default branch.
func commitInfo(c *git.Commit, branch string, people *git.Mailmap) CommitInfo {
	name, email := people.Author(c.AuthorName, c.AuthorEmail)
	return CommitInfo{
		Hash:        c.Hash,
		Date:        c.AuthorTime,
		Committed:   c.CommitTime,
		Message:     c.Subject,
		Body:        c.Body,
		Refs:        decoration(c, branch),
		AuthorName:  name,
		AuthorEmail: email,
		Parents:     c.Parents,
	}
}

// commitInfos converts commits.
func (s *site) commitInfos(ctx context.Context, commits []git.Commit, people *git.Mailmap) []CommitInfo {
	// The default branch only serves to show "HEAD -> branch", so ignore an error.
	branch, _ := s.mirror.DefaultBranch(ctx)

	out := make([]CommitInfo, len(commits))
	for i := range commits {
		out[i] = commitInfo(&commits[i], branch, people)
	}
	return out
}

// longestDecoration limits the ref names shown at a commit, in bytes, because any number of
// branches may point at it.
const longestDecoration = 2 << 10

// decoration lists the refs at a commit, as git log does: "HEAD -> main, tag: v1, dev". If they
// do not all fit, it ends with the number of the others.
func decoration(c *git.Commit, branch string) string {
	var parts []string
	size, more := 0, 0
	if c.Head {
		parts = append(parts, "HEAD")
		if slices.Contains(c.Refs, "refs/heads/"+branch) {
			parts[0] = "HEAD -> " + branch
		}
	}

	// Tags come before branches, as in git. The branch of HEAD is listed already.
	for _, prefix := range []string{"refs/tags/", "refs/heads/"} {
		for _, r := range c.Refs {
			name, ok := strings.CutPrefix(r, prefix)
			switch {
			case !ok || c.Head && prefix == "refs/heads/" && name == branch:
				continue
			case size+len(name) > longestDecoration:
				more++
				continue
			case prefix == "refs/tags/":
				parts = append(parts, "tag: "+name)
			default:
				parts = append(parts, name)
			}
			size += len(name)
		}
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// Commit returns one commit.
func (b *Browser) Commit(ctx context.Context, v catalog.Viewer, req CommitRequest) (*CommitInfo, error) {
	return route(ctx, b, v, req.Repo, commitOperation, req)
}

var commitOperation = operation[CommitRequest, CommitInfo]{name: "commit", run: answerCommit}

// answerCommit returns one commit.
func answerCommit(ctx context.Context, s *site, req CommitRequest) (*CommitInfo, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	c, err := s.mirror.Show(ctx, commit)
	if err != nil {
		return nil, err
	}
	people, err := s.mailmap(ctx, req.Verbatim)
	if err != nil {
		return nil, err
	}

	return &s.commitInfos(ctx, []git.Commit{c}, people)[0], nil
}

// Authors lists authors by their number of commits.
func (b *Browser) Authors(ctx context.Context, v catalog.Viewer, req AuthorsRequest) (*AuthorsResponse, error) {
	if err := call.CheckPage(&req.Page, &req.PerPage, perPage); err != nil {
		return nil, err
	}
	return route(ctx, b, v, req.Repo, authorsOperation, req)
}

var authorsOperation = operation[AuthorsRequest, AuthorsResponse]{name: "authors", run: answerAuthors, heavy: true}

// answerAuthors returns a page of the authors of a ref, or of a path in it.
func answerAuthors(ctx context.Context, s *site, req AuthorsRequest) (*AuthorsResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	// Every page needs the whole history, since the order is by number of commits.
	people, err := s.mailmap(ctx, req.Verbatim)
	if err != nil {
		return nil, err
	}
	req.Path = s.pathOf(ctx, commit, req.Path)
	list, err := s.mirror.Authors(ctx, commit, req.Path, people)
	shallow, err := s.checkHistory(ctx, commit, req.Path, len(list), err)
	if err != nil {
		return nil, err
	}

	out := &AuthorsResponse{Authors: []AuthorInfo{}, Shallow: shallow, Total: len(list), Page: req.Page, Per: req.PerPage}
	for _, a := range cutPage(list, req.Page, req.PerPage) {
		out.Authors = append(out.Authors, AuthorInfo{Name: a.Name, Email: a.Email, Commits: a.Commits})
	}
	return out, nil
}

// checkHistory passes on err, or fails if nothing was found because the path never existed. It
// reports whether the history is shallow.
func (s *site) checkHistory(ctx context.Context, commit, path string, found int, err error) (shallow bool, _ error) {
	if err == nil && found == 0 {
		err = s.checkExisted(ctx, commit, path)
	}
	if err != nil {
		return false, err
	}
	return s.mirror.Shallow()
}

// Together counts the files that changed in the same commits as a path.
func (b *Browser) Together(ctx context.Context, v catalog.Viewer, req TogetherRequest) (*TogetherResponse, error) {
	return route(ctx, b, v, req.Repo, togetherOperation, req)
}

var togetherOperation = operation[TogetherRequest, TogetherResponse]{name: "together", run: answerTogether, heavy: true}

func answerTogether(ctx context.Context, s *site, req TogetherRequest) (*TogetherResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	req.Path = s.pathOf(ctx, commit, req.Path)
	files, commits, cut, err := s.mirror.Together(ctx, commit, req.Path)
	shallow, err := s.checkHistory(ctx, commit, req.Path, len(files), err)
	if err != nil {
		return nil, err
	}
	out := &TogetherResponse{Commits: commits, Files: files[:min(len(files), cmp.Or(req.Max, 100))], Total: len(files), Cut: cut, Shallow: shallow}
	for i := range out.Files {
		_, err := s.mirror.Stat(ctx, commit, out.Files[i].Path)
		out.Files[i].Gone = errors.Is(err, git.ErrNoPath)
	}
	return out, nil
}

// Branches lists branches, newest first.
func (b *Browser) Branches(ctx context.Context, v catalog.Viewer, req RefsRequest) (*RefsResponse, error) {
	if err := call.CheckPage(&req.Page, &req.PerPage, perPage); err != nil {
		return nil, err
	}
	return route(ctx, b, v, req.Repo, branchesOperation, req)
}

// Tags lists tags, newest first.
func (b *Browser) Tags(ctx context.Context, v catalog.Viewer, req RefsRequest) (*RefsResponse, error) {
	if err := call.CheckPage(&req.Page, &req.PerPage, perPage); err != nil {
		return nil, err
	}
	return route(ctx, b, v, req.Repo, tagsOperation, req)
}

var branchesOperation = operation[RefsRequest, RefsResponse]{name: "branches", run: answerBranches}

// answerBranches returns a page of branches.
func answerBranches(ctx context.Context, s *site, req RefsRequest) (*RefsResponse, error) {
	refs, err := s.mirror.Branches(ctx)
	if err != nil {
		return nil, err
	}
	tags, err := s.mirror.Tags(ctx)
	if err != nil {
		return nil, err
	}
	tagged := make(map[string]bool, len(tags))
	for _, t := range tags {
		tagged[t.Name] = true
	}
	return s.refsPage(ctx, refs, tagged, req)
}

var tagsOperation = operation[RefsRequest, RefsResponse]{name: "tags", run: answerTags}

// answerTags returns a page of tags.
func answerTags(ctx context.Context, s *site, req RefsRequest) (*RefsResponse, error) {
	refs, err := s.mirror.Tags(ctx)
	if err != nil {
		return nil, err
	}
	return s.refsPage(ctx, refs, nil, req)
}

// refsPage makes a page of branches or tags. tagged has the names of tags, because a branch may have
// the same name.
func (s *site) refsPage(ctx context.Context, refs []git.Ref, tagged map[string]bool, req RefsRequest) (*RefsResponse, error) {
	branch, err := s.mirror.DefaultBranch(ctx)
	if err != nil {
		return nil, err
	}

	// Compare full names: a tag and a branch may have the same short name.
	indexed := map[string]bool{}
	for _, r := range s.repo.Revisions {
		indexed[r.Name] = true
	}

	// Filter before counting, so that Total counts the matches.
	want := strings.ToLower(req.Query)
	refs = slices.DeleteFunc(refs, func(r git.Ref) bool { return !strings.Contains(strings.ToLower(r.Name), want) })
	var has string
	var late bool
	if req.Contains != "" {
		if has, err = s.resolve(ctx, req.Contains); err != nil {
			return nil, err
		}
		if refs, late, err = s.mirror.Having(ctx, has, refs); err != nil {
			return nil, err
		}
	}

	out := &RefsResponse{
		Contains:      has,
		Late:          late,
		Repo:          s.repo.Name,
		DefaultBranch: branch,
		IndexedAt:     s.repo.IndexedAt,
		Refs:          []RefInfo{},
		Total:         len(refs),
		Page:          req.Page,
		Per:           req.PerPage,
	}

	for _, r := range cutPage(refs, req.Page, req.PerPage) {
		out.Refs = append(out.Refs, RefInfo{
			Name:        r.Name,
			Ref:         linkRef(r.Full, func(name string) bool { return tagged[name] }),
			Commit:      r.Commit,
			CommittedAt: r.Time,
			Default:     r.Head,
			Indexed:     indexed[r.Full] || r.Head && indexed["HEAD"],
		})
	}
	return out, nil
}
