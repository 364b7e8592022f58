package api

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// failures makes a real node return every documented failure, and records which ones came.
type failures struct {
	t     *testing.T
	s     *Server
	ops   document
	keys  map[string]string          // by user
	parts *strings.Replacer          // replaces the {parts} of a path by existing names
	shown map[string]map[string]bool // codes by route
}

// asked are requests that fail in their own way, each with its code. The route is given if the
// target has its path filled in. THREAD is a thread of ann with a running question; NODE is the
// only node.
var asked = []struct{ who, route, target, body, code string }{
	{"owner", "POST /api/search", "", `{"query":"(a","isRegexEnabled":true}`, codeQuery},
	{"owner", "POST /api/search", "", `{"query":"x at:1980"}`, codeRef},
	{"owner", "POST /api/search", "", `{"query":"context:none x"}`, codeContextNotFound},
	{"owner", "POST /api/search", "", `{"query":"a","after":"x"}`, codeInvalidBody},
	{"owner", "POST /api/stream_search", "", `{"query":"(a","isRegexEnabled":true}`, codeQuery},
	{"owner", "POST /api/stream_search", "", `{"query":"a","after":"x"}`, codeInvalidBody},
	{"owner", "POST /api/stream_search", "", `{"query":"x at:1980"}`, codeRef},
	{"owner", "POST /api/stream_search", "", `{"query":"context:none x"}`, codeContextNotFound},
	{"owner", "POST /api/search_commits", "", `{"query":"type:commit (a","isRegexEnabled":true}`, codeQuery},
	{"owner", "POST /api/stream_search_commits", "", `{"query":"type:commit (a","isRegexEnabled":true}`, codeQuery},
	{"owner", "POST /api/stream_search_commits", "", `{"query":"type:commit context:none x"}`, codeContextNotFound},
	{"owner", "POST /api/search_commits", "", `{"query":"type:commit context:none x"}`, codeContextNotFound},
	{"owner", "POST /api/find_definitions", "", `{"symbolName":"a","repoName":"none"}`, codeRepoNotFound},
	{"owner", "POST /api/find_references", "", `{"symbolName":"a","repoName":"none"}`, codeRepoNotFound},

	// Repositories, their files and their history.
	{"owner", "POST /api/repos/{id}/reindex", "/api/repos/x/reindex", "", codeInvalidParams},
	{"owner", "POST /api/repos/{id}/reindex", "/api/repos/900/reindex", "", codeRepoNotFound},
	{"owner", "GET /api/source", "?repo=none&path=a.go", "", codeRepoNotFound},
	{"owner", "GET /api/source", "?repo=local/app&path=none", "", codeFileNotFound},
	{"owner", "GET /api/source", "?repo=local/app&path=a.go&ref=none", "", codeRef},
	{"owner", "GET /api/raw", "?repo=none&path=a.go", "", codeRepoNotFound},
	{"owner", "GET /api/raw", "?repo=local/app&path=none", "", codeFileNotFound},
	{"owner", "GET /api/raw", "?repo=local/app&path=a.go&ref=none", "", codeRef},
	{"owner", "POST /api/tree", "", `{"repoName":"none"}`, codeRepoNotFound},
	{"owner", "POST /api/tree", "", `{"repoName":"local/app","paths":["none"]}`, codeFileNotFound},
	{"owner", "POST /api/tree", "", `{"repoName":"local/app","revisionName":"none"}`, codeRef},
	{"owner", "GET /api/commits", "?repo=none", "", codeRepoNotFound},
	{"owner", "GET /api/commits", "?repo=local/app&ref=none", "", codeRef},
	{"owner", "GET /api/commits", "?repo=local/app&ref=none..HEAD", "", codeRef},
	{"owner", "GET /api/commits", "?repo=local/app&ref=HEAD...HEAD", "", codeInvalidParams},
	{"owner", "GET /api/commits", "?repo=local/app&path=a.go&follow=true&author=ann", "", codeInvalidParams},
	{"owner", "GET /api/commit", "?repo=none&ref=HEAD", "", codeRepoNotFound},
	{"owner", "GET /api/commit", "?repo=local/app&ref=none", "", codeRef},
	{"owner", "GET /api/commits", "?repo=local/app&path=none", "", codeFileNotFound},
	{"owner", "GET /api/commits/authors", "?repo=local/app&path=none", "", codeFileNotFound},
	{"owner", "GET /api/diff", "?repo=local/app&base=HEAD&head=HEAD&path=none", "", codeFileNotFound},
	{"owner", "GET /api/commits/authors", "?repo=none", "", codeRepoNotFound},
	{"owner", "GET /api/commits/authors", "?repo=local/app&ref=none", "", codeRef},
	{"owner", "GET /api/diff", "?repo=none&base=a&head=b", "", codeRepoNotFound},
	{"owner", "GET /api/diff", "?repo=local/app&base=HEAD&head=none", "", codeRef},
	{"owner", "GET /api/diff", "?repo=local/app&base=HEAD&head=HEAD&stat=true&context=1", "", codeInvalidParams},
	{"owner", "GET /api/diff", "?repo=local/app&base=HEAD&head=HEAD&stat=true&perPage=1", "", codeInvalidParams},
	{"owner", "GET /api/blame", "?repo=none&path=a.go", "", codeRepoNotFound},
	{"owner", "GET /api/blame", "?repo=local/app&path=none", "", codeFileNotFound},
	{"owner", "GET /api/blame", "?repo=local/app&path=a.go&ref=none", "", codeRef},
	{"owner", "GET /api/branches", "?repo=none", "", codeRepoNotFound},
	{"owner", "GET /api/tags", "?repo=none", "", codeRepoNotFound},
	{"owner", "GET /api/ref", "?repo=none&ref=main", "", codeRepoNotFound},
	{"owner", "GET /api/ref", "?repo=local/app&ref=none", "", codeNotFound},
	{"owner", "GET /api/ref", "?repo=local/app&ref=a..b", "", codeRef},
	{"owner", "GET /api/lastcommits", "?repo=none", "", codeRepoNotFound},
	{"owner", "GET /api/lastcommits", "?repo=local/app&ref=none", "", codeRef},
	{"owner", "GET /api/lastcommits", "?repo=local/app&path=a.go", "", codeFileNotFound},
	{"owner", "GET /api/files", "?repo=none", "", codeRepoNotFound},
	{"owner", "GET /api/files", "?repo=local/app&ref=none", "", codeRef},
	{"owner", "GET /api/symbols", "?repo=none&path=a.go", "", codeRepoNotFound},
	{"owner", "GET /api/symbols", "?repo=local/app&path=none", "", codeFileNotFound},
	{"owner", "GET /api/symbols", "?repo=local/app&path=a.go&ref=none", "", codeRef},
	{"owner", "GET /api/symbols", "?repo=none&query=a", "", codeRepoNotFound},
	{"owner", "GET /api/symbols", "?repo=local/app&query=a&ref=none", "", codeRef},

	// The cluster's jobs and nodes.
	{"owner", "GET /api/jobs/{id}", "/api/jobs/index:900", "", codeNotFound},
	{"owner", "POST /api/jobs/{id}/retry", "/api/jobs/index:900/retry", "", codeNotFound},
	{"owner", "POST /api/jobs/{id}/cancel", "/api/jobs/index:900/cancel", "", codeNotFound},
	{"owner", "POST /api/jobs/{id}/cancel", "/api/jobs/sync:local/cancel", "", "NOT_POSSIBLE_NOW"},
	{"owner", "GET /api/connections/{connection}", "/api/connections/none", "", codeNotFound},
	{"owner", "POST /api/connections/{connection}/sync", "/api/connections/none/sync", "", codeNotFound},
	{"owner", "POST /api/history", "", `{"glob":"a"}`, codeInvalidBody},
	{"owner", "POST /api/history", "", `{"glob":"none","rule":"none"}`, codeNotFound},
	{"owner", "POST /api/connections/{connection}/accept", "/api/connections/none/accept", "", codeNotFound},
	{"owner", "POST /api/connections/{connection}/accept", "", "", "NOT_POSSIBLE_NOW"},
	{"owner", "POST /api/nodes/{node}/drain", "/api/nodes/none/drain", "", codeNotFound},
	{"owner", "POST /api/nodes/{node}/drain", "", "", "NOT_POSSIBLE_NOW"},
	{"owner", "POST /api/nodes/{node}/undrain", "/api/nodes/none/undrain", "", codeNotFound},
	{"owner", "POST /api/nodes/{node}/lead", "/api/nodes/none/lead", "", codeNotFound},
	{"owner", "POST /api/nodes/{node}/remove", "/api/nodes/none/remove", "", codeNotFound},
	{"owner", "POST /api/nodes/{node}/remove", "", "", "CONFIRMATION_REQUIRED"},
	{"owner", "POST /api/webhook/{connection}", "/api/webhook/none", "{}", codeNotFound},
	{"ann", "POST /api/webhook/{connection}", "", "{}", codeForbidden},
	{"owner", "GET /api/webhook/{connection}", "/api/webhook/none", "", codeNotFound},
	{"owner", "POST /api/webhook/{connection}/rotate", "/api/webhook/none/rotate", "", codeNotFound},

	// People and their keys: ann and bob each have one of the same name.
	{"owner", "POST /api/keys", "", `{"name":"ci","user":"ann@example.com"}`, codeExists},
	{"owner", "POST /api/keys", "", `{"name":"x","user":"none@example.com"}`, codeNotFound},
	{"owner", "DELETE /api/keys/{key}", "", "", codeInvalidParams},
	{"owner", "DELETE /api/keys/{key}", "/api/keys/none", "", codeNotFound},
	{"owner", "DELETE /api/agents/{agent}", "/api/agents/none", "", codeNotFound},
	{"owner", "POST /api/users", "", `{"email":"ann@example.com"}`, codeExists},
	{"owner", "POST /api/users/{user}", "/api/users/none", `{}`, codeNotFound},
	{"owner", "DELETE /api/users/{user}", "/api/users/none", "", codeNotFound},
	{"owner", "GET /api/ee/user", "/api/ee/user?userId=none", "", codeNotFound},
	{"owner", "DELETE /api/ee/user", "/api/ee/user?userId=none", "", codeNotFound},
	{"owner", "DELETE /api/ee/user", "/api/ee/user?userId=olga@example.com", "", "NOT_POSSIBLE_NOW"},
	{"owner", "DELETE /api/users/{user}", "/api/users/olga@example.com", "", "NOT_POSSIBLE_NOW"},
	{"owner", "POST /api/users/{user}", "/api/users/olga@example.com", `{"state":"suspended"}`, "NOT_POSSIBLE_NOW"},
	{"owner", "POST /api/users/{user}/grants", "/api/users/none/grants", `{}`, codeNotFound},
	{"owner", "POST /api/users/{user}/grants", "", `{"add":["none"]}`, codeRepoNotFound},
	{"owner", "GET /api/users/{user}/access", "/api/users/none/access?repo=local/app", "", codeNotFound},
	{"owner", "GET /api/users/{user}/access", "/api/users/ann@example.com/access?repo=none", "", codeRepoNotFound},
	{"owner", "GET /api/users/{user}/sessions", "/api/users/none/sessions", "", codeNotFound},
	{"owner", "DELETE /api/users/{user}/sessions", "/api/users/none/sessions", "", codeNotFound},
	{"owner", "POST /api/users/{user}/password", "/api/users/none/password", `{"password":"correct horse"}`, codeNotFound},
	{"owner", "POST /api/users/{user}/link", "/api/users/none/link", `{}`, codeNotFound},

	// Watches: {watch} is one that ann shares.
	{"ann", "POST /api/watches", "", `{"query":"(a","isRegexEnabled":true}`, codeQuery},
	{"ann", "POST /api/watches", "", `{"query":"context:none x"}`, codeContextNotFound},
	{"ann", "POST /api/watches", "", `{"query":"x","isMailed":true}`, "NOT_POSSIBLE_NOW"},
	{"ann", "GET /api/watches/{watch}", "/api/watches/none", "", codeNotFound},
	{"ann", "PATCH /api/watches/{watch}", "", `{"query":"type:repo x"}`, codeQuery},
	{"ann", "PATCH /api/watches/{watch}", "", `{"query":"context:none x"}`, codeContextNotFound},
	{"ann", "PATCH /api/watches/{watch}", "", `{"isMailed":true}`, "NOT_POSSIBLE_NOW"},
	{"ann", "PATCH /api/watches/{watch}", "/api/watches/none", `{"name":"x"}`, codeNotFound},
	{"bob", "PATCH /api/watches/{watch}", "", `{"name":"x"}`, codeForbidden},
	{"ann", "DELETE /api/watches/{watch}", "/api/watches/none", "", codeNotFound},
	{"bob", "DELETE /api/watches/{watch}", "", "", codeForbidden},
	{"ann", "POST /api/watches/{watch}/feed", "/api/watches/none/feed", "", codeNotFound},
	{"bob", "POST /api/watches/{watch}/feed", "", "", codeForbidden},
	{"ann", "DELETE /api/watches/{watch}/feed", "/api/watches/none/feed", "", codeNotFound},
	{"ann", "POST /api/watches/{watch}/webhook", "/api/watches/none/webhook", `{"url":"https://hooks.example.com/"}`, codeNotFound},
	{"ann", "POST /api/watches/{watch}/webhook", "", `{"url":"http://127.0.0.1/"}`, codeInvalidBody},
	{"ann", "DELETE /api/watches/{watch}/webhook", "/api/watches/none/webhook", "", codeNotFound},

	// Signing in.
	{"wrong", "POST /api/session", "", `{"key":"none"}`, codeNotAuthenticated},
	{"wrong", "POST /api/session", "", `{"email":"ann@example.com","password":"wrong"}`, codeNotAuthenticated},
	{"wrong", "POST /api/session", "", `{"email":"nobody@example.com","password":"wrong"}`, codeNotAuthenticated},
	{"wrong", "POST /api/session", "", `{"email":"ann@example.com","password":"wrong","key":"none"}`, codeInvalidBody},

	// Questions.
	{"ann", "POST /api/chat", "", `{"query":"x","repos":["none"]}`, codeRepoNotFound},
	{"ann", "POST /api/chat/blocking", "", `{"query":"x","repos":["none"]}`, codeRepoNotFound},
	{"ann", "GET /api/chat/{id}", "/api/chat/none", "", codeNotFound},
	{"ann", "PATCH /api/chat/{id}", "/api/chat/none", `{"name":"x"}`, codeNotFound},
	{"owner", "PATCH /api/chat/{id}", "", `{"name":"x"}`, codeForbidden},
	{"ann", "DELETE /api/chat/{id}", "/api/chat/none", "", codeNotFound},
	{"owner", "DELETE /api/chat/{id}", "", "", codeForbidden},
	{"ann", "POST /api/chat/{id}/messages", "/api/chat/none/messages", `{"query":"x"}`, codeNotFound},
	{"owner", "POST /api/chat/{id}/messages", "", `{"query":"x"}`, codeForbidden},
	{"ann", "POST /api/chat/{id}/messages", "", `{"query":"x","repos":["none"]}`, codeRepoNotFound},
	{"ann", "POST /api/chat/{id}/messages", "", `{"query":"x"}`, "NOT_POSSIBLE_NOW"},
	{"owner", "POST /api/chat/{id}/fork", "/api/chat/none/fork", "", codeNotFound},
	{"owner", "POST /api/chat/{id}/fork", "", "", "NOT_POSSIBLE_NOW"},
	{"ann", "POST /api/chat/{id}/stop", "/api/chat/none/stop", "", codeNotFound},
	{"owner", "POST /api/chat/{id}/stop", "", "", codeForbidden},
	{"ann", "GET /api/chat/{id}/events", "/api/chat/none/events", "", codeNotFound},
	{"ann", "GET /api/chat/{id}/events", "/api/chat/THREAD/events?after=x", "", codeInvalidParams},
}

// unasked are failures that no single request to a healthy node can cause, with their cause.
var unasked = map[string]string{
	"RESPONSE_TOO_LARGE": "a file or a history beyond what is read at once",

	"POST /api/search INDEX_CHANGED":                  "a repository is indexed between two answers",
	"POST /api/search REPOSITORY_NOT_FOUND":           "one is taken from the viewer while git is read",
	"POST /api/stream_search REPOSITORY_NOT_FOUND":    "one is taken from the viewer while git is read",
	"POST /api/repos/{id}/reindex NOT_FOUND":          "it vanishes while it is asked for",
	"POST /api/models/check NOT_POSSIBLE_NOW":         "a configuration without a model",
	"POST /api/config CONFIRMATION_REQUIRED":          "more than twenty repositories",
	"POST /api/keys NOT_POSSIBLE_NOW":                 "ten thousand keys",
	"POST /api/users NOT_POSSIBLE_NOW":                "fifty thousand accounts",
	"POST /api/nodes/{node}/undrain NOT_POSSIBLE_NOW": "a removal at the same time",
	"POST /api/nodes/{node}/lead NOT_POSSIBLE_NOW":    "a node without a vote",
	"POST /api/session INSUFFICIENT_PERMISSIONS":      "no credential in a header, and no page of this site",
	"DELETE /api/session INSUFFICIENT_PERMISSIONS":    "no credential in a header, and no page of this site",
	"POST /api/chat NOT_POSSIBLE_NOW":                 "hundreds of threads",
	"POST /api/chat/blocking NOT_POSSIBLE_NOW":        "hundreds of threads",
	"POST /api/chat/blocking NOT_FOUND":               "the thread is deleted while it is answered",
}

// It causes every documented failure of a healthy node, so that none is documented for nothing.
func TestOpenAPI_everyDocumentedFailureCanOccur(t *testing.T) {
	t.Parallel()
	f := newFailures(t)
	for _, c := range asked {
		method, path, _ := strings.Cut(c.route, " ")
		target := c.target
		if target == "" || target[0] == '?' {
			target = f.parts.Replace(path) + target
		}
		f.fail(c.who, c.route, method, strings.ReplaceAll(target, "THREAD", f.parts.Replace("{id}")), strings.NewReader(c.body), c.code)
	}
	for path, methods := range f.ops.Paths {
		for method := range methods {
			f.common(path, strings.ToUpper(method))
		}
	}
	f.compare()
}

// newFailures starts a node with a repository, people with keys, and a question that a model
// never answers.
func newFailures(t *testing.T) *failures {
	t.Helper()
	dir, never := t.TempDir(), make(chan struct{})
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n"})
	mute := modeltest.Start(t, modeltest.Turn{Fault: func(http.ResponseWriter, []byte) { <-never }})
	n := nodetest.Start(t, nodetest.Config{
		Edit: func(o *node.Options) { o.Ctags = "" }, // from PATH
		File: fmt.Sprintf(`{
			"connections": {"local": {"type": "git", "url": "file://%s/*"}},
			"models": [{"provider": "openai-compatible", "model": "mute", "baseUrl": %q}]}`, dir, mute.URL),
	})
	n.WaitIndexed(1)
	t.Cleanup(func() { close(never) })

	f := &failures{t: t, s: start(t, partsOf(n.Node)), ops: openAPI(t), keys: map[string]string{}, shown: map[string]map[string]bool{}}
	made, err := n.Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "owner", Role: catalog.RoleOwner})
	if err != nil {
		t.Fatal(err)
	}
	f.keys["owner"], f.keys["wrong"] = made.Key, account.KeyPrefix+strings.Repeat("0", 64)

	// Without an account a member's key owns nothing.
	f.post("owner", "/api/users", `{"email":"olga@example.com","role":"owner"}`, nil)
	for who, body := range map[string]string{
		"ann":    `{"name":"ci","user":"ann@example.com"}`,
		"bob":    `{"name":"ci","user":"bob@example.com"}`,
		"nobody": `{"name":"of nobody"}`,
	} {
		if who != "nobody" {
			f.post("owner", "/api/users", `{"email":"`+who+`@example.com"}`, nil)
		}

		var key struct{ Key string }
		f.post("owner", "/api/keys", body, &key)
		f.keys[who] = key.Key
	}

	var thread struct{ ID string }
	f.post("ann", "/api/chat", `{"query":"How?","visibility":"PUBLIC"}`, &thread)
	var watch struct{ ID string }
	f.post("ann", "/api/watches", `{"query":"x","isShared":true}`, &watch)
	f.parts = strings.NewReplacer("/api/repos/{id}", "/api/repos/1", "/api/jobs/{id}", "/api/jobs/index:1", "{id}", thread.ID,
		"{connection}", "local", "{watch}", watch.ID, "{node}", n.Status().Node, "{key}", "ci", "{user}", "ann@example.com", "{agent}", "none")
	return f
}

// post creates what the failures need.
func (f *failures) post(who, path, body string, out any) {
	f.t.Helper()
	resp, text := askAs(f.t, f.s, f.keys[who], "POST", path, body)
	if resp.StatusCode >= 300 {
		f.t.Fatalf("%s: %d %s", path, resp.StatusCode, text)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			f.t.Fatal(err)
		}
	}
}

// fail sends a request that must fail with a code.
func (f *failures) fail(who, route, method, target string, body io.Reader, code string) {
	f.t.Helper()
	req, err := http.NewRequest(method, "http://"+f.s.Addr().String()+target, body)
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+f.keys[who])
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Errorf("%s for %s: %v", route, code, err)
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}

	var got struct {
		Status int    `json:"statusCode"`
		Code   string `json:"errorCode"`
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Code != code || resp.StatusCode != got.Status {
		f.t.Errorf("%s as %s: %d %.300s, want %s", route, who, resp.StatusCode, text, code)
		return
	}
	if f.shown[route] == nil {
		f.shown[route] = map[string]bool{}
	}
	f.shown[route][code] = true
}

// common causes the failures that routes of a kind share.
func (f *failures) common(path, method string) {
	name, target := method+" "+path, f.parts.Replace(path)
	op := f.ops.Paths[path][strings.ToLower(method)]
	found, _ := f.s.routes.find(target)
	of := found[slices.IndexFunc(found, func(x *route) bool { return x.name == path && x.method == method })]

	if of.access == accessOpen && of.timeout == 0 {
		return // needs no authentication
	}
	if path != sessionPath { // for signing in and out
		f.fail("wrong", name, method, target, http.NoBody, codeNotAuthenticated)
	}
	switch of.access {
	case accessOwner:
		f.fail("ann", name, method, target, http.NoBody, codeForbidden)
	case accessHolder:
		f.fail("nobody", name, method, target, http.NoBody, codeForbidden)
	}

	body := ""
	if op.RequestBody != nil {
		body = `{"query":"a"}`
		f.fail("owner", name, method, target, io.LimitReader(blanks{}, int64(of.bodyLimit())+1), codeTooLarge)
		if path != toolPath {
			f.fail("owner", name, method, target, strings.NewReader("["), codeInvalidBody)
		}
	}

	// Each parameter in turn is wrong, with good values for the required ones. If one of several
	// is required, take the first.
	good := url.Values{}
	if path == "/api/symbols" {
		good.Set("path", "x")
	}
	for _, p := range op.Parameters {
		if p.In == "query" && p.Required {
			good.Set(p.Name, "x")
			f.fail("owner", name, method, target, strings.NewReader(body), codeMissingParam)
		}
	}
	for _, p := range op.Parameters {
		// The thread is looked up before its events; asked has that case.
		if p.In != "query" || path == "/api/chat/{id}/events" {
			continue
		}
		wrong := maps.Clone(good)
		wrong.Set(p.Name, "\x00")
		f.fail("owner", name, method, target+"?"+wrong.Encode(), strings.NewReader(body), codeInvalidParams)
	}
}

// blanks is an endless body.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// compare finds documented failures that did not occur, and entries of unasked that are not
// documented.
func (f *failures) compare() {
	told := map[string]bool{}
	for path, methods := range f.ops.Paths {
		for method, op := range methods {
			name := strings.ToUpper(method) + " " + path
			for number, r := range op.Responses {
				// Limits, faults and shutdown have their own tests.
				if number < "400" || number > "413" {
					continue
				}
				for _, code := range errorCodes.FindAllString(r.Description, -1) {
					told[code], told[name+" "+code] = true, true
					if _, beyond := unasked[name+" "+code]; !f.shown[name][code] && !beyond && unasked[code] == "" {
						f.t.Errorf("%s: %s is documented and did not happen", name, code)
					}
				}
			}
		}
	}

	for what := range unasked {
		at := strings.LastIndexByte(what, ' ')
		if !told[what] || at > 0 && f.shown[what[:at]][what[at+1:]] {
			f.t.Errorf("%s is not documented, or happened", what)
		}
	}

	// The other direction: what occurred is documented.
	for name, codes := range f.shown {
		for code := range codes {
			if !told[name+" "+code] {
				f.t.Errorf("%s: %s happens and is not documented", name, code)
			}
		}
	}
}
