package node

import (
	"bytes"
	"context"
	"strings"

	"github.com/shoalsearch/shoal/shard/git"
)

// ReadFile returns lines of a file.
func (n *Node) ReadFile(ctx context.Context, v Viewer, req ReadFileRequest) (*ReadFileResponse, error) {
	if req.Offset == 0 {
		req.Offset = 1
	}
	if req.Limit == 0 {
		req.Limit = maxLines
	}
	switch {
	case req.Offset < 1:
		return nil, fail(ErrInvalid, "offset must be at least 1")
	case req.Limit < 1 || req.Limit > maxLines:
		return nil, fail(ErrInvalid, "limit must be from 1 to %d", maxLines)
	}
	out, err := route(ctx, n, v, req.Repo, readFileOperation(), req)
	if err != nil {
		return nil, err
	}
	n.linkFile(out, req.Ref)
	return out, nil
}

// linkFile joins the links, which only the asked node knows.
func (n *Node) linkFile(out *ReadFileResponse, ref string) {
	out.WebURL = webURL(n.opt.BaseURL, out.Repo, ref, "blob", out.Path)
	if repo := n.cluster.View().RepoByName(out.Repo); repo != nil {
		out.ExternalWebURL = externalURL(repo, ref, out.Path)
	}
}

func readFileOperation() operation[ReadFileRequest, ReadFileResponse] {
	return operation[ReadFileRequest, ReadFileResponse]{name: "read_file", run: func(ctx context.Context, s *site, req ReadFileRequest) (*ReadFileResponse, error) {
		commit, err := s.resolve(ctx, req.Ref)
		if err != nil {
			return nil, err
		}
		src, err := s.mirror.Source(ctx, commit, req.Path, git.SourceOptions{FirstLine: req.Offset, Lines: req.Limit, MaxBytes: 4 << 20, Count: true})
		if err != nil {
			return nil, s.explain(ctx, err, commit, req.Path)
		}
		out := &ReadFileResponse{
			Repo: s.repo.Name, Path: src.Path, Commit: commit, First: src.FirstLine, Total: src.Total,
			Binary: src.Binary, Size: int(src.Size), Language: languageOf(src.Path, src.Content),
		}
		if !src.Binary && len(src.Content) > 0 {
			for line := range bytes.Lines(src.Content) {
				out.Lines = append(out.Lines, bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")))
			}
		}
		return out, nil
	}}
}

// ListTree lists a directory.
func (n *Node) ListTree(ctx context.Context, v Viewer, req ListTreeRequest) (*ListTreeResponse, error) {
	if req.Depth == 0 {
		req.Depth = 1
	}
	if req.MaxEntries == 0 {
		req.MaxEntries = 1000
	}
	switch {
	case req.Depth < 1 || req.Depth > 10:
		return nil, fail(ErrInvalid, "depth must be from 1 to 10")
	case req.MaxEntries < 1 || req.MaxEntries > maxFiles:
		return nil, fail(ErrInvalid, "maxEntries must be from 1 to %d", maxFiles)
	}
	return route(ctx, n, v, req.Repo, listTreeOperation(), req)
}

func listTreeOperation() operation[ListTreeRequest, ListTreeResponse] {
	return operation[ListTreeRequest, ListTreeResponse]{name: "list_tree", run: func(ctx context.Context, s *site, req ListTreeRequest) (*ListTreeResponse, error) {
		commit, err := s.resolve(ctx, req.Ref)
		if err != nil {
			return nil, err
		}
		dir := strings.Trim(strings.TrimPrefix(req.Path, "./"), "/")
		if dir == "." {
			dir = ""
		}
		entries, cut, err := s.mirror.List(ctx, commit, dir, git.ListOptions{Depth: req.Depth, Max: req.MaxEntries, NoFiles: req.NoFiles, NoDirs: req.NoDirectories})
		if err != nil {
			return nil, s.explain(ctx, err, commit, dir)
		}
		out := &ListTreeResponse{Repo: s.repo.Name, Path: dir, Commit: commit}
		// The listing goes by levels, so a cut keeps the upper ones.
		kept := map[string]bool{}
		for _, e := range entries {
			kept[e.Path] = e.Kind != git.Dir || !req.NoDirectories
		}
		out.Cut = cut
		out.Entries = depthFirst(entries, kept, dir)
		return out, nil
	}}
}

// depthFirst orders a listing by levels as a tree is read.
func depthFirst(entries []git.Entry, kept map[string]bool, dir string) []TreeEntry {
	children := map[string][]git.Entry{}
	for _, e := range entries {
		parent := ""
		if i := strings.LastIndexByte(e.Path, '/'); i >= 0 {
			parent = e.Path[:i]
		}
		children[parent] = append(children[parent], e)
	}
	var out []TreeEntry
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, e := range children[parent] {
			if kept[e.Path] {
				t := TreeEntry{Path: e.Path, Name: e.Path[strings.LastIndexByte(e.Path, '/')+1:], Depth: depth, Type: "blob"}
				switch e.Kind {
				case git.Dir:
					t.Dir, t.Type = true, "tree"
				case git.Submodule:
					t.Type = "commit"
				}
				out = append(out, t)
			}
			if e.Kind == git.Dir {
				walk(e.Path, depth+1)
			}
		}
	}
	walk(dir, 1)
	return out
}

// ListCommits lists commits; it is Commits under the tool's name.
func (n *Node) ListCommits(ctx context.Context, v Viewer, req CommitsRequest) (*CommitsResponse, error) {
	return n.Commits(ctx, v, req)
}

// ListBranches lists branches; it is Branches under the tool's name.
func (n *Node) ListBranches(ctx context.Context, v Viewer, req RefsRequest) (*RefsResponse, error) {
	return n.Branches(ctx, v, req)
}

// GetDiff compares; it is Diff under the tool's name.
func (n *Node) GetDiff(ctx context.Context, v Viewer, req DiffRequest) (*DiffResponse, error) {
	return n.Diff(ctx, v, req)
}

// ListRepos lists repositories; it is Repos under the tool's name.
func (n *Node) ListRepos(ctx context.Context, v Viewer, req ReposRequest) (*ReposResponse, error) {
	return n.Repos(ctx, v, req)
}

// registerOperations makes every routed read known to the other nodes.
func registerOperations(s *sites) {
	serve(s, scanOperation())
	serve(s, readFileOperation())
	serve(s, listTreeOperation())
	registerBrowse(s)
}

// Model is a configured language model.
type Model struct{ Provider, Model, DisplayName string }
