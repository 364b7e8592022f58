package layout

import (
	"embed"
	"html/template"
	"io"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// MimeHTML is the type of every page.
const MimeHTML = "text/html; charset=utf-8"

// CSP is the Content-Security-Policy of every page: nothing inline but the style that
// Policy allows, nothing from elsewhere, and no script may make markup of a text but by the one
// policy of static/js/part.js.
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types shoal"

// Head is what a page tells the frame around it.
type Head struct {
	Title   string   // of the window, before " - Shoal"; also the first heading where the page draws none
	Page    string   // which page it is, for scripts and tests: search, file, ...
	Scripts []string // modules below static/js besides boot.js
	Side    string   // which entry of the settings it is, where it stands among them; see side

	// Again is after how many seconds a browser without scripts asks for the page
	// anew; 0 for never.
	Again int

	Box Box // what stands in the search box
}

// Box is the state of the search box.
type Box struct {
	Query               string
	Regexp, Case, Whole bool
	Context             int  // lines around a match; 0 is one
	Grouped             bool // files of one repository stand together
	Bad                 bool // the query cannot be understood
	Focus               bool // the page begins in the box
}

// frame is what the base template draws.
type frame struct {
	Head
	Style   template.CSS // that the page carries; "" where it names the address of it
	Modules []string     // of all scripts of the page, so that none waits for another to name it
	Viewer  string       // name of who is signed in; "" for a guest
	Owner   bool
	Nav     []link
	Around  []link // the settings that the viewer may open; nil beside them
}

// link is an entry of the navigation. A page of another package that belongs
// there adds a row to nav.
type link struct {
	Name, URL, Page string
	here            bool
}

var nav = [...]link{
	{Name: "Repositories", URL: "/repos", Page: "repos"},
	{Name: "Ask", URL: "/chat", Page: "chats"},
	{Name: "Settings", URL: "/settings", Page: "settings"},
	{Name: "Help", URL: "/help/syntax", Page: "help"},
}

// side is the navigation of the settings. A page of another package that belongs
// there adds a row, and names it in Head.Side.
var side = [...]struct {
	link
	owners  bool // nobody else is shown it
	holders bool // only who may have API keys
}{
	{link: link{Name: "Overview", URL: "/settings", Page: "overview"}},
	{link: link{Name: "Repositories", URL: "/settings/repos", Page: "repos"}},
	{link: link{Name: "Connections", URL: "/settings/connections", Page: "connections"}, owners: true},
	{link: link{Name: "Jobs", URL: "/settings/jobs", Page: "jobs"}, owners: true},
	{link: link{Name: "Nodes", URL: "/settings/nodes", Page: "nodes"}},
	{link: link{Name: "Placement", URL: "/settings/placement", Page: "placement"}, owners: true},
	{link: link{Name: "Events", URL: "/settings/events", Page: "events"}, owners: true},
	{link: link{Name: "Audit", URL: "/settings/audit", Page: "audit"}, owners: true},
	{link: link{Name: "Configuration", URL: "/settings/config", Page: "config"}, owners: true},
	{link: link{Name: "Search contexts", URL: "/settings/contexts", Page: "contexts"}},
	{link: link{Name: "Agents", URL: "/settings/agents", Page: "agents"}},
	{link: link{Name: "Access", URL: "/settings/access", Page: "access"}},
	{link: link{Name: "API keys", URL: "/settings/keys", Page: "keys"}, holders: true},
	{link: link{Name: "People", URL: "/settings/people", Page: "people"}, owners: true},
	{link: link{Name: "Rights", URL: "/settings/rights", Page: "rights"}, owners: true},
	{link: link{Name: "Your account", URL: "/settings/account", Page: "account"}},
}

// sideFor is the rows of side that a page shows.
func sideFor(here string, viewer catalog.Viewer) []link {
	// A page that is not one of the settings has no second navigation.
	if here == "" {
		return nil
	}

	// Hidden, and refused by the page itself as well: a link is no permission.
	_, noOwner := account.AsOwner(viewer)
	_, noHolder := account.AsHolder(viewer)

	var out []link
	for _, s := range side {
		if s.owners && noOwner != nil || s.holders && noHolder != nil {
			continue
		}

		s.here = s.Page == here
		out = append(out, s.link)
	}
	return out
}

// Here reports whether the page that is shown is the one of the link.
func (l link) Here() bool { return l.here }

//go:embed templates
var templates embed.FS

var base = Parse(templates, "templates/base.html")

// Parse parses the templates of a page, each with the functions
//
//	text   text of a repository, hidden characters shown
//	name   the same for a name, in an element with a direction of its own
//	plain  a text for an attribute or a title
//	asset  the address of a static file
//	when   a When
//	brand  the drawing beside the name of the site
//
// It panics where they do not parse.
func Parse(from embed.FS, files ...string) *template.Template {
	return template.Must(template.New(lastPart(files[0])).Funcs(template.FuncMap{
		"text": Text, "name": Name, "plain": Plain, "asset": Asset, "brand": brand, "when": When.element,
	}).ParseFS(from, files...))
}

// Begin writes the frame up to where the page's own part begins.
func (v *Visit) Begin(w io.Writer, h Head) { v.frame(w, "begin", h) }

// End writes the rest of the frame.
func (v *Visit) End(w io.Writer, h Head) { v.frame(w, "end", h) }

// frame writes a part of the base template. It has a value for everything that
// the template asks for; what a writer has to say shows at the next write.
func (v *Visit) frame(w io.Writer, part string, h Head) {
	f := frame{Head: h, Modules: modulesOf(h.Scripts), Nav: make([]link, len(nav)), Owner: v.Viewer.Role == catalog.RoleOwner}
	if v.Viewer.KeyID != "" || v.Viewer.Session != "" || f.Owner {
		f.Viewer = v.Viewer.Name
	}

	if v.Arrives {
		f.Style = carried().css
	}

	// Copies: the tables are shared by all visits, and here is of this one.
	f.Around = sideFor(h.Side, v.Viewer)
	for i, l := range nav {
		l.here = l.Page == h.Page
		f.Nav[i] = l
	}

	_ = base.ExecuteTemplate(w, part, f)
}
