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
// A page asks the same methods for the same viewer as the routes of the API do,
// so whatever it shows, a program can fetch. Nothing is changed but by a row of
// the table actions: GET says what would happen and which command does the
// same, POST does it.
//
// One file holds one page, its template stands below templates. The frame, the
// navigation beside the pages and the escape are package layout's.
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

// State tells of the cluster.
type State interface {
	Status(context.Context, catalog.Viewer, node.StatusRequest) (*node.StatusResponse, error)
}

// Repos tells of repositories, and indexes one now.
type Repos interface {
	Repos(context.Context, catalog.Viewer, browse.ReposRequest) (*browse.ReposResponse, error)
	Repo(ctx context.Context, v catalog.Viewer, name string) (*browse.RepoInfo, error)
	Reindex(context.Context, account.Owner, operate.ReindexRequest) (*operate.ReindexResponse, error)
}

// Connections tells of the code hosts, and asks them.
type Connections interface {
	Connections(context.Context, account.Owner) ([]operate.ConnectionStatus, error)
	Connection(context.Context, account.Owner, operate.ConnectionRequest) (*operate.ConnectionResponse, error)
	SyncConnection(context.Context, account.Owner, operate.ConnectionRequest) (*operate.ConnectionStatus, error)
	AcceptListing(context.Context, account.Owner, operate.ConnectionRequest) (*operate.ConnectionStatus, error)
}

// Members lets nodes leave and come back.
type Members interface {
	Drain(context.Context, account.Owner, operate.DrainRequest) (*operate.DrainResponse, error)
	Undrain(context.Context, account.Owner, operate.DrainRequest) (*operate.UndrainResponse, error)
	Remove(context.Context, account.Owner, operate.RemoveRequest) (*operate.RemoveResponse, error)
}

// Jobs tells of the work of the cluster, and changes it.
type Jobs interface {
	Jobs(context.Context, catalog.Viewer, operate.JobsRequest) (*operate.JobsResponse, error)
	Job(context.Context, catalog.Viewer, operate.JobRequest) (*operate.JobInfo, error)
	RetryJob(context.Context, account.Owner, operate.JobRequest) (*operate.JobInfo, error)
	CancelJob(context.Context, account.Owner, operate.JobRequest) (*operate.JobInfo, error)
}

// Events tells what happened to the cluster lately.
type Events interface {
	Events(context.Context, account.Owner, chronicle.EventsRequest) (*chronicle.EventsResponse, error)
}

// Audit tells who changed what.
type Audit interface {
	Audit(context.Context, account.Owner, chronicle.AuditRequest) (*chronicle.AuditResponse, error)
}

// Config tells of the configuration.
type Config interface {
	Configuration(context.Context, account.Owner) (*configure.ConfigurationResponse, error)
	Contexts(context.Context, catalog.Viewer) ([]configure.ContextInfo, error)
}

// Deps is what the pages stand on. The contracts are those of the types that
// *node.Node is made of.
type Deps struct {
	State       State
	Repos       Repos
	Connections Connections
	Jobs        Jobs
	Events      Events
	Audit       Audit
	Members     Members
	Config      Config
	Base        func() string // prefix of links that leave this site
	Now         func() time.Time
}

// Pages answers requests for pages. It is safe for concurrent use.
type Pages struct{ Deps }

// New makes the pages.
func New(d Deps) *Pages { return &Pages{d} }

// Route is a page with its address.
type Route struct {
	Path, Method string // the path may have {parts}
	Timeout      time.Duration
	Handle       layout.Handler
}

const (
	quick = 10 * time.Second
	slow  = time.Minute // as long as a change may wait for a leader
)

// Routes is the table of the pages.
func (p *Pages) Routes() []Route {
	// Changes may have to wait for a leader; what is shown is on this node already.
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
		{"/settings/do/{action}", "GET", quick, p.ask},
		{"/settings/do/{action}", "POST", slow, p.do},
	}
}

// page is what the template of every page is given, besides its own data.
type page struct {
	Title string
	Owner bool
	Said  string // what was done just now
	Data  any
}

// show answers with a page of the settings. side is its place in the navigation.
func (p *Pages) show(v *layout.Visit, side, title string, t *template.Template, data any) error {
	return v.Show(layout.Head{Title: title, Page: "settings", Side: side, Scripts: []string{"js/live.js"}}, t, page{
		Title: title, Owner: v.Viewer.Role == catalog.RoleOwner, Said: saidOf(v.Query.Get("did")), Data: data,
	})
}

// parse parses a page with what all of them share.
func parse(file string) *template.Template {
	return layout.Parse(templates, "templates/"+file, "templates/shared.html")
}

// when says how far a time is from now.
func (p *Pages) when(t time.Time) layout.When { return layout.At(p.Now(), t) }

// mark is a state of something: an icon, a word and a colour, since none of
// them says it alone.
type mark struct{ Class, Icon, Word string }

var (
	plainly = func(word string) mark { return mark{"", "•", word} }

	good = func(word string) mark { return mark{"good", "✓", word} }
	busy = func(word string) mark { return mark{"dim", "…", word} }
	warn = func(word string) mark { return mark{"warn", "⚠", word} }
	bad  = func(word string) mark { return mark{"bad", "✗", word} }
)
