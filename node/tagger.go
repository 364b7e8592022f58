package node

import (
	"context"

	"github.com/shoalsearch/shoal/shard"
)

// tagger finds symbols with universal-ctags, where that is installed.
type tagger struct {
	tag     func(ctx context.Context, path, language string, content []byte) ([]shard.Definition, error)
	name    string // kind and version; "" without
	warning string
	close   func()
}

func newTagger(n *Node) tagger { return tagger{} }

func (n *Node) runTags(ctx context.Context) error { <-ctx.Done(); return nil }
