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
	Last       string // the last commit that had it; "" if unknown
	LastURL    string // the path at that commit
	Removed    commitRow
	Moved      string // where that commit moved it; "" for nowhere
	Near       []foundRow
	Default    string // the path in the default branch, if the page has another revision
}

// orMissing returns the error of a page of a path. For a missing path it shows a page with its
// last commit and similar paths.
func (p *reading) orMissing(ctx context.Context, v *layout.Visit, l place, err error) error {
	if !errors.Is(err, call.ErrFileNotFound) || v.Part != "" || !slices.Contains([]string{"tree", "blob", "blame"}, l.Kind) {
		return err
	}

	data := missingPage{place: l, Name: path.Base(l.Path), What: "file"}
	if l.Rev != "" {
		data.Default = address(l.Repo, "", l.Kind, l.Path)
	}

	// Without the history the path is still missing.
	r, unseen := p.reader.LastSeen(ctx, v.Viewer, browse.LastSeenRequest{Repo: l.Repo, Ref: l.Rev, Paths: []string{l.Path}})
	if unseen == nil && r.Removed != nil {
		kind := "blob"
		if r.Type == "tree" {
			kind = "tree"
		}
		// Link to its kind, which may differ from the address. A file may have a blame.
		if kind == "tree" || l.Kind == "tree" {
			data.Kind = kind
		}
		data.Last, data.LastURL = short(r.Commit), address(l.Repo, r.Commit, kind, l.Path)
		data.Removed, data.Moved = p.revisions.commitRow(l.Repo, r.Removed), r.Renamed
	}

	if data.Kind == "tree" {
		data.What = "directory"
	}

	// Suggestions may fail too.
	near, _ := p.suggester.NearPaths(ctx, v.Viewer, l.Repo, l.Rev, l.Path, data.Kind == "tree")
	for _, name := range near {
		if name != data.Moved {
			data.Near = append(data.Near, foundRow{URL: l.At(data.Kind, name), Name: name})
		}
	}

	v.Status = http.StatusNotFound
	return v.Show(layout.Head{Title: data.Name + " is not here", Page: "error", Scripts: []string{"js/file.js"}}, missingTemplate, data)
}
