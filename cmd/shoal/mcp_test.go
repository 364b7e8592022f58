package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/node/tool"
)

// tools has the two tools that these tests call.
type tools struct {
	symbols.Searcher
	browse.Reader
	began, ended chan struct{}
}

func (f *tools) Grep(ctx context.Context, v catalog.Viewer, req search.GrepRequest) (*search.GrepResponse, error) {
	if req.Pattern == "for ever" {
		f.began <- struct{}{}
		<-ctx.Done()
		f.ended <- struct{}{}
		return nil, ctx.Err()
	}
	return &search.GrepResponse{Matches: 1, Files: []search.GrepFile{{Repo: "a/b", Path: v.Name, Lines: []browse.Line{{Number: 7, Text: []byte(req.Pattern)}}}}}, nil
}

func (f *tools) ReadFile(_ context.Context, _ catalog.Viewer, req browse.ReadFileRequest) (*browse.ReadFileResponse, error) {
	return &browse.ReadFileResponse{Repo: req.Repo, Path: req.Path, First: 1, Total: 1, Lines: [][]byte{[]byte("of " + req.Path)}}, nil
}

// The SDK's client speaks through the bridge, in the newest protocol and in one with a handshake.
func TestMCPBridge_servesTheOfficialSDKsClient(t *testing.T) {
	t.Parallel()
	f := &tools{began: make(chan struct{}), ended: make(chan struct{})}
	log := slog.New(slog.DiscardHandler)
	table := tool.New(tool.Parts{Search: f, Browse: f, Log: log}, tool.Tool{Name: "ask", Background: &tool.Background{
		Look: func(_ context.Context, _ catalog.Viewer, id string) (*tool.Work, error) {
			return &tool.Work{ID: id, Status: tool.Working, Doing: "at work"}, nil
		},
	}})
	handler := mcp.New(table, f, func() string { return "http://shoal.example.com" }, "v1", log)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := catalog.Viewer{Role: catalog.RoleMember, Name: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}
		handler.ServeHTTP(w, r.WithContext(mcp.WithViewer(r.Context(), who)))
	}))
	t.Cleanup(server.Close)
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		session := bridged(t, server.URL, version)
		list, err := session.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != len(table.Tools()) {
			t.Fatalf("%s: %+v, %v", version, list, err)
		}
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "grep", Arguments: map[string]any{"pattern": "needle"}})
		if err != nil || r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "shoal_key\n7: needle\n") {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
		read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "shoal://a%2Fb/HEAD/gr%C3%B6%C3%9Fe.go"})
		if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "of größe.go\n" {
			t.Errorf("%s: %+v, %v", version, read, err)
		}
		assertTask(t, session, version)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "grep", Arguments: map[string]any{"pattern": "for ever"}})
			failed <- err
		}()
		<-f.began
		cancel()
		<-f.ended // the work behind the bridge ends
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a cancelled call: %v", version, err)
		}
	}
}

// The maximum of calls is running, and two more wait. The first running call and the last waiting
// one are cancelled by the next lines; then the other waiting call runs.
func TestMCPBridge_cancellationNeedsNoSlot(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, maxRunning+2), make(chan string, maxRunning+2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		began <- string(text)
		<-r.Context().Done()
		ended <- string(text)
	}))
	t.Cleanup(server.Close)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	in, agent := io.Pipe()
	b := &stdio{client: &client{base: server.URL, http: server.Client()}, out: io.Discard, running: map[string]context.CancelFunc{}}
	done := make(chan error, 1)
	go func() { done <- b.run(ctx, in) }()
	for id := range maxRunning + 2 {
		fmt.Fprintf(agent, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`+"\n", id)
	}
	for range maxRunning {
		<-began
	}
	go func() { // waits forever if the bridge stops reading
		for _, id := range []int{maxRunning + 1, 0} {
			fmt.Fprintf(agent, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
		}
	}()
	select {
	case text := <-ended:
		if !strings.Contains(text, `"id":0,`) {
			t.Errorf("%s was cancelled", text)
		}
	case <-time.After(10 * time.Second):
		t.Error("the call goes on")
	}
	select {
	case text := <-began:
		if !strings.Contains(text, fmt.Sprintf(`"id":%d,`, maxRunning)) {
			t.Errorf("%s was made", text)
		}
	case <-time.After(10 * time.Second):
		t.Error("the call that waited is not made")
	}
	stop()
	_ = agent.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// bridged opens a session through `shoal mcp` on pipes.
func bridged(t *testing.T, url, version string) *sdk.ClientSession {
	t.Helper()
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	cmd := newRoot(func(string) string { return "" })
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetArgs([]string{"mcp", "--url", url, "--key", "shoal_key"})
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(context.Background()) }()
	offers := &sdk.ClientCapabilities{}
	offers.AddExtension(mcp.TasksExtension, nil)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{Capabilities: offers})
	if err := sdk.AddSendingCustomMethod[*taskParams, *taskResult](client, "tasks/get"); err != nil {
		t.Fatal(err)
	}
	session, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: fromBridge, Writer: toBridge}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%s: %v", version, err)
	}
	t.Cleanup(func() {
		_ = toBridge.Close() // the agent disconnects: the bridge ends
		_ = fromBridge.Close()
		if err := <-done; err != nil {
			t.Errorf("%s: the bridge: %v", version, err)
		}
	})
	return session
}

type taskParams struct {
	sdk.ParamsBase
	ID string `json:"taskId"`
}

type taskResult struct {
	sdk.ResultBase
	Status  string `json:"status"`
	Message string `json:"statusMessage"`
}

// assertTask requests a task, as the newest protocol allows. The bridge puts its name into a
// header, as the server requires.
func assertTask(t *testing.T, session *sdk.ClientSession, version string) {
	t.Helper()
	if version < "2026-07-28" {
		return
	}
	r, err := sdk.CallCustomMethod[*taskParams, *taskResult](t.Context(), session, "tasks/get", &taskParams{ID: "abc"})
	if err != nil || r.Status != "working" || r.Message != "at work" {
		t.Errorf("a task: %+v, %v", r, err)
	}
}
