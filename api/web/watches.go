package web

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/watch"
)

// Watches is what the pages of watches use. Each method checks that the viewer has an account.
type Watches interface {
	Watches(context.Context, catalog.Viewer) ([]watch.Info, error)
	Watch(ctx context.Context, v catalog.Viewer, id string) (*watch.Detail, error)
	CreateWatch(context.Context, catalog.Viewer, watch.Change) (*watch.Info, error)
	ChangeWatch(ctx context.Context, v catalog.Viewer, id string, req watch.Change) (*watch.Info, error)
	DeleteWatch(ctx context.Context, v catalog.Viewer, id string) (*watch.Info, error)
	NewFeed(ctx context.Context, v catalog.Viewer, id string) (*watch.FeedToken, error)
	EndFeed(ctx context.Context, v catalog.Viewer, id string) (*watch.Info, error)
	Feed(ctx context.Context, token string) (*watch.Detail, error)
	SetWebhook(ctx context.Context, v catalog.Viewer, id, address string) (*watch.Webhook, error)
	EndWebhook(ctx context.Context, v catalog.Viewer, id string) (*watch.Info, error)
}

var (
	watchesTemplate = layout.Parse(templates, "templates/watches.html", "templates/watchform.html")
	watchTemplate   = layout.Parse(templates, "templates/watch.html", "templates/watchform.html")
)

// MimeAtom is the content type of a feed.
const MimeAtom = "application/atom+xml; charset=utf-8"

// watching shows watches.
type watching struct {
	dating
	watches Watches
}

// watchRow is a watch in a list.
type watchRow struct {
	watch.Info
	URL, New string
	Found    layout.When // when it found something last
}

// watchForm is what the form of a watch contains.
type watchForm struct {
	Name, Query                       string
	Regexp, Case, Words, Shared, Mail bool
}

func (p *watching) rowOf(w *watch.Info) watchRow {
	row := watchRow{Info: *w, URL: "/watches/" + url.PathEscape(w.ID), Found: layout.At(p.now(), w.Last)}
	if w.New > 0 {
		row.New = layout.Grouping(w.New) + " new"
	}
	return row
}

// watchURL is the page that offers to watch a search; "" for a viewer without an account, and for a
// search that cannot be watched.
func watchURL(v *layout.Visit, b layout.Box) string {
	if v.Viewer.Account == "" || strings.TrimSpace(b.Query) == "" {
		return ""
	}
	b.Context, b.Grouped, b.Best = 0, false, false
	return "/watches?" + strings.TrimPrefix(searchURL(b, 0), "/search?")
}

// showWatches shows the watches of a viewer. A POST makes a watch.
func (p *watching) showWatches(ctx context.Context, v *layout.Visit) error {
	b, wrong := boxOf(v.Query), ""
	form := watchForm{Query: b.Query, Regexp: b.Regexp, Case: b.Case, Words: b.Whole}
	if v.Method == "POST" {
		made, err := p.make(ctx, v, &form)
		if err == nil {
			return v.Redirect(303, "/watches/"+url.PathEscape(made.ID))
		}
		if wrong, err = mistakeIn(v, err); err != nil {
			return err
		}
	}

	all, err := p.watches.Watches(ctx, v.Viewer)
	if err != nil {
		return err
	}
	data := struct {
		Form      watchForm
		Wrong     string
		Own, Rest []watchRow
	}{Form: form, Wrong: wrong}
	for i := range all {
		if row := p.rowOf(&all[i]); row.Mine {
			data.Own = append(data.Own, row)
		} else {
			data.Rest = append(data.Rest, row)
		}
	}
	return v.Show(layout.Head{Title: "Watches", Page: "settings", Side: "watches"}, watchesTemplate, data)
}

// make makes the watch of a form.
func (p *watching) make(ctx context.Context, v *layout.Visit, form *watchForm) (*watch.Info, error) {
	if err := v.SameSite(); err != nil {
		return nil, err
	}
	*form = formOf(v.Form)
	return p.watches.CreateWatch(ctx, v.Viewer, form.change())
}

func formOf(f url.Values) watchForm {
	on := func(name string) bool { return f.Get(name) != "" }
	return watchForm{f.Get("name"), f.Get("query"), on("regexp"), on("case"), on("words"), on("shared"), on("mail")}
}

func (f *watchForm) change() watch.Change {
	return watch.Change{Name: &f.Name, Query: &f.Query, Regexp: &f.Regexp, Case: &f.Case, Words: &f.Words, Shared: &f.Shared, Mail: &f.Mail}
}

// mistakeIn returns the text of an error that the reader can fix in the form, and sets the status.
// Other errors are returned.
func mistakeIn(v *layout.Visit, err error) (string, error) {
	if k := call.KindOf(err); k != nil && (k.Status == 400 || k.Status == 409) {
		v.Status = k.Status
		return err.Error(), nil
	}
	return "", err
}

// hitRow is a match in a list.
type hitRow struct {
	watch.Match
	Short, File string // of the commit; the page of the file
	When        layout.When
}

// pushRow is what one push brought.
type pushRow struct {
	watch.Found
	URL, Count, More string
	When             layout.When
	Rows             []hitRow
}

// watchOutcome is what came of a form on the page of a watch: what is shown this once, or what was wrong.
type watchOutcome struct {
	deleted bool
	token   *watch.FeedToken
	hook    *watch.Webhook
	form    *watchForm // as it was sent, if it was the form of the watch
	wrong   string     // what the reader can mend
}

// showWatch shows a watch and what it found. A POST changes the watch first.
func (p *watching) showWatch(ctx context.Context, v *layout.Visit) error {
	id, err := url.PathUnescape(strings.TrimPrefix(v.Path, "/watches/"))
	if err != nil {
		return call.Fail(call.ErrNotFound, "There is no such watch.")
	}

	var done watchOutcome
	if v.Method == "POST" {
		if done, err = p.changeWatch(ctx, v, id); err != nil {
			return err
		}
		if done.deleted {
			return v.Redirect(303, "/watches")
		}
	}

	d, err := p.watches.Watch(ctx, v.Viewer, id)
	if err != nil {
		return err
	}

	// The form has what is stored, unless the reader must mend what they sent.
	form := done.form
	if form == nil || done.wrong == "" {
		w := &d.Info
		form = &watchForm{w.Name, w.Query, w.Regexp, w.Case, w.Words, w.Shared, w.Mail}
	}

	data := struct {
		watchRow
		Wrong  string
		Token  *watch.FeedToken
		Hook   *watch.Webhook
		Form   *watchForm
		Search string
		Made   layout.When
		All    []pushRow
	}{
		watchRow: p.rowOf(&d.Info), Wrong: done.wrong, Token: done.token, Hook: done.hook, Form: form, Made: layout.At(p.now(), d.Info.Created),
		Search: searchURL(layout.Box{Query: d.Info.Query, Regexp: d.Info.Regexp, Case: d.Info.Case, Whole: d.Info.Words}, 0),
	}
	for i := range d.Found {
		data.All = append(data.All, p.pushRow(d.Info.Kind, &d.Found[i]))
	}
	return v.Show(layout.Head{Title: d.Info.Name, Page: "settings", Side: "watches"}, watchTemplate, data)
}

// changeWatch does what a form of the page of a watch asks for.
func (p *watching) changeWatch(ctx context.Context, v *layout.Visit, id string) (done watchOutcome, err error) {
	if err := v.SameSite(); err != nil {
		return done, err
	}

	switch v.Form.Get("do") {
	case "delete":
		_, err = p.watches.DeleteWatch(ctx, v.Viewer, id)
		done.deleted = err == nil
	case "feed":
		done.token, err = p.watches.NewFeed(ctx, v.Viewer, id)
	case "endfeed":
		_, err = p.watches.EndFeed(ctx, v.Viewer, id)
	case "webhook":
		done.hook, err = p.watches.SetWebhook(ctx, v.Viewer, id, v.Form.Get("url"))
	case "endwebhook":
		_, err = p.watches.EndWebhook(ctx, v.Viewer, id)
	default:
		sent := formOf(v.Form)
		done.form = &sent
		_, err = p.watches.ChangeWatch(ctx, v.Viewer, id, sent.change())
	}
	if err != nil {
		done.wrong, err = mistakeIn(v, err)
	}
	return done, err
}

func (p *watching) pushRow(kind string, f *watch.Found) pushRow {
	row := pushRow{Found: *f, URL: address(f.Repo, "", "tree", ""), Count: countOf(kind, f.Total), When: layout.At(p.now(), f.At)}
	for _, h := range f.Hits {
		r := hitRow{Match: h, Short: h.Commit[:min(len(h.Commit), 8)], When: layout.At(p.now(), h.At)}
		r.URL = address(f.Repo, "", "commit", h.Commit)
		if h.Path != "" {
			r.File = address(f.Repo, h.Commit, "blob", h.Path)
		}
		if h.Line > 0 {
			r.File += fmt.Sprintf("#L%d", h.Line)
		}
		row.Rows = append(row.Rows, r)
	}
	if more := f.Total - len(f.Hits); more > 0 {
		row.More = "and " + layout.Grouping(more) + " more"
	}
	return row
}

// countOf says how many things a watch found.
func countOf(kind string, n int) string {
	if kind == "commits" {
		return counted(n, "commit", "commits")
	}
	return counted(n, "file", "files")
}

// newest returns the watches of a viewer that found something in the last day, for the first page.
// A failure shows none.
func (p *watching) newest(ctx context.Context, v catalog.Viewer) (rows []watchRow) {
	if v.Account == "" || p.watches == nil {
		return nil
	}
	all, err := p.watches.Watches(ctx, v)
	if err != nil {
		return nil
	}
	for i := range all {
		if all[i].Mine && (all[i].New > 0 || all[i].Problem != "") {
			rows = append(rows, p.rowOf(&all[i]))
		}
	}
	return rows
}

// WatchFeed writes what a watch found as an Atom feed.
func WatchFeed(base string, d *watch.Detail) ([]byte, error) {
	page := base + "/watches/" + url.PathEscape(d.Info.ID)
	out := atom{Title: layout.Plain(d.Info.Name), ID: page, Link: atomLink{page}, Updated: stamp(d.Info.Created)}
	for i := range d.Found {
		f := &d.Found[i]
		if i == 0 {
			out.Updated = stamp(f.At)
		}
		e := atomEntry{
			Title: layout.Plain(countOf(d.Info.Kind, f.Total) + " in " + f.Repo), ID: "urn:shoal:watch:" + d.Info.ID + ":" + f.ID, Updated: stamp(f.At),
			Author: "Shoal", Link: atomLink{page},
		}
		var text strings.Builder
		for _, h := range f.Hits {
			text.WriteString(layout.Plain(hitText(&h)) + "\n")
		}
		if len(f.Hits) == 1 {
			e.Title, e.Link = layout.Plain(f.Repo+": "+f.Hits[0].Title), atomLink{f.Hits[0].URL}
		}
		e.Content = text.String()
		out.Entries = append(out.Entries, e)
	}
	text, err := xml.MarshalIndent(out, "", " ")
	return append([]byte(xml.Header), text...), err
}

// hitText writes a match on one line.
func hitText(h *watch.Match) string {
	text := h.Title
	if h.Path != "" {
		text = h.Path + ": " + text
	}
	if h.Author != "" {
		text += " (" + h.Author + ")"
	}
	return text + " " + h.URL
}
