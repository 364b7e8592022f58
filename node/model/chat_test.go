package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/model/modeltest"
)

// chunks returns a Chat Completions stream with these deltas and a finish reason.
func chunks(finish string, deltas ...string) modeltest.Turn {
	var b strings.Builder
	for _, d := range deltas {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"delta\":%s}]}\n\n", d)
	}
	fmt.Fprintf(&b, ": comment\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
	return raw(b.String())
}

// It plays answers of real services: text, then calls as "name arguments", and reasoning.
func TestChatCompletions_readsAnswersOfRealServices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		provider config.Provider
		turn     modeltest.Turn
		text     string
		thought  string
		calls    string
		finish   model.Finish
	}{
		{"ids and numbers left out, arguments as an object, stop with calls", config.OpenAICompatible,
			chunks("stop", `{"tool_calls":[{"function":{"name":"grep","arguments":{"pattern":"a"}}}]}`), "", "", `grep {"pattern":"a"}`, model.Calls},
		{"two calls under one number", config.OpenAICompatible,
			chunks("tool_calls", `{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"id":"y","function":{"name":"b","arguments":"{}"}}]}`), "", "", `a {}|b {}`, model.Calls},
		{"arguments in pieces that parse too soon", config.XAI,
			chunks("tool_calls", `{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":" "}}]}`), "", "", `a {} `, model.Calls},
		{"tags cut anywhere", config.OpenAICompatible, chunks("stop", `{"content":"<th"}`, `{"content":"ink>I lo"}`, `{"content":"ok.</thi"}`, `{"content":"nk>\nYes, a<b"}`), "Yes, a<b", "I look.", "", model.Done},
		{"only the closing tag", config.OpenAICompatible, chunks("stop", `{"content":"I look."}`, `{"content":"</think>Yes"}`), "Yes", "I look.", "", model.Done},
		{"a tag that never closes", config.OpenAICompatible, chunks("length", `{"content":"<think>I look"}`), "", "I look", "", model.Length},
		{"tags are text elsewhere", config.XAI, chunks("stop", `{"content":"<think>a</think>"}`), "<think>a</think>", "", "", model.Done},
		{"reasoning under another name", config.OpenAICompatible, chunks("stop", `{"reasoning":"Hm."}`, `{"content":"Yes"}`), "Yes", "Hm.", "", model.Done},
		{"content as parts", config.Mistral, chunks("stop", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]}`, `{"content":[{"type":"text","text":"Yes"}]}`), "Yes", "Hm.", "", model.Done},
		{"a limit of its own name", config.Mistral, chunks("model_length", `{"content":"Yes"}`), "Yes", "", "", model.Length},
		{"a filter", config.XAI, chunks("content_filter", `{"content":"Ye"}`), "Ye", "", "", model.Blocked},
	} {
		s := modeltest.Start(t, tt.turn)
		c, _ := opened(t, one(tt.provider), s.URL)
		var said, thought strings.Builder
		a, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(e model.Event) {
			if e.Again {
				said.Reset()
			}
			said.WriteString(e.Text)
			thought.WriteString(e.Reasoning)
		})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var calls []string
		for _, k := range a.Message.Calls() {
			calls = append(calls, k.Name+" "+k.Arguments)
			if k.ID == "" {
				t.Errorf("%s: a call without an id", tt.name)
			}
		}
		if a.Message.Text() != tt.text || said.String() != tt.text || thought.String() != tt.thought || strings.Join(calls, "|") != tt.calls || a.Finish != tt.finish {
			t.Errorf("%s: text %q, said %q, thought %q, calls %q, %s", tt.name, a.Message.Text(), said.String(), thought.String(), calls, a.Finish)
		}
	}
}

// The reasoning of an answer must be unchanged in the next request.
func TestReasoning_isSentBackUnchanged(t *testing.T) {
	t.Parallel()
	aCall := `{"tool_calls":[{"index":0,"id":"abcdefghi","function":{"name":"grep","arguments":"{}"}}]}`
	for _, tt := range []struct {
		provider config.Provider
		turn     modeltest.Turn
		want     string // of the assistant's message in the next request
	}{
		{config.DeepSeek, chunks("tool_calls", `{"reasoning_content":"Hm"}`, `{"reasoning_content":"."}`, aCall), `"reasoning_content":"Hm."`},
		{config.DeepSeek, chunks("tool_calls", aCall), `"reasoning_content":""`},
		{config.OpenRouter, chunks("tool_calls", `{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"H"}]}`, `{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"m","signature":"s"}]}`, aCall),
			`"reasoning_details":[{"index":0,"signature":"s","text":"Hm","type":"reasoning.text"}]`},
		{config.Mistral, chunks("tool_calls", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]}`, aCall), `"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]`},
	} {
		s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
			if r.Step == 0 {
				return tt.turn
			}
			return modeltest.Turn{Text: "ok"}
		})
		c, _ := opened(t, one(tt.provider), s.URL)
		r := &model.Request{Messages: question("?")}
		a, err := c.Answer(t.Context(), r, func(model.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		r.Messages = append(r.Messages, a.Message, model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: a.Message.Calls()[0].ID, Name: "grep", Text: "x"}}}})
		if _, err := c.Answer(t.Context(), r, func(model.Event) {}); err != nil {
			t.Fatal(err)
		}
		var sent struct{ Messages []json.RawMessage }
		if err := json.Unmarshal([]byte(s.Requests()[1].Raw), &sent); err != nil || len(sent.Messages) != 3 || !strings.Contains(string(sent.Messages[1]), tt.want) {
			t.Errorf("%s: %v %s, want %s", tt.provider, err, sent.Messages, tt.want)
		}
	}
}
