package ask_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/model/modeltest"
)

// byteByByte sends an answer a byte at a time.
func byteByByte(w http.ResponseWriter, stream []byte) {
	for i := range stream {
		_, _ = w.Write(stream[i : i+1])
		w.(http.Flusher).Flush()
	}
}

// Models make mistakes. Each row is a model that makes one, with what becomes of its answer.
func TestAsk_ofModelsThatMakeMistakes(t *testing.T) {
	t.Parallel()
	read := modeltest.Turn{Calls: []modeltest.Call{call("a", "read_file", `{"repo":"local/app","path":"store/store.go"}`)}}
	good := modeltest.Turn{Text: "`Open` opens it @file:{local/app::store/store.go:4-6}."}
	const cited = "[store/store.go:4-6]("
	for name, tt := range map[string]struct {
		turns  []modeltest.Turn
		policy func(r *modeltest.Request) modeltest.Turn // instead of turns
		query  string
		status ask.Status
		steps  int // at most
		limits string
		answer string // a part of it
		sent   string // a part of the last request
	}{
		"makes the same call with another limit each time": {policy: func(r *modeltest.Request) modeltest.Turn {
			return modeltest.Turn{Calls: []modeltest.Call{call(fmt.Sprint("c", r.Step), "grep", fmt.Sprintf(`{"pattern":"Open","limit":%d}`, r.Step+1))}}
		}, status: ask.Failed, steps: 90, limits: "The search was ended because its budget of"},
		"cites lines beside those it has read": {turns: []modeltest.Turn{
			{Calls: []modeltest.Call{call("a", "read_file", `{"repo":"local/app","path":"store/store.go","limit":1}`)}},
			{Text: "It ends @file:{local/app::store/store.go:12-14}."},
		}, status: ask.Done, steps: 3, limits: "1 citation could not be checked: no tool has shown the lines."},
		"stops in the middle of the arguments": {turns: []modeltest.Turn{
			{Calls: []modeltest.Call{call("a", "read_file", `{"repo":"local/app","path":"store/store.go"`)}, Length: true}, good,
		}, status: ask.Done, steps: 2, answer: cited},
		"calls two tools at once, one of which is unknown": {turns: []modeltest.Turn{
			{Calls: []modeltest.Call{call("a", "open_file", `{"path":"store/store.go"}`), call("b", "read_file", `{"repo":"local/app","path":"store/store.go"}`)}}, good,
		}, status: ask.Done, steps: 2, answer: cited, sent: "There is no tool"},
		"goes on calling when it may not": {policy: func(r *modeltest.Request) modeltest.Turn {
			return modeltest.Turn{Text: "One more.", Calls: []modeltest.Call{call(fmt.Sprint("c", r.Step), "no_such_tool", fmt.Sprintf(`{"n":%d}`, r.Step))}}
		}, status: ask.Failed, steps: 12, limits: "The search was ended because"},
		"answers half of the question": {turns: []modeltest.Turn{read, good},
			query: "How is a store opened? And how is it closed?", status: ask.Done, steps: 3, answer: cited},
		"sends one byte at a time": {policy: func(r *modeltest.Request) modeltest.Turn {
			turn := []modeltest.Turn{read, good}[min(r.Step, 1)]
			turn.Fault = byteByByte
			return turn
		}, status: ask.Done, steps: 2, answer: cited},
		"says nothing at first": {turns: []modeltest.Turn{read, {}, good}, status: ask.Done, steps: 3, limits: "The search was ended because the model had said nothing.", answer: cited},
		"never says anything":   {turns: []modeltest.Turn{read, {}}, status: ask.Failed, steps: 3, limits: "The search was ended because the model had said nothing."},
		"has too much to do at first": {turns: []modeltest.Turn{read,
			{Fault: modeltest.Status(429, `{"error":{"message":"slow down"}}`, "Retry-After", "0")}, good,
		}, status: ask.Done, steps: 2, answer: cited},
		"gives arguments of other types": {turns: []modeltest.Turn{
			{Calls: []modeltest.Call{call("a", "read_file", `{"repo":["local/app"],"path":"store/store.go","limit":"20","offset":1.0}`)}}, good,
		}, status: ask.Done, steps: 2, answer: cited, sent: "func Open(path string)"},
		"gives arguments that cannot be read": {turns: []modeltest.Turn{
			{Calls: []modeltest.Call{call("a", "read_file", `{"repo":{"name":"app"},"path":7}`)}}, read, good,
		}, status: ask.Done, steps: 3, answer: cited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := tt.policy
			if policy == nil {
				policy = func(r *modeltest.Request) modeltest.Turn { return tt.turns[min(r.Step, len(tt.turns)-1)] }
			}
			s := modeltest.Play(t, policy)
			query := tt.query
			if query == "" {
				query = "How is a store opened?"
			}
			r, _ := answered(t, sample(t, s), ask.Question{Query: query})
			text := ask.Markdown(r.Answer, "")
			if r.Status != tt.status || r.Steps > tt.steps || !strings.Contains(text, tt.answer) {
				t.Errorf("%s after %d steps, %s: %s", r.Status, r.Steps, r.Error, text)
			}
			if tt.limits == "" && len(r.Limits) > 0 || !slices.ContainsFunc(append(r.Limits, ""), func(l string) bool { return l != "" && strings.HasPrefix(l, tt.limits) || tt.limits == "" }) {
				t.Errorf("limits %q", r.Limits)
			}
			requests := s.Requests()
			if last := requests[len(requests)-1].Raw; !strings.Contains(last, tt.sent) {
				t.Errorf("the last request lacks %q: %s", tt.sent, last)
			}
			if got := s.Refused(); got != nil {
				t.Errorf("refused: %q", got)
			}
			if n := r.Usage.Input; n > 1_000_000 {
				t.Errorf("%d tokens", n)
			}
		})
	}
}
