package ask_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/model/modeltest"
)

// Each row is a model, from one that does all right to one that never ends, with what becomes of its answer.
func TestAsk_outcomeByModel(t *testing.T) {
	t.Parallel()
	const readArgs = `{"repo":"local/app","path":"store/store.go"}`
	calls := func(c ...modeltest.Call) modeltest.Turn { return modeltest.Turn{Calls: c} }
	read := calls(call("a", "read_file", readArgs))
	says := func(text string) modeltest.Turn { return modeltest.Turn{Text: text} }
	good := says("`Open` opens it @file:{local/app::store/store.go:4-6}.")
	fault := func(f func(http.ResponseWriter, []byte)) modeltest.Turn { return modeltest.Turn{Fault: f} }
	const cited = "[store/store.go:4-6]("
	for name, tt := range map[string]struct {
		turns  []modeltest.Turn
		status ask.Status
		steps  int    // at most
		limits string // the start of a limit; "" means that there is none
		answer string // a part of it
		lacks  string // no part of it
		failed string // a part of the error
	}{
		"good": {turns: []modeltest.Turn{read, good}, status: ask.Done, steps: 2, answer: cited},
		"prefixed and capital names": {turns: []modeltest.Turn{calls(call("a", "functions.read_file", readArgs)), calls(call("b", "Grep", `{"pattern":"Open"}`)), good},
			status: ask.Done, steps: 3, answer: cited},
		"thinks aloud":   {turns: []modeltest.Turn{read, says("<think>Secret plan.</think>`Open` opens it @file:{local/app::store/store.go:4-6}.")}, status: ask.Done, steps: 2, answer: cited, lacks: "Secret plan"},
		"ends by length": {turns: []modeltest.Turn{read, {Text: "`Open` opens it @file:{local/app::store/store.go:4-6}. And", Length: true}}, status: ask.Done, steps: 3, limits: "The answer was cut at the model's limit of output.", answer: cited},
		"error 500":      {turns: []modeltest.Turn{read, fault(modeltest.Status(500, `{"error":{"message":"oops"}}`, "Retry-After", "0")), good}, status: ask.Done, steps: 2, answer: cited},
		"empty answer":   {turns: []modeltest.Turn{read, {}, good}, status: ask.Done, steps: 3, limits: "The search was ended because the model had said nothing.", answer: cited},
		"markup and links": {turns: []modeltest.Turn{read, says("<b>x</b> [y](javascript:alert(1)) ![z](http://evil.example/p.png) @file:{local/app::store/store.go:4-6}.")},
			status: ask.Done, steps: 2, answer: cited, lacks: "[y](javascript:"},
		"line beyond the end": {turns: []modeltest.Turn{read, says("It ends @file:{local/app::store/store.go:900}.")}, status: ask.Done, steps: 3, limits: "1 citation could not be verified", answer: "unverified"},
		"no such file":        {turns: []modeltest.Turn{read, says("It ends @file:{local/app::store/nothing.go:3}.")}, status: ask.Done, steps: 3, limits: "1 citation could not be verified", answer: "unverified"},
		"wrong line for a name": {turns: []modeltest.Turn{read, says("`Close` ends it @file:{local/app::store/store.go:1-2}.")}, status: ask.Done, steps: 2,
			answer: "[store/store.go:12"},
		"reversed range":     {turns: []modeltest.Turn{read, says("`Open` opens it @file:{local/app::store/store.go:6-4}.")}, status: ask.Done, steps: 2, answer: "[store/store.go:6]("},
		"short name of repo": {turns: []modeltest.Turn{read, says("`Open` opens it @file:{app::store/store.go:4-6}.")}, status: ask.Done, steps: 2, answer: cited},
		"loop":               {turns: []modeltest.Turn{read}, status: ask.Failed, steps: 12, limits: "The search was ended because"},
		"no citation":        {turns: []modeltest.Turn{read, says("Open opens it, I think.")}, status: ask.Done, steps: 3, limits: "The answer cites no source"},
		"no call at all":     {turns: []modeltest.Turn{says("I remember that Open opens it.")}, status: ask.Done, steps: 3, limits: "The model looked at no code"},
		"tool call as text":  {turns: []modeltest.Turn{says(`<tool_call>{"name":"read_file","arguments":` + readArgs + `}</tool_call>`), good}, status: ask.Done, steps: 2, answer: cited, lacks: "tool_call"},
		"broken and fenced arguments": {turns: []modeltest.Turn{calls(call("a", "read_file", "```json\n"+readArgs+"\n```")), calls(call("b", "read_file", `{"repo":"local/app","path":"store/store.go"`)), good},
			status: ask.Done, steps: 3, answer: cited},
		"giant answer": {turns: []modeltest.Turn{read, says("`Open` opens it @file:{local/app::store/store.go:4-6}. " + strings.Repeat("More and more. ", 40_000))},
			status: ask.Done, steps: 2, limits: "The answer was cut", answer: cited, lacks: "unchecked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Start(t, tt.turns...)
			r, _ := answered(t, sample(t, s), ask.Question{Query: "How is a store opened?"})
			text := ask.Markdown(r.Answer, "")
			if r.Status != tt.status || r.Steps > tt.steps || !strings.Contains(text, tt.answer) || tt.lacks != "" && strings.Contains(text, tt.lacks) || !strings.Contains(r.Error, tt.failed) {
				t.Errorf("%s after %d steps, error %q: %.600s", r.Status, r.Steps, r.Error, text)
			}
			if tt.limits == "" && len(r.Limits) > 0 || tt.limits != "" && !slices.ContainsFunc(r.Limits, func(l string) bool { return strings.HasPrefix(l, tt.limits) }) {
				t.Errorf("limits %q", r.Limits)
			}
		})
	}
}
