package model

import "strings"

// tagSplitter separates reasoning between tags from a text that arrives in pieces:
//
//	<think>first I look</think>The answer is 42.
//
// A piece may end within a tag. If the model's template has opened the tag, the text begins with
// reasoning and has a closing tag only.
type tagSplitter struct {
	open, close string
	inside      bool
	hadTag      bool   // a tag has occurred
	pending     string // may begin a tag
}

func newTagSplitter(tag string) *tagSplitter {
	return &tagSplitter{open: "<" + tag + ">", close: "</" + tag + ">"}
}

// splitPiece separates a piece into text (said) and reasoning (thought). allReasoning means that all text that
// earlier calls returned was reasoning, too.
func (t *tagSplitter) splitPiece(piece string) (said, thought string, allReasoning bool) {
	text := t.pending + piece
	t.pending = ""

	// out[0] is text and out[1] reasoning; at returns the one to write to.
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

		// "<" begins a tag, may begin one, or is text.
		switch {
		case strings.HasPrefix(text, t.open) && !t.inside:
			t.inside, t.hadTag = true, true
			text = text[len(t.open):]

		case strings.HasPrefix(text, t.close) && (t.inside || !t.hadTag):
			if !t.inside {
				// Only a closing tag: the template opened it, so everything before was reasoning.
				allReasoning = true
				out[1].WriteString(out[0].String())
				out[0].Reset()
			}
			t.inside, t.hadTag = false, true
			text = strings.TrimLeft(text[len(t.close):], "\n")

		// The piece may end within a tag: wait for the next one.
		case strings.HasPrefix(t.open, text) || strings.HasPrefix(t.close, text):
			t.pending = text
			text = ""
		default:
			at().WriteByte('<')
			text = text[1:]
		}
	}
	return out[0].String(), out[1].String(), allReasoning
}

// remainder returns what split has held back, at the end of the answer. Within a tag that never
// closes it is reasoning, otherwise text.
func (t *tagSplitter) remainder() (said, thought string) {
	if t.inside {
		return "", t.pending
	}
	return t.pending, ""
}
