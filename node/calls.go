package node

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/job"
)

// The calls that nodes make on each other, beside searches and reads of
// mirrors.
var (
	searchedCall = call.To[call.Nothing, map[uint64]time.Duration]("searched-units")
	pushesCall   = call.To[job.Signal, call.Nothing]("pushes")
)

// tellPushes tells a node what a code host says of pushes.
func (n *Node) tellPushes(ctx context.Context, node string, s *job.Signal) error {
	_, err := pushesCall.Ask(ctx, n.cluster, node, s)
	return err
}

func (n *Node) servePushes(_ context.Context, s *job.Signal) (*call.Nothing, error) {
	n.jobs.Poller.Hear(s)
	return new(call.Nothing), nil
}

// askSearched asks a node how long it searched each unit so far.
func (n *Node) askSearched(ctx context.Context, node string) (map[uint64]time.Duration, error) {
	var nothing call.Nothing
	used, err := searchedCall.Ask(ctx, n.cluster, node, &nothing)
	if err != nil {
		return nil, err
	}
	return *used, nil
}

func (n *Node) serveSearched(context.Context, *call.Nothing) (*map[uint64]time.Duration, error) {
	used := n.searched.Used()
	return &used, nil
}
