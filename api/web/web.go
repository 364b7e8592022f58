// Package web holds the pages that people search and read with: HTML drawn on
// the node, which works without scripts, and small modules that make it
// quicker to use. A page asks the same methods for the same viewer as the
// routes of the API do, so whatever it shows, a program can fetch.
//
//	/                                      the search box and what is here
//	/search?query=...                      results
//	/repos                                 the repositories that the viewer may see
//	/browse/<repo>[@<rev>]/-/blob/<path>   a file; also tree, blame, commits, commit, compare, branches, find, names, raw
//	/chat, /chat/<id>[/events]             questions to a language model, and a thread of them as it grows
//	/settings/keys                         API keys
//	/settings/access                       programs that act for the reader
//	/oauth/authorize                       whether one more may
//	/help/..., /opensearch.xml
//
// One file holds one page, its template stands below templates. Code is drawn by
// append functions (rows.go), everything else by html/template. The frame, the
// escape and the rules for scripts are package layout's.
package web

import (
	"context"
	"embed"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/suggest"
)

//go:embed templates
var templates embed.FS

// Searcher is what the pages of searches need.
type Searcher interface {
	Search(context.Context, catalog.Viewer, search.Request) (*search.Response, error)
	Definitions(context.Context, catalog.Viewer, search.SymbolRequest) (*search.SymbolResponse, error)
	References(context.Context, catalog.Viewer, search.SymbolRequest) (*search.SymbolResponse, error)
}

// Lister tells of the repositories that a viewer may see.
type Lister interface {
	Repos(context.Context, catalog.Viewer, browse.ReposRequest) (*browse.ReposResponse, error)
	Repo(ctx context.Context, v catalog.Viewer, name string) (*browse.RepoInfo, error)
}

// Files is what the pages of files need.
type Files interface {
	Source(context.Context, catalog.Viewer, browse.SourceRequest) (*browse.SourceResponse, error)
	Tree(context.Context, catalog.Viewer, browse.TreeRequest) (*browse.TreeResponse, error)
	Diff(context.Context, catalog.Viewer, browse.DiffRequest) (*browse.DiffResponse, error)
	Blame(context.Context, catalog.Viewer, browse.BlameRequest) (*browse.BlameResponse, error)
}

// Trees lists directories, and what files define.
type Trees interface {
	ListTree(context.Context, catalog.Viewer, browse.ListTreeRequest) (*browse.ListTreeResponse, error)
	Outline(context.Context, catalog.Viewer, browse.OutlineRequest) (*browse.OutlineResponse, error)
}

// History is what the pages of commits and revisions need.
type History interface {
	Commits(context.Context, catalog.Viewer, browse.CommitsRequest) (*browse.CommitsResponse, error)
	Commit(context.Context, catalog.Viewer, browse.CommitRequest) (*browse.CommitInfo, error)
	Branches(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error)
	Tags(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error)
}

// Suggester completes queries and paths.
type Suggester interface {
	Complete(ctx context.Context, v catalog.Viewer, query string, cursor int) ([]suggest.Suggestion, error)
	Files(context.Context, catalog.Viewer, suggest.FilesRequest) (*suggest.FilesResponse, error)
}

// Deps is what the pages stand on. The contracts are those of the types that
// *node.Node is made of.
type Deps struct {
	Search   Searcher
	Repos    Lister
	Files    Files
	Trees    Trees
	History  History
	Suggest  Suggester
	Keys     Keys
	Asker    Asker
	Threads  Threads
	Watcher  Watcher
	Changer  ThreadChanger
	Consents Consents
	Base     string // prefix of links that leave this site
	Now      func() time.Time
}

// Pages answers requests for pages. It is safe for concurrent use.
type Pages struct{ Deps }

// New makes the pages.
func New(d Deps) *Pages { return &Pages{d} }

// Route is a page with its address.
type Route struct {
	Path, Method string // the path may have {parts}, or end in /*
	Timeout      time.Duration
	Handle       layout.Handler
}

const (
	quick = 10 * time.Second
	slow  = time.Minute
	long  = 15 * time.Minute // longer than a question may take
)

// Routes is the table of the pages.
func (p *Pages) Routes() []Route {
	return append(movedRoutes(), []Route{
		{"/", "GET", quick, p.home},
		{"/search", "GET", slow, p.search},
		{"/suggest", "GET", quick, p.suggest},
		{"/repos", "GET", quick, p.repos},
		{"/browse/*", "GET", slow, p.browse},
		{"/chat", "GET", quick, p.chats},
		{"/chat", "POST", quick, p.chats},
		{"/chat/{id}", "GET", quick, p.chat},
		{"/chat/{id}", "POST", quick, p.chat},
		{"/chat/{id}/events", "GET", long, p.chatEvents},
		{"/settings/keys", "GET", quick, p.keys},
		{"/settings/keys", "POST", slow, p.keys},
		{"/settings/access", "GET", quick, p.access},
		{"/settings/access", "POST", slow, p.access},
		{"/oauth/authorize", "GET", quick, p.consent},
		{"/oauth/authorize", "POST", quick, p.consent},
		{"/authorize", "GET", quick, p.consent},
		{"/opensearch.xml", "GET", quick, p.openSearch},
		{"/help/{topic}", "GET", quick, p.help},
	}...)
}
