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

// TasksExtension is the protocol's extension by which a call may be answered
// with the id of work that goes on, of revision 2026-07-28. The SDK does not know
// it: its methods are added here, and its result takes the place of the SDK's.
//
//	tools/call   -> {"resultType": "task", "taskId": ...}       where the client declares the extension
//	tasks/get    -> how far it is, at the end with the result   any node answers
//	tasks/update -> answers to what the task has asked
//	tasks/cancel -> asks for its end
const TasksExtension = "io.modelcontextprotocol/tasks"

// pollPause is how long a client is told to wait between two looks at a task.
const pollPause = 2 * time.Second

// TaskStatus is how far a task is.
type TaskStatus string

// The states of tasks.
const (
	TaskWorking   TaskStatus = "working"
	TaskInput     TaskStatus = "input_required"
	TaskCompleted TaskStatus = "completed" // also with a result that says what went wrong
	TaskCancelled TaskStatus = "cancelled"
	TaskFailed    TaskStatus = "failed" // there is no result, but an error of the protocol
)

// Task is work that goes on when the call that began it is answered.
type Task struct {
	ID      string        `json:"taskId"`
	Status  TaskStatus    `json:"status"`
	Message string        `json:"statusMessage,omitempty"` // for people
	Created time.Time     `json:"createdAt"`               // in UTC, as Updated
	Updated time.Time     `json:"lastUpdatedAt"`
	Kept    time.Duration `json:"-"` // for how long after Created it can be asked for; 0 for ever

	Result *mcp.CallToolResult `json:"result,omitempty"`        // of a completed one
	Err    *jsonrpc.Error      `json:"error,omitempty"`         // of a failed one
	Asks   mcp.InputRequestMap `json:"inputRequests,omitempty"` // of one that wants input
}

// Tasks are the tasks of a server. It takes calls from many goroutines at once,
// and fails with [call.ErrNotFound] for an id that is of no task of the viewer.
type Tasks interface {
	// Begin begins the work of a call, so that every node knows it when Begin
	// returns. Both results are nil where this call is to be answered as usual.
	Begin(ctx context.Context, v catalog.Viewer, p *mcp.CallToolParamsRaw) (*Task, *mcp.CallToolResult)

	Get(ctx context.Context, v catalog.Viewer, id string) (*Task, error)
	Update(ctx context.Context, v catalog.Viewer, id string, responses map[string]json.RawMessage) error
	Cancel(ctx context.Context, v catalog.Viewer, id string) error
}

// addTasks lets clients of a server that declare the extension have tasks.
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

	// It fails for the names of the SDK's own methods only.
	_ = mcp.AddReceivingCustomMethod(s, "tasks/get", get)
	_ = mcp.AddReceivingCustomMethod(s, "tasks/update", update)
	_ = mcp.AddReceivingCustomMethod(s, "tasks/cancel", cancel)
}

// answerWithTasks answers calls with tasks where the client and the tool have
// them, and lets nobody at a task who has not declared the extension: what it has
// declared in an earlier request does not count.
func answerWithTasks(tasks Tasks) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch req := req.(type) {
			case *mcp.CallToolRequest:
				// Without it a client would take the id of a task for a broken answer.
				if !declaresTasks(req.ClientCapabilities()) {
					break
				}

				// With neither, the tool has no work that goes on: the call goes its usual way.
				t, refused := tasks.Begin(ctx, viewerOf(ctx), req.Params)
				switch {
				case t != nil:
					return resultOf(t.seed(), "task"), nil
				case refused != nil:
					return &callRefused{ResultType: "complete", Content: refused.Content, IsError: refused.IsError}, nil
				}

			case *mcp.ServerRequest[*taskParams]:
				// The middleware is asked for every method; these requests are of the three above alone.
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

// needTasks refuses what only a client with tasks may ask.
var needTasks = &jsonrpc.Error{
	Code:    mcp.CodeMissingRequiredClientCapabilities,
	Message: "the client has to declare the extension " + TasksExtension + " with each request",
	Data:    json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + TasksExtension + `":{}}}}`),
}

// taskParams are those of all methods of tasks.
type taskParams struct {
	mcp.ParamsBase
	ID        string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses"`
}

// callRefused answers a tools/call that started no task. The SDK sets resultType only for
// calls that it made itself, so we set it.
type callRefused struct {
	mcp.ResultBase
	ResultType string        `json:"resultType"`
	Content    []mcp.Content `json:"content"`
	IsError    bool          `json:"isError"`
}

// taskAck says that a request has been taken.
type taskAck struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

// taskResult is a task as clients read it.
type taskResult struct {
	mcp.ResultBase
	*Task
	ResultType string `json:"resultType"`
	KeptMs     *int64 `json:"ttlMs"` // null for ever
	PollMs     int64  `json:"pollIntervalMs"`
}

func resultOf(t *Task, kind string) *taskResult {
	r := &taskResult{Task: t, ResultType: kind, PollMs: pollPause.Milliseconds()}

	// Null says for ever; 0 would say that it has gone already.
	if t.Kept > 0 {
		ms := t.Kept.Milliseconds()
		r.KeptMs = &ms
	}
	return r
}

// seed is a task as the call that began it is answered: what comes of it is for
// tasks/get to say.
func (t *Task) seed() *Task {
	s := *t
	s.Result, s.Err, s.Asks = nil, nil, nil
	return &s
}

// taskFault is the error of the protocol for a failure.
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

// refusedTask says why a request about tasks is not to be served, from what the
// SDK does not look at: the name beside the message, by which proxies route, and
// tasks that somebody wants to be told of who has none. Other requests are not
// read.
func refusedTask(h http.Header, body []byte) *jsonrpc.Error {
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
		return nil // the SDK says what is wrong with it
	}

	switch method {
	case "tasks/get", "tasks/update", "tasks/cancel":
		// A proxy that routes by the header would send it elsewhere than what the body asks for.
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

// background is the tasks of the product: the work of tools.
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

// Update implements [Tasks]. No work of a tool asks for anything, so that there is
// nothing to be answered.
func (b background) Update(ctx context.Context, v catalog.Viewer, id string, _ map[string]json.RawMessage) error {
	_, err := b.tools.Look(ctx, v, id)
	return err
}

// Cancel implements [Tasks].
func (b background) Cancel(ctx context.Context, v catalog.Viewer, id string) error {
	return b.tools.Stop(ctx, v, id)
}

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
