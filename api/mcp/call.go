package mcp

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/node/tool"
)

// callTimeout bounds one call of a tool: clients give up after a minute.
const callTimeout = 55 * time.Second

// declaration is what tools/list tells of a tool: as little as says it, since
// all of it is in every conversation. All tools only read, and nothing but this service.
func declaration(t *tool.Tool) *mcp.Tool {
	return &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.About, InputSchema: t.Schema(),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)},
	}
}

// handler runs one tool of a set for one call.
func handler(tools *tool.Set, t *tool.Tool) mcp.ToolHandler {
	name, patience := t.Name, t.Patience
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		// A client that is told of progress waits longer.
		most := callTimeout
		if req.Params.GetProgressToken() != nil {
			most = max(most, patience)
		}
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()

		// Atomic, for a tool tells what it does from any goroutine.
		var doing atomic.Value
		doing.Store(name + " is at work")
		// Ended before the answer: a notice of progress behind it would be of no call.
		stop := progress(ctx, req, &doing)
		answer := tools.Call(tool.WithProgress(ctx, func(text string) { doing.Store(text) }), viewerOf(ctx), name, req.Params.Arguments)
		stop()

		return resultOfCall(answer), nil
	}
}

// resultOfCall is an answer of a tool as clients read it.
func resultOfCall(a tool.Answer) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: a.Failed, Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}
}

// onlyTools refuses calls of tools that are not there with the names of those
// that are: models call tools by the names they know from elsewhere.
func onlyTools(tools *tool.Set) mcp.Middleware {
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

// progress tells a client that asked for it, now and then, that a call is
// still at work; clients take a silent call for a lost one. The returned
// function ends it and waits for its end.
func progress(ctx context.Context, req *mcp.CallToolRequest, doing *atomic.Value) (stop func()) {
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
				// A notification that does not arrive is no reason to stop the call.
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: token, Progress: float64(n), Message: doing.Load().(string),
				})
			}
		}
	}()

	return func() { cancel(); <-done }
}
