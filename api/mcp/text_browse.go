package mcp

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/node"
)

// longestLine is how many bytes of a line of a file are shown.
const longestLine = 2000

// fileText writes lines of a file with their numbers.
func fileText(a *args, r *node.ReadFileResponse) string {
	var out strings.Builder
	out.WriteString(of(a, r.Repo))
	fmt.Fprintf(&out, "%s at %.8s", clean([]byte(r.Path)), r.Commit)
	if r.Language != "" {
		fmt.Fprintf(&out, ", %s", r.Language)
	}
	switch {
	case r.Binary:
		fmt.Fprintf(&out, "\nThis is a binary file of %s: it has no lines to show.\n%s", count(r.Size, "byte"), complete)
		return out.String()
	case r.Total == 0:
		fmt.Fprintf(&out, "\nThe file is empty.\n%s", complete)
		return out.String()
	case len(r.Lines) == 0:
		fmt.Fprintf(&out, "\nThe file has only %s. From its start: %s.", count(r.Total, "line"), a.with("read_file", "offset", nil))
		return out.String()
	}
	header := out.Len()
	var body strings.Builder
	next, shortened := r.First, 0
	for _, line := range r.Lines {
		text := clean(line)
		if len(text) > longestLine {
			text = cutEnd(text, longestLine)
			shortened++
		}
		entry := fmt.Sprintf("%d: %s\n", next, text)
		if body.Len() > 0 && header+body.Len()+len(entry) > budget-reserve {
			break
		}
		body.WriteString(entry)
		next++
	}
	fmt.Fprintf(&out, ", lines %d-%d of %d", r.First, next-1, r.Total)
	out.WriteByte('\n')
	out.WriteString(body.String())
	if shortened > 0 {
		fmt.Fprintf(&out, "%s cut after %d bytes (…); grep with include shows the part around a match.\n", count(shortened, "line"), longestLine)
	}
	if next <= r.Total {
		fmt.Fprintf(&out, "More: %s", a.with("read_file", "offset", next))
	} else {
		out.WriteString("End of file.")
	}
	return out.String()
}

// of names a repository in front of a path unless the call had its full name.
func of(a *args, repo string) string {
	if a.asked == repo {
		return ""
	}
	return repo + " "
}

// cutEnd keeps about n bytes of the start of a line.
func cutEnd(s string, n int) string {
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// treeText writes an indented tree.
func treeText(a *args, r *node.ListTreeResponse) string {
	var out strings.Builder
	where := r.Path
	if where == "" {
		where = "/"
	}
	noun := "entry"
	if !a.flag("includeDirectories") {
		noun = "file"
	}
	fmt.Fprintf(&out, "%s%s at %.8s: %s\n", of(a, r.Repo), clean([]byte(where)), r.Commit, count(len(r.Entries), noun))
	shown := 0
	for _, e := range r.Entries {
		name := clean([]byte(e.Name))
		if !a.flag("includeDirectories") { // an indented name would not say where it is
			name = clean([]byte(e.Path))
			e.Depth = 1
		}
		line := strings.Repeat(" ", max(e.Depth-1, 0)) + name
		switch {
		case e.Dir:
			line += "/"
		case e.Type == "commit":
			line += " (submodule)"
		}
		if out.Len()+len(line) > budget-reserve {
			break
		}
		out.WriteString(line + "\n")
		shown++
	}
	switch {
	case shown < len(r.Entries):
		fmt.Fprintf(&out, "Left out: %d of these entries, for lack of room; list a directory below: %s.", len(r.Entries)-shown, a.with("list_tree", "path", firstDir(r), "depth", 1))
	case r.Cut && a.number("maxEntries") < 10000:
		fmt.Fprintf(&out, "Left out: entries beyond maxEntries; continue with %s, or give a path.", a.with("list_tree", "maxEntries", min(10000, a.number("maxEntries")*4)))
	case r.Cut:
		fmt.Fprintf(&out, "Left out: entries beyond maxEntries; list a directory below: %s.", a.with("list_tree", "path", firstDir(r)))
	default:
		out.WriteString(complete)
	}
	return out.String()
}

// firstDir is a directory of the listing to look into.
func firstDir(r *node.ListTreeResponse) string {
	for _, e := range r.Entries {
		if e.Dir {
			return e.Path
		}
	}
	return r.Path
}

// pages ends a paged list. atLeast says that there are total or more.
func pages(a *args, tool string, shown, total int, atLeast bool) string {
	page, per := a.number("page"), a.number("perPage")
	before := (page - 1) * per
	switch {
	case shown == 0 && total > 0 && page > 1:
		return fmt.Sprintf("There is no page %d; the last is %s.", page, a.with(tool, "page", (total+per-1)/per))
	case atLeast && shown == per:
		return fmt.Sprintf("Left out: what is older; continue with %s.", a.with(tool, "page", page+1))
	case atLeast:
		return "Left out: what is older; looking through the history took too long. Narrow with since, until or path."
	case before+shown >= total || shown == 0:
		return complete
	}
	return fmt.Sprintf("Left out: %d more; continue with %s.", total-before-shown, a.with(tool, "page", page+1))
}

// reposText writes repositories, one on a line.
func reposText(a *args, r *node.ReposResponse) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s", count(r.Total, "repository"))
	if q := a.text("query"); q != "" {
		fmt.Fprintf(&out, " with %q in the name", q)
	}
	out.WriteByte('\n')
	for i := range r.Repos {
		p := &r.Repos[i]
		out.WriteString(p.Name)
		var notes []string
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
		if p.IndexedAt.IsZero() {
			notes = append(notes, "not indexed yet")
		}
		if notes != nil {
			out.WriteString(" (" + strings.Join(notes, ", ") + ")")
		}
		out.WriteByte('\n')
	}
	out.WriteString(pages(a, "list_repos", len(r.Repos), r.Total, false))
	return out.String()
}

// commitsText writes commits, one on a line.
func commitsText(a *args, r *node.CommitsResponse) string {
	if len(r.Commits) == 0 && !r.AtLeast && r.Total == 0 {
		return noCommits(a)
	}
	var out strings.Builder
	if r.AtLeast {
		out.WriteString("At least ")
	}
	fmt.Fprintf(&out, "%s, newest first\n", count(r.Total, "commit"))
	for i := range r.Commits {
		c := &r.Commits[i]
		fmt.Fprintf(&out, "%.12s %s %s: %s", c.Hash, c.Date.Format("2006-01-02"), clean([]byte(c.AuthorName)), cut(clean([]byte(c.Message)), 0, 0))
		if c.Refs != "" {
			fmt.Fprintf(&out, " (%s)", c.Refs)
		}
		out.WriteByte('\n')
	}
	if !r.Reached.IsZero() {
		reached := r.Reached.UTC().Format(time.RFC3339)
		fmt.Fprintf(&out, "Left out: commits from %s back, which were not looked at: that takes long; continue with %s, or narrow with path, author or since.",
			reached, a.with("list_commits", "until", reached, "page", nil))
		return out.String()
	}
	out.WriteString(pages(a, "list_commits", len(r.Commits), r.Total, r.AtLeast))
	return out.String()
}

// noCommits says which filter most likely was too narrow.
func noCommits(a *args) string {
	hint := ""
	switch {
	case a.text("since") != "" || a.text("until") != "":
		hint = " At any time: " + a.with("list_commits", "since", nil, "until", nil) + "."
	case a.text("path") != "":
		hint = " If the path may be wrong: glob " + quote(map[string]any{"repo": a.text("repo"), "pattern": "**/" + path.Base(a.text("path"))}) + "."
	case a.text("query") != "":
		hint = " query is found as it stands in one line of a message: try fewer words."
	}
	return "No commit matches." + hint + "\n" + complete
}

// branchesText writes branches, one on a line.
func branchesText(a *args, r *node.RefsResponse) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s of %s, newest first", count(r.Total, "branch"), r.Repo)
	if r.DefaultBranch != "" {
		fmt.Fprintf(&out, "; default %s", r.DefaultBranch)
	}
	out.WriteByte('\n')
	for _, b := range r.Refs {
		fmt.Fprintf(&out, "%s %.12s %s", clean([]byte(b.Name)), b.Commit, b.CommittedAt.UTC().Format("2006-01-02"))
		if b.Default {
			out.WriteString(" default")
		}
		if b.Indexed {
			out.WriteString(" indexed")
		}
		out.WriteByte('\n')
	}
	out.WriteString(pages(a, "list_branches", len(r.Refs), r.Total, false))
	return out.String()
}
