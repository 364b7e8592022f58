package tool

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/shoalsearch/shoal/node/symbols"
)

// bareCalls finds calls without brackets or arguments in the languages that have them, as of total in
// `format(total)`. A variable looks the same. So a bare name is a call only if a method has the name, and
// no line of the function around it makes a variable of that name.
type bareCalls struct {
	name      string
	certain   bool            // no variable can have the name
	before    *regexp.Regexp  // what may stand before the name and is no call
	after     *regexp.Regexp  // the same after it
	variables map[string]bool // functions with a variable of the name, as around names them
}

// bareLanguages are the languages in which a method is called by its name alone.
var bareLanguages = []string{"Ruby", "Crystal"}

var (
	noBareBefore = ending(`[\w@$:"'%.]|\b(?:def|alias|undef|class|module)\s+(?:self\.)?`)
	noBareAfter  = beginning(`[\w?!:"']|\s*(?:[-+*/|&%^]|\|\||&&|<<|>>)?=(?:[^=~>]|$)`)
)

// bareCallsOf returns what tells bare calls of a name from variables; nil if nothing that is defined here can be
// called so.
func bareCallsOf(name string, r *symbols.SymbolResponse) *bareCalls {
	defined := slices.ContainsFunc(r.Defined, func(f symbols.SymbolFile) bool {
		return slices.Contains(bareLanguages, f.Language) && slices.ContainsFunc(f.Matches, func(m symbols.SymbolMatch) bool { return contains(functionKinds, m.Kind) })
	})
	if !defined || name == "" {
		return nil
	}
	last := name[len(name)-1]
	b := &bareCalls{name: name, certain: last == '?' || last == '!', before: noBareBefore, after: noBareAfter, variables: map[string]bool{}}

	// Assignments, also of several names, parameters of blocks and of methods, and errors that are rescued.
	quoted := `(?:^|[^\w.@$:])` + regexp.QuoteMeta(name)
	made := regexp.MustCompile(quoted + `\s*(?:,[\w\s,*@]+)?(?:[-+*/|&%^]|\|\||&&|<<|>>)?=(?:[^=~>]|$)|` +
		`\|(?:[^|]*[^\w.@$:|])?` + regexp.QuoteMeta(name) + `\b[^|]*\||^\s*def\s.*[(\s,*&]` + regexp.QuoteMeta(name) + `\b|=>` + quoted + `\b|\bfor` + quoted + `\b`)
	for i := range r.Files {
		f := &r.Files[i]
		for k := range f.Matches {
			if m := &f.Matches[k]; slices.Contains(bareLanguages, f.Language) && made.Match(m.Line) {
				b.variables[around(m, nil)] = true
				if def := methodName.FindSubmatch(m.Line); def != nil {
					b.variables[string(def[1])] = true
				}
			}
		}
	}
	return b
}

// methodName finds the name of the method that a line begins to define.
var methodName = regexp.MustCompile(`^\s*def\s+(?:self\.)?(\w+[?!=]?)`)

// calls reports whether a line has a bare call.
func (b *bareCalls) calls(m *symbols.SymbolMatch, lang string) bool {
	if b == nil || !slices.Contains(bareLanguages, lang) || !b.certain && (b.variables[around(m, nil)] || b.variables[m.Around.Name]) {
		return false
	}
	for from := 0; ; {
		n := bytes.Index(m.Line[from:], []byte(b.name))
		if n < 0 {
			return false
		}
		begin, end := from+n, from+n+len(b.name)
		from = begin + 1
		if !b.before.Match(m.Line[max(0, begin-callAside):begin]) && !b.after.Match(m.Line[end:]) {
			return true
		}
	}
}
