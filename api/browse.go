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

// fileRoutes handles files and their changes.
type fileRoutes struct {
	files browse.Files
	base  func() string
}

func (a *fileRoutes) rows() []route {
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
	Source text `json:"source"`
	*browse.SourceResponse
	HasInvalidCharacter bool `json:"hasReplacementCharacters"` // bytes that are not UTF-8 were replaced

	// Only with tokens: the colored runs of each line, and whether later lines have none.
	Tokens    *[][]colouredJSON `json:"tokens,omitzero"`
	TokensCut *bool             `json:"areTokensTruncated,omitzero"`
}

type treeJSON struct {
	Type     string     `json:"type"`
	Path     string     `json:"path"`
	Name     string     `json:"name"`
	Children []treeJSON `json:"children"`

	// Only with details.
	Mode   string  `json:"mode,omitempty"`
	Size   *int64  `json:"size,omitzero"`    // bytes of a blob
	Target *string `json:"target,omitzero"`  // of a symlink
	Commit string  `json:"commit,omitempty"` // of a submodule
}

type diffJSON struct {
	Files       []diffFileJSON `json:"files"`
	IsTruncated bool           `json:"isTruncated"`

	// Only with details.
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

// changeJSON has the details of a changed file.
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

// text is text of a file. Its JSON replaces invalid UTF-8 by U+FFFD.
type text []byte

// MarshalJSON implements json.Marshaler.
func (t text) MarshalJSON() ([]byte, error) {
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

	// Either end may be missing: then it is the first or the last line.
	req.FirstLine = p.integer("startLine", 0, 1, 1<<30)
	if last := p.integer("endLine", 0, 1, 1<<30); last > 0 {
		req.Lines = last - max(req.FirstLine, 1) + 1
		if req.Lines < 1 {
			p.wrong("endLine", "must not be before startLine")
		}
	}
	colours, seen := p.flag("tokens", false), p.flag("lastSeen", false)
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.files.Source(ctx, c.viewer, req)
	if err != nil && seen {
		return a.lastSeen(ctx, c, err, browse.LastSeenRequest{Repo: req.Repo, Ref: req.Ref, Paths: []string{req.Path}})
	}
	if err != nil {
		return err
	}

	// The encoder replaces invalid bytes by U+FFFD; report that.
	file := *r
	file.FirstLine = max(r.FirstLine, 1)
	out := sourceJSON{Source: text(r.Content), SourceResponse: &file}
	out.HasInvalidCharacter = !utf8.Valid(r.Content) || r.Encoding != "" && bytes.ContainsRune(r.Content, utf8.RuneError)
	if colours {
		lines, cut := coloured(r)
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
	seen := f.flag("lastSeen")

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
	if err != nil && seen {
		return a.lastSeen(ctx, c, err, browse.LastSeenRequest{Repo: req.Repo, Ref: req.Ref, Paths: req.Paths})
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

// treeOf converts a tree, with or without details. read reports whether the node with the mirror
// has read sizes and targets.
func treeOf(t browse.TreeNode, details, read bool) treeJSON {
	out := treeJSON{Type: t.Type, Path: t.Path, Name: t.Name, Children: make([]treeJSON, len(t.Children))}
	for i, child := range t.Children {
		out.Children[i] = treeOf(child, details, read)
	}
	if !details {
		return out
	}

	out.Mode = fmt.Sprintf("%06o", t.Mode)
	switch {
	case t.Type == "commit":
		out.Commit = t.OID
	case t.Type == "blob" && read:
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

	// Either parameter requests a page; without both the answer has all files.
	_, page := c.arg("page")
	_, per := c.arg("perPage")
	if page || per {
		req.Page, req.PerPage = p.integer("page", 1, 1, 1<<30), p.integer("perPage", 50, 1, 100)
	}
	if (page || per) && req.Stat {
		p.wrong("page", "is of hunks, and stat tells of all files at once: leave out one of the two, with perPage")
	}

	// For browse, 0 means the default and -1 means no context lines.
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

	// Older clients expect an answer without these members.
	if details {
		out.BaseCommit, out.HeadCommit = r.BaseCommit, r.HeadCommit
		for i := range r.Files {
			out.Files[i].changeJSON = changeOf(&r.Files[i])
		}
	}
	if req.PerPage > 0 {
		c.page(a.base(), paged{req.Page, req.PerPage, len(r.Files), r.Total, r.AtLeast})
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

	// Git writes zeros for the mode of a missing side.
	if f.OldPath == "" {
		out.OldMode = ""
	}
	if f.NewPath == "" {
		out.NewMode = ""
	}
	return out
}

func diffOf(f *browse.DiffFile) diffFileJSON {
	// A missing side is null, not "": the file was added or removed.
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

	// List each commit once: a file has few commits and many ranges.
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
