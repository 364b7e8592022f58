package web

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// Limits of word marks. Beyond them whole lines are marked, so that pages are fast.
const (
	maxWords       = 300  // of a line that is compared
	maxMarkedLines = 2000 // of a hunk
)

// markChanged marks the words that differ between a removed line and the added line in its place: the
// first of a run of removed lines and the first added one after it, and so on.
//
//	old:  return "hello " + name
//	              ^^^^^
//	new:  return "HELLO " + name
//	              ^^^^^
func markChanged(rows []changedLine) {
	for left := min(len(rows), maxMarkedLines); len(rows) > 0 && left > 0; {
		removed, added := changedRun(rows)
		for i := range min(len(removed), len(added)) {
			removed[i].marks, added[i].marks = changedWords(removed[i].text, added[i].text)
		}
		step := max(1, len(removed)+len(added))
		rows, left = rows[step:], left-step
	}
}

// changedWords returns the words that only one of two lines has, as byte ranges; none if the
// lines have little in common.
func changedWords(old, now []byte) (inOld, inNow []span) {
	a, b := wordsOf(old), wordsOf(now)
	// Comparing takes time proportional to the product of the numbers of words.
	if len(a) > maxWords || len(b) > maxWords {
		return nil, nil
	}
	commonOld, commonNow := commonWords(old, now, a, b)

	// Do not count blanks, because most lines have a common indent.
	same := 0 // bytes in common
	for i, w := range a {
		if commonOld[i] {
			same += countNonBlank(old[w.start:w.end])
		}
	}

	// If less than a third is common, marks would cover nearly the whole line.
	if same == 0 || same*3 < min(countNonBlank(old), countNonBlank(now)) {
		return nil, nil
	}
	return wordsWithout(a, commonOld), wordsWithout(b, commonNow)
}

// countNonBlank counts the bytes of a text that are no blanks.
func countNonBlank(text []byte) int {
	return len(text) - bytes.Count(text, []byte{' '}) - bytes.Count(text, []byte{'\t'})
}

// wordsOf splits a line into words, runs of blanks, and single other characters.
func wordsOf(line []byte) []span {
	const other, word, blank = 0, 1, 2
	var out []span
	last := other // kind of the previous word
	for at := 0; at < len(line); {
		r, size := utf8.DecodeRune(line[at:])

		kind := other
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			kind = word
		case r == ' ' || r == '\t':
			kind = blank
		}

		if n := len(out); n > 0 && kind != other && kind == last {
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

	// longest[i*width+k] is the length of that subsequence in the words from i and k on.
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

// wordsWithout returns the words that are not common, and joins adjacent ones.
func wordsWithout(words []span, common []bool) []span {
	var out []span
	for i, w := range words {
		if common[i] {
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
