package tool_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/tool"
)

// What a drawn argument may be: names that are there, names that are nearly
// there, and what nobody should write.
var (
	drawnTexts = []string{"", "acme/app", "github.com/acme/app", "store", "store/store.go", "src/evict.c", "cmd", "*.go", "**/*.c", "main", "v1.0.0", "HEAD~1", "Close", "evict", "Store.Close",
		"s.Close()", "retry replica", "README.md", "docs/large.txt", "needle", "release", "2024-03-03", "main@{2024-03-03}", "src/größe \xe9.c", "patch", "count", "files", "directory",
		"(", "[a", "a{", "\\", "-x", "--output=/tmp/x", "../..", "/", "a/../b", "HEAD^{/x}", "@{-1}", "main..release", "\n", "\r\n", "\x1b[2J", "\u202e", "ü", "NaN", "1e309", "-1", "true", "null"}
	drawnOthers = []string{"0", "1", "2", "-1", "500", "2147483648", "1e309", "1.5", "true", "false", "null", "{}", "[]", `["a",1]`, `{"repo":"app"}`, `{"owner":"acme","repo":1}`, `["store","cmd"]`, `[["a"]]`}
)

// hand draws arguments from the bytes of a fuzzed input.
type hand struct{ bytes []byte }

func (h *hand) draw(n int) int {
	if len(h.bytes) == 0 {
		return 0
	}
	b := int(h.bytes[0])
	h.bytes = h.bytes[1:]
	return b % n
}

// call draws a call: of a tool, some of its parameters, each with a value of its
// schema or another one.
func (h *hand) call(rows []tool.Tool) (row tool.Tool, arguments string) {
	row = rows[h.draw(len(rows))]
	var members []string
	for _, p := range row.Params {
		if h.draw(2) == 1 || p.Required && h.draw(8) < 7 {
			members = append(members, fmt.Sprintf("%q:%s", p.Name, h.value(p)))
		}
	}
	if h.draw(16) == 15 {
		members = append(members, fmt.Sprintf("%q:%s", drawnTexts[h.draw(len(drawnTexts))], h.other()))
	}
	return row, "{" + strings.Join(members, ",") + "}"
}

func (h *hand) value(p tool.Param) string {
	if h.draw(8) == 7 {
		return h.other()
	}
	text := drawnTexts[h.draw(len(drawnTexts))]
	switch {
	case p.Words != nil && p.Kind == tool.String:
		text = p.Words[h.draw(len(p.Words))]
	case p.Kind == tool.Integer:
		return fmt.Sprint(p.Min + h.draw(256))
	case p.Kind == tool.Boolean:
		return []string{"true", "false"}[h.draw(2)]
	case p.Name == "repo" && h.draw(8) < 7:
		text = []string{"acme/app", "acme/lib"}[h.draw(2)]
	}
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

func (h *hand) other() string {
	if h.draw(2) == 0 {
		quoted, _ := json.Marshal(drawnTexts[h.draw(len(drawnTexts))])
		return string(quoted)
	}
	return drawnOthers[h.draw(len(drawnOthers))]
}

// allowed is the schema's own word on some arguments, by nothing but the schema:
// the twin of the check that a tool makes.
func allowed(t *testing.T, schema json.RawMessage, arguments string) bool {
	t.Helper()
	var s struct {
		Required   []string
		Properties map[string]struct {
			Type    any
			Enum    []string
			Maximum *float64
		}
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return false
	}
	for _, name := range s.Required {
		if text, ok := members[name].(string); !ok || text == "" {
			return false
		}
	}
	for name, v := range members {
		p, known := s.Properties[name]
		if !known {
			return false
		}
		switch v := v.(type) {
		case float64:
			// Of zero and less the schema says nothing, to be short.
			if p.Type != "integer" || v != float64(int(v)) || v < 1 || p.Maximum != nil && v > *p.Maximum || v > 1<<31-1 {
				return false
			}
		case bool:
			if p.Type != "boolean" {
				return false
			}
		case string:
			if p.Type != "string" && !slices.Contains(kinds(p.Type), "string") || p.Enum != nil && !slices.Contains(p.Enum, v) {
				return false
			}
		default:
			return false // left to what the check says
		}
	}
	return true
}

func kinds(v any) (list []string) {
	several, _ := v.([]any)
	for _, one := range several {
		list = append(list, one.(string))
	}
	return list
}

var (
	advised  = regexp.MustCompile(`(?:continue with|Mended:) ([a-z_]+) (\{.*?\})(?:[.;,]| or |\n|$)`)
	same     = regexp.MustCompile(`the same and (\{.*?\})(?:[.;,]| or |\n|$)`)
	internal = []string{"json:", "strconv.", "runtime error", "invalid memory", "%!", "<nil>", "exit status", "fatal:", "goroutine"}
)

// FuzzToolArguments_answerIsBoundedAndAdviceValid calls tools with arguments drawn by their schemas, and beyond
// them. What a schema allows is not refused; whatever is called, the answer is
// text within its bounds, speaks of nothing inside the program, and each call
// that it advises is one that the tool takes.
func FuzzToolArguments_answerIsBoundedAndAdviceValid(f *testing.F) {
	_, tools := sample(f)
	rows := tools.Tools()
	for i := range rows {
		f.Add([]byte{byte(i)})
		f.Add([]byte{byte(i), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
		f.Add([]byte{byte(i), 1, 7, 0, 44, 1, 7, 1, 7, 1, 7, 0, 45, 1, 7, 1, 3, 1, 7, 0, 46, 1, 7, 1, 6})
		f.Add([]byte{byte(i), 1, 0, 0, 1, 1, 1, 0, 200, 1, 3, 5, 1, 4, 9, 1, 0, 12, 1, 2, 17, 1, 6, 15, 1, 1})
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		h := &hand{data}
		row, arguments := h.call(rows)
		answer := tools.Call(t.Context(), catalog.Operator(), row.Name, json.RawMessage(arguments))
		what := row.Name + " " + arguments

		misused := answer.Failed && strings.HasPrefix(answer.Text, "Wrong arguments")
		if misused && allowed(t, row.Schema(), arguments) {
			t.Errorf("%s is allowed by its schema, and refused:\n%s", what, answer.Text)
		}
		judge(t, what, answer.Text)
		for _, m := range same.FindAllStringSubmatch(answer.Text, -1) {
			var made, more map[string]any
			if json.Unmarshal([]byte(arguments), &made) != nil || json.Unmarshal([]byte(m[1]), &more) != nil {
				continue
			}
			maps.Copy(made, more)
			both, _ := json.Marshal(made)
			next := tools.Call(t.Context(), catalog.Operator(), row.Name, both)
			if next.Failed && strings.HasPrefix(next.Text, "Wrong arguments") {
				t.Errorf("%s advises the same and %s, which is refused:\n%s", what, m[1], next.Text)
			}
		}
		for _, m := range advised.FindAllStringSubmatch(answer.Text, -1) {
			if !json.Valid([]byte(m[2])) {
				continue // the braces of a pattern
			}
			next := tools.Call(t.Context(), catalog.Operator(), m[1], json.RawMessage(m[2]))
			if next.Failed && strings.HasPrefix(next.Text, "Wrong arguments") {
				t.Errorf("%s advises a call that is refused: %s %s\n%s", what, m[1], m[2], next.Text)
			}
		}
	})
}

// judge holds an answer to what every answer is.
func judge(t *testing.T, what, text string) {
	t.Helper()
	const most = 8000*4 + 4000 // of the largest answer that can be asked for, with its ending
	if text == "" || len(text) > most || !utf8.ValidString(text) {
		t.Errorf("%s: %d bytes, valid UTF-8: %v", what, len(text), utf8.ValidString(text))
	}
	hidden := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u202e' }
	if at := strings.IndexFunc(text, hidden); at >= 0 {
		t.Errorf("%s: a control character at %d of %q", what, at, text)
	}
	for _, word := range internal {
		if strings.Contains(text, word) {
			t.Errorf("%s speaks of %q:\n%s", what, word, text)
		}
	}
}
