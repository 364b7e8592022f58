package search

import (
	"context"
	"testing"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// loop is a network with one node.
type loop struct{ h cluster.Handler }

func (l *loop) Self() string { return "a" }
func (l *loop) Call(ctx context.Context, _, _ string, in []byte) ([]byte, error) {
	return l.h(ctx, cluster.Peer{}, in)
}
func (l *loop) Handle(_ string, h cluster.Handler) { l.h = h }
func (l *loop) Lacks(string) bool                  { return false }

// BenchmarkLeafCall measures encoding and decoding a leaf call, without search and network.
func BenchmarkLeafCall(b *testing.B) {
	registerQueries()
	net := &loop{}
	leafCall.Serve(net, func(_ context.Context, req *leafRequest) (*leafResponse, error) {
		return &leafResponse{Verdicts: make([]verdict, len(req.Groups)), Index: 7, Stats: shard.Stats{}}, nil
	})
	req := &leafRequest{Q: queryBox{&query.And{Subs: []query.Q{&query.Text{}, &query.Text{}}}}, Groups: make([]leafGroup, 3), Matches: 100, Shards: 9}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := leafCall.Ask(b.Context(), net, "b", req); err != nil {
			b.Fatal(err)
		}
	}
}
