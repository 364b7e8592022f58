package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/catalog/codec"
)

// unable returns the error with which this node stops because it cannot apply an entry or snapshot.
// If a newer version wrote it, the error is final: a restart would not help.
func unable(err error) error {
	err = fmt.Errorf("cluster: this node stops, since it cannot apply what the cluster has agreed on: %w", err)
	var level *catalog.LevelError
	if errors.As(err, &level) || errors.Is(err, codec.ErrNewer) {
		return refused(err.Error())
	}
	return err
}

// refusedSnapshot returns why this program cannot apply a snapshot of this node, or nil.
func (m *machine) refusedSnapshot() error {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	return m.newer
}

// formPatience is how long a new cluster waits for its nodes before it raises the level.
const formPatience = 10 * time.Minute

// raiseLevel raises the level of the catalog, on the leader, once every member can apply it.
func (w *watch) raiseLevel(ctx context.Context) {
	v := w.replica.view()
	present := v.Level().Number
	if present >= w.build.Highest() || !w.replica.leading.Load() {
		return
	}

	// The founder is a member before the others. If it raised the level now, nodes with an older
	// program could never join.
	members := 0
	for range v.Members() {
		members++
	}
	if members < w.expect && clock.Since(w.started) < w.scaled(formPatience) {
		return
	}

	// A node that has joined but not announced itself may have any version.
	strange := func(s raft.Server) bool { return v.Member(string(s.ID)) == nil }
	if slices.ContainsFunc(w.replica.servers(), strange) {
		return
	}

	next := min(v.Raisable(), w.build.Highest())
	if next <= present {
		return
	}
	version := w.build.Versions[next-1]
	if _, err := w.proposer.propose(ctx, &catalog.RaiseLevel{Level: next, Version: version}); err != nil {
		w.log.Info("the level of the catalog was not raised", "level", next, "error", err)
		return
	}
	w.log.Info("the level of the catalog was raised", "level", next, "version", version)
}
