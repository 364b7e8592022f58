package query

import (
	"cmp"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	enry "github.com/go-enry/go-enry/v2"
	"github.com/go-enry/go-enry/v2/data"

	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/shard/manifest"
)

// RegexpFlags are the flags for every regular expression of a query: RE2 syntax with the classes of
// Perl and Unicode. ^ and $ match at lines, and a dot matches no newline.
const RegexpFlags = syntax.Perl &^ syntax.OneLine

// MaxRegexpSize is the greatest size of a regular expression: its number of nodes, with counted
// repetitions written out.
const MaxRegexpSize = 10_000

// SkippedLang is the language of files that are kept by name only.
const SkippedLang = "skipped"

// maxTimeout is the greatest value of timeout:.
const maxTimeout = time.Hour

// textAtom makes a Text from a word or a quoted text.
func (p *parser) textAtom(value string, at int, quoted bool) (*Text, error) {
	if err := p.countAtom(at); err != nil {
		return nil, err
	}

	if !p.regexp {
		if quoted {
			value = unquote(value)
		}
		return &Text{Pattern: value, WordBegins: p.words, WordEnds: p.words}, nil
	}

	if quoted { // the expression begins after the quote
		at++
	}
	if err := checkRegexp(value, at); err != nil {
		return nil, err
	}
	return &Text{Pattern: value, Regexp: true, WordBegins: p.words, WordEnds: p.words}, nil
}

// countAtom counts an atom, and returns an error if there are too many.
func (p *parser) countAtom(at int) error {
	if p.atoms++; p.atoms > MaxAtoms {
		return fail(at, "at most %d texts and filters in a query", MaxAtoms)
	}
	return nil
}

// readFilter reads the value of a filter whose name the parser has read already, and returns the
// atom of the filter. A filter about the whole query sets a field of the query and has no atom.
func (p *parser) readFilter(name prefix, end int) (Q, error) {
	at := p.pos
	if at >= end || isSpace(p.text[at]) {
		return nil, fail(at, "a value right after %s (to search for that text, put it in quotes)", name)
	}

	// The value ends at the next blank, or at the closing quote.
	value, quoted := p.readValue(end)
	p.addToken(ValueToken, at, p.pos)
	if value == "" {
		return nil, fail(at, "a value that is not empty after %s", name)
	}

	// Some filters search for their value as a text or an expression.
	switch name {
	case contentPrefix, addedPrefix, removedPrefix, messagePrefix:
		t, err := p.textAtom(value, at, quoted)
		if err != nil {
			return nil, err
		}
		t.Field = textFields[name]
		return t, nil
	case filePrefix, symPrefix, repoPrefix, authorPrefix, committerPrefix:
		if quoted {
			at++
		} else if name == repoPrefix {
			p.addRevisionHint(value, at)
		}
		return p.patternAtom(name, value, at)
	}

	// The values of all other filters are words, not patterns.
	if quoted {
		value = unquote(value)
	}
	if err := name.row().checkValue(value, at); err != nil {
		return nil, err
	}
	if name.isDirective() {
		return nil, p.applyDirective(name, value, at)
	}

	if err := p.countAtom(at); err != nil {
		return nil, err
	}
	return wordAtom(name, value, at)
}

// patternAtom makes the atom of a filter whose value is a regular expression.
func (p *parser) patternAtom(name prefix, value string, at int) (Q, error) {
	if err := p.countAtom(at); err != nil {
		return nil, err
	}

	if err := checkRegexp(value, at); err != nil {
		return nil, err
	}

	if name == repoPrefix {
		return &Repo{Pattern: value}, nil
	}
	return &Text{Pattern: value, Regexp: true, Field: textFields[name]}, nil
}

// textFields are the fields that filters search by a text or an expression.
var textFields = map[prefix]Field{
	contentPrefix: Content, filePrefix: Name, symPrefix: Symbol,
	addedPrefix: Added, removedPrefix: Removed, messagePrefix: Message, authorPrefix: Author, committerPrefix: Committer,
}

// wordAtom makes the atom of a filter whose value is a plain word.
func wordAtom(name prefix, value string, at int) (Q, error) {
	switch name {
	case revPrefix:
		if err := glob.Check(value); err != nil {
			return nil, fail(at, "a branch, a tag, a commit or a glob after rev:; this glob is malformed: %v", err)
		}
		return &Rev{Pattern: value}, nil
	case langPrefix:
		lang, ok := Language(value)
		if !ok {
			return nil, fail(at, "the name of a language after lang:, as %s (%q is none; lang:%s finds the files kept by name only)", suggestLanguages(value), clip(value), SkippedLang)
		}
		return &Lang{Name: lang}, nil

	// Files that may name a library, and that contain its name as a whole word.
	case depPrefix:
		name := `(?:^|[^\w-])(?:` + manifest.Mention(value) + `)(?:[^\w-]|$)`
		return &And{Subs: []Q{&Text{Pattern: manifest.Paths, Regexp: true, Field: Name}, &Text{Pattern: name, Regexp: true}}}, nil

	// Conditions on repositories.
	case contextPrefix:
		return &Context{Name: value}, nil
	case repoSetPrefix:
		var names []string
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}

		if len(names) == 0 {
			return nil, fail(at, "names of repositories with commas between after reposet:")
		}
		return &RepoSet{Names: names}, nil
	case archivedPrefix:
		return &Flag{Kind: Archived, Value: value}, nil
	case forkPrefix:
		return &Flag{Kind: Fork, Value: value}, nil
	case visibilityPrefix:
		return &Flag{Kind: Visibility, Value: value}, nil

	// Conditions on commits.
	case mergePrefix:
		return &Merge{Value: value}, nil
	case sincePrefix, untilPrefix:
		first, last, ok := parseDate(value)
		if !ok {
			return nil, fail(at, "a date after %s, as 2026-01-31, 2026-01 or 2026-01-31T12:00Z", name)
		}
		if name == sincePrefix {
			return &Dates{Since: first}, nil
		}
		return &Dates{Until: last}, nil
	}
	panic("BUG: no atom for " + name.String())
}

// Language returns go-enry's name of a language, given its name or an alias in any case; false if
// there is none.
func Language(value string) (string, bool) {
	if strings.EqualFold(value, SkippedLang) {
		return SkippedLang, true
	}

	if strings.Contains(value, ",") { // go-enry would ignore the text after the comma
		return "", false
	}

	for _, name := range []string{value, strings.ReplaceAll(value, " ", "-")} {
		if lang, ok := enry.GetLanguageByAlias(name); ok {
			return lang, true
		}
	}

	// The value may be a file extension, such as jsx, that only one language has.
	if l := enry.GetLanguagesByExtension("x."+strings.TrimPrefix(value, "."), nil, nil); len(l) == 1 && !strings.Contains(value, "/") {
		return l[0], true
	}
	return "", false
}

// suggestLanguages returns up to three languages that begin with an unknown name, or examples if
// there are none.
func suggestLanguages(value string) string {
	var matching []string
	for name := range data.ExtensionsByLanguage { // a map whose keys are the names of all languages
		if len(value) > 1 && len(name) >= len(value) && strings.EqualFold(name[:len(value)], value) {
			matching = append(matching, strconv.Quote(name))
		}
	}
	if len(matching) == 0 {
		return `Go, C++, python or "Emacs Lisp"`
	}
	slices.Sort(matching)
	return strings.Join(matching[:min(len(matching), 3)], " or ")
}

// applyDirective sets a field of the query from a filter that is about the whole query. If such a
// filter occurs several times, the last one wins.
func (p *parser) applyDirective(name prefix, value string, at int) error {
	switch name {
	case casePrefix:
		p.out.Case = map[string]Case{"yes": CaseYes, "no": CaseNo, "auto": CaseAuto}[value]

	case typePrefix:
		p.out.Type = map[string]Type{"file": FileType, "repo": RepoType, "commit": CommitType, "diff": DiffType}[value]

	case countPrefix:
		if value == "all" {
			p.out.Count = CountAll
			return nil
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > MaxCount {
			return fail(at, "a number from 1 to %d, or all, after count:", MaxCount)
		}
		p.out.Count = n

	case timeoutPrefix:
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 || d > maxTimeout {
			return fail(at, "a duration up to 1h with its unit after timeout:, as 500ms or 10s")
		}
		p.out.Timeout = d

	case atPrefix:
		_, date, ok := parseDate(value)
		if !ok {
			return fail(at, "a date after at:, as 2026-01-31, 2026-01 or 2026-01-31T12:00Z")
		}
		p.out.At = date

	default:
		panic(fmt.Sprintf("BUG: directive %d has no case", name))
	}
	return nil
}

// checkRegexp returns an error for a bad regular expression that begins at offset at of the query.
func checkRegexp(expr string, at int) error {
	re, err := syntax.Parse(expr, RegexpFlags)
	if err == nil {
		if regexpSize(re) > MaxRegexpSize {
			return fail(at, "a smaller regular expression; its repetitions multiply to more than %d parts", MaxRegexpSize).withLength(len(expr))
		}
		return nil
	}

	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return fail(at, "a regular expression in RE2 syntax: %v", err)
	}

	if bad.Code == syntax.ErrLarge || bad.Code == syntax.ErrNestingDepth {
		return fail(at, "a smaller regular expression: %s", bad.Code).withLength(len(expr))
	}

	// Let the error point at the wrong part of the expression.
	if i := strings.Index(expr, bad.Expr); i > 0 {
		at += i
	}
	return fail(at, "a regular expression in RE2 syntax: %s: %q", bad.Code, clip(bad.Expr)).withLength(cmp.Or(len(bad.Expr), len(expr)))
}

// regexpSize returns the number of nodes of re with its repetitions written out, or a number above
// MaxRegexpSize if there are more.
func regexpSize(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}

	// Stop at the limit: multiplying a larger number could overflow.
	for _, sub := range re.Sub {
		if n += regexpSize(sub); n > MaxRegexpSize {
			return n
		}
	}

	// Without an upper bound, Max is -1 and Min+1 copies are written out.
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, re.Min+1)
	}
	return min(n, MaxRegexpSize+1)
}

// clip shortens a part of a query for a message, without cutting a rune.
func clip(s string) string {
	const maxBytes = 60
	if len(s) <= maxBytes {
		return s
	}

	cut := maxBytes
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "..."
}
