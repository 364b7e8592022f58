package config

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxDepth bounds how deep values are nested. The schema needs eight.
const maxDepth = 64

// Parse reads a configuration file: JSON, where comments and trailing commas
// are allowed. An error is always of type Errors and lists everything that is
// wrong with the file, as far as it can be read; a file that is not JSON has
// one error, with the line and the column.
//
// Nodes on which nothing is configured parse "{}". Empty input is an error,
// because a file that is just being written looks like that.
func Parse(data []byte) (*File, error) {
	root, errs := read(data)
	if errs != nil {
		return nil, errs
	}

	// The checks below see a map, in which only one of two twins is left, and no
	// number that takes long to work with.
	tree, unfit := plain(root), numbers(root)
	unfit = append(unfit, unsaid(validate(tree), unfit)...)
	errs = append(duplicates(root), unfit...)

	// What a schema cannot say is checked of all that fits it.
	rest := fitting(tree, unfit)
	if rest == nil {
		return nil, errs.sorted()
	}
	f, more := decode(rest)
	errs = append(errs, unsaid(append(more, f.check()...), errs)...)
	if len(errs) > 0 {
		return nil, errs.sorted()
	}

	f.hash = sha256.Sum256(data)
	f.warn()
	return f, nil
}

// read parses the text. All that it refuses is about the file as a whole.
func read(data []byte) (*hujson.Value, Errors) {
	whole := func(format string, args ...any) Errors {
		return Errors{{Message: fmt.Sprintf(format, args...)}}
	}

	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > MaxSize:
		return nil, whole("The file has %d bytes; at most %d are allowed.", len(data), MaxSize)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, whole("The file is empty; write {} for a configuration without anything.")
	case !utf8.Valid(data):
		line := 1 + bytes.Count(data[:invalidAt(data)], []byte("\n"))
		return nil, whole("Line %d is not UTF-8; save the file in that encoding.", line)
	}

	if line := tooDeep(data); line > 0 {
		return nil, whole("Line %d: values are nested more than %d deep.", line, maxDepth)
	}

	v, err := hujson.Parse(data)
	if err != nil {
		// A comment may end the file: the parser wants a line break after it.
		if ended, again := hujson.Parse(append(data[:len(data):len(data)], '\n')); again == nil {
			return &ended, nil
		}
	}
	if err != nil {
		return nil, whole("The file is not JSON: %s.", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return &v, nil
}

// invalidAt is the offset of the first byte that is not UTF-8.
func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// tooDeep returns the line on which brackets nest deeper than maxDepth, or 0.
// It runs before the parser, which recurses once for each level and could
// exhaust its stack.
func tooDeep(data []byte) int {
	line, depth := 1, 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '\n':
			line++
		case '{', '[':
			if depth++; depth > maxDepth {
				return line
			}
		case '}', ']':
			depth--

		// A string ends with its quote, or unfinished with the line.
		case '"':
			for i++; i < len(data) && data[i] != '"' && data[i] != '\n'; i++ {
				if data[i] == '\\' {
					i++
				}
			}

			if i < len(data) && data[i] == '\n' {
				line++
			}

		// A comment; one without an end is for the parser to report.
		case '/':
			end := 0
			switch rest := data[i:]; {
			case bytes.HasPrefix(rest, []byte("//")):
				end = bytes.IndexByte(rest, '\n')
			case bytes.HasPrefix(rest, []byte("/*")):
				end = bytes.Index(rest, []byte("*/"))
			}

			if end < 0 {
				return 0
			}
			if end > 0 {
				line += bytes.Count(data[i:i+end+1], []byte("\n"))
				i += end
			}
		}
	}
	return 0
}

// duplicates finds properties that stand twice in one object. JSON would take
// the last one and say nothing.
func duplicates(root *hujson.Value) Errors {
	// Looked for in the parsed text: the map that the checks see has lost the first one.
	var errs Errors
	walk(root, "", func(path string, v *hujson.Value) {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return
		}

		seen := make(map[string]bool, len(obj.Members))
		for _, m := range obj.Members {
			name := text(m.Name)
			if seen[name] {
				errs = append(errs, Error{child(path, name), "It is given twice; remove one of the two."})
			}
			seen[name] = true
		}
	})
	return errs
}

// numbers finds numbers that no setting can need and that would take long to
// work with, as 1e999999.
func numbers(root *hujson.Value) Errors {
	var errs Errors
	walk(root, "", func(path string, v *hujson.Value) {
		if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '0' && !sane(l.String()) {
			errs = append(errs, Error{path, "The number is too large, too small or too long; write one that a setting can use."})
		}
	})
	return errs
}

// sane reports whether a number is short and has an exponent below 100.
func sane(number string) bool {
	// Forty digits are more than any setting takes; an exponent of three would take memory for
	// as many digits as it says.
	if len(number) > 40 {
		return false
	}
	_, exp, ok := strings.Cut(strings.ToLower(number), "e")
	if !ok {
		return true
	}
	exp = strings.TrimLeft(strings.TrimLeft(exp, "+-"), "0")
	return len(exp) <= 2
}

// text is the name of a property, or another literal, without its quotes.
func text(v hujson.Value) string {
	l, _ := v.Value.(hujson.Literal)
	return l.String()
}

// walk calls f for v and for everything in it, with the JSON path of each.
func walk(v *hujson.Value, path string, f func(path string, v *hujson.Value)) {
	f(path, v)
	switch n := v.Value.(type) {
	case *hujson.Object:
		for i := range n.Members {
			walk(&n.Members[i].Value, child(path, text(n.Members[i].Name)), f)
		}
	case *hujson.Array:
		for i := range n.Elements {
			walk(&n.Elements[i], item(path, i), f)
		}
	}
}
