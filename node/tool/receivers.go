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

// receivers tells apart the uses of a method that is asked for with its type, as
// Store.Close, by what stands before its name:
//
//	s.Close()  str.Close()  m.store.Close()  NewStore().Close()    may be a Store's
//	f.Close()  resp.Body.Close()                                   are hardly
//
// Types are not known, and people call variables by their types: so the one half
// is shown with its text, and the other one by its lines or, where they are many,
// by the names of the receivers.
type receivers struct {
	*owner
	before *regexp.Regexp
	names  map[*symbols.SymbolMatch]string // of the uses that were looked at
	judged map[string]bool                 // whether names are like that of the owner
}

// fewOthers is how many lines are not worth to be told apart.
const fewOthers = 10

// receivers judges the uses of a name by what stands before it.
func (l *lookup) receivers(o *owner) *receivers {
	// Calls and indexes between receiver and name are passed over, as in NewStore(x).Close().
	return &receivers{
		owner:  o,
		before: regexp.MustCompile(`([\pL\pN_$]*)(?:\([^()]*\)|\[[^\[\]]*\]|[?!])*\s*(?:\.|->|::)\s*` + regexp.QuoteMeta(l.name())),
		names:  map[*symbols.SymbolMatch]string{},
		judged: map[string]bool{},
	}
}

// tellApart reports whether the uses are to be shown apart by their receivers, of which
// at least so many fit the type badly. counts tells which lines count.
func (w *receivers) tellApart(r *symbols.SymbolResponse, counts func(*symbols.SymbolMatch, string) bool, least int) bool {
	// All lines are counted first: apart they are told only where that saves more than it costs.
	fit, others := 0, 0
	for i := range r.Files {
		f := &r.Files[i]
		for k := range f.Matches {
			switch m := &f.Matches[k]; {
			case !counts(m, f.Language):
			case w.fits(m):
				fit++
			default:
				others++
			}
		}
	}

	// Where none fits, names say nothing here: to set all of them apart would hide every use.
	return fit > 0 && others >= least
}

// of is the last name before the method; "" where it is called without one.
func (w *receivers) of(m *symbols.SymbolMatch) string {
	// Each line is asked about up to four times, and there may be ten thousand.
	name, seen := w.names[m]
	if !seen {
		if found := w.before.FindSubmatch(m.Line); found != nil {
			name = string(found[1])
		}
		w.names[m] = name
	}
	return name
}

// fits reports whether the receiver of a use may be of the type.
func (w *receivers) fits(m *symbols.SymbolMatch) bool {
	receiver := w.of(m)
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

// brief is a use by its receiver and its line.
func (w *receivers) brief(m *symbols.SymbolMatch) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", m.Range.Start.Line, w.of(m)))
}

const (
	mostByLine = 60 // uses: each costs about three tokens
	mostByName = 40 // receivers
)

// others is the uses by receivers that are not named like the type.
type others struct {
	lines  int
	files  block
	byName map[string]int
}

// add takes uses in one file.
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

// byLine reports whether each of the uses is told by its line.
func (o *others) byLine() bool { return o.lines <= mostByLine }

// block is what is told of the uses.
func (o *others) block() block {
	if o.byLine() {
		return block{head: "Receivers of other names, by line:\n", lines: o.files.lines}
	}

	// Many tell most by what they are called on: 61 on conn are none of a Store.
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

// namedLike reports whether a variable may be called by a type: it has the name
// of the type in it, or is made of letters of that in their order, from the first
// of a word on.
//
//	AppContext: appContext, actx, ctx, c
func namedLike(variable, typ string) bool {
	v, t := plainLetters(variable), plainLetters(typ)
	if v == "" || t == "" {
		return false
	}
	// The whole name of the type, as in mainStore.
	if strings.Contains(v, t) {
		return true
	}

	// From each word on: ctx is of AppContext, as actx is.
	for _, at := range wordStart.FindAllStringIndex(typ, -1) {
		if isAbbreviation(v, plainLetters(typ[at[0]:])) {
			return true
		}
	}
	return false
}

// wordStart matches where a word of a name may begin: Store, HTTPStore, my_store.
var wordStart = regexp.MustCompile(`\p{Lu}|^\pL|[_$]\pL`)

// isAbbreviation reports whether a name is made of letters of a text in their
// order, the first one included.
func isAbbreviation(name, text string) bool {
	// The first letter has to be that of the word: t is no name for a Context.
	if text == "" || name[0] != text[0] {
		return false
	}

	// Bytes will do: a letter of several is found as its bytes in their order.
	for _, letter := range []byte(name) {
		i := strings.IndexByte(text, letter)
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return true
}

// plainLetters is a name in small letters, without digits and dashes.
func plainLetters(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '$' || r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}
