package model_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/model/modeltest"
)

// sse returns a stream of typed events, as in Responses and Messages.
func sse(events ...string) modeltest.Turn {
	var b strings.Builder
	for _, e := range events {
		var kind struct{ Type string }
		_ = json.Unmarshal([]byte(e), &kind) // an event without a type has no name
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind.Type, e)
	}
	return raw(b.String())
}

// frames returns the events of Converse, each "name {json}". A name that begins with an
// exclamation mark is an exception.
func frames(events ...string) modeltest.Turn {
	var b bytes.Buffer
	enc := eventstream.NewEncoder()
	for _, e := range events {
		name, payload, _ := strings.Cut(e, " ")
		m := eventstream.Message{Payload: []byte(payload)}
		kind, as := "event", ":event-type"
		if exception, ok := strings.CutPrefix(name, "!"); ok {
			kind, as, name = "exception", ":exception-type", exception
		}
		m.Headers.Set(":message-type", eventstream.StringValue(kind))
		m.Headers.Set(as, eventstream.StringValue(name))
		m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
		if err := enc.Encode(&b, m); err != nil {
			panic(err)
		}
	}
	return modeltest.Turn{Fault: func(w http.ResponseWriter, _ []byte) {
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		_, _ = w.Write(b.Bytes())
	}}
}

// It plays undocumented answers of services and gateways: how each is read, and what the next
// request returns of it.
func TestModelAnswers_thatServicesDoNotDocumentAreRead(t *testing.T) {
	t.Parallel()
	sig := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	gemini := func(parts ...string) modeltest.Turn {
		var b strings.Builder
		for i, p := range parts {
			finish := ""
			if i == len(parts)-1 {
				finish = `,"finishReason":"STOP"`
			}
			fmt.Fprintf(&b, "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[%s]}%s}]}\n\n", p, finish)
		}
		return raw(b.String())
	}
	response := func(status, more string) string {
		return `{"type":"response.` + status + `","response":{"status":"` + status + `"` + more + `,"usage":{"input_tokens":1,"output_tokens":1}}}`
	}
	aCall := `"type":"function_call","call_id":"c1","name":"grep","status":"completed"`
	messageStart := `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":1,"output_tokens":1}}}`
	textStart := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	said := func(text string) string {
		return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + text + `"}}`
	}
	for _, tt := range []struct {
		name        string
		provider    config.Provider
		turn        modeltest.Turn
		text, calls string
		finish      model.Finish
		back, not   string // what the next request must have and must not have
	}{
		{"an item whose id changes", config.OpenAI, sse(
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_1",`+aCall+`,"arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc_9","output_index":0,"delta":"{}"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"fc_2",`+aCall+`,"arguments":"{}"}}`, response("completed", "")),
			"", "grep {}", model.Calls, `"call_id":"c1"`, ""},
		{"events without numbers", config.OpenAI, sse(
			`{"type":"response.output_item.done","item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"ENC"}}`,
			`{"type":"response.output_text.delta","item_id":"m","delta":"Let me look."}`,
			`{"type":"response.output_item.done","item":{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Let me look.","annotations":[]}]}}`,
			`{"type":"response.output_item.done","item":{"id":"fc_2",`+aCall+`,"arguments":"{}"}}`, response("completed", "")),
			"Let me look.", "grep {}", model.Calls, `"encrypted_content":"ENC"`, ""},
		{"items that are told at the end only", config.OpenAI, sse(
			response("completed", `,"output":[{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Yes","annotations":[]}]},{"id":"fc_2",`+aCall+`,"arguments":"{}"}]`)),
			"Yes", "grep {}", model.Calls, `"call_id":"c1"`, ""},
		{"arguments that are no text", config.OpenAI, sse(
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"fc_2",`+aCall+`,"arguments":{"pattern":"a"}}}`, response("completed", "")),
			"", `grep {"pattern":"a"}`, model.Calls, `"call_id":"c1"`, ""},
		{"reasoning that nobody keeps but we", config.OpenAI, sse(
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"ENC"}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_2",`+aCall+`,"arguments":"{}"}}`, response("completed", "")),
			"", "grep {}", model.Calls, `"encrypted_content":"ENC"`, `"store":true`},
		{"a filter that ends an answer", config.Azure, sse(
			`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"Ye"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"m","type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"Ye","annotations":[]}]}}`,
			response("incomplete", `,"incomplete_details":{"reason":"content_filter"}`)),
			"Ye", "", model.Blocked, "", ""},
		{"two answers in one stream", config.Anthropic, sse(messageStart, textStart, said("half"), messageStart, textStart, said("whole"),
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`),
			"whole", "", model.Done, "whole", "half"},
		{"an empty block of text", config.Anthropic, sse(messageStart, textStart, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"grep","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`),
			"", "grep {}", model.Calls, `"tool_use"`, `"text":""`},
		{"signatures on a call and on an empty text", config.GoogleGenerativeAI,
			gemini(`{"functionCall":{"name":"grep","args":{}},"thoughtSignature":"`+sig("one")+`"}`, `{"text":"","thoughtSignature":"`+sig("two")+`"}`),
			"", "grep {}", model.Calls, sig("two"), `"id"`},
		{"the end of an answer that has calls", config.GoogleGenerativeAI, gemini(`{"functionCall":{"name":"grep","args":{}},"thoughtSignature":"` + sig("one") + `"}`),
			"", "grep {}", model.Calls, sig("one"), ""},
		{"the end that imitations have", config.GoogleGenerativeAI,
			raw(`data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"grep","args":{}}}]},"finishReason":"FUNCTION_CALL"}]}` + "\n\n"),
			"", "grep {}", model.Calls, `"functionCall"`, ""},
		{"reasoning that is not signed", config.AmazonBedrock, frames(`messageStart {"role":"assistant"}`,
			`contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm."}}}`, `contentBlockStop {"contentBlockIndex":0}`,
			`contentBlockStart {"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"c1","name":"grep"}}}`, `contentBlockDelta {"contentBlockIndex":1,"delta":{"toolUse":{"input":"{}"}}}`,
			`contentBlockStop {"contentBlockIndex":1}`, `messageStop {"stopReason":"tool_use"}`),
			"", "grep {}", model.Calls, `"toolUse"`, "Hm."},
		{"nothing but reasoning that is not signed", config.AmazonBedrock, frames(`messageStart {"role":"assistant"}`,
			`contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm."}}}`, `contentBlockStop {"contentBlockIndex":0}`, `messageStop {"stopReason":"end_turn"}`),
			"", "", model.Done, "go on", "Hm."},
		{"reasoning that is sealed", config.AmazonBedrock, frames(`messageStart {"role":"assistant"}`,
			`contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"`+sig("sealed")+`"}}}`, `contentBlockStop {"contentBlockIndex":0}`,
			`contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"Yes"}}`, `contentBlockStop {"contentBlockIndex":1}`, `messageStop {"stopReason":"end_turn"}`),
			"Yes", "", model.Done, sig("sealed"), ""},
		{"thinking that is sealed", config.Anthropic, sse(messageStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"SEALED"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Yes"}}`,
			`{"type":"content_block_stop","index":1}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`),
			"Yes", "", model.Done, `"data":"SEALED"`, ""},
		{"reasoning beside the text", config.XAI, chunks("stop", `{"reasoning_content":"Hm."}`, `{"content":"Yes"}`), "Yes", "", model.Done, `"Yes"`, "Hm."},
		{"what it says after its usage", config.AmazonBedrock, frames(`messageStart {"role":"assistant"}`, `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"Yes"}}`,
			`contentBlockStop {"contentBlockIndex":0}`, `metadata {"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`, `messageStop {"stopReason":"end_turn"}`),
			"Yes", "", model.Done, "", ""},
		{"no usage, no id", config.OpenAICompatible, chunks("stop", `{"tool_calls":[{"index":0,"id":"","function":{"name":"grep","arguments":"{}"}}]}`), "", "grep {}", model.Calls, `"tool_call_id"`, `"tool_call_id":""`},
		{"a chunk without choices first", config.OpenAICompatible, raw("data: {\"choices\":[],\"prompt_filter_results\":[]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"Yes\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"),
			"Yes", "", model.Done, "", ""},
		{"usage is asked for", config.OpenRouter, chunks("stop", `{"content":"Yes"}`), "Yes", "", model.Done, `"usage":{"include":true}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
				if r.Step == 0 {
					return tt.turn
				}
				return modeltest.Turn{Text: "ok"}
			})
			m := one(tt.provider)
			c, _ := opened(t, m, s.URL)
			r := &model.Request{Tools: tools, Messages: question("?")}
			a, err := c.Answer(t.Context(), r, func(model.Event) {})
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			next := model.Message{Role: model.User, Parts: []model.Part{{Text: "go on"}}}
			for _, k := range a.Message.Calls() {
				calls = append(calls, k.Name+" "+k.Arguments)
				next.Parts = []model.Part{{Result: &model.Result{ID: k.ID, Name: k.Name, Text: "x"}}}
			}
			if a.Message.Text() != tt.text || strings.Join(calls, "|") != tt.calls || a.Finish != tt.finish {
				t.Errorf("text %q, calls %q, %s", a.Message.Text(), calls, a.Finish)
			}

			r.Messages = append(r.Messages, a.Message, next)
			if _, err := c.Answer(t.Context(), r, func(model.Event) {}); err != nil {
				t.Fatalf("the next request: %v; refused: %q", err, s.Refused())
			}
			sent := s.Requests()[1].Raw
			if !strings.Contains(sent, tt.back) || tt.not != "" && strings.Contains(sent, tt.not) {
				t.Errorf("the next request has to have %q and not %q: %s", tt.back, tt.not, sent)
			}
		})
	}
}

// They come after a status of 200, and do not end the stream.
func TestBedrockConverse_exceptionsAreErrors(t *testing.T) {
	t.Parallel()
	begun := []string{`messageStart {"role":"assistant"}`, `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"Ye"}}`}
	for exception, want := range map[string]model.Kind{
		`!throttlingException {"message":"slow down"}`:         model.Limited,
		`!validationException {"message":"Input is too long"}`: model.TooLong,
		`!internalServerException {"message":"sorry"}`:         model.Overloaded,
	} {
		s := modeltest.Start(t, frames(append(begun[:2:2], exception)...))
		c, _ := opened(t, one(config.AmazonBedrock), s.URL)
		_, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {})
		if e, ok := err.(*model.Error); !ok || e.Kind != want {
			t.Errorf("%s: %v, want %s", exception, err, want)
		}
	}
}

// The provider reports once which kind of thinking a model supports. Without a report, no
// thinking is requested.
func TestThinking_isRequestedOnlyInTheKindThatTheModelSupports(t *testing.T) {
	t.Parallel()
	for told, want := range map[string]string{
		`{"capabilities":{"thinking":{"types":{"adaptive":{"supported":true},"enabled":{"supported":true}}}}}`:  `"thinking":{"display":"summarized","type":"adaptive"}`,
		`{"capabilities":{"thinking":{"types":{"adaptive":{"supported":false},"enabled":{"supported":true}}}}}`: `"budget_tokens":12000`,
		`{"type":"error"}`: "",
	} {
		var mu sync.Mutex
		asked, body := 0, ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if r.Method == http.MethodGet {
				asked++
				if r.URL.Path != "/models/claude-x" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				_, _ = w.Write([]byte(told))
				return
			}
			var b bytes.Buffer
			_, _ = b.ReadFrom(r.Body)
			body = b.String()
			w.WriteHeader(http.StatusForbidden) // the answer does not matter here
		}))
		t.Cleanup(server.Close)
		c, _ := opened(t, one(config.Anthropic), server.URL)
		for range 2 {
			if _, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {}); err == nil {
				t.Fatal("a refusal is no answer")
			}
		}
		mu.Lock()
		if asked != 1 || !strings.Contains(body, want) || want == "" && strings.Contains(body, "thinking") || !strings.Contains(body, `"max_tokens":`) {
			t.Errorf("%s: asked %d times, sent %s, want %s", told, asked, body, want)
		}
		mu.Unlock()
	}
}

// Thinking tokens count as output, and the service refuses a budget that is not smaller.
func TestThinking_budgetIsBelowTheOutputLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		budget    string // of the variable
		model     string
		maxOutput int
		want      float64 // 0 for no thinking
	}{
		{"", "claude-x", 0, 12_000},
		{"20000", "claude-x", 0, 20_000},
		{"31999", "claude-x", 0, 32_000 - 4096},
		{"64000", "claude-x", 0, 32_000 - 4096},
		{"1024", "claude-x", 0, 1024},
		{"12", "claude-x", 0, 12_000},
		{"many", "claude-x", 0, 12_000},
		{"", "claude-3-5-x", 0, 8192 - 4096},
		{"", "claude-x", 6000, 6000 - 4096},
		{"", "claude-x", 200, 0},
		{"64000", "claude-3-opus", 0, 0},
	} {
		script := modeltest.Start(t, modeltest.Turn{Text: "ok"})
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// The provider's report about the model is not scripted.
			if r.Method == http.MethodGet {
				_, _ = w.Write([]byte(`{"capabilities":{"thinking":{"types":{"enabled":{"supported":true}}}}}`))
				return
			}
			script.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)

		m := one(config.Anthropic)
		m.Model = tt.model
		c, _ := openedWith(t, m, front.URL, map[string]string{"ANTHROPIC_THINKING_BUDGET_TOKENS": tt.budget})
		if _, err := c.Answer(t.Context(), &model.Request{Messages: question("?"), MaxOutput: tt.maxOutput}, func(model.Event) {}); err != nil {
			t.Errorf("%+v: %v; refused: %q", tt, err, script.Refused())
			continue
		}
		thinking, _ := script.Requests()[0].Body["thinking"].(map[string]any)
		if got, _ := thinking["budget_tokens"].(float64); got != tt.want || (thinking != nil) != (tt.want > 0) {
			t.Errorf("%+v: sent %v", tt, thinking)
		}
	}
}

// Only the first call of a step from another model gets the placeholder signature, as the service
// documents.
func TestCallsOfAnotherModel_firstCallGetsThePlaceholderSignature(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t, modeltest.Turn{Text: "ok"})
	c, _ := opened(t, one(config.GoogleGenerativeAI), s.URL)
	call := func(id string) model.Part {
		return model.Part{Call: &model.Call{ID: id, Name: "grep", Arguments: "{}"}}
	}
	result := func(id string) model.Part {
		return model.Part{Result: &model.Result{ID: id, Name: "grep", Text: "x"}}
	}
	r := &model.Request{Tools: tools, Messages: append(question("?"),
		model.Message{Role: model.Assistant, Parts: []model.Part{call("a"), call("b")}}, model.Message{Role: model.User, Parts: []model.Part{result("a"), result("b")}})}
	if _, err := c.Answer(t.Context(), r, func(model.Event) {}); err != nil {
		t.Fatalf("%v; refused: %q", err, s.Refused())
	}
	raw := s.Requests()[0].Raw
	if n := strings.Count(raw, base64.StdEncoding.EncodeToString([]byte("skip_thought_signature_validator"))); n != 1 {
		t.Errorf("%d stand-ins, want 1: %s", n, raw)
	}
}

// The service refuses a conversation that has calls but no tools.
func TestModelRequest_hasToolsIfTheConversationHasCalls(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t, modeltest.Turn{Text: "ok"})
	c, _ := opened(t, one(config.AmazonBedrock), s.URL)
	call := model.Part{Call: &model.Call{ID: "a", Name: "grep", Arguments: "{}"}}
	result := model.Part{Result: &model.Result{ID: "a", Name: "grep", Text: ""}}
	r := &model.Request{Messages: append(question("?"),
		model.Message{Role: model.Assistant, Parts: []model.Part{call, {Text: "b"}}}, model.Message{Role: model.User, Parts: []model.Part{result}})}
	if _, err := c.Answer(t.Context(), r, func(model.Event) {}); err != nil {
		t.Errorf("%v; refused: %q", err, s.Refused())
	}
	if raw := s.Requests()[0].Raw; !strings.Contains(raw, `"toolSpec":{`) || !strings.Contains(raw, `"name":"grep"`) {
		t.Errorf("no tool is told: %s", raw)
	}

	// Without calls no tools are sent.
	if _, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {}); err != nil {
		t.Error(err)
	}
	if raw := s.Requests()[1].Raw; strings.Contains(raw, "toolConfig") {
		t.Errorf("tools of a conversation without calls: %s", raw)
	}
}

// Models refuse unknown parameters, so only configured ones are sent.
func TestModelRequest_hasOnlyConfiguredParameters(t *testing.T) {
	t.Parallel()
	for _, tt := range all {
		s := modeltest.Start(t, modeltest.Turn{Text: "ok"})
		m := tt.m
		m.ReasoningSummary = "none"
		c, _ := opened(t, m, s.URL)
		if _, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {}); err != nil {
			t.Fatalf("%s: %v", m.Provider, err)
		}
		raw := s.Requests()[0].Raw
		for _, member := range []string{`"temperature"`, `"top_p"`, `"reasoning_effort"`, `"summary"`, `"tools"`, `"tool_choice"`} {
			if strings.Contains(raw, member) {
				t.Errorf("%s %s: %s was sent: %s", m.Provider, m.Model, member, raw)
			}
		}
	}
}

// Each property that changes the request is sent.
func TestModelRequest_hasEachConfiguredParameter(t *testing.T) {
	t.Parallel()
	warm, budget := 0.25, int64(777)
	with := func(name config.Provider, set func(*config.Model)) config.Model {
		m := one(name)
		set(&m)
		return m
	}
	for _, tt := range []struct {
		m    config.Model
		want string
	}{
		{with(config.OpenAI, func(m *config.Model) { m.ReasoningEffort, m.ReasoningSummary = "minimal", "detailed" }), `"reasoning":{"effort":"minimal","summary":"detailed"}`},
		{with(config.OpenAI, func(m *config.Model) { m.ReasoningSummary = "none" }), `"reasoning":{"effort":"medium"}`},
		{with(config.OpenAI, func(*config.Model) {}), `"reasoning":{"effort":"medium","summary":"auto"}`},
		{with(config.Azure, func(m *config.Model) { m.ReasoningEffort = "high" }), `"effort":"high"`},
		{with(config.XAI, func(m *config.Model) { m.Temperature = &warm }), `"temperature":0.25`},
		{with(config.AmazonBedrock, func(m *config.Model) { m.Temperature = &warm }), `"temperature":0.25`},
		{with(config.GoogleVertex, func(m *config.Model) { m.ThinkingBudget = &budget }), `"thinkingBudget":777`},
		{with(config.GoogleVertex, func(m *config.Model) { m.ThinkingLevel, m.ThinkingBudget = "high", &budget }), `"thinkingLevel":"HIGH"`},
		{with(config.GoogleVertexAnthropic, func(*config.Model) {}), `"anthropic_version":"vertex-2023-10-16"`},
	} {
		s := modeltest.Start(t, modeltest.Turn{Text: "ok"})
		c, _ := opened(t, tt.m, s.URL)
		if _, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {}); err != nil {
			t.Fatalf("%s: %v", tt.m.Provider, err)
		}
		raw := s.Requests()[0].Raw
		if !strings.Contains(raw, tt.want) {
			t.Errorf("%s: want %s in %s", tt.m.Provider, tt.want, raw)
		}
		if strings.Contains(raw, "thinkingLevel") && strings.Contains(raw, "thinkingBudget") {
			t.Errorf("%s: a level and a budget, of which the service takes one: %s", tt.m.Provider, raw)
		}
		if tt.m.Provider == config.GoogleVertexAnthropic && strings.Contains(raw, `"model"`) {
			t.Errorf("the model stands in the address there, not in the body: %s", raw)
		}
	}
}

// Older reasoning models refuse reasoning in messages. Newer ones need it in every assistant
// message, "" for none.
func TestReasoning_ofEarlierTurnsIsSentOnlyToModelsThatNeedIt(t *testing.T) {
	t.Parallel()
	said := func(m model.Message, text string) model.Message {
		m.Parts = []model.Part{{Text: text}}
		return m
	}
	for _, tt := range []struct {
		name      string
		want, not string
	}{
		{"deepseek-reasoner", `{"role":"assistant","content":"One."}`, "first thought"},
		{"deepseek-v4", `"reasoning_content":"first thought"`, ""},
		{"deepseek-v4", `{"role":"assistant","content":"Two.","reasoning_content":""}`, ""},
	} {
		s := modeltest.Start(t, modeltest.Turn{Text: "ok"})
		m := one(config.DeepSeek)
		m.Model = tt.name
		c, _ := opened(t, m, s.URL)
		own := &model.Native{From: "deepseek/" + tt.name, JSON: json.RawMessage(`{"role":"assistant","content":"One.","reasoning_content":"first thought"}`)}
		r := &model.Request{Messages: append(question("1?"), said(model.Message{Role: model.Assistant, Native: own}, "One."),
			question("2?")[0], said(model.Message{Role: model.Assistant}, "Two."), question("3?")[0])}
		if _, err := c.Answer(t.Context(), r, func(model.Event) {}); err != nil {
			t.Fatal(err)
		}
		raw := s.Requests()[0].Raw
		if !strings.Contains(raw, tt.want) || tt.not != "" && strings.Contains(raw, tt.not) {
			t.Errorf("%s: want %s and not %q in %s", tt.name, tt.want, tt.not, raw)
		}
	}
}

// Services have different names for cached tokens.
func TestTokenUsage_includesCachedTokensOfEachService(t *testing.T) {
	t.Parallel()
	for usage, cached := range map[string]int{
		`{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":7,"prompt_cache_miss_tokens":2}`: 7,
		`{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":5}}`:              5,
		`{"prompt_tokens":9,"completion_tokens":2}`:                                                          0,
	} {
		s := modeltest.Start(t, raw("data: {\"choices\":[{\"delta\":{\"content\":\"Yes\"},\"finish_reason\":\"stop\"}],\"usage\":"+usage+"}\n\ndata: [DONE]\n\n"))
		c, _ := opened(t, one(config.DeepSeek), s.URL)
		a, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {})
		if err != nil || a.Usage != (model.Usage{Input: 9, Cached: cached, Output: 2}) {
			t.Errorf("%s: %+v, %v", usage, a, err)
		}
	}
}
