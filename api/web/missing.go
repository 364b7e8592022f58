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

// missingPage is a path that a revision does not have, and what may be meant by it.
type missingPage struct {
	place
	Name, What string
	Last       string // the last commit that had it; "" where none is known
	LastURL    string // the path there
	Removed    commitRow
	Moved      string // where that commit moved it; "" for nowhere
	Near       []foundRow
	Default    string // the page of the path in the default branch, where another revision was meant
}

// orMissing is the failure of a page of a path. For a path that is not there it
// answers with a page that leads to where it was last, and to paths like it.
func (p *reading) orMissing(ctx context.Context, v *layout.Visit, l place, err error) error {
	if !errors.Is(err, call.ErrFileNotFound) || v.Part != "" || !slices.Contains([]string{"tree", "blob", "blame"}, l.Kind) {
		return err
	}

	data := missingPage{place: l, Name: path.Base(l.Path), What: "file"}
	if l.Rev != "" {
		data.Default = address(l.Repo, "", l.Kind, l.Path)
	}

	// That the history cannot be looked through changes nothing of what is missing.
	r, unseen := p.reader.LastSeen(ctx, v.Viewer, browse.LastSeenRequest{Repo: l.Repo, Ref: l.Rev, Paths: []string{l.Path}})
	if unseen == nil && r.Removed != nil {
		kind := "blob"
		if r.Type == "tree" {
			kind = "tree"
		}
		// What it was counts, not what the address takes it for. A file may have its blame.
		if kind == "tree" || l.Kind == "tree" {
			data.Kind = kind
		}
		data.Last, data.LastURL = short(r.Commit), address(l.Repo, r.Commit, kind, l.Path)
		data.Removed, data.Moved = p.revisions.commitRow(l.Repo, r.Removed), r.Renamed
	}

	if data.Kind == "tree" {
		data.What = "directory"
	}

	// Nor does it that the paths cannot be listed.
	near, _ := p.suggester.NearPaths(ctx, v.Viewer, l.Repo, l.Rev, l.Path, data.Kind == "tree")
	for _, name := range near {
		if name != data.Moved {
			data.Near = append(data.Near, foundRow{URL: l.At(data.Kind, name), Name: name})
		}
	}

	v.Status = http.StatusNotFound
	return v.Show(layout.Head{Title: data.Name + " is not here", Page: "error", Scripts: []string{"js/file.js"}}, missingTemplate, data)
}
