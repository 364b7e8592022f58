package api

import (
	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/node"
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
	base     string // prefix of every link
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
		keys: n, sessions: n, signing: n, doors: n.SignIn(), base: n.BaseURL(),
		search: n, files: n, history: n, repos: n, hooks: n, conns: n, state: n, apiKeys: n, callers: n, members: n, raft: n, placer: n, models: n, chats: n, users: n, config: n, jobs: n, events: n, audit: n, trail: n, suggest: suggesterOf(n, suggest.Within),
		agents: agentsOf(n.OAuth()),
		tools:  tool.Parts{Search: n, Browse: n, History: n, List: n}, asking: []tool.Tool{n.Asker.Tool()},
		enforces: n.Enforces,
	}
}
