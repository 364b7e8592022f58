package web

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// The bounds of marking words: beyond them lines are marked as a whole, so that
// no change makes a page wait.
const (
	mostWords  = 300  // of a line
	mostMarked = 2000 // lines of a hunk
)

// markChanged marks the words that a line does not have in common with the one
// that went or came in its place: the first line that went is held beside the
// first that came, and so on.
//
//   - return "hello " + name        - return "hello " + name
//     ^^^^^
//   - return "HELLO " + name        + return "HELLO " + name
//     ^^^^^
func markChanged(rows []changedLine) {
	for left := min(len(rows), mostMarked); len(rows) > 0 && left > 0; {
		gone, come := changedRun(rows)
		for i := range min(len(gone), len(come)) {
			gone[i].marks, come[i].marks = changedWords(gone[i].text, come[i].text)
		}
		step := max(1, len(gone)+len(come))
		rows, left = rows[step:], left-step
	}
}

// changedWords returns the words that only one of two lines has, as byte ranges. Nothing is
// marked where the lines have little in common.
func changedWords(old, now []byte) (inOld, inNow []span) {
	a, b := wordsOf(old), wordsOf(now)
	// The comparison costs the product of both: of minified code it would be much.
	if len(a) > mostWords || len(b) > mostWords {
		return nil, nil
	}
	keepOld, keepNow := commonWords(old, now, a, b)

	// Blanks are no likeness: an indent is the same in nearly all lines.
	same := 0
	for i, w := range a {
		if keepOld[i] {
			same += solid(old[w.start:w.end])
		}
	}

	// A third: with less in common, marks would be nearly the whole line and tell nothing.
	if same == 0 || same*3 < min(solid(old), solid(now)) {
		return nil, nil
	}
	return unlike(a, keepOld), unlike(b, keepNow)
}

// solid is how many bytes of a text are no blanks.
func solid(text []byte) int {
	return len(text) - bytes.Count(text, []byte{' '}) - bytes.Count(text, []byte{'\t'})
}

// wordsOf cuts a line into words, runs of blanks, and single other characters.
func wordsOf(line []byte) []span {
	var out []span
	last := 0 // kind of the word before
	for at := 0; at < len(line); {
		r, size := utf8.DecodeRune(line[at:])

		kind := 0
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			kind = 1
		case r == ' ' || r == '\t':
			kind = 2
		}

		if n := len(out); n > 0 && kind != 0 && kind == last {
			out[n-1].end = at + size
		} else {
			out = append(out, span{at, at + size})
		}

		at, last = at+size, kind
	}
	return out
}

// commonWords tells which words of two lines belong to the longest sequence of
// words that both have.
func commonWords(old, now []byte, a, b []span) (inOld, inNow []bool) {
	inOld, inNow = make([]bool, len(a)), make([]bool, len(b))
	same := func(i, k int) bool {
		return bytes.Equal(old[a[i].start:a[i].end], now[b[k].start:b[k].end])
	}

	// longest is the length of that sequence from word i and word k on.
	width := len(b) + 1
	longest := make([]uint16, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for k := len(b) - 1; k >= 0; k-- {
			if same(i, k) {
				longest[i*width+k] = longest[(i+1)*width+k+1] + 1
			} else {
				longest[i*width+k] = max(longest[(i+1)*width+k], longest[i*width+k+1])
			}
		}
	}

	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case same(i, k):
			inOld[i], inNow[k] = true, true
			i, k = i+1, k+1
		case longest[(i+1)*width+k] >= longest[i*width+k+1]:
			i++
		default:
			k++
		}
	}
	return inOld, inNow
}

// unlike is the words that are not kept, those beside each other in one run.
func unlike(words []span, kept []bool) []span {
	var out []span
	for i, w := range words {
		if kept[i] {
			continue
		}
		if n := len(out); n > 0 && out[n-1].end == w.start {
			out[n-1].end = w.end
			continue
		}
		out = append(out, w)
	}
	return out
}
