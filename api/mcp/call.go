package mcp

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/node/tool"
)

// callTimeout limits one tool call: clients give up after a minute.
const callTimeout = 55 * time.Second

// declaration returns the description of a tool for tools/list. It is short, because every
// conversation contains it. All tools only read, and only from this service.
func declaration(t *tool.Tool) *mcp.Tool {
	return &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.About, InputSchema: t.Schema(),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)},
	}
}

// handler makes the protocol's handler for calls of one tool.
func handler(tools *tool.Set, t *tool.Tool) mcp.ToolHandler {
	name, longTimeout := t.Name, t.Patience
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		// A client that gets progress messages waits longer.
		timeout := callTimeout
		if req.Params.GetProgressToken() != nil {
			timeout = max(timeout, longTimeout)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()

		// doing is atomic, because a tool reports its progress from any goroutine.
		var doing atomic.Value
		doing.Store(name + " is at work")
		// Stop the progress messages before the answer: a later one would belong to no call.
		stop := sendProgress(ctx, req, &doing)
		answer := tools.Call(tool.WithProgress(ctx, func(text string) { doing.Store(text) }), viewerOf(ctx), name, req.Params.Arguments)
		stop()

		return resultOfCall(answer), nil
	}
}

// resultOfCall converts a tool's answer for the protocol.
func resultOfCall(a tool.Answer) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: a.Failed, Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}
}

// suggestTools answers a call of an unknown tool with the names of the existing tools, because
// models call tools by names they know from elsewhere.
func suggestTools(tools *tool.Set) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok {
				if unknown := tools.Unknown(call.Params.Name); unknown != "" {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: unknown}
				}
			}
			return next(ctx, method, req)
		}
	}
}

// sendProgress sends a progress message every two seconds if the client asked for them, because
// clients take a silent call for lost. After stop has returned, it sends nothing.
func sendProgress(ctx context.Context, req *mcp.CallToolRequest, doing *atomic.Value) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return func() {}
	}

	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})

	go func() {
		defer close(done)

		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()

		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// A lost message is no reason to stop the call.
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: token, Progress: float64(n), Message: doing.Load().(string),
				})
			}
		}
	}()

	return func() { cancel(); <-done }
}
