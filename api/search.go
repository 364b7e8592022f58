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

// searchRoutes handles searches.
type searchRoutes struct {
	searcher symbols.Searcher
	pasted   web.Suggester
	buffers  *buffers
	panicked func(what string, p any) *failure
}

func (a *searchRoutes) rows() []route {
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

	var meant *meaning
	size := encodedSize(resp.Files)
	if c.meant {
		meant = &meaning{a.pasted.GoTo(ctx, c.viewer, req.Query), a.pasted.Nearest(ctx, c.viewer, req, resp)}
		if meant.nearest != nil {
			size += encodedSize(meant.nearest.Response.Files)
		}
	}

	// The results and their JSON are in memory together for a while.
	if f := c.lease.resize(2 * size); f != nil {
		return f
	}

	// write returns the buffer to the pool.
	c.pooled = a.buffers.get()
	c.mime, c.body = mimeJSON, appendMeant(appendSearch(slices.Grow(*c.pooled, int(size)), resp), meant)
	return nil
}

func searchRequest(c *call) (search.Request, error) {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return search.Request{}, err
	}
	f.any = true // ignore unknown members, which a later version may know

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

	// A missing query differs from an empty one, whose error has a position.
	if _, ok := f.member("query"); !ok {
		f.wrong("query", "required")
	}

	c.meant = f.flag("understand")

	// In the query string, so that a client can add it to a body that it did not build.
	p := c.params()
	req.RequireComplete = !p.flag("allow_partial", true)

	c.sought = req.Query
	if f.flag("progress") {
		req.Progress = &search.Progress{}
	}

	if err := f.err(); err != nil {
		return req, err
	}
	return req, p.err()
}

// symbolRequest decodes the body of find_definitions or, unless defined, of find_references.
func symbolRequest(c *call, defined bool) (symbols.SymbolRequest, error) {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return symbols.SymbolRequest{}, err
	}

	// Unknown members are errors here: an ignored filter would give wrong answers.
	req := symbols.SymbolRequest{
		Symbol:   f.required("symbolName"),
		Language: f.text("language"),
		Revision: f.text("revisionName"),
		Repo:     f.text("repoName"),

		IncludeDefinitions: f.flag("includeDefinitions"),

		Best: f.integer("limit", 1, maxSymbolFiles),
	}
	req.Near = placeOf(f, req.Repo)

	// References have no signature, so refuse the flag instead of ignoring it.
	if req.Signature = f.flag("signature"); req.Signature && !defined && !req.IncludeDefinitions {
		f.wrong("signature", "of find_references only beside includeDefinitions: definitions have one")
	}
	return req, f.err()
}

// placeOf reads the position of the symbol in the request; nil if there is none.
func placeOf(f *fields, repo string) *symbols.Place {
	p := &symbols.Place{
		Repo:   cmp.Or(f.text("pathRepoName"), repo),
		Line:   f.integer("line", 1, math.MaxInt32),
		Column: f.integer("column", 1, math.MaxInt32),
	}

	// Refuse an incomplete position instead of ignoring it.
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
	req, err := symbolRequest(c, true)
	if err != nil {
		return err
	}
	return a.symbols(ctx, c, req, a.searcher.Definitions)
}

// references handles POST /api/find_references.
func (a *searchRoutes) references(ctx context.Context, c *call) error {
	req, err := symbolRequest(c, false)
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
	viewer, held := c.viewer, c.lease
	return a.streamed(ctx, c, "/api/stream_search", func(ctx context.Context, events chan<- event) error {
		return a.produce(ctx, viewer, req, held, events)
	})
}

// streamed answers with the events that produce sends. It runs in a goroutine that ends before the
// stream does. An error before the first part has its own status; a later one is an event of type
// "error".
func (a *searchRoutes) streamed(ctx context.Context, c *call, route string, produce func(context.Context, chan<- event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	events := make(chan event)

	// The search ends when the stream or the client does.
	go func() {
		defer close(events)
		if err := a.guarded(ctx, route, events, produce); err != nil {
			select {
			case events <- event{err: err}:
			case <-ctx.Done():
			}
		}
	}()
	// Wait for the first part, so that an error can have its own status.
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
		err := consume(ctx, w, first, events)
		cancel(errPeerGone)
		for range events { // until the search has ended
		}
		return err
	}
	return nil
}

// guarded makes a panic of a search an error.
func (a *searchRoutes) guarded(ctx context.Context, route string, events chan<- event, produce func(context.Context, chan<- event) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = a.panicked(route, p)
		}
	}()
	return produce(ctx, events)
}

// produce runs a search and sends its parts and its end.
func (a *searchRoutes) produce(ctx context.Context, v catalog.Viewer, req search.Request, held *lease, events chan<- event) error {
	told := tellProgress(ctx, req.Progress, events)
	defer told()

	resp, err := a.searcher.StreamSearch(ctx, v, req, func(part *search.Chunk) error {
		// The encoded part is in memory while the previous one is written.
		if f := held.resize(3 * encodedSize(part.Files)); f != nil {
			return f
		}
		return sendEvent(ctx, events, appendChunkEvent(nil, part))
	})

	if err != nil {
		return err
	}

	// Stop the progress before the final event.
	told()
	return sendEvent(ctx, events, appendFinalEvent(nil, resp))
}

// consume writes events until they end or the client has gone.
func consume(ctx context.Context, w *bufio.Writer, first event, events <-chan event) error {
	// The status is already sent, so an error is the last event.
	for e, ok := first, true; ok; e, ok = <-events {
		if e.err != nil {
			return writeEvent(w, errorEvent(asFailure(ctx, e.err)))
		}
		if err := writeEvent(w, e.data); err != nil {
			return err
		}
	}

	// Without [DONE] the client knows that the stream was cut off.
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
