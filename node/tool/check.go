package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The bounds of what a caller may send.
const (
	maxText = 10_000 // bytes of a string
	maxList = 100    // strings of a list
)

// misuse is what a model did wrong with a tool, in sentences for it to read.
type misuse string

func (m misuse) Error() string { return string(m) }

// decode checks the arguments of a call against the row. null is the same as
// absent; numbers and booleans may come as strings, as some models write them.
// Everything that is wrong is told at once, followed by the caller's own call
// as it should have been, where that asks the same.
func (t *Tool) decode(raw json.RawMessage) (*Args, error) {
	var members arguments
	given := len(raw) > 0 && string(raw) != "null"
	if given {
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, misuse("The arguments have to be one JSON object" + t.withRequired() + ".")
		}
	}
	t.translate(members)

	// Two calls are built side by side: the one that was made, and the one that should have been.
	a, mended := newArgs(t), newArgs(t)
	var wrong []string
	whole := true // the mended call lacks nothing of the other one
	for i := range t.Params {
		p := &t.Params[i]
		problem := p.take(members[p.Name], a, mended)
		if problem != "" {
			wrong = append(wrong, p.Name+" "+problem)
			whole = whole && mended.Has(p.Name)
		}
		delete(members, p.Name) // what stays was meant for no parameter
	}

	// What is left has a name that the row does not know.
	listed := false
	for _, name := range slices.Sorted(maps.Keys(members)) {
		text, meant, placed := t.unknown(name, members[name], mended)
		wrong = append(wrong, text)
		whole, listed = whole && placed, listed || meant == ""
	}

	if wrong == nil {
		a.asked = a.Text("repo")
		return a, nil
	}

	// All at once, and with a call to copy: a model that is told one fault at a time takes a step
	// for each.
	text := "Wrong arguments: " + strings.Join(wrong, "; ") + "."
	// The list helps only where nothing near was found.
	if listed {
		text += " The parameters of " + t.Name + " are " + strings.Join(t.names(), ", ") + "."
	}
	// A call that lacks something would ask something else.
	if whole && t.lacking(mended) == nil {
		text += " Mended: " + mended.render(t.Name)
	}
	return nil, misuse(text)
}

// lacking lists the required parameters that a call has not.
func (t *Tool) lacking(a *Args) (names []string) {
	for _, p := range t.Params {
		if p.Required && !a.Has(p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// withRequired tells which members the arguments must have; "" for none.
func (t *Tool) withRequired() string {
	names := t.lacking(newArgs(t))
	if names == nil {
		return ""
	}
	return " with " + strings.Join(names, ", ")
}

// take checks one argument and keeps it. What is wrong is told and kept as it
// should have been.
func (p *Param) take(member json.RawMessage, a, mended *Args) (problem string) {
	// Many models write null for what they do not want to give.
	if member == nil || string(member) == "null" {
		// A default is no argument that was given: it stays out of the calls that are advised.
		if p.Default != nil {
			a.values[p.Name] = p.Default
		}
		if p.Required {
			if p.About == "" {
				return "is required"
			}
			return "is required (" + p.About + ")"
		}
		return ""
	}

	// What was right is kept for the mended call too: another argument may be wrong.
	value, problem := p.decode(member)
	if problem != "" {
		if better, ok := p.mend(member); ok {
			mended.set(p.Name, better)
		}
		return problem
	}

	a.set(p.Name, value)
	mended.set(p.Name, value)
	return ""
}

// unknown tells that the row has no such parameter, and which one was meant. placed
// reports whether the value stands in the mended call.
func (t *Tool) unknown(name string, member json.RawMessage, mended *Args) (text, meant string, placed bool) {
	// Cut short: the name is the caller's and may be a whole text.
	text = fmt.Sprintf("there is no parameter %q", shorten(name))
	if meant = t.meant(name); meant == "" {
		return text, "", false
	}

	// The value goes where it belongs, but never over what the caller has given under the right
	// name.
	for i := range t.Params {
		p := &t.Params[i]
		if p.Name != meant || mended.Has(meant) || contains(suggestedOnly, bare(name)) {
			continue
		}
		if value, ok := p.mend(member); ok {
			mended.set(meant, value)
			placed = true
		}
	}
	return text + " (did you mean " + meant + "?)", meant, placed
}

func shorten(name string) string {
	if len(name) > 40 {
		return cutEnd(name, 40)
	}
	return name
}

func (t *Tool) names() []string {
	names := make([]string, len(t.Params))
	for i, p := range t.Params {
		names[i] = p.Name
	}
	return names
}

// decode reads one argument, or says what is wrong with it.
func (p *Param) decode(raw json.RawMessage) (value any, problem string) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil, "is malformed"
	}
	if list, ok := v.([]any); ok && p.Kind != Strings && !p.Several {
		if len(list) != 1 {
			return nil, "takes one value: make a call for each"
		}
		v = list[0]
	}

	// Values of the wrong type are taken where only one thing can be meant: models quote numbers
	// and booleans.
	switch p.Kind {
	case String:
		if p.Several {
			return p.several(v)
		}
		return p.text(v)
	case Strings:
		return p.list(v)
	case Boolean:
		switch v {
		case true, "true":
			return true, ""
		case false, "false":
			return false, ""
		}
		return nil, "has to be true or false"
	case Named:
		return p.named(v)
	}
	return p.integer(v)
}

// named reads an object of strings. One string is that of the last name, or
// of all names with slashes between them.
func (p *Param) named(v any) (value any, problem string) {
	out := map[string]string{}
	switch v := v.(type) {
	case string:
		// Filled from the right: a model is often given without its provider, never the other way
		// round. The last part keeps further slashes, which names of models have.
		parts := strings.SplitN(v, "/", len(p.Words))
		for i, part := range parts {
			out[p.Words[len(p.Words)-len(parts)+i]] = part
		}

		return out, ""
	case map[string]any:
		// A member that is not known is refused, not dropped: it was meant to change something.
		for name, member := range v {
			text, ok := member.(string)
			if !ok || !contains(p.Words, name) {
				return nil, "has to be an object with the strings " + strings.Join(p.Words, ", ")
			}
			out[name] = text
		}
		return out, ""
	}
	return nil, "has to be an object with the strings " + strings.Join(p.Words, ", ")
}

func (p *Param) text(v any) (value any, problem string) {
	s, ok := v.(string)
	switch {
	case !ok:
		return nil, "has to be a string"
	case p.Required && s == "":
		return nil, "must not be empty"
	case len(s) > maxText:
		return nil, fmt.Sprintf("is longer than %d bytes", maxText)
	// No path, ref or line has one, and the arguments of a process, as git gets them, would end
	// there.
	case strings.IndexByte(s, 0) >= 0:
		return nil, "must not contain a NUL byte"
	case p.Words != nil && !contains(p.Words, s):
		return nil, "has to be one of " + strings.Join(p.Words, ", ")
	}
	return s, ""
}

// list reads several strings. One string is a list of one.
func (p *Param) list(v any) (value any, problem string) {
	// The schema offers both forms, and a bare string is what models write most.
	members, ok := v.([]any)
	if !ok {
		members = []any{v}
	}
	if len(members) > maxList {
		return nil, fmt.Sprintf("has more than %d entries", maxList)
	}

	list := []string{}
	// Each entry is held to the bounds of a single string.
	for _, m := range members {
		s, problem := p.text(m)
		if problem == "has to be a string" {
			problem = "has to be a string or a list of strings"
		}

		if problem != "" {
			return nil, problem
		}

		// An empty glob would match nothing: some models send it for "none".
		if s != "" {
			list = append(list, s.(string))
		}
	}
	return list, ""
}

// several reads names: more than one, or a pattern, are a list.
func (p *Param) several(v any) (value any, problem string) {
	value, problem = p.list(v)
	if problem != "" {
		return nil, problem
	}
	var names []string
	for _, part := range value.([]string) {
		for name := range strings.SplitSeq(part, ",") {
			if name = strings.TrimSpace(name); name != "" && !contains(names, name) {
				names = append(names, name)
			}
		}
	}
	switch {
	case p.Required && names == nil:
		return nil, "must not be empty"
	case len(names) == 1 && !strings.Contains(names[0], "*"):
		return names[0], ""
	case names == nil:
		return "", ""
	}
	return names, ""
}

func (p *Param) integer(v any) (value any, problem string) {
	// JSON has one kind of numbers; some models put even that into quotes.
	f, ok := v.(float64)
	if s, text := v.(string); text {
		var err error
		f, err = strconv.ParseFloat(strings.TrimSpace(s), 64)
		ok = err == nil
	}
	// Not a number is unequal to itself and ends here; the infinities fail at the bounds below.
	if !ok || f != math.Trunc(f) {
		return nil, "has to be a whole number"
	}

	switch {
	// Before the bounds are: more than there is means all that there is.
	case !p.Exact && p.Max > 0 && f > float64(p.Max):
		return p.Max, ""
	case !p.Exact && f > 0 && f < float64(p.Min):
		return p.Min, ""
	case p.Max > 0 && (f < float64(p.Min) || f > float64(p.Max)):
		return nil, fmt.Sprintf("has to be between %d and %d", p.Min, p.Max)
	case f < float64(p.Min):
		return nil, fmt.Sprintf("has to be at least %d", p.Min)
	// Where the row has no bound, as of a page, which is multiplied by its size further down.
	case f > math.MaxInt32:
		return nil, "is too large"
	}
	return int(f), ""
}

// mend makes of a value what the parameter could take: the nearest number, the
// nearest word, the text of a number.
func (p *Param) mend(raw json.RawMessage) (value any, ok bool) {
	// What came under another name may be right as it is.
	if value, problem := p.decode(raw); problem == "" {
		return value, true
	}

	// Else it is bent as little as possible, and not guessed where nothing is near.
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil, false
	}

	switch v := v.(type) {
	case float64:
		return p.mendNumber(v)
	case string:
		if p.Words != nil {
			word := NearestName(v, p.Words)
			return word, word != ""
		}

		// Text that is a number, but out of bounds or broken.
		f, err := strconv.ParseFloat(v, 64)
		if err == nil && p.Kind == Integer && !math.IsNaN(f) {
			return p.within(f), true
		}
	}
	return nil, false
}

// mendNumber makes of a number what the parameter could take.
func (p *Param) mendNumber(f float64) (value any, ok bool) {
	switch p.Kind {
	case Integer:
		return p.within(f), true
	case String, Strings:
		return strconv.FormatFloat(f, 'f', -1, 64), p.Words == nil
	case Boolean:
		return f != 0, true
	}
	return nil, false
}

// within is the whole number nearest to f that the parameter takes.
func (p *Param) within(f float64) int {
	most := float64(math.MaxInt32)
	if p.Max > 0 {
		most = float64(p.Max)
	}
	return int(math.Trunc(min(max(f, float64(p.Min)), most)))
}
