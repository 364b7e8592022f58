package browse

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/match"
)

// linesWithMatches is a naive matchingLines, for lines that are not cut.
func linesWithMatches(content []byte, spans []match.Span) (lines []Line) {
	begin := 0
	for i, text := range bytes.Split(content, []byte("\n")) {
		end := begin + len(text)
		for _, sp := range spans {
			if sp.Start <= end && (begin <= sp.Start || begin < sp.End) {
				lines = append(lines, Line{Number: i + 1, Text: bytes.Clone(bytes.TrimSuffix(text, []byte("\r")))})
				break
			}
		}
		begin = end + 1
	}
	return lines
}

func TestMatchingLines_areAllLinesThatAMatchTouches(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, pattern := range []string{"a", "b*", "^", "$", "^$", "a\n", "\n", "a\n+b", "(?s)a.*b", "b\n\n?a", "\r"} {
		m, err := match.Compile(pattern, match.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			text := make([]byte, r.IntN(24))
			for i := range text {
				text[i] = "aab\n\n\r"[r.IntN(6)]
			}
			spans := m.Append(nil, text, -1)
			got, want := written(matchingLines(text, spans)), written(linesWithMatches(text, spans))
			if got != want {
				t.Fatalf("%q in %q: %s, want %s", pattern, text, got, want)
			}
		}
	}
}

// written returns lines with their numbers.
func written(lines []Line) (out string) {
	for _, l := range lines {
		out += fmt.Sprintf("%d:%q ", l.Number, l.Text)
	}
	return out
}

// A file of one line has as many matches as bytes. The scan counts all of them, and shows the
// text around the first.
func TestGitScan_cutsAnOverlongLine(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	for _, c := range []struct {
		name, text string
		matches    int
		lines      []string // their beginnings
		most       int      // bytes of all lines
	}{
		{"all of it matches", rep("a", 4<<20), 4 << 20, []string{"aaa"}, 16 << 10},
		{"match in the middle", rep("xé", 1<<20) + "a" + rep("ß", 1<<20), 1, []string{"…"}, 4 << 10},
		{"matches far apart", rep("x", 1<<20) + "a" + rep("x", 1<<20) + "a", 2, []string{"…x"}, 16 << 10},
		{"lines around", rep("x", 1<<20) + "\na\n" + rep("y", 1<<20), 1, []string{"xx", "a", "yy"}, 4 << 10},
		{"short line", rep("x", 1000) + "a", 1, []string{rep("x", 1000) + "a"}, 1001},
	} {
		f, _ := finderOf("a")
		f.searchFile(git.Entry{Path: "f"}, []byte(c.text))
		if len(f.files) != 1 || f.files[0].Matches != c.matches || f.matches != c.matches {
			t.Fatalf("%s: %d files with %d matches, want one with %d", c.name, len(f.files), f.matches, c.matches)
		}
		lines := f.files[0].Lines
		if len(lines) != len(c.lines) || f.bytes > c.most {
			t.Fatalf("%s: %d lines with %d bytes, want %d with %d at most", c.name, len(lines), f.bytes, len(c.lines), c.most)
		}
		for i, line := range lines {
			whole := slices.Contains(strings.Split(c.text, "\n"), string(line.Text))
			if !bytes.HasPrefix(line.Text, []byte(c.lines[i])) || whole == bytes.HasSuffix(line.Text, []byte(shard.CutMark)) || !utf8.Valid(line.Text) {
				t.Errorf("%s: line %d is %.20q of %d bytes", c.name, line.Number, line.Text, len(line.Text))
			}
		}
	}
}
