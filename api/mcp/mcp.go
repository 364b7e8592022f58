// Package mcp serves the tools of package node/tool to agents by the Model Context Protocol.
//
//	POST /api/mcp -> official go-sdk, stateless -> a row of node/tool -> text
//
// Stateless means that each request stands alone: any node can answer it, and nothing of one
// user is left for the next. The caller is a value of the request's context ([WithViewer]).
//
// A result has text and no structured content, because clients that get both show the model
// only one of them, or both.
package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/tool"
)

// maxBody is the largest request, in bytes.
const maxBody = 1 << 20

// instructions describe the workflow to every client that connects.
const instructions = `Searches and reads the source code of many git repositories at once.

Do not know a name? search. Know a name? find_symbol_definitions, find_symbol_references, find_implementations. Know a string? grep. Know a file's name? glob. Big file? outline before read_file. Who uses a library? dependencies. Who wrote it, since when? blame, list_commits with changes or lines; get_diff shows a change. list_repos finds full repository names.

- Repositories have full names such as github.com/acme/app; an unambiguous ending (acme/app) is enough.
- ref is any branch, tag or commit (HEAD~3 too); without it, the default branch.
- path is a directory or file from the root; include, exclude and pattern are globs: *.go at any depth, src/**/*.go from the root, or from path.
- The first line of a result says what was found; the last says "Complete." or "End of file.", or what was left out or not searched and the call that goes on: "the same and {…}" is your call with these arguments. maxTokens bounds a result.
- To give people a link to lines of a file: %s/browse/REPO@REF/-/blob/PATH#L10 (without @REF, the default branch).`

// contextKey is the type of the keys of this package's context values.
type contextKey int

const (
	viewerKey  contextKey = iota
	requestKey            // the context of the HTTP request, which ends when the client leaves
)

// WithViewer returns a context for serving one HTTP request of v.
func WithViewer(ctx context.Context, v catalog.Viewer) context.Context {
	ctx = context.WithValue(ctx, viewerKey, v)
	return context.WithValue(ctx, requestKey, ctx)
}

// viewerOf returns the viewer of a request; without one the zero Viewer, which sees nothing.
func viewerOf(ctx context.Context) catalog.Viewer {
	v, _ := ctx.Value(viewerKey).(catalog.Viewer)
	return v
}

// New makes the handler of POST /api/mcp for a set of tools. base returns the URL of the pages
// for people. The context of each request must come from [WithViewer].
//
// The handler neither lists nor accepts a tool that cannot be used now. So it keeps one server
// for each set of usable tools; there are two.
func New(tools *tool.Set, f browse.Reader, base func() string, version string, log *slog.Logger) http.Handler {
	tasks := background{tools}

	// Make servers when they are needed, because models and the base URL may change.
	var mu sync.Mutex
	var serversURL string // base URL in the instructions of servers
	servers := map[int]*mcp.Server{}

	return newHandler(log, func(*http.Request) *mcp.Server {
		offered, url := tools.Offered(), base()
		mu.Lock()
		defer mu.Unlock()
		if url != serversURL {
			serversURL = url
			clear(servers)
		}

		// The number of tools identifies the set, since the two sets differ in size.
		n := len(offered.Tools())
		if servers[n] == nil {
			servers[n] = newServer(offered, tasks, f, url, version, log)
		}
		return servers[n]
	})
}

func newServer(tools *tool.Set, tasks Tasks, f browse.Reader, base, version string, log *slog.Logger) *mcp.Server {
	// Do not offer listChanged, because a stateless request cannot receive later changes.
	offers := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}, Prompts: &mcp.PromptCapabilities{}}
	if tools.HasBackground() {
		offers.AddExtension(TasksExtension, nil)
	}

	s := mcp.NewServer(&mcp.Implementation{
		Name: "shoal", Title: "Shoal code search", Version: version,
	}, &mcp.ServerOptions{
		Instructions:      fmt.Sprintf(instructions, base),
		Logger:            slog.New(warningsOnly{log.Handler()}),
		Capabilities:      offers,
		CompletionHandler: completer(f),
		// Results depend on the user, so only private caches may keep them.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})

	addTaskSupport(s, tasks)
	s.AddReceivingMiddleware(suggestTools(tools))

	for _, t := range tools.Tools() {
		s.AddTool(declaration(&t), handler(tools, &t))
	}
	addResources(s, f)
	addPrompts(s)
	return s
}

// addTaskSupport adds tasks to a server, and ends each call with its request. It adds the methods of
// tasks even without a model: a task may have begun while there was one.
func addTaskSupport(s *mcp.Server, tasks Tasks) {
	addTasks(s, tasks)
	s.AddReceivingMiddleware(endWithRequest)
}

// Mount makes the handler of a server. It is stateless, serves every protocol revision, has
// tasks, ends a call with its request, and refuses with JSON-RPC errors.
func Mount(s *mcp.Server, tasks Tasks, log *slog.Logger) http.Handler {
	addTaskSupport(s, tasks)
	return newHandler(log, func(*http.Request) *mcp.Server { return s })
}

// newHandler makes a handler that serves each request by the server that choose returns.
func newHandler(log *slog.Logger, choose func(*http.Request) *mcp.Server) http.Handler {
	handler := func(asJSON bool) http.Handler { // answers with JSON, or with an event stream
		return mcp.NewStreamableHTTPHandler(choose, &mcp.StreamableHTTPOptions{
			Stateless:                    true,
			JSONResponse:                 asJSON,
			PropagateRequestCancellation: true,
			MaxRequestBodyBytes:          maxBody,
			Logger:                       slog.New(warningsOnly{log.Handler()}),
			DisableLocalhostProtection:   true, // package api checks Host and Origin for every route
		})
	}
	streamHandler, jsonHandler := handler(false), handler(true)

	return withFaults(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !wantsJSON(r) {
			streamHandler.ServeHTTP(w, r)
			return
		}
		// The SDK requires both types in Accept, even if it answers with JSON only.
		r = r.Clone(r.Context())
		r.Header.Set("Accept", "application/json, text/event-stream")
		jsonHandler.ServeHTTP(w, r)
	}))
}

// wantsJSON reports whether a client accepts JSON but no event stream, or sends no Accept.
func wantsJSON(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return true
	}

	acceptsJSON := false
	for kind := range strings.SplitSeq(accept, ",") {
		kind, _, _ = strings.Cut(kind, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/event-stream", "text/*", "*/*":
			return false
		case "application/json", "application/*":
			acceptsJSON = true
		}
	}
	return acceptsJSON
}

// warningsOnly drops log records below warnings, because the SDK logs the begin and end of each call.
type warningsOnly struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (l warningsOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && l.Handler.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler].
func (l warningsOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warningsOnly{l.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (l warningsOnly) WithGroup(name string) slog.Handler {
	return warningsOnly{l.Handler.WithGroup(name)}
}

// endWithRequest cancels a call when its HTTP request ends, because a client that has gone receives no
// answer. The SDK does so for the newest version of the protocol only.
func endWithRequest(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		request, ok := ctx.Value(requestKey).(context.Context)
		if !ok {
			return next(ctx, method, req)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(request, func() { cancel(context.Cause(request)) })()
		return next(ctx, method, req)
	}
}
