package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// tagger finds symbols with universal-ctags, where that is installed.
type tagger struct {
	tag     shard.Tagger
	name    string // kind and version; "" without
	warning string
	close   func()
}

// newTagger looks for the program. Without it a node works, but for symbols,
// and says so.
func newTagger(n *Node) tagger {
	pool, err := symbol.Open(context.Background(), symbol.Options{Command: n.opt.Ctags, Processes: n.opt.Cores})
	switch {
	case errors.Is(err, symbol.ErrOff):
		return tagger{}
	case err != nil:
		n.opt.Log.Warn("symbols are not indexed", "error", err)
		return tagger{warning: fmt.Sprintf("symbols are not indexed: %v", err)}
	}
	t := tagger{name: pool.Version(), close: pool.Close}
	t.tag = func(ctx context.Context, path, language string, content []byte, use func(shard.Definition)) error {
		err := pool.Tag(ctx, path, language, content, func(s symbol.Symbol) { use(shard.Definition(s)) })
		if err != nil && ctx.Err() == nil {
			n.opt.Log.Warn("file has no symbols", "error", err)
		}
		return err
	}
	return t
}

// runTags keeps the pool for as long as jobs may use it.
func (n *Node) runTags(ctx context.Context) error { <-ctx.Done(); return nil }
