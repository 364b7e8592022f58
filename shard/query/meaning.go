package query

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/glob"
)

// withCase sets for each pattern whether its letters fold.
func withCase(q Q, c Case) Q {
	// The query says it for all patterns, or each pattern decides for itself.
	fold := func(pattern string, regexp bool) bool {
		switch c {
		case CaseYes:
			return false
		case CaseNo:
			return true
		}
		return !hasCapital(pattern, regexp)
	}

	return Map(q, func(q Q) Q {
		switch n := q.(type) {
		case *Text:
			// Trees are immutable, so a copy gets the answer.
			t := *n
			t.Fold = fold(n.Pattern, n.Regexp)
			return &t
		case *Repo:
			return &Repo{Pattern: n.Pattern, Fold: fold(n.Pattern, true)}
		}
		return q
	})
}

// hasCapital reports whether a pattern has a capital letter. In an expression, letters of
// escapes (\S, \pL), flags and group names do not count.
func hasCapital(pattern string, regexp bool) bool {
	for i := 0; i < len(pattern); {
		if n := notText(pattern[i:]); regexp && n > 0 {
			i += n
			continue
		}

		r, n := utf8.DecodeRuneInString(pattern[i:])

		// A letter as ǅ is a capital to a reader.
		if unicode.IsUpper(r) || unicode.IsTitle(r) {
			return true
		}
		i += n
	}
	return false
}

// notText returns how many bytes at the beginning of an expression are an escape, flags or
// the name of a group.
func notText(rest string) int {
	// An escape: \p{Greek}, \x{263A}, \x41, \pL, else one letter.
	switch {
	case strings.HasPrefix(rest, `\p`), strings.HasPrefix(rest, `\P`), strings.HasPrefix(rest, `\x`):
		if strings.HasPrefix(rest[2:], "{") {
			if end := strings.IndexByte(rest, '}'); end > 0 {
				return end + 1
			}
		}

		// \x41 has two digits, \pL one letter.
		if rest[1] == 'x' {
			return 4
		}
		return 3
	case rest[0] == '\\':
		return 2

	// The name of a class, as [:alpha:].
	case strings.HasPrefix(rest, "[:"):
		if end := strings.Index(rest, ":]"); end > 0 {
			return end + 2
		}

	// Flags and names of groups, as (?i: and (?P<name>.
	case strings.HasPrefix(rest, "(?"):
		if end := strings.IndexAny(rest, ":)>"); end > 0 {
			return end + 1
		}
	}
	return 0
}

// headRev is searched by an arm without a Rev.
const headRev = "HEAD"

// withHead adds a Rev for HEAD to every arm that has none, as far up as possible. Arms that
// name their revisions keep them:
//
//	a                 a and HEAD
//	a or rev:x b      (a and HEAD) or (rev:x and b)
func withHead(q Q) Q {
	if !hasRev(q) {
		return &And{Subs: []Q{q, &Rev{Pattern: headRev}}}
	}

	switch n := q.(type) {
	// Each arm of an or counts on its own.
	case *Or:
		subs := make([]Q, len(n.Subs))
		for i, s := range n.Subs {
			subs[i] = withHead(s)
		}
		return &Or{Subs: subs}
	case *And:
		if slices.ContainsFunc(n.Subs, everyArmHasRev) {
			return q
		}

		subs := make([]Q, len(n.Subs))
		for i, s := range n.Subs {
			if hasRev(s) {
				s = withHead(s)
			}
			subs[i] = s
		}
		return &And{Subs: subs}
	}
	return q
}

// hasRev reports whether a tree has a Rev anywhere.
func hasRev(q Q) bool {
	switch n := q.(type) {
	case *And:
		return slices.ContainsFunc(n.Subs, hasRev)
	case *Or:
		return slices.ContainsFunc(n.Subs, hasRev)
	case *Not:
		return hasRev(n.Sub)
	case *Rev:
		return true
	}
	return false
}

// everyArmHasRev reports whether there is a Rev on every way to satisfy q.
func everyArmHasRev(q Q) bool {
	switch n := q.(type) {
	// What stands beside it is restricted, too: one arm of an and is enough.
	case *And:
		return slices.ContainsFunc(n.Subs, everyArmHasRev)
	case *Or:
		for _, s := range n.Subs {
			if !everyArmHasRev(s) {
				return false
			}
		}
		return len(n.Subs) > 0
	}
	return hasRev(q)
}

// minPrefix is the shortest prefix of a commit that counts as one.
const minPrefix = 4

// Matcher returns what reports whether the pattern names a revision, given its full name
// (refs/heads/main, or HEAD), its commit in hexadecimal, and whether it is what HEAD points
// to. A glob is compared with the short name, or with the full one where it has refs/ in it;
// * alone is every revision.
func (q *Rev) Matcher() func(name, commit string, head bool) bool {
	if q.Pattern == headRev {
		return func(name, _ string, head bool) bool { return head || name == headRev }
	}
	globs := glob.Globs{}
	if text, plain := glob.Start(q.Pattern); !plain || text != q.Pattern {
		globs, _ = glob.Compile(glob.Exact, q.Pattern) // the parser refuses a malformed one
	}
	whole := strings.Contains(q.Pattern, "refs/")
	return func(name, commit string, _ bool) bool {
		// Names go before commits: a branch may be called as a commit begins.
		short := ShortRev(name)
		if q.Pattern == "*" || q.Pattern == name || q.Pattern == short {
			return true
		}
		if !globs.Empty() {
			return whole && globs.Match(name) || !whole && globs.Match(short)
		}

		// So few digits would name commits by chance.
		return len(q.Pattern) >= minPrefix && len(q.Pattern) <= len(commit) &&
			strings.EqualFold(commit[:len(q.Pattern)], q.Pattern)
	}
}

// ShortRev returns the name of a ref without refs/heads/, refs/tags/ or
// refs/remotes/.
func ShortRev(name string) string {
	for _, dir := range [...]string{"refs/heads/", "refs/tags/", "refs/remotes/"} {
		if short, ok := strings.CutPrefix(name, dir); ok {
			return short
		}
	}
	return name
}

// literal returns the text that an expression is if it is nothing more. The replacement
// character stays an expression: there it also matches bytes that are not UTF-8.
func literal(expr string) (text string, ok bool) {
	re, err := syntax.Parse(expr, RegexpFlags)
	if err != nil {
		return "", false
	}

	// (?i)a is more than its text, whatever the query says of letters.
	switch {
	case re.Op == syntax.OpEmptyMatch:
		return "", true
	case re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0:
		text = string(re.Rune)
		return text, !strings.ContainsRune(text, utf8.RuneError)
	}
	return "", false
}
