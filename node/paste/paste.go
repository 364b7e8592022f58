package paste

import (
	"slices"
	"strconv"
	"strings"
)

// The bounds of what is read.
const (
	MaxText   = 64 << 10 // bytes; of a longer text its beginning
	MaxPlaces = 100
	maxOthers = 8 // of each other list
)

// Place is a file that a text names. Lines and columns count from 1; 0 means that the
// text has none.
type Place struct {
	Path   string // with slashes; it may begin with directories of another machine
	Line   int
	End    int // the last line; 0 for one line
	Column int
	Name   string // of the function of a frame, as the text has it; "" for none

	Form string // of the table of forms
	at   int    // offset in the text
}

// Meaning is what a text names, each list in the order of the text.
type Meaning struct {
	Places    []Place
	Addresses []Address
	Commits   []string // hashes or their beginnings, in small letters
	Names     []Name
	Globs     []string
	Change    string // the number of a change or an issue that the whole text is, as #12; "" for none
}

// Trace reports whether the text has the frames of a call stack: two places of forms
// that programs print for frames, or names that frames without a file have.
func (m *Meaning) Trace() bool {
	if len(m.Places) == 0 && slices.ContainsFunc(m.Names, func(n Name) bool { return n.Frame }) {
		return true
	}
	frames := 0
	for i := range m.Places {
		if f := forms[m.Places[i].Form]; f != nil && f.frame {
			frames++
		}
	}
	return frames > 1
}

// Empty reports whether the text names nothing.
func (m *Meaning) Empty() bool {
	return len(m.Places) == 0 && len(m.Addresses) == 0 && len(m.Commits) == 0 && len(m.Names) == 0 && len(m.Globs) == 0 && m.Change == ""
}

// Read finds what a text names. Line breaks do not matter: a search box drops them.
func Read(text string) *Meaning {
	text = strings.ToValidUTF8(text[:min(len(text), MaxText)], "\ufffd")
	text = strings.ReplaceAll(text, "\u00a0", " ")
	r := &reader{text: text, used: make([]bool, len(text))}
	m := &Meaning{}

	// Addresses first: their parts look like paths, commits and names.
	m.Addresses = append(r.addresses(), r.modules()...)
	m.Places = r.places()
	m.Globs = r.globs()
	m.Names = r.names()
	m.Commits = r.commits()
	if number := change.FindStringSubmatch(r.text); number != nil {
		m.Change = number[1]
	}

	// A word of a sentence may look like a path: only a few of them are meant.
	if len(m.Places) == 0 {
		m.Places = r.barePaths()
	}
	return m
}

// reader is one text while it is read. What a form takes no later one takes again.
type reader struct {
	text string
	used []bool // by byte
}

// take marks a range as read. It reports false where a part of it was read before.
func (r *reader) take(from, to int) bool {
	if slices.Contains(r.used[from:to], true) {
		return false
	}
	for i := from; i < to; i++ {
		r.used[i] = true
	}
	return true
}

// places finds the places of all forms.
func (r *reader) places() []Place {
	var out []Place
	for _, name := range formOrder {
		f := forms[name]
		for _, m := range f.expr.FindAllStringSubmatchIndex(r.text, MaxPlaces) {
			p := f.place(r.text, m)
			p.Form, p.at = name, m[0]
			if p.Path != "" && r.take(m[0], m[1]) {
				out = append(out, p)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Place) int { return a.at - b.at })
	return out[:min(len(out), MaxPlaces)]
}

// place makes a place of the groups of a match.
func (f *form) place(text string, match []int) Place {
	p := Place{}
	for i, name := range f.expr.SubexpNames() {
		if name == "" || match[2*i] < 0 {
			continue
		}
		value := text[match[2*i]:match[2*i+1]]
		switch number, _ := strconv.Atoi(value); name {
		case "path":
			p.Path = cleanPath(value)
		case "line":
			p.Line = number
		case "end":
			p.End = number
		case "col":
			p.Column = number
		case "name":
			p.Name = strings.TrimSpace(value)
		}
	}
	if p.End <= p.Line {
		p.End = 0
	}
	if f.finish != nil {
		f.finish(&p)
	}
	return p
}

// cleanPath makes slashes of backslashes, and takes off what programs put before a path.
func cleanPath(path string) string {
	path = strings.ReplaceAll(path, `\`, "/")
	// webpack:///./src/x.js, file:///C:/x.js, http://localhost:3000/static/x.js
	if _, rest, ok := strings.Cut(path, "://"); ok {
		path = rest
	}
	path, _, _ = strings.Cut(path, "?")
	for _, prefix := range []string{"node:", "async ", "webpack-internal:"} {
		path = strings.TrimPrefix(path, prefix)
	}

	var parts []string
	for _, part := range strings.Split(path, "/") {
		switch part {
		case "", ".":
		case "..":
			// What stands before it is not known: the rest is enough.
			parts = parts[:max(0, len(parts)-1)]
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}
