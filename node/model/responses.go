package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	oai "github.com/openai/openai-go/v3/responses"
)

// responsesWire implements wire for Responses. The provider stores nothing; its encrypted
// reasoning is sent back with each step.
type responsesWire struct {
	e       *endpoint
	service oai.ResponseService
}

func newResponses(e *endpoint) (wire, error) {
	// Use the constructor of the service: that of the whole client reads keys from the
	// environment and sends them to any address.
	return &responsesWire{e, oai.NewResponseService(
		option.WithBaseURL(e.base+"/"), option.WithHTTPClient(e.http), option.WithMaxRetries(0),
	)}, nil
}

// requestBody returns the request body of one step.
func (w *responsesWire) requestBody(r *Request) ([]byte, error) {
	body := map[string]any{"model": w.e.m.Model, "input": w.inputItems(r), "store": false}
	if len(r.System) > 0 {
		body["instructions"] = strings.Join(r.System, "\n\n")
	}
	if r.CacheKey != "" {
		body["prompt_cache_key"] = r.CacheKey
	}
	if r.MaxOutput > 0 {
		body["max_output_tokens"] = r.MaxOutput
	}
	if t := w.e.temperature(); t != nil {
		body["temperature"] = *t
	}

	// The provider stores nothing, so request the reasoning in encrypted form.
	if w.e.supports("reasoning") {
		body["include"] = []string{"reasoning.encrypted_content"}
		body["reasoning"] = w.reasoningField()
	}

	if len(r.Tools) > 0 {
		tools := make([]any, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = map[string]any{"type": "function", "name": t.Name, "description": t.About, "parameters": t.Schema, "strict": false}
		}
		body["tools"] = tools
		if r.NoCalls {
			body["tool_choice"] = "none"
		}
	}
	return json.Marshal(body)
}

// reasoningField returns the reasoning field of a request: the effort, and whether the service
// summarizes its reasoning.
func (w *responsesWire) reasoningField() map[string]string {
	// Without a summary the service sends nothing while it thinks, and users would see no
	// progress.
	effort, summary := w.e.m.ReasoningEffort, w.e.m.ReasoningSummary
	if effort == "" {
		effort = "medium"
	}
	if summary == "" {
		summary = "auto"
	}
	r := map[string]string{"effort": effort}

	// Some accounts may not use summaries; supports then returns false.
	if summary != "none" && w.e.supports("summary") {
		r["summary"] = summary
	}
	return r
}

// inputItems returns the conversation as items.
func (w *responsesWire) inputItems(r *Request) []any {
	var items []any
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role == Assistant {
			// Each call and each part of the reasoning is an item.
			items = append(items, w.assistantItems(m)...)
			continue
		}

		// Results come before the user's text, because the service refuses an unanswered call.
		for _, res := range m.Results() {
			items = append(items, map[string]string{"type": "function_call_output", "call_id": res.ID, "output": nonEmpty(res.Text)})
		}
		if text := m.Text(); text != "" {
			items = append(items, map[string]string{"role": "user", "content": text})
		}
	}
	return items
}

// assistantItems converts a message of the model to items.
func (w *responsesWire) assistantItems(m *Message) (items []any) {
	// Keep the order: reasoning must come before its call.
	var own []json.RawMessage
	if raw := w.e.nativeMessage(m); raw != nil && json.Unmarshal(raw, &own) == nil {
		for _, item := range own {
			items = append(items, item)
		}
		return items
	}

	// Leave out the reasoning, which is encrypted for the model that made it.
	if text := m.Text(); text != "" || len(m.Calls()) == 0 {
		items = append(items, map[string]string{"role": "assistant", "content": nonEmpty(text)})
	}
	for _, c := range m.Calls() {
		items = append(items, map[string]string{"type": "function_call", "call_id": c.ID, "name": safeName(c.Name), "arguments": string(c.argumentsObject())})
	}
	return items
}

// send sends the request and returns the model's answer. Events of the answer go to on as they
// arrive.
func (w *responsesWire) send(ctx context.Context, r *Request, on func(Event)) (*Answer, error) {
	body, err := w.requestBody(r)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	stream := w.service.NewStreaming(ctx, param.Override[oai.ResponseNewParams](json.RawMessage(body)))
	defer stream.Close() // ends the request after a bad event

	// Collect the items as they arrive. The last event repeats them and fills in missing ones.
	s := &responsesStream{e: w.e, emit: on, items: map[int64]json.RawMessage{}}
	for stream.Next() {
		event := stream.Current()
		if err := s.addEvent(&event); err != nil {
			return nil, err
		}
	}
	if err := stream.Err(); err != nil {
		return nil, s.asError(ctx, err)
	}
	return s.assemble()
}

// responsesStream assembles an answer from its events.
type responsesStream struct {
	e      *endpoint
	emit   func(Event)
	items  map[int64]json.RawMessage // finished items by index; ids may differ between events
	usage  Usage
	finish Finish // "" before the end
}

// addEvent handles one event of the stream.
func (s *responsesStream) addEvent(event *oai.ResponseStreamEventUnion) error {
	switch event.Type {
	// These only serve watchers; the answer consists of the items.
	case "response.output_text.delta", "response.refusal.delta":
		s.emit(Event{Text: event.Delta})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		s.emit(Event{Reasoning: event.Delta})

	case "response.output_item.done":
		s.addItem(event)
	case "response.completed", "response.incomplete":
		return s.addFinal(&event.Response)

	// A failure of the answer, and one of the stream.
	case "response.failed":
		f := event.Response.Error
		return &Error{Kind: kindFor(0, []string{string(f.Code)}, f.Message), Message: oneLine(f.Message)}
	case "error":
		codes, message := readErrorBody([]byte(event.RawJSON()))
		return &Error{Kind: kindFor(0, codes, message), Message: message}
	}
	return nil
}

// addItem adds an item. Some gateways leave out the index; then items come in order.
func (s *responsesStream) addItem(event *oai.ResponseStreamEventUnion) {
	at := event.OutputIndex
	if !event.JSON.OutputIndex.Valid() {
		at = int64(len(s.items))
	}
	s.items[at] = json.RawMessage(event.Item.RawJSON())
}

// addFinal reads the final event.
func (s *responsesStream) addFinal(r *oai.Response) error {
	s.finish = Done
	switch r.IncompleteDetails.Reason {
	case "max_output_tokens":
		s.finish = Length
	case "content_filter":
		s.finish = Blocked
	}
	s.usage = Usage{
		Input: int(r.Usage.InputTokens), Cached: int(r.Usage.InputTokensDetails.CachedTokens),
		Output: int(r.Usage.OutputTokens), Reasoning: int(r.Usage.OutputTokensDetails.ReasoningTokens),
	}
	// Add items that had no event of their own.
	for i := range r.Output {
		if _, have := s.items[int64(i)]; !have {
			s.items[int64(i)] = json.RawMessage(r.Output[i].RawJSON())
		}
	}
	return nil
}

// asError turns an error of the stream into an *Error.
func (s *responsesStream) asError(ctx context.Context, err error) error {
	e := toError(ctx, err)
	if e.Kind == Broken && strings.Contains(e.Message, "{") {
		_, text, _ := strings.Cut(e.Message, "{")
		codes, message := readErrorBody([]byte("{" + text))
		e.Kind = kindFor(0, codes, message)
	}
	return e
}

// assemble returns the answer at the end of the stream.
func (s *responsesStream) assemble() (*Answer, error) {
	if s.finish == "" {
		return nil, brokenError()
	}
	a := &Answer{Usage: s.usage, Finish: s.finish}

	own := make([]json.RawMessage, 0, len(s.items))
	for _, at := range slices.Sorted(maps.Keys(s.items)) {
		var item oai.ResponseOutputItemUnion
		if err := json.Unmarshal(s.items[at], &item); err != nil {
			return nil, &Error{Kind: Broken, Message: "an item of an unknown form"}
		}

		switch item.Type {
		case "message":
			for _, part := range item.Content {
				if text := part.Text + part.Refusal; text != "" {
					a.Message.Parts = append(a.Message.Parts, Part{Text: text})
				}
			}
		case "function_call":
			a.Message.Parts = append(a.Message.Parts, Part{Call: &Call{ID: item.CallID, Name: item.Name, Arguments: argumentsOf(s.items[at])}})
		}
		own = append(own, s.items[at])
	}

	a, err := s.e.checkAnswer(a)
	if err != nil {
		return nil, err
	}

	if raw, err := json.Marshal(own); err == nil {
		a.Message.Native = &Native{From: s.e.name(), JSON: raw}
	}
	return a, nil
}

// argumentsOf returns the arguments of a call: a string, or an object from some gateways.
func argumentsOf(item json.RawMessage) string {
	var c struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(item, &c) != nil {
		return ""
	}
	return textOf(c.Arguments)
}
