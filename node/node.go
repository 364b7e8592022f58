package node

import (
	"context"
	"errors"
)

// errUnfinished marks what is not wired yet.
var errUnfinished = errors.New("not wired yet")

// Node is one node. Its methods are safe for concurrent use.
type Node struct {
	opt Options
}

// New opens the data directory and wires the parts. On an error nothing is
// left open. The caller must call Run, and Run's end closes everything.
func New(opt Options) (*Node, error) {
	return &Node{opt: opt}, nil
}

// Run serves until ctx ends, then stops in order: new requests are refused,
// running ones drained, jobs stopped, the cluster left, files closed.
func (n *Node) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Authenticate finds the viewer of an API key. It fails with
// ErrUnauthenticated when the key is unknown, revoked or expired.
func (n *Node) Authenticate(ctx context.Context, key string) (Viewer, error) {
	return Viewer{}, errUnfinished
}

// AnonymousAccess reports whether a request without a credential is served
// (FORCE_ENABLE_ANONYMOUS_ACCESS, or settings.enablePublicAccess).
func (n *Node) AnonymousAccess() bool { return false }

// BaseURL is the prefix of every link, without a trailing slash.
func (n *Node) BaseURL() string { return n.opt.BaseURL }

// CreateKey makes an API key. Owners only.
func (n *Node) CreateKey(ctx context.Context, v Viewer, req CreateKeyRequest) (*CreateKeyResponse, error) {
	return nil, errUnfinished
}

// Keys lists the API keys. Owners only.
func (n *Node) Keys(ctx context.Context, v Viewer, req KeysRequest) (*KeysResponse, error) {
	return nil, errUnfinished
}

// RevokeKey ends an API key. Owners only.
func (n *Node) RevokeKey(ctx context.Context, v Viewer, req RevokeKeyRequest) (*RevokeKeyResponse, error) {
	return nil, errUnfinished
}
