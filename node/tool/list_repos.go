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

// runListRepos runs a call of list_repos.
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
		// The name is probably misspelled. Look for similar names among all.
		names := repoNames(ctx, l, v, "")
		return noRepos(a, r, nearRepos(a.Text("query"), names, 5)), nil
	}
	return reposText(a, r), nil
}

// noRepos answers if no name contains the text.
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

// reposText writes repositories, one per line.
func reposText(a *Args, r *browse.ReposResponse) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s", count(r.Total, "repository"))
	// Repeat the query, so that the result does not look like the list of all repositories.
	if q := a.Text("query"); q != "" {
		fmt.Fprintf(&out, " with %q in the name", q)
	}
	out.WriteByte('\n')

	e := end{coverage: r.Coverage()}
	shown := 0
	for ; shown < len(r.Repos); shown++ {
		line := repoLine(&r.Repos[shown])
		// Write at least one repository: a page without any would be requested again and again.
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

// repoLine describes a repository on one line.
func repoLine(p *browse.RepoInfo) string {
	// The line begins with the exact name, which other tools accept.
	line := p.Name
	if notes := repoNotes(p); notes != nil {
		line += " (" + strings.Join(notes, ", ") + ")"
	}
	return line + "\n"
}

// repoNotes lists facts about a repository that help to decide whether to search it.
func repoNotes(p *browse.RepoInfo) (notes []string) {
	// How new it is, and whether it is a fork or archived.
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

	// Errors come from hosts and git; shorten them to one line.
	if p.Unfetchable != "" {
		notes = append(notes, "not fetched: "+cut(label(p.Unfetchable), 0, 0))
	}
	switch {
	// An error explains why the repository is not indexed.
	case p.Error != "":
		notes = append(notes, "failed to index: "+cut(label(p.Error), 0, 0))
	case p.IndexedAt.IsZero():
		notes = append(notes, "not indexed yet")
	}
	return notes
}
