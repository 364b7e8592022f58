package tool

import (
	"context"
	"fmt"
	"regexp"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
)

// mostGlobsTried is the largest number of globs of a call that are checked for matching files.
const mostGlobsTried = 10

// unmatched describes the globs of a call that match no file. Otherwise "nothing found" would
// mislead.
func (s *Set) unmatched(ctx context.Context, v catalog.Viewer, a *Args) (texts []string) {
	if s.search == nil {
		return nil
	}
	param := "include"
	globs := paths.Globs(a.List(param)...)
	// The answer of the tool glob already says so, unless it has several patterns.
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

// extension matches a possible file extension.
var extension = regexp.MustCompile(`^\w{1,8}$`)

// matchesSome reports whether any file matches a glob, or that is unknown.
func (s *Set) matchesSome(ctx context.Context, v catalog.Viewer, a *Args, glob string) bool {
	// A directory stands for everything below it.
	req := search.GlobRequest{Pattern: glob + "," + glob + "/**", Path: a.Text("path"), Repo: a.Text("repo"), Repos: a.List("repo"), Ref: a.Text("ref"), Limit: 1}
	r, err := s.search.Glob(ctx, v, req)
	return err != nil || r.Files > 0 || r.Coverage.Worst() != ""
}
