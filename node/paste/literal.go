package paste

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Pattern is a search for source lines that may have printed a text.
type Pattern struct {
	Expr string // RE2; matches within one line
	Text string // for display: the literal words, with an ellipsis for the rest
	Name bool   // the name of a flag or a setting, which is short but says all
}

// Limits of patterns.
const (
	mostPatterns = 9
	mostWords    = 24   // from the beginning of a text
	leastLetters = 8    // literal letters of a pattern
	maxMessage   = 2000 // bytes of a text that are used
)

// variable matches values that a program likely filled in: quoted text, addresses, paths,
// numbers, hashes, lists, request lines and verbs of formats.
var variable = regexp.MustCompile(strings.Join([]string{
	`\[[^\[\]\n]*[0-9"',][^\[\]\n]{0,200}\]`, `\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) [^\s"']+(?: HTTP/[0-9.]+)?`,
	`"[^"\n]*"`, `“[^”\n]*”`, "`[^`\\n]*`", `\B'[^'\n]{1,200}'\B`,
	`[a-z][a-z+.-]*://\S+`,
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	`\b(?:[0-9]+:[A-Z] )?[0-9]{1,2} [A-Z][a-z]{2} [0-9]{4} [0-9:.]+`, `\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]+(?:Z|[+-][0-9:]+)?)?`,
	`\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?`,
	`(?:\bat )?[\w.@/\\-]+\.[a-z]{1,5}:[0-9]+(?::[0-9]+)?\b`,
	`(?:[A-Za-z]:\\|~?/)?(?:[\w.@-]+[\\/]){2,}[\w.@-]*`, `[\w.@-]+/[\w.@-]+\.[a-z]\w{0,4}\b`, `/[\w.@-]+`,
	`\bat line [0-9]+,? col(?:umn)? [0-9]+(?: path \S+)?`, `\b[\w-]*[0-9][\w-]*(?:\.[\w-]+)*\.[a-z]{2,5}\b`,
	`\b0x[0-9a-fA-F]+\b`, `\b[0-9a-f]{7,64}\b`,
	`\$?\{[^{}\s]*\}`, `%[-+# 0]*[0-9]*(?:\.[0-9]+)?(?:l|ll|h|z)?[a-zA-Z]\b`, `%[0-9]+\$[a-z]\b`,
	`[-+]?\b[0-9]+(?:[.,][0-9]+)*(?:%|[a-zA-Z]{1,3}\b)?`,
}, "|"))

// messagePrefix matches text before a message: "(error) " of a client, "[WARN] " and "ERROR: " of
// a log, "TypeError: " of a runtime, "Build Warning: " of a tool, the code "ERR " of a protocol.
var messagePrefix = regexp.MustCompile(`^\s*(?:[(\[<][^()\[\]<>]{0,40}[)\]>]|(?:\w+\.)+[A-Z]\w*:|(?:[A-Z]\w* )?[\w.]*(?i:error|exception|warning|panic|fatal|fail(?:ed|ure)?|info|debug|notice|critical|warn):|[A-Z][A-Z0-9_]{2,}\s|[-*>|]+)\s*`)

// hole replaces a value that a program filled in.
const hole = "\x00"

// Literal returns patterns for the parts of a text that the source likely has, the longest first.
// It leaves out values, then what precedes the message; then it tries single parts, and last it
// leaves out one word at a time. For a flag or a setting it looks for where its name is quoted.
func Literal(text string) []Pattern {
	if names := settingPatterns(text); names != nil {
		return names
	}

	// The message precedes the frames of a call stack.
	if m := Read(text); m.Trace() && len(m.Places) > 0 && m.Places[0].at > 0 {
		text = text[:m.Places[0].at]
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxMessage)], " ")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "\u00a0", " ")), " ")

	c := &collector{}
	whole := text
	c.add(withHoles(text))
	for range 3 {
		inner := messagePrefix.ReplaceAllString(text, "")
		if inner == text || inner == "" {
			break
		}
		text = inner
		c.add(withHoles(text))
	}

	// The source may have each line of a message, and each sentence, on a line of its own.
	if len(lines) > 1 {
		c.addAll(withoutPrefixes(lines))
	}
	if sentences := sentence.Split(withHoles(text), -1); len(sentences) > 1 {
		c.addAll(sentences)
	}

	// The message may be quoted, as in msg="failed to open".
	for _, q := range variable.FindAllString(whole, -1) {
		if inner := strings.Trim(q, "\"“”`'"); inner != q && strings.Count(inner, " ") > 1 {
			c.add(withHoles(inner))
		}
	}

	// The program itself wrote the text between two values.
	runs := strings.Split(withHoles(text), hole)
	slices.SortStableFunc(runs, func(a, b string) int { return cmp.Compare(countLetters(b), countLetters(a)) })
	if len(runs) > 1 && 3*countLetters(runs[0]) > countLetters(strings.Join(runs, "")) {
		c.add(messagePrefix.ReplaceAllString(strings.TrimLeft(runs[0], " #*"), ""))
	}

	// Errors wrap each other, and each part has its own place in the source.
	parts := strings.Split(withHoles(text), ": ")
	if len(parts) > 1 {
		c.add(strings.Join(parts[1:], ": "))
		c.add(strings.Join(parts[:len(parts)-1], ": "))
		c.addAll(parts)
	}
	parts = border.Split(withHoles(text), -1)
	slices.SortStableFunc(parts, func(a, b string) int { return cmp.Compare(countLetters(b), countLetters(a)) })
	c.add(parts[0])
	c.addWithoutOneWord(parts[0])
	for _, part := range parts[1:min(len(parts), 3)] {
		c.add(part)
	}
	c.addRuns(withHoles(text))
	return c.patterns[:min(len(c.patterns), mostPatterns)]
}

// withHoles replaces the values of a text by holes.
func withHoles(text string) string { return variable.ReplaceAllString(text, hole) }

func countLetters(text string) (n int) {
	for _, r := range text {
		if r > ' ' {
			n++
		}
	}
	return n
}

// collector collects patterns without duplicates.
type collector struct {
	patterns []Pattern
}

// add adds the pattern of a text with holes. It skips texts with few literal letters.
func (c *collector) add(text string) { c.addAll([]string{text}) }

// addAll adds one pattern that matches any of several texts.
func (c *collector) addAll(texts []string) {
	var exprs []string
	shown := ""
	for _, text := range texts {
		expr, words := exprOf(text)
		if countLetters(strings.ReplaceAll(words, "…", "")) < leastLetters {
			continue
		}
		if shown == "" || len(words) > len(shown) {
			shown = words
		}
		exprs = append(exprs, expr)
	}
	if exprs == nil {
		return
	}
	p := Pattern{Expr: strings.Join(exprs, "|"), Text: shown}
	if !slices.ContainsFunc(c.patterns, func(o Pattern) bool { return o.Expr == p.Expr }) {
		c.patterns = append(c.patterns, p)
	}
}

// exprOf returns a text with holes as an expression, and for display. It drops holes at the ends,
// and signs next to a hole, because they belong to the value.
func exprOf(text string) (expr, words string) {
	var runs []string
	for _, run := range strings.Split(text, hole) {
		if run = strings.Trim(run, " \t"); run != "" {
			runs = append(runs, run)
		}
	}
	// Drop runs without words at the ends.
	for len(runs) > 0 && !word.MatchString(runs[0]) {
		runs = runs[1:]
	}
	for len(runs) > 0 && !word.MatchString(runs[len(runs)-1]) {
		runs = runs[:len(runs)-1]
	}
	if len(runs) == 0 {
		return "", ""
	}
	runs[0] = strings.TrimLeft(runs[0], `,.;:)]}>"'*# `)
	last := len(runs) - 1
	runs[last] = strings.TrimRight(runs[last], `,.;:([{<"'*#= `)

	var quoted []string
	for _, run := range runs {
		quoted = append(quoted, regexp.QuoteMeta(run))
	}
	return strings.Join(quoted, ".*"), strings.Join(runs, " … ")
}

// word matches two letters. border matches where one error wraps another, or where a sentence
// ends.
var (
	word   = regexp.MustCompile(`\pL{2}`)
	border = regexp.MustCompile(`: |; |\. |, | - | — `)

	// sentence matches the end of a sentence.
	sentence = regexp.MustCompile(`[.!?] `)
)

// withoutPrefixes returns the lines of a message with holes, without what precedes them.
func withoutPrefixes(lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, withHoles(messagePrefix.ReplaceAllString(strings.TrimSpace(line), "")))
	}
	return out
}

// addWithoutOneWord adds a pattern for lines that have all words of a text but one. That one may be a
// value that looks like a word.
func (c *collector) addWithoutOneWord(text string) {
	words := strings.Fields(text)
	if len(words) < 4 || len(words) > mostWords {
		return
	}
	var texts []string
	for i := range words {
		texts = append(texts, strings.Join(words[:i], " ")+hole+strings.Join(words[i+1:], " "))
	}
	c.addAll(texts)
}

// addRuns adds patterns for consecutive words: half of the text, then a third.
func (c *collector) addRuns(text string) {
	words := strings.Fields(strings.ReplaceAll(text, hole, " "+hole+" "))
	words = words[:min(len(words), mostWords)]
	for len(words) > 0 && !word.MatchString(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	for _, n := range []int{(len(words) + 1) / 2, (len(words) + 2) / 3} {
		if n < 3 {
			continue
		}
		var texts []string
		for i := 0; i+n <= len(words); i++ {
			texts = append(texts, strings.Join(words[i:i+n], " "))
		}
		c.addAll(texts)
	}
}
