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

// cutNegation removes the ! marks in front of a glob, and reports whether they negate it.
func cutNegation(glob string) (rest string, negated bool) {
	for strings.HasPrefix(glob, "!") && !strings.HasPrefix(glob, "!(") {
		glob, negated = glob[1:], !negated
	}
	return glob, negated
}

// globsOf returns the globs in a text with commas between them. A text without signs of globs is also
// a glob as a whole, because it may be the name of a file with commas.
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
