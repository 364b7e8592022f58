package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/shoalsearch/shoal/cluster/config"
)

// gemini implements wire for generateContent, at Google AI Studio or on Vertex.
type gemini struct {
	e      *endpoint
	client *genai.Client
}

func newGemini(e *endpoint) (wire, error) {
	// Set everything that the library would otherwise read from the environment. The transport
	// adds the credential.
	c := &genai.ClientConfig{HTTPClient: e.http, HTTPOptions: genai.HTTPOptions{BaseURL: e.base + "/"}}

	if e.m.Provider == config.GoogleVertex {
		c.Backend, c.Project, c.Location = genai.BackendVertexAI, e.project, e.region
		c.HTTPOptions.APIVersion = "v1beta1"
	} else {
		c.Backend, c.APIKey = genai.BackendGeminiAPI, "set-by-the-transport"
		c.HTTPOptions.APIVersion = "." // the base has the version already; an empty value would add the library's own
	}

	client, err := genai.NewClient(context.Background(), c)
	if err != nil {
		return nil, fmt.Errorf("open the client: %w", err)
	}
	return &gemini{e, client}, nil
}

// stepConfig returns the settings of one step, without its conversation.
func (w *gemini) stepConfig(r *Request) *genai.GenerateContentConfig {
	c := &genai.GenerateContentConfig{}
	if len(r.System) > 0 {
		// One text, because there are no cache points between blocks.
		c.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: strings.Join(r.System, "\n\n")}}}
	}

	if t := w.e.temperature(); t != nil {
		low := float32(*t)
		c.Temperature = &low // a copy, because the configuration is shared
	}
	if r.MaxOutput > 0 {
		c.MaxOutputTokens = int32(r.MaxOutput)
	}

	// A model that cannot think refuses the property; then supports returns false.
	if w.e.supports("thinking") {
		c.ThinkingConfig = w.thinkingConfig()
	}

	if len(r.Tools) > 0 {
		var tools []*genai.FunctionDeclaration
		for _, t := range r.Tools {
			tools = append(tools, &genai.FunctionDeclaration{Name: t.Name, Description: t.About, ParametersJsonSchema: t.Schema})
		}
		c.Tools = []*genai.Tool{{FunctionDeclarations: tools}}

		// Keep the tools, because calls of earlier steps refer to them.
		if r.NoCalls {
			c.ToolConfig = &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeNone}}
		}
	}
	return c
}

// thinkingConfig sets a level or a budget; the service accepts only one of them.
func (w *gemini) thinkingConfig() *genai.ThinkingConfig {
	t := &genai.ThinkingConfig{IncludeThoughts: true}
	level := w.e.m.ThinkingLevel

	switch {
	case level != "":
		if !w.e.supports("thinkingLevel") {
			level = "low" // some models do not know "minimal"
		}
		t.ThinkingLevel = genai.ThinkingLevel(strings.ToUpper(level))

	case w.e.m.ThinkingBudget != nil:
		budget := int32(*w.e.m.ThinkingBudget)
		t.ThinkingBudget = &budget

	case w.e.m.Provider == config.GoogleVertex:
		var budget int32
		if n, err := fmt.Sscan(w.e.settingOf("", "GOOGLE_VERTEX_THINKING_BUDGET_TOKENS", ""), &budget); err == nil && n == 1 {
			t.ThinkingBudget = &budget
		}
	}

	return t
}

// foreignSignature replaces the signature in calls of another model, as the service documents.
const foreignSignature = "skip_thought_signature_validator"

// convertMessages returns the messages. All results of one step are in one message, in the order of
// their calls.
func (w *gemini) convertMessages(r *Request) []*genai.Content {
	var out []*genai.Content
	for i := range r.Messages {
		m := &r.Messages[i]
		// Results have no ids here, so their order and number must match the calls.
		c := &genai.Content{Role: genai.RoleUser}
		if m.Role == Assistant {
			c.Role, c.Parts = genai.RoleModel, w.assistantParts(m)
		} else {
			for _, res := range m.Results() {
				// The service knows these two keys, and tells the model which one it was.
				key := "output"
				if res.Failed {
					key = "error"
				}
				c.Parts = append(c.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{
					Name: safeName(res.Name), Response: map[string]any{key: nonEmpty(res.Text)},
				}})
			}

			// Results must come first.
			if text := m.Text(); text != "" {
				c.Parts = append(c.Parts, &genai.Part{Text: text})
			}
		}

		if len(c.Parts) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// assistantParts converts a message of the model to parts.
func (w *gemini) assistantParts(m *Message) (parts []*genai.Part) {
	if raw := w.e.nativeMessage(m); raw != nil && json.Unmarshal(raw, &parts) == nil {
		return parts
	}

	if text := m.Text(); text != "" {
		parts = append(parts, &genai.Part{Text: text})
	}

	for i, c := range m.Calls() {
		var args map[string]any
		if json.Unmarshal(c.argumentsObject(), &args) != nil {
			args = map[string]any{}
		}

		p := &genai.Part{FunctionCall: &genai.FunctionCall{Name: safeName(c.Name), Args: args}}

		// The service refuses the first call of a step without a signature.
		if i == 0 {
			p.ThoughtSignature = []byte(foreignSignature)
		}
		parts = append(parts, p)
	}
	return parts
}

// send sends the request and returns the model's answer. Events of the answer go to on as they
// arrive.
func (w *gemini) send(ctx context.Context, r *Request, on func(Event)) (*Answer, error) {
	s := &geminiStream{e: w.e, emit: on}
	for chunk, err := range w.client.Models.GenerateContentStream(ctx, w.e.m.Model, w.convertMessages(r), w.stepConfig(r)) {
		if err != nil {
			return nil, geminiError(ctx, err)
		}
		if err := s.addEvent(chunk); err != nil {
			return nil, err
		}
	}
	return s.assemble()
}

// geminiError turns an error of the stream into an *Error.
func geminiError(ctx context.Context, err error) error {
	var api genai.APIError
	if errors.As(err, &api) {
		return &Error{Kind: kindFor(api.Code, []string{api.Status}, api.Message), Status: api.Code, Message: oneLine(api.Message)}
	}
	return toError(ctx, err)
}

// geminiStream assembles an answer from its events.
type geminiStream struct {
	e      *endpoint
	emit   func(Event)
	parts  []*genai.Part
	finish genai.FinishReason
	why    string
	usage  Usage
	size   int
}

// addEvent adds one piece of the answer.
func (s *geminiStream) addEvent(c *genai.GenerateContentResponse) error {
	// Each event has the totals so far. Candidates do not include thoughts.
	if u := c.UsageMetadata; u != nil {
		s.usage = Usage{
			Input: int(u.PromptTokenCount), Cached: int(u.CachedContentTokenCount),
			Output: int(u.CandidatesTokenCount + u.ThoughtsTokenCount), Reasoning: int(u.ThoughtsTokenCount),
		}
	}

	// A blocked prompt has no candidate and no finish reason.
	if f := c.PromptFeedback; f != nil && f.BlockReason != "" {
		return &Error{Kind: Filtered, Message: oneLine(string(f.BlockReason) + " " + f.BlockReasonMessage)}
	}
	if len(c.Candidates) == 0 {
		return nil
	}

	// The request asks for one candidate.
	candidate := c.Candidates[0]
	if candidate.FinishReason != "" {
		s.finish, s.why = candidate.FinishReason, candidate.FinishMessage
	}
	if candidate.Content == nil {
		return nil
	}

	for _, p := range candidate.Content.Parts {
		// Only texts grow without end; calls are limited by checkAnswer and the stream by its
		// size.
		if s.size += len(p.Text); s.size > maxPart {
			return &Error{Kind: Broken, Message: "an answer that does not end"}
		}
		s.addPart(p)
	}
	return nil
}

// addPart adds a part of the answer. It joins a text to the text before it if both are of the same
// kind, and neither has a signature.
func (s *geminiStream) addPart(p *genai.Part) {
	switch {
	case p.Thought:
		s.emit(Event{Reasoning: p.Text})
	case p.Text != "":
		s.emit(Event{Text: p.Text})
	}

	if n := len(s.parts); n > 0 && p.Text != "" && p.ThoughtSignature == nil && p.FunctionCall == nil {
		if last := s.parts[n-1]; last.Text != "" && last.Thought == p.Thought && last.ThoughtSignature == nil && last.FunctionCall == nil {
			last.Text += p.Text
			return
		}
	}

	// Copy it, because later pieces are appended.
	copied := *p
	s.parts = append(s.parts, &copied)
}

// finishCalls is the finish reason of some compatible services for calls. Google itself says
// STOP.
const finishCalls genai.FinishReason = "FUNCTION_CALL"

// assemble returns the answer at the end of the stream.
func (s *geminiStream) assemble() (*Answer, error) {
	a := &Answer{Finish: Done, Usage: s.usage}
	switch s.finish {
	case "":
		return nil, brokenError()
	case genai.FinishReasonStop:
	case genai.FinishReasonMaxTokens:
		a.Finish = Length
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall:
		return nil, &Error{Kind: Broken, Message: oneLine(string(s.finish) + " " + s.why)}
	case genai.FinishReasonOther, finishCalls:
	default: // SAFETY, RECITATION and similar
		a.Finish = Blocked
	}

	for i, p := range s.parts {
		switch {
		case p.FunctionCall != nil:
			args, err := json.Marshal(p.FunctionCall.Args)
			if err != nil {
				args = []byte("{}")
			}

			id := p.FunctionCall.ID
			if id == "" {
				id = fmt.Sprintf("call_%d", i+1)
			}
			a.Message.Parts = append(a.Message.Parts, Part{Call: &Call{ID: id, Name: p.FunctionCall.Name, Arguments: string(args)}})
			p.FunctionCall.ID = "" // not all services accept it back
		case p.Text != "" && !p.Thought:
			a.Message.Parts = append(a.Message.Parts, Part{Text: p.Text})
		}
	}

	a, err := s.e.checkAnswer(a)
	if err != nil {
		return nil, err
	}

	if raw, err := json.Marshal(s.parts); err == nil && len(s.parts) > 0 {
		a.Message.Native = &Native{From: s.e.name(), JSON: raw}
	}
	return a, nil
}
