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

// The size of a page of results.
const (
	pageMatches  = 250    // ranges
	perFile      = 25     // of them from one file, so that it leaves room for others
	typedMatches = 60     // ranges, while somebody types
	typedPerFile = 6      // of them from one file
	mostMatches  = 20_000 // ranges that pages are turned through
	typedTime    = 400 * time.Millisecond
)

var searchTemplate = layout.Parse(templates, "templates/search.html", "templates/facets.html", "templates/goto.html")

// boxOf reads the search box out of an address: the names of the reference
// product, and those that this site had before.
func boxOf(v url.Values) layout.Box {
	// A box of HTML sends on, a script true, a person types 1.
	yes := func(names ...string) bool {
		for _, n := range names {
			if s := v.Get(n); s == "true" || s == "1" || s == "on" {
				return true
			}
		}
		return false
	}

	query := strings.ReplaceAll(v.Get("query"), "\u00a0", " ") // as wikis and chats paste it
	if in := v.Get("in"); in != "" && strings.TrimSpace(query) != "" {
		query = in + " " + grouped(query)
	}

	return layout.Box{
		Query:   query,
		Regexp:  yes("isRegexEnabled", "regex"),
		Case:    yes("isCaseSensitivityEnabled", "case"),
		Whole:   yes("whole"),
		Context: contextOf(v.Get("ctx")),
		Grouped: v.Get("group") == "repo",
		Best:    v.Get("order") == "best",
	}
}

// contexts lists the choices for the number of lines around a match.
var contexts = []int{1, 3, 10}

// contextOf reads a number of lines; 0 is the first of contexts, and what no page offers.
func contextOf(s string) int {
	n, _ := strconv.Atoi(s)
	if at := slices.Index(contexts, n); at > 0 {
		return n
	}
	return 0
}

// search shows the page of results. If the search takes a while, it sends the frame first, so that
// the browser has the styles and the search box.
func (p *searching) search(ctx context.Context, v *layout.Visit) error {
	box := boxOf(v.Query)
	if strings.TrimSpace(box.Query) == "" {
		return v.Redirect(303, "/")
	}

	// The same search has one address, from whatever page it was sent.
	if v.Query.Has("in") && v.Part == "" {
		return v.Redirect(303, searchURL(box, 0))
	}

	r := &results{Box: box, now: p.now, typed: v.Part == "typed", Changes: changeQuery.MatchString(box.Query)}
	r.Watch = watchURL(v, box)
	if v.Part == "goto" {
		r.targets(p.suggester.GoTo(ctx, v.Viewer, box.Query))
		return v.Show(r.head(), searchTemplate.Lookup("goto.html"), r)
	}
	req, err := r.request()
	if err != nil {
		r.targets(p.suggester.GoTo(ctx, v.Viewer, box.Query))
		return r.refuse(v, err)
	}
	r.begin(v.Query.Get("from"), &req)
	if v.Query.Has("trend") && v.Part == "" {
		return p.trend(ctx, v, box)
	}
	if v.Part == "facets" {
		return p.counts(ctx, v, r)
	}

	began, progress := p.now(), &search.Progress{}
	req.Progress = progress
	ended := inBackground(func() (*heap, error) {
		if r.Changes {
			return p.findCommits(ctx, v.Viewer, r, v.Query.Get("after"))
		}
		return p.lookFor(ctx, v.Viewer, r, req)
	})
	var goTo []suggest.Target
	if r.From == 0 && !r.Changes {
		goTo = p.suggester.GoTo(ctx, v.Viewer, box.Query) // beside the search
	}

	answer := func(o outcome[*heap]) error {
		r.took = p.now().Sub(began)
		r.targets(goTo)
		h, err := o.taken()
		if err == nil {
			p.tell(ctx, v, r, h)
		}
		return err
	}

	if o, quick := inTime(ended); quick {
		if err := answer(o); err != nil {
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
		if err := answer(o); err != nil {
			r.Trouble = troubleOf(err, box.Query)
		}
		return r.rest(v, w)
	}
	return nil
}

// tell puts the answer on the page, and adds what helps when there is none: the nearest query and
// near misses.
func (p *searching) tell(ctx context.Context, v *layout.Visit, r *results, h *heap) {
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

	// Without scripts the count comes with the page that asks for it.
	if r.Narrow.Count != "" && wantsCount(v) {
		if n, err := p.countFacets(ctx, v.Viewer, r, "all"); err == nil {
			r.Narrow, r.Summary = n, n.Summary
		} else {
			r.Narrow.Note = "The count did not succeed."
		}
	}
}

// lookFor searches for a page.
func (p *searching) lookFor(ctx context.Context, v catalog.Viewer, r *results, req search.Request) (*heap, error) {
	// While somebody types the first few matches will do, and in one file the limit
	// is just where the page ends.
	if r.typed || r.within {
		resp, err := p.searcher.Search(ctx, v, req)
		if err != nil {
			return nil, err
		}
		h := &heap{more: reached(resp, req.Matches)}
		h.take(resp, resp.Files)
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
	Nearest  *nearest // nil where the answer has the text, or nothing has most of it
	GoTo     []goRow
	Trace    bool // GoTo is the frames of a call stack
	Next     string
	End      string // of the last page, where it is not the only one: why there is no next
	CountAll string
	Copies   []copyAs
	Views    []viewList
	Trend    string   // the page of the search over time
	Watch    string   // the page that offers to watch the search; "" for none
	Changes  bool     // it is about commits, whose lines have a style of their own
	Sides    []view   // of a search of commits: the lines that came, or those that went
	Notes    []string // about the query

	goTo   []suggest.Target
	asked  *search.Request // before anything was put in front of its query
	typed  bool            // somebody is typing it
	within bool            // all of it is in one file
	took   time.Duration
	now    func() time.Time
}

// request returns the search that the page shows.
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

	// Parse the query before anything is added in front, so that positions of mistakes are right.
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

// targets takes over what the query names.
func (r *results) targets(list []suggest.Target) {
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

// begin reads the number of ranges on the pages before this one.
func (r *results) begin(from string, req *search.Request) {
	r.From, _ = strconv.Atoi(from)
	r.From = max(0, min(r.From, search.MaxMatches-pageMatches))

	// For a single file, search for everything up to the end of this page. The earlier ranges are
	// found again but not shown. One file is small, so count everything.
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

// rest writes the page after its head, which was sent while the search ran.
func (r *results) rest(v *layout.Visit, w *bufio.Writer) error {
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

// refuse marks a mistake at its position in the query. Any other error gets an error page.
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
		// Half a query is no failure: somebody is typing it.
	case errors.Is(err, call.ErrContextNotFound):
		v.Status = 404
	case errors.Is(err, call.ErrTooLarge):
		v.Status = 413
	default:
		v.Status = 400
	}
	return r.show(v)
}

// fill sets the page's fields from the answer.
func (r *results) fill(h *heap) {
	resp := h.last
	files, repos := r.turn(h), resp.Repositories
	r.Files = template.HTML(r.appendFiles(nil, files, h.branches))

	r.Views, r.Hints = viewsOf(r.Box), hintsOf(r.Box)
	exact := countedExactly(resp, r.within || countsAll(r.Query))
	r.Proof = proofOf(resp, exact, r.took)
	r.Narrow, r.Chips = r.narrow(resp), chipsOf(r.Box)
	r.Summary = summaryOf(resp, exact)
	if r.within && len(resp.Files) > 0 && len(resp.Files) == resp.Stats.Files {
		r.Summary = inFiles(resp.Files)
	}
	r.Copies = copiesOf(r.Box)
	if len(files) == 0 && len(h.files) == 0 {
		r.Repos = repoRows(repos[min(len(repos), r.From):min(len(repos), r.From+pageMatches)], r.Box)
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

// turn returns the files of this page, and prepares the link to the next.
func (r *results) turn(h *heap) []search.File {
	if r.typed {
		return h.files
	}

	// In one file the pages part its ranges.
	if r.within {
		if h.more && r.From < search.MaxMatches-pageMatches {
			r.Next = searchURL(r.Box, r.From+pageMatches)
		}
		return behind(h.files, r.From, max(r.Context, contexts[0]))
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

	// A file alone floods nothing; of the others the first page has what is folded.
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

// inFiles describes the number of matches on a page about one file.
func inFiles(files []search.File) string {
	sum := 0
	for i := range files {
		sum += files[i].Matches
	}
	return counted(sum, "match", "matches") + " in " + counted(len(files), "file", "files")
}

// byRepository puts the files of each repository together, the repositories in the
// order of their best files.
func byRepository(files []search.File) []search.File {
	place := map[uint32]int{}
	for i := range files {
		if _, known := place[files[i].RepoID]; !known {
			place[files[i].RepoID] = i
		}
	}
	out := slices.Clone(files)
	slices.SortStableFunc(out, func(a, b search.File) int { return place[a.RepoID] - place[b.RepoID] })
	return out
}

// view is another way to look at the same answer.
type view struct {
	Name, URL string
	Here      bool
}

// viewList is a choice between views.
type viewList struct {
	Name  string
	Views []view
}

// viewsOf returns the other ways to show the results (their order, the lines around a match), each
// with its address.
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
