package tool_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/tool"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into the transcripts; then read the diff")

// TestTranscripts_equalTheToolsAnswers holds each tool to a transcript: testdata/NAME.txt has calls,
// each a line "> NAME {arguments}", and below each the answer to the byte.
func TestTranscripts_equalTheToolsAnswers(t *testing.T) {
	t.Parallel()
	_, tools := sample(t)
	for _, row := range tools.Tools() {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", row.Name+".txt")
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: every tool has a transcript; write its calls there and run with -rewrite", err)
			}
			now := replay(t, tools, string(old))
			if *rewrite {
				if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if now != string(old) {
				t.Errorf("%s differs; got:\n%s", file, now)
			}
		})
	}
}

// replay makes the calls of a transcript and writes it again with the answers
// of now. What stands above the first call is kept.
func replay(t *testing.T, tools *tool.Set, transcript string) string {
	t.Helper()
	var out strings.Builder
	calls := 0
	for line := range strings.Lines(transcript) {
		call, ok := strings.CutPrefix(line, "> ")
		if !ok {
			if calls == 0 {
				out.WriteString(line)
			}
			continue
		}
		calls++
		name, arguments, _ := strings.Cut(strings.TrimSuffix(call, "\n"), " ")
		answer := tools.Call(t.Context(), catalog.Operator(), name, json.RawMessage(arguments))
		out.WriteString(line)
		if answer.Failed {
			out.WriteString("(failed) ")
		}
		out.WriteString(answer.Text + "\n\n")
	}
	if calls == 0 {
		t.Error("a transcript without a call")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}
