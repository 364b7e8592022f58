package symbols

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// coded writes and reads a text with the code made for counts of like.
func checkHuffman(t *testing.T, text, like []byte) {
	t.Helper()
	var counts [1 << 8]int
	for _, b := range like {
		counts[b]++
	}
	for _, b := range text {
		counts[b]++
	}
	code := newHuffmanCode(&counts)
	table, err := newHuffmanTable(code.appendLengths(nil))
	if err != nil {
		t.Fatal(err)
	}
	coded := code.appendCoded(nil, text)
	got, ok := table.decodeCoded(nil, coded)
	if !ok || !bytes.Equal(got, text) {
		t.Fatalf("%.40q became %.40q, %v", text, got, ok)
	}
	for cut := range coded {
		if got, ok := table.decodeCoded(nil, coded[:cut]); ok && len(text) > 0 {
			t.Fatalf("%d of %d bytes give %.40q", cut, len(coded), got)
		}
	}
}

func TestHuffman_decodeUndoesEncode(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		text := make([]byte, r.IntN(300))
		for i := range text {
			text[i] = byte(r.ExpFloat64() * float64(n))
		}
		checkHuffman(t, text, nil)
	}
	// Counts like Fibonacci's numbers ask for codes of all lengths.
	var like []byte
	for b, a, c := 0, 1, 1; b < 24; b, a, c = b+1, c, a+c {
		like = append(like, bytes.Repeat([]byte{byte(b)}, a)...)
	}
	checkHuffman(t, []byte{0, 1, 2, 3, 23, 22, 0, 5}, like)
}

func FuzzHuffman_decodesWhatItEncodes(f *testing.F) {
	f.Add([]byte("abracadabra"), []byte("x"), make([]byte, codeBytes))
	f.Add([]byte{}, []byte{}, bytes.Repeat([]byte{0x88}, codeBytes))
	f.Fuzz(func(t *testing.T, text, like, written []byte) {
		checkHuffman(t, text, like)
		if table, err := newHuffmanTable(written); err == nil {
			_, _ = table.decodeCoded(nil, text) // must not panic
		}
	})
}
