package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/cluster/catalog"
	nodeask "github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/tool"
)

// shot is one request of the oracle.
type shot struct {
	method, target string // path with query
	body           string
}

// aims are the names for the requests of a world: every name of both clusters, and one that never
// existed.
type aims struct {
	repos []string // visible, hidden and invented repositories
	pick  func(n int) int
}

func get(format string, args ...any) shot {
	return shot{method: "GET", target: fmt.Sprintf(format, args...)}
}

func post(target string, body any) shot {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return shot{method: "POST", target: target, body: string(b)}
}

type object = map[string]any

// each returns a request for each repository.
func (a aims) each(make func(repo string) shot) (list []shot) {
	for _, r := range a.repos {
		list = append(list, make(r))
	}
	return list
}

// ofRepo returns a GET for each repository, whose name replaces %s.
func ofRepo(formats ...string) func(a aims) []shot {
	return func(a aims) (list []shot) {
		for _, format := range formats {
			list = append(list, a.each(func(r string) shot { return get(format, url.QueryEscape(r)) })...)
		}
		return list
	}
}

func once(s ...shot) func(aims) []shot { return func(aims) []shot { return s } }

// queries returns searches over everything, and over each repository.
func (a aims) queries() []string {
	q := []string{
		"shark", "whale count:all", "shark or whale", "-shark", "file:main", "file:README whale", "type:repo shark", "type:file whale",
		"rev:* shark", "rev:v1 shark", "rev:side", "shark at:2090-01-01", "whale rev:v1 at:2090", "shark at:1980", "lang:go", "lang:markdown whale", "repo:local", "-repo:a", "visibility:public shark",
		"visibility:private whale", "archived:no fork:no type:repo", "context:all shark", "context:none shark", "context:missing shark", "shark count:1", "count:2 whale",
		"nothing-has-this", "sh.rk", "sym:main", "unbalanced(", `"package main"`,
	}
	for _, r := range a.repos {
		short := r[strings.LastIndexByte(r, '/')+1:]
		q = append(q, "reposet:"+r+" shark", "repo:"+short+" type:repo", "only-"+short, "repo:^"+r+"$ rev:*",
			"/home/"+short+"/main.go:1", "https://"+r+"/blob/main/main.go#L1", "error 7: only-"+short+" in 5 ms", short+".Swim")
	}
	q = append(q, "main.go:1:1", "at a (main.go:1:1) at b (README.md:1:1)", "**/*.go", "docs/*.md", "Swimmer::Swim")
	return q
}

func searches(target string) func(a aims) []shot {
	return func(a aims) (list []shot) {
		for i, q := range a.queries() {
			list = append(list, post(target, object{"query": q, "matches": []int{1000, 3, 50}[i%3], "contextLines": i % 3, "isRegexEnabled": i%4 == 3, "whole": i%7 == 0, "facets": i%2 == 0, "understand": i%3 < 2, "pages": i%2 == 1 && target == "/api/search"}))
		}
		return list
	}
}

// completions returns half-typed queries.
func completions(format string) func(a aims) []shot {
	return func(a aims) (list []shot) {
		for _, q := range []string{"", "sha", "repo:", "repo:l", "reposet:local/", "file:ma", "context:", "rev:", "lang:", "sym:Sw", "-repo:a"} {
			list = append(list, get(format, url.QueryEscape(q)))
		}
		for _, r := range a.repos {
			list = append(list, get(format, url.QueryEscape("repo:"+r[:len(r)-1])), get(format, url.QueryEscape("repo:"+r+" file:")), get(format, url.QueryEscape("repo:"+r+" rev:")))
		}
		return list
	}
}

func symbolsAt(target string) func(a aims) []shot {
	return func(a aims) []shot {
		list := []shot{post(target, object{"symbolName": "main"}), post(target, object{"symbolName": "whale", "language": "Go"})}
		list = append(list, post(target, object{"symbolName": "main", "includeDefinitions": true, "signature": true}))
		list = append(list, a.each(func(r string) shot { return post(target, object{"symbolName": "Swim", "repoName": r}) })...)
		return append(list, a.each(func(r string) shot {
			return post(target, object{"symbolName": "main", "pathRepoName": r, "path": "main.go", "line": 3, "limit": 2})
		})...)
	}
}

// commitsAt are the oracle's searches of commits at a route.
func commitsAt(target string) func(aims) []shot {
	return func(a aims) []shot {
		list := []shot{post(target, object{"query": "type:commit"}), post(target, object{"query": "type:diff added:shark"}), post(target, object{"query": "type:commit rev:* author:a", "matches": 2, "facets": true}), post(target, object{"query": "type:diff shark", "matches": 1, "order": "best", "facets": true, "releases": true}), post(target, object{"query": "shark"})}
		return append(list, a.each(func(r string) shot { return post(target, object{"query": "type:diff reposet:" + r}) })...)
	}
}

// askedRoutes has the oracle's requests for each route. A route without a row fails
// TestNonInterference_oracleRequestsEveryRoutePageAndToolParameter. Changes are requested in a way that a member is refused. Finished
// jobs are left out, because they are sorted by time.
var askedRoutes = map[string]func(aims) []shot{
	"POST /api/search":                searches("/api/search"),
	"POST /api/stream_search":         searches("/api/stream_search"),
	"POST /api/search_commits":        commitsAt("/api/search_commits"),
	"POST /api/stream_search_commits": commitsAt("/api/stream_search_commits"),
	"POST /api/find_definitions":      symbolsAt("/api/find_definitions"),
	"POST /api/find_references":       symbolsAt("/api/find_references"),
	"POST /api/repos/{id}/reindex":    once(shot{method: "POST", target: "/api/repos/1/reindex"}, shot{method: "POST", target: "/api/repos/3/reindex"}, shot{method: "POST", target: "/api/repos/900/reindex"}),
	"GET /api/repos": func(a aims) []shot {
		list := []shot{get("/api/repos"), get("/api/repos?perPage=1"), get("/api/repos?perPage=2&page=2"), get("/api/repos?sort=pushed&direction=desc"), get("/api/repos?sort=stars&direction=desc"), get("/api/repos?connection=closed"), get("/api/repos?connectionId=%d", catalog.ConnectionID("closed")), get("/api/repos?connectionId=%d", catalog.ConnectionID("work")), get("/api/repos?connectionId=1"), get("/api/repos?connection=none")}
		return append(list, a.each(func(r string) shot { return get("/api/repos?query=%s", url.QueryEscape(r)) })...)
	},
	"GET /api/source": ofRepo("/api/source?repo=%s&path=main.go", "/api/source?repo=%s&path=none&lastSeen=true"),
	"GET /api/raw":    ofRepo("/api/raw?repo=%s&path=main.go"),
	"POST /api/tree": func(a aims) []shot {
		list := a.each(func(r string) shot {
			return post("/api/tree", object{"repoName": r, "revisionName": "HEAD", "paths": []string{"docs"}})
		})
		return append(list, a.each(func(r string) shot {
			return post("/api/tree", object{"repoName": r, "paths": []string{"none"}, "lastSeen": true})
		})...)
	},
	"GET /api/commits":         ofRepo("/api/commits?repo=%s", "/api/commits?repo=%s&path=main.go&follow=true", "/api/commits?repo=%s&ref=v1..HEAD"),
	"GET /api/commit":          ofRepo("/api/commit?repo=%s&ref=HEAD"),
	"GET /api/commits/authors": ofRepo("/api/commits/authors?repo=%s"),
	"GET /api/diff":            ofRepo("/api/diff?repo=%s&base=v1&head=HEAD", "/api/diff?repo=%s&base=v1&head=HEAD&stat=true&mergeBase=true&ignoreWhitespace=true", "/api/diff?repo=%s&base=v1&head=HEAD&page=1&perPage=1"),
	"GET /api/blame":           ofRepo("/api/blame?repo=%s&path=main.go"),
	"GET /api/branches":        ofRepo("/api/branches?repo=%s"),
	"GET /api/tags":            ofRepo("/api/tags?repo=%s"),
	"GET /api/lastcommits":     ofRepo("/api/lastcommits?repo=%s", "/api/lastcommits?repo=%s&path=docs"),
	"GET /api/ref":             ofRepo("/api/ref?repo=%s&ref=v1", "/api/ref?repo=%s&ref=none"),
	"POST /api/chat": func(a aims) []shot {
		return a.each(func(r string) shot { return post("/api/chat", object{"query": "what is it?", "repos": []string{r}}) })
	},
	"POST /api/chat/blocking": func(a aims) []shot {
		return a.each(func(r string) shot {
			return post("/api/chat/blocking", object{"query": "what is it?", "repos": []string{r}})
		})
	},
	"GET /api/chat/{id}":        once(get("/api/chat/abc")),
	"POST /api/chat/{id}/stop":  once(shot{method: "POST", target: "/api/chat/abc/stop"}),
	"GET /api/chat/{id}/events": once(get("/api/chat/abc/events")),
	"GET /api/chat":             once(get("/api/chat"), get("/api/chat?perPage=1")),
	"PATCH /api/chat/{id}":      once(shot{method: "PATCH", target: "/api/chat/abc", body: `{"name":"x"}`}),
	"DELETE /api/chat/{id}":     once(shot{method: "DELETE", target: "/api/chat/abc"}),
	"POST /api/chat/{id}/messages": func(a aims) []shot {
		return a.each(func(r string) shot {
			return post("/api/chat/abc/messages", object{"query": "what is it?", "repos": []string{r}})
		})
	},
	"POST /api/chat/{id}/fork":            once(shot{method: "POST", target: "/api/chat/abc/fork"}),
	"GET /chat":                           once(get("/chat"), get("/chat?q=x")),
	"POST /chat":                          once(shot{method: "POST", target: "/chat", body: "query=x"}),
	"GET /chat/{id}":                      once(get("/chat/abc")),
	"GET /chat/{id}/events":               once(get("/chat/abc/events")),
	"POST /chat/{id}":                     once(shot{method: "POST", target: "/chat/abc", body: "do=stop"}),
	"GET /api/models":                     once(get("/api/models")),
	"POST /api/models/check":              once(shot{method: "POST", target: "/api/models/check"}),
	"GET /api/status":                     once(get("/api/status")),
	"GET /api/version":                    once(get("/api/version")),
	"GET /api/health":                     once(get("/api/health")),
	"GET /api/openapi.json":               once(get("/api/openapi.json")),
	"POST /api/config":                    once(post("/api/config", object{})),
	"GET /api/me":                         once(get("/api/me")),
	"POST /api/session":                   once(post("/api/session", object{"key": "none"}), post("/api/session", object{"email": "ann@example.com", "password": "none"})),
	"DELETE /api/session":                 once(shot{method: "DELETE", target: "/api/session"}),
	"GET /api/keys":                       once(get("/api/keys")),
	"POST /api/keys":                      once(post("/api/keys", object{"name": "x", "allRepositories": true})),
	"DELETE /api/keys/{key}":              once(shot{method: "DELETE", target: "/api/keys/unknown"}),
	"GET /api/users":                      once(get("/api/users")),
	"GET /api/watches":                    once(get("/api/watches")),
	"POST /api/watches":                   once(post("/api/watches", object{"query": "shark"})),
	"GET /api/watches/{watch}":            once(get("/api/watches/"+theirWatch), get("/api/watches/"+ownWatch), get("/api/watches/none")),
	"PATCH /api/watches/{watch}":          once(shot{method: "PATCH", target: "/api/watches/" + theirWatch, body: `{"name":"x"}`}, shot{method: "PATCH", target: "/api/watches/" + ownWatch, body: `{"name":"x"}`}),
	"DELETE /api/watches/{watch}":         once(shot{method: "DELETE", target: "/api/watches/" + theirWatch}, shot{method: "DELETE", target: "/api/watches/" + spareWatch}),
	"POST /api/watches/{watch}/feed":      once(shot{method: "POST", target: "/api/watches/" + theirWatch + "/feed"}, shot{method: "POST", target: "/api/watches/" + ownWatch + "/feed"}),
	"DELETE /api/watches/{watch}/feed":    once(shot{method: "DELETE", target: "/api/watches/" + theirWatch + "/feed"}, shot{method: "DELETE", target: "/api/watches/none/feed"}),
	"POST /api/watches/{watch}/webhook":   once(post("/api/watches/"+theirWatch+"/webhook", object{"url": "https://hooks.example.com/"}), post("/api/watches/"+ownWatch+"/webhook", object{"url": "http://127.0.0.1/"})),
	"DELETE /api/watches/{watch}/webhook": once(shot{method: "DELETE", target: "/api/watches/" + theirWatch + "/webhook"}, shot{method: "DELETE", target: "/api/watches/none/webhook"}),
	"GET /feed/{token}":                   once(get("/feed/none"), get("/feed/"+feedToken)),
	"GET /watches":                        once(get("/watches"), get("/watches?query=type:diff+shark")),
	"POST /watches":                       once(shot{method: "POST", target: "/watches", body: "query=shark"}),
	"GET /watches/{id}":                   once(get("/watches/"+theirWatch), get("/watches/"+ownWatch), get("/watches/none")),
	"POST /watches/{id}":                  once(shot{method: "POST", target: "/watches/" + theirWatch, body: "do=delete"}, shot{method: "POST", target: "/watches/" + ownWatch, body: "do=endfeed"}),
	"POST /api/users":                     once(post("/api/users", object{"email": "x@example.com"})),
	"POST /api/users/{user}":              once(post("/api/users/ann@example.com", object{"role": "owner"})),
	"DELETE /api/users/{user}":            once(shot{method: "DELETE", target: "/api/users/ann@example.com"}),
	"POST /api/users/{user}/grants": func(a aims) []shot {
		return a.each(func(r string) shot { return post("/api/users/ann@example.com/grants", object{"add": []string{r}}) })
	},
	"GET /.well-known/oauth-protected-resource":           once(get("/.well-known/oauth-protected-resource")),
	"GET /.well-known/oauth-protected-resource/api/mcp":   once(get("/.well-known/oauth-protected-resource/api/mcp")),
	"GET /.well-known/oauth-authorization-server":         once(get("/.well-known/oauth-authorization-server")),
	"GET /.well-known/oauth-authorization-server/api/mcp": once(get("/.well-known/oauth-authorization-server/api/mcp")),
	"GET /api/agents":                       once(get("/api/agents")),
	"POST /oauth/register":                  once(post("/oauth/register", object{})),
	"POST /register":                        once(post("/register", object{})),
	"POST /oauth/token":                     once(post("/oauth/token", object{})),
	"POST /token":                           once(post("/token", object{})),
	"POST /oauth/revoke":                    once(post("/oauth/revoke", object{})),
	"POST /api/agents/clients":              once(post("/api/agents/clients", object{})),
	"DELETE /api/agents/{agent}":            once(shot{method: "DELETE", target: "/api/agents/none"}),
	"GET /api/audit":                        once(get("/api/audit"), get("/api/audit?action=user&perPage=1"), get("/api/audit?format=jsonl")),
	"GET /api/ee/audit":                     once(get("/api/ee/audit"), get("/api/ee/audit?perPage=1")),
	"GET /api/ee/users":                     once(get("/api/ee/users")),
	"GET /api/ee/user":                      once(get("/api/ee/user?userId=none")),
	"DELETE /api/ee/user":                   once(shot{method: "DELETE", target: "/api/ee/user?userId=none"}),
	"GET /api/events":                       once(get("/api/events"), get("/api/events?limit=5"), get("/api/events?after=eyJsb2dzIjp7ImEiOnsibG9nIjoibCIsInJlYWQiOjB9fX0")),
	"GET /settings/audit":                   once(get("/settings/audit")),
	"GET /settings/events":                  once(get("/settings/events")),
	"GET /settings/access":                  once(get("/settings/access")),
	"POST /settings/access":                 once(shot{method: "POST", target: "/settings/access", body: "user=ann@example.com"}),
	"GET /authorize":                        once(get("/authorize"), get("/authorize?client_id=x")),
	"GET /oauth/authorize":                  once(get("/oauth/authorize"), get("/oauth/authorize?client_id=x")),
	"POST /oauth/authorize":                 once(shot{method: "POST", target: "/oauth/authorize", body: "client_id=x"}),
	"POST /api/webhook/{connection}/rotate": once(shot{method: "POST", target: "/api/webhook/closed/rotate"}, shot{method: "POST", target: "/api/webhook/none/rotate"}),
	"GET /api/suggest":                      completions("/api/suggest?query=%s"),
	"GET /suggest":                          completions("/suggest?cursor=4&query=%s"),
	"GET /api/query":                        completions("/api/query?query=%s"),
	"GET /api/files":                        ofRepo("/api/files?repo=%s&query=main"),
	"GET /api/symbols": func(a aims) []shot {
		return append(ofRepo("/api/symbols?repo=%s&path=main.go")(a), ofRepo("/api/symbols?repo=%s&query=sw", "/api/symbols?repo=%s&query=sw&signature=true")(a)...)
	},
	"GET /api/config":                           once(get("/api/config")),
	"GET /api/contexts":                         once(get("/api/contexts")),
	"GET /api/jobs":                             once(get("/api/jobs"), get("/api/jobs?state=failed"), get("/api/jobs?kind=index"), get("/api/jobs?kind=sync")),
	"GET /api/jobs/{id}":                        once(get("/api/jobs/index:900"), get("/api/jobs/sync:closed"), get("/api/jobs/none")),
	"POST /api/jobs/{id}/cancel":                once(shot{method: "POST", target: "/api/jobs/index:1/cancel"}),
	"POST /api/jobs/{id}/retry":                 once(shot{method: "POST", target: "/api/jobs/index:1/retry"}),
	"GET /settings/jobs":                        once(get("/settings/jobs")),
	"GET /api/connections":                      once(get("/api/connections")),
	"GET /api/connections/{connection}":         once(get("/api/connections/closed"), get("/api/connections/none")),
	"POST /api/connections/{connection}/sync":   once(shot{method: "POST", target: "/api/connections/closed/sync"}),
	"GET /api/history":                          once(get("/api/history")),
	"POST /api/history":                         once(post("/api/history", object{"glob": "closed*", "rule": "exclude"})),
	"POST /api/connections/{connection}/accept": once(shot{method: "POST", target: "/api/connections/closed/accept"}),
	"POST /api/nodes/{node}/drain":              once(shot{method: "POST", target: "/api/nodes/n1/drain"}),
	"POST /api/nodes/{node}/undrain":            once(shot{method: "POST", target: "/api/nodes/n1/undrain"}),
	"POST /api/nodes/{node}/lead":               once(shot{method: "POST", target: "/api/nodes/n1/lead"}),
	"POST /api/nodes/{node}/remove":             once(shot{method: "POST", target: "/api/nodes/n1/remove"}),
	"GET /api/placement":                        once(get("/api/placement"), get("/api/placement?page=2&perPage=1")),
	"GET /api/raft":                             once(get("/api/raft")),
	"GET /api/snapshot":                         once(get("/api/snapshot"), get("/api/snapshot?chats=true")),
	"POST /api/webhook/{connection}":            once(post("/api/webhook/closed", object{"ref": "x"}), post("/api/webhook/none", object{"ref": "x"})),
	"GET /api/webhook/{connection}":             once(get("/api/webhook/closed"), get("/api/webhook/none")),
	"GET /metrics":                              once(get("/metrics")),
	"GET /debug/pprof/{profile}":                once(get("/debug/pprof/heap"), get("/debug/pprof/profile?seconds=1")),
	"GET /livez":                                once(get("/livez")),
	"GET /readyz":                               once(get("/readyz")),
	"POST /api/mcp":                             toolCalls,

	"GET /static/*":          once(get("/static/none.css")),
	"GET /join":              once(get("/join?link=none")),
	"POST /join":             once(shot{method: "POST", target: "/join", body: "link=none"}),
	"GET /settings/account":  once(get("/settings/account")),
	"POST /settings/account": once(shot{method: "POST", target: "/settings/account", body: "end=none"}),
	"GET /settings/people":   once(get("/settings/people")),
	"POST /settings/people":  once(shot{method: "POST", target: "/settings/people", body: "do=none"}),
	"GET /api/users/{user}/access": func(a aims) []shot {
		return a.each(func(r string) shot { return get("/api/users/ann@example.com/access?repo=%s", url.QueryEscape(r)) })
	},
	"GET /settings/rights": func(a aims) []shot {
		return append(a.each(func(r string) shot { return get("/settings/rights?user=ann@example.com&repo=%s", url.QueryEscape(r)) }), get("/settings/rights"))
	},
	"POST /api/users/{user}/password":   once(post("/api/users/nobody@example.com/password", object{"password": "none"})),
	"POST /api/users/{user}/link":       once(post("/api/users/nobody@example.com/link", object{})),
	"GET /api/users/{user}/sessions":    once(get("/api/users/me/sessions"), get("/api/users/nobody@example.com/sessions")),
	"DELETE /api/users/{user}/sessions": once(shot{method: "DELETE", target: "/api/users/me/sessions?session=none"}),
	"GET /login":                        once(get("/login"), get("/login?next=/repos")),
	"GET /api/auth/callback/{provider}": once(get("/api/auth/callback/none"), get("/api/auth/callback/corp?state=12345678&code=x")),
	"POST /login":                       once(shot{method: "POST", target: "/login", body: "key=none"}),
	"POST /logout":                      once(shot{method: "POST", target: "/logout"}),
	"GET /":                             once(get("/")),
	"GET /search": func(a aims) (list []shot) {
		list = []shot{get("/search?trend=month&query=shark+or+whale"), get("/search?trend=week&csv=1&query=shark"), get("/search?trend=month&query=type:diff+shark")}
		for _, q := range a.queries() {
			list = append(list, get("/search?query=%s", url.QueryEscape(q)), get("/search?query=%s", url.QueryEscape("type:diff "+q)), get("/search?order=best&query=%s", url.QueryEscape("type:commit "+q)), get("/search?facets=all&query=%s", url.QueryEscape("count:1 "+q)))
		}
		return list
	},
	"GET /repos": func(a aims) []shot {
		list := []shot{get("/repos"), get("/repos?sort=pushed"), get("/repos?sort=stars")}
		return append(list, a.each(func(r string) shot { return get("/repos?query=%s", url.QueryEscape(r)) })...)
	},
	"GET /browse/*": func(a aims) (list []shot) {
		for _, page := range []string{"", "/-/tree/", "/-/tree/docs", "/-/blob/main.go", "/-/blob/none", "/-/tree/none", "/-/blame/main.go", "/-/raw/main.go", "/-/commits", "/-/commit/HEAD", "/-/compare/v1...HEAD", "/-/compare/v1..HEAD?w=1", "/-/branches", "/-/tags", "/-/find?query=main", "/-/symbols?query=main", "/-/symbols?query=nosuchname", "/-/names?name=main", "/-/dependencies", "/-/dependencies?query=a", "@v1/-/blob/main.go", "@v1/-/blob/main.go?now=2"} {
			list = append(list, a.each(func(r string) shot { return get("/browse/%s%s", r, page) })...)
		}
		return list
	},
	"GET /embed/*": func(a aims) (list []shot) {
		for _, page := range []string{"/-/blob/main.go", "@v1/-/blob/main.go?lines=1-2", "/-/blob/none", "/-/tree/", ""} {
			list = append(list, a.each(func(r string) shot { return get("/embed/%s%s", r, page) })...)
		}
		return list
	},
	"GET /chats":                             once(get("/chats")),
	"GET /cluster":                           once(get("/cluster")),
	"GET /status":                            once(get("/status")),
	"GET /settings":                          once(get("/settings")),
	"GET /settings/keys":                     once(get("/settings/keys")),
	"POST /settings/keys":                    once(shot{method: "POST", target: "/settings/keys", body: "name=x&role=owner"}),
	"GET /settings/agents":                   once(get("/settings/agents")),
	"GET /settings/config":                   once(get("/settings/config")),
	"GET /settings/connections":              once(get("/settings/connections"), get("/settings/connections?name=closed")),
	"GET /settings/connections/{connection}": once(get("/settings/connections/work"), get("/settings/connections/closed"), get("/settings/connections/%%2F")),
	"GET /settings/contexts":                 once(get("/settings/contexts")),
	"GET /settings/nodes":                    once(get("/settings/nodes")),
	"GET /settings/placement":                once(get("/settings/placement")),
	"GET /settings/apiKeys":                  once(get("/settings/apiKeys")),
	"GET /settings/general":                  once(get("/settings/general")),
	"GET /settings/mcp":                      once(get("/settings/mcp")),
	"GET /~/*": func(a aims) []shot {
		return a.each(func(r string) shot { return get("/~/browse/%s", r) })
	},
	"GET /settings/repos": func(a aims) []shot {
		return append(a.each(func(r string) shot { return get("/settings/repos?query=%s", url.QueryEscape(r)) }), get("/settings/repos"))
	},
	"GET /settings/do/{action}":  once(get("/settings/do/sync?name=closed"), get("/settings/do/none")),
	"POST /settings/do/{action}": once(shot{method: "POST", target: "/settings/do/sync", body: "name=closed"}, shot{method: "POST", target: "/settings/do/none"}),
	"GET /open": func(a aims) []shot {
		return a.each(func(r string) shot { return get("/open?remote=https://%s.git&path=main.go&line=2&commit=v1", r) })
	},
	"GET /opensearch.xml": once(get("/opensearch.xml")),
	"GET /robots.txt":     once(get("/robots.txt")),
	"GET /help/{topic}":   once(get("/help/query"), get("/help/none")),
	"GET /docs":           once(get("/docs"), get("/docs?q=shark")),
	"GET /docs/*":         once(get("/docs/how-to/cluster.md"), get("/docs/none"), get("/docs/../main.go")),
}

// toolWords are values for the parameters of tools, by name. A missing one fails
// TestNonInterference_oracleRequestsEveryRoutePageAndToolParameter. Each is tried with every repository.
var toolWords = map[string][]any{
	"query": {"shark", "whale swim", "local/"}, "path": {"main.go", "docs"}, "paths": {[]string{"main.go", "README.md"}}, "pattern": {"sh.rk", "*.go"},
	"symbol": {"main", "Swim"}, "package": {"example.com/shark", "example.com"}, "locked": nil, "tree": {"callers", "callees"}, "transitive": nil, "ref": {"HEAD", "v1", "v1,HEAD"}, "contains": {"v1"}, "base": {"v1"}, "head": {"HEAD"}, "include": {[]string{"*.go"}}, "exclude": {[]string{"docs/**"}},
	"limit": {1, 20}, "offset": {1}, "mode": nil, "match": nil, "kind": nil, "kinds": {[]string{"function"}}, "groupBy": nil, "perFile": {1},
	"context": {2}, "page": {1, 2}, "perPage": {1, 100}, "sort": nil, "direction": nil, "depth": {2}, "maxEntries": {10}, "ranges": {"1-2"}, "changes": {"shark"},
	"changesRegex": {"sh.rk"}, "lines": {"main.go:1-2", "main.go:main"}, "commits": {true}, "author": {"Ada"}, "since": {"2020-01-01"}, "until": {"2030-01-01"}, "maxTokens": {600},
	"ignoreCase": nil, "calls": nil, "body": {true}, "noMerges": nil, "includeFiles": nil, "includeDirectories": nil, "sizes": nil, "tests": nil, "repo": nil,
	"language": {"Go"}, "verbatim": nil, "repos": nil, "languageModel": {"m"}, "visibility": nil, "includeDefinitions": nil, "wholeWords": nil, "codeOnly": nil, "status": nil,
}

// oracleTools returns the rows of the MCP server.
func oracleTools() []tool.Tool {
	return tool.New(tool.Parts{}, tool.Tool{Name: "ask_codebase", Params: askParams()}).Tools()
}

// askParams returns the parameters of the tool that answers with a model.
func askParams() []tool.Param {
	row := (&nodeask.Asker{}).Tool()
	return row.Params
}

// toolCalls calls each tool for each repository, with one optional parameter after the other, and
// the protocol's lists.
func toolCalls(a aims) (list []shot) {
	rpc := func(method string, params any) shot {
		return post("/api/mcp", object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	}
	for _, m := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		list = append(list, rpc(m, object{"taskId": "abc", "_meta": object{"io.modelcontextprotocol/clientCapabilities": object{"extensions": object{mcp.TasksExtension: object{}}}}}))
	}
	for _, m := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
		list = append(list, rpc(m, object{}))
	}
	for _, r := range a.repos {
		list = append(list,
			rpc("resources/read", object{"uri": "shoal://" + url.PathEscape(r) + "/HEAD/main.go"}),
			rpc("resources/read", object{"uri": "http://shoal.example.com/browse/" + r + "/-/blob/main.go#L1"}),
			rpc("completion/complete", object{"ref": object{"type": "ref/resource", "uri": "shoal://{repo}/{ref}/{+path}"}, "argument": object{"name": "repo", "value": r[:len(r)-2]}}))
	}
	for _, t := range oracleTools() {
		for _, args := range a.arguments(t) {
			list = append(list, rpc("tools/call", object{"name": t.Name, "arguments": args}))
		}
	}
	return list
}

// arguments returns sets of arguments for a tool: for each repository the required ones, and
// these with one more.
func (a aims) arguments(t tool.Tool) (list []object) {
	value := func(p tool.Param) any {
		switch values := toolWords[p.Name]; {
		case len(p.Words) > 0 && p.Kind == tool.String:
			return p.Words[a.pick(len(p.Words))]
		case p.Kind == tool.Boolean:
			return a.pick(2) == 0
		case len(values) > 0:
			return values[a.pick(len(values))]
		}
		return nil
	}

	repos := a.repos
	has := slices.ContainsFunc(t.Params, func(p tool.Param) bool { return p.Name == "repo" })
	several := slices.ContainsFunc(t.Params, func(p tool.Param) bool { return p.Several })
	if !has {
		repos = []string{"", ""}
	}
	for _, r := range append([]string{""}, repos...) {
		args := object{}
		for _, p := range t.Params {
			if v := value(p); p.Name != "repo" && v != nil && (p.Required || a.pick(4) == 0) {
				args[p.Name] = v
			}
		}
		if has && r != "" {
			args["repo"] = r
		}
		if several && r != "" {
			args["repo"] = [...]any{r, r + ",local/", []string{r, "*" + r[len(r)-1:]}}[a.pick(3)]
		}
		list = append(list, args)
	}
	return list
}

func allRoutes(s *Server) []*route {
	all := append(slices.Clone(s.routes.patterns), s.routes.prefixes...)
	for _, list := range s.routes.exact {
		all = append(all, list...)
	}
	return all
}

// It fails if the oracle has no request for a route, a page or a tool's parameter.
func TestNonInterference_oracleRequestsEveryRoutePageAndToolParameter(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{})
	var names []string
	for _, x := range allRoutes(s) {
		names = append(names, x.method+" "+x.name)
	}
	sort.Strings(names)
	for _, name := range names {
		if askedRoutes[name] == nil {
			t.Errorf("the oracle of non-interference does not ask %s: add a row to askedRoutes, so that nothing hidden can be learned from it", name)
		}
	}
	for name := range askedRoutes {
		if !slices.Contains(names, name) {
			t.Errorf("askedRoutes has %s, which the server does not answer", name)
		}
	}

	tools := oracleTools()
	if len(tools) < 10 {
		t.Errorf("only %d tools", len(tools))
	}
	for _, x := range tools {
		for _, p := range x.Params {
			if _, ok := toolWords[p.Name]; !ok {
				t.Errorf("the oracle has no value for the parameter %s of the tool %s: add one to toolWords", p.Name, x.Name)
			}
		}
	}
}
