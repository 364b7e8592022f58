package api

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

// accesses are the routes by which code and what belongs to it is read, with the
// action that the audit has of each. Changes leave events of their own, and what is
// proposed while somebody types is no access.
var accesses = map[string]string{
	"POST /api/search":               "code.searched",
	"POST /api/stream_search":        "code.searched",
	"GET /search":                    "code.searched",
	"POST /api/find_definitions":     "code.definitions",
	"POST /api/find_references":      "code.references",
	"GET /api/source":                "code.read",
	"GET /api/raw":                   "code.read",
	"GET /api/blame":                 "code.read",
	"GET /api/diff":                  "code.read",
	"GET /api/symbols":               "code.read",
	"GET /browse/*":                  "code.browsed",
	"GET /embed/*":                   "code.browsed",
	"POST /api/tree":                 "code.listed",
	"GET /api/files":                 "code.listed",
	"GET /api/commits":               "history.read",
	"GET /api/commit":                "history.read",
	"GET /api/commits/authors":       "history.read",
	"GET /api/branches":              "history.read",
	"GET /api/tags":                  "history.read",
	"GET /api/ref":                   "history.read",
	"GET /api/lastcommits":           "history.read",
	"GET /api/repos":                 "repository.listed",
	"GET /repos":                     "repository.listed",
	"POST " + toolPath:               "tool",
	"POST /api/chat":                 "question.asked",
	"POST /api/chat/blocking":        "question.asked",
	"POST /api/chat/{id}/messages":   "question.asked",
	"POST /chat":                     "question.asked",
	"POST /chat/{id}":                "question.asked",
	"GET /api/chat/{id}":             "chat.read",
	"GET /api/chat/{id}/events":      "chat.read",
	"GET /chat/{id}":                 "chat.read",
	"GET /chat/{id}/events":          "chat.read",
	"GET /api/audit":                 "audit.read",
	"GET /api/ee/audit":              "audit.read",
	"GET /settings/audit":            "audit.read",
	"GET /api/users/{user}/access":   "rights.read",
	"GET /settings/rights":           "rights.read",
	"GET /api/users/{user}/sessions": "sessions.read",
}

// entrances are the routes by which somebody comes in, with the action of a failure.
var entrances = map[string]string{
	"POST /login":                       "login.failed",
	"POST /api/session":                 "login.failed",
	"POST /join":                        "login.failed",
	"GET /api/auth/callback/{provider}": "login.failed",
	"POST /oauth/token":                 "token.refused",
	"POST /token":                       "token.refused",
}

// record tells the audit what a call has read, or why it was refused.
func (s *Server) record(c *call, r *route, f *failure) {
	status := c.status
	if f != nil {
		status = f.Status
	}

	a := c.access(r, status)
	if a.Action == "" {
		return
	}
	a.Actor, a.Status = c.actor(s.opt.trusted), status
	s.trail.NoteAccess(a)
}

// access is what the audit has of a call; one without an action is nothing to it.
func (c *call) access(r *route, status int) chronicle.Access {
	// A failed entrance is told by its own name before its status: a wrong password is
	// a 401 as well.
	name := c.method + " " + r.name
	entrance := entrances[name]
	switch {
	case entrance != "" && status >= 400:
		return c.failedEntrance(r, entrance)

	// Of a key that is refused its public part tells an operator which one still runs somewhere.
	case status == 401 && c.credential() != "" && !r.framed:
		return chronicle.Access{Action: "credential.refused", Refusal: true, TargetType: "api_key", Target: publicPart(c.credential())}

	// Who comes without anything, or too often, could fill the audit with nothing.
	case status == 401 || status == 429:
		return chronicle.Access{}
	case status == 403:
		return chronicle.Access{Action: "access.denied", Refusal: true, TargetType: "route", Target: name}
	case accesses[name] != "":
		return c.read(accesses[name])
	}
	return chronicle.Access{}
}

// failedEntrance is a sign-in that came to nothing. Of what was sent only the
// address is kept, and only where it is one: people write passwords into the wrong field.
func (c *call) failedEntrance(r *route, action string) chronicle.Access {
	// An identity provider sends people back: what they typed it never tells.
	a := chronicle.Access{Action: action, Refusal: true}
	if len(c.wild) > 0 {
		a.TargetType, a.Target = "provider", c.wild[0]
		return a
	}

	// A key is pasted there too, and counts by what lists show of it.
	email, key := c.shown(r)
	if strings.Contains(email, "@") && !strings.ContainsAny(email, " \t\n") {
		a.TargetType, a.Target = "user", email
	} else if key := strings.TrimSpace(key); key != "" {
		a.TargetType, a.Target = "api_key", publicPart(key)
	}
	return a
}

// shown is the address or the key that somebody has sent who wants to come in, "" for
// what cannot be read.
func (c *call) shown(r *route) (email, key string) {
	switch r.name {
	case "/login":
		form, _ := url.ParseQuery(string(c.requestBody())) // nil has no values
		return form.Get("email"), form.Get("key")
	case sessionPath:
		var sent struct{ Email, Key string }
		if json.Unmarshal(c.requestBody(), &sent) == nil {
			return sent.Email, sent.Key
		}
	}
	return "", ""
}

// publicPart is what lists show of a key, "" for what is no key.
func publicPart(key string) string {
	if !account.WellFormed(key) {
		return ""
	}
	return key[:len(account.KeyPrefix)+8]
}

// mostLooked is how long a body may be of which the audit takes what was looked for.
const mostLooked = 64 << 10

// subject is what a body says of what is read: of the API, or of the tool server.
type subject struct {
	Query, SymbolName, RepoName, Repo string
	Repos                             []string

	Method string
	Params struct {
		Name, URI string
		Arguments struct {
			Query, Pattern, Symbol, Repo string
		}
	}
}

// read is something read: of which repository, and what was looked for.
func (c *call) read(action string) chronicle.Access {
	// A POST has what it looks for in its body, a page in its path or its query.
	a := chronicle.Access{Action: action}
	switch {
	case c.method == "POST":
		c.readByBody(&a)
	case strings.HasPrefix(c.path, "/browse/"):
		a.Target = strings.TrimPrefix(c.path, "/browse/")
	case strings.HasPrefix(c.path, "/embed/"):
		a.Target = strings.TrimPrefix(c.path, "/embed/")
	default:
		a.Target, _ = c.arg("repo")
		if a.Query, _ = c.arg("q"); a.Query == "" {
			a.Query, _ = c.arg("query")
		}
	}

	if action == "rights.read" {
		c.noteRightsRead(&a)
	}

	switch {
	case a.Action == "":
		// Nothing was read: there is nothing to name.

	// What was named in the path counts where nothing else says what was read.
	case a.Target != "":
		a.TargetType = "repository"
	case len(c.wild) > 0:
		a.TargetType, a.Target = strings.SplitN(action, ".", 2)[0], c.wild[0]
	}
	return a
}

// noteRightsRead records whose permissions were read. A form without a user or a repository
// shows nothing, so it leaves no line in the audit: the action is "".
func (c *call) noteRightsRead(a *chronicle.Access) {
	user, _ := c.arg("user")
	if len(c.wild) > 0 {
		user = c.wild[0]
	}
	if user == "" || a.Target == "" {
		a.Action = ""
		return
	}
	a.Message = "of " + user
}

// readByBody fills in what the body of a call says. Of the tool server's methods
// those count that read.
func (c *call) readByBody(a *chronicle.Access) {
	// Of a search the body tells nothing else, and the handler has read it.
	if c.sought != "" {
		a.Query = c.sought
		return
	}

	// Decoded once more, and only where it is small: the audit must not cost what the
	// handler costs.
	var s subject
	if body := c.requestBody(); len(body) <= mostLooked {
		_ = json.Unmarshal(body, &s) // what cannot be read was refused by the handler
	}
	if a.Action != "tool" {
		a.Query, a.Target = cmp.Or(s.Query, s.SymbolName), cmp.Or(s.RepoName, s.Repo, strings.Join(s.Repos, ","))
		return
	}

	// Listing tools, a ping and a handshake read nothing.
	args := &s.Params.Arguments
	switch s.Method {
	case "tools/call":
		a.Action, a.Target, a.Query = "tool."+s.Params.Name, args.Repo, cmp.Or(args.Query, args.Pattern, args.Symbol)
	case "resources/read":
		a.Action, a.Target = "tool.resource", s.Params.URI
	default:
		a.Action = ""
	}
}
