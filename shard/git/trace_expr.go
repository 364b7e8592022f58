package git

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxGitExpr is the greatest length in bytes of an expression for git, with repetitions written
// out. Git's library fails silently if an expression takes too much memory.
const maxGitExpr = 16 << 10

// gitExpr converts an expression of RE2 to an extended regular expression of POSIX, which git
// matches byte by byte. It replaces a letter that is not ASCII with the bytes of its UTF-8 form. It
// allows a CR before the end of a line.
//
//	(?i)ge\d+?$   (G|g)(E|e)([0-9])+CR?$
//	[^x]          ([\xC2-\xDF][\x80-\xBF]|...|[^x\x80-\xFF])
//
// The result matches at least what expr matches. If exact is false it matches a few more lines: in
// them one letter that is not ASCII counts as two or more.
func gitExpr(expr string) (posix string, exact bool, err error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return "", false, fmt.Errorf("%w: %w", ErrBadFilter, err)
	}
	w := &posixWriter{lineEnd: "\r?$", times: 1}
	if ok, _ := regexp.MatchString(expr, ""); ok {
		// Git sees an empty line after the end of a changed line, so match the line end itself.
		w.lineEnd = "\r?\n"
	}
	w.writeExpr(parsed)
	switch {
	case w.size > maxGitExpr:
		return "", false, fmt.Errorf("the expression takes git more than %d bytes with its repetitions written out: %w", maxGitExpr, ErrBadFilter)
	case w.outside:
		return "", false, fmt.Errorf("no changed line has a line break or a NUL in it: %w", ErrBadFilter)
	}
	return w.String(), !w.loose, nil
}

// maxForms is the greatest number of byte sequences in a class. A class with more matches all
// letters that are not ASCII.
const maxForms = 64

// posixWriter writes an expression in the syntax of POSIX.
type posixWriter struct {
	strings.Builder
	lineEnd string
	times   int  // how often the repetitions around the current part repeat it
	size    int  // bytes, with repetitions written out
	outside bool // the expression contains a letter that no line contains
	loose   bool // the result also matches lines that the expression does not match
}

// writeText writes a text, and counts its bytes as often as the current part is repeated.
func (w *posixWriter) writeText(s string) {
	w.WriteString(s)
	w.size += w.times * len(s)
}

// noMatch is an expression that matches nothing.
const noMatch = "a^"

// writeExpr writes a parsed expression. It stops once the result is too long.
func (w *posixWriter) writeExpr(re *syntax.Regexp) {
	if w.size > maxGitExpr {
		return
	}
	switch re.Op {
	case syntax.OpNoMatch:
		w.writeText(noMatch)
	case syntax.OpEmptyMatch:
		w.writeText("()")
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			w.outside = w.outside || r == 0 || r == '\n'
			w.writeLetter(r, re.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		w.writeClass(re.Rune)
	case syntax.OpAnyCharNotNL, syntax.OpAnyChar:
		w.writeClass([]rune{0, unicode.MaxRune})
	case syntax.OpBeginLine, syntax.OpBeginText:
		w.writeText("^")
	case syntax.OpEndLine, syntax.OpEndText:
		w.writeText(w.lineEnd)
	case syntax.OpWordBoundary:
		w.writeText(`\b`)
	case syntax.OpNoWordBoundary:
		w.writeText(`\B`)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			w.writeExpr(sub)
		}
	case syntax.OpAlternate:
		w.writeGroup(re.Sub, "|")
	default:
		w.writeRepeat(re)
	}
}

// writeRepeat writes a group, or a repeated expression as a group with its repetition. Whether the
// repetition is greedy makes no difference to whether a line matches.
func (w *posixWriter) writeRepeat(re *syntax.Regexp) {
	// Any number of letters is any number of bytes, so .* needs no class. For .{0,30} allow 120
	// bytes, which is nearly the same.
	sub, bytesOf := re.Sub[0].Op, 1
	if anyLetter := sub == syntax.OpAnyCharNotNL || sub == syntax.OpAnyChar; anyLetter && re.Op != syntax.OpQuest && (re.Op != syntax.OpRepeat || re.Max > 20) {
		bytesOf = utf8.UTFMax
		w.loose = w.loose || re.Op == syntax.OpRepeat && (re.Min > 1 || re.Max > 0)
		w.writeText("[^\n]")
	} else {
		times := w.times
		w.times *= max(1, re.Max, re.Min)
		w.writeGroup(re.Sub, "")
		w.times = times
	}
	switch re.Op {
	case syntax.OpStar:
		w.writeText("*")
	case syntax.OpPlus:
		w.writeText("+")
	case syntax.OpQuest:
		w.writeText("?")
	case syntax.OpRepeat:
		limit := ""
		if re.Max >= 0 {
			limit = fmt.Sprint(re.Max * bytesOf)
		}
		w.writeText(fmt.Sprintf("{%d,%s}", re.Min, limit))
	}
}

// writeGroup writes expressions in parentheses, with a separator between two of them.
func (w *posixWriter) writeGroup(subs []*syntax.Regexp, separator string) {
	w.writeText("(")
	for i, sub := range subs {
		if i > 0 {
			w.writeText(separator)
		}
		w.writeExpr(sub)
	}
	w.writeText(")")
}

// writeLetter writes a letter, or all letters that differ from it only in case.
func (w *posixWriter) writeLetter(r rune, fold bool) {
	if r == utf8.RuneError { // any byte outside of a letter matches it too
		w.writeClass([]rune{r, r})
		return
	}
	if next := unicode.SimpleFold(r); !fold || next == r {
		w.writeText(quoteExtended(string(r)))
		return
	}
	w.writeText("(")
	w.writeText(quoteExtended(string(r)))
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		w.writeText("|" + quoteExtended(string(next)))
	}
	w.writeText(")")
}

// quoteExtended returns an extended regular expression that matches exactly s.
func quoteExtended(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`\.[]{}()*+?^$|`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// writeClass writes an expression for one letter in any of some ranges, given as pairs of first and
// last letter. forms are the alternatives of it.
func (w *posixWriter) writeClass(ranges []rune) {
	var ascii [utf8.RuneSelf]bool
	var forms []string
	for i := 0; i+1 < len(ranges); i += 2 {
		first, last := ranges[i], ranges[i+1]
		for r := first; r <= min(last, utf8.RuneSelf-1); r++ {
			ascii[r] = true
		}
		if last >= utf8.RuneSelf {
			forms = utf8Ranges(forms, max(first, utf8.RuneSelf), last)
		}
		if first <= utf8.RuneError && utf8.RuneError <= last {
			forms, w.loose = append(forms, "[\x80-\xff]"), true // a byte outside of a letter counts as U+FFFD
		}
	}
	if len(forms) > maxForms {
		forms, w.loose = []string{"[\xc2-\xf4][\x80-\xbf]{1,3}", "[\x80-\xff]"}, true
	}
	if ascii['\n'] = false; slices.Contains(ascii[:], true) {
		forms = append(forms, bracketExpr(&ascii))
	}
	w.writeText("(" + cmp.Or(strings.Join(forms, "|"), noMatch) + ")")
}

// bracketExpr returns a bracket expression for a set of bytes. If the set contains NUL, the
// expression lists the bytes outside of the set, because no argument can contain NUL. Special bytes
// stand where they have no special meaning: ] first, ^ and - last.
func bracketExpr(set *[utf8.RuneSelf]bool) string {
	var b strings.Builder
	for r := 1; r < len(set); r++ {
		first := r
		for r < len(set) && set[r] != set[0] && strings.IndexByte("]^[-", byte(r)) < 0 {
			r++
		}
		switch {
		case r-first > 1:
			b.WriteString(string(rune(first)) + "-" + string(rune(r-1)))
		case r-first == 1:
			b.WriteByte(byte(first))
		}
	}
	has := func(c byte) string {
		if set[c] != set[0] {
			return string(rune(c))
		}
		return ""
	}
	inner := b.String() + has('[')
	switch {
	case set[0]:
		return "[^" + has(']') + "\x80-\xff" + inner + has('^') + has('-') + "]"
	case inner == "" && has(']') == "" && has('^') != "": // ^ would stand first
		return `(\^|` + cmp.Or(has('-'), `\^`) + ")"
	}
	return "[" + has(']') + inner + has('^') + has('-') + "]"
}

// utf8Ranges appends expressions that match the UTF-8 bytes of the letters from lo to hi, none of
// them ASCII. Each byte has its own range: [é-ŵ] becomes \xc3[\xa9-\xbf], \xc4[\x80-\xbf] and
// \xc5[\x80-\xb5].
func utf8Ranges(forms []string, lo, hi rune) []string {
	for _, last := range []rune{0x7ff, 0xd7ff, 0xdfff, 0xffff} {
		if lo <= last && last < hi {
			return utf8Ranges(utf8Ranges(forms, lo, last), last+1, hi)
		}
	}
	if 0xd800 <= lo && lo <= 0xdfff { // surrogates have no UTF-8 form
		return forms
	}
	for bits := 6; bits < 6*utf8.RuneLen(hi); bits += 6 {
		low := rune(1)<<bits - 1
		switch {
		case lo&^low == hi&^low:
		case lo&low != 0:
			return utf8Ranges(utf8Ranges(forms, lo, lo|low), (lo|low)+1, hi)
		case hi&low != low:
			return utf8Ranges(utf8Ranges(forms, lo, hi&^low-1), hi&^low, hi)
		}
	}

	form, from, to := "", string(lo), string(hi)
	for i := range len(from) {
		if from[i] == to[i] {
			form += from[i : i+1]
		} else {
			form += "[" + from[i:i+1] + "-" + to[i:i+1] + "]"
		}
	}
	return append(forms, form)
}
