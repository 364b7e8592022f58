// Package web holds the pages that people search and read with: HTML drawn on
// the node, which works without scripts, and small modules that make it
// quicker to use. A page calls the same methods for the same viewer as the
// routes of the API do, so a program can fetch whatever a page shows.
//
//	/                                      the search box and what is here
//	/search?query=...                      results
//	/repos                                 the repositories that the viewer may see
//	/browse/<repo>[@<rev>]/-/blob/<path>   a file; also tree, blame, commits, commit, compare, branches, find, symbols, names, dependencies, raw
//	/open?remote=&path=&line=&commit=      to the page of a line in an editor
//	/embed/<repo>[@<rev>]/-/blob/<path>    lines of a file within a page of another site
//	/chat, /chat/<id>[/events]             questions to a language model, and a thread of them as it grows
//	/watches, /watches/<id>                searches that tell of what is new
//	/settings/keys                         API keys
//	/settings/access                       programs that act for the reader
//	/oauth/authorize                       asks whether a program may act for the reader
//	/help/..., /opensearch.xml
//
// One file holds one page, its template stands below templates. Code is drawn by
// append functions (rows.go), everything else by html/template. Package layout has
// the frame, the escape and the rules for scripts.
package web

import (
	"context"
	"embed"
	"maps"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/node/symbols"
)

//go:embed templates
var templates embed.FS

// Suggester completes queries, paths and names of symbols, and finds what a query may mean.
type Suggester interface {
	Complete(ctx context.Context, v catalog.Viewer, query string, cursor int) ([]suggest.Suggestion, error)
	Files(context.Context, catalog.Viewer, suggest.FilesRequest) (*suggest.FilesResponse, error)
	Symbols(context.Context, catalog.Viewer, suggest.SymbolsRequest) (*suggest.SymbolsResponse, error)
	NearPaths(ctx context.Context, v catalog.Viewer, repo, ref, missing string, directories bool) ([]string, error)
	GoTo(ctx context.Context, v catalog.Viewer, text string) []suggest.Target
	Nearest(context.Context, catalog.Viewer, search.Request, *search.Response) *suggest.Nearest
}

// Deps are the dependencies of the pages; *node.Node has parts that implement them.
type Deps struct {
	Search   symbols.Searcher
	Browse   browse.Reader
	Suggest  Suggester
	Keys     Keys
	Watches  Watches
	Chats    ask.Chats
	Consents Consents
	Base     func() string // prefix of links that leave this site
	Embed    bool          // other sites may embed lines of a file
	Now      func() time.Time
}

// Pages serves the pages. It is safe for concurrent use.
type Pages struct {
	overview      overview
	searching     searching
	reading       reading
	conversations conversations
	keyring       keyring
	agents        agents
	watching      watching
}

// Parts of Pages: each shows some of the pages, and has the dependencies of these.
type (
	// overview shows what there is to search.
	overview struct {
		dating
		reader browse.Reader
		base   func() string
	}

	// searching shows results and suggestions.
	searching struct {
		searcher  symbols.Searcher
		suggester Suggester
		now       func() time.Time
	}

	// reading finds the place in a repository that an address names, and shows its page.
	reading struct {
		reader    browse.Reader
		searcher  symbols.Searcher
		suggester Suggester
		sources   sources
		revisions revisions
	}

	// sources shows files and directories at one commit.
	sources struct {
		dating
		reader browse.Reader
		base   func() string
		framed bool // other sites may embed a file
	}

	// revisions shows commits, branches, and differences.
	revisions struct {
		dating
		reader browse.Reader
		base   func() string
	}

	// conversations shows questions and their answers.
	conversations struct {
		dating
		asker ask.Chats
	}

	// keyring shows API keys.
	keyring struct {
		dating
		apiKeys Keys
		base    func() string
	}

	// agents shows authorized programs.
	agents struct {
		dating
		consents Consents
		base     func() string
	}
)

// dating formats times relative to now.
type dating struct{ now func() time.Time }

// New returns the pages.
func New(d Deps) *Pages {
	at := dating{d.Now}
	return &Pages{
		overview:  overview{at, d.Browse, d.Base},
		searching: searching{d.Search, d.Suggest, d.Now},
		reading: reading{
			reader:    d.Browse,
			searcher:  d.Search,
			suggester: d.Suggest,
			sources:   sources{at, d.Browse, d.Base, d.Embed},
			revisions: revisions{at, d.Browse, d.Base},
		},
		conversations: conversations{at, d.Chats},
		keyring:       keyring{at, d.Keys, d.Base},
		agents:        agents{at, d.Consents, d.Base},
		watching:      watching{at, d.Watches},
	}
}

// Route is a page with its address.
type Route struct {
	Path, Method string // the path may have {parts}, or end in /*
	Timeout      time.Duration
	Handle       layout.Handler
}

const (
	quick = 10 * time.Second
	slow  = time.Minute      // for searches, git, and changes that wait for a leader
	long  = 15 * time.Minute // longer than a question may take
)

// Routes returns the table of the pages.
func (p *Pages) Routes() []Route {
	return append(movedRoutes(), []Route{
		{"/", "GET", quick, p.home},
		{"/search", "GET", slow, p.searching.search},
		{"/suggest", "GET", quick, p.searching.suggest},
		{"/repos", "GET", quick, p.overview.repos},
		{"/browse/*", "GET", slow, p.reading.browse},
		{"/open", "GET", quick, p.reading.open},
		{"/chat", "GET", quick, p.conversations.chats},
		{"/chat", "POST", quick, p.conversations.chats},
		{"/chat/{id}", "GET", quick, p.conversations.chat},
		{"/chat/{id}", "POST", quick, p.conversations.chat},
		{"/chat/{id}/events", "GET", long, p.conversations.chatEvents},
		{"/watches", "GET", quick, p.watching.showWatches},
		{"/watches", "POST", slow, p.watching.showWatches},
		{"/watches/{id}", "GET", quick, p.watching.showWatch},
		{"/watches/{id}", "POST", slow, p.watching.showWatch},
		{"/settings/keys", "GET", quick, p.keyring.showKeys},
		{"/settings/keys", "POST", slow, p.keyring.showKeys},
		{"/settings/access", "GET", quick, p.agents.access},
		{"/settings/access", "POST", slow, p.agents.access},
		{"/oauth/authorize", "GET", quick, p.agents.consent},
		{"/oauth/authorize", "POST", quick, p.agents.consent},
		{"/authorize", "GET", quick, p.agents.consent},
		{"/opensearch.xml", "GET", quick, p.overview.openSearch},
		{"/help/{topic}", "GET", quick, p.overview.help},
		{"/docs", "GET", quick, p.overview.docs},
		{"/docs/*", "GET", quick, p.overview.docs},
	}...)
}

// Kinds returns the kinds of pages below /browse/, as they stand in addresses after /-/.
func (p *Pages) Kinds() []string { return slices.Sorted(maps.Keys(p.reading.kinds())) }
