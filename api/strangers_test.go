package api

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// strangerCount is the number of requests of TestRequestsOfStrangers_doNotGrowTheRaftLog.
var strangerCount = flag.Int("strangers", 1200, "requests of strangers whose entries of the log are counted")

// entrance is a node without anonymous access, with a repository, people and a provider.
type entrance struct {
	t    *testing.T
	n    *nodetest.Node
	s    *Server
	reg  *prometheus.Registry
	addr string
}

func newEntrance(t *testing.T) *entrance {
	t.Helper()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n"})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	n := nodetest.Start(t, nodetest.Config{
		Env: map[string]string{"PERMISSION_SYNC_ENABLED": "true"},
		File: fmt.Sprintf(`{
			"connections": {"local": {"type": "git", "url": "file://%s/*", "enforcePermissions": true}},
			"identityProviders": {"corp": {"provider": "oidc", "purpose": "sso", "clientId": {"env": "NONE"}, "clientSecret": {"env": "NONE"}, "issuer": {"env": "NONE"}}}}`, dir),
		Edit: func(o *node.Options) { o.BaseURL, o.Documents = "http://"+addr, noWeb{} },
	})
	n.WaitIndexed(1)
	reg := prometheus.NewRegistry()
	s := start(t, partsOf(n.Node), func(o *Options) { o.Listen, o.Registerer = addr, reg })
	f := &front{t: t, base: "http://" + addr, fleet: &nodetest.Fleet{Nodes: []*nodetest.Node{n}}}
	n.Wait("what a young cluster writes by itself", f.grownUp)
	f.person("ann@example.com")
	return &entrance{t, n, s, reg, addr}
}

// panics returns the number of recovered panics.
func (e *entrance) panics() (n float64) {
	families, err := e.reg.Gather()
	if err != nil {
		e.t.Fatal(err)
	}
	found := false
	for _, f := range families {
		if f.GetName() == "shoal_http_panics_total" {
			n, found = f.GetMetric()[0].GetCounter().GetValue(), true
		}
	}
	if !found {
		e.t.Error("panics are not counted")
	}
	return n
}

// quiet waits until the log has stopped growing, and returns its length.
func (e *entrance) quiet() uint64 {
	last, since := uint64(0), time.Now()
	e.n.Wait("a quiet log", func() error {
		if index := e.n.Status().CatalogIndex; index != last {
			last, since = index, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return fmt.Errorf("index %d a moment ago", last)
		}
		return nil
	})
	return last
}

// wire is a stranger's connection. It reconnects if the node closed it.
type wire struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
}

// send sends bytes, perhaps half a request, and reads the answer; 0 if the node closed without
// one.
func (w *wire) send(raw string, half bool) (status int, body string, err error) {
	if w.conn == nil {
		if w.conn, err = net.Dial("tcp", w.addr); err != nil {
			return 0, "", err
		}
		w.in = bufio.NewReader(w.conn)
	}
	_ = w.conn.SetDeadline(time.Now().Add(20 * time.Second))

	// A node that refuses a head may close early. For an incomplete request it waits for the
	// rest.
	_, _ = io.WriteString(w.conn, raw)
	if half {
		_ = w.conn.(*net.TCPConn).CloseWrite()
	}
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(w.in, &http.Request{Method: method})
	for err == nil && resp.StatusCode == 100 {
		resp, err = http.ReadResponse(w.in, &http.Request{Method: method})
	}
	if err != nil {
		w.close()
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() {
			return 0, "", err
		}
		return 0, "", nil
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.Close || half {
		w.close()
	}
	return resp.StatusCode, string(text), nil
}

func (w *wire) close() {
	w.conn.Close()
	w.conn = nil
}

// request returns a request in wire format.
func request(method, target, body string, header ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, "{host}")
	for i := 0; i+1 < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
	}
	if body != "" || method == "POST" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return b.String() + "\r\n" + body
}

// hostile returns requests in wire format that no client of ours sends. They are odd in every
// part.
func hostile(method, path string) (all []string) {
	const form, js = "application/x-www-form-urlencoded", "application/json"
	at := func(part string) string { // the path with its {parts}
		pieces := strings.Split(strings.TrimSuffix(path, "*"), "/")
		for i := range pieces {
			if strings.HasPrefix(pieces[i], "{") {
				pieces[i] = part
			}
		}
		return strings.Join(pieces, "/")
	}
	plain := at("x")

	for _, m := range []string{method, "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW", "get", strings.Repeat("M", 300)} {
		all = append(all, request(m, plain, ""))
	}
	for _, part := range []string{"%00", "%ff%fe", "..%2f..%2fetc", strings.Repeat("a", 4000), "%E2%80%AE", "'%22%3Cscript%3E", "%2e%2e", "%", "%zz", "1e309", "-1"} {
		all = append(all, request(method, at(part), ""))
	}
	for _, query := range []string{"?", "?=&=&&", "?repo=%00", "?repo=%ff", "?q=" + strings.Repeat("%28", 3000), "?perPage=-1&page=99999999999999999999", "?next=//evil.example", "?link=" + strings.Repeat("0", 64), "?code=x&state=" + strings.Repeat("s", 5000), "?response_type=code&client_id=https://127.0.0.1/x", strings.Repeat("?a[]=1&", 900)} {
		all = append(all, request(method, plain+query, ""))
	}
	for _, kind := range []string{"", js, form, "text/plain", "multipart/form-data; boundary=x", "application/json; charset=utf-7", "\xff"} {
		for _, body := range []string{"", "{}", "[]", "null", `"x"`, "1e999", "{", strings.Repeat("[", 9000), "\x00\xff\xfe", "a=%zz&b=%", `{"query":1,"repo":[],"grant_type":{}}`, "--x\r\n\r\n", strings.Repeat("k=v&", 4000)} {
			all = append(all, request(method, plain, body, "Content-Type", kind))
		}
	}
	for _, token := range []string{"", " ", "x", strings.Repeat("A", 20_000), "shoal_" + strings.Repeat("0", 64), "shoal_at_" + strings.Repeat("A", 200), "shoal_rt_AAAA", "\xff\x01", "eyJhbGciOiJub25lIn0.e30."} {
		all = append(all,
			request(method, plain, "", "Authorization", "Bearer "+token), request(method, plain, "", "Authorization", "Basic "+token),
			request(method, plain, "", "X-Sourcebot-Api-Key", token), request(method, plain, "", "Cookie", "shoal="+token+"; __Host-shoal="+token+"; shoal-login-x="+token))
	}
	for _, h := range [][]string{
		{"Content-Encoding", "gzip"}, {"Expect", "100-continue"}, {"Expect", "nonsense"}, {"X-Forwarded-For", "999.1.1.1, ::, \xff"}, {"Origin", "null"}, {"Origin", "http://\xff"},
		{"Sec-Fetch-Site", "cross-site"}, {"Accept", strings.Repeat("*/*,", 2000)}, {"Range", "bytes=0-,-1"}, {"If-None-Match", strings.Repeat("\"x\",", 2000)}, {"Accept-Encoding", "\x00"},
		{"Mcp-Session-Id", "x"}, {"Last-Event-ID", "-1"}, {"Upgrade", "websocket", "Connection", "Upgrade"}, {"X-Huge", strings.Repeat("h", 200_000)}, {"Te", "trailers"}, {"Host", "evil.example"},
	} {
		all = append(all, request(method, plain, "{}", append([]string{"Content-Type", js}, h...)...))
	}
	return all
}

// broken returns incomplete or invalid requests.
func broken(method, plain string) []string {
	head := method + " " + plain + " HTTP/1.1\r\nHost: {host}\r\n"
	return []string{
		head + "Content-Length: 99999999999\r\n\r\n", head + "Content-Length: -1\r\n\r\n", head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", head + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		head + ": x\r\n\r\n", head + "A B: x\r\n\r\n", method + " " + plain + " HTTP/9.9\r\n\r\n", method + " " + plain + "\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\r\n\r\n\r\n",
	}
}

// No request of a stranger to any route makes the node fail, reveals internals, or writes to the
// raft log.
func TestRequestsOfStrangers_neverMakeANodeFail(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	before := e.quiet()

	var mu sync.Mutex
	wrong, sent, statuses := 0, 0, map[int]int{}
	work := make(chan *route)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			w := &wire{addr: e.addr}
			for r := range work {
				whole := hostile(r.method, r.name)
				for i, raw := range slices.Concat(whole, broken(r.method, strings.NewReplacer("{", "", "}", "", "*", "x").Replace(r.name))) {
					if half := i >= len(whole); half && w.conn != nil {
						w.close()
					}
					status, body, err := w.send(strings.ReplaceAll(raw, "{host}", e.addr), i >= len(whole))
					leak := strings.Contains(body, "goroutine ") || strings.Contains(body, e.n.Dir) || strings.Contains(body, "local/app") || strings.Contains(body, "ann@example.com")
					mu.Lock()
					sent++
					statuses[status]++
					if bad := err != nil || leak || status >= 500 && status != 501; bad {
						if wrong++; wrong <= 20 {
							t.Errorf("%s %s: status %d, %v, to %.200q: %.300q", r.method, r.name, status, err, raw, body)
						}
					}
					mu.Unlock()
				}
			}
			if w.conn != nil {
				w.close()
			}
		})
	}
	count := 0
	for _, r := range e.routes() {
		count++
		work <- r
	}
	close(work)
	wg.Wait()

	if panics := e.panics(); panics != 0 {
		t.Errorf("%v panics were caught", panics)
	}
	if after := e.quiet(); after != before {
		t.Errorf("%d requests of strangers are %d entries of the log", sent, after-before)
	}
	if count < 100 || statuses[401] == 0 || statuses[400] == 0 || statuses[200] == 0 {
		t.Errorf("%d routes, statuses %v: that is not what was meant to be sent", count, statuses)
	}
	t.Logf("%d requests to %d routes: %v", sent, count, statuses)
}

// routes returns all routes of the node.
func (e *entrance) routes() (all []*route) {
	for _, list := range e.s.routes.exact {
		all = append(all, list...)
	}
	all = slices.Concat(all, e.s.routes.patterns, e.s.routes.prefixes)
	slices.SortFunc(all, func(a, b *route) int { return strings.Compare(a.name+a.method, b.name+b.method) })
	return all
}

// strange makes requests of strangers. Each differs from all before, so that no cache helps.
var strange = []func(random string) string{
	func(r string) string { return request("GET", "/api/repos", "", "Authorization", "Bearer shoal_"+r) },
	func(r string) string {
		return request("POST", "/api/search", `{"query":"x"}`, "Authorization", "Bearer shoal_"+r, "Content-Type", "application/json")
	},
	func(r string) string { return request("GET", "/repos", "", "Cookie", "shoal="+r) },
	func(r string) string { return request("GET", "/api/status", "") },
	func(r string) string { return request("GET", "/api/audit", "", "Authorization", "Bearer shoal_at_"+r) },
	func(r string) string {
		return request("POST", "/api/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer shoal_at_"+r, "Content-Type", "application/json")
	},
	func(r string) string {
		return request("POST", "/oauth/register", `{"client_name":"`+r+`","redirect_uris":["https://`+r[:20]+`.example/"]}`, "Content-Type", "application/json")
	},
	func(r string) string {
		return formTo("/oauth/token", "grant_type=refresh_token&refresh_token=shoal_rt_"+r)
	},
	func(r string) string {
		return formTo("/oauth/token", "grant_type=authorization_code&code=shoal_ac_"+r+"&code_verifier="+r)
	},
	func(r string) string { return formTo("/oauth/revoke", "token=shoal_rt_"+r) },
	func(r string) string {
		return request("GET", "/oauth/authorize?response_type=code&client_id=https://"+r[:20]+".example/c", "")
	},
	func(r string) string { return formTo("/login", "email="+r[:12]+"%40example.com&password="+r) },
	func(r string) string { return formTo("/login", "email=ann%40example.com&password="+r) },
	func(r string) string { return formTo("/login", "key=shoal_"+r) },
	func(r string) string { return formTo("/login", "with=corp&next=/"+r) },
	func(r string) string { return formTo("/logout", "") },
	func(r string) string { return request("GET", "/join?link="+r, "") },
	func(r string) string { return formTo("/join", "link="+r+"&password="+r+"&again="+r) },
	func(r string) string {
		return request("GET", "/api/auth/callback/corp?code=x&state="+r[:32], "", "Cookie", "shoal-login-"+r[:8]+"="+r)
	},
	func(r string) string {
		return request("POST", "/api/webhook/local", `{"ref":"`+r+`"}`, "Content-Type", "application/json", "X-Hub-Signature-256", "sha256="+r)
	},
	func(r string) string { return request("POST", "/api/webhook/"+r, `{}`, "X-Gitlab-Token", r) },
	func(r string) string { return request("DELETE", "/api/keys/"+r[:16], "") },
	func(r string) string { return request("GET", "/"+r, "") },
	func(r string) string { return request("GET", "/metrics", "") },
}

func formTo(target, form string) string {
	return request("POST", target, form, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
}

// The raft log does not grow, however many requests strangers send. -strangers is their number:
// make strangers sends a million.
func TestRequestsOfStrangers_doNotGrowTheRaftLog(t *testing.T) {
	t.Parallel()
	e := newEntrance(t)
	before := e.quiet()
	began := time.Now()

	var next, failures atomic.Int64
	var mu sync.Mutex
	statuses := map[string]int{}
	var wg sync.WaitGroup
	for range min(300, 1+*strangerCount/10) { // they wait for the leader together
		wg.Go(func() {
			w := &wire{addr: e.addr}
			for {
				i := int(next.Add(1)) - 1
				if i >= *strangerCount {
					break
				}
				var random [32]byte
				rand.Read(random[:])
				raw := strange[i%len(strange)](hex.EncodeToString(random[:]))
				status, _, err := w.send(strings.ReplaceAll(raw, "{host}", e.addr), false)
				line, _, _ := strings.Cut(raw, "\r\n")
				line, _, _ = strings.Cut(line, "?")
				if i%len(strange) == 20 || i%len(strange) >= 21 {
					line = strconv.Itoa(i % len(strange)) // its path is random
				}
				if err != nil || status >= 500 && status != 503 {
					if failures.Add(1) <= 10 {
						t.Errorf("%s: %d, %v", line, status, err)
					}
				}
				mu.Lock()
				statuses[fmt.Sprintf("%s: %d", line, status)]++
				mu.Unlock()
			}
			if w.conn != nil {
				w.close()
			}
		})
	}
	wg.Wait()
	took := time.Since(began)

	after := e.quiet()
	if after != before {
		t.Errorf("%d requests of strangers are %d entries of the log", *strangerCount, after-before)
	}
	fmt.Printf("strangers: %d requests in %s (%.0f a second), index %d before and %d after\n", *strangerCount, took.Round(time.Millisecond), float64(*strangerCount)/took.Seconds(), before, after)
	for line, n := range statuses {
		t.Logf("%7d %s", n, line)
	}
}
