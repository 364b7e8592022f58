package mcp

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"sort"
	"strings"

	"github.com/shoalsearch/shoal/node"
)

// explain turns a failure into a sentence that tells the model what to do
// next. What the viewer may not see is never hinted at: every name in a hint
// comes from a listing made for the same viewer.
func explain(ctx context.Context, n Tools, v node.Viewer, t *tool, a *args, err error) string {
	var e *node.Error
	message := "The tool failed for a reason that is in the node's log. Try once more, then another way."
	if errors.As(err, &e) {
		if message = strings.TrimRight(e.Message, ". "); !strings.HasSuffix(message, "?") {
			message += "."
		}
	}
	repo := a.text("repo")
	switch {
	case errors.Is(err, node.ErrRepoNotFound):
		return message + suggestRepos(ctx, n, v, repo)
	case errors.Is(err, node.ErrFileNotFound):
		if strings.HasSuffix(message, "?") { // it names what could be meant
			return message
		}
		at := map[string]any{"repo": repo, "path": strings.Trim(a.text("path"), "/")}
		if ref := a.text("ref"); ref != "" {
			at["ref"] = ref
		}
		switch {
		case strings.HasSuffix(message, "is a directory, not a file."):
			return message + " See what is in it with list_tree " + quote(at) + "."
		case strings.HasSuffix(message, "is a file, not a directory."):
			return message + " Read it with read_file " + quote(at) + "."
		}
		base := path.Base(a.text("path"))
		return message + " Find the path with glob " + quote(map[string]any{"repo": repo, "pattern": "**/" + base}) + "."
	case errors.Is(err, node.ErrRef):
		return message + " See the branches with list_branches " + quote(map[string]any{"repo": repo}) + ", or leave ref out for the default branch."
	case errors.Is(err, node.ErrQuery):
		return message + " There are no look-arounds and no back-references. To find it as it stands: " + a.with(t.name, "pattern", regexp.QuoteMeta(a.text("pattern"))) + "."
	case errors.Is(err, node.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "The call took too long. Narrow it with repo, path or include, or use a longer literal in the pattern."
	case errors.Is(err, node.ErrOverloaded), errors.Is(err, node.ErrUnavailable), errors.Is(err, node.ErrIncomplete):
		return message + " Try again in a few seconds."
	case errors.Is(err, node.ErrTooLarge):
		return message + " Ask for less: narrow with path."
	case errors.Is(err, context.Canceled):
		return "The call was cancelled."
	}
	return message
}

// candidates lists repositories whose names have something in common with a name.
func candidates(ctx context.Context, n Tools, v node.Viewer, name string) []string {
	last := name[strings.LastIndexByte(strings.TrimRight(name, "/"), '/')+1:]
	for _, query := range []string{strings.TrimSuffix(last, ".git"), ""} {
		r, err := n.ListRepos(ctx, v, node.ReposRequest{Query: query, PerPage: 100})
		if err != nil {
			return nil
		}
		if len(r.Repos) == 0 {
			continue
		}
		names := make([]string, len(r.Repos))
		for i := range r.Repos {
			names[i] = r.Repos[i].Name
		}
		return names
	}
	return nil
}

// oneEndingIn is the only repository whose name ends in the given parts, ""
// where there is none or more than one.
func oneEndingIn(ctx context.Context, n Tools, v node.Viewer, name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(strings.Trim(name, "/"), ".git"), "/")
	for _, prefix := range []string{"https://", "http://"} {
		name = strings.TrimPrefix(name, prefix)
	}
	found := ""
	for _, full := range candidates(ctx, n, v, name) {
		if strings.EqualFold(full, name) || strings.HasSuffix(strings.ToLower(full), "/"+strings.ToLower(name)) {
			if found != "" {
				return ""
			}
			found = full
		}
	}
	return found
}

func suggestRepos(ctx context.Context, n Tools, v node.Viewer, name string) string {
	names := candidates(ctx, n, v, name)
	if len(names) == 0 {
		return " No repository is indexed yet that you may see."
	}
	sort.SliceStable(names, func(i, k int) bool { return distance(name, names[i]) < distance(name, names[k]) })
	names = names[:min(3, len(names))]
	return fmt.Sprintf(" Did you mean %s? list_repos shows all.", strings.Join(names, ", "))
}

// distance is how many letters have to change to make b of a.
func distance(a, b string) int {
	if len(a) > 200 || len(b) > 200 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := 0; i < len(a); i++ {
		last := row[0]
		row[0] = i + 1
		for k := 0; k < len(b); k++ {
			cost := last
			if a[i] != b[k] {
				cost = 1 + min(last, row[k], row[k+1])
			}
			last, row[k+1] = row[k+1], cost
		}
	}
	return row[len(b)]
}
