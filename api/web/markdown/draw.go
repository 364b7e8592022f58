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

// drawing goes through the HTML of a document, tag by tag, and writes what a page
// shows of it: the tags that are known, each of them ended, links and images that
// lead somewhere, headings below those of the page, code in its colours.
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

// tag is a tag that is open.
type tag struct {
	name  string
	end   string      // what ends it
	begun int         // where it begins in out
	said  int         // where what stands in it does
	close func(t tag) // in place of writing end; nil for most
}

// tagKind is how a tag is drawn.
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

// tagKinds is what is drawn. Of every other tag the text stays.
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

// draw goes through a whole document.
func (d *drawing) draw(source []byte) {
	for z := tokens.NewTokenizer(bytes.NewReader(source)); ; {
		kind := z.Next()
		if kind == tokens.ErrorToken {
			d.closeTo(0)
			return
		}
		d.watch.tick()
		t := z.Token()

		// Only what stands at the beginning of a block of code is the code.
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

// words draws text: as code in a language where that is known, unless a citation
// stands in it, which must still lead to its source.
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

// plain is a text for an attribute, each citation as its label. In an address the
// bytes of its mark are escaped.
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

// start draws a tag that begins something.
func (d *drawing) start(t *tokens.Token) {
	k, ok := tagKinds[t.Data]
	if !ok {
		return
	}

	// As a browser does: an item ends where the next begins, also without its end, and a
	// paragraph where a block does.
	if p := d.within([]string{"p"}); p >= 0 && !k.inline && t.Data != "input" {
		d.closeTo(p)
	}
	if slices.Contains(k.ends, d.top()) {
		d.closeTo(len(d.open) - 1)
	}

	// A cell outside a table would move out of its place.
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

// single draws a tag that has no end, or is no element here.
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
		// For ears as well: a box alone does not say that it is of a task.
		if _, checked := value(t, "checked"); checked {
			d.put(`<input type="checkbox" disabled="" checked="" aria-label="done">`)
		} else {
			d.put(`<input type="checkbox" disabled="" aria-label="to do">`)
		}
	}
}

// element begins an element that is drawn as it is, or next to it.
func (d *drawing) element(t *tokens.Token, as string) {
	end := "</" + as + ">"
	switch as {
	case "table":
		// A box of its own, in which it may be wider than the page.
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

// languageOf is the name of a language in what follows a fence: rust,no_run or
// {.python}.
func languageOf(info string) string {
	s := strings.TrimLeft(info, "{.")
	if i := strings.IndexAny(s, ",;:{} \t"); i >= 0 {
		s = s[:i]
	}
	return s
}

// heading draws a heading below those of the page, and leaves out no level: who
// goes from heading to heading by ear misses none. Its size is that of its own.
func (d *drawing) heading(t *tokens.Token) {
	own := int(t.Data[1] - '0')
	// One below the heading before, at most; never above those of the page, and there are six.
	d.level = min(d.Level+own, max(d.level, d.Level)+1, 6)
	element, given := "h"+strconv.Itoa(d.level), ""
	if id, ok := value(t, "id"); ok {
		given = id
	}

	d.title = nil
	d.open = append(d.open, tag{name: t.Data, begun: len(d.out), said: len(d.out), close: func(h tag) {
		// From the text, as code hosts do, so that links written for them lead there. An id that
		// the source gives is kept, with the prefix.
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

		// The list of contents has nothing to show for a heading without text.
		if text != "" {
			d.headings = append(d.headings, Heading{Level: own, ID: id, Text: text})
		}
		d.title = nil
	}})
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

// cell draws a cell of a table. An empty heading would be read out for each cell
// below it, so it is none.
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
		// Left is what it is anyhow.
		if align == "right" || align == "center" {
			d.attribute("class", align)
		}
		d.put(">", string(inside), "</", element, ">")
	}})
}

// link draws a link, and a place that links lead to. Within another link, and
// where it would lead nowhere, a link is what stands in it.
func (d *drawing) link(t *tokens.Token) {
	// Old documents have places by name. One within a link would end that.
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

// openLink begins a link, and reports whether there is one.
func (d *drawing) openLink(address, title string) bool {
	// A link within a link ends the outer one in a browser.
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

	// Those of another site learn nothing of this one.
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

// closeLink ends a link. One in which nothing can be read is none: who goes by
// ear would not learn where it leads. A site is named behind a label that is not the
// address: somebody may have led the model to write the one for the other.
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

// readable reports whether drawn HTML has text, or an image that is described.
func readable(drawn []byte) bool {
	// Its tags have been drawn here, so that each has an end, and no > within.
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

		// An image that says nothing is no text.
		if bytes.HasPrefix(drawn, []byte("<img")) && !bytes.Contains(drawn[:end], []byte(` alt=""`)) {
			return true
		}
		drawn = drawn[end+1:]
	}
	return false
}

// picture draws an image of the repository. One from elsewhere is a link to it:
// nobody learns who reads a page.
func (d *drawing) picture(t *tokens.Token) {
	source, _ := value(t, "src")
	alt, _ := value(t, "alt")
	title, _ := value(t, "title")
	source, alt = d.plain(source), d.plain(strings.ReplaceAll(alt, "\n", " "))
	if d.within(titles) >= 0 {
		d.title = append(d.title, alt...)
	}

	// Of the repository alone: to load one from elsewhere would tell that site who reads what.
	if to := d.image(source); to != "" {
		d.put("<img")
		d.attribute("src", to)
		d.attribute("alt", alt)
		if title != "" {
			d.attribute("title", d.plain(title))
		}
		for _, key := range []string{"width", "height"} {
			// Only numbers: an attribute of the source could else hold anything.
			if size, _ := value(t, key); number.MatchString(size) {
				d.attribute(key, size)
			}
		}
		d.put(` loading="lazy">`)
		return
	}

	// The link needs a text, else it would be none.
	if strings.TrimSpace(alt) == "" {
		alt = "image"
	}
	linked := d.openLink(source, title)
	d.text([]byte(alt))
	if linked {
		d.closeTo(len(d.open) - 1)
	}
}

// end draws the end of a tag; one that is not open ends nothing.
func (d *drawing) end(name string) {
	for i := len(d.open) - 1; i >= 0; i-- {
		if d.open[i].name == name {
			d.closeTo(i)
			return
		}
	}
}

// closeTo ends the tags behind the first n.
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

// top is the innermost tag that is open.
func (d *drawing) top() string {
	if n := len(d.open); n > 0 {
		return d.open[n-1].name
	}
	return ""
}

// within is the index of the innermost open tag of some names that has nothing but
// tags of a line within it; -1 where there is none.
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

// value is an attribute of a tag, and whether it has it.
func value(t *tokens.Token, name string) (string, bool) {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}
