package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// systemd hears that the node serves. While the node answers itself, it sends a keep-alive in
// each half of the watchdog's time.
func TestSystemd_getsKeepAlivesWhileTheNodeAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"answers": {func(http.ResponseWriter, *http.Request) {}, "WATCHDOG=1"},
		"hangs":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(t.TempDir(), "notify")
			heard, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer heard.Close()
			env := map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "100000"}
			s := supervisorOf(func(name string) string { return env[name] }, slog.New(slog.DiscardHandler))
			if s.every != 50*time.Millisecond {
				t.Errorf("a sign of life each %v", s.every)
			}

			s.notify("READY=1")
			if got := hear(t, heard, time.Minute); got != "READY=1" {
				t.Errorf("heard %q", got)
			}
			api := httptest.NewServer(tt.handler)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				s.reportAlive(ctx, strings.TrimPrefix(api.URL, "http://"), false)
			}()
			most := time.Minute
			if tt.want == "" {
				most = 300 * time.Millisecond
			}
			if got := hear(t, heard, most); got != tt.want {
				t.Errorf("heard %q, want %q", got, tt.want)
			}
			stop()
			<-ended
			api.Close()
		})
	}
}

// hear returns the next state, or "" after a time without one.
func hear(t *testing.T, c net.Conn, most time.Duration) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(most)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, _ := c.Read(b) // nothing at the deadline
	return string(b[:n])
}
