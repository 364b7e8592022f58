package query

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/glob"
)

// withCase sets for each pattern whether it ignores case.
func withCase(q Q, c Case) Q {
	// Either the query decides for all patterns, or each pattern decides for itself.
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
			// Trees are immutable, so change a copy.
			t := *n
			t.Fold = fold(n.Pattern, n.Regexp)
			return &t
		case *Repo:
			return &Repo{Pattern: n.Pattern, Fold: fold(n.Pattern, true)}
		}
		return q
	})
}

// hasCapital reports whether a pattern has a capital letter. In an expression, letters of escapes
// (\S, \pL), flags and group names do not count.
func hasCapital(pattern string, regexp bool) bool {
	for i := 0; i < len(pattern); {
		if n := notText(pattern[i:]); regexp && n > 0 {
			i += n
			continue
		}

		r, n := utf8.DecodeRuneInString(pattern[i:])

		// A title-case letter such as ǅ also counts as a capital.
		if unicode.IsUpper(r) || unicode.IsTitle(r) {
			return true
		}
		i += n
	}
	return false
}

// notText returns how many bytes at the start of an expression are an escape, flags or a group
// name.
func notText(rest string) int {
	// An escape is \p{Greek}, \x{263A}, \x41, \pL, or one other letter.
	switch {
	case strings.HasPrefix(rest, `\p`), strings.HasPrefix(rest, `\P`), strings.HasPrefix(rest, `\x`):
		if strings.HasPrefix(rest[2:], "{") {
			if end := strings.IndexByte(rest, '}'); end > 0 {
				return end + 1
			}
		}

		// \x41 has two digits, \pL has one letter.
		if rest[1] == 'x' {
			return 4
		}
		return 3
	case rest[0] == '\\':
		return 2

	// This is the name of a class, such as [:alpha:].
	case strings.HasPrefix(rest, "[:"):
		if end := strings.Index(rest, ":]"); end > 0 {
			return end + 2
		}

	// These are flags and group names, such as (?i: and (?P<name>.
	case strings.HasPrefix(rest, "(?"):
		if end := strings.IndexAny(rest, ":)>"); end > 0 {
			return end + 1
		}
	}
	return 0
}

// headRev is the revision that is searched if the query names none.
const headRev = "HEAD"

// withHead adds a Rev for HEAD to every branch of the tree without a Rev, as far up as possible.
// Branches that name their revisions keep them:
//
//	a                 a and HEAD
//	a or rev:x b      (a and HEAD) or (rev:x and b)
func withHead(q Q) Q {
	if !hasRev(q) {
		return &And{Subs: []Q{q, &Rev{Pattern: headRev}}}
	}

	switch n := q.(type) {
	// Each member of an Or counts on its own.
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

// everyArmHasRev reports whether every way to satisfy q includes a Rev.
func everyArmHasRev(q Q) bool {
	switch n := q.(type) {
	// One member of an And is enough, because it restricts the other members too.
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

// minPrefix is the length of the shortest accepted prefix of a commit.
const minPrefix = 4

// Matcher returns a function that reports whether the pattern names a revision. The function gets
// the full name of the revision (refs/heads/main, or HEAD), its commit in hexadecimal, and whether
// HEAD points to it. A glob is compared with the short name, or with the full one if the glob
// contains refs/. * alone matches every revision.
func (q *Rev) Matcher() func(name, commit string, head bool) bool {
	if q.Pattern == headRev {
		return func(name, _ string, head bool) bool { return head || name == headRev }
	}
	globs := glob.Globs{}
	if text, plain := glob.Start(q.Pattern); !plain || text != q.Pattern {
		globs, _ = glob.Compile(glob.Exact, q.Pattern) // the parser refuses a malformed glob
	}
	whole := strings.Contains(q.Pattern, "refs/")
	return func(name, commit string, _ bool) bool {
		// Compare names before commits: the name of a branch may look like the start of a commit.
		short := ShortRev(name)
		if q.Pattern == "*" || q.Pattern == name || q.Pattern == short {
			return true
		}
		if !globs.Empty() {
			return whole && globs.Match(name) || !whole && globs.Match(short)
		}

		// Fewer digits would match commits by chance.
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

// literal returns the text of an expression that is only a literal. An expression with the
// replacement character stays an expression, because it also matches bytes that are not UTF-8.
func literal(expr string) (text string, ok bool) {
	re, err := syntax.Parse(expr, RegexpFlags)
	if err != nil {
		return "", false
	}

	// (?i)a is more than its text, whatever case the query has.
	switch {
	case re.Op == syntax.OpEmptyMatch:
		return "", true
	case re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0:
		text = string(re.Rune)
		return text, !strings.ContainsRune(text, utf8.RuneError)
	}
	return "", false
}
