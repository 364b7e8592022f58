package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// outlinesAtOnce is how many processes find symbols for readers.
const outlinesAtOnce = 2

// tagger finds symbols with universal-ctags, if it is installed.
type tagger struct {
	tag     shard.Tagger
	name    string // program and version; "" if not installed
	warning string
	close   func()

	outlines *symbol.Pool // also finds the parameters of functions; nil if not installed
}

// unsandboxed warns about a ctags without a sandbox: it parses files that anybody who can push
// controls.
const unsandboxed = "ctags reads files outside of a sandbox: this one was built without seccomp (Debian's universal-ctags has it; --ctags off leaves symbols out)"

// newTagger looks for ctags. Without it the node works, but has no symbols and warns about that.
func newTagger(ctags string, processes int, log *slog.Logger) tagger {
	pool, err := symbol.Open(context.Background(), symbol.Options{Command: ctags, Processes: processes})
	switch {
	case errors.Is(err, symbol.ErrOff):
		return tagger{}
	case err != nil:
		log.Warn("symbols are not indexed", "error", err)
		return tagger{warning: fmt.Sprintf("symbols are not indexed: %v", err)}
	}

	t := tagger{name: pool.Version()}
	if !pool.Sandboxed() {
		log.Warn("ctags reads files outside of a sandbox: it was built without seccomp", "program", pool.Version())
		t.warning = unsandboxed
	}

	// Outlines have their own processes, so that a reader never waits for an index build.
	wide := pool.WithSignatures(outlinesAtOnce)
	t.outlines = wide
	t.close = func() {
		pool.Close()
		wide.Close()
	}

	t.tag = func(ctx context.Context, texts []shard.Untagged, use func(shard.Definition), done func(int, error)) error {
		files := make([]symbol.File, len(texts))
		for i, t := range texts {
			files[i] = symbol.File(t)
		}
		define := func(s symbol.Symbol) {
			use(shard.Definition{
				Name:       s.Name,
				Kind:       s.Kind,
				ParentName: s.ParentName,
				ParentKind: s.ParentKind,
				Line:       s.Line,
				End:        s.End,
			})
		}

		// If ctags fails on a file, its symbols stay unknown, and answers say so.
		return pool.Tag(ctx, files, define, func(i int, err error) {
			if err != nil {
				log.Warn("symbols of a file are not known", "tries", texts[i].Tries, "error", err)
			}
			done(i, err)
		})
	}
	return t
}
