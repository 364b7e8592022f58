package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"syscall"

	"github.com/hashicorp/go-hclog"
)

// raftLog writes raft's log lines to a slog.Logger, one level lower: what is news to raft is detail
// to an operator.
type raftLog struct {
	hclog.Logger // implements what is not overridden
	log          *slog.Logger
}

func newRaftLog(log *slog.Logger) hclog.Logger {
	return &raftLog{hclog.NewNullLogger(), log.With("part", "raft")}
}

func (l *raftLog) write(level slog.Level, msg string, args []any) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(f[0].(string), f[1:]...)
		}
	}
	l.log.Log(context.Background(), level, msg, args...)
}

// Trace implements hclog.Logger.
func (l *raftLog) Trace(string, ...any) {}

// Debug implements hclog.Logger.
func (l *raftLog) Debug(string, ...any) {}

// Info implements hclog.Logger.
func (l *raftLog) Info(msg string, args ...any) { l.write(slog.LevelDebug, msg, args) }

// routine lists warnings of raft that are normal at joins and restarts: a returning follower gets
// what it missed, and a node without a cluster starts no election.
var routine = []string{
	"failed to get previous log", "previous log term mis-match", "appendEntries rejected, sending older logs",
	"no known peers, aborting election", "not part of stable configuration, aborting election",
}

// Warn implements hclog.Logger.
func (l *raftLog) Warn(msg string, args ...any) {
	level := slog.LevelInfo
	if slices.Contains(routine, msg) {
		level = slog.LevelDebug
	}
	l.write(level, msg, args)
}

// Error implements hclog.Logger. Raft retries an absent node several times a second and logs each
// failure. Such lines become debug lines: member health already shows the absence.
func (l *raftLog) Error(msg string, args ...any) {
	for _, a := range args {
		err, ok := a.(error)
		if !ok {
			continue
		}

		// These errors come from a normal stop of this node or of another one.
		if errors.Is(err, net.ErrClosed) || msg == "failed to decode incoming command" && errors.Is(err, syscall.ECONNRESET) {
			l.write(slog.LevelDebug, msg, args)
			return
		}
	}

	switch msg {
	case "failed to appendEntries to", "failed to heartbeat to", "failed to make requestVote RPC", "failed to make preVote RPC":
		l.write(slog.LevelDebug, msg, args)
	default:
		l.write(slog.LevelWarn, msg, args)
	}
}

// Named implements hclog.Logger.
func (l *raftLog) Named(string) hclog.Logger { return l }

// With implements hclog.Logger.
func (l *raftLog) With(args ...any) hclog.Logger {
	return &raftLog{l.Logger, l.log.With(args...)}
}
