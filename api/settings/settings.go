// Package settings holds the pages by which people run a cluster in a browser:
// what may fail now, repositories, connections, nodes, where data lies, which
// configuration counts, search contexts, and how agents are connected.
//
//	/settings                 overview
//	/settings/repos           repositories with their states
//	/settings/connections     code hosts                         owners
//	/settings/connections/{connection}   with its last listings  owners
//	/settings/jobs            what is done, waits and failed     owners
//	/settings/nodes           the members of the cluster
//	/settings/placement       copies and what lacks them         owners
//	/settings/events          what happened lately               owners
//	/settings/audit           who changed what                   owners
//	/settings/config          the configuration and its effects  owners
//	/settings/contexts        search contexts
//	/settings/agents          the tool server, for each client
//	/settings/do/{action}     one change: asked about, then done owners
//
// A page calls the same methods for the same viewer as the routes of the API do,
// so a program can fetch whatever a page shows. Each change is a row of the table
// actions: GET says what would happen and which command does the same, POST does it.
//
// One file holds one page, and templates has its template. Package layout has the
// frame, the navigation beside the pages, and the escape.
package settings

import (
	"context"
	"embed"
	"html/template"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/chronicle"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/node/operate"
)

//go:embed templates
var templates embed.FS

// State reads the state of the cluster.
type State interface {
	Status(context.Context, catalog.Viewer) (*node.StatusResponse, error)
}

// Chronicle reads events and the audit.
type Chronicle interface {
	Events(context.Context, account.Owner, chronicle.EventsRequest) (*chronicle.EventsResponse, error)
	Audit(context.Context, account.Owner, chronicle.AuditRequest) (*chronicle.AuditResponse, error)
}

// Config reads and changes the configuration.
type Config interface {
	Configuration(context.Context, account.Owner) (*configure.ConfigurationResponse, error)
	Contexts(context.Context, catalog.Viewer) ([]configure.ContextInfo, error)
	ApplyConfig(context.Context, account.Owner, configure.ApplyConfigRequest) (*configure.ApplyConfigResponse, error)
}

// Deps are the parts that the pages use. Parts of *node.Node implement the interfaces.
type Deps struct {
	State     State
	Browse    browse.Reader
	Operate   operate.Operator
	Chronicle Chronicle
	Config    Config
	Base      func() string // prefix of links used outside of this site, as in messages
	Now       func() time.Time
}

// Pages answers requests for pages. It is safe for concurrent use.
type Pages struct{ Deps }

// New makes the pages.
func New(d Deps) *Pages { return &Pages{d} }

// Route is a page with its address.
type Route struct {
	Path, Method string // may have {parts}
	Timeout      time.Duration
	Handle       layout.Handler
}

const (
	quick = 10 * time.Second
	slow  = time.Minute // as long as a change may wait for a leader
)

// Routes returns the table of pages.
func (p *Pages) Routes() []Route {
	// Changes may wait for a leader, so they are slow. Reading is local.
	return []Route{
		{"/settings", "GET", quick, p.overview},
		{"/settings/repos", "GET", quick, p.repos},
		{connectionsAt, "GET", quick, p.connections},
		{connectionsAt + "/{connection}", "GET", quick, p.connection},
		{"/settings/jobs", "GET", quick, p.jobs},
		{"/settings/events", "GET", quick, p.events},
		{"/settings/audit", "GET", quick, p.audit},
		{"/settings/nodes", "GET", quick, p.nodes},
		{"/settings/placement", "GET", quick, p.placement},
		{"/settings/config", "GET", quick, p.config},
		{"/settings/contexts", "GET", quick, p.contexts},
		{"/settings/agents", "GET", quick, p.agents},
		{"/settings/do/{action}", "GET", quick, p.askConfirmation},
		{"/settings/do/{action}", "POST", slow, p.makeChange},
	}
}

// page is the data of every page's template. Data has what only this page shows.
type page struct {
	Title string
	Owner bool
	Said  string // message after a change
	Data  any
}

// show answers with a page of the settings. side is its entry in the navigation.
func (p *Pages) show(v *layout.Visit, side, title string, t *template.Template, data any) error {
	return v.Show(layout.Head{Title: title, Page: "settings", Side: side, Scripts: []string{"js/live.js"}}, t, page{
		Title: title, Owner: v.Viewer.Role == catalog.RoleOwner, Said: messageOf(v.Query.Get("did")), Data: data,
	})
}

// parse parses a page's template with the shared parts.
func parse(file string) *template.Template {
	return layout.Parse(templates, "templates/"+file, "templates/shared.html")
}

// when formats a time relative to now.
func (p *Pages) when(t time.Time) layout.When { return layout.At(p.Now(), t) }

// mark is a state shown as icon, word and color, because none of them is enough for everybody.
type mark struct{ Class, Icon, Word string }

var (
	neutral = func(word string) mark { return mark{"", "•", word} }

	good = func(word string) mark { return mark{"good", "✓", word} }
	busy = func(word string) mark { return mark{"dim", "…", word} }
	warn = func(word string) mark { return mark{"warn", "⚠", word} }
	bad  = func(word string) mark { return mark{"bad", "✗", word} }
)
