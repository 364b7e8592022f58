package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/tool"
)

// kitchen is a tool whose work takes as long as the test wants.
type kitchen struct {
	mu   sync.Mutex
	work map[string]*tool.Work // by "viewer id"
}

func (k *kitchen) row() tool.Tool {
	return tool.Tool{
		Name: "cook", Title: "Cook", About: "Cooks a dish.",
		Params: []tool.Param{{Name: "dish", Kind: tool.String, Required: true}},
		Run:    func(context.Context, catalog.Viewer, *tool.Args) (string, error) { return "served at once", nil },
		Background: &tool.Background{
			Begin: func(_ context.Context, v catalog.Viewer, a *tool.Args) (string, error) {
				if a.Text("dish") == "stone" {
					return "", call.Fail(call.ErrUnable, "Stones are not cooked.")
				}
				k.mu.Lock()
				defer k.mu.Unlock()
				at := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
				k.work[v.Name+" "+a.Text("dish")] = &tool.Work{ID: a.Text("dish"), Status: tool.Working, Doing: "boiling", Began: at, Changed: at, Kept: time.Hour}
				return a.Text("dish"), nil
			},
			Look: k.look,
			Stop: func(ctx context.Context, v catalog.Viewer, id string) error {
				w, err := k.look(ctx, v, id)
				if err == nil && w.Status == tool.Working {
					w.Status = tool.Stopped
				}
				return err
			},
		},
	}
}

func (k *kitchen) look(_ context.Context, v catalog.Viewer, id string) (*tool.Work, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.work[v.Name+" "+id]; w != nil {
		return w, nil
	}
	return nil, call.Fail(call.ErrNotFound, "no such dish")
}

// taskServer serves the kitchen. The header Who has the caller.
func taskServer(t *testing.T) (*kitchen, string) {
	t.Helper()
	k := &kitchen{work: map[string]*tool.Work{}}
	log := slog.New(slog.DiscardHandler)
	handler := mcp.New(tool.New(tool.Parts{Log: log}, k.row()), nil, func() string { return "http://shoal.example.com" }, "v1", log)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := catalog.Viewer{Role: catalog.RoleMember, Name: r.Header.Get("Who")}
		handler.ServeHTTP(w, r.WithContext(mcp.WithViewer(r.Context(), who)))
	}))
	t.Cleanup(server.Close)
	return k, server.URL
}

// taskCall is a request of the newest revision. name is the value of Mcp-Name.
type taskCall struct {
	who, method, params, name string
	undeclared                bool
}

// taskAnswer is the answer; Text is the text of a tool's result.
type taskAnswer struct {
	status int
	Result struct {
		ResultType, TaskID, Status, StatusMessage, CreatedAt, LastUpdatedAt string

		TTLMs, PollIntervalMs int64
		Content               []struct{ Text string }
		Capabilities          struct{ Extensions map[string]any }
		Result                *struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	Error *jsonrpc.Error
}

func (c taskCall) do(t *testing.T, url string) (out taskAnswer) {
	t.Helper()
	declared := `{"extensions":{"` + mcp.TasksExtension + `":{}}}`
	if c.undeclared {
		declared = `{}`
	}
	params := strings.TrimSuffix(c.params, "}")
	if params != "{" {
		params += ","
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + declared + `}}}`
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": c.method, "Mcp-Name": c.name, "Who": c.who,
	} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	raw := string(b)
	if _, data, ok := strings.Cut(raw, "data: "); ok {
		raw, _, _ = strings.Cut(data, "\n")
	}
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		t.Fatalf("%s: %v: %s", c.method, err, raw)
	}
	out.status = resp.StatusCode
	return out
}

// It goes through the life of a task.
func TestTask_canBeBegunReadAndCancelled(t *testing.T) {
	t.Parallel()
	k, url := taskServer(t)
	cook := taskCall{who: "ada", method: "tools/call", params: `{"name":"cook","arguments":{"dish":"soup"}}`, name: "cook"}
	get := taskCall{who: "ada", method: "tasks/get", params: `{"taskId":"soup"}`, name: "soup"}

	// A client without task support waits as before.
	plain := cook
	plain.undeclared = true
	if a := plain.do(t, url); a.Result.TaskID != "" || a.Result.ResultType != "complete" || a.Result.Content[0].Text != "served at once" {
		t.Errorf("without tasks: %+v", a)
	}

	begun := cook.do(t, url)
	if r := begun.Result; r.ResultType != "task" || r.TaskID != "soup" || r.Status != "working" || r.CreatedAt != "2026-11-02T10:00:00Z" || r.TTLMs != 3_600_000 || r.PollIntervalMs <= 0 || r.Result != nil {
		t.Fatalf("begun: %+v", begun)
	}
	if a := get.do(t, url); a.Result.ResultType != "complete" || a.Result.Status != "working" || a.Result.StatusMessage != "boiling" || a.Result.Result != nil {
		t.Errorf("under way: %+v", a)
	}
	update := taskCall{who: "ada", method: "tasks/update", params: `{"taskId":"soup","inputResponses":{"x":{"y":1}}}`, name: "soup"}
	if a := update.do(t, url); a.Error != nil || a.Result.ResultType != "complete" || a.Result.TaskID != "" {
		t.Errorf("an answer that nobody asked for: %+v", a)
	}

	k.work["ada soup"].Status, k.work["ada soup"].Answer = tool.Done, tool.Answer{Text: "too salty", Failed: true}
	if a := get.do(t, url); a.Result.Status != "completed" || a.Result.Result == nil || !a.Result.Result.IsError || a.Result.Result.Content[0].Text != "too salty" {
		t.Errorf("done: %+v", a)
	}
	cancel := taskCall{who: "ada", method: "tasks/cancel", params: `{"taskId":"soup"}`, name: "soup"}
	if a := cancel.do(t, url); a.Error != nil || a.Result.ResultType != "complete" || a.Result.Status != "" {
		t.Errorf("the end of what has ended: %+v", a)
	}
	if a := get.do(t, url); a.Result.Status != "completed" {
		t.Errorf("after that: %+v", a)
	}

	// Another task is cancelled before it is done.
	cook.do(t, url)
	cancel.do(t, url)
	if a := get.do(t, url); a.Result.Status != "cancelled" || a.Result.Result != nil {
		t.Errorf("cancelled: %+v", a)
	}
}

// It asks for tasks that do not exist, that belong to others, or in a wrong way.
func TestTask_refusesUnknownForeignAndInvalidIDs(t *testing.T) {
	t.Parallel()
	_, url := taskServer(t)
	taskCall{who: "ada", method: "tools/call", params: `{"name":"cook","arguments":{"dish":"soup"}}`, name: "cook"}.do(t, url)
	for what, tt := range map[string]struct {
		call   taskCall
		status int
		code   int64
	}{
		"get of nothing":    {taskCall{who: "ada", method: "tasks/get", params: `{"taskId":"cake"}`, name: "cake"}, 400, -32602},
		"update of nothing": {taskCall{who: "ada", method: "tasks/update", params: `{"taskId":"cake"}`, name: "cake"}, 400, -32602},
		"cancel of nothing": {taskCall{who: "ada", method: "tasks/cancel", params: `{"taskId":"cake"}`, name: "cake"}, 400, -32602},
		"get of another's":  {taskCall{who: "bob", method: "tasks/get", params: `{"taskId":"soup"}`, name: "soup"}, 400, -32602},
		"end of another's":  {taskCall{who: "bob", method: "tasks/cancel", params: `{"taskId":"soup"}`, name: "soup"}, 400, -32602},
		"no id":             {taskCall{who: "ada", method: "tasks/get", params: `{}`}, 400, -32602},
		"another name":      {taskCall{who: "ada", method: "tasks/get", params: `{"taskId":"soup"}`, name: "cake"}, 400, -32020},
		"no name":           {taskCall{who: "ada", method: "tasks/cancel", params: `{"taskId":"soup"}`}, 400, -32020},
		"get undeclared":    {taskCall{who: "ada", method: "tasks/get", params: `{"taskId":"soup"}`, name: "soup", undeclared: true}, 400, -32021},
		"update undeclared": {taskCall{who: "ada", method: "tasks/update", params: `{"taskId":"soup"}`, name: "soup", undeclared: true}, 400, -32021},
		"cancel undeclared": {taskCall{who: "ada", method: "tasks/cancel", params: `{"taskId":"soup"}`, name: "soup", undeclared: true}, 400, -32021},
		"told, undeclared":  {taskCall{who: "ada", method: "subscriptions/listen", params: `{"notifications":{"taskIds":["soup"]}}`, undeclared: true}, 400, -32021},
		"tasks/result":      {taskCall{who: "ada", method: "tasks/result", params: `{"taskId":"soup"}`, name: "soup"}, 404, -32601},
		"tasks/list":        {taskCall{who: "ada", method: "tasks/list", params: `{}`}, 404, -32601},
	} {
		a := tt.call.do(t, url)
		if a.Error == nil || a.Error.Code != tt.code || a.status != tt.status || a.Error.Message == "" {
			t.Errorf("%s: %d %+v, want %d with %d", what, a.status, a.Error, tt.status, tt.code)
		}
		if needs := a.Error != nil && strings.Contains(string(a.Error.Data), mcp.TasksExtension); needs != (tt.code == -32021) {
			t.Errorf("%s: data %s", what, a.Error.Data)
		}
	}

	// An error of the call itself is its answer, as without tasks.
	for arguments, want := range map[string]string{`{}`: "dish is required.", `{"dish":"stone"}`: "Stones are not cooked."} {
		a := taskCall{who: "ada", method: "tools/call", params: `{"name":"cook","arguments":` + arguments + `}`, name: "cook"}.do(t, url)
		if a.Result.ResultType != "complete" || !strings.Contains(a.Result.Content[0].Text, want) {
			t.Errorf("%s: %+v", arguments, a)
		}
	}
}

// The extension is declared if and only if a tool has tasks.
func TestTaskExtension_isDeclaredOnlyIfAToolHasTasks(t *testing.T) {
	t.Parallel()
	_, url := taskServer(t)
	discover := taskCall{method: "server/discover", params: `{}`}
	if a := discover.do(t, url); a.Result.Capabilities.Extensions[mcp.TasksExtension] == nil {
		t.Errorf("with a tool: %+v", a)
	}
	log := slog.New(slog.DiscardHandler)
	none := httptest.NewServer(mcp.New(tool.New(tool.Parts{Log: log}), nil, func() string { return "http://shoal.example.com" }, "v1", log))
	t.Cleanup(none.Close)
	if a := discover.do(t, none.URL); a.Error != nil || a.Result.Capabilities.Extensions[mcp.TasksExtension] != nil {
		t.Errorf("without one: %+v", a)
	}
}
