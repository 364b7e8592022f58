package api

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// files is what the routes of files and their changes need.
type files interface {
	Source(context.Context, catalog.Viewer, browse.SourceRequest) (*browse.SourceResponse, error)
	Tree(context.Context, catalog.Viewer, browse.TreeRequest) (*browse.TreeResponse, error)
	Diff(context.Context, catalog.Viewer, browse.DiffRequest) (*browse.DiffResponse, error)
	Blame(context.Context, catalog.Viewer, browse.BlameRequest) (*browse.BlameResponse, error)
}

// history is what the routes of commits and references need.
type history interface {
	Commits(context.Context, catalog.Viewer, browse.CommitsRequest) (*browse.CommitsResponse, error)
	Commit(context.Context, catalog.Viewer, browse.CommitRequest) (*browse.CommitInfo, error)
	Authors(context.Context, catalog.Viewer, browse.AuthorsRequest) (*browse.AuthorsResponse, error)
	Branches(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error)
	Tags(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error)
}

// The JSON of what is read from mirrors, field for field.

type sourceJSON struct {
	Source              string `json:"source"`
	Language            string `json:"language"`
	Path                string `json:"path"`
	Repo                string `json:"repo"`
	RepoCodeHostType    string `json:"repoCodeHostType"`
	RepoDisplayName     string `json:"repoDisplayName,omitempty"`
	RepoExternalWebURL  string `json:"repoExternalWebUrl,omitempty"`
	WebURL              string `json:"webUrl"`
	ExternalWebURL      string `json:"externalWebUrl,omitempty"`
	BlobSha             string `json:"blobSha,omitempty"`
	Commit              string `json:"commit,omitempty"`
	StartLine           int    `json:"startLine"` // of source, from 1
	LineCount           int    `json:"lineCount"` // of the whole file
	IsBinary            bool   `json:"isBinary"`
	HasInvalidCharacter bool   `json:"hasReplacementCharacters"` // bytes that are not UTF-8 were replaced
}

type treeJSON struct {
	Type     string     `json:"type"`
	Path     string     `json:"path"`
	Name     string     `json:"name"`
	Children []treeJSON `json:"children"`
}

type commitJSON struct {
	Hash        string   `json:"hash"`
	Date        string   `json:"date"`
	Message     string   `json:"message"`
	Refs        string   `json:"refs"`
	Body        string   `json:"body"`
	AuthorName  string   `json:"authorName"`
	AuthorEmail string   `json:"authorEmail"`
	Parents     []string `json:"parents,omitempty"`
}

type authorJSON struct {
	Name        string `json:"name"`
	Email       string `json:"email"`
	CommitCount int    `json:"commitCount"`
}

type diffJSON struct {
	Files       []diffFileJSON `json:"files"`
	IsTruncated bool           `json:"isTruncated"`
}

type diffFileJSON struct {
	OldPath  *string    `json:"oldPath"`
	NewPath  *string    `json:"newPath"`
	IsBinary bool       `json:"isBinary"`
	Hunks    []hunkJSON `json:"hunks"`
}

type hunkJSON struct {
	OldRange linesJSON `json:"oldRange"`
	NewRange linesJSON `json:"newRange"`
	Heading  string    `json:"heading,omitempty"`
	Body     string    `json:"body"`
}

type linesJSON struct {
	Start int `json:"start"`
	Lines int `json:"lines"`
}

type blameJSON struct {
	Ranges  []blameRangeJSON           `json:"ranges"`
	Commits map[string]blameCommitJSON `json:"commits"`
}

type blameRangeJSON struct {
	Hash      string `json:"hash"`
	Path      string `json:"path"`
	StartLine int    `json:"startLine"`
	LineCount int    `json:"lineCount"`
}

type blameCommitJSON struct {
	Hash        string        `json:"hash"`
	Date        string        `json:"date"`
	Message     string        `json:"message"`
	AuthorName  string        `json:"authorName"`
	AuthorEmail string        `json:"authorEmail"`
	Previous    *previousJSON `json:"previous,omitempty"`
}

type previousJSON struct {
	Hash string `json:"hash"`
	Path string `json:"path"`
}

type refJSON struct {
	Name        string `json:"name"`
	Commit      string `json:"commit"`
	CommittedAt string `json:"committedAt,omitempty"`
	IsDefault   bool   `json:"isDefault"`
	IsIndexed   bool   `json:"isIndexed"`
}

// stamp is a time as the API shows it, "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// source is GET /api/source.
func (s *Server) source(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.SourceRequest{Repo: p.required("repo"), Path: p.required("path"), Ref: p.text("ref")}
	req.FirstLine = p.integer("startLine", 0, 1, 1<<30)
	if last := p.integer("endLine", 0, 1, 1<<30); last > 0 {
		req.Lines = last - max(req.FirstLine, 1) + 1
		if req.Lines < 1 {
			p.wrong("endLine", "must not be before startLine")
		}
	}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.parts.files.Source(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	return c.json(sourceJSON{
		Source: string(r.Content), Language: r.Language, Path: r.Path, Repo: r.Repo,
		RepoCodeHostType: r.HostKind, RepoDisplayName: r.DisplayName, RepoExternalWebURL: r.RepoWebURL,
		WebURL: r.WebURL, ExternalWebURL: r.ExternalWebURL, BlobSha: r.OID, Commit: r.Commit,
		StartLine: max(r.FirstLine, 1), LineCount: r.Total, IsBinary: r.Binary,
		HasInvalidCharacter: !utf8.Valid(r.Content),
	})
}

// tree is POST /api/tree: the given paths, the directories that connect them
// to the root, and one level below each that is a directory.
func (s *Server) tree(ctx context.Context, c *call) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	req := browse.TreeRequest{Repo: f.required("repoName"), Ref: f.text("revisionName"), Recursive: f.flag("recursive")}
	req.Max = f.integer("maxEntries", 0, 1, 1_000_000)
	if _, ok := f.member("paths"); ok {
		req.Paths = f.texts("paths")
	}
	if err := f.err(); err != nil {
		return err
	}
	if len(req.Paths) == 0 {
		req.Paths = []string{""}
	}
	r, err := s.parts.files.Tree(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	return c.json(struct {
		Tree        treeJSON `json:"tree"`
		Commit      string   `json:"commit"`
		IsTruncated bool     `json:"isTruncated"`
	}{treeOf(r.Root), r.Commit, r.Cut})
}

func treeOf(t browse.TreeNode) treeJSON {
	out := treeJSON{Type: t.Type, Path: t.Path, Name: t.Name, Children: make([]treeJSON, len(t.Children))}
	for i, child := range t.Children {
		out.Children[i] = treeOf(child)
	}
	return out
}

// commits is GET /api/commits.
func (s *Server) commits(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.CommitsRequest{
		Repo: p.required("repo"), Ref: p.text("ref"), Path: p.text("path"), Query: p.text("query"),
		Author: p.text("author"), Since: p.text("since"), Until: p.text("until"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
	}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.parts.history.Commits(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	list := make([]commitJSON, len(r.Commits))
	for i := range r.Commits {
		list[i] = commitOf(&r.Commits[i])
		list[i].Parents = nil
	}
	c.page(s.parts.base, paged{req.Page, req.PerPage, len(list), r.Total, r.AtLeast})
	return c.json(list)
}

func commitOf(r *browse.CommitInfo) commitJSON {
	return commitJSON{r.Hash, stamp(r.Date), r.Message, r.Refs, r.Body, r.AuthorName, r.AuthorEmail, r.Parents}
}

// commit is GET /api/commit.
func (s *Server) commit(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.CommitRequest{Repo: p.required("repo"), Ref: p.required("ref")}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.parts.history.Commit(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	out := commitOf(r)
	parents := out.Parents
	if parents == nil {
		parents = []string{}
	}
	return c.json(struct {
		commitJSON
		Parents []string `json:"parents"`
	}{out, parents})
}

// authors is GET /api/commits/authors.
func (s *Server) authors(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.AuthorsRequest{
		Repo: p.required("repo"), Ref: p.text("ref"), Path: p.text("path"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
	}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.parts.history.Authors(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	list := make([]authorJSON, len(r.Authors))
	for i, a := range r.Authors {
		list[i] = authorJSON{a.Name, a.Email, a.Commits}
	}
	c.page(s.parts.base, paged{req.Page, req.PerPage, len(list), r.Total, false})
	return c.json(list)
}

// diff is GET /api/diff.
func (s *Server) diff(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.DiffRequest{Repo: p.required("repo"), Base: p.required("base"), Head: p.required("head"), Path: p.text("path")}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.parts.files.Diff(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	out := diffJSON{Files: make([]diffFileJSON, len(r.Files)), IsTruncated: r.Cut}
	for i := range r.Files {
		out.Files[i] = diffOf(&r.Files[i])
	}
	return c.json(out)
}

func diffOf(f *browse.DiffFile) diffFileJSON {
	out := diffFileJSON{IsBinary: f.Binary, Hunks: make([]hunkJSON, len(f.Hunks))}
	if f.OldPath != "" {
		out.OldPath = &f.OldPath
	}
	if f.NewPath != "" {
		out.NewPath = &f.NewPath
	}
	for i, h := range f.Hunks {
		out.Hunks[i] = hunkJSON{linesJSON{h.OldStart, h.OldLines}, linesJSON{h.NewStart, h.NewLines}, h.Heading, h.Body}
	}
	return out
}

// blame is GET /api/blame.
func (s *Server) blame(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.BlameRequest{Repo: p.required("repo"), Path: p.required("path"), Ref: p.text("ref")}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.parts.files.Blame(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	out := blameJSON{Ranges: make([]blameRangeJSON, len(r.Ranges)), Commits: map[string]blameCommitJSON{}}
	for i, g := range r.Ranges {
		out.Ranges[i] = blameRangeJSON{g.Hash, g.Path, g.StartLine, g.LineCount}
	}
	for hash, b := range r.Commits {
		j := blameCommitJSON{Hash: b.Hash, Date: stamp(b.Date), Message: b.Message, AuthorName: b.AuthorName, AuthorEmail: b.AuthorEmail}
		if b.PreviousHash != "" {
			j.Previous = &previousJSON{b.PreviousHash, b.PreviousPath}
		}
		out.Commits[hash] = j
	}
	return c.json(out)
}

// branches is GET /api/branches.
func (s *Server) branches(ctx context.Context, c *call) error {
	return s.refs(ctx, c, s.parts.history.Branches)
}

// tags is GET /api/tags.
func (s *Server) tags(ctx context.Context, c *call) error {
	return s.refs(ctx, c, s.parts.history.Tags)
}

func (s *Server) refs(ctx context.Context, c *call, list func(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error)) error {
	p := c.params()
	req := browse.RefsRequest{
		Repo: p.required("repo"), Query: p.text("query"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
	}
	if err := p.err(); err != nil {
		return err
	}
	r, err := list(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	refs := make([]refJSON, len(r.Refs))
	for i, f := range r.Refs {
		refs[i] = refJSON{f.Name, f.Commit, stamp(f.CommittedAt), f.Default, f.Indexed}
	}
	c.page(s.parts.base, paged{req.Page, req.PerPage, len(refs), r.Total, false})
	return c.json(refs)
}
