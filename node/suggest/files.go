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

// The bounds of a search for a path.
const (
	MaxPaths  = 200
	mostFiles = 200_000 // of a repository that are looked at
	keptLists = 8
)

// FilesRequest asks for paths of a repository that have the letters of Query in
// them, in their order.
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
	Cut    bool   `json:"isTruncated"` // the repository has more files than are looked at
}

// Path is a path that matches, with the bytes of it that did.
type Path struct {
	Path string `json:"path"`
	At   []int  `json:"at"`
}

// Files finds paths of a repository by a few of their letters.
func (s *Suggester) Files(ctx context.Context, v catalog.Viewer, req FilesRequest) (*FilesResponse, error) {
	switch {
	case req.Limit < 0 || req.Limit > MaxPaths:
		return nil, call.Fail(call.ErrInvalid, "limit must be from 0 to %d", MaxPaths)
	case len(req.Query) > 256:
		return nil, call.Fail(call.ErrInvalid, "query must have at most 256 bytes")
	}

	l, commit, err := s.listOf(ctx, v, req.Repo, req.Ref)
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

	// Of equal ones the shorter path: its letters are a greater part of it.
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(b.score-a.score, len(a.path)-len(b.path), strings.Compare(a.path, b.path))
	})
	out.Total = len(found)
	for _, f := range found[:min(len(found), cmp.Or(req.Limit, 50))] {
		p := Path{Path: f.path, At: []int{}}
		fuzzy(f.path, letters, &p.At) // places only of those that are shown
		out.Paths = append(out.Paths, p)
	}

	return out, nil
}

// lettersOf is what is looked for in paths, in the one form in which fuzzy compares it.
func lettersOf(query string) string {
	// Spaces are for the eye of who types: hardly any path has one.
	letters := []byte(strings.ReplaceAll(query, " ", ""))

	// As fuzzy does with those of a path: a capital letter beyond ASCII would else be
	// found in no path, not even in the one that it was copied from.
	for i, c := range letters {
		if c >= 'A' && c <= 'Z' {
			letters[i] = c + 'a' - 'A'
		}
	}
	return string(letters)
}

// fuzzy reports whether a path has letters in it in their order, and how well:
// better in the name than in the directories, at the beginning of a part and
// next to one another. It goes from the end, so the name is tried first. at, if
// it is wanted, gets the places.
func fuzzy(path, letters string, at *[]int) (score int, ok bool) {
	name := strings.LastIndexByte(path, '/') + 1
	i, last := len(letters)-1, -1
	for p := len(path) - 1; p >= 0 && i >= 0; p-- {
		c := path[p]
		// Other letters than those of ASCII are compared as they stand: a byte is no letter there.
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}

		if c != letters[i] {
			continue
		}
		// Who looks for a file mostly types of its name.
		if score++; p >= name {
			score += 4
		}

		// Letters in a row are what somebody remembers, not what happens to be there.
		if last == p+1 {
			score += 6
		}
		// The first letter of a part, also of a word in camel case.
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

// list is the paths of a commit.
type list struct {
	paths []string
	cut   bool
}

// listOf is the paths of a revision, and its commit.
func (s *Suggester) listOf(ctx context.Context, v catalog.Viewer, repo, ref string) (l list, commit string, err error) {
	// Which commit is meant is asked for this viewer: what is kept may then be shown.
	c, err := s.d.Browse.Commit(ctx, v, browse.CommitRequest{Repo: repo, Ref: ref})
	if err != nil {
		return list{}, "", err
	}
	l, err = s.files.get(repo+"\x00"+c.Hash, func() (list, error) { return s.list(ctx, v, repo, c.Hash) })
	return l, c.Hash, err
}

// list reads the paths of a commit.
func (s *Suggester) list(ctx context.Context, v catalog.Viewer, repo, commit string) (list, error) {
	// One question for the whole tree: the bound is on its entries, not on its depth.
	r, err := s.d.Browse.Tree(ctx, v, browse.TreeRequest{Repo: repo, Ref: commit, Paths: []string{""}, Recursive: true, Max: mostFiles})
	if err != nil {
		return list{}, err
	}

	l := list{cut: r.Cut}
	var walk func(n *browse.TreeNode)
	walk = func(n *browse.TreeNode) {
		// Directories are passed through, and submodules have no files here.
		if n.Type == "blob" {
			l.paths = append(l.paths, n.Path)
		}
		for i := range n.Children {
			walk(&n.Children[i])
		}
	}

	walk(&r.Root)
	return l, nil
}

// lists keeps the lists that were asked for last, by repository and commit: somebody who
// types asks for the same one with each letter. The files of a commit never change.
type lists struct{ kept *lru.Cache[string, list] }

func newLists() lists { return lists{lru.New[string, list](keptLists)} }

// get is the list of a key, read where it is not kept. One that cannot be read is not
// kept, so the next letter tries again.
func (l *lists) get(key string, read func() (list, error)) (list, error) {
	if had, ok := l.kept.Get(key); ok {
		return had, nil
	}
	got, err := read()
	if err == nil {
		l.kept.Put(key, got, 1)
	}
	return got, err
}
