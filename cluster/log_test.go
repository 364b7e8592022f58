package cluster

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestRaftLogger_mapsLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		say  func(l *raftLog)
		want string // the log level; "": nothing at the usual level
	}{
		{func(l *raftLog) { l.Info("entering follower state") }, ""},
		{func(l *raftLog) { l.Warn("failed to get previous log", "previous-index", 7) }, ""},
		{func(l *raftLog) { l.Warn("appendEntries rejected, sending older logs") }, ""},
		{func(l *raftLog) { l.Warn("no known peers, aborting election") }, ""},
		{func(l *raftLog) { l.Warn("heartbeat timeout reached, starting election") }, "INFO"},
		{func(l *raftLog) { l.Error("failed to heartbeat to", "peer", "n2") }, ""},
		{func(l *raftLog) { l.Error("failed to store snapshot") }, "WARN"},
		{func(l *raftLog) {
			l.Error("failed to decode incoming command", "error", &net.OpError{Op: "read", Err: syscall.ECONNRESET})
		}, ""},
		{func(l *raftLog) {
			l.Error("failed to decode incoming command", "error", errors.New("unknown rpc type 9"))
		}, "WARN"},
	} {
		var out bytes.Buffer
		c.say(newRaftLog(slog.New(slog.NewTextHandler(&out, nil))).(*raftLog))
		if got := out.String(); (c.want == "") != (got == "") || !strings.Contains(got, "level="+c.want) && c.want != "" {
			t.Errorf("got %q, want level %q", got, c.want)
		}
	}
}

// A node that finds no other node cannot know why. It names both causes that its operator can
// check.
func TestFormation_withoutOtherNodesNamesTheLikelyCauses(t *testing.T) {
	t.Parallel()
	err := (&formation{expect: 1}).tryToFound(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "--join") || !strings.Contains(err.Error(), "its cluster key is another") {
		t.Errorf("%v", err)
	}
}
