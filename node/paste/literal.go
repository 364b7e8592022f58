package paste

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Pattern is an expression for lines of source that may have printed a text.
type Pattern struct {
	Expr string // RE2; a match is within one line
	Text string // for people: the words that it keeps, an ellipsis for what it leaves out
}

// The bounds of patterns.
const (
	mostPatterns = 8
	mostWords    = 24   // of a text, from its beginning
	leastLetters = 8    // that a pattern keeps
	maxMessage   = 2000 // bytes of a text that are cut in parts
)

// variable is what a program likely filled in: a value in quotes, an address, a path, a
// number, a hash, or the verb of a format.
var variable = regexp.MustCompile(strings.Join([]string{
	`"[^"\n]*"`, `“[^”\n]*”`, "`[^`\\n]*`", `\B'[^'\n]{1,200}'\B`,
	`[a-z][a-z+.-]*://\S+`,
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	`\b(?:[0-9]+:[A-Z] )?[0-9]{1,2} [A-Z][a-z]{2} [0-9]{4} [0-9:.]+`, `\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]+(?:Z|[+-][0-9:]+)?)?`,
	`\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?`,
	`(?:[A-Za-z]:\\|~?/)?(?:[\w.@-]+[\\/]){2,}[\w.@-]*`, `/[\w.@-]+`,
	`\b0x[0-9a-fA-F]+\b`, `\b[0-9a-f]{7,64}\b`,
	`\$?\{[^{}\s]*\}`, `%[-+# 0]*[0-9]*(?:\.[0-9]+)?(?:l|ll|h|z)?[a-zA-Z]\b`, `%[0-9]+\$[a-z]\b`,
	`[-+]?\b[0-9]+(?:[.,][0-9]+)*(?:%|[a-zA-Z]{1,3}\b)?`,
}, "|"))

// aside is what stands around a message and is no part of it: "(error) " of a client,
// "[WARN] " and "ERROR: " of a log, "TypeError: " of a runtime.
var aside = regexp.MustCompile(`^\s*(?:[(\[<][^()\[\]<>]{0,40}[)\]>]|(?:\w+\.)+[A-Z]\w*:|[\w.]*(?i:error|exception|warning|panic|fatal|fail(?:ed|ure)?|info|debug|notice|critical|warn):|[-*>|]+)\s*`)

// hole stands for what a program filled in.
const hole = "\x00"

// Literal returns patterns for the parts of a text that are likely the same in the
// source, the one with the most of it first: without what looks variable, without what
// stands around a message, then single parts, then with one word left out.
func Literal(text string) []Pattern {
	// Above the frames of a call stack stands what went wrong.
	if m := Read(text); m.Trace() && len(m.Places) > 0 && m.Places[0].at > 0 {
		text = text[:m.Places[0].at]
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxMessage)], " ")
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "\u00a0", " ")), " ")

	c := &collector{}
	whole := text
	c.add(holed(text))
	for range 3 {
		inner := aside.ReplaceAllString(text, "")
		if inner == text || inner == "" {
			break
		}
		text = inner
		c.add(holed(text))
	}

	// What is in quotes may be the message itself, as in msg="failed to open".
	for _, q := range variable.FindAllString(whole, -1) {
		if inner := strings.Trim(q, "\"“”`'"); inner != q && strings.Count(inner, " ") > 1 {
			c.add(holed(inner))
		}
	}

	// Between two values stands what the program wrote itself.
	runs := strings.Split(holed(text), hole)
	slices.SortStableFunc(runs, func(a, b string) int { return cmp.Compare(letters(b), letters(a)) })
	if len(runs) > 1 && 3*letters(runs[0]) > letters(strings.Join(runs, "")) {
		c.add(aside.ReplaceAllString(strings.TrimLeft(runs[0], " #*"), ""))
	}

	// Errors wrap each other: each part has a place of its own in the source.
	parts := strings.Split(holed(text), ": ")
	if len(parts) > 1 {
		c.add(strings.Join(parts[1:], ": "))
		c.add(strings.Join(parts[:len(parts)-1], ": "))
		c.addAll(parts)
	}
	parts = border.Split(holed(text), -1)
	slices.SortStableFunc(parts, func(a, b string) int { return cmp.Compare(letters(b), letters(a)) })
	c.add(parts[0])
	c.withoutOne(parts[0])
	for _, part := range parts[1:min(len(parts), 3)] {
		c.add(part)
	}
	c.runs(holed(text))
	return c.out[:min(len(c.out), mostPatterns)]
}

// holed is a text with holes for what looks variable.
func holed(text string) string { return variable.ReplaceAllString(text, hole) }

func letters(text string) (n int) {
	for _, r := range text {
		if r > ' ' {
			n++
		}
	}
	return n
}

// collector collects patterns, each once.
type collector struct {
	out []Pattern
}

// add adds the pattern of a text with holes, unless it keeps too little.
func (c *collector) add(text string) { c.addAll([]string{text}) }

// addAll adds one pattern for several texts: a line may have any of them.
func (c *collector) addAll(texts []string) {
	var exprs []string
	shown := ""
	for _, text := range texts {
		expr, words := exprOf(text)
		if letters(strings.ReplaceAll(words, "…", "")) < leastLetters {
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
	if !slices.ContainsFunc(c.out, func(o Pattern) bool { return o.Expr == p.Expr }) {
		c.out = append(c.out, p)
	}
}

// exprOf writes a text with holes as an expression, and for people. Holes at the ends
// say nothing; signs beside a hole belong to the values.
func exprOf(text string) (expr, words string) {
	var runs []string
	for _, run := range strings.Split(text, hole) {
		if run = strings.Trim(run, " \t"); run != "" {
			runs = append(runs, run)
		}
	}
	// A run of signs alone, at an end, is of no message.
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

// word is at least two letters; border is where an error wraps another, or a sentence ends.
var (
	word   = regexp.MustCompile(`\pL{2}`)
	border = regexp.MustCompile(`: |; |\. |, | - | — `)
)

// withoutOne adds a pattern for the lines that have all words of a text but one: a name
// that was filled in looks like a word.
func (c *collector) withoutOne(text string) {
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

// runs adds patterns for runs of words that stand together: half of the text, then a
// third.
func (c *collector) runs(text string) {
	words := strings.Fields(strings.ReplaceAll(text, hole, " "+hole+" "))
	words = words[:min(len(words), mostWords)]
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
