package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/tool"
)

// TasksExtension is the protocol's extension (revision 2026-07-28) by which a server may answer a call
// with the id of a task: work that continues. The SDK does not know the extension, so this package adds
// its methods, and answers with its results in place of the SDK's.
//
//	tools/call   -> {"resultType": "task", "taskId": ...}       where the client declares the extension
//
// tasks/get    -> the state of a task, at the end with its result; any node answers
// tasks/update -> sends input that the task has requested
// tasks/cancel -> asks a task to end
const TasksExtension = "io.modelcontextprotocol/tasks"

// pollPause is how long clients should wait between two requests for a task.
const pollPause = 2 * time.Second

// TaskStatus is the state of a task.
type TaskStatus string

// States of tasks.
const (
	TaskWorking   TaskStatus = "working"
	TaskInput     TaskStatus = "input_required"
	TaskCompleted TaskStatus = "completed" // also if the result reports an error of the tool
	TaskCancelled TaskStatus = "cancelled"
	TaskFailed    TaskStatus = "failed" // a protocol error instead of a result
)

// Task is work that continues after the call that began it was answered.
type Task struct {
	ID      string        `json:"taskId"`
	Status  TaskStatus    `json:"status"`
	Message string        `json:"statusMessage,omitempty"` // for people
	Created time.Time     `json:"createdAt"`               // in UTC, like Updated
	Updated time.Time     `json:"lastUpdatedAt"`
	Kept    time.Duration `json:"-"` // how long after Created the task can be read; 0 means forever

	Result *mcp.CallToolResult `json:"result,omitempty"`        // if completed
	Err    *jsonrpc.Error      `json:"error,omitempty"`         // if failed
	Asks   mcp.InputRequestMap `json:"inputRequests,omitempty"` // if input is required
}

// Tasks are the tasks of a server. Implementations must be safe for concurrent use, and return
// [call.ErrNotFound] if the viewer has no task with the id.
type Tasks interface {
	// Begin starts the work of a call. Every node knows the task when Begin returns. If both
	// results are nil, the call must be answered without a task.
	Begin(ctx context.Context, v catalog.Viewer, p *mcp.CallToolParamsRaw) (*Task, *mcp.CallToolResult)

	Get(ctx context.Context, v catalog.Viewer, id string) (*Task, error)
	Update(ctx context.Context, v catalog.Viewer, id string, responses map[string]json.RawMessage) error
	Cancel(ctx context.Context, v catalog.Viewer, id string) error
}

// addTasks adds tasks for clients that declare the extension.
func addTasks(s *mcp.Server, tasks Tasks) {
	get := func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*taskResult, error) {
		t, err := tasks.Get(ctx, viewerOf(ctx), p.ID)
		if err != nil {
			return nil, taskFault(err)
		}
		return resultOf(t, "complete"), nil
	}

	update := func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*taskAck, error) {
		if err := tasks.Update(ctx, viewerOf(ctx), p.ID, p.Responses); err != nil {
			return nil, taskFault(err)
		}
		return &taskAck{ResultType: "complete"}, nil
	}

	cancel := func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*taskAck, error) {
		if err := tasks.Cancel(ctx, viewerOf(ctx), p.ID); err != nil {
			return nil, taskFault(err)
		}
		return &taskAck{ResultType: "complete"}, nil
	}

	s.AddReceivingMiddleware(answerWithTasks(tasks))

	// Adding a method fails only for names of the SDK's own methods.
	_ = mcp.AddReceivingCustomMethod(s, "tasks/get", get)
	_ = mcp.AddReceivingCustomMethod(s, "tasks/update", update)
	_ = mcp.AddReceivingCustomMethod(s, "tasks/cancel", cancel)
}

// answerWithTasks answers calls with tasks if both the client and the tool support them. It refuses a
// request about a task that does not declare the extension itself.
func answerWithTasks(tasks Tasks) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch req := req.(type) {
			case *mcp.CallToolRequest:
				// A client that does not declare the extension cannot read a task.
				if !declaresTasks(req.ClientCapabilities()) {
					break
				}

				// If t and refused are nil, the tool does not support tasks: call it as usual.
				t, refused := tasks.Begin(ctx, viewerOf(ctx), req.Params)
				switch {
				case t != nil:
					return resultOf(t.withoutResults(), "task"), nil
				case refused != nil:
					return &callRefused{ResultType: "complete", Content: refused.Content, IsError: refused.IsError}, nil
				}

			case *mcp.ServerRequest[*taskParams]:
				// Only the three methods of tasks have this type of request.
				if !declaresTasks(req.ClientCapabilities()) {
					return nil, needTasks
				}
				if req.Params == nil || req.Params.ID == "" {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "taskId is required"}
				}
			}
			return next(ctx, method, req)
		}
	}
}

func declaresTasks(c *mcp.ClientCapabilities) bool {
	if c == nil {
		return false
	}
	_, ok := c.Extensions[TasksExtension]
	return ok
}

// needTasks is the error for a client that did not declare the extension.
var needTasks = &jsonrpc.Error{
	Code:    mcp.CodeMissingRequiredClientCapabilities,
	Message: "the client has to declare the extension " + TasksExtension + " with each request",
	Data:    json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + TasksExtension + `":{}}}}`),
}

// taskParams are the parameters of all task methods.
type taskParams struct {
	mcp.ParamsBase
	ID        string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses"`
}

// callRefused is the answer to a tools/call whose task could not begin. The SDK sets resultType for its
// own results only, so this type has it too.
type callRefused struct {
	mcp.ResultBase
	ResultType string        `json:"resultType"`
	Content    []mcp.Content `json:"content"`
	IsError    bool          `json:"isError"`
}

// taskAck confirms a request.
type taskAck struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

// taskResult is a task in the protocol's format.
type taskResult struct {
	mcp.ResultBase
	*Task
	ResultType string `json:"resultType"`
	KeptMs     *int64 `json:"ttlMs"` // null means forever
	PollMs     int64  `json:"pollIntervalMs"`
}

// resultOf returns a task in the protocol's format. resultType is "task" in the answer to the call
// that began it, and "complete" in the answer to a request about it.
func resultOf(t *Task, resultType string) *taskResult {
	r := &taskResult{Task: t, ResultType: resultType, PollMs: pollPause.Milliseconds()}

	// A task that is kept forever has null: 0 would mean that it is gone.
	if t.Kept > 0 {
		ms := t.Kept.Milliseconds()
		r.KeptMs = &ms
	}
	return r
}

// withoutResults returns a copy of the task without results and requests for input, for the answer to
// the call that began it.
func (t *Task) withoutResults() *Task {
	c := *t
	c.Result, c.Err, c.Asks = nil, nil, nil
	return &c
}

// taskFault converts an error of a task's method to one of the protocol. It hides errors that are not
// meant for people.
func taskFault(err error) error {
	var known *call.Error
	switch {
	case errors.Is(err, call.ErrNotFound):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	case errors.As(err, &known):
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: known.Message}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The task cannot be asked for now: try again in a moment."}
}

// checkTaskRequest returns an error for two requests about tasks that the SDK does not refuse: one whose
// header Mcp-Name, by which proxies route, differs from the body, and a subscription to tasks by a
// client without the extension. For all others it returns nil.
func checkTaskRequest(h http.Header, body []byte) *jsonrpc.Error {
	method := h.Get("Mcp-Method")
	if !strings.HasPrefix(method, "tasks/") && method != "subscriptions/listen" {
		return nil
	}

	var asked struct {
		Method string `json:"method"`
		Params struct {
			ID            string `json:"taskId"`
			Notifications struct {
				IDs []string `json:"taskIds"`
			} `json:"notifications"`
			Meta struct {
				Client struct {
					Extensions map[string]any `json:"extensions"`
				} `json:"io.modelcontextprotocol/clientCapabilities"`
			} `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &asked) != nil || asked.Method != method {
		return nil // the SDK refuses the request
	}

	switch method {
	case "tasks/get", "tasks/update", "tasks/cancel":
		// A proxy must not route the request by another task than the body names.
		if name := h.Get("Mcp-Name"); name != asked.Params.ID {
			return &jsonrpc.Error{
				Code:    mcp.CodeHeaderMismatch,
				Message: fmt.Sprintf("header mismatch: Mcp-Name is %q, and taskId %q", name, asked.Params.ID),
			}
		}
	case "subscriptions/listen":
		if _, ok := asked.Params.Meta.Client.Extensions[TasksExtension]; !ok && len(asked.Params.Notifications.IDs) > 0 {
			return needTasks
		}
	}
	return nil
}

// background implements Tasks for the tools of this service.
type background struct{ tools *tool.Set }

// Begin implements [Tasks].
func (b background) Begin(ctx context.Context, v catalog.Viewer, p *mcp.CallToolParamsRaw) (*Task, *mcp.CallToolResult) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	w, refused := b.tools.Offered().Begin(ctx, v, p.Name, p.Arguments)
	switch {
	case w != nil:
		return taskOf(w), nil
	case refused != nil:
		return nil, resultOfCall(*refused)
	}
	return nil, nil
}

// Get implements [Tasks].
func (b background) Get(ctx context.Context, v catalog.Viewer, id string) (*Task, error) {
	w, err := b.tools.Look(ctx, v, id)
	if err != nil {
		return nil, err
	}
	return taskOf(w), nil
}

// Update implements [Tasks]. Tools never ask for input, so it only checks that the task exists.
func (b background) Update(ctx context.Context, v catalog.Viewer, id string, _ map[string]json.RawMessage) error {
	_, err := b.tools.Look(ctx, v, id)
	return err
}

// Cancel implements [Tasks].
func (b background) Cancel(ctx context.Context, v catalog.Viewer, id string) error {
	return b.tools.Stop(ctx, v, id)
}

// taskOf converts the state of a tool's work to a task of the protocol.
func taskOf(w *tool.Work) *Task {
	t := &Task{ID: w.ID, Status: TaskWorking, Message: w.Doing, Created: w.Began.UTC(), Updated: w.Changed.UTC(), Kept: w.Kept}
	switch w.Status {
	case tool.Done:
		t.Status, t.Result = TaskCompleted, resultOfCall(w.Answer)
	case tool.Stopped:
		t.Status = TaskCancelled
	}
	return t
}
