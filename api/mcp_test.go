package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/cluster/catalog"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/tool"
)

// versions are the protocol revisions that clients may use.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// withKey sends an API key with every request.
type withKey struct{ key string }

func (w withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.key)
	return http.DefaultTransport.RoundTrip(r)
}

// connect opens a session of the SDK's client.
func connect(t *testing.T, s *Server, key, version string, opt *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opt)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://" + s.Addr().String() + "/api/mcp", HTTPClient: &http.Client{Transport: withKey{key}}, MaxRetries: -1,
	}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect with %s: %v", version, err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func textOf(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 || r.StructuredContent != nil {
		t.Fatalf("want one text and nothing structured, got %d parts, %v", len(r.Content), r.StructuredContent)
	}
	text, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("want a text, got %T", r.Content[0])
	}
	return text.Text
}

func TestMCP_listsAllToolsInEveryProtocolVersion(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	want := len(tool.New(tool.Parts{}).Tools())
	for _, version := range versions {
		session := connect(t, s, memberKey, version, nil)
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		if len(tools.Tools) != want {
			t.Errorf("%s: %d tools, want %d", version, len(tools.Tools), want)
		}
		for _, tool := range tools.Tools {
			a := tool.Annotations
			if tool.Title == "" || tool.Description == "" || a == nil || !a.ReadOnlyHint || !a.IdempotentHint || a.OpenWorldHint == nil || *a.OpenWorldHint || tool.OutputSchema != nil {
				t.Errorf("%s: %s: %+v", version, tool.Name, tool)
			}
			if words := len(strings.Fields(tool.Description)); words > 60 {
				t.Errorf("%s has a description of %d words", tool.Name, words)
			}
			result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: required(t, tool)})
			if err != nil {
				t.Errorf("%s: %s: %v", version, tool.Name, err)
				continue
			}
			if text := textOf(t, result); result.IsError || text == "" {
				t.Errorf("%s: %s: %s", version, tool.Name, text)
			}
		}
	}
}

// required returns arguments for all that a tool's schema requires. If the tool needs one of
// several, it takes one.
func required(t *testing.T, tool *sdk.Tool) map[string]any {
	t.Helper()
	var schema struct{ Required []string }
	b, err := json.Marshal(tool.InputSchema)
	if err == nil {
		err = json.Unmarshal(b, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]any{"pattern": "main", "repo": "example.com/a/b", "path": "main.go", "symbol": "main", "base": "a", "head": "b", "query": "main"}
	arguments := map[string]any{}
	for _, name := range schema.Required {
		arguments[name] = known[name]
	}
	switch tool.Name {
	case "read_file":
		arguments["path"] = known["path"]
	case "dependencies":
		arguments["repo"] = known["repo"]
	}
	return arguments
}

func TestMCP_readsResourcesAndCompletesTheirNames(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	session := connect(t, s, memberKey, "2025-11-25", nil)
	templates, err := session.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 2 {
		t.Fatalf("%v %v", templates, err)
	}
	if templates.CacheScope != "private" {
		t.Errorf("cacheScope %q", templates.CacheScope)
	}
	read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "shoal://example.com%2Fa%2Fb/HEAD/dir/main.go"})
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "package main\n" || read.CacheScope != "private" {
		t.Errorf("%+v %v", read, err)
	}
	if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "shoal://nothing"}); err == nil {
		t.Error("a resource that does not exist was read")
	}
	// The address of a page, as answers link it.
	for rest, want := range map[string]string{
		"example.com/a/b@v1/-/blob/dir/main.go":    "package main\n",
		"example.com/a/b/-/blob/dir/main.go#L1-L1": "package main\n",
		"example.com/a/b/-/commits/dir":            "",
		"example.com/a/b":                          "",
	} {
		read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "https://shoal.example.com/browse/" + rest})
		if got := err == nil && read.Contents[0].Text == want; got != (want != "") {
			t.Errorf("%s: %+v %v", rest, read, err)
		}
	}
	complete := func(name, value string, known map[string]string) []string {
		r, err := session.Complete(t.Context(), &sdk.CompleteParams{
			Ref:      &sdk.CompleteReference{Type: "ref/resource", URI: templates.ResourceTemplates[0].URITemplate},
			Argument: sdk.CompleteParamsArgument{Name: name, Value: value}, Context: &sdk.CompleteContext{Arguments: known},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Completion.Values
	}
	if got := complete("repo", "a/", nil); len(got) != 1 || got[0] != "example.com/a/b" {
		t.Errorf("repositories: %q", got)
	}
	if got := complete("ref", "m", map[string]string{"repo": "example.com/a/b"}); len(got) != 1 || got[0] != "main" {
		t.Errorf("refs: %q", got)
	}
}

func TestMCP_promptsRefuseMissingArguments(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	session := connect(t, s, memberKey, "2025-11-25", nil)
	list, err := session.ListPrompts(t.Context(), nil)
	if err != nil || len(list.Prompts) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	for _, p := range list.Prompts {
		if _, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: p.Name}); err == nil || !strings.Contains(err.Error(), "repo is required") {
			t.Errorf("%s without arguments: %v", p.Name, err)
		}
		arguments := map[string]string{}
		for _, a := range p.Arguments {
			arguments[a.Name] = "some " + a.Name
		}
		got, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: p.Name, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		text := got.Messages[0].Content.(*sdk.TextContent).Text
		for name := range arguments {
			if !strings.Contains(text, "some "+name) || strings.Contains(text, "%!") {
				t.Errorf("%s: %s", p.Name, text)
			}
		}
	}
}

func TestMCP_toolFailuresReachTheModelAsText(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{err: &nodecall.Error{Kind: nodecall.ErrUnavailable, Message: "no live node holds the mirror"}})
	session := connect(t, s, memberKey, "2025-11-25", nil)
	for _, c := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"repo": "r", "path": "a"}, "Try again in a few seconds"},
		{map[string]any{"path": "a"}, "repo is required"},
		{map[string]any{"repo": 7, "path": "a"}, "repo has to be a string"},
		{map[string]any{"repo": "r", "path": "a", "offset": 0}, "offset has to be at least 1"},
		{map[string]any{"repo": "r", "path": "a", "offset": 1.5}, "offset has to be a whole number"},
		{map[string]any{"repo": "r", "path": "a\x00"}, "path must not contain a NUL byte"},
	} {
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "read_file", Arguments: c.args})
		if err != nil {
			t.Fatal(err)
		}
		if text := textOf(t, r); !r.IsError || !strings.Contains(text, c.want) {
			t.Errorf("%v: %t %q, want %q", c.args, r.IsError, text, c.want)
		}
	}
}

// It cancels calls in each protocol version. The work always ends, whatever the version says
// about cancelling.
func TestMCP_callsEndWhenTheirClientDisconnects(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan error, 1)
	s := start(t, &fake{grep: func(ctx context.Context, _ catalog.Viewer, _ search.GrepRequest) (*search.GrepResponse, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}})
	for _, version := range versions {
		session := connect(t, s, memberKey, version, nil)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "grep", Arguments: map[string]any{"pattern": "a"}})
			failed <- err
		}()
		wait(t, version+": the call to begin", began)
		cancel()
		wait(t, version+": the work to end", ended)
		if err := wait(t, version+": the call to return", failed); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// Clients of two users call and disconnect at random points, and the connections are reused at
// once. Run it with -race.
func TestMCP_callsRunAsTheirOwnUserOnReusedConnections(t *testing.T) {
	t.Parallel()
	type call struct{ viewer, marker string }
	seen := make(chan call, 10_000)
	s := start(t, &fake{grep: func(ctx context.Context, v catalog.Viewer, req search.GrepRequest) (*search.GrepResponse, error) {
		if strings.HasSuffix(req.Pattern, "slow") { // its client has gone; search the rest
			<-ctx.Done()
		}
		seen <- call{v.Name, req.Pattern}
		return &search.GrepResponse{Coverage: coverage.Of(coverage.Parts, 1, 1)}, nil
	}})
	users := map[string]string{"alice": memberKey, "root": ownerKey}
	var wg sync.WaitGroup
	for user, key := range users {
		for worker := range 4 {
			wg.Go(func() {
				for i := range 25 {
					pattern := fmt.Sprintf("%s-%d-%d", user, worker, i)
					ctx, cancel := context.WithCancel(context.Background())
					if i%3 == 0 {
						pattern += "-slow"
						stop := time.AfterFunc(5*time.Millisecond, cancel)
						defer stop.Stop()
					}
					callGrep(ctx, s, key, pattern)
					cancel()
				}
			})
		}
	}
	wg.Wait()
	<-s.running.idle()
	close(seen)
	calls := 0
	for c := range seen {
		calls++
		if !strings.HasPrefix(c.marker, c.viewer+"-") {
			t.Errorf("a call of %s ran as %s", c.marker, c.viewer)
		}
	}
	if calls < 100 {
		t.Errorf("only %d calls were made", calls)
	}
}

// callGrep sends one call and drops the answer.
func callGrep(ctx context.Context, s *Server, key, pattern string) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"grep","arguments":{"pattern":"` + pattern + `"}}}`
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.Addr().String()+"/api/mcp", strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}

func TestMCP_refusesOtherMethodsAndTooLargeBodies(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	if resp, body := ask(t, s, "GET", "/api/mcp", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "OPTIONS, POST" {
		t.Errorf("GET: %d, Allow %q: %s", resp.StatusCode, resp.Header.Get("Allow"), body)
	}
	if resp, body := ask(t, s, "POST", "/api/mcp", strings.Repeat(" ", maxBody+1)); resp.StatusCode != 413 {
		t.Errorf("too large: %d %s", resp.StatusCode, body)
	}
}

// It sends a call with and without Accept, to the address with and without a trailing slash.
func TestMCP_acceptsCallsWithAndWithoutAnAcceptHeader(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	for _, path := range []string{"/api/mcp", "/api/mcp/"} {
		for accept, want := range map[string]string{
			"":                                     "application/json",
			"application/json":                     "application/json",
			"application/json; q=1, application/*": "application/json",
			"application/json, text/event-stream":  "text/event-stream",
			"*/*":                                  "text/event-stream",
		} {
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.Addr().String()+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_repos","arguments":{}}}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if accept != "" {
				req.Header.Set("Accept", accept)
			}
			resp, err := (&http.Client{Transport: withKey{memberKey}}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != want || !strings.Contains(string(body), `"content":[{`) || err != nil {
				t.Errorf("%s, Accept %q: %d %s %s %v", path, accept, resp.StatusCode, resp.Header.Get("Content-Type"), body, err)
			}
			if want == "application/json" && !json.Valid(body) {
				t.Errorf("%s, Accept %q: %s", path, accept, body)
			}
		}
	}
}
