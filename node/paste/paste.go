package paste

import (
	"slices"
	"strconv"
	"strings"
)

// Limits of a text.
const (
	MaxText   = 64 << 10 // bytes; the rest of a longer text is ignored
	MaxPlaces = 100
	maxOthers = 8 // of each other list
)

// Place is a position in a file. Lines and columns count from 1; 0 means that the text has none.
type Place struct {
	Path   string // with slashes; it may begin with directories of another machine
	Line   int    // last line; 0 for one line
	End    int    // the last line; 0 for one line
	Column int
	Name   string // function of a frame, as in the text; "" for none

	Form string // its name in forms
	at   int    // offset in the text
}

// Meaning is what Read found in a text. Each list is in the order of the text.
type Meaning struct {
	Places    []Place
	Addresses []Address
	Commits   []string // hashes or prefixes of hashes, in lower case
	Names     []Name
	Globs     []string
	Change    string // number of a change or an issue, as #12, if the text is only that; else ""
}

// Trace reports whether the text has a call stack: two frames with files, or frames without files
// and no other place.
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

// Empty reports whether Read found nothing.
func (m *Meaning) Empty() bool {
	return len(m.Places) == 0 && len(m.Addresses) == 0 && len(m.Commits) == 0 && len(m.Names) == 0 && len(m.Globs) == 0 && m.Change == ""
}

// Read parses a text. Line breaks do not matter, because a search box drops them.
func Read(text string) *Meaning {
	text = strings.ToValidUTF8(text[:min(len(text), MaxText)], "\ufffd")
	text = strings.ReplaceAll(text, "\u00a0", " ")
	r := &reader{text: text, used: make([]bool, len(text))}
	m := &Meaning{}

	// Addresses come first, because their parts look like paths, commits and names.
	m.Addresses = append(r.findAddresses(), r.moduleAddress()...)
	m.Places = r.findPlaces()
	m.Globs = r.findGlobs()
	m.Names = r.findNames()
	m.Commits = r.findCommits()
	if number := change.FindStringSubmatch(r.text); number != nil {
		m.Change = number[1]
	}

	// Try paths without a line last, because words of a sentence look like them.
	if len(m.Places) == 0 {
		m.Places = r.barePaths()
	}
	return m
}

// reader parses one text. Each byte belongs to at most one form.
type reader struct {
	text string
	used []bool // by byte
}

// claimRange marks a range as parsed. It returns false if a form already claimed part of it.
func (r *reader) claimRange(from, to int) bool {
	if slices.Contains(r.used[from:to], true) {
		return false
	}
	for i := from; i < to; i++ {
		r.used[i] = true
	}
	return true
}

// findPlaces returns the places of all forms.
func (r *reader) findPlaces() []Place {
	var out []Place
	for _, name := range formOrder {
		f := forms[name]
		for _, m := range f.expr.FindAllStringSubmatchIndex(r.text, MaxPlaces) {
			p := f.readPlace(r.text, m)
			p.Form, p.at = name, m[0]
			if p.Path != "" && r.claimRange(m[0], m[1]) {
				out = append(out, p)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Place) int { return a.at - b.at })
	return out[:min(len(out), MaxPlaces)]
}

// readPlace reads path, line and column from a match of the form's expression.
func (f *form) readPlace(text string, match []int) Place {
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

// cleanPath returns a path with slashes only, without a scheme and other prefixes.
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
			// The directory above an unknown one is unknown too: drop it.
			parts = parts[:max(0, len(parts)-1)]
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}
