package api

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/cluster/catalog"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// fixtureTasks has the tasks of the suite's tools.
type fixtureTasks struct {
	mu    sync.Mutex
	tasks map[string]*fixtureTask
}

type fixtureTask struct {
	mcp.Task
	answers chan map[string]json.RawMessage
	halt    context.CancelFunc
}

// fixtureWork is the work of a task: it returns a result or a protocol error. ask asks the client
// and waits for all answers.
type fixtureWork func(ctx context.Context, ask func(sdk.InputRequestMap) map[string]json.RawMessage) (*sdk.CallToolResult, *jsonrpc.Error)

// Begin implements [mcp.Tasks].
func (f *fixtureTasks) Begin(_ context.Context, _ catalog.Viewer, p *sdk.CallToolParamsRaw) (*mcp.Task, *sdk.CallToolResult) {
	work := f.work(p)
	if work == nil {
		return nil, nil
	}

	ctx, halt := context.WithCancel(context.Background())
	now := time.Now().UTC()
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fixtureTask{
		Task: mcp.Task{ID: fmt.Sprintf("task-%d", len(f.tasks)+1), Status: mcp.TaskWorking, Created: now, Updated: now, Kept: time.Hour},
		halt: halt, answers: make(chan map[string]json.RawMessage, 1),
	}
	f.tasks[t.ID] = t

	go func() {
		defer halt()
		result, fault := work(ctx, func(asks sdk.InputRequestMap) map[string]json.RawMessage { return f.ask(ctx, t, asks) })
		f.mu.Lock()
		defer f.mu.Unlock()
		switch t.Asks = nil; {
		case ctx.Err() != nil:
			t.Status = mcp.TaskCancelled
		case fault != nil:
			t.Status, t.Err = mcp.TaskFailed, fault
		default:
			t.Status, t.Result = mcp.TaskCompleted, result
		}
	}()
	seed := t.Task
	return &seed, nil
}

// ask sends questions to the client. It returns when all are answered or the task has ended.
func (f *fixtureTasks) ask(ctx context.Context, t *fixtureTask, asks sdk.InputRequestMap) map[string]json.RawMessage {
	f.mu.Lock()
	t.Status, t.Asks = mcp.TaskInput, asks
	f.mu.Unlock()

	all := map[string]json.RawMessage{}
	for len(all) < len(asks) {
		select {
		case some := <-t.answers:
			for key, answer := range some {
				all[key] = answer
			}
		case <-ctx.Done():
			return nil
		}
	}
	f.mu.Lock()
	t.Status = mcp.TaskWorking
	f.mu.Unlock()
	return all
}

func (f *fixtureTasks) named(id string) (*fixtureTask, error) {
	if t := f.tasks[id]; t != nil {
		return t, nil
	}
	return nil, nodecall.Fail(nodecall.ErrNotFound, "There is no such task.")
}

// Get implements [mcp.Tasks].
func (f *fixtureTasks) Get(_ context.Context, _ catalog.Viewer, id string) (*mcp.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, err := f.named(id)
	if err != nil {
		return nil, err
	}
	now := t.Task
	return &now, nil
}

// Update implements [mcp.Tasks]. It drops answers to unknown questions.
func (f *fixtureTasks) Update(_ context.Context, _ catalog.Viewer, id string, responses map[string]json.RawMessage) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, err := f.named(id)
	if err != nil {
		return err
	}
	taken, left := map[string]json.RawMessage{}, sdk.InputRequestMap{}
	for key, asked := range t.Asks {
		if answer, ok := responses[key]; ok {
			taken[key] = answer
		} else {
			left[key] = asked
		}
	}
	if t.Asks = left; len(taken) > 0 {
		t.answers <- taken
	}
	return nil
}

// Cancel implements [mcp.Tasks].
func (f *fixtureTasks) Cancel(_ context.Context, _ catalog.Viewer, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, err := f.named(id)
	if err == nil {
		t.halt()
	}
	return err
}

// work returns the background work of a call; nil if it has none.
func (f *fixtureTasks) work(p *sdk.CallToolParamsRaw) fixtureWork {
	says := func(format string, args ...any) (*sdk.CallToolResult, *jsonrpc.Error) {
		r, _ := said(format, args...)
		return r, nil
	}
	type asking = func(sdk.InputRequestMap) map[string]json.RawMessage
	switch p.Name {
	case "slow_compute":
		return func(ctx context.Context, _ asking) (*sdk.CallToolResult, *jsonrpc.Error) {
			computeSlowly(ctx, p)
			return says("computed")
		}
	case "failing_job":
		return func(context.Context, asking) (*sdk.CallToolResult, *jsonrpc.Error) {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "this job fails on purpose"}}}, nil
		}
	case "protocol_error_job":
		return func(context.Context, asking) (*sdk.CallToolResult, *jsonrpc.Error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "this job breaks on purpose"}
		}
	case "confirm_delete":
		return func(_ context.Context, ask asking) (*sdk.CallToolResult, *jsonrpc.Error) {
			return says("answered: %s", ask(sdk.InputRequestMap{"confirm": askConfirm})["confirm"])
		}
	case "multi_input":
		return func(_ context.Context, ask asking) (*sdk.CallToolResult, *jsonrpc.Error) {
			return says("%d answers", len(ask(sdk.InputRequestMap{"name": askName, "confirm": askConfirm})))
		}
	case "test_tool_with_task":
		// The call itself asks what it needs first.
		name, _ := accepted(p.InputResponses, "user_name")["name"].(string)
		if name == "" {
			return nil
		}
		return func(context.Context, asking) (*sdk.CallToolResult, *jsonrpc.Error) { return says("Hello, %s!", name) }
	}
	return nil
}

// computeSlowly waits for the requested time, or until ctx ends.
func computeSlowly(ctx context.Context, p *sdk.CallToolParamsRaw) {
	var args struct{ Seconds float64 }
	_ = json.Unmarshal(p.Arguments, &args) // the suite's own call
	timer := time.NewTimer(time.Duration(args.Seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// taskTools adds the suite's tools with tasks, for clients without tasks.
func taskTools(s *sdk.Server) {
	fixtureTool(s, "greet", func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct{ Name string }
		if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
			return nil, err
		}
		return said("Hello, %s!", args.Name)
	})
	fixtureTool(s, "slow_compute", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		computeSlowly(ctx, req.Params)
		return said("computed")
	})
	for _, name := range []string{"protocol_error_job", "confirm_delete", "multi_input"} {
		fixtureTool(s, name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return said("nothing was asked")
		})
	}
	fixtureTool(s, "failing_job", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &jsonrpc.Error{
			Code: sdk.CodeMissingRequiredClientCapabilities, Message: "this tool needs a client with tasks",
			Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + mcp.TasksExtension + `":{}}}}`),
		}
	})
	fixtureTool(s, "test_tool_with_task", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return asking("asked", sdk.InputRequestMap{"user_name": askName})
	})
}
