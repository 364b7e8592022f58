package api

import (
	"context"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/node/tool"
)

// parts is what the routes stand on. Each interface is declared where its
// handlers are, and is no larger than they need; the contracts are those of the
// types that *node.Node is made of.
type parts struct {
	keys     auth.Keys
	sessions people.Sessions
	signing  passwords
	doors    providers
	base     func() string // prefix of every link
	search   searcher
	files    files
	history  history
	repos    repositories
	hooks    webhooks
	conns    connections
	state    state
	apiKeys  apiKeys
	callers  callers
	members  members
	raft     agreement
	placer   placer
	models   models
	chats    chats
	users    users
	config   configurer
	jobs     jobs
	suggest  suggester
	agents   agentParts
	events   events
	audit    auditor
	trail    trail
	tools    tool.Parts
	asking   []tool.Tool // that answer with a language model
	enforces func() bool // whether viewers may differ in what they see; nil for no
}

func partsOf(n *node.Node) parts {
	return parts{
		keys: callerKeys{n.Keys, n.Sessions, n}, sessions: n.Sessions, signing: n.Passwords, doors: n.SignIn(), base: n.BaseURL,
		search: n.Search, files: n.Browse, history: n.Browse, repos: indexedRepos{n.Browse, n.Operate},
		hooks: n.Operate, conns: n.Operate, members: n.Operate, jobs: n.Operate,
		state: n, raft: n, placer: n,
		apiKeys: n.Keys, callers: n.Keys, users: n.People,
		models: n.Ask, chats: n.Ask, asking: []tool.Tool{n.Ask.Tool()},
		config: n.Config, events: n.Chronicle, audit: n.Chronicle, trail: n.Chronicle,
		suggest:  suggesterOf(n, suggest.Within),
		agents:   agentsOf(n.OAuth()),
		tools:    tool.Parts{Search: n.Search, Browse: n.Browse, History: n.Browse, List: n.Browse, Models: n.Ask},
		enforces: n.Enforces,
	}
}

// callerKeys tells who a request comes from: by a key, by a session, or by nothing.
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

// indexedRepos lists repositories, and indexes one anew.
type indexedRepos struct {
	*browse.Browser
	reindexer
}

type reindexer interface {
	Reindex(context.Context, account.Owner, operate.ReindexRequest) (*operate.ReindexResponse, error)
}
