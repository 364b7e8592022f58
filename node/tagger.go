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
	t.tag = func(ctx context.Context, texts []shard.Untagged, use func(shard.Definition), done func(int, error)) error {
		files := make([]symbol.File, len(texts))
		for i, t := range texts {
			files[i] = symbol.File(t)
		}
		return pool.Tag(ctx, files, func(s symbol.Symbol) { use(shard.Definition(s)) }, func(i int, err error) {
			if err != nil {
				n.opt.Log.Warn("file has no symbols", "error", err)
			}
			done(i, err)
		})
	}
	return t
}

// runTags keeps the pool for as long as jobs may use it.
func (n *Node) runTags(ctx context.Context) error { <-ctx.Done(); return nil }
