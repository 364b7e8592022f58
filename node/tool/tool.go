package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Tool is one row of the table: what clients are told about a tool, and its function.
type Tool struct {
	Name  string
	Title string
	About string // for a model that has never seen the product: when to use it, what comes back

	Params []Param // the most important first

	// Patience is the time limit of a call by a client that receives progress; 0 for the usual
	// limit. Near its deadline, Run returns what it has.
	Patience time.Duration

	// Offered reports whether the tool can be used now; nil means always. Otherwise clients do not
	// see it.
	Offered func() bool

	// Background lets a call start a task that continues without it; nil if the tool has no tasks.
	Background *Background

	// Run does the work for one viewer and returns the text for the model. The arguments are
	// checked. It must be safe for concurrent use.
	Run func(ctx context.Context, v catalog.Viewer, a *Args) (string, error)
}

// Param is one parameter of a tool. Both the schema and the check of arguments come from it.
type Param struct {
	Name     string
	Kind     Kind
	About    string
	Required bool
	Default  any      // a string, int or bool; nil for none
	Min, Max int      // of an integer; Max 0 is no bound
	Several  bool     // a string may be several, as a,b or a list, or names with *: then it is a list
	Exact    bool     // a value beyond a bound is refused, instead of brought to the bound: it would ask something else
	Words    []string // the only values of a string; nil for any
}

// Kind is the type of a parameter. Most have the names of JSON Schema.
type Kind string

// The kinds of parameters.
const (
	String  Kind = "string"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Strings Kind = "array" // of strings; one string stands for a list of one
	Named   Kind = "named" // an object of strings, by the Words; one string stands for the last of them
)

// Schema returns the JSON Schema of the arguments. The properties have the order of the row: the
// most important first.
func (t *Tool) Schema() json.RawMessage {
	var b bytes.Buffer
	// Written by hand, because a map would lose the order.
	b.WriteString(`{"type":"object","properties":{`)

	var required []string

	for i := range t.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		t.Params[i].schema(&b)
		if t.Params[i].Required {
			required = append(required, t.Params[i].Name)
		}
	}
	b.WriteByte('}')

	if required != nil {
		fmt.Fprintf(&b, `,"required":%s`, quote(required))
	}
	// Clients that validate refuse a misspelled name before they send it.
	b.WriteString(`,"additionalProperties":false}`)
	return b.Bytes()
}

func (p *Param) schema(b *bytes.Buffer) {
	fmt.Fprintf(b, `%s:{"type":%s`, quote(p.Name), p.schemaKind())
	if p.About != "" {
		fmt.Fprintf(b, `,"description":%s`, quote(p.About))
	}

	// Every word of a schema costs tokens in each conversation. Limits to which values are clamped
	// need no mention.
	if p.Kind == Integer && p.Max > 0 && p.Exact {
		fmt.Fprintf(b, `,"maximum":%d`, p.Max)
	}

	switch {
	case p.Kind == Named:
		b.WriteString(`,"properties":{`)
		for i, name := range p.Words {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, `%s:{"type":"string"}`, quote(name))
		}
		b.WriteByte('}')
	case p.Words != nil:
		fmt.Fprintf(b, `,"enum":%s`, quote(p.Words))
	}

	// false is the default anyway.
	if p.Default != nil && p.Default != false {
		fmt.Fprintf(b, `,"default":%s`, quote(p.Default))
	}
	b.WriteByte('}')
}

// schemaKind returns the type of a parameter in its schema.
func (p *Param) schemaKind() string {
	switch p.Kind {
	case Named:
		return `"object"`
	case Strings:
		return `["string","array"],"items":{"type":"string"}`
	}
	return quote(p.Kind)
}

// quote returns a value as JSON, without HTML escapes. Invisible and reordering characters are
// escaped, because people read the calls that an agent is advised to make.
func quote(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	// Patterns contain < and &; escaped they would cost tokens and be hard to read.
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "null"
	}

	return escapeHidden(strings.TrimSuffix(b.String(), "\n"))
}

// Parameters that several tools share.
var (
	repoParam    = Param{Name: "repo", Kind: String, Required: true, About: "as acme/app"}
	anyRepoParam = Param{Name: "repo", Kind: String, Several: true, About: "as acme/app; a,b; acme/*; else all"}
	refParam     = Param{Name: "ref", Kind: String, About: "branch, tag, commit, x@{date}"}
	pageParam    = Param{Name: "page", Kind: Integer, Min: 1, Default: 1, About: ""}
)

// maxPerPage is the largest number of entries on a page.
const maxPerPage = 100

// perPage returns the parameter for the number of entries on a page.
func perPage(usual int) Param {
	return Param{Name: "perPage", Kind: Integer, Min: 1, Max: maxPerPage, Default: usual, About: ""}
}

// Background lets clients run a tool without waiting: Begin returns an id, and any node answers
// Look with the progress. All functions are safe for concurrent use. They return [call.ErrNotFound]
// if the id is not that of the viewer's own task.
type Background struct {
	Begin func(ctx context.Context, v catalog.Viewer, a *Args) (id string, err error)
	Look  func(ctx context.Context, v catalog.Viewer, id string) (*Work, error)

	// Stop asks the task to end. It does nothing if the task has ended.
	Stop func(ctx context.Context, v catalog.Viewer, id string) error
}

// Work is the state of a task.
type Work struct {
	ID     string
	Status WorkStatus
	Doing  string // for people, while it goes on

	Began   time.Time
	Changed time.Time
	Kept    time.Duration // for how long after Began it can be asked for, at least

	Answer Answer // of work that is done: what the call would have been answered
}

// WorkStatus says whether a task runs, is done, or was stopped.
type WorkStatus string

// The states of a task.
const (
	Working WorkStatus = "working"
	Done    WorkStatus = "done" // also with an answer that says what went wrong
	Stopped WorkStatus = "stopped"
)

// names returns the names of the parameters.
func (t *Tool) names() []string {
	names := make([]string, len(t.Params))
	for i, p := range t.Params {
		names[i] = p.Name
	}
	return names
}

// Answer is the text that a model reads as the result of a call.
type Answer struct {
	Text   string
	Failed bool // Text says what went wrong and what to do next
}
