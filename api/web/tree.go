package web

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/web/markdown"
	"github.com/shoalsearch/shoal/node/browse"
)

var (
	treeTemplate    = layout.Parse(templates, "templates/tree.html", "templates/place.html")
	entriesTemplate = treeTemplate.Lookup("entries")
)

// treeEntry is a row of a directory.
type treeEntry struct {
	Name, Kind, Size string
	URL              string // "" for a submodule, whose files are in another repository
	Target           string // of a symbolic link; for a submodule its commit
	History          string
	Last             *commitRow // last change; nil if it was not found in time
}

// treePage is the data of a directory.
type treePage struct {
	place
	CommitURL, Short string
	LastURL          string // of the entries with their last commits
	Entries          []treeEntry
	Told             bool // the last commits are there
	Cut              bool
	Readme           string
	ReadmeURL        string
	Document         *document     // the rendered README
	Refused          string        // why it is not rendered
	Text             template.HTML // its source, if it is not rendered
}

// tree shows a directory with its README. A script then requests the entries with their last
// commits, which take longer than the page.
func (p *sources) tree(ctx context.Context, v *layout.Visit, l place) error {
	if v.Part == "last" {
		return p.lastCommits(ctx, v, l)
	}
	r, err := p.listed(ctx, v, l, l.Rev)
	if err != nil {
		return err
	}

	data := newTreePage(l, r)
	data.LastURL = l.At("tree", l.Path) + "?" + url.Values{"at": {r.Commit}}.Encode()
	p.readme(ctx, v, data, r)

	title := l.Repo
	if l.Path != "" {
		title = l.Path
	}
	return v.Show(layout.Head{Title: title, Page: "tree", Scripts: []string{"js/file.js", "js/tree.js"}}, treeTemplate, data)
}

// listed returns the entries of a directory at a revision.
func (p *sources) listed(ctx context.Context, v *layout.Visit, l place, rev string) (*browse.ListTreeResponse, error) {
	return p.reader.ListTree(ctx, v.Viewer, browse.ListTreeRequest{Repo: l.Repo, Path: l.Path, Ref: rev, Sizes: true, MaxEntries: browse.MaxEntries})
}

// newTreePage returns the page of a directory without its README.
func newTreePage(l place, r *browse.ListTreeResponse) *treePage {
	data := &treePage{place: l, CommitURL: address(l.Repo, "", "commit", r.Commit), Short: short(r.Commit), Cut: r.Cut}
	for _, e := range r.Entries {
		row := treeEntry{Name: e.Name, Kind: e.Type, URL: l.At("blob", e.Path), Target: e.Target, History: l.At("commits", e.Path)}
		switch e.Type {
		case "tree":
			row.URL = l.At("tree", e.Path)
		case "commit":
			row.URL, row.Target = "", short(e.Target)
		default:
			row.Size = sizeOf(int64(e.Size))
		}
		data.Entries = append(data.Entries, row)
	}
	return data
}

// lastCommits shows the entries with their last commits, as of the commit on the page, because
// the branch may have moved.
func (p *sources) lastCommits(ctx context.Context, v *layout.Visit, l place) error {
	at := cmp.Or(v.Query.Get("at"), l.Rev)
	r, err := p.listed(ctx, v, l, at)
	if err != nil {
		return err
	}
	last, err := p.reader.LastCommits(ctx, v.Viewer, browse.LastCommitsRequest{Repo: l.Repo, Path: l.Path, Ref: at})
	if err != nil {
		return err
	}

	hashes := make(map[string]string, len(last.Entries))
	for _, e := range last.Entries {
		hashes[e.Name] = e.Hash
	}

	data := newTreePage(l, r)
	data.Told = true
	for i := range data.Entries {
		c, found := last.Commits[hashes[data.Entries[i].Name]]
		if !found {
			continue
		}
		row := p.commitRow(l.Repo, &browse.CommitInfo{Hash: c.Hash, Date: c.Date, Message: c.Message, AuthorName: c.AuthorName})
		data.Entries[i].Last = &row
	}
	return v.Show(layout.Head{}, entriesTemplate, data)
}

// readme adds the README of a directory to its page. If it cannot be read it is left out.
func (p *sources) readme(ctx context.Context, v *layout.Visit, data *treePage, r *browse.ListTreeResponse) {
	if data.Readme = readme(r.Entries); data.Readme == "" {
		return
	}

	data.ReadmeURL = data.At("blob", data.Readme)
	src, err := p.reader.Source(ctx, v.Viewer, browse.SourceRequest{Repo: data.Repo, Path: data.Readme, Ref: data.Rev})
	if err != nil || src.Binary {
		return
	}

	if markdown.Is(src.Language) && len(src.Content) > 0 {
		data.Document, data.Refused = p.document(ctx, data.place, data.Readme, src.Content, 2)
	}
	if data.Document == nil {
		data.Text = layout.Text(string(src.Content[:min(len(src.Content), 512<<10)]))
	}
}

// readme returns the path of a directory's README: a Markdown file if possible, else the first;
// "" for none.
func readme(entries []browse.TreeEntry) string {
	first := ""
	for _, e := range entries {
		name := strings.ToLower(e.Name)
		if e.Type == "tree" || name != "readme" && !strings.HasPrefix(name, "readme.") {
			continue
		}

		// The first Markdown file wins, because entries are sorted by name.
		if markdown.Named(name) {
			return e.Path
		}
		first = cmp.Or(first, e.Path)
	}
	return first
}
