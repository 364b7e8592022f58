package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/tool"
)

// absent is a kind of thing that a request names but that does not exist or is of another kind.
type absent struct {
	kind, value string
	params      []string // names of its parameters in routes and tools
}

var absents = []absent{
	{"unknown repository", "local/never", []string{"repo", "repoName", "repos"}},
	{"hidden repository", "local/secret", []string{"repo", "repoName", "repos"}},
	{"empty repository", "local/empty", []string{"repo", "repoName", "repos"}},
	{"unknown revision", "no-such-revision", []string{"ref", "rev", "revisionName", "base", "head", "contains"}},
	{"unknown path", "no-such/file.go", []string{"path", "paths"}},
	{"directory", "docs", []string{"path", "paths"}},
}

// presentRepo is the repository of good requests.
const presentRepo = "local/app"

// reads returns a request for each route, page and tool that reads a repository, from the
// oracle's tables. A new one is added there.
func reads(t *testing.T) (list []shot) {
	t.Helper()
	a := aims{repos: []string{presentRepo}, pick: func(int) int { return 0 }}
	for name, shots := range askedRoutes {
		for _, x := range shots(a) {
			of := strings.Contains(x.target+x.body, presentRepo) || strings.Contains(x.target, url.QueryEscape(presentRepo))
			named := strings.Contains(x.target, "query="+url.QueryEscape(presentRepo)) || strings.Contains(x.body, `"query"`) // a part of a name, which may have no match
			if of && !named && (strings.HasPrefix(name, "GET ") || slices.Contains([]string{"/api/tree", "/api/find_definitions", "/api/find_references"}, x.target)) {
				list = append(list, x)
			}
		}
	}
	for _, row := range oracleTools() {
		arguments := object{}
		for _, p := range row.Params {
			if values := toolWords[p.Name]; p.Required && len(values) > 0 || p.Name == "path" {
				arguments[p.Name] = values[0]
			}
		}
		if hasParam(row, "repo") {
			arguments["repo"] = presentRepo
			list = append(list, toolShot(row.Name, arguments))
		}
	}
	return list
}

func hasParam(row tool.Tool, name string) bool {
	return slices.ContainsFunc(row.Params, func(p tool.Param) bool { return p.Name == name })
}

func toolShot(name string, arguments object) shot {
	return post("/api/mcp", object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": object{"name": name, "arguments": arguments}})
}

// with returns the requests with the absent thing in each parameter that takes one.
func (k absent) with(t *testing.T, doc document, x shot) (list []shot) {
	t.Helper()
	target, err := url.Parse(x.target)
	if err != nil {
		t.Fatal(err)
	}
	var body object
	if x.body != "" {
		if err := json.Unmarshal([]byte(x.body), &body); err != nil {
			t.Fatal(err)
		}
	}

	switch {
	case strings.HasPrefix(target.Path, "/browse/") || strings.HasPrefix(target.Path, "/embed/"):
		return k.page(x)
	case target.Path == "/api/mcp":
		params := body["params"].(object)
		name := params["name"].(string)
		for _, row := range oracleTools() {
			for _, p := range row.Params {
				if row.Name == name && slices.Contains(k.params, p.Name) {
					arguments := cloned(params["arguments"].(object))
					arguments[p.Name] = k.value
					list = append(list, toolShot(name, arguments))
				}
			}
		}
	case x.method == "POST":
		schema := resolve(anyOf(t), doc.Paths[target.Path]["post"].RequestBody.Content["application/json"].Schema)
		for name := range schema["properties"].(map[string]any) {
			// For a symbol, path is the reader's place and not the requested file.
			if slices.Contains(k.params, name) && !(name == "path" && target.Path != "/api/tree") {
				changed := cloned(body)
				if changed[name] = k.value; name == "paths" {
					changed[name] = []string{k.value}
				}
				list = append(list, post(target.Path, changed))
			}
		}
	default:
		for _, p := range doc.Paths[target.Path]["get"].Parameters {
			if slices.Contains(k.params, p.Name) {
				query := target.Query()
				query.Set(p.Name, k.value)
				list = append(list, get("%s?%s", target.Path, query.Encode()))
			}
		}
	}
	return list
}

func cloned(o object) object {
	out := object{}
	for name, value := range o {
		out[name] = value
	}
	return out
}

// page returns the address of a page with the absent thing instead of the present one.
func (k absent) page(x shot) []shot {
	at, rest, _ := strings.Cut(strings.TrimPrefix(x.target, "/"), "/")
	repo, what, _ := strings.Cut(rest, "/-/")
	repo, _, _ = strings.Cut(repo, "@")
	switch {
	case slices.Contains(k.params, "repo"):
		repo = k.value
	case slices.Contains(k.params, "ref") && regexp.MustCompile(`^(branches|tags|commit/|compare/)`).MatchString(what):
		return nil // these name no revision, or in another form
	case slices.Contains(k.params, "ref"):
		repo += "@" + k.value
	default:
		kind, path, _ := strings.Cut(what, "/")
		if path == "" || strings.HasPrefix(what, "com") {
			return nil
		}
		what = kind + "/" + k.value
	}
	return []shot{get("/%s/%s/-/%s", at, repo, what)}
}

// silent returns how an answer fails to report the absent thing; "" if it reports it.
func (k absent) silent(x shot, status int, answer string) string {
	text, refused := answer, status >= 400
	if strings.HasPrefix(x.target, "/api/mcp") {
		var r struct {
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(answer), &r); err != nil || len(r.Result.Content) == 0 {
			return "is no answer of a tool"
		}
		text, refused = r.Result.Content[0].Text, r.Result.IsError
	}

	switch {
	case status >= 500:
		return "fails"
	case refused || k.kind == "directory": // exists, and may have no results
		return ""
	case k.kind == "empty repository":
		if strings.Contains(text, "main.go") {
			return "is answered by another repository"
		}
		return "" // exists, and has no results
	}
	// The text must say it: the name in a link, a title or a field is not enough.
	plain := regexp.MustCompile(`(?s)<title>.*?</title>|<header.*?</header>|<[^>]*>`).ReplaceAllString(text, "")
	if regexp.MustCompile(`(?i)no-such|notSearched|unknownRevision|not indexed|no commit|empty`).MatchString(plain) && !strings.Contains(plain, "Complete.") {
		return ""
	}
	return "is answered as if it were there"
}

// Every route, page and tool refuses or reports a missing thing, instead of answering as if it
// were empty.
func TestMissingThings_areReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{"main.go": "package main\n\nfunc main() {}\n\n// Swim swims like a shark.\nfunc Swim() {}\n", "docs/a.md": "a shark\n"}
	for _, name := range []string{"open/app", "closed/secret"} {
		r := nodetest.NewRepo(t, filepath.Join(dir, name), files)
		r.Git("tag", "v1")
		r.Commit(map[string]string{"docs/b.md": "a whale\n"})
	}
	nodetest.OpenRepo(t, dir).Git("init", "-q", "-b", "main", filepath.Join(dir, "open/empty"))
	n := nodetest.Start(t, nodetest.Config{
		Env: map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
		File: fmt.Sprintf(`{"connections": {
			"open": {"type": "git", "url": "file://%[1]s/open/*", "revisions": {"tags": ["**"]}},
			"closed": {"type": "git", "url": "file://%[1]s/closed/*", "enforcePermissions": true}}}`, dir),
		Edit: func(o *node.Options) { o.Ctags = "" },
	})
	n.Wait("the index", func() error {
		if r := n.Status().Repos; r.Indexed < 3 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s := &side{url: "http://" + start(t, partsOf(n.Node)).Addr().String()}

	// The page of a repository without commits says so, because the repository exists.
	for _, page := range []string{"", "/-/tree", "/-/commits"} {
		if status, text := s.read(t, get("/browse/local/empty%s", page)); status != 200 || !strings.Contains(text, "has no commits") {
			t.Errorf("the page %q of an empty repository: %d %.200s", page, status, text)
		}
	}

	doc, asked, answered := openAPI(t), map[shot]bool{}, 0
	for _, x := range reads(t) {
		if status, _ := s.read(t, x); status < 400 {
			answered++
		}
		for _, k := range absents {
			for _, y := range k.with(t, doc, x) {
				if asked[y] {
					continue
				}
				asked[y] = true
				status, answer := s.read(t, y)
				if how := k.silent(y, status, answer); how != "" {
					t.Errorf("%s: %s %s %s %s: %d %.300s", k.kind, y.method, y.target, y.body, how, status, answer)
				}
			}
		}
	}
	if answered < 40 || len(asked) < 200 {
		t.Errorf("only %d requests, and %d that are answered", len(asked), answered)
	}
}

// read sends a request without credentials.
func (s *side) read(t *testing.T, x shot) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), x.method, s.url+x.target, bytes.NewReader([]byte(x.body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/html")
	resp, err := oracleClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
