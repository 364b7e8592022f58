package ask

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/model"
)

// A tool call written as text is read as a call; other text is unchanged.
func TestToolCall_writtenAsTextIsRead(t *testing.T) {
	t.Parallel()
	l := &loop{req: model.Request{Tools: []model.Tool{{Name: "grep"}}}}
	for text, want := range map[string]string{
		`<tool_call>{"name":"grep","arguments":{"pattern":"a"}}</tool_call>`:               `{"pattern":"a"}`,
		"Let me look.\n<tool_call>\n{\"name\":\"grep\",\"arguments\":{\"pattern\":\"a\"}}": `{"pattern":"a"}`,
		"```json\n{\"name\":\"Grep\",\"parameters\":{\"pattern\":\"a\"}}\n```":             `{"pattern":"a"}`,
		`{"name":"grep","arguments":"{\"pattern\":\"a\"}"}`:                                `{"pattern":"a"}`,
		`{"name":"rm","arguments":{}}`:                                                     ``,
		"The configuration is {\"name\": \"grep\"}.":                                       ``,
		"No call at all.": ``,
	} {
		a := &model.Answer{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: text}}}}
		l.readCalls(a)
		got := ""
		if calls := a.Message.Calls(); len(calls) == 1 && calls[0].Name == "grep" {
			got = calls[0].Arguments
		}
		if got != want || want == "" && a.Message.Text() != text {
			t.Errorf("%s: arguments %q, want %q", text, got, want)
		}
	}
}

// Arguments without their end are read; others are unchanged.
func TestToolArguments_withoutTheirEndAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, `{"a":"x`: `{"a":"x"}`, `{"a":"x"`: `{"a":"x"}`, `{"a":["x","y`: `{"a":["x","y"]}`, `{"a":{"b":"}`: `{"a":{"b":"}"}}`, `{"a":"\"`: `{"a":"\""}`,
		`{"a":1,`: `{"a":1}`, `{"a`: `{"a`, `{"a":`: `{"a":`, `a}`: `a}`, ``: ``,
	} {
		if got := closeJSON(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A citation in another form counts if its place exists, also if it arrives in pieces.
func TestCitations_inOtherFormsAreRecognized(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"See [the task](app/task.py#L311-L320).": "See the task (<app/task.py#L311-L320>).",
		"See (app/task.py:311) and more.":        "See (<app/task.py:311>) and more.",
		"a (x:1) b (app/task.py:3-4)":            "a (x:1) b (<app/task.py:3-4>)",
		"[x](http://evil.example/a.py#L1)":       "[x](http://evil.example/a.py#L1)",
		"f(x) [y] (z) [a](b.html)":               "f(x) [y] (z) [a](b.html)",
		"[a](app/task.py)":                       "[a](app/task.py)",
		"@file:{r::app/task.py#L2} (open":        "<r::app/task.py#L2> (open",
	} {
		for size := 1; size <= len(text); size++ {
			var out strings.Builder
			c := &citer{check: func(mark, _ string) *Citation {
				state := Unverified
				if strings.Contains(mark, "app/task.py") {
					state = Cited
				}
				return &Citation{Path: mark, State: state}
			}, give: func(p Piece) {
				if p.Cite != nil {
					out.WriteString("<" + p.Cite.Path + ">")
				}
				out.WriteString(p.Text)
			}}
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				c.addText(rest[:n])
				rest = rest[n:]
			}
			c.emitRest()
			if out.String() != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, out.String(), want)
			}
		}
	}
}

// Lines that a tool has shown, and lines near them, are known. A long range needs more shown
// lines.
func TestShownLines_areKnownWithTheirNeighbours(t *testing.T) {
	t.Parallel()
	l := newLedger(Sources{}, []*Report{{Answer: []Piece{{Cite: &Citation{Repo: "r", Path: "old.go", First: 5, Last: 6, State: Cited}}}}})
	l.addLines("r", "a.go", 100, 120)
	for _, tt := range []struct {
		path        string
		first, last int
		want        bool
	}{
		{"a.go", 100, 120, true}, {"a.go", 118, 160, true}, {"a.go", 122, 123, true}, {"a.go", 1, 3, false}, {"a.go", 1, 2443, false}, {"a.go", 60, 150, true}, {"a.go", 10, 150, false},
		{"b.go", 100, 120, false}, {"old.go", 5, 5, true},
	} {
		if got := l.hasShown(&Citation{Repo: "r", Path: tt.path, First: tt.first, Last: tt.last}); got != tt.want {
			t.Errorf("%s:%d-%d: %t", tt.path, tt.first, tt.last, got)
		}
	}
}
