package suggest

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// The bounds of the paths that are near one.
const (
	mostNear    = 5
	longestNear = 64 // bytes of a name that is compared letter by letter
)

// NearPaths returns paths of a repository that may be meant by one that it does not
// have, the likeliest first: files, or directories. Of the same name those come first
// that share the most directories; then names with few wrong letters.
func (s *Suggester) NearPaths(ctx context.Context, v catalog.Viewer, repo, ref, missing string, directories bool) ([]string, error) {
	l, _, err := s.listOf(ctx, v, repo, ref)
	if err != nil {
		return nil, err
	}
	all := l.paths
	if directories {
		all = directoriesOf(all)
	}
	return nearPaths(all, missing), nil
}

// nearPaths ranks paths by how near they are to one.
func nearPaths(paths []string, missing string) []string {
	type near struct {
		path           string
		letters, parts int
	}
	name := strings.ToLower(path.Base(missing))
	most := max(1, len(name)/4)
	var found []near
	for _, p := range paths {
		if d := distance(name, strings.ToLower(path.Base(p)), most); d <= most {
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

// directoriesOf returns every directory above some paths once.
func directoriesOf(paths []string) []string {
	had := map[string]bool{}
	var out []string
	for _, p := range paths {
		for dir := path.Dir(p); dir != "." && !had[dir]; dir = path.Dir(dir) {
			had[dir], out = true, append(out, dir)
		}
	}
	return out
}

// commonParts is how many directories two paths share.
func commonParts(a, b string) int {
	parts, n := strings.Split(path.Dir(b), "/"), 0
	for part := range strings.SplitSeq(path.Dir(a), "/") {
		if slices.Contains(parts, part) {
			n++
		}
	}
	return n
}

// distance is how many letters have to be added, removed, changed or swapped with
// their neighbour to make one name of another; more than most where it is more.
func distance(a, b string, most int) int {
	if a == b {
		return 0
	}
	if len(a)-len(b) > most || len(b)-len(a) > most || len(a) > longestNear || len(b) > longestNear {
		return most + 1
	}

	// Rows of the table of all beginnings: the one before the last, the last, and this one.
	var table [3][longestNear + 1]int
	for k := range len(b) + 1 {
		table[0][k] = k
	}
	for i := 1; i <= len(a); i++ {
		older, last, row := &table[(i+1)%3], &table[(i+2)%3], &table[i%3]
		row[0] = i
		for k := 1; k <= len(b); k++ {
			change := last[k-1]
			if a[i-1] != b[k-1] {
				change++
			}
			row[k] = min(change, last[k]+1, row[k-1]+1)
			if i > 1 && k > 1 && a[i-1] == b[k-2] && a[i-2] == b[k-1] {
				row[k] = min(row[k], older[k-2]+1)
			}
		}
	}
	return table[len(a)%3][len(b)]
}
