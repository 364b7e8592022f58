package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// starving fails to accept a few times, as without file descriptors.
type starving struct {
	net.Listener
	mu   sync.Mutex // guards the field below
	errs []error
}

func (l *starving) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: err}
	}
	return l.Listener.Accept()
}

func TestListener_retriesAcceptAfterErrors(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := newServer((&fake{guests: true, base: "http://x"}).parts(), Options{Listen: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.doors.api = &starving{Listener: s.doors.api, errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	if resp, _ := ask(t, s, "GET", "/livez", ""); resp.StatusCode != 200 {
		t.Errorf("after the errors: %d", resp.StatusCode)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, &log)
	}
}

// knock opens a connection, and sends a request if asks is set.
func knock(t *testing.T, s *Server, asks bool) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if asks {
		answered(t, c)
	}
	return c
}

// answered sends a request on a connection and reports whether there was an answer.
func answered(t *testing.T, c net.Conn) bool {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(aWhile)); err != nil {
		t.Fatal(err)
	}
	_, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
	buf := make([]byte, 1024)
	n, rerr := c.Read(buf)
	return err == nil && rerr == nil && bytes.HasPrefix(buf[:n], []byte("HTTP/1.1 200"))
}

// eventually waits until a condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	nodetest.Wait(t, "the server to come to rest", func() error {
		if !holds() {
			return errors.New("not yet")
		}
		return nil
	})
}

// ended waits until the other side has closed a connection.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(aWhile)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := io.ReadAll(c); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("a connection that should have made room is open")
	}
}

func TestConnectionLimit_closesTheLongestIdleConnection(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts(), func(o *Options) { o.Limits = Limits{Connections: 4, PerAddress: 4} })
	kept := knock(t, s, true)
	silent := knock(t, s, false)
	other := knock(t, s, true)
	knock(t, s, false)
	knock(t, s, true) // a fifth connection
	ended(t, silent)
	if !answered(t, other) || !answered(t, kept) {
		t.Error("a connection that asks made room for one although another was silent")
	}

	// Without silent connections, the one with the oldest last request is closed.
	for range 3 {
		knock(t, s, true)
	}
	ended(t, other)
}

func TestConnectionLimit_neverClosesAConnectionWithARunningRequest(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	s := start(t, &fake{guests: true, search: func(context.Context, catalog.Viewer, search.Request) (*search.Response, error) {
		began <- struct{}{}
		<-release
		return searchResponse(), nil
	}}, func(o *Options) { o.Limits = Limits{Connections: 1} })
	first := make(chan int, 1)
	go func() {
		resp, _ := ask(t, s, "POST", "/api/search", `{"query":"a"}`)
		first <- resp.StatusCode
	}()
	wait(t, "the search to begin", began)

	// A new connection closes the one before.
	silent := knock(t, s, false)
	knock(t, s, true)
	ended(t, silent)
	close(release)
	if status := wait(t, "the first answer", first); status != 200 {
		t.Errorf("the running request: %d", status)
	}
}

func TestConnectionLimit_boundsConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts(), func(o *Options) { o.Limits = Limits{Connections: 4, PerAddress: 2} })
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.9")}}
	c, err := other.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 10 {
		knock(t, s, true)
	}
	if n := s.crowd.count(); n > 3 {
		t.Errorf("%v connections are open, of two addresses of which one may have 2", n)
	}
	if !answered(t, c) {
		t.Error("the connection of another address made room")
	}
}

// After many connections of all kinds, the count is zero.
func TestConnectionLimit_countReturnsToZero(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts(), func(o *Options) { o.Limits = Limits{Connections: 8, PerAddress: 4} })
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("127.0.0.%d", 2+i%5))}}
			c, err := dialer.Dial("tcp", s.Addr().String())
			if err != nil {
				return
			}
			if i%3 > 0 {
				_ = c.SetDeadline(time.Now().Add(aWhile))
				_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
				_, _ = c.Read(make([]byte, 16))
			}
			c.Close()
		})
	}
	wg.Wait()
	eventually(t, func() bool { return s.crowd.count() == 0 })
	s.crowd.mu.Lock()
	defer s.crowd.mu.Unlock()
	if s.crowd.open != 0 || len(s.crowd.networks) != 0 || s.crowd.waiting[fresh].Len()+s.crowd.waiting[idleStranger].Len() != 0 {
		t.Errorf("open %d, networks %d, waiting %d and %d", s.crowd.open, len(s.crowd.networks), s.crowd.waiting[fresh].Len(), s.crowd.waiting[idleStranger].Len())
	}
}

func TestConnectionLimit_doesNotBoundTrustedProxies(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts(), func(o *Options) {
		o.Limits = Limits{Connections: 8, PerAddress: 1}
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	first := knock(t, s, true)
	knock(t, s, true)
	if !answered(t, first) {
		t.Error("a second connection of a proxy closed the first")
	}
}

func TestRequestBody_isReadOnlyAfterAuthentication(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	conn := dial(t, s, "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
	if err := conn.SetReadDeadline(time.Now().Add(readTimeout / 2)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 401")) {
		t.Errorf("a request without a key whose body does not come: %q %v", text, err)
	}
}

func TestRequestBody_reservesMemoryOnlyForReceivedBytes(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts())
	conn := dial(t, s, "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n{")
	eventually(t, func() bool { return s.memory.used() > 0 })
	if got := s.memory.used(); got != firstBody {
		t.Errorf("an announced mebibyte of which a byte came holds %v bytes, want %d", got, firstBody)
	}
	conn.Close()
	eventually(t, func() bool { return s.memory.used() == 0 })
	if got := s.memory.used(); got != 0 {
		t.Errorf("after the client left %v bytes are held", got)
	}
}

func TestRequestMemory_oneClientGetsAtMostHalf(t *testing.T) {
	t.Parallel()
	m := newMemory(8 << 20)
	greedy, second, light := m.lease("a", holder), m.lease("b", holder), m.lease("c", holder)
	if f := greedy.resize(4<<20 + 1); f == nil || f.Status != 413 || f.RetryAfter != 0 {
		t.Errorf("more than half for one client: %v", f)
	}
	if f := greedy.resize(4 << 20); f != nil {
		t.Errorf("half for one client: %v", f)
	}
	if f := m.lease("a", holder).resize(1 << 20); f == nil || f.Status != 429 {
		t.Error("a second request of the client got more than half")
	}
	if f := second.resize(3<<20 + 1); f == nil {
		t.Error("large pieces took more than seven eighths")
	}
	if f := second.resize(3 << 20); f != nil {
		t.Errorf("seven eighths: %v", f)
	}
	if f := light.resize(smallLease); f != nil {
		t.Errorf("a small piece beside them: %v", f)
	}
	if f := light.resize(smallLease + 1); f == nil {
		t.Error("it grew large")
	}
	for _, l := range []*lease{greedy, second, light} {
		l.end()
		l.end()
	}
	if m.used() != 0 || len(m.clients) != 0 {
		t.Errorf("%v bytes are held by %d clients", m.used(), len(m.clients))
	}
}

// A size that fits into empty memory is refused for now; a larger one for good.
func TestRequestMemory_answers413OnlyToWhatNeverFits(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, limit := range []int64{mib / 2, 8 * mib, 40 * mib, 64 * mib, 800 * mib} {
		for _, by := range []standing{sender, stranger, holder, operator} {
			most := newMemory(limit).maxFor(by)
			for n := int64(1); n <= limit+largestBody; n += 1 + n/3 {
				for _, n := range []int64{n, min(most, limit), min(most, limit) + 1} {
					idle := newMemory(limit)
					f := idle.lease("a", by).resize(n)
					if (f == nil) != (n <= most) || f != nil && (f.Status != 413 || f.RetryAfter != 0) {
						t.Fatalf("%d of %d bytes alone, standing %d, at most %d: %v", n, limit, by, most, f)
					}
					busy := newMemory(limit)
					busy.held = limit
					if f := busy.lease("a", by).resize(n); by != operator && n <= most && (f == nil || f.Status != 429 || f.RetryAfter == 0) {
						t.Fatalf("%d of %d bytes while the node is full, standing %d: %v", n, limit, by, f)
					}
				}
			}
		}
	}
}

// Clients ask for large answers and do not read them.
func TestUnreadAnswers_areLimitedInMemory(t *testing.T) {
	t.Parallel()
	const size = 24 << 20 // more than the buffers of both ends
	s := start(t, &fake{guests: true, search: func(_ context.Context, _ catalog.Viewer, req search.Request) (*search.Response, error) {
		r := searchResponse()
		if req.Query == "a" {
			r.Files[0].Content = bytes.Repeat([]byte("x"), size)
		}
		return r, nil
	}}, func(o *Options) { o.Limits = Limits{Memory: 8 * size, PerClient: 100} })
	var conns []net.Conn
	for i := range 2 {
		conns = append(conns, dial(t, s, searchA))
		waiting := float64((i + 1) * size)
		eventually(t, func() bool { held := s.memory.used(); return held >= waiting && held < waiting+size/2 })
	}
	resp, body := askAs(t, s, "", "POST", "/api/search", `{"query":"a"}`)
	if resp.StatusCode != 429 || failureOf(t, "beyond the budget", resp.StatusCode, body) != codeRateLimited {
		t.Errorf("a large answer more: %d", resp.StatusCode)
	}
	if resp, _ := askAs(t, s, "", "POST", "/api/search", `{"query":"light"}`); resp.StatusCode != 200 {
		t.Errorf("a light search beside them: %d", resp.StatusCode)
	}
	for _, c := range conns {
		c.Close()
	}
	eventually(t, func() bool { return s.memory.used() == 0 })
	if got := s.memory.used(); got != 0 {
		t.Errorf("after the clients left %v bytes are held", got)
	}
	resp, body = askAs(t, s, "", "POST", "/api/search", `{"query":"a"}`)
	if resp.StatusCode != 200 || len(body) < size || resp.ContentLength != int64(len(body)) {
		t.Errorf("then: %d, %d bytes of %d", resp.StatusCode, len(body), resp.ContentLength)
	}
}

func TestRequest_internalHeadersOfClientsAreRemoved(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts())
	conn := dial(t, s, "GET /api/version HTTP/1.1\r\nHost: localhost\r\n"+headerBodyLength+": 5\r\nConnection: close\r\n\r\n")
	text, _ := io.ReadAll(conn)
	if !bytes.HasPrefix(text, []byte("HTTP/1.1 200")) {
		t.Errorf("%q", text)
	}
}

func TestRateLimits_countTheClientBehindATrustedProxy(t *testing.T) {
	t.Parallel()
	limits := func(o *Options) { o.Limits = Limits{Rate: 0.0001} }
	behind := start(t, (&fake{guests: true}).parts(), limits, func(o *Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/24")}
	})
	open := start(t, (&fake{guests: true}).parts(), limits)
	for _, c := range []struct {
		s       *Server
		forward string
		status  int
	}{
		{behind, "192.0.2.1", 200},
		{behind, "192.0.2.2", 200},
		{behind, "192.0.2.1", 429},
		{behind, "192.0.2.9, 192.0.2.1", 429},           // the client's own entry does not count
		{behind, "192.0.2.3, 10.0.0.7", 200},            // two proxies in a row
		{behind, "192.0.2.3,10.0.0.8 , 127.0.0.1", 429}, // three
		{behind, "2001:db8::1", 200},                    //
		{behind, "192.0.2.66, unknown, 192.0.2.1", 429}, //
		{open, "192.0.2.1", 200},                        // no header is trusted
		{open, "192.0.2.2", 429},
	} {
		req, err := http.NewRequest("GET", "http://"+c.s.Addr().String()+"/api/repos", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", c.forward)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("X-Forwarded-For %q: %d, want %d", c.forward, resp.StatusCode, c.status)
		}
	}
}

// lines is a log that sends each line on a channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// The log tells an operator once that a proxy is not trusted.
func TestUntrustedProxy_isLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trusted []netip.Prefix
		header  []string
		want    int
	}{
		"no proxy":        {nil, nil, 0},
		"not trusted":     {nil, []string{"X-Forwarded-For", "192.0.2.1"}, 1},
		"another trusted": {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, []string{"X-Forwarded-For", "192.0.2.1"}, 1},
		"trusted":         {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, []string{"X-Forwarded-For", "192.0.2.1"}, 0},
	} {
		log := make(lines, 100)
		s := start(t, (&fake{guests: true}).parts(), func(o *Options) {
			o.TrustedProxies, o.Log = c.trusted, slog.New(slog.NewTextHandler(log, nil))
		})
		for range 3 {
			fetch(t, s, "GET", "/api/version", c.header...)
		}
		told := 0
		for range len(log) {
			if strings.Contains(<-log, "--trusted-proxies") {
				told++
			}
		}
		if told != c.want {
			t.Errorf("%s: told %d times, want %d", name, told, c.want)
		}
	}
}
