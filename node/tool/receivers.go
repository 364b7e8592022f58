package tool

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/symbols"
)

// receivers separates the uses of a method, such as Store.Close, by the text before its name:
//
//	s.Close()  str.Close()  m.store.Close()  NewStore().Close()    may belong to Store
//	f.Close()  resp.Body.Close()                                   hardly belong to it
//
// The types of variables are unknown, but people name variables after types. So likely uses are
// shown with their text. The others are shown by line number or, if there are many, by the names of
// the receivers. A function of Go is certain: it is used by the name of its package, or without one in
// the directory of its package.
type receivers struct {
	*owner
	before *regexp.Regexp
	names  map[*symbols.SymbolMatch]string // of the uses that were looked at
	judged map[string]bool                 // whether names are like that of the owner
}

// fewOthers is the number of uses of other receivers below which they are not separated.
const fewOthers = 10

// receivers returns the receivers of the requested method.
func (l *lookup) receivers(o *owner) *receivers {
	// Skip calls and indexes between receiver and name, as in NewStore(x).Close().
	return &receivers{
		owner:  o,
		before: regexp.MustCompile(`([\pL\pN_$]*)(?:\([^()]*\)|\[[^\[\]]*\]|[?!])*\s*(?:\.|->|::)\s*` + regexp.QuoteMeta(l.name())),
		names:  map[*symbols.SymbolMatch]string{},
		judged: map[string]bool{},
	}
}

// tellApart reports whether to separate the uses: some receivers must fit the type, and at least
// least must not. counts selects the wanted lines.
func (w *receivers) tellApart(r *symbols.SymbolResponse, counts func(*symbols.SymbolMatch, string) bool, least int) bool {
	// Count all lines first: separate them only if that saves more than it costs.
	fit, others := 0, 0
	for i := range r.Files {
		f := &r.Files[i]
		for k := range f.Matches {
			switch m := &f.Matches[k]; {
			case !counts(m, f.Language):
			case w.fits(f, m):
				fit++
			default:
				others++
			}
		}
	}

	// If no receiver fits, names do not help here; separating would hide every use.
	return fit > 0 && others >= least
}

// of returns the last name before the method; "" if there is none.
func (w *receivers) of(m *symbols.SymbolMatch) string {
	// Cache the names: each line is examined up to four times, and there may be ten thousand.
	name, seen := w.names[m]
	if !seen {
		if found := w.before.FindSubmatch(m.Line); found != nil {
			name = string(found[1])
		}
		w.names[m] = name
	}
	return name
}

// fits reports whether the receiver of a use in a file may have the type.
func (w *receivers) fits(f *symbols.SymbolFile, m *symbols.SymbolMatch) bool {
	receiver := w.of(m)
	if w.packages != nil && f.Language == "Go" {
		return receiver == w.owner.name || receiver == "" && w.packages[packageDir(f.Repository, f.Path)]
	}
	switch receiver {
	case "", "self", "this", "super", "Self":
		return shortScope(m.Around.ParentName, m.Around.ParentKind) == w.owner.name
	}

	like, known := w.judged[receiver]
	if !known {
		like = namedLike(receiver, w.owner.name)
		w.judged[receiver] = like
	}
	return like
}

// brief describes a use by its line number and receiver.
func (w *receivers) brief(m *symbols.SymbolMatch) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", m.Range.Start.Line, w.of(m)))
}

const (
	mostByLine = 60 // uses: each costs about three tokens
	mostByName = 40 // receivers
)

// others has the uses whose receivers are not named like the type.
type others struct {
	lines  int
	files  block
	byName map[string]int
}

// add adds uses in one file.
func (o *others) add(w *receivers, where string, uses []*symbols.SymbolMatch) {
	if o.byName == nil {
		o.byName = map[string]int{}
	}

	brief := make([]string, len(uses))
	for i, m := range uses {
		brief[i] = w.brief(m)
		o.byName[w.of(m)]++
	}
	o.lines += len(uses)
	o.files.lines = append(o.files.lines, where+": "+strings.Join(brief, ", ")+"\n")
}

// byLine reports whether few enough uses remain to list each by line number.
func (o *others) byLine() bool { return o.lines <= mostByLine }

// block returns the block that describes these uses.
func (o *others) block() block {
	if o.byLine() {
		return block{head: "Receivers of other names, by line:\n", lines: o.files.lines}
	}

	// If there are many, list the receivers by frequency: 61 uses on conn do not belong to Store.
	names := slices.SortedFunc(maps.Keys(o.byName), func(a, b string) int {
		return cmp.Or(o.byName[b]-o.byName[a], strings.Compare(a, b))
	})
	var shown []string
	for _, name := range names[:min(len(names), mostByName)] {
		shown = append(shown, strings.TrimSpace(fmt.Sprintf("%s %d", cmp.Or(label(name), "none"), o.byName[name])))
	}

	head := fmt.Sprintf("Receivers of other names, how often in %s: %s", count(len(o.files.lines), "file"), strings.Join(shown, ", "))
	if more := len(names) - len(shown); more > 0 {
		head += fmt.Sprintf(" and %s more", count(more, "name"))
	}
	return block{head: head + "\n"}
}

// namedLike reports whether a variable may be named after a type. It contains the type's name, or it or
// its last words consist of letters of it in order, starting at the first letter of a word:
//
//	AppContext: appContext, actx, ctx, c, parentCtx
func namedLike(variable, typ string) bool {
	v, t := plainLetters(variable), plainLetters(typ)
	if v == "" || t == "" {
		return false
	}
	// The variable contains the whole type name, as in mainStore.
	if strings.Contains(v, t) {
		return true
	}

	names := []string{v}
	for _, at := range wordStart.FindAllStringIndex(variable, -1) {
		if last := plainLetters(variable[at[0]:]); len(last) >= leastWord {
			names = append(names, last)
		}
	}
	// It may abbreviate any suffix of words: ctx and actx both fit AppContext.
	for _, at := range wordStart.FindAllStringIndex(typ, -1) {
		end := plainLetters(typ[at[0]:])
		if slices.ContainsFunc(names, func(name string) bool { return isAbbreviation(name, end) }) {
			return true
		}
	}
	return false
}

// leastWord is the number of letters of a last word from which it tells of a type. Fewer fit too many.
const leastWord = 3

// wordStart matches the beginnings of words in a name, as in Store, HTTPStore and my_store.
var wordStart = regexp.MustCompile(`\p{Lu}|^\pL|[_$]\pL`)

// isAbbreviation reports whether a name consists of letters of a text in their order, including the
// first.
func isAbbreviation(name, text string) bool {
	// The first letter must be the same: t does not abbreviate Context.
	if text == "" || name[0] != text[0] {
		return false
	}

	// Comparing bytes also works for letters of several bytes.
	for _, letter := range []byte(name) {
		i := strings.IndexByte(text, letter)
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return true
}

// plainLetters returns a name in lower case, without digits and separators.
func plainLetters(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '$' || r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}
