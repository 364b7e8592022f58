package api

import (
	"context"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/node"
)

// Options is how a server is started.
type Options struct {
	Listen   string                // host:port; port 0 picks one
	OwnerKey func(key string) bool // recognises the operator's own credential; nil for none
	Version  string
	Log      *slog.Logger        // nil discards
	Gatherer prometheus.Gatherer // what /metrics shows; nil for nothing
}

// Server serves the API of one node. Make it with New, then call Run once.
type Server struct {
	node *node.Node
	opt  Options
	ln   net.Listener
}

// New listens on the address of opt and wires the routes. Nothing is
// answered before Run.
func New(n *node.Node, opt Options) (*Server, error) {
	ln, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		return nil, err
	}
	return &Server{node: n, opt: opt, ln: ln}, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Run serves until ctx ends, lets running requests finish, and returns nil
// when it stopped because of ctx.
func (s *Server) Run(ctx context.Context) error {
	<-ctx.Done()
	return s.ln.Close()
}
