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

// check encodes and decodes a text, completely and in part, and checks that no byte beyond is
// changed.
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

// checkLoose decodes with capacity after all slices, and checks that not more of it is changed than
// allowed.
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

func TestDecode_returnsTheEncodedText(t *testing.T) {
	t.Parallel()
	for _, dict := range [][]byte{nil, []byte("x"), []byte("static int struct foo return EXPORT aaaaaaaaaaaaaaaaaaaaaaaaaa"), bytes.Repeat([]byte("0123456789 static struct"), MaxDict/24)} {
		e := NewEncoder(dict)
		for _, src := range texts(1, 60) {
			check(t, e, dict, src)
		}
	}
}

func FuzzDecode_returnsTheEncodedText(f *testing.F) {
	for _, src := range texts(2, 4) {
		f.Add(src, []byte("static struct return"))
	}
	f.Fuzz(func(t *testing.T, src, dict []byte) {
		src, dict = src[:min(len(src), MaxBlock)], dict[:min(len(dict), MaxDict)]
		check(t, NewEncoder(dict), dict, src)
	})
}

// checkDamaged decodes a damaged block, with and without capacity, and compares with the portable
// way. If the portable way decodes the block, all ways must give the same bytes, and change only
// the slack. If it refuses the block, such as for a match beyond the dictionary, others need not
// notice.
func checkDamaged(t *testing.T, block, dict []byte, n int) {
	t.Helper()
	want := make([]byte, n)
	wantErr := decode(want, block, dict, !useFastCode)
	room := func(b []byte, n int) []byte {
		return append(append(make([]byte, 0, len(b)+n), b...), bytes.Repeat([]byte{0xdd}, n)...)[: len(b) : len(b)+n]
	}
	for _, behind := range []int{0, 1, 15, 31, 32, 47, Slack, 64} {
		slack := min(behind, Slack)
		buf := bytes.Repeat([]byte{0xee}, n+behind+8)
		err := Decode(buf[:n:n+behind], room(block, behind), room(dict, behind))
		if err != nil && (!errors.Is(err, ErrCorrupt) || wantErr == nil) {
			t.Fatalf("room of %d: %v, want %v", behind, err, wantErr)
		}
		if wantErr == nil && !bytes.Equal(buf[:n], want) {
			t.Fatalf("room of %d: other bytes than by the portable way", behind)
		}
		if bytes.Count(buf[n+slack:], []byte{0xee}) != behind-slack+8 {
			t.Fatalf("room of %d: written beyond", behind)
		}
	}
}

func TestDecode_damagedBlocksAgreeWithPortable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(4))
	dict := bytes.Repeat([]byte("static struct return 0123456789 "), 40)
	for _, d := range [][]byte{nil, dict[:20], dict} {
		e := NewEncoder(d)
		for _, src := range texts(5, 60) {
			block := e.Encode(nil, src)
			for range 20 {
				damaged := bytes.Clone(block)
				for range 1 + r.Intn(3) {
					damaged[r.Intn(len(damaged))] ^= byte(1 << r.Intn(8))
				}
				checkDamaged(t, damaged, d, min(len(src)+r.Intn(20), MaxBlock))
			}
			checkDamaged(t, block[:r.Intn(len(block))], d, len(src))
		}
	}
}

func FuzzDecode_damagedBlocksNeverPanic(f *testing.F) {
	e := NewEncoder(nil)
	for _, src := range texts(3, 4) {
		f.Add(e.Encode(nil, src), len(src), []byte("dictionary of some bytes"))
	}
	f.Fuzz(func(t *testing.T, block []byte, n int, dict []byte) {
		checkDamaged(t, block, dict[:min(len(dict), MaxDict)], max(0, min(n, MaxBlock)))
	})
}

// TestEncode_writesTheDocumentedExample compares a block with the example in the package comment.
func TestEncode_writesTheDocumentedExample(t *testing.T) {
	t.Parallel()
	block := NewEncoder(nil).Encode(nil, []byte("go func go func main"))
	if want := "\x01\x00" + "\x84\x08\x00" + "go func main"; string(block) != want {
		t.Errorf("block % x, want % x", block, want)
	}
}
func TestEncoder_reusedGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(3))
	text := func() []byte {
		b := make([]byte, r.Intn(MaxBlock))
		for i := range b {
			b[i] = byte('a' + r.Intn(3))
		}
		return b
	}
	for range 100 {
		dict, block := text(), text()
		fresh := &Encoder{inDict: new([1 << dictBits]uint32)}
		fresh.setDict(dict)
		want := fresh.Encode(nil, block)

		// The memory comes from an encoder of another dictionary and block.
		used := NewEncoder(text())
		used.Encode(nil, text())
		used.Release()
		again := NewEncoder(dict)
		if got := again.Encode(nil, block); !bytes.Equal(got, want) {
			t.Fatalf("a reused encoder gives %d bytes, a new one %d, and they differ", len(got), len(want))
		}
		again.Release()
	}
}
