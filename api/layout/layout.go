package layout

import (
	"embed"
	"html/template"
	"io"
	"net/url"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// MimeHTML is the content type of every page.
const MimeHTML = "text/html; charset=utf-8"

// CSP is the Content-Security-Policy of every page: no inline code except the style that Policy
// allows, nothing from other sites, and scripts create markup only by the policy of
// static/js/part.js.
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types shoal"

// Head is what the frame needs to know about its page.
type Head struct {
	Title   string   // of the window, before " - Shoal"; also the first heading if the page draws none
	Page    string   // name of the page for scripts and tests: search, file, ...
	Scripts []string // modules below static/js besides boot.js
	Side    string   // Page of the entry in side that leads to the page; "" outside of the settings

	// Again is the number of seconds after which a browser without scripts reloads the page; 0 for
	// never.
	Again int

	Box Box // state of the search box
}

// Box is the state of the search box.
type Box struct {
	Query               string
	Regexp, Case, Whole bool
	Context             int  // lines around a match; 0 means one
	Grouped             bool // files of one repository stand together
	Best                bool // the best commits come first, not the newest
	Bad                 bool // the query cannot be understood
	Focus               bool // the box has the focus when the page opens
	In                  *In  // the place that the page is about; nil for everywhere
}

// In limits searches to a part of the code, such as a repository. Readers can remove the limit in
// the search box.
type In struct{ Name, Query string }

// frame is the data of the base template.
type frame struct {
	Head
	Carried []template.CSS // styles to embed in the page
	Styles  []string       // names of styles to link
	Modules []string       // all modules that the scripts need, so that the browser loads them together
	Viewer  string         // name of who is signed in; "" for a guest
	Owner   bool
	SignIn  string // address of the sign-in page, which leads back to this page
	Theme   string // dark or light; "" for that of the system
	Themes  []theme
	Nav     []link
	Around  []group // navigation of the settings; nil on other pages
}

// theme is a choice of colours. Value is the value of the theme cookie.
type theme struct {
	Name, Value string
	Here        bool
}

// themeCookie is the cookie with a browser's theme: so the first byte of a page already has it.
const themeCookie = "theme"

// themesOf returns the themes, and marks the one in the cookie.
func themesOf(cookie string) []theme {
	all := []theme{{Name: "System"}, {Name: "Light", Value: "light"}, {Name: "Dark", Value: "dark"}}
	at := max(0, slices.IndexFunc(all, func(t theme) bool { return t.Value == cookie }))
	all[at].Here = true
	return all
}

// link is an entry of the navigation. A new page adds a row to nav.
type link struct {
	Name, URL, Page, Icon string
	here                  bool
}

// Here reports whether the link leads to the shown page.
func (l link) Here() bool { return l.here }

var nav = [...]link{
	{Name: "Repositories", URL: "/repos", Page: "repos", Icon: "repo"},
	{Name: "Ask", URL: "/chat", Page: "chats", Icon: "ask"},
	{Name: "Settings", URL: "/settings", Page: "settings", Icon: "settings"},
	{Name: "Help", URL: "/help/syntax", Page: "help", Icon: "help"},
}

// group is a part of the navigation of the settings.
type group struct {
	Name  string
	Links []link
}

// side is the navigation of the settings. A new page adds a row, and has the row's Page in Head.Side.
var side = [...]struct {
	group string
	link
	owners  bool // only owners see it
	holders bool // only viewers who may have API keys see it
}{
	{group: "Cluster", link: link{Name: "Overview", URL: "/settings", Page: "overview", Icon: "pulse"}},
	{group: "Cluster", link: link{Name: "Nodes", URL: "/settings/nodes", Page: "nodes", Icon: "node"}},
	{group: "Cluster", link: link{Name: "Placement", URL: "/settings/placement", Page: "placement", Icon: "type"}, owners: true},
	{group: "Cluster", link: link{Name: "Jobs", URL: "/settings/jobs", Page: "jobs", Icon: "clock"}, owners: true},
	{group: "Cluster", link: link{Name: "Events", URL: "/settings/events", Page: "events", Icon: "warning"}, owners: true},
	{group: "Cluster", link: link{Name: "Configuration", URL: "/settings/config", Page: "config", Icon: "file"}, owners: true},
	{group: "Sources", link: link{Name: "Repositories", URL: "/settings/repos", Page: "repos", Icon: "repo"}},
	{group: "Sources", link: link{Name: "Connections", URL: "/settings/connections", Page: "connections", Icon: "link"}, owners: true},
	{group: "Sources", link: link{Name: "Search contexts", URL: "/settings/contexts", Page: "contexts", Icon: "filter"}},
	{group: "Access", link: link{Name: "People", URL: "/settings/people", Page: "people", Icon: "person"}, owners: true},
	{group: "Access", link: link{Name: "Rights", URL: "/settings/rights", Page: "rights", Icon: "lock"}, owners: true},
	{group: "Access", link: link{Name: "Audit", URL: "/settings/audit", Page: "audit", Icon: "search"}, owners: true},
	{group: "You", link: link{Name: "Agents", URL: "/settings/agents", Page: "agents", Icon: "ask"}},
	{group: "You", link: link{Name: "Access", URL: "/settings/access", Page: "access", Icon: "check"}},
	{group: "You", link: link{Name: "Watches", URL: "/watches", Page: "watches", Icon: "pulse"}, holders: true},
	{group: "You", link: link{Name: "API keys", URL: "/settings/keys", Page: "keys", Icon: "key"}, holders: true},
	{group: "You", link: link{Name: "Your account", URL: "/settings/account", Page: "account", Icon: "settings"}},
}

// sideFor returns the rows of side that a viewer sees, by group, and marks the one of the page here.
func sideFor(here string, viewer catalog.Viewer) []group {
	// Pages outside the settings have no second navigation.
	if here == "" {
		return nil
	}

	// Hiding a link protects nothing: the page itself checks its viewer too.
	_, notOwner := account.AsOwner(viewer)
	_, notHolder := account.AsHolder(viewer)

	var out []group
	for _, s := range side {
		if s.owners && notOwner != nil || s.holders && notHolder != nil {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Name != s.group {
			out = append(out, group{Name: s.group})
		}

		s.here = s.Page == here
		at := &out[len(out)-1]
		at.Links = append(at.Links, s.link)
	}
	return out
}

//go:embed templates
var templates embed.FS

var base = Parse(templates, "templates/base.html")

// Parse parses the templates of a page. They can use these functions:
//
//	text   text of a repository, with hidden characters shown
//	name   the same for a name, with its text direction isolated
//	plain  a text for an attribute or a title
//	asset  the address of a static file
//	when   a When
//	brand  the site's logo
//	icon   a drawing of static/icons.svg by its name
//
// It panics if a template is invalid.
func Parse(from embed.FS, files ...string) *template.Template {
	return template.Must(template.New(lastPart(files[0])).Funcs(template.FuncMap{
		"text": Text, "name": Name, "repo": RepoName, "plain": Plain, "asset": Asset, "brand": brand, "icon": icon, "when": When.element,
	}).ParseFS(from, files...))
}

// Begin writes the frame up to the page's own content.
func (v *Visit) Begin(w io.Writer, h Head) { v.frame(w, "begin", h) }

// End writes the rest of the frame.
func (v *Visit) End(w io.Writer, h Head) { v.frame(w, "end", h) }

// signIn returns the address of the sign-in page. It leads back to the shown page, unless that is
// the sign-in page or the answer to a form.
func (v *Visit) signIn() string {
	if v.Method != "GET" || v.Path == "/login" || v.Path == "/" {
		return "/login"
	}

	here := v.Path
	if q := v.Query.Encode(); q != "" {
		here += "?" + q
	}
	return "/login?" + url.Values{"next": {here}}.Encode()
}

// frame writes a part of the base template: "begin" or "end". It ignores errors: the template cannot
// fail, and an error of w shows at the next write.
func (v *Visit) frame(w io.Writer, part string, h Head) {
	f := frame{Head: h, Modules: modulesOf(h.Scripts), Nav: make([]link, len(nav)), Owner: v.Viewer.Role == catalog.RoleOwner, SignIn: v.signIn()}
	if f.Box.In == nil {
		f.Box.In = v.In
	}
	cookie := ""
	if v.Cookie != nil {
		cookie = v.Cookie(themeCookie)
	}
	f.Themes = themesOf(cookie)
	for _, t := range f.Themes {
		if t.Here {
			f.Theme = t.Value
		}
	}

	if v.Viewer.KeyID != "" || v.Viewer.Session != "" || f.Owner {
		f.Viewer = v.Viewer.Name
	}

	f.Styles = stylesOf(h.Page)
	if v.Arrives {
		for _, name := range f.Styles {
			f.Carried = append(f.Carried, embeddedStyle(name))
		}
		f.Styles = nil
	}

	// Mark copies of the entries, because all visits share the tables.
	f.Around = sideFor(h.Side, v.Viewer)
	for i, l := range nav {
		l.here = l.Page == h.Page
		f.Nav[i] = l
	}

	_ = base.ExecuteTemplate(w, part, f)
}
