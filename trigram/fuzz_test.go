package trigram

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"testing"
)

// FuzzCandidates_coverMatches searches for a match that the candidates do not cover.
func FuzzCandidates_coverMatches(f *testing.F) {
	f.Add("foo.*bar", []byte("a foo and a bar\n"), uint16(4090))
	f.Add(`(?i)k[0-9]+s$`, []byte("K1234ſ\n"), uint16(8100))
	f.Add(`^}$`, []byte("}\n"), uint16(4095))
	f.Add(`a\s*b[^c]{3,}`, []byte("a\n\n b\xffxyz"), uint16(100))
	f.Fuzz(func(t *testing.T, expr string, text []byte, at uint16) {
		if len(expr) > 200 || len(text) > 2000 {
			return
		}
		tree, err := syntax.Parse(expr, flags)
		if err != nil {
			return
		}
		re, err := regexp.Compile("(?m:" + expr + ")")
		if err != nil {
			return
		}
		// The text is tested alone and inside a longer document.
		long := bytes.Repeat([]byte("lorem ipsum dolor,\n"), 700)
		copy(long[int(at)%len(long):], text)
		dense := bytes.Repeat([]byte("."), int(at))
		docs := [][]byte{text, long, append(dense, text...)}
		x, _, firsts := build(t, docs)
		checkCovered(t, x, firsts, docs, re, FromRegexp(tree, false))
	})
}

// FuzzOpen_damagedSegmentsNeverPanic reads damaged segments.
func FuzzOpen_damagedSegmentsNeverPanic(f *testing.F) {
	for _, c := range []struct{ n, size int }{{1, 10}, {40, 3000}} {
		_, segs, _ := build(f, randomDocs(int64(c.n), c.n, c.size))
		f.Add(segs[0])
	}
	formulas := []*Formula{FromLiteral("struct", true), FromLiteral("if", false), FromLiteral("k", true), FromRegexp(parse(f, `[0-9]{8}.*foo`), false)}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Open([][]byte{b}, nil)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		var s Scratch
		var out Bitmap
		for _, g := range formulas {
			if _, err := x.Search(0, g, nil, &s, &out); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}
