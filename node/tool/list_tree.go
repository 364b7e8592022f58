package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
)

func listTree(b browse.Reader) Tool {
	return Tool{
		Name: "list_tree", Title: "List a directory",
		About: "Lists files and directories of a repository as an indented tree, directories first, with a slash.",
		Params: []Param{
			repoParam,
			{Name: "path", Kind: String, About: "directory from the root, or the root"},
			refParam,
			{Name: "depth", Kind: Integer, Min: 1, Max: 10, Default: 1, About: "levels below path"},
			{Name: "includeFiles", Kind: Boolean, Default: true},
			{Name: "includeDirectories", Kind: Boolean, Default: true},
			{Name: "sizes", Kind: Boolean, Default: false, About: "bytes of each file"},
			{Name: "maxEntries", Kind: Integer, Min: 1, Max: 10000, Default: 1000, About: "most entries"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runListTree(ctx, v, b, a)
		},
	}
}

// runListTree runs a call of list_tree.
func runListTree(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) (string, error) {
	if !a.Flag("includeFiles") && !a.Flag("includeDirectories") {
		return "", &call.Error{Kind: call.ErrInvalid, Message: "includeFiles and includeDirectories are both false: nothing is left to list. Set one of them to true."}
	}

	// The listing itself leaves out files or directories, so that maxEntries counts shown entries.
	r, err := b.ListTree(ctx, v, browse.ListTreeRequest{
		Repo:          a.Text("repo"),
		Path:          a.Text("path"),
		Ref:           a.Text("ref"),
		Depth:         a.Number("depth"),
		NoFiles:       !a.Flag("includeFiles"),
		NoDirectories: !a.Flag("includeDirectories"),
		MaxEntries:    a.Number("maxEntries"),
		Sizes:         a.Flag("sizes"),
	})
	if err != nil {
		return "", err
	}
	return treeText(a, r), nil
}

// treeText writes an indented tree.
func treeText(a *Args, r *browse.ListTreeResponse) string {
	var out strings.Builder
	// An empty path would look like a mistake.
	where := r.Path
	if where == "" {
		where = "/"
	}
	noun := "entry"
	if !a.Flag("includeDirectories") {
		noun = "file"
	}
	fmt.Fprintf(&out, "%s%s at %.8s: %s\n", of(a, r.Repo), fileLabel(where), r.Commit, count(len(r.Entries), noun))

	shown := 0
	for _, e := range r.Entries {
		// Stop where the room ends, so that everything above is complete.
		line := entryLine(a, e)
		if out.Len()+len(line) > a.room() {
			break
		}
		out.WriteString(line + "\n")
		shown++
	}

	e := treeEnd(a, r, shown)
	return out.String() + e.String()
}

// entryLine describes an entry of a tree, without the line break.
func entryLine(a *Args, e browse.TreeEntry) string {
	line := strings.Repeat(" ", max(e.Depth-1, 0)) + fileLabel(e.Name)
	if !a.Flag("includeDirectories") {
		// Without directories, an indented name would not show its path.
		line = fileLabel(e.Path)
	}

	switch {
	case e.Dir:
		line += "/"
	case e.Type == "commit":
		line += fmt.Sprintf(" (submodule at %.12s)", e.Target)
	case e.Link:
		line += " -> " + fileLabel(e.Target)
	case a.Flag("sizes"):
		line += fmt.Sprintf(" (%d)", e.Size)
	}
	return line
}

// treeEnd says which entries are missing, and which call continues. shown is the number of shown
// entries.
func treeEnd(a *Args, r *browse.ListTreeResponse, shown int) (e end) {
	most := a.Number("maxEntries")
	beyond := "entries beyond maxEntries; list a directory below: " + a.with("path", firstDir(r))
	switch {
	// Mention entries without room before entries that were not listed.
	case shown < len(r.Entries):
		e.leaves(fmt.Sprintf("%d of these entries, for lack of room; list a directory below: %s", len(r.Entries)-shown, a.with("path", firstDir(r), "depth", 1)))
		beyond = "entries beyond maxEntries"
	case most < 10000:
		beyond = fmt.Sprintf("entries beyond maxEntries; continue with %s, or give a path", a.with("maxEntries", min(10000, most*4)))
	}
	e.covers(a, r.Coverage(), words{coverage.Limit: beyond})
	return e
}

// firstDir returns the first directory of the listing, or the listed one if it has none.
func firstDir(r *browse.ListTreeResponse) string {
	for _, e := range r.Entries {
		if e.Dir {
			return e.Path
		}
	}
	return r.Path
}
