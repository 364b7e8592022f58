package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// supervisor notifies the systemd that started this process: when the node serves, when it stops,
// and that the API still answers.
type supervisor struct {
	socket string        // systemd's socket; "" means no systemd
	every  time.Duration // pause between two signs of life; 0 sends none
	log    *slog.Logger
}

// supervisorOf returns the supervisor that systemd's variables for Type=notify and WatchdogSec= describe.
func supervisorOf(getenv func(string) string, log *slog.Logger) supervisor {
	s := supervisor{socket: getenv("NOTIFY_SOCKET"), log: log}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil {
		s.every = time.Duration(usec) * time.Microsecond / 2
	}
	return s
}

// notify sends a state, such as READY=1, to systemd. It logs an error.
func (s supervisor) notify(state string) {
	if s.socket == "" {
		return
	}
	c, err := net.Dial("unixgram", s.socket)
	if err == nil {
		_, err = c.Write([]byte(state))
		_ = c.Close() // the datagram is already sent, or not
	}
	if err != nil {
		s.log.Warn("systemd was not notified", "state", state, "error", err)
	}
}

// reportAlive checks the API at intervals until ctx ends, and notifies systemd each time that it
// answers. If the notices stop, systemd kills and restarts the node.
func (s supervisor) reportAlive(ctx context.Context, addr string, secure bool) {
	for s.socket != "" && s.every > 0 && clock.Wait(ctx, s.every) {
		if err := checkAlive(ctx, addr, secure, s.every); err != nil {
			s.log.Warn("this node does not answer itself: systemd gets no sign of life", "error", err)
			continue
		}
		s.notify("WATCHDOG=1")
	}
}

// checkAlive returns an error unless the API of this process answers at addr within the timeout.
func checkAlive(ctx context.Context, addr string, secure bool, timeout time.Duration) error {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+addr+"/livez", nil)
	if err != nil {
		return err
	}

	// Do not verify the certificate: it is this process's own, and for other names.
	c := http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := c.Do(req)
	if refusal := (*net.OpError)(nil); errors.As(err, &refusal) && refusal.Op == "remote error" {
		return nil // the API answers, but has no certificate yet
	}
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
