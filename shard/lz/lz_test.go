package lz

import (
	"bytes"
	"errors"
	"math/rand"
	"testing"
)

func texts(seed int64, n int) [][]byte {
	r := rand.New(rand.NewSource(seed))
	words := []string{"return ", "static ", "int", "struct foo ", "\n\t", "->", "EXPORT", "aaaaaaaaaaaaaaaaaaaaaa", ";", "x"}
	out := [][]byte{nil, {}, []byte("a"), []byte("abcd"), bytes.Repeat([]byte("ab"), 4000), bytes.Repeat([]byte{0}, MaxBlock)}
	for range n {
		var b []byte
		for want := r.Intn(MaxBlock); len(b) < want; {
			if r.Intn(4) == 0 {
				b = append(b, byte(r.Intn(256)))
			} else {
				b = append(b, words[r.Intn(len(words))]...)
			}
		}
		out = append(out, b[:min(len(b), MaxBlock)])
	}
	return out
}

// check encodes and decodes, wholly and in part, and sees that no byte beyond
// is touched.
func check(t *testing.T, e *Encoder, dict, src []byte) {
	t.Helper()
	block := e.Encode([]byte("head"), src)[4:]
	for _, n := range []int{len(src), len(src) / 2, min(len(src), 5), max(len(src)-1, 0)} {
		buf := bytes.Repeat([]byte{0xee}, n+40)
		if err := Decode(buf[:n:n], block, dict); err != nil || !bytes.Equal(buf[:n], src[:n]) {
			t.Fatalf("%d of %d bytes: %v", n, len(src), err)
		}
		if bytes.Count(buf[n:], []byte{0xee}) != 40 {
			t.Fatalf("%d of %d bytes: written beyond", n, len(src))
		}
		checkLoose(t, block, dict, src[:n])
	}
	if err := Decode(make([]byte, len(src)+1), block, dict); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("one byte more than there is: %v", err)
	}
}

// checkLoose decodes with room behind all slices, and sees that no more of it
// is touched than may be.
func checkLoose(t *testing.T, block, dict, want []byte) {
	t.Helper()
	n := len(want)
	buf := bytes.Repeat([]byte{0xee}, n+Slack+8)
	room := func(b []byte) []byte {
		return append(append(make([]byte, 0, len(b)+64), b...), bytes.Repeat([]byte{0xdd}, 64)...)[:len(b)]
	}
	if err := Decode(buf[:n], room(block), room(dict)); err != nil || !bytes.Equal(buf[:n], want) {
		t.Fatalf("%d bytes, with room: %v", n, err)
	}
	if bytes.Count(buf[n+Slack:], []byte{0xee}) != 8 {
		t.Fatalf("%d bytes: written beyond the slack", n)
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, dict := range [][]byte{nil, []byte("x"), []byte("static int struct foo return EXPORT aaaaaaaaaaaaaaaaaaaaaaaaaa"), bytes.Repeat([]byte("0123456789 static struct"), MaxDict/24)} {
		for _, best := range []bool{false, true} {
			e := NewEncoder(dict, best)
			for _, src := range texts(1, 60) {
				check(t, e, dict, src)
			}
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, src := range texts(2, 4) {
		f.Add(src, []byte("static struct return"))
	}
	f.Fuzz(func(t *testing.T, src, dict []byte) {
		src, dict = src[:min(len(src), MaxBlock)], dict[:min(len(dict), MaxDict)]
		check(t, NewEncoder(dict, false), dict, src)
		check(t, NewEncoder(dict, true), dict, src)
	})
}

func FuzzDecode(f *testing.F) {
	e := NewEncoder(nil, false)
	for _, src := range texts(3, 4) {
		f.Add(e.Encode(nil, src), len(src))
	}
	f.Fuzz(func(t *testing.T, block []byte, n int) {
		n = max(0, min(n, MaxBlock))
		buf := bytes.Repeat([]byte{0xee}, n+40)
		err := Decode(buf[:n:n], block, []byte("dictionary of some bytes"))
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if bytes.Count(buf[n:], []byte{0xee}) != 40 {
			t.Fatal("written beyond")
		}
	})
}
