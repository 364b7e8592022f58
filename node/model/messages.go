package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/shoalsearch/shoal/cluster/config"
)

// messages speaks Messages, at its maker's or on Vertex.
type messages struct {
	e       *endpoint
	service anthropic.MessageService
}

// vertexVersion is what Vertex wants in the body in place of a header.
const vertexVersion = "vertex-2023-10-16"

func newMessages(e *endpoint) (wire, error) {
	w := &messages{e: e}

	// The service's own constructor: the one of the whole client reads keys and
	// profiles of this host.
	w.service = anthropic.NewMessageService(
		option.WithBaseURL(e.base+"/"), option.WithHTTPClient(e.http), option.WithMaxRetries(0),
		option.WithHeader("anthropic-version", "2023-06-01"), option.WithMiddleware(w.address),
	)
	return w, nil
}

// address sends a request right below the base: the library puts v1 in between. Vertex
// has a path of its own.
func (w *messages) address(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	u, err := url.Parse(w.e.base + "/")
	if err != nil {
		return nil, err
	}
	query := req.URL.RawQuery
	if req.URL = u.JoinPath("messages"); w.e.m.Provider == config.GoogleVertexAnthropic {
		req.URL = u.JoinPath("v1", "projects", w.e.project, "locations", w.e.region, "publishers", "anthropic", "models", w.e.m.Model+":streamRawPredict")
		req.Header.Del("Anthropic-Version")
	}
	req.URL.RawQuery = query
	return next(req)
}

// block is one piece of a message as the wire has it.
type block = map[string]any

// body is the request of one step.
func (w *messages) body(ctx context.Context, r *Request) ([]byte, error) {
	body := map[string]any{"messages": w.conversation(r)}
	if w.e.m.Provider == config.GoogleVertexAnthropic {
		body["anthropic_version"] = vertexVersion
	} else {
		body["model"] = w.e.m.Model
	}

	// Here the member is required.
	most := Limits(w.e.m.Model).Output
	if r.MaxOutput > 0 {
		most = r.MaxOutput
	}

	if thinking := w.thinking(ctx, most); thinking != nil {
		body["thinking"] = thinking
	} else if t := w.e.temperature(); t != nil {
		body["temperature"] = *t // not together with thinking
	}
	body["max_tokens"] = most

	if len(r.System) > 0 {
		system := make([]block, len(r.System))
		for i, text := range r.System {
			system[i] = block{"type": "text", "text": text}
		}
		w.mark(system[0]) // tools and what never changes
		body["system"] = system
	}

	if len(r.Tools) > 0 {
		tools := make([]block, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = block{"name": t.Name, "description": t.About, "input_schema": t.Schema}
		}
		body["tools"] = tools
		if r.NoCalls {
			body["tool_choice"] = block{"type": "none"}
		}
	}
	return json.Marshal(body)
}

// mark lets the provider keep what stands up to this block for the next step.
func (w *messages) mark(b block) {
	if w.e.takes("cache") {
		b["cache_control"] = block{"type": "ephemeral"}
	}
}

// conversation is the messages. All results of one step stand first in the
// message after it.
func (w *messages) conversation(r *Request) []map[string]any {
	var out []map[string]any
	for i := range r.Messages {
		m := &r.Messages[i]
		var content []any
		if m.Role == Assistant {
			content = w.said(m)
		} else {
			for _, res := range m.Results() {
				content = append(content, block{"type": "tool_result", "tool_use_id": toolID(res.ID), "content": solid(res.Text), "is_error": res.Failed})
			}

			if text := m.Text(); strings.TrimSpace(text) != "" {
				content = append(content, block{"type": "text", "text": text})
			}
		}

		if len(content) == 0 {
			continue
		}

		// The end is marked: what stands before it is read from the cache next time.
		if i == len(r.Messages)-1 {
			if last, ok := content[len(content)-1].(block); ok {
				w.mark(last)
			}
		}

		// Roles take turns.
		if n := len(out); n > 0 && out[n-1]["role"] == string(m.Role) {
			out[n-1]["content"] = append(out[n-1]["content"].([]any), content...)
			continue
		}
		out = append(out, map[string]any{"role": string(m.Role), "content": content})
	}
	return out
}

func (w *messages) said(m *Message) (content []any) {
	// Unread, so that signatures come back to the byte.
	var own []json.RawMessage
	if raw := w.e.native(m); raw != nil && json.Unmarshal(raw, &own) == nil {
		for _, b := range own {
			content = append(content, b)
		}
		return content
	}

	// Another model's message: its thinking has no signature that holds here.
	if text := m.Text(); strings.TrimSpace(text) != "" {
		content = append(content, block{"type": "text", "text": text})
	}
	for _, c := range m.Calls() {
		content = append(content, block{"type": "tool_use", "id": toolID(c.ID), "name": safeName(c.Name), "input": c.object()})
	}
	return content
}

// toolID is the name of a call in the letters that the provider takes.
func toolID(id string) string { return safeName(id) }

// answer implements wire.
func (w *messages) answer(ctx context.Context, r *Request, on func(Event)) (*Answer, error) {
	body, err := w.body(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}

	stream := w.service.NewStreaming(ctx, param.Override[anthropic.MessageNewParams](json.RawMessage(body)))
	defer stream.Close()

	var whole anthropic.Message
	started, stopped := false, false
	for stream.Next() {
		event := stream.Current()
		switch event.Type {
		case "message_start":
			if started { // a gateway has begun anew
				on(Event{Again: true})
			}
			started = true
		case "message_stop":
			stopped = true
		case "content_block_delta":
			on(Event{Text: event.Delta.Text, Reasoning: event.Delta.Thinking})
		case "error":
			return nil, streamError([]byte(event.RawJSON()))
		}

		// What comes before the answer has begun, as a ping, is no part of it.
		if !started {
			continue
		}
		if err := whole.Accumulate(event); err != nil {
			return nil, &Error{Kind: Broken, Message: clip(err.Error())}
		}
	}

	if err := stream.Err(); err != nil {
		return nil, messagesFailed(ctx, err)
	}
	if !stopped {
		return nil, cut()
	}
	return w.read(&whole)
}

// streamError is an error that came after the answer had begun.
func streamError(raw []byte) *Error {
	codes, message := readErrorBody(raw)
	return &Error{Kind: kindFor(0, codes, message), Message: message}
}

// messagesFailed gives an error of the stream its kind: the library puts the
// event of the error into its text.
func messagesFailed(ctx context.Context, err error) error {
	e := toError(ctx, err)
	if at := strings.Index(e.Message, `{"type"`); e.Kind == Broken && at >= 0 {
		return streamError([]byte(e.Message[at:]))
	}
	return e
}

// read makes an answer of a whole message.
func (w *messages) read(m *anthropic.Message) (*Answer, error) {
	a := &Answer{Finish: Done, Usage: Usage{
		Input:  int(m.Usage.InputTokens + m.Usage.CacheReadInputTokens + m.Usage.CacheCreationInputTokens),
		Cached: int(m.Usage.CacheReadInputTokens), Output: int(m.Usage.OutputTokens),
	}}

	// Calls need no case: finished finds them. The window is told as a reason, not as an error.
	switch m.StopReason {
	case "max_tokens":
		a.Finish = Length
	case "refusal":
		a.Finish = Blocked
	case "model_context_window_exceeded":
		return nil, &Error{Kind: TooLong, Message: string(m.StopReason)}
	}

	// Own is the blocks as they go back: without empty texts, which are refused.
	own := make([]block, 0, len(m.Content))
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			if b.Text != "" {
				a.Message.Parts = append(a.Message.Parts, Part{Text: b.Text})
				own = append(own, block{"type": "text", "text": b.Text})
			}
		case "tool_use":
			call := &Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)}
			a.Message.Parts = append(a.Message.Parts, Part{Call: call})
			own = append(own, block{"type": "tool_use", "id": b.ID, "name": b.Name, "input": call.object()})
		case "thinking":
			own = append(own, block{"type": "thinking", "thinking": b.Thinking, "signature": b.Signature})
		case "redacted_thinking":
			own = append(own, block{"type": "redacted_thinking", "data": b.Data})
		}
	}

	a, err := w.e.finished(a)
	if err != nil {
		return nil, err
	}

	if raw, err := json.Marshal(own); err == nil && len(own) > 0 {
		a.Message.Native = &Native{From: w.e.name(), JSON: raw}
	}
	return a, nil
}

// The tokens of thinking, which count as output.
const (
	usualBudget = 12_000
	leastBudget = 1024 // less is refused
	answerRoom  = 4096 // what is left of the output for the answer
)

// thinking is how the model is told to think within an output of so many tokens:
// the provider tells of each model which way it takes. nil where it cannot, or
// does not say, or where the output has no room for it.
func (w *messages) thinking(ctx context.Context, most int) block {
	// Vertex has no page of models to ask. Where nothing is known, nothing is sent.
	if !w.e.takes("thinking") || w.e.m.Provider == config.GoogleVertexAnthropic || most < leastBudget+answerRoom {
		return nil
	}

	types := w.e.learned.thinkingTypes(func() []string { return w.askThinking(ctx) })
	switch {
	case slices.Contains(types, "adaptive"):
		return block{"type": "adaptive", "display": "summarized"}
	case slices.Contains(types, "enabled"):
		budget, err := strconv.Atoi(w.e.lookup("", "ANTHROPIC_THINKING_BUDGET_TOKENS", ""))
		if err != nil || budget < leastBudget {
			budget = usualBudget
		}

		// One that is not less than the output is refused, and one just below it leaves no answer.
		return block{"type": "enabled", "budget_tokens": min(budget, most-answerRoom)}
	}
	return nil
}

// thinkingTypes is what a model was found to take, asked for once.
func (l *learned) thinkingTypes(ask func() []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked {
		l.asked, l.thinking = true, ask()
	}
	return l.thinking
}

// askThinking asks the provider what the model can do. No answer is no reason
// to fail: then the model does not think aloud.
func (w *messages) askThinking(ctx context.Context) []string {
	// The question waits for it, once.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.e.base+"/models/"+url.PathEscape(w.e.m.Model), nil)
	if err != nil {
		return nil
	}
	req.Header.Set("Anthropic-Version", "2023-06-01") // the library is not between

	resp, err := w.e.http.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()

	// Any answer but 200 has become an error in the transport.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return nil
	}

	var told struct {
		Capabilities struct {
			Thinking struct {
				Types map[string]struct {
					Supported bool `json:"supported"`
				} `json:"types"`
			} `json:"thinking"`
		} `json:"capabilities"`
	}
	if json.Unmarshal(body, &told) != nil {
		return nil
	}

	var types []string
	for name, t := range told.Capabilities.Thinking.Types {
		if t.Supported {
			types = append(types, name)
		}
	}
	return types
}
