package lz

import (
	"os"
	"path/filepath"
	"testing"
)

// realBlocks returns the blocks of a tree of text with their dictionary: of SHOAL_LZ_TREE, or of
// the sources of this package.
func realBlocks(b *testing.B) (texts, blocks [][]byte, dict []byte) {
	dir := os.Getenv("SHOAL_LZ_TREE")
	if dir == "" {
		dir = "."
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		for len(text) > 0 {
			n := min(len(text), 4160)
			texts = append(texts, text[:n])
			text = text[n:]
		}
	}
	dict = Train(texts[:len(texts)/2], MaxDict)
	e := NewEncoder(dict)
	var all []byte
	ends := []int{0}
	for _, t := range texts {
		all = e.Encode(all, t)
		ends = append(ends, len(all))
	}
	for i := range texts {
		blocks = append(blocks, all[ends[i]:ends[i+1]])
	}
	return texts, blocks, dict
}

func BenchmarkDecode(b *testing.B) {
	texts, blocks, dict := realBlocks(b)
	sum, coded := 0, 0
	for i := range texts {
		sum, coded = sum+len(texts[i]), coded+len(blocks[i])
	}
	b.ReportMetric(float64(coded)/float64(sum), "ratio")
	buf := make([]byte, 4160, 4160+Slack)
	b.SetBytes(int64(sum))
	for b.Loop() {
		for i, block := range blocks {
			if err := Decode(buf[:len(texts[i])], block, dict); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	texts, _, dict := realBlocks(b)
	sum := 0
	for i := range texts {
		sum += len(texts[i])
	}
	e := NewEncoder(dict)
	var out []byte
	b.SetBytes(int64(sum))
	for b.Loop() {
		for _, t := range texts {
			out = e.Encode(out[:0], t)
		}
	}
}
