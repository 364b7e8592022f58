package markdown

import (
	"regexp"

	"github.com/microcosm-cc/bluemonday"
)

// rel is the rel attribute of every link to another site.
const rel = "nofollow noreferrer noopener"

var number = regexp.MustCompile(`^[0-9]{1,4}$`)

// allowed is the allow list of a document. It is safe for concurrent use.
var allowed = policy()

func policy() *bluemonday.Policy {
	// Start with nothing allowed: anything forgotten here is left out.
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "b", "i", "s", "del", "ins", "sub", "sup", "kbd", "samp", "var", "code", "pre",
		"blockquote", "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "div", "bdi")
	p.AllowNoAttrs().OnElements("span")

	// Links are checked both here and in drawing, in case one check has a bug.
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(true)
	p.RequireParseableURLs(true)
	p.AllowAttrs("href", "title").OnElements("a")
	p.AllowAttrs("rel").Matching(exactly(rel)).OnElements("a")

	p.AllowAttrs("src", "alt", "title").OnElements("img")
	p.AllowAttrs("width", "height").Matching(number).OnElements("img")
	p.AllowAttrs("loading").Matching(exactly("lazy")).OnElements("img")

	// Require the prefix, so that a document cannot use an id of the page.
	p.AllowAttrs("id").Matching(regexp.MustCompile(`^(md|t[0-9]+)-[^\s"'<>&]*$`)).OnElements("h1", "h2", "h3", "h4", "h5", "h6", "a")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	// Allow only these classes: with others, a document could look like a part of the page.
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^size[1-6]$`)).OnElements("h1", "h2", "h3", "h4", "h5", "h6")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^[csnktd]$`)).OnElements("i")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^cite( dim)?$`)).OnElements("a", "span")
	p.AllowAttrs("class").Matching(exactly("wide")).OnElements("div")
	p.AllowAttrs("class").Matching(exactly("tasks")).OnElements("ul", "ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(note|tip|important|warning|caution)$`)).OnElements("blockquote")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(center|right)$`)).OnElements("th", "td")
	p.AllowAttrs("class").Matching(exactly("hid")).OnElements("bdi")
	p.AllowAttrs("data-c").Matching(regexp.MustCompile(`^U\+[0-9A-F]{4,6}$`)).OnElements("bdi")

	// Boxes that are wider than the page can be scrolled by keyboard.
	p.AllowAttrs("tabindex").Matching(exactly("0")).OnElements("pre", "div")
	p.AllowAttrs("role").Matching(exactly("group")).OnElements("div")
	p.AllowAttrs("aria-label").Matching(exactly("Table")).OnElements("div")
	p.AllowAttrs("aria-label").Matching(regexp.MustCompile(`^(done|to do)$`)).OnElements("input")
	p.AllowAttrs("scope").Matching(exactly("col")).OnElements("th")
	p.AllowAttrs("type").Matching(exactly("checkbox")).OnElements("input")
	p.AllowAttrs("disabled", "checked").Matching(exactly("")).OnElements("input")
	return p
}

func exactly(s string) *regexp.Regexp { return regexp.MustCompile("^" + regexp.QuoteMeta(s) + "$") }
