package browse

import (
	"bytes"
	"context"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
)

// ReadFileRequest asks for lines of a file.
type ReadFileRequest struct {
	Repo, Path, Ref string
	Offset          int // first line, from 1; 0 means 1
	Limit           int // lines, 1..500; 0 means 500
}

// ReadFileResponse is a range of lines.
type ReadFileResponse struct {
	Repo, Path     string
	WebURL         string
	ExternalWebURL string
	Language       string
	Commit         string
	First          int      // number of the first line
	Lines          [][]byte // without line ends
	Total          int      // lines of the file
	Binary         bool     // then Lines is empty
	Size           int      // bytes of the file in git
	Encoding       string   // of the file in git, such as "utf-16le"; "" for UTF-8 or unknown
	Link           bool     // a symbolic link: its target is the only line
	LFS            bool     // a Git LFS pointer, not the file itself
}

// ListTreeRequest asks for the entries below a directory.
type ListTreeRequest struct {
	Repo, Path, Ref string
	Depth           int // 1..10; 0 means 1
	NoFiles         bool
	NoDirectories   bool
	MaxEntries      int // 1..10,000; 0 means 1000
	Sizes           bool
}

// ListTreeResponse lists entries in depth-first order, directories before
// files at each level.
type ListTreeResponse struct {
	Repo, Path string
	Commit     string
	Entries    []TreeEntry
	Cut        bool
}

// TreeEntry is one entry. Depth is 1 for the children of the requested directory.
type TreeEntry struct {
	Path  string // from the root of the repository
	Name  string
	Dir   bool
	Type  string // tree, blob, commit
	Depth int
	Size  int64 // bytes of a file, with Sizes
	// Target is the target of a symbolic link as written, or the commit of a submodule. "" for
	// others, or if the target is too long.
	Target string
	Link   bool // a symbolic link
}

// Limits of one answer.
const (
	maxLines   = 500
	MaxEntries = 10_000 // of a tree
)

// ReadFile returns lines of a file.
func (b *Browser) ReadFile(ctx context.Context, v catalog.Viewer, req ReadFileRequest) (*ReadFileResponse, error) {
	if req.Offset == 0 {
		req.Offset = 1
	}
	if req.Limit == 0 {
		req.Limit = maxLines
	}

	// Refuse instead of returning fewer lines: the caller then asks for the next range.
	switch {
	case req.Offset < 1:
		return nil, call.Fail(call.ErrInvalid, "offset must be at least 1")
	case req.Limit < 1 || req.Limit > maxLines:
		return nil, call.Fail(call.ErrInvalid, "limit must be from 1 to %d", maxLines)
	}

	out, err := route(ctx, b, v, req.Repo, readFileOperation, req)
	if err != nil {
		return nil, err
	}
	b.linkFile(v, out, req.Ref)
	return out, nil
}

// linkFile fills in the links. Only the node that the client asked knows its base URL.
func (b *Browser) linkFile(v catalog.Viewer, out *ReadFileResponse, ref string) {
	out.WebURL = WebURL(b.d.BaseURL(), out.Repo, ref, "blob", out.Path)
	if repo := b.visibleRepo(v, out.Repo); repo != nil {
		out.ExternalWebURL = ExternalURL(repo, ref, out.Path)
	}
}

var readFileOperation = operation[ReadFileRequest, ReadFileResponse]{name: "read_file", run: answerReadFile}

// answerReadFile returns lines of a file without their ends, and the number of all lines.
func answerReadFile(ctx context.Context, s *site, req ReadFileRequest) (*ReadFileResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	// 500 lines of source fit in four megabytes. More is generated text, and cut.
	src, err := s.mirror.Source(ctx, commit, s.pathOf(ctx, commit, req.Path), git.SourceOptions{FirstLine: req.Offset, Lines: req.Limit, MaxBytes: 4 << 20, Count: true})
	if err != nil {
		return nil, s.explainError(ctx, err, commit, req.Path)
	}

	out := &ReadFileResponse{
		Repo:     s.repo.Name,
		Path:     src.Path,
		Commit:   commit,
		First:    src.FirstLine,
		Total:    src.Total,
		Binary:   src.Binary,
		Size:     int(src.Size),
		Encoding: src.Encoding.String(),
		Link:     src.Kind == git.Symlink,
		LFS:      src.LFS,
		Language: shard.Language(src.Path, src.Content),
	}

	// Strip line ends, including "\r\n".
	if !src.Binary && len(src.Content) > 0 {
		for line := range bytes.Lines(src.Content) {
			out.Lines = append(out.Lines, bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")))
		}
	}
	return out, nil
}

// ListTree lists a directory.
func (b *Browser) ListTree(ctx context.Context, v catalog.Viewer, req ListTreeRequest) (*ListTreeResponse, error) {
	if req.Depth == 0 {
		req.Depth = 1
	}
	if req.MaxEntries == 0 {
		req.MaxEntries = 1000
	}

	// Both limits are needed: a flat directory is one level, and a deep one has few entries on
	// each.
	switch {
	case req.Depth < 1 || req.Depth > 10:
		return nil, call.Fail(call.ErrInvalid, "depth must be from 1 to 10")
	case req.MaxEntries < 1 || req.MaxEntries > MaxEntries:
		return nil, call.Fail(call.ErrInvalid, "maxEntries must be from 1 to %d", MaxEntries)
	}
	return route(ctx, b, v, req.Repo, listTreeOperation, req)
}

var listTreeOperation = operation[ListTreeRequest, ListTreeResponse]{name: "list_tree", run: answerListTree}

// answerListTree lists a directory.
func answerListTree(ctx context.Context, s *site, req ListTreeRequest) (*ListTreeResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	dir := strings.Trim(strings.TrimPrefix(req.Path, "./"), "/")
	if dir == "." {
		dir = ""
	}
	dir = s.pathOf(ctx, commit, dir)

	entries, cut, err := s.mirror.List(ctx, commit, dir, git.ListOptions{
		Depth:   req.Depth,
		Max:     req.MaxEntries,
		NoFiles: req.NoFiles,
		NoDirs:  req.NoDirectories,
		Sizes:   req.Sizes,
	})
	if err != nil {
		return nil, s.explainError(ctx, err, commit, dir)
	}

	// git lists level by level, so a cut keeps the upper levels.
	out := &ListTreeResponse{
		Repo:    s.repo.Name,
		Path:    dir,
		Commit:  commit,
		Entries: depthFirst(entries, dir, !req.NoDirectories),
		Cut:     cut,
	}
	return out, s.readLinks(ctx, entries, out)
}

// readLinks fills in the targets of symbolic links.
func (s *site) readLinks(ctx context.Context, entries []git.Entry, out *ListTreeResponse) error {
	var links []git.Entry
	for _, e := range entries {
		if e.Kind == git.Symlink {
			links = append(links, e)
		}
	}

	targets := map[string]string{}
	err := scanTargets(ctx, s.mirror, links, func(path, target string) { targets[path] = target })
	for i := range out.Entries {
		if e := &out.Entries[i]; e.Link {
			e.Target = targets[e.Path]
		}
	}
	return err
}

// depthFirst turns a listing by levels into depth-first order, with or without the directories.
func depthFirst(entries []git.Entry, dir string, dirs bool) []TreeEntry {
	// By levels they are listed, so that a cut leaves whole levels; by depth they are read.
	children := map[string][]git.Entry{}
	for _, e := range entries {
		parent := e.Path[:max(0, strings.LastIndexByte(e.Path, '/'))]
		children[parent] = append(children[parent], e)
	}

	var out []TreeEntry
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, e := range children[parent] {
			if e.Kind != git.Dir || dirs {
				out = append(out, treeEntry(e, depth))
			}
			if e.Kind == git.Dir {
				walk(e.Path, depth+1)
			}
		}
	}

	walk(dir, 1)
	return out
}

func treeEntry(e git.Entry, depth int) TreeEntry {
	t := TreeEntry{Path: e.Path, Name: e.Path[strings.LastIndexByte(e.Path, '/')+1:], Depth: depth, Type: "blob", Size: max(e.Size, 0)}
	switch e.Kind {
	case git.Dir:
		t.Dir, t.Type = true, "tree"
	case git.Submodule:
		t.Type, t.Target = "commit", e.OID
	case git.Symlink:
		t.Link = true
	}
	return t
}
