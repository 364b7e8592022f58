package node

import (
	"context"

	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/job"
)

// Calls between nodes, besides searches and reads of mirrors.
var (
	pushesCall = call.To[job.Signal, call.Nothing]("pushes")
)

// tellPushes sends the pushes that a code host reported to another node.
func (n *Node) tellPushes(ctx context.Context, node string, s *job.Signal) error {
	_, err := pushesCall.Ask(ctx, n.cluster, node, s)
	return err
}

func (n *Node) servePushes(_ context.Context, s *job.Signal) (*call.Nothing, error) {
	n.jobs.Poller.Hear(s)
	return new(call.Nothing), nil
}
