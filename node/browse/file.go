package browse

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/lex"
)

// maxSource bounds the content in one answer, in bytes.
const maxSource = 32 << 20

// Source returns the content of a file, or some of its lines.
func (b *Browser) Source(ctx context.Context, v catalog.Viewer, req SourceRequest) (*SourceResponse, error) {
	if req.FirstLine < 0 || req.Lines < 0 {
		return nil, call.Fail(call.ErrInvalid, "lines are counted from 1")
	}
	out, err := route(ctx, b, v, req.Repo, sourceOperation, req)
	if err != nil {
		return nil, err
	}

	// This node makes the links, with its own base URL, whichever node read the file.
	out.WebURL = WebURL(b.d.BaseURL(), out.Repo, req.Ref, "blob", out.Path)
	if repo := b.visibleRepo(v, out.Repo); repo != nil {
		out.HostKind, out.DisplayName, out.RepoWebURL = repo.HostKind, repo.DisplayName, repo.WebURL
		out.ExternalWebURL = externalLines(repo, req.Ref, out.Path, req.FirstLine, req.Lines)
	}
	return out, nil
}

var sourceOperation = operation[SourceRequest, SourceResponse]{name: "source", run: answerSource, heavy: true}

// answerSource reads a file, or lines of it. It refuses a file that is too large instead of
// cutting it.
func answerSource(ctx context.Context, s *site, req SourceRequest) (*SourceResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	// Count the lines if only a part is wanted; counting reads the file to its end.
	part := req.Lines > 0 || req.FirstLine > 1
	var before []byte
	src, err := s.mirror.Source(ctx, commit, s.pathOf(ctx, commit, req.Path), git.SourceOptions{
		FirstLine: req.FirstLine, Lines: req.Lines, MaxBytes: maxSource, Count: part, Raw: req.Raw,
		Skipped: func(lines []byte) {
			if len(before) < maxLexed {
				before = append(before, lines...)
			}
		},
	})
	if err != nil {
		return nil, s.explainError(ctx, err, commit, req.Path)
	}

	if src.Cut {
		return nil, call.Fail(call.ErrTooLarge, "%s has %d bytes, more than the %d of one answer: ask for a range of lines", paths.Quoted(src.Path), src.Size, maxSource)
	}

	// The beginning of a file decides its language.
	language, open := shard.Language(src.Path, src.Content), lex.State(0)
	if len(before) > 0 {
		language = shard.Language(src.Path, before)
	}
	if len(before) < maxLexed {
		open = lex.For(language).After(before, 0)
	}

	return &SourceResponse{
		Content:  src.Content,
		Open:     open,
		Encoding: src.Encoding.String(),
		Language: language,

		Path:   src.Path,
		Repo:   s.repo.Name,
		OID:    src.OID,
		Commit: commit,

		Size:      src.Size,
		FirstLine: src.FirstLine,
		Total:     src.Total,
		Binary:    src.Binary,
		LFS:       src.LFS,
		Link:      src.Kind == git.Symlink,
	}, nil
}

// maxLexed is how many bytes before a part of a file are read to know what they leave open.
const maxLexed = 8 << 20

// Limits of one tree.
const (
	defaultTree = 100_000
	maxTree     = 1_000_000
	maxPaths    = 1000
)

// Tree returns the given paths, the entries of those that are directories, and the directories
// that connect them.
func (b *Browser) Tree(ctx context.Context, v catalog.Viewer, req TreeRequest) (*TreeResponse, error) {
	if req.Max == 0 {
		req.Max = defaultTree
	}

	// Refuse before reading if no answer could satisfy the request.
	switch {
	case req.Max < 1 || req.Max > maxTree:
		return nil, call.Fail(call.ErrInvalid, "the number of entries must be from 1 to %d", maxTree)
	case len(req.Paths) > maxPaths:
		return nil, call.Fail(call.ErrInvalid, "at most %d paths can be asked for at once", maxPaths)
	}

	if len(req.Paths) == 0 {
		req.Paths = []string{""}
	}
	return route(ctx, b, v, req.Repo, treeOperation, req)
}

var treeOperation = operation[TreeRequest, TreeResponse]{name: "tree", run: answerTree}

// answerTree joins the entries at all paths into one tree. Beyond Max entries it is cut.
func answerTree(ctx context.Context, s *site, req TreeRequest) (*TreeResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	t := newTree()
	for _, path := range req.Paths {
		path = s.pathOf(ctx, commit, path)
		at, err := s.mirror.Stat(ctx, commit, path)
		if err != nil {
			return nil, s.explainError(ctx, err, commit, path)
		}

		if at.Kind != git.Dir {
			if at, err = s.withSize(ctx, at, req.Details); err != nil {
				return nil, err
			}
			t.add(at)
			continue
		}

		// List a directory's entries while there is room.
		t.add(at)
		if t.count >= req.Max {
			t.cut = true
			break
		}

		o := git.ListOptions{Max: req.Max - t.count, Sizes: req.Details}
		if req.Recursive {
			o.Depth = -1
		}

		entries, cut, err := s.mirror.List(ctx, commit, at.Path, o)
		if err != nil {
			return nil, err
		}

		t.cut = t.cut || cut
		for _, e := range entries {
			t.add(e)
		}
	}

	if req.Details {
		if err := t.readTargets(ctx, s.mirror); err != nil {
			return nil, err
		}
	}
	return &TreeResponse{Root: t.finish(t.nodes[""]), Commit: commit, Cut: t.cut, Detailed: req.Details}, nil
}

// withSize looks up the size of an entry, if it is wanted and the entry is a file.
func (s *site) withSize(ctx context.Context, e git.Entry, wanted bool) (git.Entry, error) {
	if !wanted || !e.Kind.IsBlob() {
		return e, nil
	}
	sized, err := s.mirror.Sized(ctx, []git.Entry{e})
	if err != nil {
		return e, err
	}
	return sized[0], nil
}

// Limits of reading symlinks, since a tree may consist of nothing else.
const (
	maxLinks   = 10_000
	maxTarget  = 4096    // bytes of one target
	maxTargets = 4 << 20 // bytes of all targets
)

// readTargets fills in the targets of the tree's symlinks.
func (t *treeBuilder) readTargets(ctx context.Context, m *git.Mirror) error {
	return scanTargets(ctx, m, t.links, func(path, target string) { t.nodes[path].Target = target })
}

// scanTargets calls found with the target of each symlink.
func scanTargets(ctx context.Context, m *git.Mirror, links []git.Entry, found func(path, target string)) error {
	if links == nil {
		return nil
	}
	bytesLeft := maxTargets
	return m.Scan(ctx, links[:min(len(links), maxLinks)], maxTarget, func(e git.Entry, target []byte) bool {
		// Stop at the limit; the remaining symlinks have no target.
		if bytesLeft -= len(target); bytesLeft < 0 {
			return false
		}
		found(e.Path, string(target))
		return true
	})
}

// treeBuilder builds a tree from entries in any order; an entry may come twice.
type treeBuilder struct {
	nodes map[string]*treeItem // by path
	links []git.Entry          // symlinks in the tree
	count int
	cut   bool
}

type treeItem struct {
	TreeNode
	below []*treeItem
}

func newTree() *treeBuilder {
	root := &treeItem{TreeNode: TreeNode{Type: "tree", Mode: git.Dir.Mode()}}
	return &treeBuilder{nodes: map[string]*treeItem{"": root}}
}

// add puts an entry into the tree, with the directories above it.
func (t *treeBuilder) add(e git.Entry) {
	g := t.directoryAt(e.Path)
	known := g.OID != ""
	g.OID, g.Mode, g.Size, g.Type = e.OID, e.Kind.Mode(), max(e.Size, 0), typeOf(e.Kind)
	if e.Kind == git.Symlink && !known {
		t.links = append(t.links, e)
	}
}

// typeOf returns the JSON word for a kind of entry.
func typeOf(k git.Kind) string {
	switch k {
	case git.Dir:
		return "tree"
	case git.Submodule:
		return "commit"
	}
	return "blob"
}

// directoryAt returns the directory at path. It creates it, and those above it, if they are missing.
func (t *treeBuilder) directoryAt(path string) *treeItem {
	if g := t.nodes[path]; g != nil {
		return g
	}

	// Create the directories above it too, up to the root.
	parent, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	up := t.directoryAt(parent)
	g := &treeItem{TreeNode: TreeNode{Type: "tree", Path: path, Name: name, Mode: git.Dir.Mode()}}
	up.below = append(up.below, g)
	t.nodes[path] = g
	t.count++
	return g
}

// finish returns the finished tree: directories first, then by name.
func (t *treeBuilder) finish(g *treeItem) TreeNode {
	// Sort at the end, because entries come in any order.
	slices.SortFunc(g.below, func(a, b *treeItem) int {
		if (a.Type == "tree") != (b.Type == "tree") {
			if a.Type == "tree" {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})

	out := g.TreeNode
	out.Children = make([]TreeNode, len(g.below))
	for i, child := range g.below {
		out.Children[i] = t.finish(child)
	}
	return out
}
