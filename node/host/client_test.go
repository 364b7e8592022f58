package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// openGitHubAt returns a connection to one organisation of a GitHub server.
func openGitHubAt(t *testing.T, address string, tools Tools) Host {
	t.Helper()
	conn := &config.GitHub{URL: address, Token: standToken, Orgs: []string{"acme"}}
	conn.Name = "work"
	h, err := Open(conn, tools)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// onePage is a list of one repository.
const onePage = `[{"id":1,"full_name":"acme/app"}]`

// Odd HTTP answers are issues, or are read.
func TestHTTPClient_readsUnusualAnswersAndReportsBrokenOnes(t *testing.T) {
	t.Parallel()
	raw := func(text string) func(net.Conn) {
		return func(c net.Conn) { io.WriteString(c, text) }
	}
	for name, c := range map[string]struct {
		answer func(net.Conn)
		listed string
		code   Code // of the refusal
		says   string
	}{
		"HTTP/1.0, ended by the connection": {raw("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + onePage), "acme/app", "", ""},
		"closed behind the head":            {raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n"), "", Unreachable, "cannot be reached"},
		"closed in the middle":              {raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n[{"), "", Unreachable, "cannot be reached"},
		"closed before the head":            {raw(""), "", Unreachable, "cannot be reached"},
		"not HTTP":                          {raw("SSH-2.0-OpenSSH_9.2\r\n"), "", Unreachable, "cannot be reached"},
		"64 MiB and more": {func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
			piece := strings.Repeat(" ", 1<<20)
			for range 65 {
				if _, err := io.WriteString(c, piece); err != nil {
					return
				}
			}
		}, "", InvalidResponse, "larger than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
							c.answer(conn)
						}
					}()
				}
			}()

			rec := &recorder{}
			err = openGitHubAt(t, "http://"+l.Addr().String(), tools(t)).List(t.Context(), rec)
			r := (*Refusal)(nil)
			if c.code == "" && err != nil || c.code != "" && (!errors.As(err, &r) || r.Code != c.code || !strings.Contains(r.Text, c.says)) || rec.names() != c.listed {
				t.Errorf("listed %q: %v", rec.names(), err)
			}
		})
	}
}

// slowTransport is a transport that sends answers in pieces, with a wait before each.
type slowTransport struct {
	answer string
	size   int
	every  time.Duration
}

// RoundTrip implements http.RoundTripper.
func (d slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	here, there := io.Pipe()
	go func() {
		for text := d.answer; text != ""; {
			n := min(d.size, len(text))
			select {
			case <-time.After(d.every):
			case <-r.Context().Done():
				return
			}
			if _, err := io.WriteString(there, text[:n]); err != nil {
				return
			}
			text = text[n:]
		}
		there.Close()
	}()
	stop := context.AfterFunc(r.Context(), func() { there.CloseWithError(context.Cause(r.Context())) })
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: dripBody{here, stop},
	}, nil
}

type dripBody struct {
	*io.PipeReader
	stop func() bool
}

// Close implements io.Closer.
func (b dripBody) Close() error {
	b.stop()
	return b.PipeReader.Close()
}

// A host that sends single bytes does not delay a listing forever, but a long answer at a fair pace
// is read.
func TestHTTPClient_timesOutOnlyForTooSlowAnswers(t *testing.T) {
	const given = 4 * maxAttempts * 75 * time.Second // for a page, its half, a quarter and an eighth
	for name, c := range map[string]struct {
		drip slowTransport
		code Code
		most time.Duration
	}{
		"a byte a second":          {slowTransport{onePage + strings.Repeat(" ", 1<<20), 1, time.Second}, Unreachable, given},
		"a short answer, slowly":   {slowTransport{onePage, 1, time.Second}, "", time.Minute},
		"a long answer, slowly":    {slowTransport{onePage + strings.Repeat(" ", 1<<20), 1 << 10, 2 * time.Second}, "", time.Hour},
		"silence behind the start": {slowTransport{onePage, 4, 2 * time.Minute}, Unreachable, given},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tools := tools(t)
				tools.Transport, tools.Now, tools.Wait = c.drip, time.Now, Pause
				tools.Budgets = NewBudgets(time.Now)
				began := time.Now()
				rec := &recorder{}
				err := openGitHubAt(t, "https://code.example", tools).List(t.Context(), rec)
				r := (*Refusal)(nil)
				if c.code == "" && (err != nil || rec.names() != "acme/app") || c.code != "" && (!errors.As(err, &r) || r.Code != c.code || !strings.Contains(r.Text, "in time")) {
					t.Errorf("listed %q: %v", rec.names(), err)
				}
				if took := time.Since(began); took > c.most {
					t.Errorf("it took %v, want %v at most", took, c.most)
				}
			})
		})
	}
}

// The node's clock may be an hour wrong. Limits are still kept to the second.
func TestHTTPClient_waitsForRateLimitsWithAWrongClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"an hour ahead": time.Hour, "right": 0, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := tools(t)
			ours := tools.Now
			theirs := func() time.Time { return ours().Add(-off) }

			// The limit is used up, and ends five minutes after the first call.
			ends := theirs().Add(5 * time.Minute).Truncate(time.Second)
			for form, limit := range map[string]func(h http.Header){
				"reset": func(h http.Header) {
					h.Set("X-RateLimit-Limit", "5000")
					h.Set("X-RateLimit-Remaining", "0")
					h.Set("X-RateLimit-Reset", fmt.Sprint(ends.Unix()))
				},
				"date": func(h http.Header) { h.Set("Retry-After", ends.Format(http.TimeFormat)) },
			} {
				var mu sync.Mutex
				early := 0
				calls := 0
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					calls++
					w.Header().Set("Date", theirs().UTC().Format(http.TimeFormat))
					w.Header().Set("Content-Type", "application/json")
					if theirs().Before(ends) {
						early++
						limit(w.Header())
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					fmt.Fprint(w, onePage)
				}))
				t.Cleanup(s.Close)

				tools.Budgets = NewBudgets(ours)
				ends = theirs().Add(5 * time.Minute).Truncate(time.Second)
				before := ours()
				rec := &recorder{}
				err := openGitHubAt(t, s.URL, tools).List(t.Context(), rec)
				if waited := ours().Sub(before); err != nil || rec.names() != "acme/app" || early != 1 || waited > 6*time.Minute {
					t.Errorf("%s: listed %q after %v and %d calls that were too early: %v", form, rec.names(), waited, early-1, err)
				}
			}
		})
	}
}

// An app's proof contains the time. A wrong clock costs one more call.
func TestGitHubApp_wrongClockCostsOneCall(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, tools := newAppSite(t)
			ours := tools.Now
			s.now = func() time.Time { return ours().Add(-off) }
			s.says = true

			conn := &config.GitHub{URL: s.URL, Orgs: []string{"acme"}}
			h, err := Open(conn, tools)
			if err != nil {
				t.Fatal(err)
			}
			rec := &recorder{}
			if err := h.List(t.Context(), rec); err != nil || rec.names() != "acme/app" || rec.problems() != "" {
				t.Errorf("listed %q, issues %s: %v", rec.names(), rec.problems(), err)
			}
			if s.refused != 1 {
				t.Errorf("%d proofs were refused, want the first alone", s.refused)
			}
		})
	}
}

// A bad certificate is reported at once, because retries cannot help.
func TestHTTPClient_doesNotRetryABadCertificate(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = quietLog()
	s.StartTLS()
	t.Cleanup(s.Close)
	for name, address := range map[string]string{
		"of an authority that is not known": s.URL,
		"of none, where http is spoken":     strings.Replace(httptestPlain(t), "http://", "https://", 1),
	} {
		tools := tools(t)
		before := tools.Now()
		r := (*Refusal)(nil)
		if err := openGitHubAt(t, address, tools).List(t.Context(), &recorder{}); !errors.As(err, &r) || r.Code != Unreachable {
			t.Errorf("%s: %v", name, err)
		}
		if waited := tools.Now().Sub(before); waited > 0 {
			t.Errorf("%s: it was tried again for %v", name, waited)
		}
	}
}

// httptestPlain returns the address of a server without TLS.
func httptestPlain(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.URL
}

// A time limit shorter than the default counts.
func TestHTTPClient_obeysAShorterTimeout(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	at, _ := url.Parse(s.URL)
	env := map[string]string{"GITLAB_CLIENT_QUERY_TIMEOUT_SECONDS": "2"}
	ts := tools(t)
	ts.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	if c := gitlabClient(ts, at, "c", "", nil); c.timeout != 2*time.Second {
		t.Errorf("the time of a page is %v", c.timeout)
	}

	c := gitlabClient(ts, at, "c", "", func(context.Context) (string, error) { return "", nil })
	c.timeout = 20 * time.Millisecond
	start := time.Now()
	if _, err := c.get(t.Context(), at, new(any)); err == nil || time.Since(start) > headerTimeout/2 {
		t.Errorf("a silent host: %v after %v", err, time.Since(start))
	}
}
