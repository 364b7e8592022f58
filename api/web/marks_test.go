package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/shard"
)

// marked returns lines with their visible marks in brackets.
func marked(query string, lines ...string) []string {
	c := shard.Chunk{Content: []byte(strings.Join(lines, "\n") + "\n")}
	low := strings.ToLower(string(c.Content))
	for i := 0; i < len(low); {
		size := 0
		for _, w := range strings.Fields(strings.ToLower(query)) {
			if strings.HasPrefix(low[i:], w) {
				size = max(size, len(w))
			}
		}
		if size > 0 {
			c.Ranges = append(c.Ranges, shard.Range{Start: shard.Position{Offset: uint32(i)}, End: shard.Position{Offset: uint32(i + size)}})
		}
		i += max(1, size)
	}

	m := markingOf(layout.Box{Query: query}).forFile([]shard.Chunk{c})
	var out []string
	eachLine(&c, func(line []byte, marks []span) {
		text, at := "", 0
		for _, s := range m.keep(line, marks) {
			text += string(line[at:s.start]) + "[" + string(line[s.start:s.end]) + "]"
			at = s.end
		}
		out = append(out, text+string(line[at:]))
	})
	return out
}

func TestShownLines_haveMostWordsOfTheQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query string
		want  []string // with the marks
	}{
		{"a", []string{"[a] b[a]t"}},
		{"func main", []string{"[func] [main]()", "// the [main] one"}},
		{"kind of value", []string{"wrong [kind] [of] [value]", "a kind", "of it"}},
		{"holding a key", []string{"[holding] [a] [key]", "a bag, a cat"}},
		{"holding a key", []string{"[holding] bags and [key]", "a bag"}},
		{"is it", []string{"[is] [it] there", "th[is] w[it]h"}},
		{"alpha beta gamma", []string{"[alpha]", "[beta]", "none"}},
		{"é la fin", []string{"[é] [la] [fin]", "étude [la] [fin]"}},
		{"я и тыква", []string{"[я] [и] [тыква]", "моя или [тыква]"}},
		{"if (x)", []string{"[if] [(x)] {"}},
	} {
		plain := strings.NewReplacer("[", "", "]", "").Replace(strings.Join(c.want, "\n"))
		if got := marked(c.query, strings.Split(plain, "\n")...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.query, got, c.want)
		}
	}
}
