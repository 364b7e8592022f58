package tool

import (
	"context"
	"fmt"
	"regexp"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
)

// mostGlobsTried is how many globs of a call are tried for whether a file matches them.
const mostGlobsTried = 10

// unmatched tells which globs of a call no file matches: that nothing was found in such
// files is true and of no use.
func (s *Set) unmatched(ctx context.Context, v catalog.Viewer, a *Args) (texts []string) {
	if s.search == nil {
		return nil
	}
	param := "include"
	globs := paths.Globs(a.List(param)...)
	// The pattern of glob is told by its answer, unless it has several.
	if a.tool.Name == "glob" {
		if param, globs = "pattern", paths.Globs(a.Text("pattern")); len(globs) < 2 {
			return nil
		}
	}

	for _, glob := range globs[:min(len(globs), mostGlobsTried)] {
		if glob[0] == '!' || s.matchesSome(ctx, v, a, glob) {
			continue
		}
		text := fmt.Sprintf("%s %s matches no file", param, quote(glob))
		if better := "*." + glob; extension.MatchString(glob) && s.matchesSome(ctx, v, a, better) {
			text += ", " + quote(better) + " does"
		}
		texts = append(texts, text)
	}
	return texts
}

// extension matches what may be the ending of names.
var extension = regexp.MustCompile(`^\w{1,8}$`)

// matchesSome reports whether a file matches a glob, or whether that is not known.
func (s *Set) matchesSome(ctx context.Context, v catalog.Viewer, a *Args, glob string) bool {
	// The name of a directory stands for what is below it.
	req := search.GlobRequest{Pattern: glob + "," + glob + "/**", Path: a.Text("path"), Repo: a.Text("repo"), Repos: a.List("repo"), Ref: a.Text("ref"), Limit: 1}
	r, err := s.search.Glob(ctx, v, req)
	return err != nil || r.Files > 0 || r.Coverage.Worst() != ""
}
