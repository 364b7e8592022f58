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

// ReadFileResponse is a run of lines.
type ReadFileResponse struct {
	Repo, Path     string
	WebURL         string
	ExternalWebURL string
	Language       string
	Commit         string
	First          int      // number of the first line
	Lines          [][]byte // without their ends
	Total          int      // lines of the file
	Binary         bool     // then Lines is empty
	Size           int      // bytes of the file in git
	Encoding       string   // of the file in git, as "utf-16le"; "" for UTF-8 and where no mark tells
	Link           bool     // a symbolic link: what it leads to is its one line
	LFS            bool     // a pointer of Git LFS, not the file
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

// TreeEntry is one entry. Depth is 1 for the children of the asked directory.
type TreeEntry struct {
	Path  string // from the root of the repository
	Name  string
	Dir   bool
	Type  string // tree, blob, commit
	Depth int
	Size  int64 // bytes of a file, with Sizes
	// Target is what a symbolic link leads to, as it is written in it; of a submodule
	// it is the commit of the other repository. "" for all else, and where it is too long.
	Target string
	Link   bool // a symbolic link
}

// The bounds of what is listed of a repository.
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

	// A tool that asks for more lines than an answer has is told, and asks for the next ones.
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

// linkFile joins the links, which only the asked node knows.
func (b *Browser) linkFile(v catalog.Viewer, out *ReadFileResponse, ref string) {
	out.WebURL = WebURL(b.d.BaseURL(), out.Repo, ref, "blob", out.Path)
	if repo := b.repo(v, out.Repo); repo != nil {
		out.ExternalWebURL = ExternalURL(repo, ref, out.Path)
	}
}

var readFileOperation = operation[ReadFileRequest, ReadFileResponse]{name: "read_file", run: answerReadFile}

// answerReadFile reads lines of a file, without their ends, and counts all of them.
func answerReadFile(ctx context.Context, s *site, req ReadFileRequest) (*ReadFileResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	// Lines that somebody wrote fit in four megabytes; what is beyond is cut.
	src, err := s.mirror.Source(ctx, commit, s.pathOf(ctx, commit, req.Path), git.SourceOptions{FirstLine: req.Offset, Lines: req.Limit, MaxBytes: 4 << 20, Count: true})
	if err != nil {
		return nil, s.explain(ctx, err, commit, req.Path)
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

	// Line ends are left out, of Windows too: a tool shows lines with numbers of its own.
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

	// Both bounds are needed: a flat directory has no depth, a deep one few entries a level.
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
		return nil, s.explain(ctx, err, commit, dir)
	}

	// The listing goes by levels, so a cut keeps the upper ones.
	out := &ListTreeResponse{
		Repo:    s.repo.Name,
		Path:    dir,
		Commit:  commit,
		Entries: depthFirst(entries, dir, !req.NoDirectories),
		Cut:     cut,
	}
	return out, s.readLinks(ctx, entries, out)
}

// readLinks fills in what the symbolic links of a listing lead to.
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

// depthFirst orders a listing of a directory by levels as a tree is read, with
// the directories in it or without.
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
