package markdown

import (
	"bytes"
	"cmp"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"

	tokens "golang.org/x/net/html"
)

// drawing reads the HTML of a document tag by tag, and writes what a page shows of it: known tags,
// each closed; resolved links and images; headings below those of the page; code with syntax
// colours.
type drawing struct {
	Site
	out   []byte
	watch *watch

	ids      map[string]int // how often each was asked for
	headings []Heading
	level    int    // of the heading before, as it is drawn
	title    []byte // of the heading that is open, without markup

	open     []tag   // not ended yet
	links    int     // links around; there is one at most
	language *string // of the code that begins here
}

// tag is an open tag.
type tag struct {
	name  string
	end   string      // what ends it
	begun int         // where it begins in out
	said  int         // where what stands in it does
	close func(t tag) // in place of writing end; nil for most
}

// tagKind describes how a tag is written.
type tagKind struct {
	as     string   // element; "" for one with a function of its own
	inline bool     // may stand in a line
	in     []string // the tag must be the innermost that is open; nil for any
	ends   []string // tags that end where it begins, if one of them is the innermost
}

var (
	cells   = []string{"td", "th"}
	terms   = []string{"dt", "dd"}
	titles  = []string{"h1", "h2", "h3", "h4", "h5", "h6"}
	parents = []string{"table", "thead", "tbody"}
)

// tagKinds lists the tags that are written. Of other tags only the text remains.
var tagKinds = map[string]tagKind{
	"b": {as: "b", inline: true}, "strong": {as: "strong", inline: true}, "i": {as: "em", inline: true}, "em": {as: "em", inline: true},
	"s": {as: "s", inline: true}, "strike": {as: "s", inline: true}, "del": {as: "del", inline: true}, "ins": {as: "ins", inline: true},
	"sub": {as: "sub", inline: true}, "sup": {as: "sup", inline: true}, "kbd": {as: "kbd", inline: true}, "samp": {as: "samp", inline: true},
	"var": {as: "var", inline: true}, "code": {as: "code", inline: true}, "tt": {as: "code", inline: true},
	"a": {inline: true}, "img": {inline: true}, "br": {inline: true}, "input": {}, "hr": {},

	"p": {as: "p"}, "div": {as: "div"}, "center": {as: "div"}, "pre": {as: "pre"}, "blockquote": {as: "blockquote"},
	"details": {as: "details"}, "summary": {as: "summary", in: []string{"details"}},
	"h1": {as: "h1", ends: titles}, "h2": {as: "h2", ends: titles}, "h3": {as: "h3", ends: titles},
	"h4": {as: "h4", ends: titles}, "h5": {as: "h5", ends: titles}, "h6": {as: "h6", ends: titles},
	"ul": {as: "ul"}, "ol": {as: "ol"}, "li": {as: "li", in: []string{"ul", "ol"}, ends: []string{"li"}},
	"dl": {as: "dl"}, "dt": {as: "dt", in: []string{"dl"}, ends: terms}, "dd": {as: "dd", in: []string{"dl"}, ends: terms},
	"table": {as: "table"}, "thead": {as: "thead", in: []string{"table"}}, "tbody": {as: "tbody", in: []string{"table"}},
	"tr": {as: "tr", in: parents, ends: []string{"tr"}},
	"td": {as: "td", in: []string{"tr"}, ends: cells}, "th": {as: "th", in: []string{"tr"}, ends: cells},
}

// draw reads a whole document.
func (d *drawing) draw(source []byte) {
	for z := tokens.NewTokenizer(bytes.NewReader(source)); ; {
		kind := z.Next()
		if kind == tokens.ErrorToken {
			d.closeTo(0)
			return
		}
		d.watch.tick()
		t := z.Token()

		// The language applies only to the text right after the tag.
		language := d.language
		d.language = nil
		switch kind {
		case tokens.TextToken:
			d.words([]byte(t.Data), language)
		case tokens.StartTagToken, tokens.SelfClosingTagToken:
			d.start(&t)
		case tokens.EndTagToken:
			d.end(t.Data)
		}
	}
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

// words writes text. In a block of code it is coloured, unless it contains a citation, which must
// stay a link.
func (d *drawing) words(t []byte, language *string) {
	if language != nil && (len(d.Cites) == 0 || bytes.IndexByte(t, markBegin) < 0) {
		d.out = d.Code(d.out, *language, t)
	} else {
		d.text(t)
	}
	if d.within(titles) >= 0 {
		d.title = append(d.title, d.plain(string(t))...)
	}
}

// text appends text with its citations.
func (d *drawing) text(t []byte) {
	// Files of a repository have no citations, whatever bytes they contain.
	for len(d.Cites) > 0 {
		i := bytes.IndexByte(t, markBegin)
		if i < 0 {
			break
		}

		// The source may contain such bytes anywhere. Only a complete mark with the number of a
		// citation counts.
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

// cite writes a citation as a link. Inside another link it is only a label.
func (d *drawing) cite(c *Cite) {
	// A link within a link would end the outer one in browsers.
	switch {
	case d.links > 0:
		d.out = d.Text(d.out, []byte(c.Label))
		return
	// A citation that could not be checked is not a link, and says so.
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

// plain returns a text for an attribute, with each citation replaced by its label. In an address,
// the bytes of a mark are escaped.
func (d *drawing) plain(s string) string {
	for i := range d.Cites {
		if !strings.Contains(s, "\x01") && !strings.Contains(s, "%01") {
			break
		}
		s = strings.ReplaceAll(s, Mark(i), d.Cites[i].Label)
		s = strings.ReplaceAll(s, url.PathEscape(Mark(i)), d.Cites[i].Label)
	}
	return s
}

// start handles an opening tag.
func (d *drawing) start(t *tokens.Token) {
	k, ok := tagKinds[t.Data]
	if !ok {
		return
	}

	// Like browsers, end an item where the next begins, and a paragraph where a block begins.
	if p := d.within([]string{"p"}); p >= 0 && !k.inline && t.Data != "input" {
		d.closeTo(p)
	}
	if slices.Contains(k.ends, d.top()) {
		d.closeTo(len(d.open) - 1)
	}

	// A cell outside a table would be shown elsewhere.
	if k.in != nil && !slices.Contains(k.in, d.top()) {
		return
	}
	if len(d.open) >= mostDepth {
		panic(stopped{ErrDeep})
	}

	switch {
	case k.as == "":
		d.single(t)
	case slices.Contains(titles, t.Data):
		d.heading(t)
	case slices.Contains(cells, t.Data):
		d.cell(t)
	default:
		d.element(t, k.as)
	}
}

// single writes a tag without an end, or one with special rules.
func (d *drawing) single(t *tokens.Token) {
	switch t.Data {
	case "br", "hr":
		d.put("<", t.Data, ">")
	case "img":
		d.picture(t)
	case "a":
		d.link(t)
	case "input":
		if kind, _ := value(t, "type"); kind != "checkbox" {
			return
		}
		// The label tells screen readers that the box belongs to a task.
		if _, checked := value(t, "checked"); checked {
			d.put(`<input type="checkbox" disabled="" checked="" aria-label="done">`)
		} else {
			d.put(`<input type="checkbox" disabled="" aria-label="to do">`)
		}
	}
}

// element begins an element that needs little change.
func (d *drawing) element(t *tokens.Token, as string) {
	end := "</" + as + ">"
	switch as {
	case "table":
		// The table scrolls in a box of its own, because it may be wider than the page.
		d.put(`<div class="wide" tabindex="0" role="group" aria-label="Table"><table>`)
		end = `</table></div>`
	case "pre":
		d.put(`<pre tabindex="0">`)
	case "ul", "ol", "blockquote":
		d.put("<", as)
		if n, _ := value(t, "start"); as == "ol" && n != "" {
			d.attribute("start", n)
		}
		if class, _ := value(t, "class"); class != "" { // the policy knows which
			d.attribute("class", class)
		}
		d.put(">")
	default:
		if t.Data == "code" && d.top() == "pre" {
			class, _ := value(t, "class")
			language := languageOf(strings.TrimPrefix(class, "language-"))
			d.language = &language
		}
		d.put("<", as, ">")
	}
	d.open = append(d.open, tag{name: t.Data, end: end})
}

// languageOf returns the language in the text after a code fence: rust,no_run or {.python}.
func languageOf(info string) string {
	s := strings.TrimLeft(info, "{.")
	if i := strings.IndexAny(s, ",;:{} \t"); i >= 0 {
		s = s[:i]
	}
	return s
}

// heading writes a heading at a level below those of the page. It never skips a level, so that
// screen reader users miss none. It looks like the level in the source.
func (d *drawing) heading(t *tokens.Token) {
	own := int(t.Data[1] - '0')
	// At most one level below the previous heading, below those of the page, and at most 6.
	d.level = min(d.Level+own, max(d.level, d.Level)+1, 6)
	element, given := "h"+strconv.Itoa(d.level), ""
	if id, ok := value(t, "id"); ok {
		given = id
	}

	d.title = nil
	d.open = append(d.open, tag{name: t.Data, begun: len(d.out), said: len(d.out), close: func(h tag) {
		// The id is derived from the text, as on code hosts, so that links written for those work.
		// An id in the source is kept, with the prefix.
		text := strings.Join(strings.Fields(string(d.title)), " ")
		name := given
		if name == "" {
			name = slug(text)
		}
		id := d.id(name)
		inside := bytes.Clone(d.out[h.said:])
		d.out = d.out[:h.begun]
		d.put("<", element)
		d.attribute("id", id)
		d.put(` class="size`, strconv.Itoa(own), `">`, string(inside), "</", element, ">")

		// A heading without text is not in the table of contents.
		if text != "" {
			d.headings = append(d.headings, Heading{Level: own, ID: id, Text: text})
		}
		d.title = nil
	}})
}

// id returns an id that the document does not use yet.
func (d *drawing) id(name string) string {
	// Append a number, as code hosts do. Another heading may already have the resulting id.
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

// cell writes a table cell. An empty header cell becomes a normal cell, because screen readers
// would read it for each cell below.
func (d *drawing) cell(t *tokens.Token) {
	align, _ := value(t, "align")
	d.open = append(d.open, tag{name: t.Data, begun: len(d.out), said: len(d.out), close: func(c tag) {
		inside := bytes.Clone(d.out[c.said:])
		d.out = d.out[:c.begun]
		element := "td"
		if c.name == "th" && readable(inside) {
			element = "th"
		}
		d.put("<", element)
		if element == "th" {
			d.attribute("scope", "col")
		}
		// Left is the default.
		if align == "right" || align == "center" {
			d.attribute("class", align)
		}
		d.put(">", string(inside), "</", element, ">")
	}})
}

// link writes a link, or an anchor. Inside another link, or without a valid target, only its
// content is written.
func (d *drawing) link(t *tokens.Token) {
	// Old documents have named anchors. An anchor inside a link would end that link.
	for _, key := range []string{"id", "name"} {
		if name, _ := value(t, key); name != "" && d.links == 0 {
			d.put("<a")
			d.attribute("id", d.id(name))
			d.put("></a>")
			break
		}
	}

	address, _ := value(t, "href")
	title, _ := value(t, "title")
	if !d.openLink(address, title) {
		d.open = append(d.open, tag{name: "a"})
	}
}

// openLink begins a link, and reports whether it did.
func (d *drawing) openLink(address, title string) bool {
	// A link within a link would end the outer one in browsers.
	to, outside := "", false
	if d.links == 0 {
		to, outside = d.destination(d.plain(address))
	}
	if to == "" {
		return false
	}

	d.links++
	begun := len(d.out)
	d.put("<a")
	d.attribute("href", to)
	if title != "" {
		d.attribute("title", d.plain(title))
	}

	// Other sites do not learn the address of this page.
	if outside {
		d.attribute("rel", rel)
	}
	d.put(">")
	site := ""
	if u, err := url.Parse(to); d.Literal && outside && err == nil {
		site = cmp.Or(u.Host, u.Opaque)
	}
	d.open = append(d.open, tag{name: "a", begun: begun, said: len(d.out), close: func(a tag) { d.closeLink(a, to, site) }})
	return true
}

// closeLink ends a link. A link without readable content is removed, because screen reader users
// would not learn its target. If the label of a link to another site differs from the address, the
// site is named after it: a hostile text may have led the model to write a misleading label.
func (d *drawing) closeLink(a tag, to, site string) {
	d.links--
	if !readable(d.out[a.said:]) {
		d.out = append(d.out[:a.begun], d.out[a.said:]...)
		return
	}
	plain := html.UnescapeString(string(d.out[a.said:])) == to
	d.put("</a>")
	if site != "" && !plain {
		d.put(" (", html.EscapeString(site), ")")
	}
}

// readable reports whether HTML has text, or an image with a description.
func readable(drawn []byte) bool {
	// The tags were written here, so each is complete.
	for len(drawn) > 0 {
		begin := bytes.IndexByte(drawn, '<')
		if begin < 0 {
			begin = len(drawn)
		}
		if len(bytes.TrimSpace(drawn[:begin])) > 0 {
			return true
		}
		drawn = drawn[begin:]
		end := bytes.IndexByte(drawn, '>')
		if end < 0 {
			break
		}

		// An image without a description is not readable.
		if bytes.HasPrefix(drawn, []byte("<img")) && !bytes.Contains(drawn[:end], []byte(` alt=""`)) {
			return true
		}
		drawn = drawn[end+1:]
	}
	return false
}

// picture writes an image of the repository. An image of another site becomes a link, so that no
// site learns who reads a page.
func (d *drawing) picture(t *tokens.Token) {
	source, _ := value(t, "src")
	alt, _ := value(t, "alt")
	title, _ := value(t, "title")
	source, alt = d.plain(source), d.plain(strings.ReplaceAll(alt, "\n", " "))
	if d.within(titles) >= 0 {
		d.title = append(d.title, alt...)
	}

	// Only images of the repository are loaded: another site would learn who reads what.
	if to := d.image(source); to != "" {
		d.put("<img")
		d.attribute("src", to)
		d.attribute("alt", alt)
		if title != "" {
			d.attribute("title", d.plain(title))
		}
		for _, key := range []string{"width", "height"} {
			// Only numbers are allowed, because the source could contain anything.
			if size, _ := value(t, key); number.MatchString(size) {
				d.attribute(key, size)
			}
		}
		d.put(` loading="lazy">`)
		return
	}

	// A link needs a text.
	if strings.TrimSpace(alt) == "" {
		alt = "image"
	}
	linked := d.openLink(source, title)
	d.text([]byte(alt))
	if linked {
		d.closeTo(len(d.open) - 1)
	}
}

// end handles a closing tag. It is ignored if no such tag is open.
func (d *drawing) end(name string) {
	for i := len(d.open) - 1; i >= 0; i-- {
		if d.open[i].name == name {
			d.closeTo(i)
			return
		}
	}
}

// closeTo closes all open tags except the first n.
func (d *drawing) closeTo(n int) {
	for len(d.open) > n {
		t := d.open[len(d.open)-1]
		d.open = d.open[:len(d.open)-1]
		if t.close != nil {
			t.close(t)
		} else {
			d.put(t.end)
		}
	}
}

// top returns the innermost open tag.
func (d *drawing) top() string {
	if n := len(d.open); n > 0 {
		return d.open[n-1].name
	}
	return ""
}

// within returns the index of the innermost open tag with one of the names, if only inline tags are
// inside it; else -1.
func (d *drawing) within(names []string) int {
	for i := len(d.open) - 1; i >= 0; i-- {
		if slices.Contains(names, d.open[i].name) {
			return i
		}
		if !tagKinds[d.open[i].name].inline {
			break
		}
	}
	return -1
}

// value returns an attribute of a tag, and whether it is present.
func value(t *tokens.Token, name string) (string, bool) {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}
