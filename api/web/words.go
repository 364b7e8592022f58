package web

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// Limits of word marks. Beyond them whole lines are marked, so that pages are fast.
const (
	mostWords  = 300  // of a line
	mostMarked = 2000 // lines of a hunk
)

// markChanged marks the words that differ between a removed line and the added line in its place.
// It compares the first removed line with the first added one, and so on.
//
//	old:  return "hello " + name
//	              ^^^^^
//	new:  return "HELLO " + name
//	              ^^^^^
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

// changedWords returns the words that only one of two lines has, as byte ranges; none if the
// lines have little in common.
func changedWords(old, now []byte) (inOld, inNow []span) {
	a, b := wordsOf(old), wordsOf(now)
	// The comparison takes time proportional to the product of both lengths.
	if len(a) > mostWords || len(b) > mostWords {
		return nil, nil
	}
	keepOld, keepNow := commonWords(old, now, a, b)

	// Blanks do not count, because most lines share an indent.
	same := 0
	for i, w := range a {
		if keepOld[i] {
			same += solid(old[w.start:w.end])
		}
	}

	// With less than a third in common, marks would cover nearly the whole line.
	if same == 0 || same*3 < min(solid(old), solid(now)) {
		return nil, nil
	}
	return unlike(a, keepOld), unlike(b, keepNow)
}

// solid counts the bytes of a text that are no blanks.
func solid(text []byte) int {
	return len(text) - bytes.Count(text, []byte{' '}) - bytes.Count(text, []byte{'\t'})
}

// wordsOf splits a line into words, runs of blanks, and single other characters.
func wordsOf(line []byte) []span {
	var out []span
	last := 0 // kind of the previous word
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

// commonWords reports which words of two lines belong to their longest common subsequence.
func commonWords(old, now []byte, a, b []span) (inOld, inNow []bool) {
	inOld, inNow = make([]bool, len(a)), make([]bool, len(b))
	same := func(i, k int) bool {
		return bytes.Equal(old[a[i].start:a[i].end], now[b[k].start:b[k].end])
	}

	// longest is the length of that subsequence from words i and k on.
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

// unlike returns the words that are not kept; neighbours are joined.
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
