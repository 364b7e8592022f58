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

// TestFindSymbols_acceptsOperatorsAndMacros looks for macros, operators and methods that end in a sign, with
// definitions that stand deep in namespaces.
func TestFindSymbols_acceptsOperatorsAndMacros(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "signs"), map[string]string{
		"m.rs":  "macro_rules! doc_mut {\n    () => {};\n}\n\nfn main() {\n    doc_mut!();\n    let v = doc_mut![1];\n}\n",
		"s.hpp": "namespace A {\nnamespace B {\nnamespace C {\nclass Stream {\npublic:\n    Stream& operator <<(int x) {\n        return *this;\n    }\n    bool done() {\n        return false;\n    }\n};\n}\n}\n}\n",
		"a.rb":  "module M\n  module N\n    class Job\n      def alive?\n        redis do |c|\n          c\n        end\n      end\n\n      def redis\n        yield 1\n      end\n    end\n  end\nend\n",
		"b.txt": "gone? never\n",
	})
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Edit: func(o *node.Options) { o.Ctags = "" }, // the one on PATH
	})
	n.Wait("symbols", func() error { return hasSymbols(n, "doc_mut", "alive?", "Stream") })
	tools := tool.New(tool.Parts{Search: n.Search, Browse: n.Browse, Models: n.Ask, Log: slog.New(slog.DiscardHandler)})
	for _, tt := range []struct{ tool, arguments, want, not string }{
		{"find_symbol_definitions", `{"symbol":"doc_mut!","repo":"signs"}`, "m.rs\n1", "No definition"},
		{"find_symbol_definitions", `{"symbol":"operator<<","repo":"signs"}`, "s.hpp\n6", "No definition"},
		{"find_symbol_definitions", `{"symbol":"operator <<","repo":"signs"}`, "s.hpp\n6", "No definition"},
		{"find_symbol_definitions", `{"symbol":"alive?","repo":"signs"}`, "a.rb\n4", "No definition"},
		{"find_symbol_definitions", `{"symbol":"gone?","repo":"signs"}`, `As text: grep {"pattern":"\\bgone\\?","repo":"local/signs"}`, "definition of gone? in"},
		{"find_symbol_references", `{"symbol":"doc_mut","repo":"signs","calls":true}`, "2 calls of doc_mut in 1 file", "No use"},
		{"find_symbol_references", `{"symbol":"redis","repo":"signs","calls":true}`, "1 call of redis in 1 file", "No use"},
		{"outline", `{"repo":"signs","path":"a.rb","kinds":"method"}`, "15 lines, 2 symbols", "Left out"},
		{"outline", `{"repo":"signs","path":"a.rb"}`, "method alive?", "below depth"},
		{"outline", `{"repo":"signs","path":"s.hpp"}`, "operator <<", "below depth"},
		{"outline", `{"repo":"signs","path":"s.hpp","depth":1}`, `Left out: 2 symbols below depth 1; the same and {"depth":2}.`, "Complete"},
	} {
		got := tools.Call(t.Context(), catalog.Operator(), tt.tool, json.RawMessage(tt.arguments)).Text
		if !strings.Contains(got, tt.want) || strings.Contains(got, tt.not) {
			t.Errorf("%s %s: want %q, not %q in\n%s", tt.tool, tt.arguments, tt.want, tt.not, got)
		}
	}
}
