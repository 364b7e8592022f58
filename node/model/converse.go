package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"
)

// converse implements wire for ConverseStream.
type converse struct {
	e      *endpoint
	client *bedrockruntime.Client
}

func newConverse(e *endpoint) (wire, error) {
	ctx := context.Background()
	// No retries by the library: Client.Answer retries for all wires.
	o := bedrockruntime.Options{
		Region: e.region, BaseEndpoint: aws.String(e.base), HTTPClient: e.http, Retryer: aws.NopRetryer{}}
	if err := awsCredentials(ctx, e, &o); err != nil {
		return nil, err
	}

	// Otherwise a token in the environment would replace these credentials.
	return &converse{e, bedrockruntime.New(o, func(o *bedrockruntime.Options) {
		o.AuthSchemePreference, o.BearerAuthTokenProvider = []string{"sigv4"}, nil
	})}, nil
}

// awsCredentials uses the configured credentials, else the standard variables, else those of the
// host.
func awsCredentials(ctx context.Context, e *endpoint, o *bedrockruntime.Options) error {
	m := e.m
	id, err := e.resolveSecret(ctx, m.AccessKeyID, "AWS_ACCESS_KEY_ID")
	if err != nil {
		return err
	}

	key, err := e.resolveSecret(ctx, m.AccessKeySecret, "AWS_SECRET_ACCESS_KEY")
	if err != nil {
		return err
	}

	session, err := e.resolveSecret(ctx, m.SessionToken, "AWS_SESSION_TOKEN")
	if err != nil {
		return err
	}

	if id != "" && key != "" {
		o.Credentials = credentials.NewStaticCredentialsProvider(id, key, session)
		return nil
	}

	// Do not mix a configured half with a half from the host.
	if m.AccessKeyID != nil || m.AccessKeySecret != nil {
		return &Error{Kind: NoKey, Message: "accessKeyId and accessKeySecret are needed together"}
	}

	if token, err := e.resolveSecret(ctx, nil, "AWS_BEARER_TOKEN_BEDROCK"); err == nil && token != "" {
		// The transport sends the token instead of a signature.
		o.Credentials = credentials.NewStaticCredentialsProvider("none", "none", "")
		e.guard.sign = func(_ context.Context, h http.Header) error { h.Set("Authorization", "Bearer "+token); return nil }
		return nil
	}

	host, err := config.LoadDefaultConfig(ctx, config.WithRegion(e.region))
	if err != nil {
		return &Error{Kind: NoKey, Message: "no credentials of AWS: " + oneLine(err.Error())}
	}
	o.Credentials = host.Credentials
	return nil
}

// convertRequest converts a request of Shoal's to one of Bedrock's.
func (w *converse) convertRequest(r *Request) *bedrockruntime.ConverseStreamInput {
	in := &bedrockruntime.ConverseStreamInput{ModelId: aws.String(w.e.m.Model), Messages: w.convertMessages(r)}
	for i, text := range r.System {
		in.System = append(in.System, &types.SystemContentBlockMemberText{Value: text})
		// The first block never changes, so the service can cache up to here.
		if i == 0 && w.hasCachePoints() {
			in.System = append(in.System, &types.SystemContentBlockMemberCachePoint{Value: types.CachePointBlock{Type: types.CachePointTypeDefault}})
		}
	}

	in.InferenceConfig = &types.InferenceConfiguration{}

	// Always set a limit: the service's default may end the answer early.
	maxTokens := Limits(w.e.m.Model).Output
	if r.MaxOutput > 0 {
		maxTokens = r.MaxOutput
	}
	in.InferenceConfig.MaxTokens = aws.Int32(int32(maxTokens))
	if t := w.e.temperature(); t != nil {
		in.InferenceConfig.Temperature = aws.Float32(float32(*t))
	}

	// Also without new calls, since calls of earlier steps need it.
	in.ToolConfig = toolConfig(r)
	return in
}

// toolConfig returns the tools; nil for none. The API cannot forbid calls, so conversation does
// it in words.
func toolConfig(r *Request) *types.ToolConfiguration {
	// A conversation with calls must describe their tools, even if no tool may be called.
	tools := r.Tools
	if len(tools) == 0 {
		tools = calledTools(r.Messages)
	}
	if len(tools) == 0 {
		return nil
	}

	c := &types.ToolConfiguration{}
	for _, t := range tools {
		var schema any
		// The library takes values, not JSON.
		if json.Unmarshal(t.Schema, &schema) != nil {
			schema = map[string]any{"type": "object"}
		}
		c.Tools = append(c.Tools, &types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: aws.String(t.Name), Description: aws.String(t.About),
			InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(schema)},
		}})
	}
	return c
}

// calledTools returns the tools that occur in a conversation, by name only. The service refuses
// calls of a tool that is not described.
func calledTools(messages []Message) (tools []Tool) {
	known := map[string]bool{}
	for i := range messages {
		for _, c := range messages[i].Calls() {
			if name := safeName(c.Name); !known[name] {
				known[name] = true
				tools = append(tools, Tool{Name: name, About: "Not to be called any more."})
			}
		}
	}
	return tools
}

// hasCachePoints reports whether the model supports cache points.
func (w *converse) hasCachePoints() bool {
	name := strings.ToLower(w.e.m.Model)
	return (strings.Contains(name, "claude") || strings.Contains(name, "nova")) && w.e.supports("cache")
}

// convertMessages returns the messages. Roles alternate, and all results of one step are in one
// message.
func (w *converse) convertMessages(r *Request) (out []types.Message) {
	for i := range r.Messages {
		m := &r.Messages[i]
		role := types.ConversationRoleUser
		var content []types.ContentBlock
		if m.Role == Assistant {
			role, content = types.ConversationRoleAssistant, w.assistantBlocks(m)
		} else {
			for _, res := range m.Results() {
				status := types.ToolResultStatusSuccess
				if res.Failed {
					status = types.ToolResultStatusError
				}
				content = append(content, &types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{
					ToolUseId: aws.String(toolID(res.ID)), Status: status,
					Content: []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: nonEmpty(res.Text)}},
				}})
			}

			if text := m.Text(); strings.TrimSpace(text) != "" {
				content = append(content, &types.ContentBlockMemberText{Value: text})
			}
		}

		if len(content) == 0 {
			continue
		}

		// Join messages of the same role.
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, content...)
			continue
		}
		out = append(out, types.Message{Role: role, Content: content})
	}

	// The next request repeats everything up to here.
	if n := len(out); n > 0 && w.hasCachePoints() {
		out[n-1].Content = append(out[n-1].Content, &types.ContentBlockMemberCachePoint{Value: types.CachePointBlock{Type: types.CachePointTypeDefault}})
	}

	// The service has no property that forbids calls.
	if r.NoCalls && len(out) > 0 && len(r.Tools) > 0 {
		last := &out[len(out)-1]
		last.Content = append(last.Content, &types.ContentBlockMemberText{Value: "Do not call any tool now. Answer in words."})
	}
	return out
}

// converseBlock is a block of an assistant's message that can be stored as JSON, unlike the
// library's type.
type converseBlock struct {
	Text      string          `json:"text,omitempty"`
	Reasoning string          `json:"reasoning,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Redacted  []byte          `json:"redacted,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// assistantBlocks converts a message of the model to Converse blocks.
func (w *converse) assistantBlocks(m *Message) (content []types.ContentBlock) {
	var own []converseBlock
	if raw := w.e.nativeMessage(m); raw == nil || json.Unmarshal(raw, &own) != nil {
		own = nil // it may be half read
		if text := m.Text(); text != "" {
			own = append(own, converseBlock{Text: text})
		}
		for _, c := range m.Calls() {
			own = append(own, converseBlock{ID: c.ID, Name: c.Name, Input: c.argumentsObject()})
		}
	}

	for _, b := range own {
		// Stored messages may contain blocks that the service sends but refuses to take back.
		if block := b.convert(); block != nil {
			content = append(content, block)
		}
	}
	return content
}

// convert converts the block for the library; nil if the service would refuse it: an empty text, or
// reasoning without a signature.
func (b *converseBlock) convert() types.ContentBlock {
	switch {
	case b.Name != "":
		var input any
		if json.Unmarshal(b.Input, &input) != nil {
			input = map[string]any{}
		}
		return &types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{
			ToolUseId: aws.String(toolID(b.ID)), Name: aws.String(safeName(b.Name)), Input: document.NewLazyDocument(input),
		}}

	case len(b.Redacted) > 0:
		return &types.ContentBlockMemberReasoningContent{Value: &types.ReasoningContentBlockMemberRedactedContent{Value: b.Redacted}}
	case b.Reasoning != "" && b.Signature != "":
		return &types.ContentBlockMemberReasoningContent{Value: &types.ReasoningContentBlockMemberReasoningText{Value: types.ReasoningTextBlock{
			Text: aws.String(b.Reasoning), Signature: aws.String(b.Signature),
		}}}

	case strings.TrimSpace(b.Text) != "":
		return &types.ContentBlockMemberText{Value: b.Text}
	}
	return nil
}

// send sends the request and returns the model's answer. Events of the answer go to on as they
// arrive.
func (w *converse) send(ctx context.Context, r *Request, on func(Event)) (*Answer, error) {
	out, err := w.client.ConverseStream(ctx, w.convertRequest(r))
	if err != nil {
		return nil, converseError(ctx, err)
	}
	stream := out.GetStream()
	defer stream.Close() // ends the request after a bad event

	// Blocks are identified by index, because their pieces may be interleaved.
	s := &converseStream{e: w.e, emit: on, blocks: map[int32]*converseBlock{}, input: map[int32]*strings.Builder{}}
	for event := range stream.Events() {
		if err := s.addEvent(event); err != nil {
			return nil, err
		}
	}

	// Exceptions of the service come as events and end the stream.
	if err := stream.Err(); err != nil {
		return nil, converseError(ctx, err)
	}
	return s.assemble()
}

// converseError turns an error of the service into an *Error.
func converseError(ctx context.Context, err error) error {
	var known *Error
	var api smithy.APIError
	if !errors.As(err, &known) && errors.As(err, &api) {
		return &Error{Kind: kindFor(0, []string{api.ErrorCode()}, api.ErrorMessage()), Message: oneLine(api.ErrorCode() + " " + api.ErrorMessage())}
	}
	return toError(ctx, err)
}

// converseStream assembles an answer from its events.
type converseStream struct {
	e      *endpoint
	emit   func(Event)
	blocks map[int32]*converseBlock
	input  map[int32]*strings.Builder
	order  []int32
	stop   types.StopReason
	usage  Usage
	size   int
}

// blockAt returns the block of the answer with this index; it creates a missing one.
func (s *converseStream) blockAt(index *int32) *converseBlock {
	i := aws.ToInt32(index)
	if s.blocks[i] == nil {
		s.blocks[i], s.input[i] = &converseBlock{}, &strings.Builder{}
		s.order = append(s.order, i)
	}
	return s.blocks[i]
}

// addEvent handles one event of the stream.
func (s *converseStream) addEvent(event types.ConverseStreamOutput) error {
	switch v := event.(type) {
	case *types.ConverseStreamOutputMemberContentBlockStart:
		if use, ok := v.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
			// Only calls have data at their start.
			b := s.blockAt(v.Value.ContentBlockIndex)
			b.ID, b.Name = aws.ToString(use.Value.ToolUseId), aws.ToString(use.Value.Name)
		}

	case *types.ConverseStreamOutputMemberContentBlockDelta:
		return s.addDelta(&v.Value)
	case *types.ConverseStreamOutputMemberMessageStop:
		s.stop = v.Value.StopReason

	case *types.ConverseStreamOutputMemberMetadata: // may come before the stop
		if u := v.Value.Usage; u != nil {
			cached := int(aws.ToInt32(u.CacheReadInputTokens))
			s.usage = Usage{
				Input:  int(aws.ToInt32(u.InputTokens)+aws.ToInt32(u.CacheWriteInputTokens)) + cached,
				Cached: cached, Output: int(aws.ToInt32(u.OutputTokens)),
			}
		}
	}
	return nil
}

// addDelta adds one piece of a block.
func (s *converseStream) addDelta(v *types.ContentBlockDeltaEvent) error {
	b := s.blockAt(v.ContentBlockIndex)
	switch d := v.Delta.(type) {
	case *types.ContentBlockDeltaMemberText:
		b.Text += d.Value
		s.size += len(d.Value)
		s.emit(Event{Text: d.Value})

	case *types.ContentBlockDeltaMemberToolUse:
		piece := aws.ToString(d.Value.Input)
		s.size += len(piece)
		s.input[aws.ToInt32(v.ContentBlockIndex)].WriteString(piece) // only complete JSON at the end of the block

	case *types.ContentBlockDeltaMemberReasoningContent:
		switch r := d.Value.(type) {
		case *types.ReasoningContentBlockDeltaMemberText:
			b.Reasoning += r.Value
			s.size += len(r.Value)
			s.emit(Event{Reasoning: r.Value})
		case *types.ReasoningContentBlockDeltaMemberSignature:
			b.Signature += r.Value // not shown, but must be sent back
		case *types.ReasoningContentBlockDeltaMemberRedactedContent:
			b.Redacted = append(b.Redacted, r.Value...)
		}
	}

	// Limit all blocks together: many small ones fill memory like one large one.
	if s.size > maxPart {
		return &Error{Kind: Broken, Message: "an answer that does not end"}
	}
	return nil
}

// assemble returns the answer at the end of the stream.
func (s *converseStream) assemble() (*Answer, error) {
	a := &Answer{Finish: Done, Usage: s.usage}
	switch s.stop {
	case "":
		return nil, brokenError()
	case types.StopReasonMaxTokens:
		a.Finish = Length
	case types.StopReasonGuardrailIntervened, types.StopReasonContentFiltered:
		a.Finish = Blocked
	case types.StopReasonModelContextWindowExceeded:
		return nil, &Error{Kind: TooLong, Message: string(s.stop)}
	case types.StopReasonMalformedModelOutput, types.StopReasonMalformedToolUse:
		return nil, &Error{Kind: Broken, Message: string(s.stop)}
	}

	// The order in which blocks began is their order in the message.
	own := make([]converseBlock, 0, len(s.order))
	for _, i := range s.order {
		b := s.blocks[i]
		switch {
		case b.Name != "":
			call := &Call{ID: b.ID, Name: b.Name, Arguments: s.input[i].String()}
			b.Input = call.argumentsObject() // sent back as an object, whatever the model wrote
			a.Message.Parts = append(a.Message.Parts, Part{Call: call})
		case b.Text != "":
			a.Message.Parts = append(a.Message.Parts, Part{Text: b.Text})
		}
		own = append(own, *b)
	}

	a, err := s.e.checkAnswer(a)
	if err != nil {
		return nil, err
	}

	// Send the blocks back unchanged, including signatures.
	raw, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("keep the message: %w", err)
	}
	a.Message.Native = &Native{From: s.e.name(), JSON: raw}
	return a, nil
}
