package web

import (
	"context"
	"encoding/xml"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/shard/query"
)

var (
	homeTemplate  = layout.Parse(templates, "templates/home.html", "templates/parts.html")
	reposTemplate = layout.Parse(templates, "templates/repos.html", "templates/parts.html")
	helpTemplate  = layout.Parse(templates, "templates/help.html")
	looksTemplate = layout.Parse(templates, "templates/looks.html") // shows every component of pages
)

// repoRow is a repository in a list.
type repoRow struct {
	Name, URL, Search  string
	Branch             string
	Description        string
	Revisions          int
	Size               string
	Stars              string // "" for none
	Indexed, Pushed    layout.When
	Error              string
	Fork, Archived     bool
	Fresh              bool // the repository has an index
	Connections        []string
	External, HostKind string
	ID                 uint32
}

func (d dating) rowOf(r *browse.RepoInfo) repoRow {
	row := repoRow{
		ID: r.ID, Name: r.Name, URL: address(r.Name, "", "tree", ""), Search: searchURL(layout.Box{Query: "reposet:" + query.Quote(r.Name) + " "}, 0),
		Branch: r.DefaultBranch, Description: r.Description, Revisions: len(r.Revisions), Error: r.Error, Fork: r.Fork, Archived: r.Archived,
		Fresh: !r.IndexedAt.IsZero(), Connections: r.Connections, External: r.ExternalWebURL, HostKind: r.HostKind,
	}
	row.Indexed, row.Pushed = layout.At(d.now(), r.IndexedAt), layout.At(d.now(), r.PushedAt)
	if row.Fresh {
		row.Size = sizeOf(r.TextBytes)
	}
	if r.Stars > 0 {
		row.Stars = counted(int(r.Stars), "star", "stars")
	}
	return row
}

// ago says how long ago a time was; "" for the zero time.
func (d dating) ago(t time.Time) string { return layout.Distance(d.now(), t) }

// repoRows returns the rows of an answer that lists repositories, each with a search for the query in
// its files. Repositories with the query in their name come first, and before them those with that very
// name.
func (d dating) repoRows(repos []browse.RepoInfo, b layout.Box) []repoRow {
	rest := withoutTypes(b.Query)
	rows := make([]repoRow, len(repos))
	for i := range repos {
		r := &repos[i]

		// Group the rest, so that the repository applies to both sides of an "or".
		in := b
		in.Query = strings.TrimSpace("reposet:" + query.Quote(r.Name) + " " + grouped(rest))
		rows[i] = d.rowOf(r)
		rows[i].Search = searchURL(in, 0)
	}

	word := strings.ToLower(rest)
	nearness := func(r repoRow) int {
		name := strings.ToLower(r.Name)
		switch {
		case word == "" || !strings.Contains(name, word):
			return 2
		case path.Base(name) == word:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(rows, func(a, b repoRow) int { return nearness(a) - nearness(b) })
	return rows
}

// withoutTypes returns a query without its type filters.
func withoutTypes(q string) string {
	for {
		tokens := tokensOf(q)
		at := slices.IndexFunc(tokens, func(t token) bool { return t.filter == "type" })
		if at < 0 {
			return q
		}
		// Parse again after each removal, which may also remove an operator.
		q = without(q, tokens, at)
	}
}

// home shows the first page: the search box, example queries, and the newest repositories.
func (p *Pages) home(ctx context.Context, v *layout.Visit) error {
	return p.overview.home(ctx, v, p.searching, &p.watching)
}

func (p *overview) home(ctx context.Context, v *layout.Visit, s searching, w *watching) error {
	if v.Query.Get("query") != "" { // an old address of a search
		return v.Redirect(303, searchURL(boxOf(v.Query), 0))
	}
	r, err := p.reader.Repos(ctx, v.Viewer, browse.ReposRequest{Sort: "pushed", Desc: true, PerPage: 20})
	if err != nil {
		return err
	}

	data := struct {
		Examples        []example
		Rows            []repoRow
		Total           string
		Indexed, Failed int
		More            bool
		Watches         []watchRow // that found something since yesterday, or cannot
	}{Total: counted(r.Total, "repository", "repositories"), More: r.Total > len(r.Repos), Watches: w.newest(ctx, v.Viewer)}
	for i := range r.Repos {
		data.Rows = append(data.Rows, p.rowOf(&r.Repos[i]))
	}
	if len(data.Rows) > 0 {
		data.Examples = s.examples(ctx, v, &data.Rows[0])
	}
	return v.Show(layout.Head{Page: "home", Scripts: []string{"js/search.js"}, Box: layout.Box{Focus: true}}, homeTemplate, data)
}

// plainName matches a name that needs no quotes in a query.
var plainName = regexp.MustCompile(`^[\w.-]+$`)

// example is a query for a reader to try, and the page of its results.
type example struct{ Query, URL string }

// examples returns queries that find something for the viewer: a word in the newest repository, a
// symbol, and a source position as a compiler prints it. It leaves out those that would find nothing.
func (p *searching) examples(ctx context.Context, v *layout.Visit, newest *repoRow) []example {
	const begin = "sym:new"
	name := newest.Name[strings.LastIndexByte(newest.Name, '/')+1:]
	if plainName.FindString(name) == "" {
		name = query.Quote(name)
	}
	queries := []string{"repo:" + name + " TODO"}
	todo, err := p.searcher.Search(ctx, v.Viewer, search.Request{Query: "reposet:" + query.Quote(newest.Name) + " timeout:" + quickCount.String() + " TODO", Matches: 1})
	if err != nil || len(todo.Files) == 0 {
		queries = nil
	}

	list, _ := p.suggester.Complete(ctx, v.Viewer, begin, len(begin))
	at := slices.IndexFunc(list, func(s suggest.Suggestion) bool { return s.Kind == suggest.Symbol })
	if at >= 0 {
		queries = append(queries, "sym:"+list[at].Label, list[at].Label)
		if _, path, ok := strings.Cut(list[at].Detail, " in "); ok {
			queries = append(queries, path+":1")
		}
	}

	out := make([]example, len(queries))
	for i, q := range queries {
		out[i] = example{q, searchURL(layout.Box{Query: q}, 0)}
	}
	return out
}

// reposPerPage is the number of repositories on a page of the list.
const reposPerPage = 100

// repos shows the list of repositories.
func (p *overview) repos(ctx context.Context, v *layout.Visit) error {
	q := v.Query
	page, _ := strconv.Atoi(q.Get("page"))
	req := browse.ReposRequest{
		Query:      q.Get("query"),
		Connection: q.Get("connection"),
		Sort:       "name",
		Page:       max(1, page),
		PerPage:    reposPerPage,
	}

	if sort := q.Get("sort"); sort == "pushed" || sort == "stars" {
		req.Sort, req.Desc = sort, true
	}

	r, err := p.reader.Repos(ctx, v.Viewer, req)
	if err != nil {
		return err
	}

	data := struct {
		Query, Connection, Sort string
		Total                   string
		Rows                    []repoRow
		Newer, Older            string
	}{Query: req.Query, Connection: req.Connection, Sort: req.Sort, Total: counted(r.Total, "repository", "repositories")}

	for i := range r.Repos {
		data.Rows = append(data.Rows, p.rowOf(&r.Repos[i]))
	}

	pageURL := func(n int) string {
		q.Set("page", fmt.Sprint(n))
		return "/repos?" + q.Encode()
	}

	if req.Page > 1 {
		data.Newer = pageURL(req.Page - 1)
	}
	if hasNextPage(req.Page, reposPerPage, r.Total) {
		data.Older = pageURL(req.Page + 1)
	}
	return v.Show(layout.Head{Title: "Repositories", Page: "repos"}, reposTemplate, data)
}

// hasNextPage reports whether a list has a page after this one. It does not multiply page, which comes
// from the address and may be so large that the product would overflow.
func hasNextPage(page, perPage, total int) bool { return page < (total+perPage-1)/perPage }

// help shows the page about the query language and the keys, or the page of all components.
func (p *overview) help(_ context.Context, v *layout.Visit) error {
	topic := v.Path[len("/help/"):]
	if topic == "looks" {
		return v.Show(layout.Head{Title: "Looks", Page: "help"}, looksTemplate, layout.Icons())
	}
	if topic != "syntax" && topic != "keys" {
		return call.Fail(call.ErrNotFound, "There is no help on that.")
	}
	return v.Show(layout.Head{Title: "Help", Page: "help"}, helpTemplate, struct {
		Filters, Examples [][2]string
		Keys              []keyRow
		Single            []string
	}{filterHelp(), exampleHelp, keyHelp, singleKeys()})
}

// filterHelp returns rows that explain operators, then filters.
func filterHelp() [][2]string {
	rows := [][2]string{
		{"foo bar", "both, anywhere in a file; letters match in either case unless the case toggle is on"},
		{`"foo bar"`, `the text as it stands; \" is a quote`},
		{"foo or bar", "one of them; and binds tighter"},
		{"-foo  -file:x  -(a or b)", "not"},
	}
	for _, f := range query.Filters() {
		rows = append(rows, [2]string{f.Written(), f.Sentence()})
	}
	return rows
}

var exampleHelp = [][2]string{
	{`lang:go "func main"`, "programs in Go"},
	{`sym:^New -file:_test\.`, "constructors, not in tests"},
	{`TODO or FIXME count:all`, "every one of them, counted exactly"},
}

// keyRow is a line of the table of keys.
type keyRow struct {
	Keys, Does string
	single     []string // keys without a modifier, which a reader may change
}

var keyHelp = []keyRow{
	{"/ or s", "to the search box, with the selected text", []string{"/", "s"}},
	{"?", "these keys", []string{"?"}},
	{"Ctrl+K", "pages, repositories, files and symbols by a few letters", nil},
	{"g h, g r, g c, g s", "home, repositories, cluster, settings", []string{"g"}},
	{"Alt+r, Alt+c, Alt+w", "regular expression, case, whole words", nil},
	{"j k", "next and previous file of the results, of a change", []string{"j", "k"}},
	{"n p", "next and previous match, next and previous place that changed", []string{"n", "p"}},
	{"o", "open it", []string{"o"}},
	{"e", "more lines around the matches: 1, 3, 10", []string{"e"}},
	{"w", "go on with long lines in the next row, or not; in a change, count blanks or ignore them", []string{"w"}},
	{"x, X", "fold and unfold the file, all files", []string{"x", "X"}},
	{"b, h", "blame, history of the file", []string{"b", "h"}},
	{"m", "Markdown as a document, or its source", []string{"m"}},
	{"l", "go to a line of the file", []string{"l"}},
	{"r", "definitions and references of the selected name, or of one that you type", []string{"r"}},
	{"f", "search in this file", []string{"f"}},
	{".", "open the line in your editor", []string{"."}},
	{"[ ]", "show and hide the files, the symbols", []string{"[", "]"}},
	{"t, T", "find a file by letters of its path, a symbol by letters of its name", []string{"t", "T"}},
	{"y", "address of this very commit", []string{"y"}},
	{"Down, Tab, Enter", "choose and take a suggestion of the box", nil},
	{"Esc", "close what is open, stop the search, leave the box", nil},
}

// singleKeys returns the keys that a reader may change.
func singleKeys() []string {
	var out []string
	for _, row := range keyHelp {
		out = append(out, row.single...)
	}
	return out
}

// openSearch describes the search to browsers, which can then offer it in their address bar.
func (p *overview) openSearch(_ context.Context, v *layout.Visit) error {
	// The format requires the name Url, and a literal {searchTerms}.
	type address struct {
		Type     string `xml:"type,attr"`
		Template string `xml:"template,attr"`
	}

	// The address must be absolute, because a browser stores it without the site.
	text, err := xml.MarshalIndent(struct {
		XMLName       xml.Name `xml:"http://a9.com/-/spec/opensearch/1.1/ OpenSearchDescription"`
		ShortName     string
		Description   string
		InputEncoding string
		URL           address `xml:"Url"`
	}{ShortName: "Shoal", Description: "Search code", InputEncoding: "UTF-8", URL: address{"text/html", p.base() + "/search?query={searchTerms}"}}, "", "  ")

	v.Mime, v.Body = "application/opensearchdescription+xml", append([]byte(xml.Header), text...)
	return err
}
