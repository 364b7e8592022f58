package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/lex"
)

var commitTemplate = layout.Parse(templates, "templates/commit.html", "templates/place.html")

// Limits of a page of changes. More files are on further pages. Lines beyond the limit are left
// out, and the page says so.
const (
	mostChanged      = 2 << 20 // of changed lines
	mostChangedLines = 50_000  // each is a row, however short
	changedFiles     = 100
)

// changeView is a way to show changed lines; sides are the colours of old and new ones.
type changeView struct {
	value, name string
	draw        func(dst []byte, rows []changedLine, sides [2]*painter) []byte
}

// changeViews are the ways to show changes. The first is the default.
var changeViews = []changeView{
	{"", "below each other", appendUnified},
	{"split", "side by side", appendSplit},
}

// changeContexts are the numbers of unchanged lines around a change.
var changeContexts = []int{3, 10, 50}

// look is how a reader wants to see a change, as in the address.
type look struct {
	view   int  // index of changeViews
	around int  // index of changeContexts
	blanks bool // ignore differences in blanks
	page   int  // of the files; 0 is the first
}

// lookOf reads from an address how a page shows changes: its view, lines of context, blanks and
// page. Unknown values become defaults.
func lookOf(q url.Values) look {
	around, _ := strconv.Atoi(q.Get("context"))
	page, _ := strconv.Atoi(q.Get("page"))
	return look{
		view:   max(0, slices.IndexFunc(changeViews, func(c changeView) bool { return c.value == q.Get("view") })),
		around: max(0, slices.Index(changeContexts, around)),
		blanks: q.Get("w") == "1",
		page:   min(max(0, page-1), 1<<20),
	}
}

// query returns a look for an address, without defaults, so that a page has one address.
func (l look) query() string {
	q := url.Values{}
	if value := changeViews[l.view].value; value != "" {
		q.Set("view", value)
	}
	if l.around > 0 {
		q.Set("context", strconv.Itoa(changeContexts[l.around]))
	}
	if l.blanks {
		q.Set("w", "1")
	}
	if l.page > 0 {
		q.Set("page", strconv.Itoa(l.page+1))
	}
	return "?" + q.Encode()
}

// change is the data of a commit or a comparison.
type change struct {
	place
	Commit         *commitRow
	Parents        []commitRow
	Base, Head     string
	Dots           string // of a comparison
	Compared       comparing
	Parted         *commitRow // the merge base, with three dots
	Files          []changedFile
	Dirs           []changedDir // the same files by directory
	Total          string       // of all pages
	Added, Removed int          // of all pages
	Least          bool         // there are more files than were counted
	Shown          string       // range of shown files, if there are more pages
	Before, After  string       // links to those pages
	Cut            bool
	Alike          bool // no differences remain if blanks are ignored
	Split          bool
	Views          []viewList
}

// changedFile is a file of a change. Name is its path, Base the last part, Status git's letter
// for the change, and At its anchor on the page.
type changedFile struct {
	At                           int
	Name, Base, Old, URL, Status string
	Added, Removed               int
	Binary, Cut                  bool
	Code                         template.HTML
}

// Became returns the status in words.
func (f changedFile) Became() string {
	return map[string]string{"A": "added", "M": "changed", "D": "removed", "R": "moved", "T": "of another kind"}[f.Status]
}

// changedDir has the changed files of one directory.
type changedDir struct {
	Name  string // with its slash; "" for the root
	Files []changedFile
}

// dirsOf groups files by directory, in the order of their first files.
func dirsOf(files []changedFile) []changedDir {
	var out []changedDir
	for _, f := range files {
		name := f.Name[:len(f.Name)-len(f.Base)]
		at := slices.IndexFunc(out, func(d changedDir) bool { return d.Name == name })
		if at < 0 {
			at, out = len(out), append(out, changedDir{Name: name})
		}
		out[at].Files = append(out[at].Files, f)
	}
	return out
}

// commit shows the page of a commit: its message and its changes since its first parent.
func (p *revisions) commit(ctx context.Context, v *layout.Visit, l place) error {
	if l.Path == "" {
		return noCommit()
	}
	c, err := p.reader.Commit(ctx, v.Viewer, browse.CommitRequest{Repo: l.Repo, Ref: l.Path})
	if err != nil {
		return err
	}

	row := p.commitRow(l.Repo, c)
	if v.Viewer.Role == catalog.RoleGuest {
		row.Email = "" // only for signed-in users
	}
	data := change{place: place{Repo: l.Repo, Rev: c.Hash, Kind: "tree"}, Commit: &row, Total: counted(0, "file", "files")}
	for _, parent := range c.Parents {
		data.Parents = append(data.Parents, commitRow{Short: short(parent), URL: address(l.Repo, "", "commit", parent)})
	}

	// The first commit of a history has no parent to compare with.
	if len(c.Parents) > 0 {
		if _, err := p.difference(ctx, v, &data, browse.DiffRequest{Base: c.Parents[0], Head: c.Hash}); err != nil {
			return err
		}
	}
	return v.Show(changeHead(c.Message, "commit"), commitTemplate, data)
}

// compare shows the difference of two revisions: <base>..<head> compares the two, <base>...<head>
// compares the head with the merge base.
func (p *revisions) compare(ctx context.Context, v *layout.Visit, l place) error {
	// A form has base and head as fields: redirect, so that a comparison has one address.
	form := comparingAt(l, v.Query.Get("base"), v.Query.Get("head"))
	if l.Path == "" && form.Head != "" {
		form.Base = cmp.Or(form.Base, l.Branch, "HEAD")
		return v.Redirect(http.StatusSeeOther, address(l.Repo, "", "compare", form.Base+"..."+form.Head))
	}
	if l.Path == "" {
		form.Base, form.Head = cmp.Or(form.Base, l.Branch), cmp.Or(form.Head, l.Rev)
		return v.Show(changeHead("Compare", "compare"), commitTemplate, change{place: l, Compared: form, Base: form.Base, Head: form.Head, Dots: "..."})
	}

	// Names in git have no two dots, so the first ones separate the names.
	dots := "..."
	base, head, ok := strings.Cut(l.Path, dots)
	if !ok {
		dots = ".."
		base, head, ok = strings.Cut(l.Path, dots)
	}
	if !ok || base == "" || head == "" {
		return noCommit()
	}

	// Links to other comparisons keep the look.
	to := func(base, dots, head string) string {
		as := lookOf(v.Query)
		as.page = 0
		return address(l.Repo, "", "compare", base+dots+head) + strings.TrimSuffix(as.query(), "?")
	}
	form.Base, form.Head, form.Swap = base, head, to(head, dots, base)
	data := change{place: place{Repo: l.Repo, Kind: "tree"}, Base: base, Head: head, Dots: dots, Compared: form}
	r, err := p.difference(ctx, v, &data, browse.DiffRequest{Base: base, Head: head, MergeBase: dots == "..."})
	if err != nil {
		return err
	}

	if dots == "..." {
		data.Parted = &commitRow{Short: short(r.BaseCommit), URL: address(l.Repo, "", "commit", r.BaseCommit)}
	}
	data.Views = append(data.Views, viewList{"Compared", []view{
		{"from where they parted", to(base, "...", head), dots == "..."},
		{"directly", to(base, "..", head), dots == ".."},
	}})
	return v.Show(changeHead(base+" and "+head, "compare"), commitTemplate, data)
}

func changeHead(title, page string) layout.Head {
	return layout.Head{Title: title, Page: page, Scripts: []string{"js/change.js"}}
}

// difference fills in the changes between two revisions, and returns the answer.
func (p *revisions) difference(ctx context.Context, v *layout.Visit, data *change, req browse.DiffRequest) (*browse.DiffResponse, error) {
	as := lookOf(v.Query)
	data.Split, data.Views = as.view > 0, changeLinks(as)

	req.Repo, req.MaxBytes, req.Context, req.IgnoreBlanks = data.Repo, mostChanged, changeContexts[as.around], as.blanks
	req.Page, req.PerPage = as.page+1, changedFiles
	r, err := p.reader.Diff(ctx, v.Viewer, req)
	if err != nil {
		return nil, err
	}
	if err := p.turn(ctx, v, data, as, req, r); err != nil {
		return nil, err
	}

	// A deleted file is read at the base.
	before := req.Base
	if req.MergeBase {
		before = r.BaseCommit
	}

	data.Alike = as.blanks && r.Total == 0
	data.Cut = r.Cut
	left := mostChangedLines
	for i := range r.Files {
		f := &r.Files[i]
		row := changedFile{
			Name:    f.NewPath,
			Status:  string(f.Status),
			Added:   f.Added,
			Removed: f.Removed,
			Binary:  f.Binary,
			Cut:     f.Cut,
			URL:     address(data.Repo, req.Head, "blob", f.NewPath),
		}

		// A deleted file has its old name and page.
		if f.NewPath == "" {
			row.Name, row.URL = f.OldPath, address(data.Repo, before, "blob", f.OldPath)
		} else if f.OldPath != "" && f.OldPath != f.NewPath {
			row.Old = f.OldPath
		}

		hunks, cut := firstLines(f.Hunks, &left)
		row.Cut, data.Cut = row.Cut || cut, data.Cut || cut
		row.At, row.Base = i, path.Base(row.Name)
		row.Code = template.HTML(appendHunks(nil, hunks, cmp.Or(f.Language, shard.Language(row.Name, nil)), f.Language != "", changeViews[as.view]))
		data.Files = append(data.Files, row)
	}
	data.Dirs = dirsOf(data.Files)
	return r, nil
}

// comparing is a form with two revisions.
type comparing struct {
	Action, Base, Head string
	Usual              string   // what an empty Base stands for; "" if it has to be filled in
	Swap               string   // the reverse comparison; "" for none
	Names              []string // of branches and tags to choose from
}

func comparingAt(l place, base, head string) comparing {
	form := comparing{Action: address(l.Repo, "", "compare", ""), Base: base, Head: head}
	for _, ref := range l.Refs {
		form.Names = append(form.Names, ref.Name)
	}
	return form
}

// firstLines returns the beginning of hunks with at most left lines, and subtracts them from
// left. It reports whether there are more.
func firstLines(hunks []browse.DiffHunk, left *int) (first []browse.DiffHunk, cut bool) {
	for _, h := range hunks {
		end := 0
		for ; *left > 0 && end < len(h.Body); *left-- {
			size := strings.IndexByte(h.Body[end:], '\n') + 1
			if size == 0 {
				size = len(h.Body) - end
			}
			end += size
		}
		if end < len(h.Body) {
			h.Body, cut = h.Body[:end], true
		}
		if end > 0 {
			first = append(first, h)
		}
	}
	return first, cut
}

// turn fills in the totals of all pages, and the links to the previous and next page.
func (p *revisions) turn(ctx context.Context, v *layout.Visit, data *change, as look, req browse.DiffRequest, r *browse.DiffResponse) error {
	data.Total = counted(r.Total, "file", "files")
	if r.AtLeast {
		data.Total = "≥ " + data.Total
	}

	// If one page has all files, it has the totals.
	all := r
	if r.Total > len(r.Files) || r.AtLeast {
		req.Base, req.Head, req.MergeBase = r.BaseCommit, r.HeadCommit, false
		req.Stat, req.Page, req.PerPage, req.Context = true, 0, 0, 0

		var err error
		if all, err = p.reader.Diff(ctx, v.Viewer, req); err != nil {
			return err
		}
	}
	data.Least = r.AtLeast || all != r && all.Cut
	for i := range all.Files {
		data.Added, data.Removed = data.Added+all.Files[i].Added, data.Removed+all.Files[i].Removed
	}

	if r.Total > changedFiles || as.page > 0 {
		data.Shown = fmt.Sprintf("files %s to %s", grouping(as.page*changedFiles+1), grouping(as.page*changedFiles+len(r.Files)))
	}
	if len(r.Files) == 0 && as.page > 0 {
		data.Shown = "no files are on this page"
	}

	// A page after the last redirects to the last.
	pages, page := (r.Total+changedFiles-1)/changedFiles, as.page
	if page > 0 {
		as.page = max(0, min(page, pages)-1)
		data.Before = as.query()
	}
	if as.page = page + 1; as.page < pages {
		data.After = as.query()
	}
	return nil
}

// changeLinks returns the links to other looks at the same change.
func changeLinks(as look) []viewList {
	// Each link changes one setting and keeps the others.
	sides, lines := viewList{Name: "Old and new"}, viewList{Name: "Around a change"}
	for i, c := range changeViews {
		sides.Views = append(sides.Views, view{c.name, look{i, as.around, as.blanks, as.page}.query(), i == as.view})
	}
	for i, n := range changeContexts {
		lines.Views = append(lines.Views, view{counted(n, "line", "lines"), look{as.view, i, as.blanks, as.page}.query(), i == as.around})
	}

	return []viewList{sides, lines, {"Blanks", []view{
		{"blanks count", look{as.view, as.around, false, 0}.query(), !as.blanks},
		{"blanks ignored", look{as.view, as.around, true, 0}.query(), as.blanks},
	}}}
}

// changedLine is a line of a hunk.
type changedLine struct {
	sign     byte // ' ', '+' or '-'
	text     []byte
	old, now int    // line numbers; 0 on a side without the line
	marks    []span // words that the other side does not have
	returns  bool   // the lines only differ in "\r"
}

// Sides of a change.
const (
	oldSide = iota
	newSide
)

// appendHunks appends the changed lines of a file. Its hunks say what is open at their start if
// known is true; else the page guesses.
func appendHunks(dst []byte, hunks []browse.DiffHunk, language string, known bool, as changeView) []byte {
	for _, h := range hunks {
		dst = fmt.Appendf(dst, `<div class="row hunk"><code>@@ -%d,%d +%d,%d @@ `, h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		dst = append(layout.AppendText(dst, []byte(h.Heading)), "</code></div>\n"...)

		rows := linesOf(h)
		markChanged(rows)

		sides := [2]*painter{newPainter(language, h.OldOpen), newPainter(language, h.NewOpen)}
		if !known {
			sides = paintersOf(rows, language)
		}
		dst = as.draw(dst, rows, sides)
	}
	return dst
}

// paintersOf returns a painter for each side, because a comment may be open on one side only. It
// guesses what is open from the lines of the hunk.
func paintersOf(rows []changedLine, language string) (sides [2]*painter) {
	for side, other := range []byte{'+', '-'} {
		var text []byte
		for _, r := range rows {
			if r.sign != other {
				text = append(append(text, r.text...), '\n')
			}
		}
		sides[side] = newPainter(language, lex.For(language).Enter(text))
	}
	return sides
}

// linesOf splits a hunk into lines with their numbers.
func linesOf(h browse.DiffHunk) []changedLine {
	var out []changedLine
	// The sides have separate numbers: an added line has none on the old side.
	before, after := h.OldStart, h.NewStart
	returns, number := h.Returns(), 0
	for rest := []byte(h.Body); len(rest) > 0; {
		var line []byte
		line, rest, _ = nextLine(rest)
		number++
		if len(line) == 0 {
			continue
		}

		// The first byte of a line is git's sign.
		row := changedLine{sign: line[0], text: line[1:], returns: returns[number-1]}
		if row.sign != '+' {
			row.old = before
			before++
		}
		if row.sign != '-' {
			row.now = after
			after++
		}
		out = append(out, row)
	}
	return out
}

// appendUnified draws old lines above new ones.
//
//	<div class="row del"><span class="no">3</span><span class="no"></span><code>-old</code></div>
func appendUnified(dst []byte, rows []changedLine, sides [2]*painter) []byte {
	for i := range rows {
		r := &rows[i]
		// An unchanged line is painted as on the new side.
		class, side := "", newSide

		switch r.sign {
		case '+':
			class = " add"
		case '-':
			class, side = " del", oldSide

		// The old side's colours are dropped, but its painter must see the line, because a
		// comment may end there.
		default:
			sides[oldSide].colours(r.text)
		}

		dst = fmt.Appendf(dst, `<div class="row%s">`, class)
		dst = appendNumber(appendNumber(dst, r.old), r.now)
		dst = append(appendChanged(append(dst, "<code>"...), r, sides[side]), "</code></div>\n"...)
	}
	return dst
}

// appendSplit draws old lines on the left and the new lines that replace them on the right.
func appendSplit(dst []byte, rows []changedLine, sides [2]*painter) []byte {
	for len(rows) > 0 {
		// Unchanged lines are the same on both sides.
		if rows[0].sign != '+' && rows[0].sign != '-' {
			dst = appendPair(dst, &rows[0], &rows[0], sides)
			rows = rows[1:]
			continue
		}

		gone, come := changedRun(rows)
		rows = rows[len(gone)+len(come):]

		// The side with fewer lines is empty below its last line.
		for i := range max(len(gone), len(come)) {
			var old, now *changedLine
			if i < len(gone) {
				old = &gone[i]
			}
			if i < len(come) {
				now = &come[i]
			}

			dst = appendPair(dst, old, now, sides)
		}
	}
	return dst
}

// appendPair draws a row with two sides, one of which may be missing.
func appendPair(dst []byte, old, now *changedLine, sides [2]*painter) []byte {
	class := ""
	// The same row on both sides is an unchanged line.
	if old == now {
		class = " same"
	}
	dst = fmt.Appendf(dst, `<div class="pair%s">`, class)

	for side, r := range []*changedLine{old, now} {
		// A missing line leaves an empty cell.
		number, class := 0, "none"
		if r != nil {
			number = []int{r.old, r.now}[side]
			class = map[byte]string{'-': "del", '+': "add"}[r.sign]
		}

		dst = fmt.Appendf(appendNumber(dst, number), `<code class="%s">`, class)
		if r != nil {
			dst = appendChanged(dst, r, sides[side])
		}
		dst = append(dst, "</code>"...)
	}
	return append(dst, "</div>\n"...)
}

// appendNumber appends the number of a line, or an empty cell.
func appendNumber(dst []byte, n int) []byte {
	dst = append(dst, `<span class="no">`...)
	if n > 0 {
		dst = appendInt(dst, n)
	}
	return append(dst, "</span>"...)
}

// appendChanged appends a line with its sign, its colours and the changed words.
func appendChanged(dst []byte, r *changedLine, paint *painter) []byte {
	dst = append(dst, r.sign)

	// Paint the whole line, even if a part is shown, because the rest may open a comment.
	colours := paint.colours(r.text)
	if len(r.text) <= longestShown {
		dst = appendCode(dst, r.text, colours, r.marks)
		if r.returns {
			dst = append(dst, `<span class="dim" title="carriage return">␍</span>`...)
		}
		return dst
	}
	dst = appendCode(dst, r.text[:longestShown], within(colours, longestShown), nil)
	return fmt.Appendf(dst, `<span class="cut">%s bytes more</span>`, grouping(len(r.text)-longestShown))
}

// within returns the colours that end in the first n bytes.
func within(colours []lex.Span, n int) []lex.Span {
	for i := range colours {
		if colours[i].End > n {
			return colours[:i]
		}
	}
	return colours
}

// changedRun returns the removed lines at the beginning of a hunk, and the added lines that
// replace them.
func changedRun(rows []changedLine) (gone, come []changedLine) {
	n := 0
	for n < len(rows) && rows[n].sign == '-' {
		n++
	}
	m := n
	for m < len(rows) && rows[m].sign == '+' {
		m++
	}
	return rows[:n], rows[n:m]
}
