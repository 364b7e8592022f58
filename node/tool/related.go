package tool

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	globs "github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/git"
)

// mostGrouped is the largest number of files or authors in an answer.
const mostGrouped = 40

// groupedCommits answers a call with groupBy. Instead of commits it lists the files that changed
// together with a path, its tests, or its authors and owners.
func groupedCommits(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	for _, name := range []string{"query", "changes", "changesRegex", "lines", "author", "since", "until", "page"} {
		if a.Has(name) {
			return "", call.Fail(call.ErrInvalid, "groupBy counts all commits of a path and takes no %s. Without: %s.", name, a.with(name, nil))
		}
	}
	if a.Text("groupBy") == "author" {
		return commitsByAuthor(ctx, v, b, a)
	}
	if a.Text("path") == "" {
		return "", call.Fail(call.ErrInvalid, "groupBy %s needs path: a file or a directory", a.Text("groupBy"))
	}
	if a.Text("groupBy") == "test" {
		return testsOfPath(ctx, v, s, b, a)
	}
	r, err := b.Together(ctx, v, browse.TogetherRequest{Repo: a.Text("repo"), Ref: a.Text("ref"), Path: a.Text("path"), Max: mostGrouped + 1})
	if err != nil {
		return "", err
	}

	var out strings.Builder
	fmt.Fprintf(&out, "%s of at most %d files and no merges changed %s; the files in them\n", count(r.Commits, "commit"), git.TogetherFiles, fileLabel(a.Text("path")))
	shown := 0
	for _, f := range r.Files {
		// Skip the path itself, which every counted commit changed.
		if f.Path == a.Text("path") || shown == mostGrouped {
			continue
		}
		gone := ""
		if f.Gone {
			gone = ", gone"
		}
		fmt.Fprintf(&out, "%d %s%s\n", f.Commits, fileLabel(f.Path), gone)
		shown++
	}
	var e end
	e.covers(a, r.Coverage(), words{coverage.Limit: "older commits"})
	if more := r.Total - len(r.Files); more > 0 {
		e.leaves(fmt.Sprintf("%s of fewer commits", count(more, "file")))
	}
	return out.String() + e.String(), nil
}

// commitsByAuthor lists the owners of a path by CODEOWNERS, and the authors who changed it.
func commitsByAuthor(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) (string, error) {
	r, err := b.Authors(ctx, v, browse.AuthorsRequest{Repo: a.Text("repo"), Ref: a.Text("ref"), Path: a.Text("path"), PerPage: mostGrouped, Verbatim: a.Flag("verbatim")})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s; %s\n", count(r.Total, "author"), codeOwners(ctx, v, b, a))
	for _, x := range r.Authors {
		fmt.Fprintf(&out, "%d %s <%s>\n", x.Commits, label(x.Name), label(x.Email))
	}
	var e end
	e.covers(a, r.Coverage(), nil)
	if more := r.Total - len(r.Authors); more > 0 {
		e.leaves(fmt.Sprintf("%s of fewer commits", count(more, "author")))
	}
	return out.String() + e.String(), nil
}

// ownerFiles lists the locations of a CODEOWNERS file. Hosts read the first that exists.
var ownerFiles = []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS", ".gitea/CODEOWNERS"}

// codeOwners names the owners of a path.
func codeOwners(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) string {
	for _, file := range ownerFiles {
		src, err := b.Source(ctx, v, browse.SourceRequest{Repo: a.Text("repo"), Ref: a.Text("ref"), Path: file})
		if err != nil {
			continue
		}
		if owners, line := ownersIn(src.Content, a.Text("path")); owners != "" {
			return fmt.Sprintf("owners %s (%s:%d)", label(owners), file, line)
		}
		return "no owner in " + file
	}
	return "no CODEOWNERS"
}

// ownersIn returns the owners of a path. The last matching line decides.
func ownersIn(text []byte, path string) (owners string, line int) {
	number := 0
	for row := range bytes.Lines(text) {
		number++
		content, _, _ := strings.Cut(string(row), " #")
		fields := strings.Fields(content)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") || strings.ContainsAny(fields[0][:1], "[^") {
			continue
		}
		// As in .gitignore, a slash inside a pattern anchors it to the root, and a directory
		// matches everything below.
		pattern := strings.TrimSuffix(fields[0], "/")
		if !strings.Contains(pattern, "/") {
			pattern = "**/" + pattern
		}
		pattern = strings.TrimPrefix(pattern, "/")
		patterns := []string{pattern, pattern + "/**"}
		if strings.HasSuffix(pattern, "/*") && pattern != "**/*" {
			patterns = patterns[:1]
		}
		of, err := globs.Compile(globs.Exact, patterns...)
		if err == nil && of.Match(path) {
			owners, line = strings.Join(fields[1:], " "), number
		}
	}
	return owners, line
}
