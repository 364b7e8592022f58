package web

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
)

var goneTemplate = layout.Parse(templates, "templates/gone.html")

// gonePage is where a path was last that is not there, for its template.
type gonePage struct {
	Title, Message string
	Last, LastURL  string // the last commit that had it, with the page of the path there
	Removed        commitRow
	Renamed        string // where the file went; "" for nowhere
	RenamedURL     string
}

// orGone is the failure of a page of a path. Where an earlier commit had the path,
// it answers with a page that leads there instead.
func (p *revisions) orGone(ctx context.Context, v *layout.Visit, l place, err error) error {
	if !errors.Is(err, call.ErrFileNotFound) || v.Part != "" || !slices.Contains([]string{"tree", "blob", "blame"}, l.Kind) {
		return err
	}

	// That the history cannot be looked through changes nothing of what is missing.
	r, unseen := p.reader.LastSeen(ctx, v.Viewer, browse.LastSeenRequest{Repo: l.Repo, Ref: l.Rev, Paths: []string{l.Path}})
	if unseen != nil || r.Removed == nil {
		return err
	}

	data := gonePage{
		Title:   "There is no such file any more",
		Message: err.Error(),
		Last:    short(r.Commit),
		LastURL: address(l.Repo, r.Commit, "blob", l.Path),
		Removed: p.commitRow(l.Repo, r.Removed),
		Renamed: r.Renamed,
	}
	if r.Type == "tree" {
		data.Title, data.LastURL = "There is no such directory any more", address(l.Repo, r.Commit, "tree", l.Path)
	}
	if r.Renamed != "" {
		data.RenamedURL = l.At("blob", r.Renamed)
	}

	v.Status = http.StatusNotFound
	return v.Show(layout.Head{Title: data.Title, Page: "error"}, goneTemplate, data)
}
