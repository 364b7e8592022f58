package suggest

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/paths"
)

// mostNear is the limit of NearPaths.
const mostNear = 5

// NearPaths returns paths that the user may have meant by a missing one, the likeliest first:
// files, or directories. Names with fewer wrong letters come first, then paths with more common
// directories.
func (s *Suggester) NearPaths(ctx context.Context, v catalog.Viewer, repo, ref, missing string, directories bool) ([]string, error) {
	l, _, err := s.pathsAtRevision(ctx, v, repo, ref)
	if err != nil {
		return nil, err
	}
	all := l.paths
	if directories {
		all = directoriesOf(all)
	}
	return nearPaths(all, missing), nil
}

// nearPaths returns the paths that are similar to a missing path, the most similar first.
func nearPaths(all []string, missing string) []string {
	type near struct {
		path           string
		letters, parts int
	}
	name := strings.ToLower(path.Base(missing))
	most := max(1, len(name)/4)
	var found []near
	for _, p := range all {
		if d := paths.Near(name, strings.ToLower(path.Base(p)), most); d <= most {
			found = append(found, near{p, d, commonParts(p, missing)})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(a.letters-b.letters, b.parts-a.parts, len(a.path)-len(b.path), strings.Compare(a.path, b.path))
	})

	var out []string
	for _, f := range found[:min(len(found), mostNear)] {
		out = append(out, f.path)
	}
	return out
}

// directoriesOf returns all directories above some paths, without duplicates.
func directoriesOf(files []string) []string {
	known := map[string]bool{}
	var out []string
	for _, p := range files {
		for dir := path.Dir(p); dir != "." && !known[dir]; dir = path.Dir(dir) {
			known[dir], out = true, append(out, dir)
		}
	}
	return out
}

// commonParts counts the directories that two paths share.
func commonParts(a, b string) int {
	parts, n := strings.Split(path.Dir(b), "/"), 0
	for part := range strings.SplitSeq(path.Dir(a), "/") {
		if slices.Contains(parts, part) {
			n++
		}
	}
	return n
}
