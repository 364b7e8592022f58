package model

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Role is whose message it is.
type Role string

// The roles.
const (
	User      Role = "user" // questions, and results of tools
	Assistant Role = "assistant"
)

// Message is one message of a conversation.
type Message struct {
	Role   Role
	Parts  []Part
	Native *Native // of an assistant: the provider's own form, nil where it is not known
}

// Part is one piece of a message; exactly one of its fields is set.
type Part struct {
	Text   string
	Call   *Call
	Result *Result
}

// Native is a message as its provider sent it. It goes back unchanged to the
// same model of the same provider, and to no other.
type Native struct {
	From string // provider/model
	JSON json.RawMessage
}

// Call is a call of a tool that the model asks for.
type Call struct {
	ID, Name  string
	Arguments string // JSON, as the model wrote it: it may be malformed
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
	System    []string // blocks; those that never change stand first, so that the provider can cache them
	Tools     []Tool
	NoCalls   bool // the model has to answer in words now
	Messages  []Message
	MaxOutput int    // tokens; 0 for the provider's usual
	CacheKey  string // the same for all steps of a conversation
}

// Event is a piece of an answer while it is being written.
type Event struct {
	Text      string
	Reasoning string
	Note      string // for people: that a call is made again, and why
	Again     bool   // what came of this answer until now is void
}

// Finish is why a model stopped.
type Finish string

// The reasons.
const (
	Done    Finish = "done"
	Calls   Finish = "calls"   // it waits for the results of its calls
	Length  Finish = "length"  // the limit of output was reached
	Blocked Finish = "blocked" // by the model itself or by a filter of the provider
)

// Usage is what one answer took, in tokens.
type Usage struct {
	Input     int // with what came from the cache
	Cached    int // of Input
	Output    int // with reasoning
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

// Text is the words of a message.
func (m *Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Calls are the calls of a message, in order.
func (m *Message) Calls() []*Call {
	var calls []*Call
	for _, p := range m.Parts {
		if p.Call != nil {
			calls = append(calls, p.Call)
		}
	}
	return calls
}

// Results are the results of a message, in order.
func (m *Message) Results() []*Result {
	var results []*Result
	for _, p := range m.Parts {
		if p.Result != nil {
			results = append(results, p.Result)
		}
	}
	return results
}

// object is the arguments of a call as a JSON object: some wires take nothing
// else. What is none is wrapped, so that the model sees what it wrote.
func (c *Call) object() json.RawMessage {
	text := strings.TrimSpace(c.Arguments)
	switch {
	case text == "" || text == "null":
		return json.RawMessage("{}")
	// Other JSON, as a list, is valid too and refused all the same.
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}

	// Cut short: it goes back with every step from now on.
	wrapped, err := json.Marshal(map[string]string{"_invalid": strings.ToValidUTF8(text[:min(len(text), 500)], "")})
	if err != nil {
		return json.RawMessage("{}")
	}
	return wrapped
}

var oddName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// safeName is the name of a call in the letters that every provider takes
// back: models make names up.
func safeName(name string) string {
	name = oddName.ReplaceAllString(name, "_")
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}

// solid is a text that is not empty: providers refuse empty ones.
func solid(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}
