package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard"
)

// A limit removes matches together with their context: the answer shows a file as if its shard had
// found no more.
func TestTrimFile_removesContextOfRemovedMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text          string // [ and ] surround matches
		left, context int
		want          string
	}{
		{"a [x]\nb [x]\nc [x]\nd\n", 1, 0, "a x\n"},
		{"a [x]\nb [x]\nc [x]\nd\n", 1, 1, "a x\nb x\n"},
		{"a [x]\nb [x]\nc [x]\nd\n", 2, 1, "a x\nb x\nc x\n"},
		{"a [x]\nb [x]\nc [x]", 2, 5, "a x\nb x\nc x"},
		{"0\na [x] [x]\nb [x]\n", 1, 0, "0\na x x\n"},
		{"a [x\ny]\nb [x]\n", 1, 0, "a x\ny\n"},
		{"a [x\n]b [x]\nc\n", 1, 0, "a x\n"},
		{"a []\nb [x]\n", 1, 0, "a \n"},
	} {
		chunk := shard.Chunk{Start: shard.Position{Offset: 100}}
		var text strings.Builder
		for _, r := range c.text {
			at := shard.Position{Offset: 100 + uint32(text.Len())}
			switch r {
			case '[':
				chunk.Ranges = append(chunk.Ranges, shard.Range{Start: at})
			case ']':
				chunk.Ranges[len(chunk.Ranges)-1].End = at
			default:
				text.WriteRune(r)
			}
		}
		chunk.Content = []byte(text.String())
		chunk.Symbols = make([]shard.Symbol, len(chunk.Ranges))

		f := trimFile(shard.File{Chunks: []shard.Chunk{chunk}}, c.left, c.context)
		got := f.Chunks[0]
		if string(got.Content) != c.want || len(got.Ranges) != c.left || len(got.Symbols) != c.left || got.Around != nil {
			t.Errorf("%q, %d matches with %d lines around: %q, %d ranges, %d symbols", c.text, c.left, c.context, got.Content, len(got.Ranges), len(got.Symbols))
		}
	}
}

// Tools mark the lines of a chunk that are cut.
func TestChunkLines_markCutLines(t *testing.T) {
	t.Parallel()
	chunk := shard.Chunk{Content: []byte("tail\nwhole\nhead"), Before: 9000, After: 1, Start: shard.Position{Offset: 9000, Line: 7}}
	var got []string
	for _, l := range linesOf([]shard.Chunk{chunk}) {
		got = append(got, string(l.Text))
	}
	if want := []string{"…tail", "whole", "head…"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
