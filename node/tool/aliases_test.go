package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// rowOf is a tool of the set by its name.
func rowOf(t *testing.T, name string) *Tool {
	t.Helper()
	row := New(Parts{}).named(name)
	if row == nil {
		t.Fatalf("no tool %s", name)
	}
	return row
}

// TestToolArguments_ofOtherToolsNamesMeanTheSame compares calls in the words of other tools with
// those in ours.
func TestToolArguments_ofOtherToolsNamesMeanTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tool, given, want string }{
		{"grep", `{"pattern":"x","glob":"*.go"}`, `{"pattern":"x","include":"*.go"}`},
		{"grep", `{"pattern":"x","output_mode":"files_with_matches"}`, `{"pattern":"x","mode":"files"}`},
		{"grep", `{"pattern":"x","output_mode":"content","-n":true}`, `{"pattern":"x","mode":"lines"}`},
		{"grep", `{"pattern":"x","head_limit":5}`, `{"pattern":"x","limit":5}`},
		{"grep", `{"pattern":"x","maxResults":"5"}`, `{"pattern":"x","limit":5}`},
		{"grep", `{"pattern":"x","-i":true}`, `{"pattern":"x","ignoreCase":true}`},
		{"grep", `{"pattern":"x","case_sensitive":false}`, `{"pattern":"x","ignoreCase":true}`},
		{"grep", `{"pattern":"x","-C":2}`, `{"pattern":"x","context":2}`},
		{"grep", `{"pattern":"x","-A":2}`, `{"pattern":"x","context":2}`},
		{"grep", `{"pattern":"x","-l":true}`, `{"pattern":"x","mode":"files"}`},
		{"grep", `{"pattern":"x","count":true}`, `{"pattern":"x","mode":"count"}`},
		{"grep", `{"query":"x","repository":"a/b"}`, `{"pattern":"x","repo":"a/b"}`},
		{"grep", `{"regex":"x"}`, `{"pattern":"x"}`},
		{"grep", `{"pattern":"a(b","fixed_strings":true}`, `{"pattern":"a\\(b"}`},
		{"grep", `{"pattern":"x","repos":["a"]}`, `{"pattern":"x","repo":"a"}`},
		{"grep", `{"pattern":"x","repos":["a","b","a"]}`, `{"pattern":"x","repo":"a, b"}`},
		{"grep", `{"pattern":"x","repo":"a,"}`, `{"pattern":"x","repo":"a"}`},
		{"grep", `{"pattern":["x"]}`, `{"pattern":"x"}`},
		{"grep", `{"pattern":"x","type":"py"}`, `{"pattern":"x","include":"*.py"}`},
		{"grep", `{"pattern":"x","language":"Go"}`, `{"pattern":"x","include":"*.go"}`},
		{"grep", `{"pattern":"x","language":"kotlin"}`, `{"pattern":"x","include":"*{.kt,.ktm,.kts}"}`},
		{"grep", `{"pattern":"x","owner":"a","repo":"b"}`, `{"pattern":"x","repo":"a/b"}`},
		{"grep", `{"pattern":"x","ignore_case":true,"max_tokens":900}`, `{"pattern":"x","ignoreCase":true,"maxTokens":900}`},
		{"grep", `{"pattern":"x","branch":"dev"}`, `{"pattern":"x","ref":"dev"}`},
		{"read_file", `{"repo":"r","file_path":"a.go","start_line":10,"end_line":12}`, `{"repo":"r","path":"a.go","ranges":"10-12"}`},
		{"read_file", `{"repo":"r","path":"a.go","startLine":10}`, `{"repo":"r","path":"a.go","offset":10}`},
		{"read_file", `{"repo":"r","path":"a.go","endLine":12}`, `{"repo":"r","path":"a.go","ranges":"1-12"}`},
		{"read_file", `{"repo":"r","path":"a.go","lines":"10-12"}`, `{"repo":"r","path":"a.go","ranges":"10-12"}`},
		{"blame", `{"repo":"r","path":"a.go","startLine":355,"endLine":360}`, `{"repo":"r","path":"a.go","offset":355,"limit":6}`},
		{"blame", `{"repo":"r","path":"a.go","lines":"5-9"}`, `{"repo":"r","path":"a.go","offset":5,"limit":5}`},
		{"get_diff", `{"repo":"r","commit":"571efe812"}`, `{"repo":"r","head":"571efe812"}`},
		{"list_commits", `{"repo":"r","limit":1}`, `{"repo":"r","perPage":1}`},
		{"list_commits", `{"repo":"r","sha":"dev"}`, `{"repo":"r","ref":"dev"}`},
		{"list_tree", `{"repo":"r","recursive":true}`, `{"repo":"r","depth":10}`},
		{"find_symbol_definitions", `{"name":"F","includeBody":true}`, `{"symbol":"F","body":true}`},
		{"outline", `{"repo":"r","path":"a","kind":"class"}`, `{"repo":"r","path":"a","kinds":"class"}`},
		{"search", `{"pattern":"a b"}`, `{"query":"a b"}`},
		{"glob", `{"glob":"*.go"}`, `{"pattern":"*.go"}`},
	} {
		row := rowOf(t, tt.tool)
		got, err := row.decode(json.RawMessage(tt.given))
		if err != nil {
			t.Errorf("%s %s: %v", tt.tool, tt.given, err)
			continue
		}
		want, err := row.decode(json.RawMessage(tt.want))
		if err != nil {
			t.Fatal(err)
		}
		if got.render(tt.tool) != want.render(tt.tool) {
			t.Errorf("%s %s is %s, want %s", tt.tool, tt.given, got.render(tt.tool), want.render(tt.tool))
		}
	}
}

// TestCorrectedArguments_askForTheSame refuses what may mean several things, and shows a mended
// call only where it has all that was asked.
func TestCorrectedArguments_askForTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tool, given, want, not string }{
		{"outline", `{"path":"x","repos":["a","b"]}`, "there is no parameter", "Mended"},
		{"outline", `{"path":"x","repo":["a","b"]}`, "repo takes one value: make a call for each", "Mended"},
		{"grep", `{"limit":0}`, "pattern is required", "Mended"},
		{"get_diff", `{"repo":"r","base":"a"}`, "head is required", "Mended"},
		{"grep", `{"pattern":"x","pth":"store","limit":3}`, `Mended: grep {"pattern":"x","limit":3,"path":"store"}`, "The parameters of"},
		{"grep", `{"pattern":"x","frobnicate":1}`, "The parameters of grep are pattern,", "Mended"},
		{"grep", `{"pattern":"x","mode":"cuont","limit":3}`, `Mended: grep {"pattern":"x","mode":"count","limit":3}`, ""},
		{"grep", `{"pattern":"x","mode":"zzzzzzz"}`, "mode has to be one of", "Mended"},
		{"grep", `{"pattern":"x","offset":99999}`, "offset has to be between 0 and 10000", ""},
		{"find_symbol_definitions", `{"symbol":"x","type":"class"}`, "did you mean", "Mended"},
		{"grep", `[1]`, "one JSON object with pattern.", "func"},
		{"grep", `{"pattern":"x","include":"*.go","glob":"*.c"}`, "did you mean include?", "Mended"},
	} {
		_, err := rowOf(t, tt.tool).decode(json.RawMessage(tt.given))
		if err == nil {
			t.Errorf("%s %s is taken", tt.tool, tt.given)
			continue
		}
		if got := err.Error(); !strings.Contains(got, tt.want) || tt.not != "" && strings.Contains(got, tt.not) {
			t.Errorf("%s %s: want %q, not %q: %s", tt.tool, tt.given, tt.want, tt.not, got)
		}
	}
}

// TestCorrectedArguments_keepTheOthers breaks one argument after the other of calls with all
// of them: a mended call has the rest as it was.
func TestCorrectedArguments_keepTheOthers(t *testing.T) {
	t.Parallel()
	mended := 0
	for _, row := range New(Parts{}).Tools() {
		valid := map[string]any{}
		for _, p := range row.Params {
			switch {
			case p.Words != nil && p.Kind == String:
				valid[p.Name] = p.Words[0]
			case p.Kind == Integer:
				valid[p.Name] = p.Min + 1
			case p.Kind == Boolean:
				valid[p.Name] = true
			default:
				valid[p.Name] = "value of " + p.Name
			}
		}
		for _, broken := range row.Params {
			for _, wrong := range []any{map[string]any{"a": 1}, -7, "no such word", []any{"a", "b"}} {
				members := map[string]any{}
				for name, value := range valid {
					members[name] = value
				}
				members[broken.Name] = wrong
				raw, err := json.Marshal(members)
				if err != nil {
					t.Fatal(err)
				}
				_, err = row.decode(raw)
				if err == nil {
					continue
				}
				_, text, ok := strings.Cut(err.Error(), " Mended: ")
				if !ok {
					continue
				}
				mended++
				for name, value := range valid {
					if part := quote(name) + ":" + quote(value); name != broken.Name && !strings.Contains(text, part) {
						t.Errorf("%s with %s %v: no %s in %s", row.Name, broken.Name, wrong, part, text)
					}
				}
				if !strings.Contains(text, fmt.Sprintf("%q:", broken.Name)) {
					t.Errorf("%s: %s is dropped: %s", row.Name, broken.Name, text)
				}
			}
		}
	}
	if mended < 20 {
		t.Errorf("only %d mended calls", mended)
	}
}
