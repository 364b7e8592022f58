package paths

import (
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/match"
)

// IsGlob reports whether a text is a valid glob. Another text may still be the name of a file.
func IsGlob(text string) bool { return glob.Check(text) == nil }

// globExpr returns the expression for the paths that a glob matches.
func globExpr(text string) (string, error) {
	expr, err := glob.Expr(text)
	switch {
	case err != nil:
		return "", call.Fail(call.ErrInvalid, "%v", err)
	case len(expr) > match.MaxPattern:
		return "", tooLong("glob")
	}
	return expr, nil
}

// tooLong returns the error for an expression that is longer than the index accepts.
func tooLong(what string) error {
	return call.Fail(call.ErrInvalid, "the %s is too long with its ranges and stars written out: %d bytes at most", what, match.MaxPattern)
}

// signs are the characters that may give a text another meaning than itself.
const signs = `*?[{(\`

// inverse removes the ! marks in front of a glob, and reports whether they negate it.
func inverse(glob string) (rest string, not bool) {
	for strings.HasPrefix(glob, "!") && !strings.HasPrefix(glob, "!(") {
		glob, not = glob[1:], !not
	}
	return glob, not
}

// globsOf returns the globs in a text with commas between them. The text itself may be the name of
// a file.
func globsOf(text string) []string {
	globs := glob.Split(text)
	if len(globs) < 2 {
		return []string{text}
	}
	globs = slices.DeleteFunc(globs, func(g string) bool { return g == "" })
	if !strings.ContainsAny(text, "*?!") {
		globs = append(globs, text)
	}
	return globs
}
