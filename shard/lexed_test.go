package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/query"
)

// Whatever comments and strings a file has, a chunk begins with what the lines before it leave open.
func TestLexedSearch_tellsWhatIsOpenAtTheStartOfEachChunk(t *testing.T) {
	t.Parallel()
	endings := []string{"c", "go", "py", "lua", "html", "rb", "rs", "sh", "txt"}
	words := []string{"/*", "*/", "// needle", "\"", "'", "`", `"""`, "'''", "--[[", "]]", "<!--", "-->", "#", "=begin\n", "\n=end\n", "needle", "x = 1", "\\", "r#\"", "\"#", "R\"(", ")\"", "é", "\n", "\n", "\n\n", "\r\n", " "}
	chunks, opened := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 11))
		tree := map[string][]string{}
		for f := range 1 + r.IntN(5) {
			var text strings.Builder
			for range r.IntN(400) {
				text.WriteString(words[r.IntN(len(words))])
			}
			if r.IntN(8) == 0 {
				text.WriteString("\n/* " + strings.Repeat("a", 70<<10) + "\nneedle\n") // the line is too long to be read
			}
			tree[fmt.Sprintf("f%d.%s", f, endings[r.IntN(len(endings))])] = []string{text.String()}
		}
		w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
		set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
		v, _ := set.Acquire(parts)
		t.Cleanup(v.Release)

		for _, req := range []Request{{}, {ContextLines: 2}, {MaxPerFile: 3}, {ContextLines: 1, MaxPerFile: 2}} {
			req.Q, req.MaxMatches, req.Lexed = &query.Text{Pattern: "needle", Field: query.Content}, 10000, true
			req.CountAll = req.MaxPerFile == 0
			res, err := v.Search(context.Background(), req)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range res.Files {
				for _, c := range f.Chunks {
					want := openBefore(lex.For(f.Language), tree[f.Path][0], int(c.Start.Line))
					if c.Before > 0 {
						want = 0 // it begins inside a line
					}
					if c.Open != want {
						t.Fatalf("seed %d: %s, a chunk from line %d on: open is %#x, want %#x\n%s", seed, f.Path, c.Start.Line, c.Open, want, tree[f.Path][0])
					}
					if chunks++; c.Open != 0 {
						opened++
					}
				}
			}
		}
	}
	if chunks < 500 || opened < chunks/20 {
		t.Errorf("only %d of %d chunks begin in a comment or a string", opened, chunks)
	}
}

// openBefore returns what is open before a line, by coloring every line before it.
func openBefore(l *lex.Lang, text string, line int) (open lex.State) {
	for range line - 1 {
		var one string
		one, text, _ = strings.Cut(text, "\n")
		_, open = l.Colors([]byte(strings.TrimSuffix(one, "\r")), open, nil)
	}
	return open
}

// Far down in a huge file only the last lines are read.
func TestLexedSearch_readsABoundedPartOfAHugeFile(t *testing.T) {
	t.Parallel()
	for lines, open := range map[int]bool{maxLexed/4 - 10: true, maxLexed / 4: false} {
		text := "/*\n" + strings.Repeat("abc\n", lines) + "lock\n"
		w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{{"a.c": {text}}}}
		set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
		v, _ := set.Acquire(parts)
		t.Cleanup(v.Release)
		c := chunksOf(t, v, Request{MaxMatches: 10, Lexed: true})
		if len(c) != 1 || (c[0].Open != 0) != open {
			t.Errorf("%d lines: %d chunks, open is %v, want %v", lines, len(c), c[0].Open, open)
		}
	}
}
