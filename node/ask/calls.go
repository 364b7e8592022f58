package ask

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/tool"
)

// runCalls runs the calls of one step and adds their results to the conversation, in the order of
// the calls.
func (l *loop) runCalls(ctx context.Context, calls []*model.Call) {
	answers, known := l.callAll(ctx, calls)

	// The results of a step share its limit of bytes.
	room := max(maxRound/len(calls), 4<<10)

	var parts []model.Part
	newResult := false
	for i, c := range calls {
		key := keyOf(c)
		text := removeInvisible(answers[i].Text)
		text = cutText(text, min(maxResult, room))
		// A failed call may be repeated.
		if !known[i] && !answers[i].Failed {
			newResult = true
			l.results[key], l.keys[c.ID] = true, key
		}

		first, _, _ := strings.Cut(text, "\n")
		l.t.emit(Event{Kind: KindResult, Text: cutText(first, 300), Failed: answers[i].Failed})

		parts = append(parts, model.Part{Result: &model.Result{
			ID:     c.ID,
			Name:   c.Name,
			Failed: answers[i].Failed,
			Text:   "<data-" + l.fence + ">\n" + text + "\n</data-" + l.fence + ">",
		}})
		if l.times[key] >= stuckCall && l.why == "" {
			l.stopCalls("the model made the same call again and again")
		}
	}
	l.req.Messages = append(l.req.Messages, model.Message{Role: model.User, Parts: parts})

	l.empty++
	if newResult {
		l.empty = 0
	}
	if l.empty >= emptyRounds && l.why == "" {
		l.stopCalls("it found nothing new any more")
	}
}

// keyOf identifies a call by its tool and arguments.
func keyOf(c *model.Call) string { return c.Name + " " + c.Arguments }

// callAll runs the calls of a step, some at a time. It skips a call whose result is in the
// conversation already, or that occurs twice in the step. known marks the skipped ones.
func (l *loop) callAll(ctx context.Context, calls []*model.Call) (answers []tool.Answer, known []bool) {
	answers = make([]tool.Answer, len(calls))
	known = make([]bool, len(calls))
	places := make(chan struct{}, atOnce)
	first := map[string]bool{}
	var wg sync.WaitGroup
	for i, c := range calls {
		l.t.emit(Event{Kind: KindCall, Text: callLine(c)})

		// Update the maps here and not in the goroutines: they have no lock.
		key := keyOf(c)
		l.times[key]++
		if l.results[key] || first[key] {
			answers[i] = tool.Answer{Text: "You have this already; it has not changed."}
			known[i] = true
			continue
		}
		first[key] = true

		// Limit the running calls, since one step may make dozens.
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			answers[i] = l.call(ctx, c)
		})
	}
	wg.Wait()
	return answers, known
}

// call runs one call, for at most a minute.
func (l *loop) call(ctx context.Context, c *model.Call) tool.Answer {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return l.tools.Call(ctx, l.t.viewer, l.toolName(c.Name), json.RawMessage(closeJSON(stripFence(c.Arguments))))
}

// closeJSON appends the quotes and brackets that a model left out at the end of a JSON object. If
// the result is still not JSON, it returns the text unchanged.
func closeJSON(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	var ends []byte
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			ends = append(ends, c+2) // the matching bracket is 2 away in ASCII
		case (c == '}' || c == ']') && len(ends) > 0:
			ends = ends[:len(ends)-1]
		}
	}

	whole := strings.TrimRight(text, ", \t\n")
	if quoted {
		whole = text + `"`
	}
	slices.Reverse(ends)
	if whole += string(ends); json.Valid([]byte(whole)) {
		return whole
	}
	return text
}

// toolName returns the tool that a model means. Some models add a prefix or change the case.
func (l *loop) toolName(name string) string {
	for _, prefix := range []string{"functions.", "default_api.", "mcp__shoal__", "shoal_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	for _, t := range l.req.Tools {
		if strings.EqualFold(t.Name, name) {
			return t.Name
		}
	}
	return name
}

// callLine formats a call as one line for people.
func callLine(c *model.Call) string {
	arguments := strings.Join(strings.Fields(c.Arguments), " ")
	return cutText(removeInvisible(c.Name+" "+arguments), 300)
}

func cutText(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "\n… (cut here; ask for less, or for the rest)"
}

// stripFence removes the fence of a code block around a text.
func stripFence(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(inner, "json"), "```"))
	}
	return text
}

// writtenCall matches a call in the text of an answer: in a tag. Servers of local models produce
// this if they do not know their model's format.
var writtenCall = regexp.MustCompile(`(?s)<(?:tool_call|function_call|tool_use)>\s*(\{.*?\})\s*(?:</(?:tool_call|function_call|tool_use)>|$)`)

// readCalls replaces an answer that has calls of tools only as text by a message with real calls. It
// does nothing if the answer has real calls, or if no text in it is a call of a known tool.
func (l *loop) readCalls(answer *model.Answer) {
	text := answer.Message.Text()
	if len(answer.Message.Calls()) > 0 || !strings.Contains(text, "{") {
		return
	}

	written := writtenCall.FindAllStringSubmatch(text, atOnce)
	if written == nil {
		written = [][]string{{"", stripFence(text)}}
	}
	var parts []model.Part
	for _, w := range written {
		if c := l.writtenCall(w[1]); c != nil {
			parts = append(parts, model.Part{Call: c})
		}
	}

	// Replace the message: its native form, which is sent back first, has the calls as text.
	if parts != nil {
		answer.Message = model.Message{Role: model.Assistant, Parts: parts}
	}
}

// writtenCall parses a call; nil if the text is not a call of a known tool.
func (l *loop) writtenCall(text string) *model.Call {
	var c struct {
		Name       string
		Arguments  json.RawMessage
		Parameters json.RawMessage
	}
	if json.Unmarshal([]byte(text), &c) != nil {
		return nil
	}
	name := l.toolName(c.Name)
	if !slices.ContainsFunc(l.req.Tools, func(t model.Tool) bool { return t.Name == name }) {
		return nil
	}

	arguments := string(c.Arguments)
	if arguments == "" {
		arguments = string(c.Parameters)
	}
	// Some models put the arguments object into a JSON string.
	var inner string
	if json.Unmarshal([]byte(arguments), &inner) == nil {
		arguments = inner
	}
	return &model.Call{ID: newID()[:12], Name: name, Arguments: arguments}
}
