package model

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Role is the author of a message.
type Role string

// Roles.
const (
	User      Role = "user" // questions, and results of tools
	Assistant Role = "assistant"
)

// Message is one message of a conversation.
type Message struct {
	Role   Role
	Parts  []Part
	Native *Native // of an assistant: the provider's own format; nil if unknown
}

// Part is one piece of a message; exactly one of its fields is set.
type Part struct {
	Text   string
	Call   *Call
	Result *Result
}

// Native is a message as its provider sent it. It is sent back unchanged to the same model of the
// same provider, and to no other.
type Native struct {
	From string // provider/model
	JSON json.RawMessage
}

// Call is a tool call that the model requests.
type Call struct {
	ID, Name  string
	Arguments string // JSON as the model wrote it; may be malformed
}

// Result answers a Call.
type Result struct {
	ID, Name, Text string
	Failed         bool
}

// Tool is a function that the model may call.
type Tool struct {
	Name, About string
	Schema      json.RawMessage // JSON Schema of the arguments, without $ref
}

// Request is one step of a conversation.
type Request struct {
	System    []string // blocks; fixed ones come first, so that the provider can cache them
	Tools     []Tool
	NoCalls   bool // the model must answer in words
	Messages  []Message
	MaxOutput int    // tokens; 0 means the provider's default
	CacheKey  string // the same in all steps of a conversation
}

// Event is a piece of an answer while the model writes it.
type Event struct {
	Text      string
	Reasoning string
	Note      string // for people: why a call is repeated
	Again     bool   // discard everything of this answer so far
}

// Finish is why a model stopped.
type Finish string

// Reasons to stop.
const (
	Done    Finish = "done"
	Calls   Finish = "calls"   // it waits for the results of its calls
	Length  Finish = "length"  // the limit of output was reached
	Blocked Finish = "blocked" // the model or a filter of the provider refused
)

// Usage counts the tokens of an answer.
type Usage struct {
	Input     int // including cached ones
	Cached    int // of Input
	Output    int // including reasoning
	Reasoning int // of Output
}

// Add adds the usage of another answer.
func (u *Usage) Add(v Usage) {
	u.Input += v.Input
	u.Cached += v.Cached
	u.Output += v.Output
	u.Reasoning += v.Reasoning
}

// Answer is what a model said in one step.
type Answer struct {
	Message Message
	Finish  Finish
	Usage   Usage
}

// Text returns the text of a message.
func (m *Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Calls returns the calls of a message, in order.
func (m *Message) Calls() []*Call {
	var calls []*Call
	for _, p := range m.Parts {
		if p.Call != nil {
			calls = append(calls, p.Call)
		}
	}
	return calls
}

// Results returns the results of a message, in order.
func (m *Message) Results() []*Result {
	var results []*Result
	for _, p := range m.Parts {
		if p.Result != nil {
			results = append(results, p.Result)
		}
	}
	return results
}

// argumentsObject returns the arguments of a call as a JSON object, because some wires accept nothing
// else. Other text is wrapped, so that the model sees what it wrote.
func (c *Call) argumentsObject() json.RawMessage {
	text := strings.TrimSpace(c.Arguments)
	switch {
	case text == "" || text == "null":
		return json.RawMessage("{}")
	// Other JSON, such as a list, is refused too.
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}

	// Shorten it, because every later step sends it again.
	wrapped, err := json.Marshal(map[string]string{"_invalid": strings.ToValidUTF8(text[:min(len(text), 500)], "")})
	if err != nil {
		return json.RawMessage("{}")
	}
	return wrapped
}

var oddName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// safeName replaces characters that some provider refuses, because models invent names.
func safeName(name string) string {
	name = oddName.ReplaceAllString(name, "_")
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}

// nonEmpty replaces an empty text, because providers refuse it.
func nonEmpty(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}
