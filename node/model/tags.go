package model

import "strings"

// tagSplitter parts a text that comes in pieces from the reasoning in it:
//
//	<think>first I look</think>The answer is 42.
//
// The tags may be cut anywhere. Where a template has opened the tag already,
// the text begins inside and only the closing tag comes.
type tagSplitter struct {
	open, close string
	inside      bool
	seen        bool   // a tag
	held        string // what could be the beginning of a tag
}

func newTagSplitter(tag string) *tagSplitter {
	return &tagSplitter{open: "<" + tag + ">", close: "</" + tag + ">"}
}

// take parts a piece. void says that all that was given out as text before was
// reasoning.
func (t *tagSplitter) take(piece string) (said, thought string, void bool) {
	text := t.held + piece
	t.held = ""

	// Text and reasoning are gathered apart; at is where a letter goes.
	var out [2]strings.Builder
	at := func() *strings.Builder {
		if t.inside {
			return &out[1]
		}
		return &out[0]
	}

	for text != "" {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			at().WriteString(text)
			break
		}

		at().WriteString(text[:i])
		text = text[i:]

		// At a sign that may begin a tag: a tag, the beginning of one, or text.
		switch {
		case strings.HasPrefix(text, t.open) && !t.inside:
			t.inside, t.seen = true, true
			text = text[len(t.open):]

		case strings.HasPrefix(text, t.close) && (t.inside || !t.seen):
			if !t.inside {
				// A closing tag without an opening one: the template had opened it, so all before
				// was reasoning.
				void = true
				out[1].WriteString(out[0].String())
				out[0].Reset()
			}
			t.inside, t.seen = false, true
			text = strings.TrimLeft(text[len(t.close):], "\n")

		// The piece ends within a tag, maybe: the next one tells.
		case strings.HasPrefix(t.open, text) || strings.HasPrefix(t.close, text):
			t.held = text
			text = ""
		default:
			at().WriteByte('<')
			text = text[1:]
		}
	}
	return out[0].String(), out[1].String(), void
}

// rest is what was held back at the end. A tag that was never closed was all
// reasoning.
func (t *tagSplitter) rest() (said, thought string) {
	if t.inside {
		return "", t.held
	}
	return t.held, ""
}
