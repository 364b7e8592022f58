package ask

import (
	"testing"

	"github.com/shoalsearch/shoal/node/model"
)

// A call that a server hands over as text is a call; other text stays as it is.
func TestCallsWrittenAsText(t *testing.T) {
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
