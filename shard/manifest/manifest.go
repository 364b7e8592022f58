package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Use is one library that a file names.
type Use struct {
	Name    string
	Version string // as it is written; "" if the file has none
	Kind    string // "" for a library that the program needs when it runs
	Line    int    // from 1
}

// The kinds of uses that the formats share. A file may have others, such as a scope of Maven.
const (
	Dev    = "dev"
	Peer   = "peer"
	Locked = "locked" // of a lock file: the chosen version
)

// maxDepth is how deeply brackets may be nested: the parsers are recursive.
const maxDepth = 500

// Known reports whether the name of a file is that of a format.
func Known(path string) bool { return formatOf(path) != nil }

// Read lists the uses in a file by line. The path decides its format, which must be known.
func Read(path string, text []byte) (uses []Use, err error) {
	// Anybody may write these files. If one makes a parser panic, the caller must still be able to
	// read the others.
	defer func() {
		if p := recover(); p != nil {
			uses, err = nil, fmt.Errorf("it cannot be parsed: %v", p)
		}
	}()
	if bracketDepth(text) > maxDepth {
		return nil, fmt.Errorf("its brackets are nested more than %d deep", maxDepth)
	}

	f := formatOf(path)
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if uses, err = f.read(text); err != nil {
		return nil, err
	}
	for i := range uses {
		uses[i].Name, uses[i].Version = strings.TrimSpace(uses[i].Name), strings.TrimSpace(uses[i].Version)
	}
	uses = slices.DeleteFunc(uses, func(u Use) bool { return u.Name == "" })
	slices.SortStableFunc(uses, func(a, b Use) int { return cmp.Compare(a.Line, b.Line) })
	return slices.Compact(uses), nil
}

// bracketDepth returns the largest nesting depth of brackets in a text.
func bracketDepth(text []byte) (largest int) {
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
			largest = max(largest, depth)
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return largest
}

// Paths matches the paths of all manifests and lock files.
var Paths = func() string {
	all := make([]string, len(formats))
	for i := range formats {
		all[i] = formats[i].files
	}
	return pathExpr(strings.Join(all, "|"))
}()

// pathExpr matches paths whose last parts match an expression.
func pathExpr(files string) string { return `(?:^|/)(?:` + files + `)$` }

// formatOf returns the format of a file; nil if it has none.
func formatOf(path string) *format {
	i := slices.IndexFunc(formats, func(f format) bool { return f.path.MatchString(path) })
	if i < 0 {
		return nil
	}
	return &formats[i]
}

// Mention returns an expression that matches all ways in which files may write the name of a
// library. Dashes, dots and underscores are the same in Python, and Maven names are written in two
// parts.
func Mention(name string) string {
	expr := separators.ReplaceAllString(regexp.QuoteMeta(strings.Trim(name, "/:")), `[-_.]`)
	expr = notInNames.ReplaceAllString(expr, ".")
	// The two parts of a Maven name are on separate lines: search for the second.
	if _, artifact, ok := strings.Cut(expr, ":"); ok {
		expr = artifact
	}
	return `(?i)` + expr
}

var (
	separators = regexp.MustCompile(`\\\.|[-_]`)
	notInNames = regexp.MustCompile(`["\s]`)
)

// Match says how well an asked name fits the name of a library.
type Match int

// The values of Match. Part means that the asked name is the first or last part of the name,
// such as acme of acme/store.
const (
	None Match = iota
	Part
	Exact
)

// Fits compares the name that a user asks about with a name in a file.
func Fits(asked, name string) Match {
	asked, name = normalizeName(asked), normalizeName(name)
	switch {
	case asked == name, majorVersion.ReplaceAllString(name, "") == asked:
		return Exact
	case strings.HasPrefix(name, asked+"/"), strings.HasSuffix(name, "/"+asked):
		return Part
	}
	return None
}

// majorVersion matches the major version at the end of the path of a Go module.
var majorVersion = regexp.MustCompile(`/v\d+$`)

// normalizeName returns the form of a name that Fits compares.
func normalizeName(name string) string {
	name = strings.Trim(strings.ToLower(name), "/:")
	return strings.NewReplacer("_", "-", ".", "-", ":", "/").Replace(name)
}
