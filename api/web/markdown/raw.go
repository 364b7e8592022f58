package markdown

import (
	"bytes"
	"slices"

	"github.com/yuin/goldmark/ast"
	"golang.org/x/net/html"
)

// rawTag is a tag of HTML that is open.
type rawTag struct {
	name string   // as the source has it
	end  string   // what ends it, as it is drawn
	at   ast.Node // in which it stands; it ends there
	link bool
}

// tagKind is how a tag of HTML is drawn.
type tagKind struct {
	as     string   // element
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

// tagKinds is what is drawn of HTML. Of every other tag the text stays.
var tagKinds = map[string]tagKind{
	"b": {as: "b", inline: true}, "strong": {as: "strong", inline: true}, "i": {as: "em", inline: true}, "em": {as: "em", inline: true},
	"s": {as: "s", inline: true}, "strike": {as: "s", inline: true}, "del": {as: "del", inline: true}, "ins": {as: "ins", inline: true},
	"sub": {as: "sub", inline: true}, "sup": {as: "sup", inline: true}, "kbd": {as: "kbd", inline: true}, "samp": {as: "samp", inline: true},
	"var": {as: "var", inline: true}, "code": {as: "code", inline: true}, "tt": {as: "code", inline: true},

	"p": {as: "div", ends: []string{"p"}}, "div": {as: "div"}, "center": {as: "div"}, "pre": {as: "pre"}, "blockquote": {as: "blockquote"},
	"details": {as: "details"}, "summary": {as: "summary", in: []string{"details"}},
	"h1": {as: "h1", ends: titles}, "h2": {as: "h2", ends: titles}, "h3": {as: "h3", ends: titles},
	"h4": {as: "h4", ends: titles}, "h5": {as: "h5", ends: titles}, "h6": {as: "h6", ends: titles},
	"ul": {as: "ul"}, "ol": {as: "ol"}, "li": {as: "li", in: []string{"ul", "ol"}, ends: []string{"li"}},
	"dl": {as: "dl"}, "dt": {as: "dt", in: []string{"dl"}, ends: terms}, "dd": {as: "dd", in: []string{"dl"}, ends: terms},
	"table": {as: "table"}, "thead": {as: "thead", in: []string{"table"}}, "tbody": {as: "tbody", in: []string{"table"}},
	"tr": {as: "tr", in: parents, ends: []string{"tr"}},
	"td": {as: "td", in: []string{"tr"}, ends: cells}, "th": {as: "td", in: []string{"tr"}, ends: cells},
}

// mute is the elements whose text is not for readers.
var mute = map[string]bool{"script": true, "style": true, "title": true, "textarea": true, "iframe": true, "noembed": true, "noframes": true, "noscript": true, "xmp": true, "plaintext": true}

// htmlBlock draws a block of HTML.
func (d *drawing) htmlBlock(n *ast.HTMLBlock) {
	source := n.Lines().Value(d.src)
	if n.HasClosure() {
		source = append(bytes.Clone(source), n.ClosureLine.Value(d.src)...)
	}
	if d.Literal {
		d.put("<pre tabindex=\"0\">")
		d.text(source)
		d.put("</pre>\n")
		return
	}
	d.raw(source, n.Parent(), false)
}

// rawHTML draws a tag within a line.
func (d *drawing) rawHTML(n *ast.RawHTML) {
	source := n.Segments.Value(d.src)
	if d.Literal {
		d.text(source)
		return
	}
	d.raw(source, n.Parent(), true)
}

// raw draws what is harmless of a piece of HTML that stands in a node.
func (d *drawing) raw(source []byte, at ast.Node, inline bool) {
	z := html.NewTokenizer(bytes.NewReader(source))
	silent := false
	// A tokenizer, not a parser: a block of HTML may hold half of an element, whose rest is Markdown.
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return // the end: what is left of a tag that does not end is nothing
		}
		d.watch.tick()
		t := z.Token()
		switch kind {
		case html.TextToken:
			if !silent {
				d.text([]byte(t.Data))
			}

			// A mute element is one text to the tokenizer, so that the next is to be read again.
			silent = false
		case html.StartTagToken, html.SelfClosingTagToken:
			silent = mute[t.Data]
			d.start(&t, at, inline)
		case html.EndTagToken:
			silent = false
			d.end(t.Data, at)
		}
	}
}

// start draws a tag that begins something.
func (d *drawing) start(t *html.Token, at ast.Node, inline bool) {
	// These have no end, and need none.
	switch t.Data {
	case "br", "hr":
		// A rule does not stand in a line.
		if !inline || t.Data == "br" {
			d.put("<", t.Data, ">")
		}
		return
	case "img":
		d.picture(picture{value(t, "src"), value(t, "alt"), value(t, "title"), value(t, "width"), value(t, "height")})
		return
	case "a":
		d.rawLink(t, at)
		return
	}

	k, ok := tagKinds[t.Data]
	if !ok || inline && !k.inline {
		return
	}

	// As a browser does: an item ends where the next begins, also without its end.
	if top := d.top(at); slices.Contains(k.ends, top) {
		d.closeTo(len(d.open) - 1)
	}

	// A cell outside a table would move out of its place.
	if k.in != nil && !slices.Contains(k.in, d.top(at)) {
		return
	}

	// Tags of HTML are no nodes, so they are counted here.
	if len(d.open) >= mostDepth {
		panic(stopped{ErrDeep})
	}

	// Its end is kept with it, so that all kinds are closed in one way.
	end := "</" + k.as + ">"
	switch {
	case slices.Contains(titles, t.Data):
		end = d.rawHeading(t)
	case k.as == "table":
		d.put(tableBegin)
		end = tableEnd
	case k.as == "pre":
		d.put(`<pre tabindex="0">`)
	default:
		d.put("<", k.as, ">")
	}
	d.open = append(d.open, rawTag{name: t.Data, end: end, at: at})
}

// rawHeading begins a heading below those of the page, as heading does, and
// returns what ends it.
func (d *drawing) rawHeading(t *html.Token) string {
	own := int(t.Data[1] - '0')
	d.level = min(d.Level+own, max(d.level, d.Level)+1, 6)
	element := "h" + string(rune('0'+d.level))

	// An id that the source gives is kept, with the prefix: links of the document lead to it.
	d.put("<", element)
	if id := value(t, "id"); id != "" {
		d.attribute("id", d.id(id))
	}
	d.put(` class="size`, string(rune('0'+own)), `">`)
	return "</" + element + ">"
}

// rawLink draws a link, or a place that links lead to.
func (d *drawing) rawLink(t *html.Token, at ast.Node) {
	// Old documents have places by name.
	for _, name := range []string{"id", "name"} {
		// An anchor within a link would end it.
		if id := value(t, name); id != "" && d.links == 0 {
			d.put("<a")
			d.attribute("id", d.id(id))
			d.put("></a>")
			break
		}
	}
	if to := value(t, "href"); to != "" && d.openLink(to, value(t, "title")) {
		d.open = append(d.open, rawTag{name: "a", at: at, link: true})
	}
}

// end draws the end of a tag that stands in the same node; one that was not
// opened there ends nothing.
func (d *drawing) end(name string, at ast.Node) {
	// Backwards, and only among those of the same node: a tag left open within ends with it.
	for i := len(d.open) - 1; i >= 0 && d.open[i].at == at; i-- {
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
		if t.link {
			d.closeLink()
		} else {
			d.put(t.end)
		}
	}
}

// top is the innermost tag that is open in a node.
func (d *drawing) top(at ast.Node) string {
	if n := len(d.open); n > 0 && d.open[n-1].at == at {
		return d.open[n-1].name
	}
	return ""
}

// value is an attribute of a tag; "" where it has none.
func value(t *html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
