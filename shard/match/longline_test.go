package match

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The end of a line is searched once, however many offsets in it are asked about.
func TestEndOfLine_isSearchedOncePerLine(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 1))
	for range 200 {
		text := make([]byte, r.IntN(200))
		for i := range text {
			text[i] = "ab\n"[r.IntN(3*(1+r.IntN(20)))%3]
		}

		s := scratch{lineEnd: -1}
		first := 0
		for at := 0; at <= len(text); at += 1 + r.IntN(3) {
			want := len(text)
			if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
				want = at + i
			}
			if at > s.lineEnd {
				first = at
			}
			if got := s.endOfLine(text, at); got != want || s.line != first {
				t.Fatalf("%q at %d: %d, looked from %d; want %d, from %d", text, at, got, s.line, want, first)
			}
		}
	}
}
