package query

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/glob"
)

// setCase returns a tree in which Fold is set for each pattern that ignores case.
func setCase(q Q, c Case) Q {
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
		if n := nonTextLength(pattern[i:]); regexp && n > 0 {
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

// nonTextLength returns how many bytes at the start of an expression are an escape, the name of a
// class, flags, or the name of a group; 0 if it begins with text.
func nonTextLength(rest string) int {
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

	// The name of a class is such as [:alpha:].
	case strings.HasPrefix(rest, "[:"):
		if end := strings.Index(rest, ":]"); end > 0 {
			return end + 2
		}

	// Flags and group names are such as (?i: and (?P<name>.
	case strings.HasPrefix(rest, "(?"):
		if end := strings.IndexAny(rest, ":)>"); end > 0 {
			return end + 1
		}
	}
	return 0
}

// headRev is the revision that is searched if the query names none.
const headRev = "HEAD"

// addHeadRev adds a Rev for HEAD to every part of the tree that has no Rev, as far up as possible:
//
//	a                 a and HEAD
//	a or rev:x b      (a and HEAD) or (rev:x and b)
func addHeadRev(q Q) Q {
	if !hasRev(q) {
		return &And{Subs: []Q{q, &Rev{Pattern: headRev}}}
	}

	switch n := q.(type) {
	case *Or:
		subs := make([]Q, len(n.Subs))
		for i, s := range n.Subs {
			subs[i] = addHeadRev(s)
		}
		return &Or{Subs: subs}
	case *And:
		if slices.ContainsFunc(n.Subs, needsRev) { // the Rev of that member restricts all members
			return q
		}

		subs := make([]Q, len(n.Subs))
		for i, s := range n.Subs {
			if hasRev(s) {
				s = addHeadRev(s)
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

// needsRev reports whether every way to make q true includes a Rev.
func needsRev(q Q) bool {
	switch n := q.(type) {
	case *And:
		return slices.ContainsFunc(n.Subs, needsRev)
	case *Or:
		for _, s := range n.Subs {
			if !needsRev(s) {
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
	full := strings.Contains(q.Pattern, "refs/") // the pattern is for full names
	return func(name, commit string, _ bool) bool {
		// Compare names before commits: the name of a branch may look like the start of a commit.
		short := ShortRev(name)
		if q.Pattern == "*" || q.Pattern == name || q.Pattern == short {
			return true
		}
		if !globs.Empty() {
			return full && globs.Match(name) || !full && globs.Match(short)
		}

		// Fewer digits would match commits by chance.
		return len(q.Pattern) >= minPrefix && len(q.Pattern) <= len(commit) &&
			strings.EqualFold(commit[:len(q.Pattern)], q.Pattern)
	}
}

// ShortRev returns the name of a ref without refs/heads/, refs/tags/ or refs/remotes/.
func ShortRev(name string) string {
	for _, dir := range [...]string{"refs/heads/", "refs/tags/", "refs/remotes/"} {
		if short, ok := strings.CutPrefix(name, dir); ok {
			return short
		}
	}
	return name
}

// asLiteral returns the text of an expression that matches only one text; ok is false for any other
// expression. An expression with U+FFFD is such another one, because it also matches bytes that are
// not UTF-8.
func asLiteral(expr string) (text string, ok bool) {
	re, err := syntax.Parse(expr, RegexpFlags)
	if err != nil {
		return "", false
	}

	switch {
	case re.Op == syntax.OpEmptyMatch:
		return "", true
	case re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0: // not (?i)a
		text = string(re.Rune)
		return text, !strings.ContainsRune(text, utf8.RuneError)
	}
	return "", false
}
