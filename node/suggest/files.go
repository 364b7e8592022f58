package suggest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/lru"
)

// Limits of a search for a path.
const (
	MaxPaths  = 200
	mostFiles = 200_000 // files of a repository that are searched
	maxLists  = 8
)

// FilesRequest asks for paths that contain the letters of Query in order.
type FilesRequest struct {
	Repo, Ref string // Ref "" is HEAD
	Query     string // "" lists the first paths
	Limit     int    // paths, at most MaxPaths; 0 means 50
}

// FilesResponse has the paths, the best first.
type FilesResponse struct {
	Commit string `json:"commit"`
	Paths  []Path `json:"paths"`
	Total  int    `json:"totalCount"`  // paths that match
	Cut    bool   `json:"isTruncated"` // the repository has more files than were searched
}

// Path is a path that matches. At has the offsets of the matching bytes.
type Path struct {
	Path string `json:"path"`
	At   []int  `json:"at"`
}

// Files finds paths of a repository by some of their letters.
func (s *Suggester) Files(ctx context.Context, v catalog.Viewer, req FilesRequest) (*FilesResponse, error) {
	switch {
	case req.Limit < 0 || req.Limit > MaxPaths:
		return nil, call.Fail(call.ErrInvalid, "limit must be from 0 to %d", MaxPaths)
	case len(req.Query) > 256:
		return nil, call.Fail(call.ErrInvalid, "query must have at most 256 bytes")
	}

	l, commit, err := s.pathsAtRevision(ctx, v, req.Repo, req.Ref)
	if err != nil {
		return nil, err
	}

	out := &FilesResponse{Commit: commit, Cut: l.cut, Paths: []Path{}}
	type scored struct {
		path  string
		score int
	}

	var found []scored
	letters := lettersOf(req.Query)
	for _, p := range l.paths {
		if score, ok := fuzzy(p, letters, nil); ok {
			found = append(found, scored{p, score})
		}
	}

	// If scores are equal, the shorter path comes first.
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(b.score-a.score, len(a.path)-len(b.path), strings.Compare(a.path, b.path))
	})
	out.Total = len(found)
	for _, f := range found[:min(len(found), cmp.Or(req.Limit, 50))] {
		p := Path{Path: f.path, At: []int{}}
		fuzzy(f.path, letters, &p.At) // offsets are only needed for these
		out.Paths = append(out.Paths, p)
	}

	return out, nil
}

// lettersOf returns a query in the form that fuzzy compares: no spaces, ASCII letters in lower
// case.
func lettersOf(query string) string {
	// Hardly any path has a space.
	letters := []byte(strings.ReplaceAll(query, " ", ""))

	// Only ASCII letters, as fuzzy does with paths. Otherwise other capital letters would match
	// no path.
	for i, c := range letters {
		if c >= 'A' && c <= 'Z' {
			letters[i] = c + 'a' - 'A'
		}
	}
	return string(letters)
}

// fuzzy reports whether a path has some letters in order, and how well. Letters count more in the
// name, at the beginning of a word, and in a row. It goes from the end, so it tries the name
// first. It appends the offsets to at unless that is nil.
func fuzzy(path, letters string, at *[]int) (score int, ok bool) {
	name := strings.LastIndexByte(path, '/') + 1
	i, last := len(letters)-1, -1
	for p := len(path) - 1; p >= 0 && i >= 0; p-- {
		c := path[p]
		// Other letters than ASCII are compared byte by byte.
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}

		if c != letters[i] {
			continue
		}
		// Users mostly type parts of the name.
		if score++; p >= name {
			score += 4
		}

		// Letters in a row are rarely a coincidence.
		if last == p+1 {
			score += 6
		}
		// The first letter of a part, also in camel case.
		if p == 0 || strings.IndexByte("/_-. ", path[p-1]) >= 0 || path[p] < 'a' && path[p-1] >= 'a' {
			score += 5
		}

		if at != nil {
			*at = append(*at, p)
		}
		last, i = p, i-1
	}

	if at != nil {
		slices.Reverse(*at) // they were found from the end
	}
	return score, i < 0
}

// list has the paths of a commit.
type list struct {
	paths []string
	cut   bool
}

// pathsAtRevision returns the paths of a revision, and its commit.
func (s *Suggester) pathsAtRevision(ctx context.Context, v catalog.Viewer, repo, ref string) (l list, commit string, err error) {
	// This checks that the viewer may see the commit, so the cached list may be shown.
	c, err := s.d.Browse.Commit(ctx, v, browse.CommitRequest{Repo: repo, Ref: ref})
	if err != nil {
		return list{}, "", err
	}
	l, err = s.files.getOrRead(repo+"\x00"+c.Hash, func() (list, error) { return s.readPaths(ctx, v, repo, c.Hash) })
	return l, c.Hash, err
}

// readPaths reads the paths of a commit.
func (s *Suggester) readPaths(ctx context.Context, v catalog.Viewer, repo, commit string) (list, error) {
	// Max limits entries, not depth, so one call reads the whole tree.
	r, err := s.d.Browse.Tree(ctx, v, browse.TreeRequest{Repo: repo, Ref: commit, Paths: []string{""}, Recursive: true, Max: mostFiles})
	if err != nil {
		return list{}, err
	}

	paths := list{cut: r.Cut}
	var walk func(node *browse.TreeNode)
	walk = func(node *browse.TreeNode) {
		// Directories are not listed, and submodules have no files here.
		if node.Type == "blob" {
			paths.paths = append(paths.paths, node.Path)
		}
		for i := range node.Children {
			walk(&node.Children[i])
		}
	}

	walk(&r.Root)
	return paths, nil
}

// lists caches lists by repository and commit, because each typed letter asks for the same list.
// The files of a commit never change.
type lists struct{ cache *lru.Cache[string, list] }

func newLists() lists { return lists{lru.New[string, list](maxLists)} }

// getOrRead returns the list of a key. On a miss it calls read; errors are not cached.
func (l *lists) getOrRead(key string, read func() (list, error)) (list, error) {
	if cached, ok := l.cache.Get(key); ok {
		return cached, nil
	}
	got, err := read()
	if err == nil {
		l.cache.Put(key, got, 1)
	}
	return got, err
}
