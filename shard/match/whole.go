package match

import (
	"regexp/syntax"
	"unicode/utf8"
)

// textList is a list of texts. One of them must equal the whole text that is searched, as in
// `\A(?:main\.go|go\.mod)\z`. Queries ask every path of a shard whether it is one of a hundred
// paths. An automaton would compute states for each of them.
type textList map[string]bool

// Limits of a list.
const (
	maxTexts     = 4096    // texts
	maxTextBytes = 1 << 20 // bytes of all texts together
)

// textListOf returns re as a list of whole texts; nil if it is another expression or the list would
// be too long.
func textListOf(re *syntax.Regexp) textList {
	parts := flatten(re)
	last := len(parts) - 1
	if last < 2 || parts[0].Op != syntax.OpBeginText || parts[last].Op != syntax.OpEndText {
		return nil
	}

	texts := allTexts(&syntax.Regexp{Op: syntax.OpConcat, Sub: parts[1:last]})
	w := make(textList, len(texts))
	for _, t := range texts {
		// An empty match does not count, and only the automaton knows that rule.
		if t == "" {
			return nil
		}
		w[t] = true
	}

	if len(w) == 0 {
		return nil
	}
	return w
}

// allTexts returns all texts that an expression can match; nil if they are too many:
//
//	`cmd/(main|tool)\.go`  ->  cmd/main.go, cmd/tool.go
func allTexts(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}
	case syntax.OpCapture:
		return allTexts(re.Sub[0])

	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 || r == utf8.RuneError || !utf8.ValidRune(r) {
				return nil // the rune matches other texts too
			}
		}
		return []string{string(re.Rune)}

	// The parser turns alternatives that differ in one letter into a class.
	case syntax.OpCharClass:
		var out []string
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i+1]-re.Rune[i] > 64 || re.Rune[i+1] >= utf8.RuneSelf {
				return nil
			}
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				out = append(out, string(r))
			}
		}
		return out

	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			texts := allTexts(sub)
			if texts == nil || len(out)+len(texts) > maxTexts {
				return nil
			}
			out = append(out, texts...)
		}
		return out

	// The parser also makes an alternative optional if another one begins with it.
	case syntax.OpQuest:
		texts := allTexts(re.Sub[0])
		if texts == nil {
			return nil
		}
		return append(texts, "")

	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			if out = joinTexts(out, allTexts(sub)); out == nil {
				break
			}
		}
		return out
	}
	return nil
}

// joinTexts returns each text of a followed by each text of b; nil if they are too many or too long.
func joinTexts(a, b []string) []string {
	if len(a)*len(b) > maxTexts || totalBytes(a)*len(b)+totalBytes(b)*len(a) > maxTextBytes {
		return nil
	}

	var out []string
	for _, before := range a {
		for _, after := range b {
			out = append(out, before+after)
		}
	}
	return out
}

// totalBytes returns the sum of the lengths of some texts.
func totalBytes(texts []string) (sum int) {
	for _, t := range texts {
		sum += len(t)
	}
	return sum
}

// next returns the whole text as a match if it is in the list.
func (w textList) next(text []byte, from int) (start, end int, ok bool) {
	if from > 0 || !w[string(text)] {
		return 0, 0, false
	}
	return 0, len(text), true
}
