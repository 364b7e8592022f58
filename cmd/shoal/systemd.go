package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// supervisor is the systemd that started this process. It learns when the node
// serves and when it stops, and that the API still answers.
type supervisor struct {
	socket string        // where it listens; "" = nobody does
	every  time.Duration // how often it wants a sign of life; 0 = never
	log    *slog.Logger
}

// supervisorOf reads what systemd puts into the environment of a unit with
// Type=notify and WatchdogSec=.
func supervisorOf(getenv func(string) string, log *slog.Logger) supervisor {
	s := supervisor{socket: getenv("NOTIFY_SOCKET"), log: log}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil {
		s.every = time.Duration(usec) * time.Microsecond / 2
	}
	return s
}

// say sends one state, as READY=1.
func (s supervisor) say(state string) {
	if s.socket == "" {
		return
	}
	c, err := net.Dial("unixgram", s.socket)
	if err == nil {
		_, err = c.Write([]byte(state))
		_ = c.Close() // a datagram is sent or not
	}
	if err != nil {
		s.log.Warn("systemd was not notified", "state", state, "error", err)
	}
}

// watch gives signs of life until ctx ends, as long as the API at an address
// answers. Without one systemd kills the node and starts it again.
func (s supervisor) watch(ctx context.Context, addr string, secure bool) {
	for s.socket != "" && s.every > 0 && clock.Wait(ctx, s.every) {
		if err := answers(ctx, addr, secure, s.every); err != nil {
			s.log.Warn("this node does not answer itself: systemd gets no sign of life", "error", err)
			continue
		}
		s.say("WATCHDOG=1")
	}
}

// answers asks the API of this process whether it is alive.
func answers(ctx context.Context, addr string, secure bool, most time.Duration) error {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+addr+"/livez", nil)
	if err != nil {
		return err
	}

	// It is this process that answers: its certificate is for other names.
	c := http.Client{Timeout: most, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
