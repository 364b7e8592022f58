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

// messages implements wire for Messages, at Anthropic or on Vertex.
type messages struct {
	e       *endpoint
	service anthropic.MessageService
}

// vertexVersion replaces the version header on Vertex.
const vertexVersion = "vertex-2023-10-16"

func newMessages(e *endpoint) (wire, error) {
	w := &messages{e: e}

	// Use the constructor of the service: that of the whole client reads keys and profiles from
	// this host.
	w.service = anthropic.NewMessageService(
		option.WithBaseURL(e.base+"/"), option.WithHTTPClient(e.http), option.WithMaxRetries(0),
		option.WithHeader("anthropic-version", "2023-06-01"), option.WithMiddleware(w.setURL),
	)
	return w, nil
}

// setURL sets the URL of a request: the library would insert v1, and Vertex has a path of its own.
func (w *messages) setURL(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
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

// block is one block of a message in JSON.
type block = map[string]any

// requestBody returns the request body of one step.
func (w *messages) requestBody(ctx context.Context, r *Request) ([]byte, error) {
	body := map[string]any{"messages": w.convertMessages(r)}
	if w.e.m.Provider == config.GoogleVertexAnthropic {
		body["anthropic_version"] = vertexVersion
	} else {
		body["model"] = w.e.m.Model
	}

	// max_tokens is required.
	maxTokens := Limits(w.e.m.Model).Output
	if r.MaxOutput > 0 {
		maxTokens = r.MaxOutput
	}

	if thinking := w.thinkingConfig(ctx, maxTokens); thinking != nil {
		body["thinking"] = thinking
	} else if t := w.e.temperature(); t != nil {
		body["temperature"] = *t // thinking excludes it
	}
	body["max_tokens"] = maxTokens

	if len(r.System) > 0 {
		system := make([]block, len(r.System))
		for i, text := range r.System {
			system[i] = block{"type": "text", "text": text}
		}
		w.markForCache(system[0]) // covers tools and the fixed part of the prompt
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

// markForCache lets the provider cache everything up to this block for the next step.
func (w *messages) markForCache(b block) {
	if w.e.supports("cache") {
		b["cache_control"] = block{"type": "ephemeral"}
	}
}

// convertMessages returns the messages. The results of a step come first in the next message.
func (w *messages) convertMessages(r *Request) []map[string]any {
	var out []map[string]any
	for i := range r.Messages {
		m := &r.Messages[i]
		var content []any
		if m.Role == Assistant {
			content = w.assistantBlocks(m)
		} else {
			for _, res := range m.Results() {
				content = append(content, block{"type": "tool_result", "tool_use_id": toolID(res.ID), "content": nonEmpty(res.Text), "is_error": res.Failed})
			}

			if text := m.Text(); strings.TrimSpace(text) != "" {
				content = append(content, block{"type": "text", "text": text})
			}
		}

		if len(content) == 0 {
			continue
		}

		// Mark the end, so that the next step reads everything up to here from the cache.
		if i == len(r.Messages)-1 {
			if last, ok := content[len(content)-1].(block); ok {
				w.markForCache(last)
			}
		}

		// Join messages of the same role.
		if n := len(out); n > 0 && out[n-1]["role"] == string(m.Role) {
			out[n-1]["content"] = append(out[n-1]["content"].([]any), content...)
			continue
		}
		out = append(out, map[string]any{"role": string(m.Role), "content": content})
	}
	return out
}

// assistantBlocks converts a message of the model to content blocks.
func (w *messages) assistantBlocks(m *Message) (content []any) {
	// Keep them as raw JSON, so that signatures stay unchanged.
	var own []json.RawMessage
	if raw := w.e.nativeMessage(m); raw != nil && json.Unmarshal(raw, &own) == nil {
		for _, b := range own {
			content = append(content, b)
		}
		return content
	}

	// This is another model's message: signatures of its thinking are not valid here.
	if text := m.Text(); strings.TrimSpace(text) != "" {
		content = append(content, block{"type": "text", "text": text})
	}
	for _, c := range m.Calls() {
		content = append(content, block{"type": "tool_use", "id": toolID(c.ID), "name": safeName(c.Name), "input": c.argumentsObject()})
	}
	return content
}

// toolID returns the id of a call in characters that the provider accepts.
func toolID(id string) string { return safeName(id) }

// send sends the request and returns the model's answer. Events of the answer go to on as they
// arrive.
func (w *messages) send(ctx context.Context, r *Request, on func(Event)) (*Answer, error) {
	body, err := w.requestBody(ctx, r)
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
			if started { // a gateway has started over
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

		// Skip events before the start, such as pings.
		if !started {
			continue
		}
		if err := whole.Accumulate(event); err != nil {
			return nil, &Error{Kind: Broken, Message: oneLine(err.Error())}
		}
	}

	if err := stream.Err(); err != nil {
		return nil, messagesError(ctx, err)
	}
	if !stopped {
		return nil, brokenError()
	}
	return w.toAnswer(&whole)
}

// streamError makes an Error of an error event.
func streamError(raw []byte) *Error {
	codes, message := readErrorBody(raw)
	return &Error{Kind: kindFor(0, codes, message), Message: message}
}

// messagesError turns an error of the stream into an *Error. The library puts the error event
// into its text.
func messagesError(ctx context.Context, err error) error {
	e := toError(ctx, err)
	if at := strings.Index(e.Message, `{"type"`); e.Kind == Broken && at >= 0 {
		return streamError([]byte(e.Message[at:]))
	}
	return e
}

// toAnswer converts a complete message.
func (w *messages) toAnswer(m *anthropic.Message) (*Answer, error) {
	a := &Answer{Finish: Done, Usage: Usage{
		Input:  int(m.Usage.InputTokens + m.Usage.CacheReadInputTokens + m.Usage.CacheCreationInputTokens),
		Cached: int(m.Usage.CacheReadInputTokens), Output: int(m.Usage.OutputTokens),
	}}

	// checkAnswer recognizes calls. A full context window comes as a stop reason, not as an
	// error.
	switch m.StopReason {
	case "max_tokens":
		a.Finish = Length
	case "refusal":
		a.Finish = Blocked
	case "model_context_window_exceeded":
		return nil, &Error{Kind: TooLong, Message: string(m.StopReason)}
	}

	// own has the blocks to send back, without empty texts, which the service refuses.
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
			own = append(own, block{"type": "tool_use", "id": b.ID, "name": b.Name, "input": call.argumentsObject()})
		case "thinking":
			own = append(own, block{"type": "thinking", "thinking": b.Thinking, "signature": b.Signature})
		case "redacted_thinking":
			own = append(own, block{"type": "redacted_thinking", "data": b.Data})
		}
	}

	a, err := w.e.checkAnswer(a)
	if err != nil {
		return nil, err
	}

	if raw, err := json.Marshal(own); err == nil && len(own) > 0 {
		a.Message.Native = &Native{From: w.e.name(), JSON: raw}
	}
	return a, nil
}

// Tokens for thinking, which count as output.
const (
	usualBudget = 12_000
	leastBudget = 1024 // the service refuses less
	answerRoom  = 4096 // left of the output for the answer
)

// thinkingConfig returns the thinking property for an output of most tokens. The provider reports
// which kinds each model supports. nil if it supports none or does not say, or if the output is too
// small.
func (w *messages) thinkingConfig(ctx context.Context, maxOutput int) block {
	// Vertex has no API that tells which kinds of thinking a model supports.
	if !w.e.supports("thinking") || w.e.m.Provider == config.GoogleVertexAnthropic || maxOutput < leastBudget+answerRoom {
		return nil
	}

	types := w.e.quirks.thinkingTypes(func() []string { return w.askThinking(ctx) })
	switch {
	case slices.Contains(types, "adaptive"):
		return block{"type": "adaptive", "display": "summarized"}
	case slices.Contains(types, "enabled"):
		budget, err := strconv.Atoi(w.e.settingOf("", "ANTHROPIC_THINKING_BUDGET_TOKENS", ""))
		if err != nil || budget < leastBudget {
			budget = usualBudget
		}

		// The service refuses a budget above the output. A budget just below it leaves no room
		// for the answer.
		return block{"type": "enabled", "budget_tokens": min(budget, maxOutput-answerRoom)}
	}
	return nil
}

// thinkingTypes returns the kinds of thinking that the model supports; it asks only once.
func (l *quirks) thinkingTypes(ask func() []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked {
		l.asked, l.thinking = true, ask()
	}
	return l.thinking
}

// askThinking asks the provider which kinds of thinking the model supports. If that fails, the
// model does not think aloud.
func (w *messages) askThinking(ctx context.Context) []string {
	// The user's question waits for this, once.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.e.base+"/models/"+url.PathEscape(w.e.m.Model), nil)
	if err != nil {
		return nil
	}
	req.Header.Set("Anthropic-Version", "2023-06-01") // the library does not add it here

	resp, err := w.e.http.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()

	// The transport turns any other status into an error.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return nil
	}

	var reply struct {
		Capabilities struct {
			Thinking struct {
				Types map[string]struct {
					Supported bool `json:"supported"`
				} `json:"types"`
			} `json:"thinking"`
		} `json:"capabilities"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return nil
	}

	var types []string
	for name, t := range reply.Capabilities.Thinking.Types {
		if t.Supported {
			types = append(types, name)
		}
	}
	return types
}
