package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// watched is a status that a test changes, and the output of a watch.
type watched struct {
	*fake
	leaving chan struct{}

	mu     sync.Mutex // guards the fields below
	status node.StatusResponse
	looks  int
	takes  time.Duration // of one status
	role   catalog.Role
	denied error
	text   bytes.Buffer
}

func (w *watched) Status(ctx context.Context, _ catalog.Viewer) (*node.StatusResponse, error) {
	w.mu.Lock()
	takes := w.takes
	w.mu.Unlock()
	clock.Wait(ctx, takes) // not under the lock, or the bubble's clock would stop

	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	w.status.CatalogAge += time.Millisecond // as in a real node
	status := w.status
	return &status, nil
}

func (w *watched) again(context.Context) (catalog.Viewer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return catalog.Viewer{Role: w.role}, w.denied
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *watched) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// written returns what was written since the last call, each status as its number of
// repositories.
func (w *watched) written() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for line := range strings.Lines(w.text.String()) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, `data: {"type":"status",`):
			_, repos, _ := strings.Cut(line, `"repos":{"total":`)
			total, _, _ := strings.Cut(repos, ",")
			out = append(out, "status of "+total)
		case line != "":
			out = append(out, line)
		}
	}
	w.text.Reset()
	return strings.Join(out, "; ")
}

// watchIt starts a watch in a bubble, as the route does. It ends with ctx.
func watchIt(ctx context.Context, t *testing.T) *watched {
	t.Helper()
	w := &watched{role: catalog.RoleMember, leaving: make(chan struct{})}
	w.status = node.StatusResponse{Node: "n1", Members: []node.MemberStatus{{ID: "n1"}, {ID: "n2"}}}
	w.status.Storage.DiskTotal, w.status.Storage.DiskFree = 1_000_000, 500_500

	watch := &statusWatch{state: w, leaving: w.leaving, reauthenticate: w.again, role: w.role, lease: newMemory(1<<20).lease("c", holder)}
	if err := watch.readStatus(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { _ = watch.run(ctx, bufio.NewWriter(w)) }() // the text has its message
	return w
}

// A watch sends the status at once and after each change, at most once a second. Without changes
// it sends keep-alives.
func TestStatusWatch_sendsEachChangeAtMostOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, gone := context.WithCancelCause(t.Context())
		defer gone(errPeerGone)
		w := watchIt(ctx, t)
		step := func(what, want string, wait time.Duration, change func()) {
			t.Helper()
			w.change(change)
			clock.Wait(ctx, wait)
			if got := w.written(); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}

		step("the first", "status of 0", 0, func() {})
		step("nothing", "", 3*time.Second, func() {})
		step("many changes within a second", "status of 2", time.Second, func() { w.status.Repos.Total = 1; w.status.Repos.Total = 2 })
		step("back again", "status of 0", time.Second, func() { w.status.Repos.Total = 0 })
		step("a little of the disk", "", time.Second, func() { w.status.Storage.DiskFree += 100 })
		step("much of the disk", "status of 0", time.Second, func() { w.status.Storage.DiskFree += 10_000 })
		step("another node drains", "status of 0", time.Second, func() { w.status.Members[1].Draining = true })
		step("nothing for long", ": still at work; : still at work", 2*layout.QuietEvents, func() {})

		// If a status takes long, as in a large cluster, the watch pauses longer.
		w.change(func() { w.takes, w.looks = 400*time.Millisecond, 0 })
		clock.Wait(ctx, 45*time.Second)
		w.change(func() {
			if w.looks < 9 || w.looks > 12 {
				t.Errorf("%d looks of 400 ms in 45 seconds", w.looks)
			}
		})
	})
}

func TestStatusWatch_endsWithItsReaderOrServer(t *testing.T) {
	t.Parallel()
	failed := func(status int, code string) string {
		return fmt.Sprintf(`data: {"type":"error","error":{"statusCode":%d,"errorCode":"%s",`, status, code)
	}
	for what, c := range map[string]struct {
		end  func(w *watched, gone context.CancelCauseFunc)
		want string
	}{
		"the client goes": {func(_ *watched, gone context.CancelCauseFunc) { gone(errPeerGone) }, ""},
		"the node stops":  {func(w *watched, _ context.CancelCauseFunc) { close(w.leaving) }, failed(503, codeShuttingDown)},
		"the node stops at once": {func(_ *watched, gone context.CancelCauseFunc) { gone(errStopping) },
			failed(503, codeShuttingDown)},
		"the node drains": {func(w *watched, _ context.CancelCauseFunc) {
			w.change(func() { w.status.Members[0].Draining = true })
		}, "status of 0; " + failed(503, codeUnavailable)},
		"the key is revoked": {func(w *watched, _ context.CancelCauseFunc) {
			w.change(func() {
				w.denied, w.status.Repos.Total = nodecall.Fail(nodecall.ErrUnauthenticated, "gone"), 1
			})
		}, failed(401, codeNotAuthenticated)},
		"the role is another": {func(w *watched, _ context.CancelCauseFunc) {
			w.change(func() { w.role, w.status.Repos.Total = catalog.RoleGuest, 1 })
		}, failed(403, codeForbidden)},
		"an hour has passed": {func(_ *watched, _ context.CancelCauseFunc) {
			clock.Wait(context.Background(), statusWatchTime)
		}, failed(504, codeTimeout)},
	} {
		synctest.Test(t, func(t *testing.T) {
			hour, cancel := context.WithTimeout(t.Context(), statusWatchTime)
			defer cancel()
			ctx, gone := context.WithCancelCause(hour)
			w := watchIt(ctx, t)
			w.written()

			c.end(w, gone)
			clock.Wait(context.Background(), time.Second)
			got := strings.ReplaceAll(w.written(), ": still at work; ", "")
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s: %q, want %q", what, got, c.want)
			}

			// It has ended: later changes are not sent.
			w.change(func() { w.status.Repos.Total = 7; w.looks = 0 })
			clock.Wait(context.Background(), time.Minute)
			if got := w.written(); got != "" || w.looks > 0 {
				t.Errorf("%s: it goes on: %d looks, %q", what, w.looks, got)
			}
		})
	}
}

// calm is a node that is not being drained, so its watch continues.
type calm struct{ *fake }

func (c calm) Status(context.Context, catalog.Viewer) (*node.StatusResponse, error) {
	return &node.StatusResponse{Node: "n1"}, nil
}

func (c calm) parts() parts {
	p := c.fake.parts()
	p.state = c
	return p
}

// beginWatch starts a watch and reads its first event. The caller closes the body.
func beginWatch(t *testing.T, s *Server, key string) (*http.Response, *bufio.Reader) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr().String()+"/api/status?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}

	text := bufio.NewReader(resp.Body)
	if resp.StatusCode == 200 {
		if line, err := text.ReadString('\n'); err != nil || !strings.HasPrefix(line, `data: {"type":"status",`) {
			t.Fatalf("first event %q %v", line, err)
		}
	}
	return resp, text
}

func TestStatusWatch_concurrentWatchesAreLimited(t *testing.T) {
	t.Parallel()
	s := start(t, calm{&fake{}})
	var open []*http.Response
	for range maxStatusWatches {
		resp, _ := beginWatch(t, s, ownerKey)
		defer resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != mimeSSE {
			t.Fatalf("%d %s", resp.StatusCode, got)
		}
		open = append(open, resp)
	}

	resp, body := ask(t, s, "GET", "/api/status?watch=true", "")
	if code := failureOf(t, "one more", 429, body); resp.StatusCode != 429 || code != codeRateLimited || resp.Header.Get("Retry-After") != "5" {
		t.Errorf("one more: %d %s, Retry-After %q", resp.StatusCode, body, resp.Header.Get("Retry-After"))
	}
	if resp, _ := ask(t, s, "GET", "/api/status", ""); resp.StatusCode != 200 {
		t.Errorf("the status by itself: %d", resp.StatusCode)
	}

	// A finished watch frees its place.
	open[0].Body.Close()
	eventually(t, func() bool {
		resp, _ := beginWatch(t, s, ownerKey)
		resp.Body.Close()
		return resp.StatusCode == 200
	})
}

// If the first status fails, the watch returns an error status and frees its place.
func TestStatusWatch_aFailedStartFreesItsPlace(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{err: nodecall.Fail(nodecall.ErrUnavailable, "no")})
	for range maxStatusWatches + 1 {
		if resp, body := ask(t, s, "GET", "/api/status?watch=true", ""); resp.StatusCode != 503 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
}

// The fake's node is being drained: the watch sends the status, and why it is the last.
func TestStatusWatch_ofADrainingNodeSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{})
	_, body := ask(t, s, "GET", "/api/status?watch=true", "")
	golden(t, "status_watch.txt", body)
}

// When the key of a watch is revoked, the watch says so and ends.
func TestStatusWatch_endsWhenItsKeyIsRevoked(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Config{})
	s := start(t, partsOf(n.Node))
	made, err := n.Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "watcher"})
	if err != nil {
		t.Fatal(err)
	}
	resp, text := beginWatch(t, s, made.Key)
	defer resp.Body.Close()

	if _, err := n.Keys.RevokeKey(t.Context(), account.Operator(), made.Info.ID); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(text)
	if at := bytes.LastIndex(rest, []byte("data: ")); err != nil || at < 0 || !bytes.HasPrefix(rest[at:], []byte(`data: {"type":"error","error":{"statusCode":401,"errorCode":"NOT_AUTHENTICATED"`)) {
		t.Errorf("%v: the end of the watch is %q", err, rest)
	}
}
