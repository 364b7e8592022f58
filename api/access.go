package api

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

// accesses has the routes that read code or data about code, and the audit's name of each read.
// Routes that change something are audited as events. Suggestions while typing are not audited.
var accesses = map[string]string{
	"POST /api/search":                "code.searched",
	"POST /api/stream_search":         "code.searched",
	"POST /api/search_commits":        "code.searched",
	"POST /api/stream_search_commits": "code.searched",
	"GET /search":                     "code.searched",
	"POST /api/find_definitions":      "code.definitions",
	"POST /api/find_references":       "code.references",
	"GET /api/source":                 "code.read",
	"GET /api/raw":                    "code.read",
	"GET /api/blame":                  "code.read",
	"GET /api/diff":                   "code.read",
	"GET /api/symbols":                "code.read",
	"GET /browse/*":                   "code.browsed",
	"GET /embed/*":                    "code.browsed",
	"POST /api/tree":                  "code.listed",
	"GET /api/files":                  "code.listed",
	"GET /api/commits":                "history.read",
	"GET /api/commit":                 "history.read",
	"GET /api/commits/authors":        "history.read",
	"GET /api/branches":               "history.read",
	"GET /api/tags":                   "history.read",
	"GET /api/ref":                    "history.read",
	"GET /api/lastcommits":            "history.read",
	"GET /api/repos":                  "repository.listed",
	"GET /repos":                      "repository.listed",
	"POST " + toolPath:                "tool",
	"POST /api/chat":                  "question.asked",
	"POST /api/chat/blocking":         "question.asked",
	"POST /api/chat/{id}/messages":    "question.asked",
	"POST /chat":                      "question.asked",
	"POST /chat/{id}":                 "question.asked",
	"GET /api/chat/{id}":              "chat.read",
	"GET /api/chat/{id}/events":       "chat.read",
	"GET /chat/{id}":                  "chat.read",
	"GET /chat/{id}/events":           "chat.read",
	"GET /api/watches/{watch}":        "watch.read",
	"GET /watches/{id}":               "watch.read",
	"GET /feed/{token}":               "watch.read",
	"GET /api/audit":                  "audit.read",
	"GET /api/ee/audit":               "audit.read",
	"GET /settings/audit":             "audit.read",
	"GET /api/users/{user}/access":    "rights.read",
	"GET /settings/rights":            "rights.read",
	"GET /api/users/{user}/sessions":  "sessions.read",
}

// entrances has the routes for signing in, and the audit's name of a failed sign-in.
var entrances = map[string]string{
	"POST /login":                       "login.failed",
	"POST /api/session":                 "login.failed",
	"POST /join":                        "login.failed",
	"GET /api/auth/callback/{provider}": "login.failed",
	"POST /oauth/token":                 "token.refused",
	"POST /token":                       "token.refused",
}

// access returns the audit record of a call that was answered with a status. An empty Action
// means that the call is not audited.
func (c *call) access(r *route, status int) chronicle.Access {
	// Test for a failed sign-in before the status: a wrong password is a 401 too.
	name := c.method + " " + r.name
	entrance := entrances[name]
	switch {
	case entrance != "" && status >= 400:
		return c.failedEntrance(r, entrance)

	// The public part of a refused key tells the operator which key is still in use somewhere.
	case status == 401 && c.credential() != "" && !r.framed:
		return chronicle.Access{Action: "credential.refused", Refusal: true, TargetType: "api_key", Target: publicPart(c.credential())}

	// Do not audit these: anybody could fill the audit with requests without a credential.
	case status == 401 || status == 429:
		return chronicle.Access{}
	case status == 403:
		return chronicle.Access{Action: "access.denied", Refusal: true, TargetType: "route", Target: name}
	case accesses[name] != "":
		return c.read(accesses[name])
	}
	return chronicle.Access{}
}

// failedEntrance returns the audit record of a failed sign-in: the provider, the e-mail address,
// or the public part of the key. A text that is no e-mail address is left out, because people
// type passwords into the wrong field.
func (c *call) failedEntrance(r *route, action string) chronicle.Access {
	// An identity provider sends the browser back without the user's name.
	a := chronicle.Access{Action: action, Refusal: true}
	if len(c.pathValues) > 0 {
		a.TargetType, a.Target = "provider", c.pathValues[0]
		return a
	}

	// The form also accepts a key; record its public part.
	email, key := c.signInInput(r)
	if strings.Contains(email, "@") && !strings.ContainsAny(email, " \t\n") {
		a.TargetType, a.Target = "user", email
	} else if key := strings.TrimSpace(key); key != "" {
		a.TargetType, a.Target = "api_key", publicPart(key)
	}
	return a
}

// signInInput returns the e-mail address and the key in the body of a sign-in request. Each is ""
// if the body lacks it or is unreadable.
func (c *call) signInInput(r *route) (email, key string) {
	switch r.name {
	case "/login":
		form, _ := url.ParseQuery(string(c.requestBody())) // after an error it has the readable values
		return form.Get("email"), form.Get("key")
	case sessionPath:
		var sent struct{ Email, Key string }
		if json.Unmarshal(c.requestBody(), &sent) == nil {
			return sent.Email, sent.Key
		}
	}
	return "", ""
}

// publicPart returns the part of a key that lists show; "" if the text is no key.
func publicPart(key string) string {
	if !account.WellFormed(key) {
		return ""
	}
	return key[:len(account.KeyPrefix)+8]
}

// mostLooked is the largest body, in bytes, that the audit parses to find the query.
const mostLooked = 64 << 10

// subject has the members of a request body that say what is read. The API's routes use the first
// two lines, the tool server uses Method and Params.
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

// read returns the audit record of a read: the query, and the repository or what the path names.
// An empty Action means that nothing was read.
func (c *call) read(action string) chronicle.Access {
	// A POST has the query in its body. A GET has it in the path or the query string.
	a := chronicle.Access{Action: action}
	switch {
	case c.method == "POST":
		c.readByBody(&a)

	// The path has the token, which is a secret. An unknown one reads nothing.
	case strings.HasPrefix(c.path, "/feed/"):
		if c.feedOf == "" {
			return chronicle.Access{}
		}
		return chronicle.Access{Action: action, TargetType: "watch", Target: c.feedOf}
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
		// Nothing was read, so no target is recorded.

	// With a target, it is a repository. Otherwise the target is what the path names.
	case a.Target != "":
		a.TargetType = "repository"
	case len(c.pathValues) > 0:
		a.TargetType, a.Target = strings.SplitN(action, ".", 2)[0], c.pathValues[0]
	}
	return a
}

// noteRightsRead records whose permissions were read. A form without a user or a repository
// shows nothing, so it leaves no line in the audit: the action is "".
func (c *call) noteRightsRead(a *chronicle.Access) {
	user, _ := c.arg("user")
	if len(c.pathValues) > 0 {
		user = c.pathValues[0]
	}
	if user == "" || a.Target == "" {
		a.Action = ""
		return
	}
	a.Message = "of " + user
}

// readByBody fills in the record from the request body. For the tool server it also sets Action:
// to the tool or resource that was read, or to "" if the method reads nothing.
func (c *call) readByBody(a *chronicle.Access) {
	// The handler of a search has already stored the query.
	if c.query != "" {
		a.Query = c.query
		return
	}

	// Parse small bodies only, so that the audit does not cost as much as the handler.
	var s subject
	if body := c.requestBody(); len(body) <= mostLooked {
		_ = json.Unmarshal(body, &s) // an unreadable body leaves s empty: the handler has refused it
	}
	if a.Action != "tool" {
		a.Query, a.Target = cmp.Or(s.Query, s.SymbolName), cmp.Or(s.RepoName, s.Repo, strings.Join(s.Repos, ","))
		return
	}

	// Listing tools, pings and handshakes read nothing.
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
