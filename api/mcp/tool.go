package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/node"
)

// callTimeout bounds one call of a tool: clients give up after a minute.
const callTimeout = 55 * time.Second

// tool is one row of the table.
type tool struct {
	name, title string
	about       string // for a model that has never seen the product: when to use it, what comes back
	params      []param
	run         func(ctx context.Context, v node.Viewer, a *args) (string, error)
}

// param is one parameter of a tool. The schema that clients see and the check
// of what they send both come from it.
type param struct {
	name     string
	kind     string // string, integer or boolean
	about    string
	required bool
	usual    any      // default: a string, int or bool; nil for none
	min, max int      // of an integer
	clamp    bool     // a value above max is lowered to it instead of refused
	words    []string // the only values of a string; nil for any
}

// maxText bounds a string argument, in bytes.
const maxText = 10_000

// schema is the JSON Schema of the tool's arguments. Properties stand in the
// order of the row, which is the order of importance. Arguments that it does
// not name are allowed: some clients add their own.
func (t *tool) schema() json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	for i, p := range t.params {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s:{"type":%s,"description":%s`, quote(p.name), quote(p.kind), quote(p.about))
		if p.kind == "integer" {
			fmt.Fprintf(&b, `,"minimum":%d`, p.min)
			if p.max > 0 {
				fmt.Fprintf(&b, `,"maximum":%d`, p.max)
			}
		}
		if p.words != nil {
			fmt.Fprintf(&b, `,"enum":%s`, quote(p.words))
		}
		if p.usual != nil {
			fmt.Fprintf(&b, `,"default":%s`, quote(p.usual))
		}
		if p.kind == "string" && p.words == nil {
			if p.required {
				b.WriteString(`,"minLength":1`)
			}
			fmt.Fprintf(&b, `,"maxLength":%d`, maxText)
		}
		b.WriteByte('}')
		if p.required {
			required = append(required, p.name)
		}
	}
	b.WriteByte('}')
	if required != nil {
		fmt.Fprintf(&b, `,"required":%s`, quote(required))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quote is the JSON of a value, without escapes made for HTML.
func quote(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// declaration is what tools/list tells of the tool. All tools only read, and
// the same call gives the same answer.
func (t *tool) declaration() *mcp.Tool {
	no := false
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.about, InputSchema: t.schema(),
		Annotations: &mcp.ToolAnnotations{Title: t.title, ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}
}

// handler runs the tool for one call. Whatever fails is told to the model as
// text with isError, so that it can do better with its next call.
func (t *tool) handler(n Tools, log *slog.Logger) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		a, err := t.decode(req.Params.Arguments)
		if err != nil {
			return failed(err.Error()), nil
		}
		stop := progress(ctx, req, t.name)
		text, err := t.call(ctx, n, viewerOf(ctx), a)
		stop()
		if err != nil {
			var known *node.Error
			if !errors.As(err, &known) && ctx.Err() == nil {
				log.Error("tool failed", "tool", t.name, "error", err)
			}
			return failed(explain(ctx, n, viewerOf(ctx), t, a, err)), nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
}

// call runs the tool. Where the repository has no such full name but exactly
// one that ends like it, that one is meant.
func (t *tool) call(ctx context.Context, n Tools, v node.Viewer, a *args) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	text, err = t.run(ctx, v, a)
	if name := a.text("repo"); errors.Is(err, node.ErrRepoNotFound) && name != "" {
		if full := oneEndingIn(ctx, n, v, name); full != "" {
			a.set("repo", full)
			return t.run(ctx, v, a)
		}
	}
	return text, err
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// progress tells a client that asked for it, now and then, that a call is
// still at work; clients take a silent call for a lost one. The returned
// function ends it and waits for its end.
func progress(ctx context.Context, req *mcp.CallToolRequest, name string) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// A notification that does not arrive is no reason to stop the call.
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: token, Progress: float64(n), Message: name + " is at work",
				})
			}
		}
	}()
	return func() { cancel(); <-done }
}

// args are the checked arguments of a call, with the defaults filled in.
type args struct {
	values map[string]any // string, int or bool by name
	given  []string       // names that the caller gave, in the order of the row
	asked  string         // repo as the caller wrote it
}

// misuse is what a model did wrong with a tool, in sentences for it to read.
type misuse string

func (m misuse) Error() string { return string(m) }

// decode checks the arguments. null is the same as absent. Numbers and
// booleans may come as strings, as some models write them.
func (t *tool) decode(raw json.RawMessage) (*args, error) {
	var members map[string]json.RawMessage
	if len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, misuse("The arguments have to be one JSON object, as " + t.example() + ".")
		}
	}
	a := &args{values: map[string]any{}}
	var wrong []string
	for i := range t.params {
		p := &t.params[i]
		member, ok := members[p.name]
		if !ok || string(member) == "null" {
			if p.required {
				wrong = append(wrong, p.name+" is required ("+p.about+")")
			}
			if p.usual != nil {
				a.values[p.name] = p.usual
			}
			continue
		}
		value, problem := p.decode(member)
		if problem != "" {
			wrong = append(wrong, p.name+" "+problem)
			continue
		}
		a.values[p.name] = value
		a.given = append(a.given, p.name)
	}
	a.asked = a.text("repo")
	if wrong != nil {
		return nil, misuse("Wrong arguments: " + strings.Join(wrong, "; ") + ". Example: " + t.example())
	}
	return a, nil
}

// decode reads one argument, or says what is wrong with it.
func (p *param) decode(raw json.RawMessage) (value any, problem string) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil, "is malformed"
	}
	switch p.kind {
	case "string":
		s, ok := v.(string)
		switch {
		case !ok:
			return nil, "has to be a string"
		case p.required && s == "":
			return nil, "must not be empty"
		case len(s) > maxText:
			return nil, fmt.Sprintf("is longer than %d bytes", maxText)
		case strings.IndexByte(s, 0) >= 0:
			return nil, "must not contain a NUL byte"
		case p.words != nil && !contains(p.words, s):
			return nil, "has to be one of " + strings.Join(p.words, ", ")
		}
		return s, ""
	case "boolean":
		switch v {
		case true, "true":
			return true, ""
		case false, "false":
			return false, ""
		}
		return nil, "has to be true or false"
	}
	return p.integer(v)
}

func (p *param) integer(v any) (value any, problem string) {
	f, ok := v.(float64)
	if s, text := v.(string); text {
		var err error
		f, err = strconv.ParseFloat(strings.TrimSpace(s), 64)
		ok = err == nil
	}
	if !ok || f != math.Trunc(f) {
		return nil, "has to be a whole number"
	}
	switch {
	case p.max > 0 && f > float64(p.max) && p.clamp:
		return p.max, ""
	case p.max > 0 && (f < float64(p.min) || f > float64(p.max)):
		return nil, fmt.Sprintf("has to be between %d and %d", p.min, p.max)
	case f < float64(p.min):
		return nil, fmt.Sprintf("has to be at least %d", p.min)
	case f > math.MaxInt32:
		return nil, "is too large"
	}
	return int(f), ""
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

func (a *args) text(name string) string { s, _ := a.values[name].(string); return s }
func (a *args) number(name string) int  { n, _ := a.values[name].(int); return n }
func (a *args) flag(name string) bool   { b, _ := a.values[name].(bool); return b }

// set changes an argument as if the caller had given it.
func (a *args) set(name string, value any) {
	if !contains(a.given, name) {
		a.given = append(a.given, name)
	}
	a.values[name] = value
}

// with is the text of the same call with some arguments changed, given as
// name, value, ...: what a model has to send to go on. A nil value drops one.
func (a *args) with(tool string, changes ...any) string {
	next := &args{values: map[string]any{}}
	for _, name := range a.given {
		next.set(name, a.values[name])
	}
	for i := 0; i+1 < len(changes); i += 2 {
		next.set(changes[i].(string), changes[i+1])
	}
	return next.render(tool)
}

func (a *args) render(tool string) string {
	var parts []string
	for _, name := range a.given {
		if a.values[name] != nil {
			parts = append(parts, quote(name)+":"+quote(a.values[name]))
		}
	}
	return tool + " {" + strings.Join(parts, ",") + "}"
}

// example is a call with the required arguments, for error texts.
func (t *tool) example() string {
	samples := map[string]string{"repo": "github.com/acme/app", "pattern": "func main", "path": "src/main.go", "symbol": "NewServer", "base": "main~5", "head": "main"}
	a := &args{values: map[string]any{}}
	for _, p := range t.params {
		if p.required {
			a.set(p.name, samples[p.name])
		}
	}
	if t.name == "glob" {
		a.set("pattern", "**/*.go")
	}
	return a.render(t.name)
}
