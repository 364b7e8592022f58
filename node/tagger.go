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
	tag     func(ctx context.Context, path, language string, content []byte) ([]shard.Definition, error)
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
	t.tag = func(ctx context.Context, path, language string, content []byte) ([]shard.Definition, error) {
		symbols, err := pool.Tag(ctx, path, language, content)
		if err != nil {
			if ctx.Err() == nil {
				n.opt.Log.Warn("file has no symbols", "error", err)
			}
			return nil, err
		}
		defs := make([]shard.Definition, len(symbols))
		for i, s := range symbols {
			defs[i] = shard.Definition{
				Symbol: shard.Symbol{Name: s.Name, Kind: s.Kind, ParentName: s.ParentName, ParentKind: s.ParentKind},
				Line:   s.Line,
			}
		}
		return defs, nil
	}
	return t
}

// runTags keeps the pool for as long as jobs may use it.
func (n *Node) runTags(ctx context.Context) error { <-ctx.Done(); return nil }
