package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/suggest"
)

// Limits of a page of results. A range is the place of one match.
const (
	pageMatches  = 250                    // ranges on a page
	perFile      = 25                     // ranges of one file, so that there is room for other files
	typedMatches = 60                     // ranges on a page while somebody types the query
	typedPerFile = 6                      // ranges of one file, then
	mostMatches  = 20_000                 // ranges on all pages together
	typedTime    = 400 * time.Millisecond // of a search while somebody types the query
)

var searchTemplate = layout.Parse(templates, "templates/search.html", "templates/facets.html", "templates/goto.html")

// boxOf returns the state of the search box in an address. It knows the names of Sourcebot, and old
// names of this site.
func boxOf(v url.Values) layout.Box {
	// Checkboxes send "on", scripts "true", and people type "1".
	isSet := func(names ...string) bool {
		for _, n := range names {
			if s := v.Get(n); s == "true" || s == "1" || s == "on" {
				return true
			}
		}
		return false
	}

	query := strings.ReplaceAll(v.Get("query"), "\u00a0", " ") // wikis and chats replace spaces
	if in := v.Get("in"); in != "" && strings.TrimSpace(query) != "" {
		query = in + " " + grouped(query)
	}

	return layout.Box{
		Query:   query,
		Regexp:  isSet("isRegexEnabled", "regex"),
		Case:    isSet("isCaseSensitivityEnabled", "case"),
		Whole:   isSet("whole"),
		Context: contextOf(v.Get("ctx")),
		Grouped: v.Get("group") == "repo",
		Best:    v.Get("order") == "best",
	}
}

// contexts has the numbers of lines around a match that a reader can choose.
var contexts = []int{1, 3, 10}

// contextOf parses a number of lines around a match; 0, which means the first of contexts, for that and
// for a number that a reader cannot choose.
func contextOf(s string) int {
	n, _ := strconv.Atoi(s)
	if at := slices.Index(contexts, n); at > 0 {
		return n
	}
	return 0
}

// search shows the page of results. If the search takes a while, it sends the page's frame first, so
// that the browser shows the search box, and then the progress. Scripts request parts of the page.
func (p *searching) search(ctx context.Context, v *layout.Visit) error {
	box := boxOf(v.Query)
	if strings.TrimSpace(box.Query) == "" {
		return v.Redirect(303, "/")
	}

	// A box on the page of a repository sends its limit as "in". Redirect to the search's usual address.
	if v.Query.Has("in") && v.Part == "" {
		return v.Redirect(303, searchURL(box, 0))
	}

	r := &results{Box: box, now: p.now, typed: v.Part == "typed", Changes: changeQuery.MatchString(box.Query)}
	r.Watch = watchURL(v, box)
	if v.Part == "goto" {
		r.setTargets(p.suggester.GoTo(ctx, v.Viewer, box.Query))
		return v.Show(r.head(), searchTemplate.Lookup("goto.html"), r)
	}
	req, err := r.request()
	if err != nil {
		r.setTargets(p.suggester.GoTo(ctx, v.Viewer, box.Query))
		return r.refuse(v, err)
	}
	r.begin(v.Query.Get("from"), &req)
	if v.Query.Has("trend") && v.Part == "" {
		return p.trend(ctx, v, box)
	}
	if v.Part == "facets" {
		return p.showFacets(ctx, v, r)
	}

	began, progress := p.now(), &search.Progress{}
	req.Progress = progress
	ended := inBackground(func() (*heap, error) {
		if r.Changes {
			return p.findCommits(ctx, v.Viewer, r, v.Query.Get("after"))
		}
		return p.findFiles(ctx, v.Viewer, r, req)
	})
	var goTo []suggest.Target
	if r.From == 0 && !r.Changes {
		goTo = p.suggester.GoTo(ctx, v.Viewer, box.Query) // while the search runs
	}

	fillPage := func(o outcome[*heap]) error {
		r.took = p.now().Sub(began)
		r.setTargets(goTo)
		h, err := o.get()
		if err == nil {
			p.showFound(ctx, v, r, h)
		}
		return err
	}

	if o, ok := waitBriefly(ended); ok {
		if err := fillPage(o); err != nil {
			return r.refuse(v, err)
		}
		return r.show(v)
	}

	v.Mime = layout.MimeHTML
	v.Stream = func(w *bufio.Writer) error {
		if v.Part == "" {
			v.Begin(w, r.head())
		}

		o, err := await(w, ended, progress, began, p.now)
		if err != nil {
			return err
		}
		if err := fillPage(o); err != nil {
			r.Trouble = troubleOf(err, box.Query)
		}
		return r.writeContent(v, w)
	}
	return nil
}

// showFound sets the page's fields from what a search has found. For a first page it adds the nearest
// search, and if the page is empty, near misses. If a reader without scripts requests a count, it adds
// that.
func (p *searching) showFound(ctx context.Context, v *layout.Visit, r *results, h *heap) {
	if h.commits != nil {
		r.fillCommits(h.commits)
		return
	}
	r.fill(h)
	if r.From == 0 && !isTrace(r.goTo) {
		if n := p.suggester.Nearest(ctx, v.Viewer, *r.asked, h.last); n != nil {
			r.Nearest = r.nearestOf(n)
		}
	}
	if r.Empty {
		r.emptySummary()
	}
	if r.Empty && r.Nearest == nil && r.GoTo == nil && r.From == 0 && !r.typed {
		r.Near = p.nearMisses(ctx, v.Viewer, r.Box)
	}

	if r.Narrow.Count != "" && wantsCount(v) {
		if n, err := p.countFacets(ctx, v.Viewer, r, "all"); err == nil {
			r.Narrow, r.Summary = n, n.Summary
		} else {
			r.Narrow.Note = "The count did not succeed."
		}
	}
}

// findFiles searches for the files of a page.
func (p *searching) findFiles(ctx context.Context, v catalog.Viewer, r *results, req search.Request) (*heap, error) {
	// One search is enough while somebody types, where a page has the first matches only, and in one
	// file, where the limit of the search is the end of the page.
	if r.typed || r.within {
		resp, err := p.searcher.Search(ctx, v, req)
		if err != nil {
			return nil, err
		}
		h := &heap{more: endsAtLimit(resp, req.Matches)}
		h.add(resp, resp.Files)
		return h, nil
	}
	return p.gather(ctx, v, req, r.From+pageMatches)
}

// results is the page of results, for its template.
type results struct {
	layout.Box
	From     int
	Trouble  *trouble
	Proof    proof
	Hints    []hint
	Narrow   narrowing
	Chips    []chip
	Files    template.HTML
	Repos    []repoRow
	Summary  string
	Empty    bool
	Near     []nearMiss
	Nearest  *nearest // search for most of the query's words; nil if there is none
	GoTo     []goRow
	Trace    bool   // GoTo has the frames of a call stack
	Next     string // address of the next page; "" for none
	End      string // why the last of several pages has no next one
	CountAll string // address of the search with count:all; "" if it would count no more
	Copies   []copyAs
	Views    []viewList
	Trend    string   // address of the search over time
	Watch    string   // address of the page that offers to watch the search; "" for none
	Changes  bool     // the search is for commits
	Sides    []view   // links to a search for commits in added or removed lines
	Notes    []string // hints about the query

	goTo   []suggest.Target
	asked  *search.Request // the search without what this package adds to its query
	typed  bool            // somebody is typing the query
	within bool            // the query is about one file
	took   time.Duration
	now    func() time.Time
}

// request returns the search of the page, or the error of its query. It also sets r.asked.
func (r *results) request() (search.Request, error) {
	req := search.Request{
		Query:         r.Query,
		Regexp:        r.Regexp,
		CaseSensitive: r.Case,
		Words:         r.Whole,
		ContextLines:  max(r.Context, contexts[0]),
		Matches:       pageMatches,
		PerFile:       perFile,
		Lexed:         true,
	}

	// Check the query before adding to it, so that the position of a mistake is that in the box.
	if err := parseError(req); err != nil {
		return req, err
	}

	plain := req
	r.asked = &plain
	if r.typed {
		req.Matches, req.PerFile = typedMatches, typedPerFile
		if !strings.Contains(req.Query, "timeout:") {
			req.Query = "timeout:" + typedTime.String() + " " + req.Query
		}
	}

	return req, nil
}

// setTargets sets the links to the places that the query names.
func (r *results) setTargets(list []suggest.Target) {
	r.goTo, r.GoTo, r.Trace = list, nil, isTrace(list)
	if len(list) > 0 {
		r.GoTo = goRows(list)
	}
}

// emptySummary sets the summary of a page without results.
func (r *results) emptySummary() {
	switch {
	case r.Nearest != nil:
		r.Summary = "Nothing has this text"
	case r.Trace:
		r.Summary = "A call stack with " + counted(len(r.goTo), "frame", "frames") + " that are here"
	case r.GoTo != nil:
		r.Summary = "Nothing has this as text"
	case strings.ContainsAny(strings.TrimSpace(r.Box.Query), " \t"):
		r.Summary = "Nothing has all of this"
	default:
		r.Summary = "Nothing has this text"
	}
}

// begin sets r.From, the number of ranges on the pages before this one, and r.within. For a query about
// one file it changes req to find all ranges up to the end of this page.
func (r *results) begin(from string, req *search.Request) {
	r.From, _ = strconv.Atoi(from)
	r.From = max(0, min(r.From, search.MaxMatches-pageMatches))

	// One file is small, so the search finds the earlier ranges again, and counts all matches.
	if r.within = !r.typed && isOfOneFile(*req); r.within {
		req.Matches, req.PerFile = r.From+pageMatches, 0
		req.Query = "count:all " + req.Query
	}
}

func (r *results) head() layout.Head {
	return layout.Head{Title: r.Query, Page: "search", Box: r.Box, Scripts: []string{"js/search.js"}}
}

func (r *results) show(v *layout.Visit) error {
	return v.Show(r.head(), searchTemplate, r)
}

// writeContent writes the page after its head, which was sent while the search ran.
func (r *results) writeContent(v *layout.Visit, w *bufio.Writer) error {
	var b bytes.Buffer
	if err := searchTemplate.Execute(&b, r); err != nil {
		return err
	}
	if v.Part == "" {
		v.End(&b, r.head())
	}
	_, err := w.Write(b.Bytes())
	return errors.Join(err, w.Flush())
}

// refuse shows the page with the mistake in its query, and sets the status. It returns other errors,
// which get an error page.
func (r *results) refuse(v *layout.Visit, err error) error {
	var e *call.Error
	kinds := []error{call.ErrQuery, call.ErrContextNotFound, call.ErrTooLarge, call.ErrRef}
	if !errors.As(err, &e) || !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		return err
	}
	r.Trouble = troubleOf(err, r.Query)
	r.Bad = true
	switch {
	case v.Part == "typed":
		// Keep the status 200: somebody is still typing the query.
	case errors.Is(err, call.ErrContextNotFound):
		v.Status = 404
	case errors.Is(err, call.ErrTooLarge):
		v.Status = 413
	default:
		v.Status = 400
	}
	return r.show(v)
}

// fill sets the page's fields from the answer of a search for files or repositories.
func (r *results) fill(h *heap) {
	resp := h.last
	files, repos := r.filesOfPage(h), resp.Repositories
	r.Files = template.HTML(r.appendFiles(nil, files, h.branches))

	r.Views, r.Hints = viewsOf(r.Box), hintsOf(r.Box)
	exact := countedExactly(resp, r.within || countsAll(r.Query))
	r.Proof = proofOf(resp, exact, r.took)
	r.Narrow, r.Chips = r.narrow(resp), chipsOf(r.Box)
	r.Summary = summaryOf(resp, exact)
	if r.within && len(resp.Files) > 0 && len(resp.Files) == resp.Stats.Files {
		r.Summary = countShown(resp.Files)
	}
	r.Copies = copiesOf(r.Box)
	if len(files) == 0 && len(h.files) == 0 {
		r.Repos = dating{r.now}.repoRows(repos[min(len(repos), r.From):min(len(repos), r.From+pageMatches)], r.Box)
	}
	r.Empty = len(files) == 0 && len(r.Repos) == 0 && r.From == 0
	if len(r.Repos) == 0 && !strings.Contains(r.Query, "at:") {
		r.Trend = searchURL(r.Box, 0) + "&trend=month"
	}

	if !resp.Coverage.Exhaustive() && !r.within && !strings.Contains(r.Query, "count:") {
		all := r.Box
		all.Query = "count:all " + r.Query
		r.CountAll = searchURL(all, 0)
	}
}

// filesOfPage returns the files of this page, and sets the link to the next page, or why there is none.
func (r *results) filesOfPage(h *heap) []search.File {
	if r.typed {
		return h.files
	}

	if r.within { // the ranges of one file are divided into pages
		if h.more && r.From < search.MaxMatches-pageMatches {
			r.Next = searchURL(r.Box, r.From+pageMatches)
		}
		return withoutFirst(h.files, r.From, max(r.Context, contexts[0]))
	}

	files, end := h.page(r.From)
	all := h.size()
	if len(h.files) == 0 {
		end = min(all, r.From+pageMatches)
	}
	switch {
	case end < all, h.more:
		r.Next = searchURL(r.Box, max(end, r.From+1))
	case h.ends:
		r.End = "Pages end here. A filter or a longer word leaves less to look through."
	case r.From > 0:
		r.End = "That is all."
	}
	return files
}

// appendFiles appends the files of the page, with the default branches of their
// repositories.
func (r *results) appendFiles(dst []byte, files []search.File, branches map[uint32]string) []byte {
	if r.Grouped {
		files = byRepository(files)
	}

	// The first page has all chunks, folded; later pages link to them. A single file is not folded.
	show := linked
	switch {
	case r.within:
		show = entire
	case len(files) == 1 && r.From == 0 && !r.typed:
		show = opened
	case r.From == 0 && !r.typed:
		show = folded
	}

	m := markingOf(r.Box)
	for i := range files {
		if r.Grouped && (i == 0 || files[i].RepoID != files[i-1].RepoID) {
			dst = fmt.Appendf(dst, "<h2 class=\"group\">%s</h2>\n", layout.Name(files[i].Repository))
		}
		dst = appendFile(dst, &files[i], branches[files[i].RepoID], r.Box, m, show)
	}
	return dst
}

// countShown returns the number of matches in the files of a page, in words.
func countShown(files []search.File) string {
	sum := 0
	for i := range files {
		sum += files[i].Matches
	}
	return counted(sum, "match", "matches") + " in " + counted(len(files), "file", "files")
}

// byRepository puts the files of each repository together, the repositories in the
// order of their best files.
func byRepository(files []search.File) []search.File {
	first := map[uint32]int{} // index of a repository's first file
	for i := range files {
		if _, known := first[files[i].RepoID]; !known {
			first[files[i].RepoID] = i
		}
	}
	out := slices.Clone(files)
	slices.SortStableFunc(out, func(a, b search.File) int { return first[a.RepoID] - first[b.RepoID] })
	return out
}

// view is a link to the same search, shown in another way.
type view struct {
	Name, URL string
	Here      bool
}

// viewList is a choice between views.
type viewList struct {
	Name  string
	Views []view
}

// viewsOf returns the choices of how to show results: their order, and the lines around a match.
func viewsOf(b layout.Box) []viewList {
	order, around := viewList{Name: "Order"}, viewList{Name: "Around a match"}

	for _, grouped := range []bool{false, true} {
		other := b
		other.Grouped = grouped
		name := map[bool]string{false: "best files first", true: "by repository"}[grouped]
		order.Views = append(order.Views, view{name, searchURL(other, 0), other == b})
	}

	for _, n := range contexts {
		other := b
		other.Context = contextOf(strconv.Itoa(n))
		around.Views = append(around.Views, view{counted(n, "line around", "lines around"), searchURL(other, 0), other == b})
	}

	return []viewList{order, around}
}
