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

// dialect says how a provider's Chat Completions differ from those of others.
type dialect struct {
	usage      usageForm
	echo       string // name of the reasoning field that must be sent back; "" for none
	echoAlways bool   // send that field with every message of the turn, empty if there was no reasoning
	shortIDs   bool   // ids of calls must have nine letters and digits
	tagged     bool   // the text may contain reasoning between tags
}

// usageForm is how a request asks for the number of tokens.
type usageForm int

const (
	usageUnasked usageForm = iota
	usageOption            // stream_options: {include_usage: true}
	usageMember            // usage: {include: true}
)

// chat implements wire for Chat Completions.
type chat struct{ e *endpoint }

func newChat(e *endpoint) (wire, error) { return &chat{e}, nil }

// chatMessage is a message in JSON.
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

// requestBody returns the request body of one step.
func (w *chat) requestBody(r *Request) ([]byte, error) {
	d := w.e.provider.chat
	body := map[string]any{"model": w.e.m.Model, "stream": true, "messages": w.convertMessages(r)}
	// Without a limit the service uses its default.
	if r.MaxOutput > 0 {
		body["max_tokens"] = r.MaxOutput
	}
	if t := w.e.temperature(); t != nil {
		body["temperature"] = *t
	}

	// Some services report tokens only on request.
	switch {
	case d.usage == usageOption && w.e.supports("stream_options"):
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

// jsonText returns a string as JSON.
func jsonText(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}

// convertMessages returns the conversation. Each tool result is a message of its own.
func (w *chat) convertMessages(r *Request) []json.RawMessage {
	var out []json.RawMessage
	add := func(m any) {
		if raw, err := json.Marshal(m); err == nil {
			out = append(out, raw)
		}
	}

	if len(r.System) > 0 {
		add(chatMessage{Role: "system", Content: jsonText(strings.Join(r.System, "\n\n"))})
	}

	// Messages after the last question belong to the current turn.
	turn := lastQuestion(r.Messages)
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role == Assistant {
			add(w.assistantMessage(m, i > turn))
			continue
		}

		// Results must follow their calls directly, or the service refuses the request.
		for _, res := range m.Results() {
			add(chatMessage{Role: "tool", ToolCallID: w.callID(res.ID), Name: safeName(res.Name), Content: jsonText(nonEmpty(res.Text))})
		}
		if text := m.Text(); text != "" {
			add(chatMessage{Role: "user", Content: jsonText(text)})
		}
	}

	return out
}

// lastQuestion returns the index of the last message with a question of the user.
func lastQuestion(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == User && len(messages[i].Results()) == 0 {
			return i
		}
	}
	return -1
}

// assistantMessage converts a message of the assistant: as this model sent it, or else built from its
// parts. thisTurn means that it belongs to the turn of the last question.
func (w *chat) assistantMessage(m *Message, thisTurn bool) *chatMessage {
	d := w.e.provider.chat
	var c chatMessage
	if raw := w.e.nativeMessage(m); raw == nil || json.Unmarshal(raw, &c) != nil {
		c = chatMessage{Role: "assistant"}
		// The service refuses a message without content and calls.
		if text := m.Text(); text != "" || len(m.Calls()) == 0 {
			c.Content = jsonText(nonEmpty(text))
		}
		for _, call := range m.Calls() {
			c.ToolCalls = append(c.ToolCalls, chatCall{w.callID(call.ID), "function", chatFunction{safeName(call.Name), string(call.argumentsObject())}})
		}
	}

	// Older reasoners refuse reasoning of earlier turns; newer ones require that of this turn.
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

// callID returns the id of a call in the form that the provider accepts.
func (w *chat) callID(id string) string {
	if !w.e.provider.chat.shortIDs || shortID.MatchString(id) {
		return id
	}

	// Use a hash, so that a call and its result get the same id without a table.
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:9])
}

// send sends the request and returns the model's answer. Events of the answer go to on as they
// arrive.
func (w *chat) send(ctx context.Context, r *Request, on func(Event)) (*Answer, error) {
	body, err := w.requestBody(r)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}

	// The transport adds the credential.
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
	defer resp.Body.Close() // also stops the timer of silence

	s := newChatStream(w, on)
	events := ssestream.NewDecoder(resp)
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		// Not all services send [DONE]; a finish reason is enough too.
		if string(data) == "[DONE]" {
			s.ended = true
			break
		}

		// Services send events without data to keep the connection open.
		if len(data) == 0 {
			continue
		}
		if err := s.addEvent(data); err != nil {
			return nil, err
		}
	}

	if err := events.Err(); err != nil {
		return nil, err
	}
	return s.assemble()
}
