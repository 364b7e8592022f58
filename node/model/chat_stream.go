package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// chatChunk is one event of a stream.
type chatChunk struct {
	Choices []struct {
		Delta        chatDelta `json:"delta"`
		FinishReason string    `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type chatDelta struct {
	Content          json.RawMessage   `json:"content"` // a string, or a list of parts
	ReasoningContent string            `json:"reasoning_content"`
	Reasoning        string            `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	Refusal          string            `json:"refusal"`
	ToolCalls        []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"` // a JSON string; some providers send an object
		} `json:"function"`
	} `json:"tool_calls"`
}

type chatUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	CacheHit         int `json:"prompt_cache_hit_tokens"`
	PromptDetails    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// chatStream assembles an answer from its events.
type chatStream struct {
	w     *chat
	emit  func(Event)
	tags  *tagSplitter // nil: the text contains no reasoning
	text  strings.Builder
	think strings.Builder   // reasoning
	parts []json.RawMessage // parts of a content that is a list
	calls []*Call
	index map[int]*Call // by the index that the service gives

	details map[int]map[string]any // reasoning_details by index
	finish  string                 // finish reason; "": not ended
	usage   Usage
	ended   bool // the service has sent [DONE]
	size    int  // bytes of all events
}

func newChatStream(w *chat, on func(Event)) *chatStream {
	s := &chatStream{w: w, emit: on, index: map[int]*Call{}, details: map[int]map[string]any{}}
	if w.e.provider.chat.tagged {
		tag := w.e.m.ReasoningTag
		if tag == "" {
			tag = "think"
		}
		s.tags = newTagSplitter(tag)
	}
	return s
}

// addEvent processes one event.
func (s *chatStream) addEvent(data []byte) error {
	// Count before parsing, to limit memory.
	if s.size += len(data); s.size > maxStream {
		return &Error{Kind: Broken, Message: "an answer that does not end"}
	}

	var c chatChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return &Error{Kind: Broken, Message: "not the JSON of this protocol: " + oneLine(string(data))}
	}

	// The status was 200 when the answer began, so later failures come as an event.
	if len(c.Error) > 0 && string(c.Error) != "null" {
		codes, message := readErrorBody(data)
		return &Error{Kind: kindFor(errorStatus(c.Error), codes, message), Message: message}
	}

	// Each event has the usage so far, so the last one counts.
	if c.Usage != nil {
		s.usage = Usage{
			Input: c.Usage.PromptTokens, Cached: max(c.Usage.CacheHit, c.Usage.PromptDetails.Cached),
			Output: c.Usage.CompletionTokens, Reasoning: c.Usage.CompletionDetails.Reasoning,
		}
	}

	// The last event, with the usage, has no choices.
	for _, choice := range c.Choices {
		if err := s.addDelta(&choice.Delta); err != nil {
			return err
		}
		if choice.FinishReason != "" {
			s.finish = choice.FinishReason
		}
	}
	return nil
}

// errorStatus returns the HTTP status that some services put into an error event as its code.
func errorStatus(raw json.RawMessage) int {
	var e struct {
		Code int `json:"code"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return 0
	}
	return e.Code
}

// addDelta adds one piece of the answer.
func (s *chatStream) addDelta(d *chatDelta) error {
	s.addReasoning(d.ReasoningContent)
	// Two names for the same field; some services send both.
	if d.ReasoningContent == "" {
		s.addReasoning(d.Reasoning)
	}
	for i, raw := range d.ReasoningDetails {
		s.addDetail(i, raw)
	}

	if err := s.addContent(d.Content); err != nil {
		return err
	}
	// A refusal is text of the model in a field of its own.
	s.addText(d.Refusal)

	for i, t := range d.ToolCalls {
		// Parts of several calls may be interleaved.
		call := s.callFor(i, t.Index, t.ID, t.Function.Name)
		if call == nil {
			return &Error{Kind: Broken, Message: fmt.Sprintf("more than %d calls in one step", maxCalls)}
		}
		call.Arguments += textOf(t.Function.Arguments)
		// A model that repeats itself does not stop: limit the memory.
		if len(call.Arguments) > maxPart {
			return &Error{Kind: Broken, Message: "arguments that do not end"}
		}
	}
	return nil
}

// addContent processes a piece of the content: a string, or a list of parts, some of them reasoning.
func (s *chatStream) addContent(raw json.RawMessage) error {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil
	case raw[0] == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return &Error{Kind: Broken, Message: "a content that is no text"}
		}

		if s.tags == nil {
			s.addText(text)
			return nil
		}
		said, thought, allReasoning := s.tags.splitPiece(text)
		s.addSplit(said, thought, allReasoning)
		return nil
	}

	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return &Error{Kind: Broken, Message: "a content of an unknown form"}
	}

	// Keep the parts unchanged, to send them back.
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err == nil {
		s.parts = append(s.parts, raws...)
	}

	for _, p := range parts {
		if p.Type != "thinking" {
			s.addText(p.Text)
			continue
		}
		var inner []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(p.Thinking, &inner) == nil {
			for _, one := range inner {
				s.addReasoning(one.Text)
			}
		}
	}
	return nil
}

// addSplit adds text and reasoning that the tags separated. If allReasoning is set, all text so far was
// reasoning.
func (s *chatStream) addSplit(said, thought string, allReasoning bool) {
	if allReasoning {
		before := s.text.String()
		s.text.Reset()
		s.emit(Event{Again: true})
		s.addReasoning(before)
	}
	s.addReasoning(thought)
	s.addText(said)
}

func (s *chatStream) addText(text string) {
	if text != "" {
		s.text.WriteString(text)
		s.emit(Event{Text: text})
	}
}

func (s *chatStream) addReasoning(text string) {
	if text != "" {
		s.think.WriteString(text)
		s.emit(Event{Reasoning: text})
	}
}

// callFor returns the call that the i-th piece of an event belongs to; nil if there are too many.
// Services leave out ids, indices or both. Without both, a name begins a new call.
func (s *chatStream) callFor(i int, index *int, id, name string) *Call {
	at := i
	if index != nil {
		at = *index
	} else if id != "" || name != "" {
		at = len(s.calls)
	} else if len(s.calls) > 0 {
		at = len(s.calls) - 1
	}

	c := s.index[at]
	if c != nil && id != "" && c.ID != "" && c.ID != id {
		c = nil // another call with the same index
	}
	if c == nil {
		if len(s.calls) == maxCalls {
			return nil
		}
		c = &Call{}
		s.index[at] = c
		s.calls = append(s.calls, c)
	}

	if id != "" {
		c.ID = id
	}
	if name != "" && c.Name != name {
		c.Name += name
	}
	return c
}

// addDetail joins the pieces of one part of the reasoning.
func (s *chatStream) addDetail(i int, raw json.RawMessage) {
	var piece map[string]any
	if json.Unmarshal(raw, &piece) != nil {
		return
	}

	// Pieces of one part have the same index; without one, use the position.
	at := i
	if n, ok := piece["index"].(float64); ok {
		at = int(n)
	}

	have := s.details[at]
	if have == nil {
		s.details[at] = piece
		return
	}
	for name, value := range piece {
		// Only these fields come in pieces. Others, such as a signature, come whole.
		text, isText := value.(string)
		before, wasText := have[name].(string)
		if isText && wasText && (name == "text" || name == "summary" || name == "data") {
			have[name] = before + text
		} else if value != nil {
			have[name] = value
		}
	}
}

// assemble returns the answer at the end of the stream.
func (s *chatStream) assemble() (*Answer, error) {
	if s.tags != nil {
		said, thought := s.tags.remainder()
		s.addSplit(said, thought, false)
	}
	// Either mark of the end is enough, since services leave out the other.
	if s.finish == "" && !s.ended {
		return nil, brokenError()
	}

	// checkAnswer recognizes calls, so they need no case here.
	a := &Answer{Usage: s.usage, Finish: Done}
	switch s.finish {
	case "length", "model_length":
		a.Finish = Length
	case "content_filter":
		a.Finish = Blocked
	// The answer is incomplete: retry.
	case "error", "insufficient_system_resource":
		return nil, &Error{Kind: Overloaded, Message: s.finish}
	}

	if text := s.text.String(); text != "" {
		a.Message.Parts = append(a.Message.Parts, Part{Text: text})
	}
	for _, c := range s.calls {
		a.Message.Parts = append(a.Message.Parts, Part{Call: c})
	}

	a, err := s.w.e.checkAnswer(a)
	if err != nil {
		return nil, err
	}
	a.Message.Native = s.native()
	return a, nil
}

// native returns the message in the provider's own format.
func (s *chatStream) native() *Native {
	m := chatMessage{Role: "assistant"}
	switch text := s.text.String(); {
	case s.parts != nil:
		if raw, err := json.Marshal(s.parts); err == nil {
			m.Content = raw
		}
	case text != "":
		m.Content = jsonText(text)
	}

	for _, c := range s.calls {
		m.ToolCalls = append(m.ToolCalls, chatCall{s.w.callID(c.ID), "function", chatFunction{safeName(c.Name), string(c.argumentsObject())}})
	}

	// Send reasoning back in the field that the service expects.
	switch s.w.e.provider.chat.echo {
	case "reasoning_content":
		thought := s.think.String()
		m.ReasoningContent = &thought
	case "reasoning_details":
		for _, at := range slices.Sorted(maps.Keys(s.details)) {
			if raw, err := json.Marshal(s.details[at]); err == nil {
				m.ReasoningDetails = append(m.ReasoningDetails, raw)
			}
		}
	}

	raw, err := json.Marshal(m)
	if err != nil || m.Content == nil && m.ToolCalls == nil {
		return nil
	}
	return &Native{From: s.w.e.name(), JSON: raw}
}
