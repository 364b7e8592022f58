package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// The numbers that every answer counts.
const (
	input, cached, output = 120, 80, 30
)

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(b)
}

type object = map[string]any

// halves cuts a text in two, so that every piece is put together by somebody.
func halves(s string) []string {
	if len(s) < 2 {
		return []string{s}
	}
	return []string{s[:len(s)/2], s[len(s)/2:]}
}

// streamChat returns a turn as the events of Chat Completions.
func streamChat(s *Server, _ *Request, t Turn) []byte {
	var b bytes.Buffer
	say := func(delta object, finish any) {
		fmt.Fprintf(&b, "data: %s\n\n", encoded(object{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}}))
	}
	// Services behind proxies send comments while a model thinks; they are no events.
	b.WriteString(": keep-alive\n\n")
	// Both names under which providers give reasoning back.
	if token := s.keep(t); token != "" {
		say(object{"role": "assistant", "reasoning_content": t.Reasoning + token,
			"reasoning_details": []any{object{"type": "reasoning.encrypted", "data": token, "index": 0}}}, nil)
	}
	for _, piece := range halves(t.Text) {
		if piece != "" {
			say(object{"content": piece}, nil)
		}
	}
	// The first piece names the call; the others have its number alone.
	for i, c := range t.Calls {
		say(object{"tool_calls": []any{object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}}, nil)
		for _, piece := range halves(c.Arguments) {
			say(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}}, nil)
		}
	}

	// A turn with calls has its own finish reason. The usage follows in an event without choices.
	finish := "stop"
	if len(t.Calls) > 0 {
		finish = "tool_calls"
	} else if t.Length {
		finish = "length"
	}
	say(object{}, finish)
	fmt.Fprintf(&b, "data: %s\n\ndata: [DONE]\n\n", encoded(object{"id": "c1", "choices": []any{}, "usage": object{
		"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output, "prompt_tokens_details": object{"cached_tokens": cached},
	}}))
	return b.Bytes()
}

var nine = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)

// checkChat returns why the real service would refuse a request of Chat Completions; "" if it would
// not.
func checkChat(s *Server, r *Request) string {
	open := map[string]bool{}
	var answered []string
	// The name of the model tells which provider is simulated.
	strict := strings.Contains(text(r.Body["model"]), "mistral")
	for _, m := range list(r.Body["messages"]) {
		switch text(get(m, "role")) {
		case "assistant":
			for _, c := range list(get(m, "tool_calls")) {
				id := text(get(c, "id"))
				// Mistral takes no names of calls but its own form.
				if strict && !nine.MatchString(id) {
					return "Tool call id was " + id + " but must be a-z, A-Z, 0-9, with a length of 9."
				}
				if get(c, "type") != "function" {
					return "tool_calls without a type"
				}
				open[id] = true
			}

			// A message that was nothing but reasoning has neither.
			if get(m, "content") == nil && get(m, "tool_calls") == nil {
				return "Assistant message must have either content or tool_calls"
			}
		// A result without its call, or of one that was answered already, as after a bad cut of
		// the conversation.
		case "tool":
			id := text(get(m, "tool_call_id"))
			if !open[id] {
				return "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
			}
			delete(open, id)
			answered = append(answered, id)
		// Every call has its result before anybody says something else, and before the end.
		case "user":
			if len(open) > 0 {
				return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
			}
		}
	}
	if len(open) > 0 {
		return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
	}

	// The others ignore reasoning that comes back.
	wants := strings.Contains(text(r.Body["model"]), "deepseek") || strings.Contains(text(r.Body["model"]), "openrouter")
	if id := s.missing(r, answered); id != "" && wants {
		return "Missing `reasoning_content` field in the assistant message of " + id
	}
	return ""
}

// streamResponses returns a turn as the events of the Responses API.
func streamResponses(s *Server, r *Request, t Turn) []byte {
	var b bytes.Buffer
	seq := 0
	// Like the service, send the kind twice: libraries read one or the other.
	say := func(kind string, v object) {
		v["type"], v["sequence_number"] = kind, seq
		seq++
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, encoded(v))
	}
	// The whole response is in the first event and in the last, then with all items.
	response := func(status string, out []any) object {
		return object{"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": r.Body["model"], "output": out,
			"parallel_tool_calls": true, "tools": []any{}, "tool_choice": "auto", "error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "temperature": nil, "top_p": nil}
	}
	say("response.created", object{"response": response("in_progress", []any{})})
	var out []any
	add := func(item object) { out = append(out, item) }

	// The order of the items is that in which they have to come back.
	if token := s.keep(t); token != "" {
		item := object{"id": "rs_1", "type": "reasoning", "summary": []any{object{"type": "summary_text", "text": t.Reasoning}}, "encrypted_content": token}
		say("response.reasoning_summary_text.delta", object{"item_id": "rs_1", "output_index": len(out), "summary_index": 0, "delta": t.Reasoning})
		say("response.output_item.done", object{"output_index": len(out), "item": item})
		add(item)
	}
	if t.Text != "" {
		for _, piece := range halves(t.Text) {
			say("response.output_text.delta", object{"item_id": "msg_1", "output_index": len(out), "content_index": 0, "delta": piece, "logprobs": []any{}})
		}
		item := object{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": []any{object{"type": "output_text", "text": t.Text, "annotations": []any{}}}}
		say("response.output_item.done", object{"output_index": len(out), "item": item})
		add(item)
	}
	// The id of an item differs from its call_id, as with the real service: code that mixes them up
	// fails.
	for i, c := range t.Calls {
		item := object{"id": fmt.Sprintf("fc_%d", i), "type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": c.Arguments, "status": "completed"}
		say("response.function_call_arguments.delta", object{"item_id": item["id"], "output_index": len(out), "delta": c.Arguments})
		say("response.output_item.done", object{"output_index": len(out), "item": item})
		add(item)
	}

	// A truncated answer ends with another event.
	end, kind := response("completed", out), "response.completed"
	if t.Length {
		end, kind = response("incomplete", out), "response.incomplete"
		end["incomplete_details"] = object{"reason": "max_output_tokens"}
	}
	end["usage"] = object{"input_tokens": input, "input_tokens_details": object{"cached_tokens": cached}, "output_tokens": output,
		"output_tokens_details": object{"reasoning_tokens": 10}, "total_tokens": input + output}
	say(kind, object{"response": end})
	return b.Bytes()
}

// checkResponses returns why the real service would refuse a request of the Responses API; "" if it
// would not.
func checkResponses(s *Server, r *Request) string {
	// Stored at the provider, code of private repositories would lie there.
	if r.Body["store"] != false {
		return "store has to be false here"
	}
	open := map[string]bool{}
	var answered []string
	for _, item := range list(r.Body["input"]) {
		switch text(get(item, "type")) {
		case "function_call":
			open[text(get(item, "call_id"))] = true
		// A result must follow its call, and every call needs one.
		case "function_call_output":
			id := text(get(item, "call_id"))
			if !open[id] {
				return "No tool call found for function call output with call_id " + id + "."
			}
			delete(open, id)
			answered = append(answered, id)
		}
	}
	for id := range open {
		return "No tool output found for function call " + id + "."
	}
	// Nothing is stored, so the sealed reasoning has to come with the call.
	if id := s.missing(r, answered); id != "" {
		return "Item 'fc' of type 'function_call' was provided without its required 'reasoning' item: " + id
	}
	return ""
}

// streamMessages returns a turn as the events of the Messages API.
func streamMessages(s *Server, r *Request, t Turn) []byte {
	var b bytes.Buffer
	say := func(kind string, v object) {
		v["type"] = kind
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, encoded(v))
	}
	// The input tokens are reported at the start, in three parts, and the output tokens at the end.
	say("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": input - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0, "output_tokens": 1}}})
	say("ping", object{})
	index := 0
	// Blocks come one after the other, each begun and ended.
	block := func(start object, deltas ...object) {
		say("content_block_start", object{"index": index, "content_block": start})
		for _, d := range deltas {
			say("content_block_delta", object{"index": index, "delta": d})
		}
		say("content_block_stop", object{"index": index})
		index++
	}

	// The signature follows the text that it signs, in a block of its own.
	if token := s.keep(t); token != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""},
			object{"type": "thinking_delta", "thinking": t.Reasoning}, object{"type": "signature_delta", "signature": token})
	}
	if t.Text != "" {
		var deltas []object
		for _, piece := range halves(t.Text) {
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		}
		block(object{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range t.Calls {
		var deltas []object
		for _, piece := range halves(c.Arguments) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": piece})
		}
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, deltas...)
	}

	// Calls go before the bound: the reason is the last thing that the model did.
	stop := "end_turn"
	if len(t.Calls) > 0 {
		stop = "tool_use"
	} else if t.Length {
		stop = "max_tokens"
	}
	say("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": output}})
	say("message_stop", object{})
	return b.Bytes()
}

// checkMessages returns why the real service would refuse a request of the Messages API; "" if it
// would not.
func checkMessages(s *Server, r *Request) string {
	// Required here, unlike in all other wires.
	if n, _ := r.Body["max_tokens"].(float64); n <= 0 {
		return "max_tokens: Field required"
	}
	if thinking := get(r.Body["thinking"], "budget_tokens"); thinking != nil {
		budget, _ := thinking.(float64)
		switch most, _ := r.Body["max_tokens"].(float64); {
		case budget < 1024:
			return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
		case budget >= most:
			return "`max_tokens` must be greater than `thinking.budget_tokens`."
		}
	}
	// On Vertex the model is in the path, and the version in its place.
	if text(r.Body["model"]) == "" && text(r.Body["anthropic_version"]) == "" {
		return "model: Field required"
	}
	var answered []string
	last, open := "", map[string]bool{}

	// Each step marks its end: with the marks of earlier steps the bound would soon be reached.
	marks := strings.Count(r.Raw, `"cache_control"`)
	if marks > 4 {
		return "A maximum of 4 blocks with cache_control may be provided."
	}
	for _, m := range list(r.Body["messages"]) {
		role := text(get(m, "role"))
		// Two messages of one role in a row have to be made one.
		if role == last {
			return "messages: roles must alternate"
		}
		last = role
		for i, b := range list(get(m, "content")) {
			switch text(get(b, "type")) {
			case "text":
				// Models give empty texts out, and do not take them back.
				if text(get(b, "text")) == "" {
					return "messages: text content blocks must be non-empty"
				}
			case "tool_use":
				// Arguments that are no object go back wrapped in one.
				if _, ok := get(b, "input").(map[string]any); !ok {
					return "tool_use.input: Input should be a valid dictionary"
				}
				open[text(get(b, "id"))] = true
			case "tool_result":
				id := text(get(b, "tool_use_id"))
				if !open[id] {
					return "unexpected `tool_use_id` found in `tool_result` blocks: " + id
				}
				// The user's text follows the results, and is never before or between them.
				if i > 0 && text(get(list(get(m, "content"))[i-1], "type")) != "tool_result" {
					return "tool_result blocks have to stand first"
				}
				delete(open, id)
				answered = append(answered, id)
			}
		}

		// All results of a step are in the message right behind it.
		if role == "user" && len(open) > 0 {
			return "`tool_use` ids were found without `tool_result` blocks immediately after"
		}
	}
	if id := s.missing(r, answered); id != "" {
		return "Expected `thinking` or `redacted_thinking`, but found `tool_use` " + id
	}
	return ""
}

// streamGemini returns a turn as the chunks of Gemini.
func streamGemini(s *Server, _ *Request, t Turn) []byte {
	var b bytes.Buffer
	say := func(parts []any, finish string) {
		c := object{"content": object{"role": "model", "parts": parts}, "index": 0}
		if finish != "" {
			c["finishReason"] = finish
		}
		fmt.Fprintf(&b, "data: %s\r\n\r\n", encoded(object{"candidates": []any{c}, "modelVersion": "m", "responseId": "r1",
			"usageMetadata": object{"promptTokenCount": input, "cachedContentTokenCount": cached, "candidatesTokenCount": output, "totalTokenCount": input + output}}))
	}
	token := s.keep(t)
	if token != "" {
		say([]any{object{"text": t.Reasoning, "thought": true}}, "")
	}
	for _, piece := range halves(t.Text) {
		if piece != "" {
			say([]any{object{"text": piece}}, "")
		}
	}
	// A call comes whole, with its arguments as an object.
	for i, c := range t.Calls {
		var args any
		if json.Unmarshal([]byte(c.Arguments), &args) != nil {
			args = object{}
		}
		part := object{"functionCall": object{"name": c.Name, "args": args, "id": c.ID}}
		// Only the first of several calls of a step is signed.
		if i == 0 && token != "" {
			part["thoughtSignature"] = token
		}
		say([]any{part}, "")
	}
	finish := "STOP" // with calls too
	if t.Length {
		finish = "MAX_TOKENS"
	}
	// The reason comes with an empty text, which is no part of the answer.
	say([]any{object{"text": ""}}, finish)
	return b.Bytes()
}

// checkGemini returns why the real service would refuse a request of Gemini; "" if it would not.
func checkGemini(s *Server, r *Request) string {
	calls, last := 0, ""
	for _, c := range list(r.Body["contents"]) {
		role := text(get(c, "role"))
		responses := 0
		for _, p := range list(get(c, "parts")) {
			if get(p, "functionCall") != nil {
				// Only models that think ask for signatures, and only with the first call.
				if calls == 0 && get(p, "thoughtSignature") == nil && len(s.opaque) > 0 {
					return "Function call is missing a thought_signature in functionCall parts."
				}
				calls++
			}
			if get(p, "functionResponse") != nil {
				responses++
			}
		}

		// Results have no names of calls here: their number is all that can be checked.
		if role == "user" && last == "model" && responses != calls {
			return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
		}
		if role == "user" {
			calls = 0
		}
		last = role
	}
	return ""
}

// streamConverse returns a turn as the events of Bedrock Converse.
func streamConverse(s *Server, _ *Request, t Turn) []byte {
	var b bytes.Buffer
	enc := eventstream.NewEncoder()
	// The library reads its own framing, with sums: so it is written by its own encoder.
	say := func(kind string, v object) {
		m := eventstream.Message{Payload: []byte(encoded(v))}
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		m.Headers.Set(":event-type", eventstream.StringValue(kind))
		m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
		if err := enc.Encode(&b, m); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	say("messageStart", object{"role": "assistant"})
	index := 0
	// Blocks of text and reasoning have no start: their first piece is it.
	if token := s.keep(t); token != "" {
		say("contentBlockDelta", object{"contentBlockIndex": index, "delta": object{"reasoningContent": object{"text": t.Reasoning}}})
		say("contentBlockDelta", object{"contentBlockIndex": index, "delta": object{"reasoningContent": object{"signature": token}}})
		say("contentBlockStop", object{"contentBlockIndex": index})
		index++
	}
	if t.Text != "" {
		for _, piece := range halves(t.Text) {
			say("contentBlockDelta", object{"contentBlockIndex": index, "delta": object{"text": piece}})
		}
		say("contentBlockStop", object{"contentBlockIndex": index})
		index++
	}
	for _, c := range t.Calls {
		say("contentBlockStart", object{"contentBlockIndex": index, "start": object{"toolUse": object{"toolUseId": c.ID, "name": c.Name}}})
		for _, piece := range halves(c.Arguments) {
			say("contentBlockDelta", object{"contentBlockIndex": index, "delta": object{"toolUse": object{"input": piece}}})
		}
		say("contentBlockStop", object{"contentBlockIndex": index})
		index++
	}
	// The usage may come before the stop reason. A client that stops reading at the stop reason
	// must not lose it.
	say("metadata", object{"usage": object{"inputTokens": input - cached, "outputTokens": output, "totalTokens": input + output, "cacheReadInputTokens": cached}, "metrics": object{"latencyMs": 1}})
	stop := "end_turn"
	if len(t.Calls) > 0 {
		stop = "tool_use"
	} else if t.Length {
		stop = "max_tokens"
	}
	say("messageStop", object{"stopReason": stop})
	return b.Bytes()
}

// checkConverse returns why the real service would refuse a request of Bedrock Converse; "" if it
// would not.
func checkConverse(s *Server, r *Request) string {
	open := map[string]bool{}
	var answered []string
	last, tools := "", false
	for _, m := range list(r.Body["messages"]) {
		role := text(get(m, "role"))
		// Roles take turns, or the service refuses all.
		if role == last {
			return "A conversation must alternate between user and assistant roles."
		}
		last = role
		for _, b := range list(get(m, "content")) {
			if use := get(b, "toolUse"); use != nil {
				open[text(get(use, "toolUseId"))], tools = true, true
			}
			if res := get(b, "toolResult"); res != nil {
				id := text(get(res, "toolUseId"))
				// A result without its call is refused: it can come of a conversation that was cut.
				if !open[id] {
					return "The number of toolResult blocks exceeds the number of toolUse blocks of previous turn: " + id
				}
				delete(open, id)
				answered = append(answered, id)
				// A tool that found nothing still has to say something.
				for _, c := range list(get(res, "content")) {
					if text(get(c, "text")) == "" {
						return "The text field in the ContentBlock object is blank."
					}
				}
			}
		}
		if role == "user" && len(open) > 0 {
			return "Expected toolResult blocks for the toolUse blocks of the message before."
		}
	}

	// Also in a step in which nothing may be called any more.
	if tools && r.Body["toolConfig"] == nil {
		return "The toolConfig field must be defined when using toolUse and toolResult content blocks."
	}
	if id := s.missing(r, answered); id != "" {
		return "Expected reasoningContent before toolUse " + id
	}
	return ""
}
