package api

import (
	"bufio"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

// searchRoutes handles searches for code, commits, definitions and references.
type searchRoutes struct {
	searcher  symbols.Searcher
	suggester web.Suggester
	buffers   *buffers
	panicked  func(what string, p any) *failure
}

func (a *searchRoutes) routes() []route {
	return []route{
		newRoute("POST", "/api/search", accessRead, searchTimeout, a.search),
		newRoute("POST", "/api/search_commits", accessRead, searchTimeout, a.commits),
		newRoute("POST", "/api/stream_search", accessRead, streamTimeout, a.stream),
		newRoute("POST", "/api/stream_search_commits", accessRead, streamTimeout, a.streamCommits),
		newRoute("POST", "/api/find_definitions", accessRead, searchTimeout, a.definitions),
		newRoute("POST", "/api/find_references", accessRead, searchTimeout, a.references),
	}
}

// Limits of a search request.
const (
	maxMatches      = 1_000_000
	maxContextLines = 100
	maxSymbolFiles  = 1000
)

// search handles POST /api/search.
func (a *searchRoutes) search(ctx context.Context, c *call) error {
	req, err := searchRequest(c)
	if err != nil {
		return err
	}
	resp, err := a.searcher.Search(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	var m *meaning
	size := encodedSize(resp.Files)
	if c.wantsMeaning {
		m = &meaning{a.suggester.GoTo(ctx, c.viewer, req.Query), a.suggester.Nearest(ctx, c.viewer, req, resp)}
		if m.nearest != nil {
			size += encodedSize(m.nearest.Response.Files)
		}
	}

	// The results and their JSON are in memory together until the JSON is complete.
	if f := c.lease.resize(2 * size); f != nil {
		return f
	}

	// write returns c.pooled to the pool.
	c.pooled = a.buffers.get()
	c.mime, c.body = mimeJSON, appendMeaning(appendSearch(slices.Grow(*c.pooled, int(size)), resp), m)
	return nil
}

// searchRequest decodes the body of a search. It also stores in c the query, for the audit, and
// whether the answer has to say what the query may mean.
func searchRequest(c *call) (search.Request, error) {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return search.Request{}, err
	}
	f.allowUnknown = true // a client for a later version may send more members

	req := search.Request{
		Query:         f.text("query"),
		Matches:       f.integer("matches", 1, maxMatches),
		ContextLines:  f.integer("contextLines", 0, maxContextLines),
		Whole:         f.flag("whole"),
		Regexp:        f.flag("isRegexEnabled"),
		CaseSensitive: f.flag("isCaseSensitivityEnabled"),
		Facets:        f.flag("facets"),
		Pages:         f.flag("pages"),
		After:         f.text("after"),
	}
	req.Pages = req.Pages || req.After != ""

	// Report a missing query here. The search reports an empty one, with its position.
	if _, ok := f.member("query"); !ok {
		f.wrong("query", "required")
	}

	c.wantsMeaning = f.flag("understand")

	// allow_partial is a query parameter, so that a client can add it to a body that it did not build.
	p := c.params()
	req.RequireComplete = !p.flag("allow_partial", true)

	c.query = req.Query
	if f.flag("progress") {
		req.Progress = &search.Progress{}
	}

	if err := f.err(); err != nil {
		return req, err
	}
	return req, p.err()
}

// symbolRequest decodes the body of find_definitions or find_references.
func symbolRequest(c *call, forDefinitions bool) (symbols.SymbolRequest, error) {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return symbols.SymbolRequest{}, err
	}

	// Refuse unknown members: without an ignored filter the answer would be wrong.
	req := symbols.SymbolRequest{
		Symbol:   f.required("symbolName"),
		Language: f.text("language"),
		Revision: f.text("revisionName"),
		Repo:     f.text("repoName"),

		IncludeDefinitions: f.flag("includeDefinitions"),

		Best: f.integer("limit", 1, maxSymbolFiles),
	}
	req.Near = readPlace(f, req.Repo)

	// References have no signature, so refuse the flag where the answer has no definitions.
	if req.Signature = f.flag("signature"); req.Signature && !forDefinitions && !req.IncludeDefinitions {
		f.wrong("signature", "of find_references only beside includeDefinitions: definitions have one")
	}
	return req, f.err()
}

// readPlace reads where in a file the client has met the symbol; nil if the request has no path. Its
// repository is repo unless the request names another one.
func readPlace(f *fields, repo string) *symbols.Place {
	p := &symbols.Place{
		Repo:   cmp.Or(f.text("pathRepoName"), repo),
		Line:   f.integer("line", 1, math.MaxInt32),
		Column: f.integer("column", 1, math.MaxInt32),
	}

	// Refuse an incomplete place.
	for name, needs := range map[string]string{"pathRepoName": "path", "line": "path", "column": "line"} {
		_, given := f.member(name)
		if _, ok := f.member(needs); given && !ok {
			f.wrong(name, "only beside %s", needs)
		}
	}
	if _, given := f.member("path"); !given {
		return nil
	}
	p.Path = f.required("path")
	return p
}

// definitions handles POST /api/find_definitions.
func (a *searchRoutes) definitions(ctx context.Context, c *call) error {
	const forDefinitions = true
	req, err := symbolRequest(c, forDefinitions)
	if err != nil {
		return err
	}
	return a.symbols(ctx, c, req, a.searcher.Definitions)
}

// references handles POST /api/find_references.
func (a *searchRoutes) references(ctx context.Context, c *call) error {
	const forDefinitions = false
	req, err := symbolRequest(c, forDefinitions)
	if err != nil {
		return err
	}
	return a.symbols(ctx, c, req, a.searcher.References)
}

// symbols answers with the symbols that find returns.
func (a *searchRoutes) symbols(ctx context.Context, c *call, req symbols.SymbolRequest, find func(context.Context, catalog.Viewer, symbols.SymbolRequest) (*symbols.SymbolResponse, error)) error {
	resp, err := find(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	c.pooled = a.buffers.get()
	c.mime, c.body = mimeJSON, appendSymbols(*c.pooled, resp)
	return nil
}

// event is one part of a streamed answer, or the error that ended it.
type event struct {
	data []byte
	err  error
}

// stream handles POST /api/stream_search.
func (a *searchRoutes) stream(ctx context.Context, c *call) error {
	req, err := searchRequest(c)
	if err != nil {
		return err
	}
	viewer, lease := c.viewer, c.lease
	return a.streamEvents(ctx, c, "/api/stream_search", func(ctx context.Context, events chan<- event) error {
		return a.produce(ctx, viewer, req, lease, events)
	})
}

// streamEvents answers with the events that produce sends. produce runs in a goroutine that ends
// before the stream does. An error before the first event gets its own status. A later error becomes
// an event of type "error".
func (a *searchRoutes) streamEvents(ctx context.Context, c *call, route string, produce func(context.Context, chan<- event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	events := make(chan event)

	// ctx ends when the stream ends or the client leaves.
	go func() {
		defer close(events)
		if err := a.produceSafely(ctx, route, events, produce); err != nil {
			select {
			case events <- event{err: err}:
			case <-ctx.Done():
			}
		}
	}()
	// Wait for the first event, so that an error can have its own status.
	first, ok := <-events
	if !ok || first.err != nil {
		cancel(nil)
		if !ok {
			return context.Cause(ctx)
		}
		return first.err
	}

	c.mime = mimeSSE
	c.setHeader("Cache-Control", "no-cache, no-transform")
	c.setHeader("X-Accel-Buffering", "no")

	// fasthttp calls this after the head is sent.
	c.stream = func(w *bufio.Writer) error {
		defer cancel(nil)
		err := writeEvents(ctx, w, first, events)
		cancel(errPeerGone)
		for range events { // wait until produce has returned
		}
		return err
	}
	return nil
}

// produceSafely calls produce and returns its error, or the failure for its panic.
func (a *searchRoutes) produceSafely(ctx context.Context, route string, events chan<- event, produce func(context.Context, chan<- event) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = a.panicked(route, p)
		}
	}()
	return produce(ctx, events)
}

// produce runs a search and sends events: its progress if req asks for it, parts of the answer, and
// the final event.
func (a *searchRoutes) produce(ctx context.Context, v catalog.Viewer, req search.Request, lease *lease, events chan<- event) error {
	stopProgress := startProgress(ctx, req.Progress, events)
	defer stopProgress()

	resp, err := a.searcher.StreamSearch(ctx, v, req, func(part *search.Chunk) error {
		// In memory are a part, its JSON, and the JSON of the previous part, which is being written.
		if f := lease.resize(3 * encodedSize(part.Files)); f != nil {
			return f
		}
		return sendEvent(ctx, events, appendChunkEvent(nil, part))
	})

	if err != nil {
		return err
	}

	// No progress may follow the final event.
	stopProgress()
	return sendEvent(ctx, events, appendFinalEvent(nil, resp))
}

// writeEvents writes first and then events until they end, and "[DONE]" after them. It stops early
// after an error, which it writes as the last event, or when the client has gone.
func writeEvents(ctx context.Context, w *bufio.Writer, first event, events <-chan event) error {
	for e, ok := first, true; ok; e, ok = <-events {
		if e.err != nil {
			return writeEvent(w, errorEvent(asFailure(ctx, e.err)))
		}
		if err := writeEvent(w, e.data); err != nil {
			return err
		}
	}

	// After an early end write no [DONE], so that the client knows that the stream was cut off.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return writeEvent(w, []byte("[DONE]"))
}

// errorEvent returns the last event of a stream that failed.
func errorEvent(f *failure) []byte {
	return append(append([]byte(`{"type":"error","error":`), f.body()...), '}')
}

func writeEvent(w *bufio.Writer, data []byte) error {
	var b strings.Builder
	b.Grow(len(data) + 8)
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")

	if _, err := w.WriteString(b.String()); err != nil {
		return err
	}
	return w.Flush()
}
