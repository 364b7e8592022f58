package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/manifest"
	"github.com/shoalsearch/shoal/shard/query"
)

var dependenciesTemplate = layout.Parse(templates, "templates/dependencies.html", "templates/place.html")

// Limits of the page of dependencies.
const (
	maxManifestMatches = 10_000 // matches of the search for manifests
	maxDependencies    = 1000
)

// dependency is a library that a manifest names.
type dependency struct {
	Name, Version, Kind string
	Where, URL          string // the line of the manifest that names it
	Users               string // address of a search for all users of the library
}

// dependencies lists the libraries that the manifests of a repository name, sorted by name. It leaves
// out lock files, because they repeat the manifests. The query selects names that contain it.
func (p *reading) dependencies(ctx context.Context, v *layout.Visit, l place) error {
	name := strings.ToLower(strings.TrimSpace(v.Query.Get("query")))
	r, err := p.searcher.Search(ctx, v.Viewer, search.Request{Query: `file:"` + manifest.Paths + `" ` + l.searchLimit().Query, Whole: true, Regexp: true, Matches: maxManifestMatches})
	if err != nil {
		return err
	}

	var rows []dependency
	var unread []string
	files := map[string]bool{}
	for i := range r.Files {
		f := &r.Files[i]
		uses, err := manifest.Read(f.Path, f.Content)
		if err != nil {
			unread = append(unread, f.Path)
		}
		for _, u := range uses {
			if u.Kind == manifest.Locked || !strings.Contains(strings.ToLower(u.Name), name) {
				continue
			}
			files[f.Path] = true
			rows = append(rows, dependency{
				Name: u.Name, Version: u.Version, Kind: u.Kind,
				Where: fmt.Sprintf("%s:%d", f.Path, u.Line), URL: lineOf(l.At("blob", f.Path), f.Path, u.Line),
				Users: "/search?query=" + url.QueryEscape("dep:"+query.Quote(u.Name)),
			})
		}
	}
	slices.SortStableFunc(rows, func(x, y dependency) int {
		return cmp.Or(cmp.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name)), cmp.Compare(x.Where, y.Where))
	})

	data := struct {
		place
		Query, Total string
		Rows         []dependency
		Unread       []string
		Cut, Partial bool
	}{place: l, Query: v.Query.Get("query"), Total: counted(len(rows), "use", "uses") + " in " + counted(len(files), "file", "files"), Rows: rows, Unread: unread, Partial: !r.Coverage.Exhaustive()}
	if len(rows) > maxDependencies {
		data.Rows, data.Cut = rows[:maxDependencies], true
	}
	return v.Show(layout.Head{Title: "Dependencies of " + l.Repo, Page: "dependencies"}, dependenciesTemplate, data)
}
