package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/search"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files of testdata")

// ask sends a request as an owner and returns response and body.
func ask(t *testing.T, s *Server, method, path, body string) (*http.Response, []byte) {
	t.Helper()
	return askAs(t, s, ownerKey, method, path, body)
}

func askAs(t *testing.T, s *Server, key, method, path, body string) (*http.Response, []byte) {
	t.Helper()
	return askAt(t, s.Addr(), key, method, path, body)
}

// askAt is askAs at one of the server's addresses.
func askAt(t *testing.T, addr net.Addr, key, method, path, body string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+addr.String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp, text
}

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; look at it and run go test ./api -rewrite if it is right\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// operations are calls that together cover every route under /api with an answer of every field.
var operations = []struct {
	name, method, path, body string
	status                   int
}{
	{"search", "POST", "/api/search", `{"query":"main","facets":true}`, 200},
	{"search_paste", "POST", "/api/search", `{"query":"cmd/main.go:3","understand":true}`, 200},
	{"search_mistake", "POST", "/api/search", `{"query":"` + noQuery + `"}`, 400},
	{"history_rules", "GET", "/api/history", "", 200},
	{"set_history_rule", "POST", "/api/history", `{"glob":"example.com/legacy-*","rule":"exclude"}`, 200},
	{"search_commits", "POST", "/api/search_commits", `{"query":"type:diff main","facets":true,"order":"best"}`, 200},
	{"find_definitions", "POST", "/api/find_definitions", `{"symbolName":"main"}`, 200},
	{"find_definitions_signature", "POST", "/api/find_definitions", `{"symbolName":"main","signature":true}`, 200},
	{"find_references_signature", "POST", "/api/find_references", `{"symbolName":"main","includeDefinitions":true,"signature":true}`, 200},
	{"find_references", "POST", "/api/find_references", `{"symbolName":"main"}`, 200},
	{"repos", "GET", "/api/repos?page=2", ``, 200},
	{"reindex", "POST", "/api/repos/7/reindex", ``, 202},
	{"source", "GET", "/api/source?repo=example.com/a/b&path=dir/a.go&tokens=true", ``, 200},
	{"tree", "POST", "/api/tree", `{"repoName":"r","revisionName":"HEAD","paths":[""],"details":true}`, 200},
	{"source_last_seen", "GET", "/api/source?repo=r&path=gone.go&lastSeen=true", ``, 404},
	{"tree_last_seen", "POST", "/api/tree", `{"repoName":"r","paths":["gone.go"],"lastSeen":true}`, 404},
	{"commits", "GET", "/api/commits?repo=r", ``, 200},
	{"commits_follow", "GET", "/api/commits?repo=r&path=new.go&follow=true", ``, 200},
	{"commit", "GET", "/api/commit?repo=r&ref=HEAD", ``, 200},
	{"authors", "GET", "/api/commits/authors?repo=r", ``, 200},
	{"diff", "GET", "/api/diff?repo=r&base=a&head=b", ``, 200},
	{"diff_details", "GET", "/api/diff?repo=r&base=a&head=b&details=true&mergeBase=true&ignoreWhitespace=true&context=0", ``, 200},
	{"diff_stat", "GET", "/api/diff?repo=r&base=a&head=b&stat=true", ``, 200},
	{"diff_page", "GET", "/api/diff?repo=r&base=a&head=b&page=2&perPage=1", ``, 200},
	{"blame", "GET", "/api/blame?repo=r&path=a", ``, 200},
	{"suggest", "GET", "/api/suggest?query=ma&cursor=2", ``, 200},
	{"query", "GET", "/api/query?query=-f:_test+language:go&isCaseSensitivityEnabled=true", ``, 200},
	{"bad_query", "GET", "/api/query?query=f:x+%C3%A9+a%5B&isRegexEnabled=true", ``, 200},
	{"find_files", "GET", "/api/files?repo=r&query=main", ``, 200},
	{"symbols", "GET", "/api/symbols?repo=r&path=a.go", ``, 200},
	{"find_symbols", "GET", "/api/symbols?repo=r&query=main&limit=5", ``, 200},
	{"find_symbols_signature", "GET", "/api/symbols?repo=r&query=main&signature=true", ``, 200},
	{"branches", "GET", "/api/branches?repo=r", ``, 200},
	{"tags", "GET", "/api/tags?repo=r", ``, 200},
	{"ref", "GET", "/api/ref?repo=r&ref=main", ``, 200},
	{"lastcommits", "GET", "/api/lastcommits?repo=r&path=d", ``, 200},
	{"models", "GET", "/api/models", ``, 200},
	{"chat", "POST", "/api/chat", `{"query":"How?","repos":["a/b"],"languageModel":{"provider":"anthropic","model":"m"}}`, 202},
	{"chat_blocking", "POST", "/api/chat/blocking", `{"query":"How?"}`, 200},
	{"chat_by_id", "GET", "/api/chat/c0ffee", ``, 200},
	{"chats", "GET", "/api/chat?perPage=5", ``, 200},
	{"change_chat", "PATCH", "/api/chat/c0ffee", `{"name":"How is it?","visibility":"PRIVATE"}`, 200},
	{"delete_chat", "DELETE", "/api/chat/c0ffee", ``, 200},
	{"chat_message", "POST", "/api/chat/c0ffee/messages", `{"query":"And then?"}`, 202},
	{"fork_chat", "POST", "/api/chat/c0ffee/fork", ``, 201},
	{"stop_chat", "POST", "/api/chat/c0ffee/stop", ``, 200},
	{"check_models", "POST", "/api/models/check", ``, 200},
	{"status", "GET", "/api/status", ``, 200},
	{"version", "GET", "/api/version", ``, 200},
	{"health", "GET", "/api/health", ``, 200},
	{"caller", "GET", "/api/me", ``, 200},
	{"begin_session", "POST", "/api/session", `{"email":"ann@example.com","password":"correct horse"}`, 201},
	{"end_session", "DELETE", "/api/session", ``, 200},
	{"keys", "GET", "/api/keys", ``, 200},
	{"watches", "GET", "/api/watches", ``, 200},
	{"create_watch", "POST", "/api/watches", `{"query":"type:diff added:main","isShared":true}`, 201},
	{"watch", "GET", "/api/watches/w1", ``, 200},
	{"change_watch", "PATCH", "/api/watches/w1", `{"name":"mains"}`, 200},
	{"delete_watch", "DELETE", "/api/watches/w1", ``, 200},
	{"watch_feed", "POST", "/api/watches/w1/feed", ``, 201},
	{"watch_webhook", "POST", "/api/watches/w1/webhook", `{"url":"https://hooks.example.com/x"}`, 201},
	{"end_watch_webhook", "DELETE", "/api/watches/w1/webhook", ``, 200},
	{"end_watch_feed", "DELETE", "/api/watches/w1/feed", ``, 200},
	{"create_key", "POST", "/api/keys", `{"name":"ci"}`, 201},
	{"agents", "GET", "/api/agents", ``, 200},
	{"end_agent", "DELETE", "/api/agents/a1", ``, 200},
	{"register_agent", "POST", "/api/agents/clients", `{"name":"Editor","redirectUris":["editor:/cb"]}`, 201},
	{"revoke_key", "DELETE", "/api/keys/ci", ``, 200},
	{"events", "GET", "/api/events?limit=5", ``, 200},
	{"jobs", "GET", "/api/jobs?page=2&state=retrying&kind=index&query=a", ``, 200},
	{"job", "GET", "/api/jobs/index:7", ``, 200},
	{"retry_job", "POST", "/api/jobs/index:7/retry", ``, 202},
	{"cancel_job", "POST", "/api/jobs/sync:main/cancel", ``, 202},
	{"configuration", "GET", "/api/config", ``, 200},
	{"contexts", "GET", "/api/contexts", ``, 200},
	{"set_password", "POST", "/api/users/u1/password", `{"password":"correct horse"}`, 200},
	{"new_link", "POST", "/api/users/u1/link", `{"join":true}`, 201},
	{"sessions", "GET", "/api/users/me/sessions", ``, 200},
	{"access_of_user", "GET", "/api/users/u1/access?repo=github.com/acme/secret", ``, 200},
	{"end_sessions", "DELETE", "/api/users/me/sessions?session=s1", ``, 200},
	{"apply_config", "POST", "/api/config?accept=true", `{}`, 200},
	{"connections", "GET", "/api/connections", ``, 200},
	{"reference_users", "GET", "/api/ee/users", ``, 200},
	{"reference_user", "GET", "/api/ee/user?userId=u1", ``, 200},
	{"reference_delete_user", "DELETE", "/api/ee/user?userId=u1", ``, 200},
	{"connection", "GET", "/api/connections/main", ``, 200},
	{"sync_connection", "POST", "/api/connections/main/sync", ``, 202},
	{"accept_listing", "POST", "/api/connections/main/accept", ``, 202},
	{"drain", "POST", "/api/nodes/n1/drain", ``, 200},
	{"undrain", "POST", "/api/nodes/n1/undrain", ``, 200},
	{"lead", "POST", "/api/nodes/n1/lead", ``, 200},
	{"remove", "POST", "/api/nodes/n1/remove", ``, 200},
	{"placement", "GET", "/api/placement?page=2", ``, 200},
	{"raft", "GET", "/api/raft", ``, 200},
	{"webhook", "POST", "/api/webhook/main", `{}`, 202},
	{"webhook_secret", "GET", "/api/webhook/main", ``, 200},
	{"rotate_webhook", "POST", "/api/webhook/main/rotate", ``, 200},
}

func TestWireFormats_equalTheGoldenFiles(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	for _, op := range operations {
		resp, body := ask(t, s, op.method, op.path, op.body)
		if resp.StatusCode != op.status {
			t.Errorf("%s: status %d, want %d: %s", op.name, resp.StatusCode, op.status, body)
			continue
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, body, "", "  "); err != nil {
			t.Errorf("%s: %v: %s", op.name, err, body)
			continue
		}
		golden(t, op.name+".json", append(pretty.Bytes(), '\n'))
		again, second := ask(t, s, op.method, op.path, op.body)
		if again.StatusCode != op.status || !bytes.Equal(body, second) {
			t.Errorf("%s: the same request gave other bytes:\n%s\n%s", op.name, body, second)
		}
		// Decoding and encoding again gives the same JSON, so the hand-written encoder equals the
		// library.
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Errorf("%s: %v", op.name, err)
		}
	}
}

func TestSearchStream_endsWithDONE(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	resp, body := ask(t, s, "POST", "/api/stream_search", `{"query":"main"}`)
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Errorf("Content-Type %q", got)
	}
	golden(t, "stream_search.txt", body)
	if !bytes.HasSuffix(body, []byte("\n\ndata: [DONE]\n\n")) {
		t.Errorf("the stream does not end in [DONE]: %q", body[max(0, len(body)-80):])
	}
}

func TestCommitStream_hasPartsAndTheirEnd(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	_, body := ask(t, s, "POST", "/api/stream_search_commits", `{"query":"type:diff main","facets":true,"matches":100000}`)
	golden(t, "stream_search_commits.txt", body)
	failed := start(t, (&fake{err: &nodecall.Error{Kind: nodecall.ErrQuery, Message: "unclosed group", Offset: 3, Expected: ")"}}).parts())
	if resp, body := ask(t, failed, "POST", "/api/stream_search_commits", `{"query":"(a"}`); resp.StatusCode != 400 {
		t.Errorf("an error before the first part: %d %s", resp.StatusCode, body)
	}
}

func TestSearchStream_errorsAreAStatusBeforeAndAnEventAfterTheFirstPart(t *testing.T) {
	t.Parallel()
	f := &fake{err: &nodecall.Error{Kind: nodecall.ErrQuery, Message: "unclosed group", Offset: 3, Expected: ")"}}
	s := start(t, f.parts())
	resp, body := ask(t, s, "POST", "/api/stream_search", `{"query":"(a"}`)
	if resp.StatusCode != 400 || !strings.Contains(string(body), `"errorCode":"FAILED_TO_PARSE_QUERY"`) {
		t.Errorf("an error before the first part: %d %s", resp.StatusCode, body)
	}
	late := start(t, &fake{stream: func(_ context.Context, _ catalog.Viewer, _ search.Request, send func(*search.Chunk) error) (*search.Response, error) {
		if err := send(&search.Chunk{}); err != nil {
			return nil, err
		}
		return nil, &nodecall.Error{Kind: nodecall.ErrTimeout, Message: "too slow"}
	}})
	resp, body = ask(t, late, "POST", "/api/stream_search", `{"query":"a"}`)
	want := `data: {"type":"error","error":{"statusCode":504,"errorCode":"TIMEOUT","message":"too slow"}}` + "\n\n"
	if resp.StatusCode != 200 || !strings.HasSuffix(string(body), want) {
		t.Errorf("an error after the first part: %d %s", resp.StatusCode, body)
	}
}

// failureOf decodes an error body and checks that it has its own status.
func failureOf(t *testing.T, what string, status int, body []byte) string {
	t.Helper()
	var e struct {
		StatusCode int
		ErrorCode  string
		Message    string
		queryMistake
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil || e.StatusCode != status || e.ErrorCode == "" || e.Message == "" {
		t.Errorf("%s: status %d with body %q: want {statusCode, errorCode, message}", what, status, body)
	}
	return e.ErrorCode
}

func TestBadInput_getsItsStatusAndCode(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		code                     string
	}{
		{"no body", "POST", "/api/search", ``, 400, codeInvalidBody},
		{"blank body", "POST", "/api/search", " \n", 400, codeInvalidBody},
		{"no JSON", "POST", "/api/search", `query=foo`, 400, codeInvalidBody},
		{"half JSON", "POST", "/api/search", `{"query":"foo"`, 400, codeInvalidBody},
		{"two values", "POST", "/api/search", `{"query":"foo"} {}`, 400, codeInvalidBody},
		{"null", "POST", "/api/search", `null`, 400, codeInvalidBody},
		{"array", "POST", "/api/search", `["query"]`, 400, codeInvalidBody},
		{"string", "POST", "/api/search", `"query"`, 400, codeInvalidBody},
		{"invalid UTF-8", "POST", "/api/search", "{\"query\":\"caf\xe9\"}", 400, codeInvalidBody},
		{"deep", "POST", "/api/search", deep, 400, codeInvalidBody},
		{"deep unknown member", "POST", "/api/search", `{"query":"a","x":` + deep + `}`, 400, codeInvalidBody},
		{"query missing", "POST", "/api/search", `{}`, 400, codeInvalidBody},
		{"query null", "POST", "/api/search", `{"query":null}`, 400, codeInvalidBody},
		{"query number", "POST", "/api/search", `{"query":1}`, 400, codeInvalidBody},
		{"query object", "POST", "/api/search", `{"query":{}}`, 400, codeInvalidBody},
		{"query in other case", "POST", "/api/search", `{"QUERY":"a"}`, 400, codeInvalidBody},
		{"matches string", "POST", "/api/search", `{"query":"a","matches":"5"}`, 400, codeInvalidBody},
		{"matches fraction", "POST", "/api/search", `{"query":"a","matches":1.5}`, 400, codeInvalidBody},
		{"matches 0", "POST", "/api/search", `{"query":"a","matches":0}`, 400, codeInvalidBody},
		{"matches negative", "POST", "/api/search", `{"query":"a","matches":-1}`, 400, codeInvalidBody},
		{"matches too many", "POST", "/api/search", `{"query":"a","matches":1000001}`, 400, codeInvalidBody},
		{"matches huge", "POST", "/api/search", `{"query":"a","matches":1e400}`, 400, codeInvalidBody},
		{"contextLines negative", "POST", "/api/search", `{"query":"a","contextLines":-1}`, 400, codeInvalidBody},
		{"contextLines too many", "POST", "/api/search", `{"query":"a","contextLines":101}`, 400, codeInvalidBody},
		{"pages string", "POST", "/api/search", `{"query":"a","pages":"yes"}`, 400, codeInvalidBody},
		{"after number", "POST", "/api/search", `{"query":"a","after":1}`, 400, codeInvalidBody},
		{"whole string", "POST", "/api/search", `{"query":"a","whole":"yes"}`, 400, codeInvalidBody},
		{"regex number", "POST", "/api/search", `{"query":"a","isRegexEnabled":1}`, 400, codeInvalidBody},
		{"allow_partial", "POST", "/api/search?allow_partial=maybe", `{"query":"a"}`, 400, codeInvalidParams},
		{"stream the same", "POST", "/api/stream_search", `{"query":1}`, 400, codeInvalidBody},
		{"symbol missing", "POST", "/api/find_definitions", `{}`, 400, codeInvalidBody},
		{"signature of uses", "POST", "/api/find_references", `{"symbolName":"a","signature":true}`, 400, codeInvalidBody},
		{"signature of no kind", "POST", "/api/find_definitions", `{"symbolName":"a","signature":1}`, 400, codeInvalidBody},
		{"signature with a path", "GET", "/api/symbols?repo=r&path=a.go&signature=true", ``, 400, codeInvalidParams},
		{"symbol empty", "POST", "/api/find_references", `{"symbolName":""}`, 400, codeInvalidBody},
		{"language number", "POST", "/api/find_references", `{"symbolName":"a","language":7}`, 400, codeInvalidBody},
		{"page 0", "GET", "/api/repos?page=0", ``, 400, codeInvalidParams},
		{"page word", "GET", "/api/repos?page=x", ``, 400, codeInvalidParams},
		{"page beyond numbers", "GET", "/api/repos?page=99999999999999999999", ``, 400, codeInvalidParams},
		{"perPage 101", "GET", "/api/repos?perPage=101", ``, 400, codeInvalidParams},
		{"sort", "GET", "/api/repos?sort=age", ``, 400, codeInvalidParams},
		{"direction", "GET", "/api/repos?direction=up", ``, 400, codeInvalidParams},
		{"connection by a word", "GET", "/api/repos?connectionId=main", ``, 400, codeInvalidParams},
		{"account without id", "GET", "/api/ee/user", ``, 400, codeMissingParam},
		{"account that is not there", "GET", "/api/ee/user?userId=u2", ``, 404, codeNotFound},
		{"audit backwards", "GET", "/api/ee/audit?since=2026-01-02&until=2026-01-01", ``, 400, codeInvalidParams},
		{"token for repositories", "POST", "/api/ee/scoped_access_token", `{"repoIds":[1]}`, 404, codeNotFound},
		{"NUL in a parameter", "GET", "/api/repos?query=a%00b", ``, 400, codeInvalidParams},
		{"repo missing", "GET", "/api/source?path=a", ``, 400, codeMissingParam},
		{"path missing", "GET", "/api/source?repo=a", ``, 400, codeMissingParam},
		{"path to follow missing", "GET", "/api/commits?repo=a&follow=true", ``, 400, codeMissingParam},
		{"head missing", "GET", "/api/diff?repo=a&base=b", ``, 400, codeMissingParam},
		{"context too many", "GET", "/api/diff?repo=a&base=b&head=c&context=101", ``, 400, codeInvalidParams},
		{"context negative", "GET", "/api/diff?repo=a&base=b&head=c&context=-1", ``, 400, codeInvalidParams},
		{"context of no hunks", "GET", "/api/diff?repo=a&base=b&head=c&context=3&stat=true", ``, 400, codeInvalidParams},
		{"blanks", "GET", "/api/diff?repo=a&base=b&head=c&ignoreWhitespace=some", ``, 400, codeInvalidParams},
		{"paths not strings", "POST", "/api/tree", `{"repoName":"r","revisionName":"HEAD","paths":[1]}`, 400, codeInvalidBody},
		{"paths not an array", "POST", "/api/tree", `{"repoName":"r","revisionName":"HEAD","paths":"a"}`, 400, codeInvalidBody},
		{"paths with null", "POST", "/api/tree", `{"repoName":"r","revisionName":"HEAD","paths":[null]}`, 400, codeInvalidBody},
		{"repository number", "POST", "/api/repos/x/reindex", ``, 400, codeInvalidParams},
		{"repository number too large", "POST", "/api/repos/4294967296/reindex", ``, 400, codeInvalidParams},
		{"all other sessions than that of a key", "DELETE", "/api/users/me/sessions?session=others", ``, 400, codeInvalidParams},
		{"role", "POST", "/api/keys", `{"name":"a","role":"king"}`, 400, codeInvalidBody},
		{"life", "POST", "/api/keys", `{"name":"a","expiresInDays":0}`, 400, codeInvalidBody},
		{"event", "POST", "/api/webhook/main", `{`, 400, codeInvalidBody},
		{"unknown path", "GET", "/api/nothing", ``, 404, codeNotFound},
		{"unknown below", "GET", "/api/search/x", ``, 404, codeNotFound},
		{"unknown page", "GET", "/nothing", ``, 404, codeNotFound},
		{"unknown file", "GET", "/static/nothing.js", ``, 404, codeNotFound},
		{"out of static", "GET", "/static/%2e%2e/web.go", ``, 404, codeNotFound},
		{"wrong method", "GET", "/api/search", ``, 405, codeMethod},
		{"odd method", "BREW", "/api/search", ``, 405, codeMethod},
		{"too large", "POST", "/api/search", `{"query":"` + strings.Repeat("a", maxBody) + `"}`, 413, codeTooLarge},
	} {
		resp, body := ask(t, s, c.method, c.path, c.body)
		if code := failureOf(t, c.name, resp.StatusCode, body); resp.StatusCode != c.status || code != c.code {
			t.Errorf("%s: %d %s (%s), want %d %s", c.name, resp.StatusCode, code, body, c.status, c.code)
		}
		if resp.StatusCode == 405 && resp.Header.Get("Allow") == "" {
			t.Errorf("%s: 405 without Allow", c.name)
		}
	}
}

func TestBadInput_errorNamesEveryMistake(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	_, body := ask(t, s, "POST", "/api/search", `{"matches":"x","contextLines":1000,"whole":0}`)
	for _, want := range []string{"Schema validation failed with:", "query: required", "matches: expected a number, received a string", "contextLines: must be between 0 and 100", "whole: expected a boolean, received a number"} {
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: does not say %q", body, want)
		}
	}
}

// A NUL in a required parameter is one error, and not also a missing parameter.
func TestBadInput_aNULInAParameterIsOneError(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	resp, body := ask(t, s, "GET", "/api/source?repo=a%00b&path=a", "")
	var f failure
	if err := json.Unmarshal(body, &f); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if want := "Query params validation failed with: repo: must not contain a NUL byte"; resp.StatusCode != 400 || f.Code != codeInvalidParams || f.Message != want {
		t.Errorf("%d %s %q, want %q", resp.StatusCode, f.Code, f.Message, want)
	}
}

func TestGoodInput_isPassedToTheNode(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := start(t, f.parts())
	for _, c := range []struct {
		path, body string
		want       search.Request
	}{
		{"/api/search", `{"query":""}`, search.Request{}},
		{"/api/search", `{"query":"a","unknown":{"x":[1]}}`, search.Request{Query: "a"}},
		{"/api/search", `{"query":"a\u0000b\ud800"}`, search.Request{Query: "a\x00b\uFFFD"}},
		{"/api/search", `{"query":"a","matches":1e3,"contextLines":2.0,"whole":true,"isRegexEnabled":true,"isCaseSensitivityEnabled":true}`,
			search.Request{Query: "a", Matches: 1000, ContextLines: 2, Whole: true, Regexp: true, CaseSensitive: true}},
		{"/api/search", `{"query":"a","matches":null,"whole":null}`, search.Request{Query: "a"}},
		{"/api/search", `{"query":"a","pages":true}`, search.Request{Query: "a", Pages: true}},
		{"/api/search", `{"query":"a","after":"bmV4dA"}`, search.Request{Query: "a", After: "bmV4dA", Pages: true}},
		{"/api/stream_search", `{"query":"a","after":"bmV4dA"}`, search.Request{Query: "a", After: "bmV4dA", Pages: true}},
		{"/api/stream_search?allow_partial=false", `{"query":"a","matches":1000000}`, search.Request{Query: "a", Matches: 1000000, RequireComplete: true}},
		{"/api/stream_search", `{"query":"a","facets":true}`, search.Request{Query: "a", Facets: true}},
	} {
		resp, body := ask(t, s, "POST", c.path, c.body)
		if got := f.lastReq.Swap(search.Request{}); resp.StatusCode != 200 || got != c.want {
			t.Errorf("%s %s: %d, asked for %+v, want %+v (%.200s)", c.path, c.body, resp.StatusCode, got, c.want, body)
		}
	}
}

func TestGoodInput_invalidUTF8InPathsReachesGit(t *testing.T) {
	t.Parallel()
	sources := make(chan browse.SourceRequest, 1)
	p := (&fake{}).parts()
	p.browse = &sourceSpy{Reader: p.browse, sources: sources}
	s := start(t, p)
	ask(t, s, "GET", "/api/source?repo=r&path=caf%E9%2Fa%20b&ref=x+y", "")
	if got := <-sources; got.Path != "caf\xe9/a b" || got.Ref != "x y" {
		t.Errorf("asked for path %q ref %q", got.Path, got.Ref)
	}
}

func TestNodeErrors_becomeStatusesWithoutInternalText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{&nodecall.Error{Kind: nodecall.ErrQuery, Message: "m", Offset: 2, Expected: "x"}, 400, "FAILED_TO_PARSE_QUERY"},
		{&nodecall.Error{Kind: nodecall.ErrRef, Message: "m"}, 400, "INVALID_GIT_REF"},
		{&nodecall.Error{Kind: nodecall.ErrInvalid, Message: "m"}, 400, "INVALID_REQUEST_BODY"},
		{&nodecall.Error{Kind: nodecall.ErrForbidden, Message: "m"}, 403, "INSUFFICIENT_PERMISSIONS"},
		{&nodecall.Error{Kind: nodecall.ErrRepoNotFound, Message: "m"}, 404, "REPOSITORY_NOT_FOUND"},
		{&nodecall.Error{Kind: nodecall.ErrFileNotFound, Message: "m"}, 404, "FILE_NOT_FOUND"},
		{&nodecall.Error{Kind: nodecall.ErrContextNotFound, Message: "m"}, 404, "SEARCH_CONTEXT_NOT_FOUND"},
		{&nodecall.Error{Kind: nodecall.ErrNotFound, Message: "m"}, 404, "NOT_FOUND"},
		{&nodecall.Error{Kind: nodecall.ErrOverloaded, Message: "m", RetryAfter: 1500 * time.Millisecond}, 429, "RATE_LIMITED"},
		{&nodecall.Error{Kind: nodecall.ErrNoLeader, Message: "m"}, 503, "NO_LEADER"},
		{&nodecall.Error{Kind: nodecall.ErrIncomplete, Message: "m"}, 503, "INCOMPLETE_RESULTS"},
		{&nodecall.Error{Kind: nodecall.ErrTimeout, Message: "m"}, 504, "TIMEOUT"},
		{fmt.Errorf("deep: %w", context.DeadlineExceeded), 504, "TIMEOUT"},
		{errors.New("secret detail"), 500, "UNEXPECTED_ERROR"},
	} {
		s := start(t, (&fake{err: c.err}).parts())
		resp, body := ask(t, s, "POST", "/api/search", `{"query":"a"}`)
		if code := failureOf(t, c.code, resp.StatusCode, body); resp.StatusCode != c.status || code != c.code {
			t.Errorf("%v: %d %s", c.err, resp.StatusCode, body)
		}
		if strings.Contains(string(body), "secret") {
			t.Errorf("an unexpected error's text got out: %s", body)
		}
		if c.status == 429 && resp.Header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After %q, want 2", resp.Header.Get("Retry-After"))
		}
	}
}

func TestRouteAccess_decidesWhichKeysMayCallEachRoute(t *testing.T) {
	t.Parallel()
	closed, open := start(t, (&fake{}).parts()), start(t, (&fake{guests: true}).parts())
	for _, c := range []struct {
		s            *Server
		key          string
		method, path string
		status       int
	}{
		{closed, "", "GET", "/api/repos", 401},
		{closed, memberKey, "GET", "/api/repos", 200},
		{closed, "shoal_0000000000000000000000000000000000000000000000000000000000000000", "GET", "/api/repos", 401},
		{closed, "sbk_1111111111111111111111111111111111111111111111111111111111111111", "GET", "/api/repos", 401},
		{closed, "", "GET", "/api/health", 200},
		{closed, "", "GET", "/metrics", 200},
		{closed, "", "GET", "/livez", 200},
		{closed, "", "GET", "/", 200},
		{closed, "", "POST", "/api/mcp", 401},
		{closed, memberKey, "GET", "/api/keys", 403},
		{closed, ownerKey, "GET", "/api/keys", 200},
		{closed, memberKey, "POST", "/api/repos/1/reindex", 403},
		{closed, "", "POST", "/api/webhook/main", 401},
		{closed, memberKey, "POST", "/api/webhook/main", 403},
		{closed, ownerKey, "POST", "/api/webhook/main", 202},
		{open, "", "GET", "/api/repos", 200},
		{open, "", "GET", "/api/keys", 403},
		{open, "", "POST", "/api/webhook/main", 403},
		{open, "nonsense", "GET", "/api/repos", 401},
	} {
		resp, body := askAs(t, c.s, c.key, c.method, c.path, "")
		if resp.StatusCode != c.status {
			t.Errorf("%s %s with key %.8q: %d, want %d (%s)", c.method, c.path, c.key, resp.StatusCode, c.status, body)
		}
		if resp.StatusCode == 401 && resp.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s: 401 without WWW-Authenticate", c.method, c.path)
		}
	}
}

func TestAPIKey_isAcceptedInTheSourcebotHeader(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	req, _ := http.NewRequest("GET", "http://"+s.Addr().String()+"/api/repos", nil)
	req.Header.Set("X-Sourcebot-Api-Key", memberKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestPaging_linksAndTotalCountAreInHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	resp, _ := ask(t, s, "GET", "/api/repos?query=a%2Fb&page=2&perPage=40", "")
	want := `<http://shoal.example.com/api/repos?query=a%2Fb&page=1&perPage=40>; rel="first", ` +
		`<http://shoal.example.com/api/repos?query=a%2Fb&page=1&perPage=40>; rel="prev", ` +
		`<http://shoal.example.com/api/repos?query=a%2Fb&page=3&perPage=40>; rel="next", ` +
		`<http://shoal.example.com/api/repos?query=a%2Fb&page=3&perPage=40>; rel="last"`
	if got := resp.Header.Get("Link"); got != want {
		t.Errorf("Link\n%s\nwant\n%s", got, want)
	}
	if got := resp.Header.Get("X-Total-Count"); got != "95" {
		t.Errorf("X-Total-Count %q", got)
	}
	resp, _ = ask(t, s, "GET", "/api/commits?repo=r", "")
	if got := resp.Header.Get("Link"); got != "" {
		t.Errorf("one page has Link %q", got)
	}
}

// A difference has pages on request.
func TestPaging_splitsADiffOnRequest(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	for query, want := range map[string]string{
		"":                  " ",
		"&page=2&perPage=1": `3 <http://shoal.example.com/api/diff?repo=r&base=a&head=b&page=1&perPage=1>; rel="first", <http://shoal.example.com/api/diff?repo=r&base=a&head=b&page=1&perPage=1>; rel="prev", <http://shoal.example.com/api/diff?repo=r&base=a&head=b&page=3&perPage=1>; rel="next", <http://shoal.example.com/api/diff?repo=r&base=a&head=b&page=3&perPage=1>; rel="last"`,
		"&page=1":           "3 ",
	} {
		resp, _ := ask(t, s, "GET", "/api/diff?repo=r&base=a&head=b"+query, "")
		if got := resp.Header.Get("X-Total-Count") + " " + resp.Header.Get("Link"); got != want {
			t.Errorf("%q: %s\nwant %s", query, got, want)
		}
	}
}

func TestReadyRoute_tellsWhetherTheNodeServes(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{notOK: true}).parts())
	resp, body := ask(t, s, "GET", "/readyz", "")
	if resp.StatusCode != 503 || failureOf(t, "readyz", resp.StatusCode, body) != codeNotReady {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// A stopping server reports it and still answers: each answer closes its connection.
func TestServerStop_stillAnswersAndClosesConnections(t *testing.T) {
	t.Parallel()
	s, err := newServer((&fake{base: "http://shoal.example.com"}).parts(), Options{Listen: "127.0.0.1:0", Linger: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	if resp, _ := ask(t, s, "GET", "/readyz", ""); resp.StatusCode != 200 || resp.Close {
		t.Errorf("before: %d, closes %v", resp.StatusCode, resp.Close)
	}
	cancel()
	<-s.leaving
	if resp, _ := ask(t, s, "GET", "/readyz", ""); resp.StatusCode != 503 || !resp.Close {
		t.Errorf("it does not say that it stops: %d, closes %v", resp.StatusCode, resp.Close)
	}
	if resp, _ := ask(t, s, "GET", "/api/version", ""); resp.StatusCode != 200 || !resp.Close {
		t.Errorf("while it lingers: %d, closes %v", resp.StatusCode, resp.Close)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("it listens although it stopped")
	}
}

func TestRoutes_answerOPTIONSAndHEAD(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	if resp, _ := askAs(t, s, "", "OPTIONS", "/api/search", ""); resp.StatusCode != 204 || resp.Header.Get("Allow") != "OPTIONS, POST" {
		t.Errorf("OPTIONS: %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	if resp, body := ask(t, s, "HEAD", "/api/version", ""); resp.StatusCode != 200 || len(body) != 0 {
		t.Errorf("HEAD: %d, %q", resp.StatusCode, body)
	}
}

func TestPanicInAHandler_isAnsweredWith500(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{search: func(context.Context, catalog.Viewer, search.Request) (*search.Response, error) {
		panic("BUG: on purpose")
	}, stream: func(context.Context, catalog.Viewer, search.Request, func(*search.Chunk) error) (*search.Response, error) {
		panic("BUG: on purpose")
	}})
	for _, path := range []string{"/api/search", "/api/stream_search"} {
		resp, body := ask(t, s, "POST", path, `{"query":"a"}`)
		if failureOf(t, path, resp.StatusCode, body) != codeUnexpected || resp.StatusCode != 500 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if resp, _ := ask(t, s, "GET", "/livez", ""); resp.StatusCode != 200 {
		t.Errorf("after the panic: %d", resp.StatusCode)
	}
}

// dial sends raw bytes and returns the connection.
func dial(t *testing.T, s *Server, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestBrokenHTTP_isRefusedAndTheConnectionClosed(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts())
	body := `{"query":"a"}`
	for _, c := range []struct {
		name, raw string
		status    int
		closes    bool
	}{
		{"garbage", "hello\r\n\r\n", 400, true},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, true},
		{"two lengths", "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13\r\nContent-Length: 14\r\n\r\n" + body, 400, true},
		{"signed length", "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: +13\r\n\r\n" + body, 400, true},
		{"unknown coding", "POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 400, true},
		{"bad chunk", "POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, true},
		{"header too large", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", maxHeader) + "\r\n\r\n", 431, true},
		{"length too large", "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", 413, true},
		{"chunks", "POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n" + body + "\r\n0\r\n\r\n", 200, false},
		{"expect too much", "POST /api/search HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", 413, true},
		{"compressed", "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 13\r\n\r\n" + body, 415, false},
		{"strange host", "GET /api/repos HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, false},
		{"base URL's host", "GET /api/repos HTTP/1.1\r\nHost: shoal.example.com\r\n\r\n", 200, false},
		{"strange origin", "GET /api/repos HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403, false},
	} {
		conn := dial(t, s, c.raw)
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s: %d %s %v, want %d", c.name, resp.StatusCode, text, err, c.status)
		}
		if resp.StatusCode >= 400 {
			failureOf(t, c.name, resp.StatusCode, text)
		}
		if c.closes != resp.Close {
			t.Errorf("%s: the connection closes: %t, want %t", c.name, resp.Close, c.closes)
		}
	}
}

// It sends a request with two different lengths, and another request in the bytes between them.
func TestRequestSmuggling_getsOneRefusal(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts())
	conn := dial(t, s, "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(all, []byte("HTTP/1.1 ")); n != 1 || bytes.Contains(all, []byte(`"version"`)) {
		t.Errorf("%d answers:\n%s", n, all)
	}
}

func TestExpectContinue_isAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts())
	body := `{"query":"a"}`
	conn := dial(t, s, fmt.Sprintf("POST /api/search HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)))
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q %v", line, err)
	}
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, body)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %v", resp, err)
	}
}

// sourceSpy records the request for Source.
type sourceSpy struct {
	browse.Reader
	sources chan browse.SourceRequest
}

func (s *sourceSpy) Source(ctx context.Context, v catalog.Viewer, req browse.SourceRequest) (*browse.SourceResponse, error) {
	s.sources <- req
	return s.Reader.Source(ctx, v, req)
}
