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

// round runs the calls of a step, some at a time. Their results stand in the
// order of the calls.
func (l *loop) round(ctx context.Context, calls []*model.Call) {
	answers, known := l.callAll(ctx, calls)

	// The room of a step is shared by its results.
	room := max(maxRound/len(calls), 4<<10)

	var parts []model.Part
	news := false
	for i, c := range calls {
		key := keyOf(c)
		text := clean(answers[i].Text)
		text = cutTo(text, min(maxResult, room))
		// What failed may be tried again.
		if !known[i] && !answers[i].Failed {
			news = true
			l.results[key], l.asked[c.ID] = true, key
		}

		first, _, _ := strings.Cut(text, "\n")
		l.t.emit(Event{Kind: KindResult, Text: cutTo(first, 300), Failed: answers[i].Failed})

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
	if news {
		l.empty = 0
	}
	if l.empty >= emptyRounds && l.why == "" {
		l.stopCalls("it found nothing new any more")
	}
}

// keyOf tells calls apart by what they ask.
func keyOf(c *model.Call) string { return c.Name + " " + c.Arguments }

// callAll runs calls, some at a time. One whose result is in the conversation, or that
// is made twice in the step, is not run again: the model has its result.
func (l *loop) callAll(ctx context.Context, calls []*model.Call) (answers []tool.Answer, known []bool) {
	answers = make([]tool.Answer, len(calls))
	known = make([]bool, len(calls))
	places := make(chan struct{}, atOnce)
	first := map[string]bool{}
	var wg sync.WaitGroup
	for i, c := range calls {
		l.t.emit(Event{Kind: KindCall, Text: shown(c)})

		// Decided here and not in the goroutines: the maps have no lock.
		key := keyOf(c)
		l.times[key]++
		if l.results[key] || first[key] {
			answers[i] = tool.Answer{Text: "You have this already; it has not changed."}
			known[i] = true
			continue
		}
		first[key] = true

		// Waits here, so that a step of sixty calls does not make a crowd on the node.
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			answers[i] = l.call(ctx, c)
		})
	}
	wg.Wait()
	return answers, known
}

// call runs one call, for a minute at most.
func (l *loop) call(ctx context.Context, c *model.Call) tool.Answer {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return l.tools.Call(ctx, l.t.viewer, l.meant(c.Name), json.RawMessage(closed(unfenced(c.Arguments))))
}

// closed is an object of JSON with the ends that a model has left out: of a text, of lists
// and of objects. What does not become JSON by that stays as it is.
func closed(text string) string {
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
			ends = append(ends, c+2) // the sign that closes it, in ASCII
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

// meant is the tool that a model means: some put names in front, or write them
// in other letters.
func (l *loop) meant(name string) string {
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

// shown is a call in one line for people.
func shown(c *model.Call) string {
	arguments := strings.Join(strings.Fields(c.Arguments), " ")
	return cutTo(clean(c.Name+" "+arguments), 300)
}

func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "\n… (cut here; ask for less, or for the rest)"
}

// unfenced is a text without the fence of a code block around it.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(inner, "json"), "```"))
	}
	return text
}

// writtenCall is a call as servers of local models hand it over when they do not know
// the form of their model: in a tag, or as the only object of the text.
var writtenCall = regexp.MustCompile(`(?s)<(?:tool_call|function_call|tool_use)>\s*(\{.*?\})\s*(?:</(?:tool_call|function_call|tool_use)>|$)`)

// readCalls makes calls of an answer that has them as text.
func (l *loop) readCalls(answer *model.Answer) {
	text := answer.Message.Text()
	if len(answer.Message.Calls()) > 0 || !strings.Contains(text, "{") {
		return
	}

	written := writtenCall.FindAllStringSubmatch(text, atOnce)
	if written == nil {
		written = [][]string{{"", unfenced(text)}}
	}
	var parts []model.Part
	for _, w := range written {
		if c := l.writtenCall(w[1]); c != nil {
			parts = append(parts, model.Part{Call: c})
		}
	}

	// In the form of a call from here on, which the provider's own form of the text is not.
	if parts != nil {
		answer.Message = model.Message{Role: model.Assistant, Parts: parts}
	}
}

// writtenCall reads the object of a call; nil where it is none of a tool that there is.
func (l *loop) writtenCall(text string) *model.Call {
	var c struct {
		Name       string
		Arguments  json.RawMessage
		Parameters json.RawMessage
	}
	if json.Unmarshal([]byte(text), &c) != nil {
		return nil
	}
	name := l.meant(c.Name)
	if !slices.ContainsFunc(l.req.Tools, func(t model.Tool) bool { return t.Name == name }) {
		return nil
	}

	arguments := string(c.Arguments)
	if arguments == "" {
		arguments = string(c.Parameters)
	}
	// Some write the arguments as a text that holds the object.
	var inner string
	if json.Unmarshal([]byte(arguments), &inner) == nil {
		arguments = inner
	}
	return &model.Call{ID: newID()[:12], Name: name, Arguments: arguments}
}
