package tool

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

func glob(s symbols.Searcher, b browse.Reader) Tool {
	return Tool{
		Name: "glob", Title: "Find files by path",
		About: "Finds files whose path matches a glob, in one repository or all. *.proto finds names at any depth, src/**/*.ts paths from the root.",
		Params: []Param{
			{Name: "pattern", Kind: String, Required: true, About: "glob: ** crosses directories, * and ? do not, {a,b} is either; /*.go is the root alone"},
			anyRepoParam,
			{Name: "path", Kind: String, About: "directory that pattern is relative to"},
			refParam,
			{Name: "limit", Kind: Integer, Min: 1, Max: 10000, Default: 100, About: "most files"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runGlob(ctx, v, s, b, a)
		},
	}
}

// runGlob runs a call of glob.
func runGlob(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	req := search.GlobRequest{
		Pattern: a.Text("pattern"),
		Path:    a.Text("path"),
		Repo:    a.Text("repo"),
		Repos:   a.List("repo"),
		Ref:     a.Text("ref"),
		Limit:   a.Number("limit"),
	}

	r, err := s.Glob(ctx, v, req)
	if err != nil {
		return "", err
	}
	// Hints need further searches, so make them only if nothing was found.
	if len(r.Repos) > 0 {
		return globText(a, r, req.Limit), nil
	}

	// A file name may be an invalid glob, such as [a; but no file has this name.
	if !paths.IsGlob(req.Pattern) {
		return "", call.Fail(call.ErrInvalid, "%s is not a valid glob, and no file has that name", paths.Quoted(req.Pattern))
	}
	// If the directory does not exist, say so instead of giving a hint.
	if err := pathIsThere(ctx, v, b, a); err != nil {
		return "", err
	}
	// The brackets of a name such as [id] are a character class in a glob.
	if plain := plainBrackets.Replace(req.Pattern); plain != req.Pattern {
		req.Pattern = plain
		if r, err := s.Glob(ctx, v, req); err == nil && len(r.Repos) > 0 {
			return "No file matches with brackets as a class of letters. With brackets as they stand:\n" + globText(a, r, req.Limit), nil
		}
	}
	return noFile(a, r, nearFiles(ctx, v, s, a)), nil
}

var plainBrackets = strings.NewReplacer("[", `\[`, "]", `\]`)

// globText writes paths by repository.
func globText(a *Args, r *search.GlobResponse, limit int) string {
	blocks := make([]block, len(r.Repos))
	for i := range r.Repos {
		// A caller that named the repository knows it.
		if a.Text("repo") == "" {
			blocks[i].head = "[" + r.Repos[i].Repo + "]\n"
		}
		blocks[i].lines = pathLines(r.Repos[i].Paths, r.Files)
	}

	var out strings.Builder
	fmt.Fprintf(&out, "%s", count(r.Files, "file"))
	if a.Text("repo") == "" {
		fmt.Fprintf(&out, " in %s", count(len(r.Repos), "repository"))
	}

	var e end
	// Each block is a repository. Small ones are shown whole before any gets more.
	shown := writeBlocks(a, &out, blocks, &e, func(i int) string {
		return a.with("repo", r.Repos[i].Repo) + " with a narrower pattern or path"
	})
	if left := len(blocks) - shown; left > 0 {
		e.left = append(e.left, fmt.Sprintf("files of %s; narrow with repo, path or pattern", count(left, "repository")))
	}

	// Offer a higher limit only if it is allowed.
	more := ""
	if limit < 10000 {
		more = a.with("limit", min(10000, limit*4))
	}
	e.lacks(a, r.Coverage, more)
	return out.String() + e.String()
}

// mostPaths is the largest number of paths that are written one per line.
const mostPaths = 30

// pathLines writes up to mostPaths paths as they are, and more by directory.
func pathLines(paths []string, all int) []string {
	if all > mostPaths {
		return byDirectory(paths)
	}
	lines := make([]string, len(paths))
	for i, p := range paths {
		lines[i] = fileLabel(p) + "\n"
	}
	return lines
}

// noFile answers if no path matches.
func noFile(a *Args, r *search.GlobResponse, near []string) string {
	var e end
	e.lacks(a, r.Coverage, "")

	text := "No file matches" + searched(r.Coverage)
	pattern := strings.TrimLeft(a.Text("pattern"), "/")
	switch {
	// Existing names are a better hint than a wider pattern.
	case near != nil:
		text += " Near names: " + strings.Join(near, ", ") + "."
	// The caller may have remembered only the last part of the path.
	case strings.Contains(pattern, "/") && !strings.HasPrefix(pattern, "**/"):
		text += " At any depth: " + a.with("pattern", "**/"+pattern) + "."
	}
	return text + "\n" + e.String()
}

// nearFiles lists files whose names are similar to the last part of the pattern. It names their
// repositories if the call names none.
func nearFiles(ctx context.Context, v catalog.Viewer, s symbols.Searcher, a *Args) []string {
	want := path.Base(a.Text("pattern"))
	// A name with glob characters cannot be misspelled.
	if strings.ContainsAny(want, `*?[]{},\`) {
		return nil
	}

	// First look for names with the same letters in order, which are few. In a large repository,
	// more names share a piece than are listed.
	var near []nearPath
	for _, pattern := range []string{lettersGlob(want), nearGlob(want)} {
		like := search.GlobRequest{Pattern: pattern, Repo: a.Text("repo"), Repos: a.List("repo"), Ref: a.Text("ref"), Limit: 10000}
		r, err := s.Glob(ctx, v, like)
		if err != nil {
			return nil
		}
		if near = nearPaths(want, r.Repos, 3); near != nil {
			break
		}
	}

	for i, f := range near {
		near[i].path = fileLabel(f.path)
		if a.Text("repo") == "" {
			near[i].path += " in " + f.repo
		}
	}
	return pathsIn(near)
}

// wrongLetters returns how many letters of a file name may be wrong.
func wrongLetters(name string) int { return max(1, len(bare(name))/4) }

// lettersGlob returns a glob for names that contain the letters of a name in order, in any case:
// oomkill.c finds OOM_kill.c.
func lettersGlob(name string) string {
	var out strings.Builder
	for _, r := range bare(name) {
		if upper := unicode.ToUpper(r); upper != r {
			fmt.Fprintf(&out, "*[%c%c]", r, upper)
		} else if unicode.IsDigit(r) || unicode.IsLetter(r) {
			fmt.Fprintf(&out, "*%c", r)
		}
	}
	return out.String() + "*"
}

// nearGlob returns a glob for names that may be similar: they share a piece of the name. Each wrong
// letter, or pair of swapped letters, damages at most two pieces, so one more piece than that stays
// intact.
func nearGlob(name string) string {
	n := min(2*wrongLetters(name)+1, len(name))
	pieces := make([]string, n)
	for i := range pieces {
		pieces[i] = strings.ToValidUTF8(name[i*len(name)/n:(i+1)*len(name)/n], "")
	}
	return "*{" + strings.Join(pieces, ",") + "}*"
}

// nearPath is a file with a similar name.
type nearPath struct {
	repo, path string
	distance   int
}

func pathsIn(near []nearPath) (paths []string) {
	for _, f := range near {
		paths = append(paths, f.path)
	}
	return paths
}

// nearPaths returns the files whose names are most similar to a name.
func nearPaths(want string, repos []search.GlobRepo, most int) []nearPath {
	var found []nearPath
	for _, r := range repos {
		for _, p := range r.Paths {
			// Compare names without directories, in which a wrong letter would hardly count.
			if d := paths.Distance(bare(want), bare(path.Base(p))); d <= wrongLetters(want) {
				found = append(found, nearPath{r.Repo, p, d})
			}
		}
	}

	slices.SortFunc(found, func(x, y nearPath) int {
		// Then by path and repository, so that the order does not depend on which node answered
		// first.
		return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.path, y.path), cmp.Compare(x.repo, y.repo))
	})
	return found[:min(most, len(found))]
}

// byDirectory writes paths so that a directory with several of them is named once, followed by the
// names of its files.
func byDirectory(paths []string) []string {
	in := map[string]int{}
	for _, p := range paths {
		in[path.Dir(p)]++
	}

	var lines []string
	written := map[string]bool{}
	for _, p := range paths {
		dir := path.Dir(p)
		switch {
		// For one name, a heading would be longer than its path.
		case dir == "." || in[dir] == 1:
			lines = append(lines, fileLabel(p)+"\n")
		case !written[dir]:
			// All files of a directory follow its first path.
			written[dir] = true
			lines = append(lines, fileLabel(dir)+"/\n")
			lines = append(lines, namesIn(dir, paths)...)
		}
	}
	return lines
}

// namesIn returns the names of the files in a directory, indented.
func namesIn(dir string, paths []string) (lines []string) {
	for _, p := range paths {
		if path.Dir(p) == dir {
			lines = append(lines, " "+fileLabel(path.Base(p))+"\n")
		}
	}
	return lines
}
