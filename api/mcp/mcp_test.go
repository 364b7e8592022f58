package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/tool"
)

// serve serves a set of tools to a member until the test ends, and returns a session of the SDK's
// client.
func serve(t *testing.T, tools *tool.Set) *sdk.ClientSession {
	t.Helper()
	handler := mcp.New(tools, nil, func() string { return "http://shoal.example.com" }, "v1", slog.New(slog.DiscardHandler))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(mcp.WithViewer(r.Context(), catalog.Viewer{Role: catalog.RoleMember, Name: "ada"})))
	}))
	t.Cleanup(server.Close)

	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: server.URL, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// It adds a row to the table and uses it as a client: the server gets descriptions and checks
// from the row.
func TestTool_needsOnlyOneRow(t *testing.T) {
	t.Parallel()
	shout := tool.Tool{
		Name: "shout", Title: "Shout", About: "Says a word loudly.",
		Params: []tool.Param{
			{Name: "word", Kind: tool.String, Required: true, About: "what to say"},
			{Name: "times", Kind: tool.Integer, Min: 1, Max: 3, Exact: true, Default: 2, About: "how often"},
		},
		Run: func(_ context.Context, v catalog.Viewer, a *tool.Args) (string, error) {
			return v.Name + ": " + strings.Repeat(strings.ToUpper(a.Text("word")), a.Number("times")), nil
		},
	}
	session := serve(t, tool.New(tool.Parts{Log: slog.New(slog.DiscardHandler)}, shout))

	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	listed := list.Tools[len(list.Tools)-1]
	schema, err := json.Marshal(listed.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	if listed.Name != "shout" || !listed.Annotations.ReadOnlyHint || !strings.Contains(string(schema), `"required":["word"]`) {
		t.Errorf("listed as %+v with schema %s", listed, schema)
	}

	for _, call := range []struct {
		arguments map[string]any
		failed    bool
		want      string
	}{
		{map[string]any{"word": "hi"}, false, "ada: HIHI"},
		{map[string]any{"word": "hi", "times": 3}, false, "ada: HIHIHI"},
		{map[string]any{"word": "hi", "times": 4}, true, "times has to be between 1 and 3"},
		{nil, true, "word is required (what to say)"},
	} {
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "shout", Arguments: call.arguments})
		if err != nil {
			t.Fatal(err)
		}
		if text := r.Content[0].(*sdk.TextContent).Text; r.IsError != call.failed || !strings.Contains(text, call.want) {
			t.Errorf("%v: failed %t, %q; want %t, %q", call.arguments, r.IsError, text, call.failed, call.want)
		}
	}
}

// Calls of unknown tools get the names of similar ones.
func TestUnknownTool_suggestsNames(t *testing.T) {
	t.Parallel()
	session := serve(t, tool.New(tool.Parts{Log: slog.New(slog.DiscardHandler)}))
	for name, want := range map[string]string{
		"Grep":      "did you mean grep?",
		"readFile":  "did you mean read_file?",
		"run_shell": "The tools are search, grep, ",
	} {
		_, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name})
		if fault := (*jsonrpc.Error)(nil); !errors.As(err, &fault) || fault.Code != jsonrpc.CodeInvalidParams || !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// It sends invalid requests. Each answer is valid JSON-RPC.
func TestInvalidRequest_isAnsweredByAJSONRPCError(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	handler := mcp.New(tool.New(tool.Parts{Log: log}), nil, func() string { return "http://shoal.example.com" }, "v1", log)
	for _, tt := range []struct {
		body, version string
		status        int
		code          int64
		id            string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":`, "2025-06-18", 400, jsonrpc.CodeParseError, "null"},
		{`{"jsonrpc":"2.0","id":7,"method":"no/such"}`, "2025-06-18", 400, jsonrpc.CodeMethodNotFound, "7"},
		{`{"jsonrpc":"2.0","id":"a","method":"no/such"}`, "2024-11-05", 400, jsonrpc.CodeMethodNotFound, `"a"`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "2025-06-18", 400, jsonrpc.CodeInvalidRequest, "null"},
		{`{"jsonrpc":"2.0","id":{},"method":"no/such"}`, "2025-06-18", 400, jsonrpc.CodeInvalidRequest, "null"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "1999-01-01", 400, jsonrpc.CodeInvalidRequest, "1"},
		{``, "2025-06-18", 400, jsonrpc.CodeParseError, "null"},
	} {
		r := httptest.NewRequest("POST", "/api/mcp", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", tt.version)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var got struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   struct {
				Code    int64
				Message string
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tt.status || got.Version != "2.0" ||
			got.Error.Code != tt.code || got.Error.Message == "" || string(got.ID) != tt.id || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %v", tt.body, w.Code, w.Body, err)
		}
	}
}

// It limits the text with which every conversation begins.
func TestToolDescriptions_stayWithinTheirTokenBudget(t *testing.T) {
	t.Parallel()
	ask := (&ask.Asker{}).Tool()
	ask.Offered = nil // as with a model
	session := serve(t, tool.New(tool.Parts{Log: slog.New(slog.DiscardHandler)}, ask))
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(list.Tools)
	if err != nil {
		t.Fatal(err)
	}
	if tokens := len(b) / 4; len(list.Tools) > 17 || tokens > 4300 {
		t.Errorf("%d tools in %d tokens, want at most 17 in 4300", len(list.Tools), tokens)
	}
}
