package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard/git"
)

// fileRoutes handles files: their text, trees, diffs and blames.
type fileRoutes struct {
	files browse.Files
	base  func() string
}

func (a *fileRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/source", accessRead, browseTimeout, a.source),
		newRoute("GET", "/api/raw", accessRead, browseTimeout, a.raw),
		newRoute("POST", "/api/tree", accessRead, browseTimeout, a.tree),
		newRoute("GET", "/api/diff", accessRead, browseTimeout, a.diff),
		newRoute("GET", "/api/blame", accessRead, browseTimeout, a.blame),
	}
}

// JSON of answers about files.

type sourceJSON struct {
	Source fileText `json:"source"`
	*browse.SourceResponse
	HasInvalidCharacter bool `json:"hasReplacementCharacters"` // bytes that are not UTF-8 were replaced

	// Only if the request has tokens: the colored runs of each line, and whether the lines after
	// them have none.
	Tokens    *[][]tokenJSON `json:"tokens,omitzero"`
	TokensCut *bool          `json:"areTokensTruncated,omitzero"`
}

type treeJSON struct {
	Type     string     `json:"type"`
	Path     string     `json:"path"`
	Name     string     `json:"name"`
	Children []treeJSON `json:"children"`

	// Only if the request has details.
	Mode   string  `json:"mode,omitempty"`
	Size   *int64  `json:"size,omitzero"`    // bytes of a blob
	Target *string `json:"target,omitzero"`  // of a symlink
	Commit string  `json:"commit,omitempty"` // of a submodule
}

type diffJSON struct {
	Files       []diffFileJSON `json:"files"`
	IsTruncated bool           `json:"isTruncated"`

	// Only if the request has details.
	BaseCommit string `json:"baseCommit,omitempty"`
	HeadCommit string `json:"headCommit,omitempty"`
}

type diffFileJSON struct {
	OldPath  *string    `json:"oldPath"`
	NewPath  *string    `json:"newPath"`
	IsBinary bool       `json:"isBinary"`
	Hunks    []hunkJSON `json:"hunks"`

	*changeJSON // nil without details
}

// changeJSON has the members of a changed file that only a request with details gets.
type changeJSON struct {
	Status      string `json:"status"`
	OldMode     string `json:"oldMode,omitempty"`
	NewMode     string `json:"newMode,omitempty"`
	Similarity  int    `json:"similarity,omitzero"` // of a renamed file, in percent; never 0
	Added       int    `json:"added"`
	Removed     int    `json:"removed"`
	IsTruncated bool   `json:"isTruncated"`
}

type hunkJSON struct {
	OldRange git.DiffRange `json:"oldRange"`
	NewRange git.DiffRange `json:"newRange"`
	Heading  string        `json:"heading,omitempty"`
	Body     string        `json:"body"`
}

// blameJSON is a commit of a blame, with the previous commit of the file.
type blameJSON struct {
	browse.BlameCommit
	Previous *previousJSON `json:"previous,omitzero"`
}

type previousJSON struct {
	Hash string `json:"hash"`
	Path string `json:"path"`
}

// fileText is text of a file. Its JSON has U+FFFD for each byte that is not UTF-8.
type fileText []byte

// MarshalJSON implements json.Marshaler.
func (t fileText) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(string(t))
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// source handles GET /api/source.
func (a *fileRoutes) source(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.SourceRequest{Repo: p.required("repo"), Path: p.required("path"), Ref: p.text("ref")}

	// A missing startLine is the file's first line, a missing endLine its last.
	req.FirstLine = p.integer("startLine", 0, 1, 1<<30)
	if last := p.integer("endLine", 0, 1, 1<<30); last > 0 {
		req.Lines = last - max(req.FirstLine, 1) + 1
		if req.Lines < 1 {
			p.wrong("endLine", "must not be before startLine")
		}
	}
	wantsTokens, wantsLastSeen := p.flag("tokens", false), p.flag("lastSeen", false)
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.files.Source(ctx, c.viewer, req)
	if err != nil && wantsLastSeen {
		return a.addLastSeen(ctx, c, err, browse.LastSeenRequest{Repo: req.Repo, Ref: req.Ref, Paths: []string{req.Path}})
	}
	if err != nil {
		return err
	}

	// Report whether the text of the answer has U+FFFD in place of invalid bytes.
	file := *r
	file.FirstLine = max(r.FirstLine, 1)
	out := sourceJSON{Source: fileText(r.Content), SourceResponse: &file}
	out.HasInvalidCharacter = !utf8.Valid(r.Content) || r.Encoding != "" && bytes.ContainsRune(r.Content, utf8.RuneError)
	if wantsTokens {
		lines, cut := tokensOf(r)
		out.Tokens, out.TokensCut = &lines, &cut
	}
	return c.json(out)
}

// tree handles POST /api/tree: the given paths, the directories that connect them to the root,
// and the entries of those paths that are directories.
func (a *fileRoutes) tree(ctx context.Context, c *call) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	req := browse.TreeRequest{Repo: f.required("repoName"), Ref: f.text("revisionName"), Recursive: f.flag("recursive")}
	req.Max, req.Details = f.integer("maxEntries", 1, 1_000_000), f.flag("details")
	wantsLastSeen := f.flag("lastSeen")

	// Missing or empty paths mean the root.
	if _, ok := f.member("paths"); ok {
		req.Paths = f.texts("paths")
	}
	if err := f.err(); err != nil {
		return err
	}

	if len(req.Paths) == 0 {
		req.Paths = []string{""}
	}
	r, err := a.files.Tree(ctx, c.viewer, req)
	if err != nil && wantsLastSeen {
		return a.addLastSeen(ctx, c, err, browse.LastSeenRequest{Repo: req.Repo, Ref: req.Ref, Paths: req.Paths})
	}
	if err != nil {
		return err
	}

	return c.json(struct {
		Tree        treeJSON `json:"tree"`
		Commit      string   `json:"commit"`
		IsTruncated bool     `json:"isTruncated"`
	}{treeOf(r.Root, req.Details, r.Detailed), r.Commit, r.Cut})
}

// treeOf converts a tree with its children to JSON, with or without details. hasSizes reports
// whether t has the sizes of its blobs and the targets of its symlinks.
func treeOf(t browse.TreeNode, details, hasSizes bool) treeJSON {
	out := treeJSON{Type: t.Type, Path: t.Path, Name: t.Name, Children: make([]treeJSON, len(t.Children))}
	for i, child := range t.Children {
		out.Children[i] = treeOf(child, details, hasSizes)
	}
	if !details {
		return out
	}

	out.Mode = fmt.Sprintf("%06o", t.Mode)
	switch {
	case t.Type == "commit":
		out.Commit = t.OID
	case t.Type == "blob" && hasSizes:
		out.Size = &t.Size
		if t.Target != "" {
			out.Target = &t.Target
		}
	}
	return out
}

// diff handles GET /api/diff.
func (a *fileRoutes) diff(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.DiffRequest{
		Repo: p.required("repo"), Base: p.required("base"), Head: p.required("head"), Path: p.text("path"),
		Stat: p.flag("stat", false), MergeBase: p.flag("mergeBase", false), IgnoreBlanks: p.flag("ignoreWhitespace", false),
		Context: p.integer("context", 3, 0, 100),
	}
	details := p.flag("details", false) || req.Stat

	// Without page and perPage the answer has all files.
	_, hasPage := c.arg("page")
	_, hasPerPage := c.arg("perPage")
	paging := hasPage || hasPerPage
	if paging {
		req.Page, req.PerPage = p.integer("page", 1, 1, 1<<30), p.integer("perPage", 50, 1, 100)
	}
	if paging && req.Stat {
		p.wrong("page", "is of hunks, and stat tells of all files at once: leave out one of the two, with perPage")
	}

	// In this API 0 means no context lines. In a DiffRequest -1 means that, and 0 the default.
	if req.Context == 0 {
		req.Context = -1
	}
	if _, given := c.arg("context"); given && req.Stat {
		p.wrong("context", "is of hunks, which stat leaves out: give one of the two")
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.files.Diff(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	out := diffJSON{Files: make([]diffFileJSON, len(r.Files)), IsTruncated: r.Cut}
	for i := range r.Files {
		out.Files[i] = diffOf(&r.Files[i])
	}

	// Add these members on request only, because older clients do not expect them.
	if details {
		out.BaseCommit, out.HeadCommit = r.BaseCommit, r.HeadCommit
		for i := range r.Files {
			out.Files[i].changeJSON = changeOf(&r.Files[i])
		}
	}
	if req.PerPage > 0 {
		c.setPageHeaders(a.base(), paged{req.Page, req.PerPage, len(r.Files), r.Total, r.AtLeast})
	}
	return c.json(out)
}

// changeNames maps git's status letters to words.
var changeNames = map[byte]string{'A': "added", 'D': "deleted", 'M': "modified", 'R': "renamed", 'T': "typeChanged"}

func changeOf(f *browse.DiffFile) *changeJSON {
	out := &changeJSON{
		Status: changeNames[f.Status], OldMode: f.OldMode, NewMode: f.NewMode, Similarity: f.Similarity,
		Added: f.Added, Removed: f.Removed, IsTruncated: f.Cut,
	}

	// An added file has no old mode, and a removed one no new mode. Git writes zeros there.
	if f.OldPath == "" {
		out.OldMode = ""
	}
	if f.NewPath == "" {
		out.NewMode = ""
	}
	return out
}

func diffOf(f *browse.DiffFile) diffFileJSON {
	// An added file has no old path, and a removed one no new path: the JSON has null, not "".
	out := diffFileJSON{IsBinary: f.Binary, Hunks: make([]hunkJSON, len(f.Hunks))}
	if f.OldPath != "" {
		out.OldPath = &f.OldPath
	}
	if f.NewPath != "" {
		out.NewPath = &f.NewPath
	}
	for i, h := range f.Hunks {
		out.Hunks[i] = hunkJSON{git.DiffRange{Start: h.OldStart, Lines: h.OldLines}, git.DiffRange{Start: h.NewStart, Lines: h.NewLines}, h.Heading, h.Body}
	}
	return out
}

// blame handles GET /api/blame.
func (a *fileRoutes) blame(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.BlameRequest{Repo: p.required("repo"), Path: p.required("path"), Ref: p.text("ref"), Verbatim: p.flag("verbatim", false)}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.files.Blame(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	// List each commit once, because a file has few commits and many ranges.
	commits := map[string]blameJSON{}
	for hash, b := range r.Commits {
		x := blameJSON{BlameCommit: b}
		if b.PreviousHash != "" {
			x.Previous = &previousJSON{b.PreviousHash, b.PreviousPath}
		}
		commits[hash] = x
	}
	return c.json(struct {
		Ranges  []browse.BlameRange  `json:"ranges"`
		Commits map[string]blameJSON `json:"commits"`
		Past    int                  `json:"linesPastIgnored,omitzero"`
		Shallow bool                 `json:"isShallow,omitzero"`
	}{r.Ranges, commits, r.Past, r.Shallow})
}
