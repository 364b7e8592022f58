package api

import (
	"context"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/api/settings"
	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	nodeask "github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/node/tool"
)

// parts are the parts of a node that the routes use, as interfaces.
type parts struct {
	keys       auth.Keys
	sessions   people.Sessions
	passwords  people.Passwords
	providers  people.Providers
	base       func() string // prefix of every link
	search     symbols.Searcher
	browse     browse.Reader
	operate    operate.Operator
	state      state
	apiKeys    web.Keys
	watches    web.Watches
	callers    callers
	chats      nodeask.Chats
	users      people.Accounts
	config     settings.Config
	suggest    web.Suggester
	agents     authority
	chronicle  trail
	modelTools []tool.Tool // tools that use a language model
	enforces   func() bool // reports whether viewers may see different repositories
}

// partsOf returns the parts of a node that the API uses.
func partsOf(n *node.Node) parts {
	return parts{
		keys: callerKeys{n.Keys, n.Sessions, n}, sessions: n.Sessions, passwords: n.Passwords, providers: n.SignIn(), base: n.BaseURL,
		search: n.Search, browse: n.Browse, operate: n.Operate, state: n,
		apiKeys: n.Keys, watches: n.Watches, callers: n.Keys, users: n.People,
		chats: n.Ask, modelTools: []tool.Tool{n.Ask.Tool()},
		config: n.Config, chronicle: n.Chronicle,
		suggest:  newSuggester(n, suggest.Within),
		agents:   n.OAuth(),
		enforces: n.Enforces,
	}
}

// callerKeys implements auth.Keys: a request has a key, a session, or no credential.
type callerKeys struct {
	*account.Keyring
	sessions
	guests
}

type sessions interface {
	SessionViewer(ctx context.Context, token string) (catalog.Viewer, error)
}

type guests interface {
	AnonymousAccess() bool
	OperatorBySocket() bool
}
