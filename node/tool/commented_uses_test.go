package tool_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/tool"
)

// A use within a comment of several lines is no call: at the indexed revision, at an older one in files
// that have changed since, and in files that have not.
func TestReferences_inCommentsOfSeveralLinesAreNoCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = "package app\n\n/*\nkraken(1)\n*/\nfunc use() {\n\tkraken(2)\n}\n"
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"same.go": text, "changed.go": text})
	app.Git("tag", "old")
	app.Commit(map[string]string{"changed.go": strings.Replace(text, "use", "used", 1)})
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Edit: func(o *node.Options) { o.Ctags = "" },
	})
	n.Wait("symbols", func() error { return hasSymbols(n, "use", "used") })

	tools := tool.New(tool.Parts{Search: n.Search, Browse: n.Browse, Models: n.Ask, Log: slog.New(slog.DiscardHandler)})
	for _, ref := range []string{"", "old"} {
		arguments := fmt.Sprintf(`{"symbol":"kraken","repo":"app","ref":%q,"calls":true}`, ref)
		r := tools.Call(t.Context(), catalog.Operator(), "find_symbol_references", json.RawMessage(arguments))
		if !strings.Contains(r.Text, "2 calls of kraken in 2 files") {
			t.Errorf("%s: %s", arguments, r.Text)
		}
	}
}
