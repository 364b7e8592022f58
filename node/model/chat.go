package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"
)

// dialect is how a provider differs in Chat Completions.
type dialect struct {
	usage      usageForm
	echo       string // member of its reasoning that has to come back; "" for none
	echoAlways bool   // on every message of the turn, as "" where there was none
	shortIDs   bool   // calls are named by nine letters and digits
	tagged     bool   // reasoning may stand in the text, between tags
}

// usageForm is how a provider is asked to count tokens.
type usageForm int

const (
	usageUnasked usageForm = iota
	usageOption            // stream_options: {include_usage: true}
	usageMember            // usage: {include: true}
)

// chat speaks Chat Completions.
type chat struct{ e *endpoint }

func newChat(e *endpoint) (wire, error) { return &chat{e}, nil }

// chatMessage is a message as the wire has it.
type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content,omitempty"`
	ToolCalls  []chatCall      `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	Name       string          `json:"name,omitempty"`

	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// body is the request of one step.
func (w *chat) body(r *Request) ([]byte, error) {
	d := w.e.provider.chat
	body := map[string]any{"model": w.e.m.Model, "stream": true, "messages": w.messages(r)}
	// Without a bound each service takes its own, which is the usual case.
	if r.MaxOutput > 0 {
		body["max_tokens"] = r.MaxOutput
	}
	if t := w.e.temperature(); t != nil {
		body["temperature"] = *t
	}

	// Without being asked, some tell no numbers of tokens.
	switch {
	case d.usage == usageOption && w.e.takes("stream_options"):
		body["stream_options"] = map[string]bool{"include_usage": true}
	case d.usage == usageMember:
		body["usage"] = map[string]bool{"include": true}
	}

	if len(r.Tools) > 0 {
		tools := make([]any, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = map[string]any{"type": "function", "function": map[string]any{"name": t.Name, "description": t.About, "parameters": t.Schema}}
		}
		body["tools"] = tools

		if r.NoCalls {
			body["tool_choice"] = "none"
		}
	}

	return json.Marshal(body)
}

func jsonText(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}

// messages is the conversation. Each result of a tool is a message of its own.
func (w *chat) messages(r *Request) []json.RawMessage {
	var out []json.RawMessage
	add := func(m any) {
		if raw, err := json.Marshal(m); err == nil {
			out = append(out, raw)
		}
	}

	if len(r.System) > 0 {
		add(chatMessage{Role: "system", Content: jsonText(strings.Join(r.System, "\n\n"))})
	}

	// What is behind the last question belongs to the turn that is being answered.
	turn := lastQuestion(r.Messages)
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role == Assistant {
			add(w.said(m, i > turn))
			continue
		}

		// Results first: they have to follow their calls at once, or the service refuses all.
		for _, res := range m.Results() {
			add(chatMessage{Role: "tool", ToolCallID: w.id(res.ID), Name: safeName(res.Name), Content: jsonText(solid(res.Text))})
		}
		if text := m.Text(); text != "" {
			add(chatMessage{Role: "user", Content: jsonText(text)})
		}
	}

	return out
}

// lastQuestion is the index of the last message in which the user asks.
func lastQuestion(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == User && len(messages[i].Results()) == 0 {
			return i
		}
	}
	return -1
}

// said is an assistant's message: its own form where this model sent it, else
// made from its parts.
func (w *chat) said(m *Message, thisTurn bool) *chatMessage {
	d := w.e.provider.chat
	var c chatMessage
	if raw := w.e.native(m); raw == nil || json.Unmarshal(raw, &c) != nil {
		c = chatMessage{Role: "assistant"}
		// A message without content and without calls is refused.
		if text := m.Text(); text != "" || len(m.Calls()) == 0 {
			c.Content = jsonText(solid(text))
		}
		for _, call := range m.Calls() {
			c.ToolCalls = append(c.ToolCalls, chatCall{w.id(call.ID), "function", chatFunction{safeName(call.Name), string(call.object())}})
		}
	}

	// Older reasoners refuse reasoning of earlier turns, newer ones miss that of
	// this one.
	if d.echo == "reasoning_content" {
		switch {
		case !thisTurn && strings.Contains(w.e.m.Model, "reasoner"):
			c.ReasoningContent = nil
		case d.echoAlways && c.ReasoningContent == nil:
			c.ReasoningContent = new(string)
		}
	}
	return &c
}

var shortID = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)

// id is the name of a call as the provider takes it.
func (w *chat) id(id string) string {
	if !w.e.provider.chat.shortIDs || shortID.MatchString(id) {
		return id
	}

	// A hash, so that call and result get the same name without a table of them.
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:9])
}

// answer implements wire.
func (w *chat) answer(ctx context.Context, r *Request, on func(Event)) (*Answer, error) {
	body, err := w.body(r)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}

	// No credential here: the transport writes it.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.e.base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")

	resp, err := w.e.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() // also stops the watch over silence

	s := newChatStream(w, on)
	events := ssestream.NewDecoder(resp)
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		// Not all services send it: the reason to finish is an end too.
		if string(data) == "[DONE]" {
			s.ended = true
			break
		}

		// Events without data keep the connection awake.
		if len(data) == 0 {
			continue
		}
		if err := s.chunk(data); err != nil {
			return nil, err
		}
	}

	// A stream that only stops is no error here; whole tells it from one that ended.
	if err := events.Err(); err != nil {
		return nil, err
	}
	return s.whole()
}
