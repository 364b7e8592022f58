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

// The limits of arguments.
const (
	maxText = 10_000 // bytes of a string
	maxList = 100    // strings of a list
)

// misuse is an error for the model: sentences that say what is wrong with its call.
type misuse string

func (m misuse) Error() string { return string(m) }

// decode checks the arguments of a call. null means absent; numbers and booleans may be strings,
// because some models write them so. The error lists everything that is wrong. If a corrected call
// would ask for the same, the error ends with it.
func (t *Tool) decode(raw json.RawMessage) (*Args, error) {
	var members arguments
	given := len(raw) > 0 && string(raw) != "null"
	if given {
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, misuse("The arguments have to be one JSON object" + t.withRequired() + ".")
		}
	}
	names := t.names()
	renamed := slices.ContainsFunc(slices.Collect(maps.Keys(members)), func(name string) bool { return !contains(names, name) })
	t.translate(members)

	// Build two calls: the one that was made, and a corrected one.
	a, corrected := newArgs(t), newArgs(t)
	a.renamed = renamed
	var wrong []string
	whole := true // the corrected call lacks nothing of the other one
	for i := range t.Params {
		p := &t.Params[i]
		problem := p.take(members[p.Name], a, corrected)
		if problem != "" {
			wrong = append(wrong, p.Name+" "+problem)
			whole = whole && corrected.Has(p.Name)
		}
		delete(members, p.Name) // what stays was meant for no parameter
	}

	// The remaining arguments have names that the tool does not know.
	listed := false
	for _, name := range slices.Sorted(maps.Keys(members)) {
		text, meant, placed := t.unknown(name, members[name], corrected)
		wrong = append(wrong, text)
		whole, listed = whole && placed, listed || meant == ""
	}

	if wrong == nil {
		a.asked = a.Text("repo")
		return a, nil
	}

	// A model that learns one mistake at a time needs one more call for each.
	text := "Wrong arguments: " + strings.Join(wrong, "; ") + "."
	// List the parameters only if there is no similar name to suggest.
	if listed {
		text += " The parameters of " + t.Name + " are " + strings.Join(t.names(), ", ") + "."
	}
	// A corrected call that lacks an argument would ask for something else.
	if whole && t.lacking(corrected) == nil {
		text += " Mended: " + corrected.render(t.Name)
	}
	return nil, misuse(text)
}

// lacking lists the required parameters without an argument.
func (t *Tool) lacking(a *Args) (names []string) {
	for _, p := range t.Params {
		if p.Required && !a.Has(p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// withRequired names the required parameters for an error message; "" if there are none.
func (t *Tool) withRequired() string {
	names := t.lacking(newArgs(t))
	if names == nil {
		return ""
	}
	return " with " + strings.Join(names, ", ")
}

// take checks one argument and stores it in both calls. If it is wrong, take returns the problem
// and stores a corrected value in the corrected call.
func (p *Param) take(member json.RawMessage, a, corrected *Args) (problem string) {
	// Many models write null for an argument that they do not want to give.
	if member == nil || string(member) == "null" {
		// A default does not count as given, so advised calls do not repeat it.
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

	// The corrected call also needs the right arguments, because another may be wrong.
	value, problem := p.decode(member)
	if problem != "" {
		if better, ok := p.correct(member); ok {
			corrected.set(p.Name, better)
		}
		return problem
	}

	a.set(p.Name, value)
	corrected.set(p.Name, value)
	return ""
}

// unknown returns the problem of an argument that no parameter has, and the parameter that was
// probably meant. placed reports whether the corrected call now has its value.
func (t *Tool) unknown(name string, member json.RawMessage, corrected *Args) (text, meant string, placed bool) {
	// Shorten the name: it comes from the caller and may be a whole text.
	text = fmt.Sprintf("there is no parameter %q", shorten(name))
	if meant = t.meant(name); meant == "" {
		return text, "", false
	}

	// Put the value where it belongs, but never replace a value that the caller gave under the
	// right name.
	for i := range t.Params {
		p := &t.Params[i]
		if p.Name != meant || corrected.Has(meant) || contains(suggestedOnly, bare(name)) {
			continue
		}
		if value, ok := p.correct(member); ok {
			corrected.set(meant, value)
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

// decode reads one argument, or returns what is wrong with it.
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

	// Accept a value of the wrong type if only one meaning is possible: models quote numbers and
	// booleans.
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

// named reads an object of strings. A single string is the value of the last name, or the values of
// all names, separated by slashes.
func (p *Param) named(v any) (value any, problem string) {
	out := map[string]string{}
	switch v := v.(type) {
	case string:
		// Fill from the right: a model is often given without its provider, never the other way
		// round. The last part keeps further slashes, because names of models have them.
		parts := strings.SplitN(v, "/", len(p.Words))
		for i, part := range parts {
			out[p.Words[len(p.Words)-len(parts)+i]] = part
		}

		return out, ""
	case map[string]any:
		// Refuse an unknown member instead of dropping it: it was meant to change something.
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

// text checks a string argument.
func (p *Param) text(v any) (value any, problem string) {
	s, ok := v.(string)
	switch {
	case !ok:
		return nil, "has to be a string"
	case p.Required && s == "":
		return nil, "must not be empty"
	case len(s) > maxText:
		return nil, fmt.Sprintf("is longer than %d bytes", maxText)
	// No path, ref or line contains a NUL, and git's arguments would end there.
	case strings.IndexByte(s, 0) >= 0:
		return nil, "must not contain a NUL byte"
	case p.Words != nil && !contains(p.Words, s):
		return nil, "has to be one of " + strings.Join(p.Words, ", ")
	}
	return s, ""
}

// list reads several strings. A single string is a list of one.
func (p *Param) list(v any) (value any, problem string) {
	// The schema allows both forms; models mostly write a single string.
	members, ok := v.([]any)
	if !ok {
		members = []any{v}
	}
	if len(members) > maxList {
		return nil, fmt.Sprintf("has more than %d entries", maxList)
	}

	list := []string{}
	// Each string has the limits of a string argument.
	for _, m := range members {
		s, problem := p.text(m)
		if problem == "has to be a string" {
			problem = "has to be a string or a list of strings"
		}

		if problem != "" {
			return nil, problem
		}

		// Some models send "" for "none". As a glob it would match nothing.
		if s != "" {
			list = append(list, s.(string))
		}
	}
	return list, ""
}

// several reads one or more names, separated by commas. One plain name is returned as a string,
// several names or a pattern as a list.
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

// integer checks an integer argument.
func (p *Param) integer(v any) (value any, problem string) {
	// Some models quote numbers.
	f, ok := v.(float64)
	if s, text := v.(string); text {
		var err error
		f, err = strconv.ParseFloat(strings.TrimSpace(s), 64)
		ok = err == nil
	}
	// NaN is unequal to itself and is refused here. Infinities are refused by the limits below.
	if !ok || f != math.Trunc(f) {
		return nil, "has to be a whole number"
	}

	switch {
	// First clamp: a number above the maximum means everything.
	case !p.Exact && p.Max > 0 && f > float64(p.Max):
		return p.Max, ""
	case !p.Exact && f > 0 && f < float64(p.Min):
		return p.Min, ""
	case p.Max > 0 && (f < float64(p.Min) || f > float64(p.Max)):
		return nil, fmt.Sprintf("has to be between %d and %d", p.Min, p.Max)
	case f < float64(p.Min):
		return nil, fmt.Sprintf("has to be at least %d", p.Min)
	// A parameter without a maximum, such as a page number, is multiplied later and must not
	// overflow.
	case f > math.MaxInt32:
		return nil, "is too large"
	}
	return int(f), ""
}

// correct returns the closest value that the parameter accepts: the nearest number or word, or a
// number as text.
func (p *Param) correct(raw json.RawMessage) (value any, ok bool) {
	// A value under another name may be valid as it is.
	if value, problem := p.decode(raw); problem == "" {
		return value, true
	}

	// Change the value as little as possible, and do not guess.
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil, false
	}

	switch v := v.(type) {
	case float64:
		return p.correctNumber(v)
	case string:
		if p.Words != nil {
			word := NearestName(v, p.Words)
			return word, word != ""
		}

		// The text is a number, but out of range or badly written.
		f, err := strconv.ParseFloat(v, 64)
		if err == nil && p.Kind == Integer && !math.IsNaN(f) {
			return p.within(f), true
		}
	}
	return nil, false
}

// correctNumber converts a number to a value that the parameter accepts.
func (p *Param) correctNumber(f float64) (value any, ok bool) {
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

// within returns the integer nearest to f that the parameter accepts.
func (p *Param) within(f float64) int {
	most := float64(math.MaxInt32)
	if p.Max > 0 {
		most = float64(p.Max)
	}
	return int(math.Trunc(min(max(f, float64(p.Min)), most)))
}
