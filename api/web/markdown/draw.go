package markdown

import (
	"bufio"
	"bytes"
	"html"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	gfm "github.com/yuin/goldmark/extension/ast"
	writer "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// drawing is a document while it is drawn.
type drawing struct {
	Site
	src   []byte
	out   []byte
	watch *watch
	depth int

	ids      map[string]int // how often each was asked for
	headings []Heading
	level    int // of the heading before, as it is drawn

	open  []rawTag // tags of HTML that are not closed
	links int      // links around; there is one at most
	begun int      // where the link around begins in out
	said  int      // where what stands in it does
}

func (d *drawing) put(parts ...string) {
	for _, p := range parts {
		d.out = append(d.out, p...)
	}
}

// attribute appends an attribute.
func (d *drawing) attribute(name, value string) {
	d.put(" ", name, `="`, html.EscapeString(value), `"`)
}

// text appends text as it reads, with the citations that stand in it.
func (d *drawing) text(t []byte) {
	// Files of a repository have no citations, whatever bytes they hold.
	for len(d.Cites) > 0 {
		i := bytes.IndexByte(t, markBegin)
		if i < 0 {
			break
		}

		// Neither a mark without an end nor a number of no citation is one: the source may hold
		// such bytes anywhere.
		length := bytes.IndexByte(t[i:], markEnd)
		n, err := strconv.Atoi(string(t[i+1 : i+max(length, 1)]))
		if err != nil || n < 0 || n >= len(d.Cites) {
			break
		}
		d.out = d.Text(d.out, t[:i])
		d.cite(&d.Cites[n])
		t = t[i+length+1:]
	}
	d.out = d.Text(d.out, t)
}

// cite draws a citation; one within a link is its label alone.
func (d *drawing) cite(c *Cite) {
	// There is no link within a link: a browser would end the outer one.
	switch {
	case d.links > 0:
		d.out = d.Text(d.out, []byte(c.Label))
		return
	// What could not be checked leads nowhere, and says so.
	case c.URL == "":
		d.put(`<span class="cite dim">`)
		d.out = d.Text(d.out, []byte(c.Label+" ("+c.Note+")"))
		d.put("</span>")
		return
	}
	d.put(`<a class="cite"`)
	d.attribute("href", c.URL)
	if c.Note != "" {
		d.attribute("title", c.Note)
	}
	d.put(">")
	d.out = d.Text(d.out, []byte(c.Label))
	d.put("</a>")
}

// plain is a text for an attribute, each citation as its label.
func (d *drawing) plain(s string) string {
	for i := range d.Cites {
		if strings.IndexByte(s, markBegin) < 0 {
			break
		}
		s = strings.ReplaceAll(s, Mark(i), d.Cites[i].Label)
	}
	return s
}

// children draws what stands in a node. Tags of HTML that are opened in it end
// with it at the latest.
func (d *drawing) children(n ast.Node) {
	// Each level is a call within a call, and a document may be nothing but levels.
	if d.depth++; d.depth > mostDepth {
		panic(stopped{ErrDeep})
	}
	open := len(d.open)
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		d.watch.tick()
		d.node(c)
	}

	// HTML that a paragraph opens must not swallow the page.
	d.closeTo(open)
	d.depth--
}

// within draws an element with what stands in a node.
func (d *drawing) within(element string, n ast.Node) {
	d.put("<", element, ">")
	d.children(n)
	d.put("</", element, ">")
}

// node draws one node. A kind that is not known is what stands in it.
func (d *drawing) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Paragraph:
		d.within("p", n)
		d.put("\n")
	case *ast.TextBlock:
		d.children(n)
		d.put("\n")
	case *ast.Heading:
		d.heading(n)

	case *ast.Blockquote:
		d.within("blockquote", n)
		d.put("\n")
	case *ast.List:
		d.list(n)
	case *ast.ListItem:
		d.within("li", n)
		d.put("\n")

	case *ast.ThematicBreak:
		d.put("<hr>\n")
	case *ast.CodeBlock:
		d.code("", n.Lines())
	case *ast.FencedCodeBlock:
		d.code(language(n.Language(d.src)), n.Lines())
	case *ast.HTMLBlock:
		d.htmlBlock(n)

	// It is nowhere shown: the links that name it have taken it up.
	case *ast.LinkReferenceDefinition:

	case *gfm.Table:
		d.table(n)
	default:
		d.inline(n)
	}
}

// inline draws a node that stands in a line.
func (d *drawing) inline(n ast.Node) {
	// The source is drawn, never passed through: whatever a line holds is text or one of these.
	switch n := n.(type) {
	case *ast.Text:
		d.words(n.Segment.Value(d.src), n.IsRaw())
		if n.HardLineBreak() {
			d.put("<br>\n")
		} else if n.SoftLineBreak() {
			d.put("\n")
		}
	case *ast.String:
		d.words(n.Value, n.IsRaw())

	case *ast.CodeSpan:
		d.codeSpan(n)
	case *ast.Emphasis:
		d.within([...]string{"em", "strong"}[n.Level-1], n)
	case *gfm.Strikethrough:
		d.within("del", n)
	// For ears as well: a box alone does not say that it is of a task.
	case *gfm.TaskCheckBox:
		if n.IsChecked {
			d.put(`<input type="checkbox" disabled="" checked="" aria-label="done"> `)
		} else {
			d.put(`<input type="checkbox" disabled="" aria-label="to do"> `)
		}

	case *ast.Link:
		d.anchored(d.destination(n.Destination), string(n.Title), func() { d.children(n) })
	case *ast.AutoLink:
		// Escaped here as the renderer of the library would, since that is not used.
		address := string(util.URLEscape(n.URL(d.src), false))
		// The library does not say whether the prefix stood there.
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(address), "mailto:") {
			address = "mailto:" + address
		}
		d.anchored(address, "", func() { d.text(n.Label(d.src)) })

	// Its text is what stands in it without markup, since an attribute has none.
	case *ast.Image:
		d.picture(picture{source: d.destination(n.Destination), alt: d.reads(n), title: string(n.Title)})
	case *ast.RawHTML:
		d.rawHTML(n)
	default:
		d.children(n)
	}
}

// words appends text of a line, its escapes and entities resolved unless it is raw.
func (d *drawing) words(t []byte, raw bool) {
	if !raw {
		t = resolved(t)
	}
	d.text(t)
}

// resolved is a text without its escapes and entities.
func resolved(t []byte) []byte {
	if !bytes.ContainsAny(t, `\&`) {
		return t
	}
	var b bytes.Buffer
	w := bufio.NewWriterSize(&b, len(t)+16)
	writer.DefaultWriter.Write(w, t)
	_ = w.Flush() // into memory, which does not fail
	return []byte(html.UnescapeString(b.String()))
}

// reads is the text of a node without its markup.
func (d *drawing) reads(n ast.Node) string {
	// Bounded as the drawing: an alternative text may be nested too.
	var b strings.Builder
	var read func(ast.Node, int)
	read = func(n ast.Node, depth int) {
		if depth > mostDepth {
			panic(stopped{ErrDeep})
		}

		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			switch c := c.(type) {
			case *ast.Text:
				// Code stands as it is, a backslash and an entity in it too.
				if t := c.Segment.Value(d.src); n.Kind() == ast.KindCodeSpan {
					b.Write(t)
				} else {
					b.Write(resolved(t))
				}

				// A line break within a heading or an image is a blank to readers.
				if c.SoftLineBreak() || c.HardLineBreak() {
					b.WriteByte(' ')
				}

			case *ast.String:
				b.Write(c.Value)
			case *ast.AutoLink:
				b.Write(c.Label(d.src))
			default:
				read(c, depth+1)
			}
		}
	}
	read(n, d.depth)
	return d.plain(b.String())
}

// heading draws a heading below those of the page, and leaves out no level: who
// goes from heading to heading by ear misses none. Its size is that of its own.
func (d *drawing) heading(n *ast.Heading) {
	// One below the heading before, at most; never above those of the page, and there are six.
	d.level = min(d.Level+n.Level, max(d.level, d.Level)+1, 6)
	// From the text, as code hosts do, so that links written for them lead there.
	title := d.reads(n)
	id := d.id(slug(title))
	element := "h" + strconv.Itoa(d.level)

	d.put("<", element)
	d.attribute("id", id)
	d.put(` class="size`, strconv.Itoa(n.Level), `">`)
	d.children(n)
	d.put("</", element, ">\n")
	// The list of contents has nothing to show for a heading without text.
	if title != "" {
		d.headings = append(d.headings, Heading{Level: n.Level, ID: id, Text: title})
	}
}

// id is an id that the document does not have yet.
func (d *drawing) id(name string) string {
	// By counting up, as code hosts do; a heading may already have the name that counting arrives at.
	id := d.anchor(name)
	n, again := d.ids[id]
	for ; again; _, again = d.ids[id] {
		n++
		d.ids[d.anchor(name)] = n
		id = d.anchor(name) + "-" + strconv.Itoa(n)
	}
	d.ids[id] = 0
	return id
}

func (d *drawing) list(n *ast.List) {
	element := "ul"
	if n.IsOrdered() {
		element = "ol"
	}
	d.put("<", element)
	// A browser begins with 1 by itself.
	if n.IsOrdered() && n.Start != 1 {
		d.attribute("start", strconv.Itoa(n.Start))
	}

	// Such a list has boxes in place of its marks.
	if tasks(n) {
		d.attribute("class", "tasks")
	}
	d.put(">\n")
	d.children(n)
	d.put("</", element, ">\n")
}

// tasks reports whether a list begins with a box to tick.
func tasks(n *ast.List) bool {
	if n.FirstChild() == nil || n.FirstChild().FirstChild() == nil {
		return false
	}
	_, ok := n.FirstChild().FirstChild().FirstChild().(*gfm.TaskCheckBox)
	return ok
}

// codeSpan draws code within a line.
func (d *drawing) codeSpan(n *ast.CodeSpan) {
	d.put("<code>")
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			d.text(bytes.ReplaceAll(t.Segment.Value(d.src), []byte("\n"), []byte(" ")))
		}
	}
	d.put("</code>")
}

// code draws a block of code, in its colours where its language is known.
func (d *drawing) code(language string, lines *text.Segments) {
	code := lines.Value(d.src)
	d.put(`<pre tabindex="0"><code>`)
	// A citation in a block of code must still lead to its source, which counts for more than colours.
	if len(d.Cites) > 0 && bytes.IndexByte(code, markBegin) >= 0 {
		d.text(code)
	} else {
		d.out = d.Code(d.out, language, code)
	}
	d.put("</code></pre>\n")
}

// language is the name of a language in what follows a fence: rust,no_run or
// {.python}.
func language(info []byte) string {
	s := strings.TrimLeft(string(info), "{.")
	if i := strings.IndexAny(s, ",;:{} \t"); i >= 0 {
		s = s[:i]
	}
	return s
}

// A table has a box of its own, in which it may be wider than the page.
const (
	tableBegin = `<div class="wide" tabindex="0" role="group" aria-label="Table"><table>`
	tableEnd   = `</table></div>`
)

// table draws a table.
func (d *drawing) table(n *gfm.Table) {
	d.put(tableBegin, "\n")
	// The head stands before the body, and a table may have no body at all.
	body := false
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		_, head := row.(*gfm.TableHeader)
		if head {
			d.put("<thead>")
		} else if !body {
			d.put("<tbody>\n")
			body = true
		}
		d.row(row, head)
		if head {
			d.put("</thead>")
		}
		d.put("\n")
	}
	if body {
		d.put("</tbody>")
	}
	d.put(tableEnd, "\n")
}

// row draws a row of a table. A cell of its head that is empty is no heading.
func (d *drawing) row(row ast.Node, head bool) {
	d.put("<tr>")
	for c := row.FirstChild(); c != nil; c = c.NextSibling() {
		// Drawn before its tag, which depends on what is in it, and taken out again.
		begun := len(d.out)
		d.watch.tick()
		d.children(c)
		// Copied, since what follows is written where it stands.
		inside := bytes.Clone(d.out[begun:])
		d.out = d.out[:begun]

		element := "td"
		// An empty heading would be read out for each cell below it.
		if head && readable(inside) {
			element = "th"
		}
		d.put("<", element)
		if element == "th" {
			d.attribute("scope", "col")
		}

		// Left is what it is anyhow.
		if cell, ok := c.(*gfm.TableCell); ok && (cell.Alignment == gfm.AlignRight || cell.Alignment == gfm.AlignCenter) {
			d.attribute("class", cell.Alignment.String())
		}
		d.put(">", string(inside), "</", element, ">")
	}
	d.put("</tr>")
}

// anchored draws a link. Within another link, and where it would lead nowhere, it
// is what stands in it.
func (d *drawing) anchored(address, title string, inside func()) {
	if !d.openLink(address, title) {
		inside()
		return
	}
	inside()
	d.closeLink()
}

// openLink begins a link, and reports whether there is one.
func (d *drawing) openLink(address, title string) bool {
	// A link within a link ends the outer one in a browser.
	if d.links > 0 {
		return false
	}

	// An address that is not allowed leaves the text without a link.
	to, outside := d.link(address)
	if to == "" {
		return false
	}

	// Where it began is kept: a link in which nothing can be read is taken back.
	d.links++
	d.begun = len(d.out)
	d.put("<a")
	d.attribute("href", to)
	if title != "" {
		d.attribute("title", d.plain(title))
	}

	// Those of another site learn nothing of this one.
	if outside {
		d.attribute("rel", rel)
	}
	d.put(">")
	d.said = len(d.out)
	return true
}

// closeLink ends a link. One in which nothing can be read is none: who goes by
// ear would not learn where it leads.
func (d *drawing) closeLink() {
	d.links--
	if !readable(d.out[d.said:]) {
		d.out = append(d.out[:d.begun], d.out[d.said:]...)
		return
	}
	d.put("</a>")
}

// readable reports whether drawn HTML has text, or an image that is described.
func readable(drawn []byte) bool {
	// Its tags have been drawn here, so that each has an end, and no > within.
	for len(drawn) > 0 {
		tag := bytes.IndexByte(drawn, '<')
		if tag < 0 {
			tag = len(drawn)
		}
		if len(bytes.TrimSpace(drawn[:tag])) > 0 {
			return true
		}
		drawn = drawn[tag:]
		end := bytes.IndexByte(drawn, '>')
		if end < 0 {
			break
		}

		// An image that says nothing is no text.
		if bytes.HasPrefix(drawn, []byte("<img")) && !bytes.Contains(drawn[:end], []byte(` alt=""`)) {
			return true
		}
		drawn = drawn[end+1:]
	}
	return false
}

// picture is an image as the source has it.
type picture struct{ source, alt, title, width, height string }

// picture draws an image of the repository. One from elsewhere is a link to it:
// nobody learns who reads a page.
func (d *drawing) picture(p picture) {
	// Of the repository alone: to load one from elsewhere would tell that site who reads what.
	if to := d.image(p.source); to != "" {
		d.put("<img")
		d.attribute("src", to)
		d.attribute("alt", p.alt)
		if p.title != "" {
			d.attribute("title", p.title)
		}
		for _, size := range []struct{ name, value string }{{"width", p.width}, {"height", p.height}} {
			// Only numbers: an attribute of the source could else hold anything.
			if number.MatchString(size.value) {
				d.attribute(size.name, size.value)
			}
		}
		d.put(` loading="lazy">`)
		return
	}

	// The link needs a text, else it would be none.
	label := p.alt
	if strings.TrimSpace(label) == "" {
		label = "image"
	}
	d.anchored(p.source, p.title, func() { d.text([]byte(label)) })
}
