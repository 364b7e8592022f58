package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

func listRepos(l browse.Reader) Tool {
	return Tool{
		Name: "list_repos", Title: "List repositories",
		About: "Lists repositories: full name, default branch, last push, and why one is not indexed.",
		Params: []Param{
			{Name: "query", Kind: String, About: "part of the name, in any case"},
			pageParam, perPage(30),
			{Name: "sort", Kind: String, Words: []string{"name", "pushed"}, Default: "name"},
			{Name: "direction", Kind: String, Words: []string{"asc", "desc"}, Default: "asc"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runListRepos(ctx, v, l, a)
		},
	}
}

// runListRepos answers a call of list_repos.
func runListRepos(ctx context.Context, v catalog.Viewer, l browse.Reader, a *Args) (string, error) {
	r, err := l.Repos(ctx, v, browse.ReposRequest{
		Query:   a.Text("query"),
		Page:    a.Number("page"),
		PerPage: a.Number("perPage"),
		Sort:    a.Text("sort"),
		Desc:    a.Text("direction") == "desc",
	})
	if err != nil {
		return "", err
	}

	if r.Total == 0 && a.Text("query") != "" {
		// A name that nothing has is most often a misspelled one: then all are looked at for it.
		names := repoNames(ctx, l, v, "")
		return noRepos(a, r, nearRepos(a.Text("query"), names, 5)), nil
	}
	return reposText(a, r), nil
}

// noRepos is the answer where no name has the text.
func noRepos(a *Args, r *browse.ReposResponse, near []string) string {
	text := fmt.Sprintf("No repository has %q in its name.", a.Text("query"))
	if near != nil {
		text += " Near names: " + strings.Join(near, ", ") + "."
	} else {
		text += " All: " + a.with("query", nil, "page", nil) + "."
	}
	e := end{coverage: r.Coverage()}
	return text + "\n" + e.String()
}

// reposText writes repositories, one on a line.
func reposText(a *Args, r *browse.ReposResponse) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s", count(r.Total, "repository"))
	// With what was asked for, so that a few of many do not read as all.
	if q := a.Text("query"); q != "" {
		fmt.Fprintf(&out, " with %q in the name", q)
	}
	out.WriteByte('\n')

	e := end{coverage: r.Coverage()}
	shown := 0
	for ; shown < len(r.Repos); shown++ {
		line := repoLine(&r.Repos[shown])
		// One at least: a page without any would be asked for again and again.
		if out.Len()+len(line) > a.room() && shown > 0 {
			break
		}
		out.WriteString(line)
	}

	if shown < len(r.Repos) {
		e.noRoom(a, "repository", shown, len(r.Repos))
	} else {
		e.pages(a, shown, r.Total)
	}
	return out.String() + e.String()
}

// repoLine is a repository with its line end.
func repoLine(p *browse.RepoInfo) string {
	// The name alone begins the line: other tools take it as it stands.
	line := p.Name
	if notes := repoNotes(p); notes != nil {
		line += " (" + strings.Join(notes, ", ") + ")"
	}
	return line + "\n"
}

// repoNotes is what is worth knowing of a repository before it is searched.
func repoNotes(p *browse.RepoInfo) (notes []string) {
	// What decides whether to search there: how new it is, and whether it is a copy or at rest.
	if p.DefaultBranch != "" {
		notes = append(notes, p.DefaultBranch)
	}
	if !p.PushedAt.IsZero() {
		notes = append(notes, "pushed "+p.PushedAt.UTC().Format("2006-01-02"))
	}
	if p.Fork {
		notes = append(notes, "fork")
	}
	if p.Archived {
		notes = append(notes, "archived")
	}

	// The texts of errors are of hosts and of git: one line of each, and cut.
	if p.Unfetchable != "" {
		notes = append(notes, "not fetched: "+cut(label(p.Unfetchable), 0, 0))
	}
	switch {
	// An error explains why it is not indexed, and goes before that.
	case p.Error != "":
		notes = append(notes, "failed to index: "+cut(label(p.Error), 0, 0))
	case p.IndexedAt.IsZero():
		notes = append(notes, "not indexed yet")
	}
	return notes
}
