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

// Tool is one row of the table: what a client is told of a tool, and the
// function behind it.
type Tool struct {
	Name  string
	Title string
	About string // for a model that has never seen the product: when to use it, what comes back

	Params []Param // the most important first

	// Patience is how long a call may take for a client that is told how far it
	// is; 0 for what every call may take. Near the deadline of its context Run
	// answers with what there is.
	Patience time.Duration

	// Offered says whether the tool can be used now; nil for always. One that is
	// not is no more shown than one that is not there.
	Offered func() bool

	// Background lets a call begin work that goes on without it; nil for a tool
	// that only answers calls.
	Background *Background

	// Run does the work for one viewer and writes the text that the model
	// reads. The arguments have been checked against Params. It may run many
	// times at once.
	Run func(ctx context.Context, v catalog.Viewer, a *Args) (string, error)
}

// Param is one parameter of a tool. The schema that clients see and the check
// of what they send both come from it.
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

// Kind is the type of a parameter, by its name in JSON Schema.
type Kind string

// The kinds.
const (
	String  Kind = "string"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Strings Kind = "array" // of strings; one string stands for a list of one
	Named   Kind = "named" // an object of strings, by the Words; one string stands for the last of them
)

// Schema is the JSON Schema of the tool's arguments. Properties stand in the
// order of the row, which is the order of importance.
func (t *Tool) Schema() json.RawMessage {
	var b bytes.Buffer
	// Written by hand: a map would lose the order, in which models read what matters first.
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
	// Clients that check against it stop a misspelled name before it is sent.
	b.WriteString(`,"additionalProperties":false}`)
	return b.Bytes()
}

func (p *Param) schema(b *bytes.Buffer) {
	fmt.Fprintf(b, `%s:{"type":%s`, quote(p.Name), p.schemaKind())
	if p.About != "" {
		fmt.Fprintf(b, `,"description":%s`, quote(p.About))
	}

	// Each word of a schema costs every conversation. Nobody asks for less than one, and
	// what is brought to a bound needs none.
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

	// What is not set is false anyway.
	if p.Default != nil && p.Default != false {
		fmt.Fprintf(b, `,"default":%s`, quote(p.Default))
	}
	b.WriteByte('}')
}

// schemaKind is the type of a parameter as its schema says it.
func (p *Param) schemaKind() string {
	switch p.Kind {
	case Named:
		return `"object"`
	case Strings:
		return `["string","array"],"items":{"type":"string"}`
	}
	return quote(p.Kind)
}

// quote is the JSON of a value, without escapes made for HTML. What does not show,
// or reorders what stands around it, is escaped: people read the calls that an agent
// is advised to make.
func quote(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	// Patterns have < and & in them: escaped they cost tokens and are hard to read.
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "null"
	}

	return escapeHidden(strings.TrimSuffix(b.String(), "\n"))
}

// Parameters that several tools have.
var (
	repoParam    = Param{Name: "repo", Kind: String, Required: true, About: "as acme/app"}
	anyRepoParam = Param{Name: "repo", Kind: String, Several: true, About: "as acme/app; a,b; acme/*; else all"}
	refParam     = Param{Name: "ref", Kind: String, About: "branch, tag, commit, x@{date}"}
	pageParam    = Param{Name: "page", Kind: Integer, Min: 1, Default: 1, About: ""}
)

// maxPerPage is how many entries a page has at most.
const maxPerPage = 100

// perPage is the parameter of how many entries a page has.
func perPage(usual int) Param {
	return Param{Name: "perPage", Kind: Integer, Min: 1, Max: maxPerPage, Default: usual, About: ""}
}
