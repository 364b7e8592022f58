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

// treeEntry is an entry of a directory.
type treeEntry struct {
	Name, Kind, Size string
	URL              string // "" for a submodule, whose files are in another repository
	Target           string // of a symbolic link; for a submodule its commit
	History          string
	Last             *commitRow // last commit that changed it; nil if unknown
}

// treePage is the data of a directory.
type treePage struct {
	place
	CommitURL, Short string
	LastURL          string // address of the entries with their last commits
	Entries          []treeEntry
	Told             bool // the entries have their last commits
	Cut              bool
	Readme           string
	ReadmeURL        string
	Document         *document     // the rendered README
	Refused          string        // why it is not rendered
	Text             template.HTML // its source, if it is not rendered
}

// tree shows a directory with its README. A script then requests the entries again, with their last
// commits, which take longer to find.
func (p *sources) tree(ctx context.Context, v *layout.Visit, l place) error {
	if v.Part == "last" {
		return p.lastCommits(ctx, v, l)
	}
	r, err := p.list(ctx, v, l, l.Rev)
	if err != nil {
		return err
	}

	data := newTreePage(l, r)
	data.LastURL = l.At("tree", l.Path) + "?" + url.Values{"at": {r.Commit}}.Encode()
	p.addReadme(ctx, v, data, r)

	title := l.Repo
	if l.Path != "" {
		title = l.Path
	}
	return v.Show(layout.Head{Title: title, Page: "tree", Scripts: []string{"js/file.js", "js/tree.js"}}, treeTemplate, data)
}

// list returns the entries of a directory at a revision.
func (p *sources) list(ctx context.Context, v *layout.Visit, l place, rev string) (*browse.ListTreeResponse, error) {
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

// lastCommits answers a script with the entries and their last commits. They are those of the commit on
// the page, because the branch may have moved since.
func (p *sources) lastCommits(ctx context.Context, v *layout.Visit, l place) error {
	at := cmp.Or(v.Query.Get("at"), l.Rev)
	r, err := p.list(ctx, v, l, at)
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

// addReadme adds the README of a directory to its page: as a document, or as text. It leaves out one
// that cannot be read.
func (p *sources) addReadme(ctx context.Context, v *layout.Visit, data *treePage, r *browse.ListTreeResponse) {
	if data.Readme = findReadme(r.Entries); data.Readme == "" {
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

// findReadme returns the path of a directory's README: the first Markdown file with that name, otherwise
// the first file; "" if there is none.
func findReadme(entries []browse.TreeEntry) string {
	first := ""
	for _, e := range entries {
		name := strings.ToLower(e.Name)
		if e.Type == "tree" || name != "readme" && !strings.HasPrefix(name, "readme.") {
			continue
		}

		if markdown.Named(name) {
			return e.Path
		}
		first = cmp.Or(first, e.Path)
	}
	return first
}
