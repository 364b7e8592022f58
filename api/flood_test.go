package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
)

// flooded is a small server with connections of strangers, key holders and the operator.
type flooded struct {
	*Server
	t   *testing.T
	dir string
}

// newFlooded starts a server on which searches for "stay" run until the test ends.
func newFlooded(t *testing.T, guests bool, set func(*Options)) *flooded {
	t.Helper()
	f := &flooded{t: t, dir: t.TempDir()}
	release := make(chan struct{})
	f.Server = start(t, &fake{guests: guests, search: func(ctx context.Context, _ catalog.Viewer, req search.Request) (*search.Response, error) {
		if req.Query == "stay" {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return searchResponse(), nil
	}}, func(o *Options) {
		o.DataDir = f.dir
		o.Limits = Limits{Connections: 32, PerAddress: 16, Total: 16, PerClient: 8, Memory: 8 << 20}
		o.patience = time.Minute
		set(o)
	})
	t.Cleanup(func() { close(release) })
	return f
}

// send opens a connection from an address of this host and writes to it.
func (f *flooded) send(from, text string) net.Conn {
	f.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", f.Addr().String())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	_, _ = io.WriteString(c, text) // fails if the connection was closed to make room
	return c
}

// status returns the status of one request on a new connection.
func (f *flooded) status(c net.Conn, method, path, key, body string) int {
	f.t.Helper()
	if err := c.SetDeadline(time.Now().Add(aWhile)); err != nil {
		f.t.Fatal(err)
	}
	header := ""
	if key != "" {
		header = "Authorization: Bearer " + key + "\r\n"
	}
	_, _ = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, header, len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		f.t.Errorf("%s %s: %v", method, path, err)
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// under returns the number of running requests.
func (f *flooded) under() int {
	f.limits.mu.Lock()
	defer f.limits.mu.Unlock()
	return f.limits.total
}

const forgedKey = "shoal_3333333333333333333333333333333333333333333333333333333333333333"

func head(path, rest string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + rest + "\r\n"
}

// Whatever strangers send, requests with a key, the operator's socket and health checks are
// answered.
func TestFloodOfStrangers_doesNotBlockKeyHoldersOrTheOperator(t *testing.T) {
	t.Parallel()
	const large = 4 << 20
	for _, c := range []struct {
		name   string
		guests bool
		texts  []string // sent by strangers in turn
		page   int      // status of a page for a stranger from another address
	}{
		{"nothing", true, []string{""}, 200},
		{"half a head", true, []string{"POST /api/search HTTP/1.1\r\nHost: loc"}, 200},
		{"a body that does not begin", true, []string{head("/api/search", "Content-Length: 9\r\n"), head("/login", "Content-Length: 9\r\n")}, 200},
		{"a body of one byte", true, []string{head("/api/search", "Content-Length: 9\r\n") + "{", head("/login", "Content-Length: 9\r\n") + "a"}, 200},
		{"a body of one byte where guests are not served", false, []string{
			head("/api/webhook/x", "Content-Length: 9\r\n") + "{", head("/login", "Content-Length: 9\r\n") + "a",
			head("/oauth/token", "Content-Length: 9\r\n") + "a", head("/oauth/register", "Content-Length: 9\r\n") + "{",
		}, 200},
		{"a chunk and no more", true, []string{head("/api/search", "Transfer-Encoding: chunked\r\n") + "1\r\n{\r\n"}, 200},
		{"a body that is asked for first", true, []string{head("/api/search", "Content-Length: 9\r\nExpect: 100-continue\r\n")}, 200},
		{"a key that is not good", true, []string{head("/api/search", "Content-Length: 9\r\nAuthorization: Bearer "+forgedKey+"\r\n") + "{"}, 200},
		{"a key of another form", false, []string{head("/api/search", "Content-Length: 9\r\nX-Sourcebot-Api-Key: x\r\n") + "{"}, 200},
		{"large bodies", true, []string{head("/api/webhook/main", fmt.Sprintf("Content-Length: %d\r\n", large)) + strings.Repeat("x", large-1)}, 200},
		{"large bodies that may be signed", true, []string{head("/api/webhook/main", claim()+fmt.Sprintf("Content-Length: %d\r\n", large)) + strings.Repeat("x", large-1)}, 200},
		{"a request, and then silence", true, []string{"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"}, 200},
		{"searches that go on", true, []string{head("/api/search", "Content-Type: application/json\r\nContent-Length: 16\r\n") + `{"query":"stay"}`}, 429},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFlooded(t, c.guests, func(*Options) {})
			for i := range 60 {
				f.send(fmt.Sprintf("127.0.0.%d", 2+i%5), c.texts[i%len(c.texts)])
			}
			if c.page == 429 {
				eventually(t, func() bool { return f.under() >= 8 })
			}

			for _, p := range []struct {
				who, method, path, key, body string
				want                         int
			}{
				{"a key", "POST", "/api/search", memberKey, `{"query":"a"}`, 200},
				{"an owner's key", "GET", "/api/keys", ownerKey, "", 200},
				{"a balancer", "GET", "/livez", "", "", 200},
				{"a balancer", "GET", "/readyz", "", "", 200},
				{"somebody else", "GET", "/login", "", "", c.page},
			} {
				if got := f.status(f.send("127.0.0.99", ""), p.method, p.path, p.key, p.body); got != p.want {
					t.Errorf("%s, %s %s: %d, want %d", p.who, p.method, p.path, got, p.want)
				}
			}
			socket, err := auth.DialSocket(t.Context(), f.dir)
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			if got := f.status(socket, "GET", "/api/keys", "", ""); got != 200 {
				t.Errorf("the operator: %d", got)
			}
		})
	}
}

// Key holders may fill the node. The operator and health checks are still answered.
func TestFullNode_stillAnswersTheOperatorAndHealthChecks(t *testing.T) {
	t.Parallel()
	f := newFlooded(t, false, func(o *Options) { o.Limits.PerClient, o.Limits.PerAddress = 16, 4 })
	for range 16 {
		before := f.under()
		f.send("127.0.0.2", head("/api/search", "Content-Type: application/json\r\nAuthorization: Bearer "+memberKey+"\r\nContent-Length: 16\r\n")+`{"query":"stay"}`)
		eventually(t, func() bool { return f.under() > before })
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/login": 429} {
		if got := f.status(f.send("127.0.0.2", ""), "GET", path, "", ""); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	for range 3 {
		socket, err := auth.DialSocket(t.Context(), f.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		if got := f.status(socket, "POST", "/api/search", "", `{"query":"a"}`); got != 200 {
			t.Errorf("the operator: %d", got)
		}
	}
}

// A body must begin soon and continue, whoever sends it.
func TestSlowBody_endsWith408(t *testing.T) {
	t.Parallel()
	f := newFlooded(t, true, func(o *Options) { o.patience = 50 * time.Millisecond })
	for name, text := range map[string]string{
		"no byte":             head("/api/search", "Content-Length: 9\r\n"),
		"one byte":            head("/api/search", "Content-Length: 9\r\n") + "{",
		"one byte with a key": head("/api/search", "Content-Length: 9\r\nAuthorization: Bearer "+memberKey+"\r\n") + "{",
		"one chunk":           head("/api/search", "Transfer-Encoding: chunked\r\n") + "1\r\n{\r\n",
		"half a chunk":        head("/api/search", "Transfer-Encoding: chunked\r\n") + "5\r\n{",
		"none after 100":      head("/api/search", "Content-Length: 9\r\nExpect: 100-continue\r\n"),
	} {
		c := f.send("127.0.0.1", text)
		if err := c.SetReadDeadline(time.Now().Add(aWhile)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(answer), "HTTP/1.1 408") {
			t.Errorf("%s: %q %v", name, answer, err)
		}
	}
	eventually(t, func() bool { return f.under() == 0 && f.memory.used() == 0 && f.crowd.count() == 0 })
}

func TestRequestBody_deadlineGrowsWithTheBytesReceived(t *testing.T) {
	t.Parallel()
	s := &Server{opt: Options{patience: bodyPatience}}
	for n, want := range map[int]time.Duration{0: 5 * time.Second, bodyRate: 6 * time.Second, 10 * bodyRate: 15 * time.Second, maxBody: 30 * time.Second} {
		if got := s.bodyDeadline(day, n).Sub(day); got != want {
			t.Errorf("after %d bytes more is due within %s, want %s", n, got, want)
		}
	}
}

// Strangers together have a part of the places and of the memory.
func TestStrangers_shareAPartOfPlacesAndMemory(t *testing.T) {
	t.Parallel()
	l := newLimiter(Limits{Total: 8}, time.Now)
	for i := range 5 {
		if f := l.enter(fmt.Sprint(i), stranger); (f == nil) != (i < 4) {
			t.Errorf("stranger %d of 8 places: %v", i, f)
		}
	}
	for i := range 5 {
		if f := l.enter("k"+fmt.Sprint(i), holder); (f == nil) != (i < 4) {
			t.Errorf("holder %d: %v", i, f)
		}
	}
	if f := l.enter("", operator); f != nil {
		t.Errorf("operator: %v", f)
	}

	const mib = 1 << 20
	m := newMemory(800 * mib)
	for _, c := range []struct {
		by   standing
		size int64
		ok   bool
	}{
		{sender, 60 * mib, true},
		{sender, 60 * mib, false}, // more than an eighth for large bodies
		{sender, smallLease, true},
		{stranger, 280 * mib, true},
		{stranger, 60 * mib, false}, // more than half together with the bodies
		{holder, 300 * mib, true},
		{holder, 90 * mib, false}, // more than seven eighths for large pieces
		{operator, 400 * mib, true},
	} {
		if f := m.lease(fmt.Sprint(c), c.by).resize(c.size); (f == nil) != c.ok {
			t.Errorf("%+v: %v", c, f)
		}
	}

	// A small node also takes the largest delivery.
	if f := newMemory(64*mib).lease("a", sender).resize(largestBody); f != nil {
		t.Errorf("the largest body alone: %v", f)
	}
}
