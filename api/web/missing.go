package web

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
)

var missingTemplate = layout.Parse(templates, "templates/missing.html")

// missingPage is the page for a path that a revision does not have, with suggestions.
type missingPage struct {
	place
	Name, What string
	Last       string     // last commit that had the path; "" if unknown
	LastURL    string     // page of the path at that commit
	Removed    commitRow  // commit that removed the path
	Moved      string     // path to which Removed moved it; "" if it deleted it
	Near       []foundRow // similar paths
	Default    string     // page of the path in the default branch, if this page has another revision
}

// orMissing returns err, the result of the page of a path. But if the path is missing, it shows a page
// with its last commit and similar paths.
func (p *reading) orMissing(ctx context.Context, v *layout.Visit, l place, err error) error {
	if !errors.Is(err, call.ErrFileNotFound) || v.Part != "" || !slices.Contains([]string{"tree", "blob", "blame"}, l.Kind) {
		return err
	}

	data := missingPage{place: l, Name: path.Base(l.Path), What: "file"}
	if l.Rev != "" {
		data.Default = address(l.Repo, "", l.Kind, l.Path)
	}

	// If LastSeen fails, show the page without the history.
	r, lastErr := p.reader.LastSeen(ctx, v.Viewer, browse.LastSeenRequest{Repo: l.Repo, Ref: l.Rev, Paths: []string{l.Path}})
	if lastErr == nil && r.Removed != nil {
		kind := "blob"
		if r.Type == "tree" {
			kind = "tree"
		}
		// The address may take a file for a directory, or a directory for a file.
		if kind == "tree" || l.Kind == "tree" {
			data.Kind = kind
		}
		data.Last, data.LastURL = short(r.Commit), address(l.Repo, r.Commit, kind, l.Path)
		data.Removed, data.Moved = p.revisions.commitRow(l.Repo, r.Removed), r.Renamed
	}

	if data.Kind == "tree" {
		data.What = "directory"
	}

	near, _ := p.suggester.NearPaths(ctx, v.Viewer, l.Repo, l.Rev, l.Path, data.Kind == "tree") // none after an error
	for _, name := range near {
		if name != data.Moved {
			data.Near = append(data.Near, foundRow{URL: l.At(data.Kind, name), Name: name})
		}
	}

	v.Status = http.StatusNotFound
	return v.Show(layout.Head{Title: data.Name + " is not here", Page: "error", Scripts: []string{"js/file.js"}}, missingTemplate, data)
}
