package web

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard"
)

// marked makes chunks of lines whose matches stand in brackets.
func marked(chunks ...string) (out []shard.Chunk) {
	at, line := uint32(0), uint32(1)
	for _, text := range chunks {
		c := shard.Chunk{Start: shard.Position{Offset: at, Line: line, Column: 1}}
		for i := range len(text) {
			here := shard.Position{Offset: at, Line: line, Column: 1}
			switch text[i] {
			case '[':
				c.Ranges = append(c.Ranges, shard.Range{Start: here})
				continue
			case ']':
				c.Ranges[len(c.Ranges)-1].End = here
				continue
			case '\n':
				line++
			}
			c.Content = append(c.Content, text[i])
			at++
		}
		out = append(out, c)
		at, line = at+100, line+10
	}
	return out
}

func TestTheBestLinesOfAFileAreShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		chunks []string
		want   string // what is shown of two, and what is folded
	}{
		{"few are all shown", []string{"[a]\n", "[b]\n"}, "a b | "},
		{"words on one line", []string{"[func] Walk\n", "// a [tree]\n", "[func] Old\n", "[func] [Tree]\n", "[func] [Tree]2\n"}, "func Tree func Tree2 | func Walk // a tree func Old"},
		{"in small letters and large ones", []string{"[tree] of a [Tree]\n", "[a]\n", "[func] [tree]\n"}, "tree of a Tree func tree | a"},
		{"words near each other", []string{"[a]\n", "[a]\n", "[a]\nx\n[b]\n"}, "a a x b | a"},
		{"all alike keep their order", []string{"[a] 1\n", "[a] 2\n", "[a] 3\n"}, "a 1 a 2 | a 3"},
		{"a range to the end", []string{"[a] 1\n", "[a] 2\n", "[b\n]"}, "a 1 a 2 | b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			best, rest := bestChunks(marked(tt.chunks...), 2)
			if got := fmt.Sprintf("%s | %s", together(best), together(rest)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func together(chunks []shard.Chunk) string {
	var all [][]byte
	for i := range chunks {
		all = append(all, chunks[i].Content)
	}
	return strings.Join(strings.Fields(string(bytes.Join(all, []byte(" ")))), " ")
}
