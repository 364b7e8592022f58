package config

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxDepth limits the nesting of values. The schema needs eight.
const maxDepth = 64

// Parse parses a configuration file: JSON with comments and trailing commas. An error always has
// the type Errors and lists all problems of the file. If the file is not JSON, it has one error,
// with the line and the column.
//
// A node without a configuration parses "{}". Empty input is an error, since a file that is just
// being written may be empty.
func Parse(data []byte) (*File, error) {
	root, errs := parseText(data)
	if errs != nil {
		return nil, errs
	}

	// Find duplicates and huge numbers in the parsed text: the tree loses duplicates, and
	// huge numbers would be slow to convert.
	tree, unfit := toPlain(root), findHugeNumbers(root)
	unfit = append(unfit, withNewPaths(validate(tree), unfit)...)
	errs = append(findDuplicates(root), unfit...)

	// Run the other checks on everything that fits the schema.
	rest := fittingPart(tree, unfit)
	if rest == nil {
		return nil, errs.normalized()
	}
	f, more := decode(rest)
	errs = append(errs, withNewPaths(append(more, f.check()...), errs)...)
	if len(errs) > 0 {
		return nil, errs.normalized()
	}

	f.hash = sha256.Sum256(data)
	f.addWarnings()
	return f, nil
}

// parseText parses the text. All its errors are about the file as a whole.
func parseText(data []byte) (*hujson.Value, Errors) {
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
		line := 1 + bytes.Count(data[:firstInvalidByte(data)], []byte("\n"))
		return nil, whole("Line %d is not UTF-8; save the file in that encoding.", line)
	}

	if line := lineNestedTooDeep(data); line > 0 {
		return nil, whole("Line %d: values are nested more than %d deep.", line, maxDepth)
	}

	v, err := hujson.Parse(data)
	if err != nil {
		// The parser needs a line break after a comment at the end of the file.
		if ended, again := hujson.Parse(append(data[:len(data):len(data)], '\n')); again == nil {
			return &ended, nil
		}
	}
	if err != nil {
		return nil, whole("The file is not JSON: %s.", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return &v, nil
}

// firstInvalidByte returns the offset of the first byte that is not UTF-8.
func firstInvalidByte(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// lineNestedTooDeep returns the line on which brackets nest deeper than maxDepth, or 0. It runs before the
// parser, which recurses for each level and could exhaust its stack.
func lineNestedTooDeep(data []byte) int {
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

		// Skip a string. It ends with its quote, or with the line.
		case '"':
			for i++; i < len(data) && data[i] != '"' && data[i] != '\n'; i++ {
				if data[i] == '\\' {
					i++
				}
			}

			if i < len(data) && data[i] == '\n' {
				line++
			}

		// Skip a comment. The parser reports one without an end.
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

// findDuplicates finds properties that an object has twice. JSON would silently take the last one.
func findDuplicates(root *hujson.Value) Errors {
	// Search the parsed text: a map would already have lost the first one.
	var errs Errors
	walkValues(root, "", func(path string, v *hujson.Value) {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return
		}

		seen := make(map[string]bool, len(obj.Members))
		for _, m := range obj.Members {
			name := literalText(m.Name)
			if seen[name] {
				errs = append(errs, Error{childPath(path, name), "It is given twice; remove one of the two."})
			}
			seen[name] = true
		}
	})
	return errs
}

// findHugeNumbers finds numbers that no setting needs and that are slow to compute with, as 1e999999.
func findHugeNumbers(root *hujson.Value) Errors {
	var errs Errors
	walkValues(root, "", func(path string, v *hujson.Value) {
		if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '0' && !isSaneNumber(l.String()) {
			errs = append(errs, Error{path, "The number is too large, too small or too long; write one that a setting can use."})
		}
	})
	return errs
}

// isSaneNumber reports whether a number is short and has an exponent below 100.
func isSaneNumber(number string) bool {
	// No setting needs forty digits. A three-digit exponent would use memory for that many digits.
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

// literalText returns a literal without its quotes, such as the name of a property.
func literalText(v hujson.Value) string {
	l, _ := v.Value.(hujson.Literal)
	return l.String()
}

// walkValues calls f for v and for everything in it, with the JSON path of each.
func walkValues(v *hujson.Value, path string, f func(path string, v *hujson.Value)) {
	f(path, v)
	switch n := v.Value.(type) {
	case *hujson.Object:
		for i := range n.Members {
			walkValues(&n.Members[i].Value, childPath(path, literalText(n.Members[i].Name)), f)
		}
	case *hujson.Array:
		for i := range n.Elements {
			walkValues(&n.Elements[i], item(path, i), f)
		}
	}
}
