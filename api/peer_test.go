package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
)

// aWhile is the time limit for expected events.
const aWhile = time.Minute

// endless is a search that only ends with its context. It sends the cause on a channel.
func endless(began chan<- struct{}, ended chan<- error) func(context.Context, catalog.Viewer, search.Request) (*search.Response, error) {
	return func(ctx context.Context, _ catalog.Viewer, _ search.Request) (*search.Response, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}
}

func wait[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(aWhile):
		t.Fatalf("waited for: %s", what)
		panic("unreachable")
	}
}

const searchA = "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13\r\n\r\n{\"query\":\"a\"}"

func TestSearch_endsWhenItsClientDisconnects(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan error, 1)
	s := start(t, (&fake{guests: true, search: endless(began, ended)}).parts())
	conn := dial(t, s, searchA)
	wait(t, "the search to begin", began)
	conn.Close()
	if err := wait(t, "the search to end", ended); !errors.Is(err, errPeerGone) {
		t.Errorf("ended for %v", err)
	}
}

func TestPipelinedRequest_doesNotEndTheRunningSearch(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	s := start(t, &fake{guests: true, search: func(ctx context.Context, _ catalog.Viewer, _ search.Request) (*search.Response, error) {
		began <- struct{}{}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-release:
			return searchResponse(), nil
		}
	}})
	conn := dial(t, s, searchA+"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
	wait(t, "the search to begin", began)
	for range 3 {
		s.peers.checkAll()
	}
	close(release)
	in := bufio.NewReader(conn)
	for range 2 {
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v %v", resp, err)
		}
		if err := discard(resp); err != nil {
			t.Fatal(err)
		}
	}
}

func discard(resp *http.Response) error {
	_, err := bufio.NewReader(resp.Body).WriteTo(discardWriter{})
	return errors.Join(err, resp.Body.Close())
}

type discardWriter struct{}

func (discardWriter) Write(p []byte) (int, error) { return len(p), nil }

func TestSearchStream_endsWhenItsClientDisconnects(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	s := start(t, &fake{guests: true, stream: func(ctx context.Context, _ catalog.Viewer, _ search.Request, send func(*search.Chunk) error) (*search.Response, error) {
		if err := send(&search.Chunk{}); err != nil {
			return nil, err
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}})
	conn := dial(t, s, strings.Replace(searchA, "/search", "/stream_search", 1))
	in := bufio.NewReader(conn)
	for { // the first part has come, so the stream is running
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: ") {
			break
		}
	}
	conn.Close()
	if err := wait(t, "the stream to end", ended); !errors.Is(err, errPeerGone) {
		t.Errorf("ended for %v", err)
	}
}

func TestServerStop_endsRunningSearches(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan error, 1)
	f := &fake{guests: true, search: endless(began, ended), base: "http://x"}
	s, err := newServer(f.parts(), Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	dial(t, s, searchA)
	wait(t, "the search to begin", began)
	cancel()
	if err := wait(t, "the search to end", ended); !errors.Is(err, errStopping) {
		t.Errorf("ended for %v", err)
	}
	if err := wait(t, "the server to stop", done); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestConcurrencyLimit_refusesASecondRequestOfOneClient(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	s := start(t, &fake{search: func(context.Context, catalog.Viewer, search.Request) (*search.Response, error) {
		began <- struct{}{}
		<-release
		return searchResponse(), nil
	}}, func(o *Options) { o.Limits = Limits{PerClient: 1} })
	first := make(chan int, 1)
	go func() {
		resp, _ := askAs(t, s, memberKey, "POST", "/api/search", `{"query":"a"}`)
		first <- resp.StatusCode
	}()
	wait(t, "the first search", began)
	resp, body := askAs(t, s, memberKey, "GET", "/api/repos", "")
	if failureOf(t, "second", resp.StatusCode, body) != codeRateLimited || resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a second request of the same client: %d %s, Retry-After %q", resp.StatusCode, body, resp.Header.Get("Retry-After"))
	}
	if resp, body := askAs(t, s, ownerKey, "GET", "/api/repos", ""); resp.StatusCode != 200 {
		t.Errorf("another client: %d %s", resp.StatusCode, body)
	}
	close(release)
	if status := wait(t, "the first answer", first); status != 200 {
		t.Errorf("first: %d", status)
	}
}

func TestRateLimit_refusesABurstUntilRetryAfter(t *testing.T) {
	t.Parallel()
	now := day
	l := newLimiter(Limits{Rate: 2}, func() time.Time { return now })
	enter := func() *failure {
		f := l.enter("a", holder)
		if f == nil {
			l.leave("a", holder)
		}
		return f
	}
	for i := range 4 { // the burst
		if f := enter(); f != nil {
			t.Fatalf("request %d: %v", i, f)
		}
	}
	f := enter()
	if f == nil || f.RetryAfter != 500*time.Millisecond || f.retryAfter() != "1" {
		t.Fatalf("fifth at once: %+v", f)
	}
	now = now.Add(f.RetryAfter)
	if f := enter(); f != nil {
		t.Errorf("after Retry-After: %v", f)
	}
	if f := l.enter("b", holder); f != nil {
		t.Errorf("another client: %v", f)
	}
	l.leave("b", holder)
	now = now.Add(10 * time.Minute)
	l.enter("c", holder)
	if len(l.clients) != 1 {
		t.Errorf("idle clients are kept: %d", len(l.clients))
	}
}

// After everybody left, the limiter counts zero.
func TestConcurrencyLimit_countsOnlyRunningRequests(t *testing.T) {
	t.Parallel()
	l := newLimiter(Limits{Total: 3}, time.Now)
	for i := range 3 {
		if f := l.enter(fmt.Sprint(i), holder); f != nil {
			t.Fatal(f)
		}
	}
	if l.enter("x", holder) == nil {
		t.Error("the total is not bounded")
	}
	for i := range 3 {
		l.leave(fmt.Sprint(i), holder)
	}
	if l.total != 0 {
		t.Errorf("%d under way", l.total)
	}
}
