package web

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"

	"github.com/shoalsearch/shoal/shard"
)

// Limits of what is rendered for the rate of each language.
const (
	mostDrawn    = 24 // files
	mostOfEach   = 60 << 10
	leastOfEach  = 500
	leastOfAll   = 20 << 10
	leastDrawing = 50 * time.Millisecond // repeat each rendering at least so long
)

// TestSourceRows_renderingSpeedIsPrinted prints how many bytes of source become rows of HTML in a second, for each language
// of the files below SHOAL_TEST_SOURCES, and the same for another highlighter.
func TestSourceRows_renderingSpeedIsPrinted(t *testing.T) {
	dirs := strings.Fields(os.Getenv("SHOAL_TEST_SOURCES"))
	if len(dirs) == 0 {
		t.Skip("NOT RUN: SHOAL_TEST_SOURCES names no directory of sources (make test-colours SOURCES=... does)")
	}

	files := sourcesByLanguage(t, dirs)
	fmt.Println("| language | files, bytes | page of a file, MB/s | all of it coloured, MB/s | results, MB/s | chroma, MB/s |\n|---|---|---|---|---|---|")
	for _, language := range slices.Sorted(maps.Keys(files)) {
		texts := files[language]
		size := 0
		for _, text := range texts {
			size += len(text)
		}
		theirs := lexers.Get(language)
		if size < leastOfAll || theirs == nil {
			continue
		}

		results := make([][]shard.Chunk, len(texts))
		for i, text := range texts {
			results[i] = threes(text)
		}

		fmt.Printf("| %s | %d, %d | %.0f | %.0f | %.0f | %.2f |\n", language, len(texts), size,
			rate(texts, func(i int) { appendBlocks(nil, texts[i], language) }),
			rate(texts, func(i int) { drawColoured(texts[i], language) }),
			rate(texts, func(i int) { appendChunks(nil, results[i], language, "/blob/r/a", marking{}) }),
			rate(texts, func(i int) { drawByOther(t, theirs, texts[i]) }))
	}
}

// drawColoured renders a text as its blocks are when they come near the window.
func drawColoured(text []byte, language string) {
	for paint, dst := newPainter(language, 0), []byte(nil); len(text) > 0; {
		var line []byte
		line, text, _ = nextLine(text)
		paint.left = colourBlock
		dst = appendShown(dst, line, paint.colours(line))
	}
}

// threes splits a text into chunks of three lines, with a match in the second.
func threes(text []byte) (chunks []shard.Chunk) {
	offset, number := 0, 1
	for offset < len(text) {
		lines := bytes.SplitAfterN(text[offset:], []byte("\n"), 4)
		lines = lines[:min(len(lines), 3)]
		content := bytes.Join(lines, nil)

		c := shard.Chunk{Content: content, Start: shard.Position{Offset: uint32(offset), Line: uint32(number), Column: 1}}
		if len(lines) == 3 && len(lines[1]) > 8 {
			at := uint32(offset + len(lines[0]))
			c.Ranges = []shard.Range{{Start: shard.Position{Offset: at + 2}, End: shard.Position{Offset: at + 8}}}
		}
		chunks = append(chunks, c)
		offset, number = offset+len(content), number+len(lines)
	}
	return chunks
}

// drawByOther renders a text with line numbers and classes, as pages have them.
func drawByOther(t *testing.T, lexer chroma.Lexer, text []byte) {
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := html.New(html.WithClasses(true), html.WithLineNumbers(true)).Format(io.Discard, styles.Fallback, tokens); err != nil {
		t.Fatal(err)
	}
}

// rate returns how many megabytes are rendered in a second, the best of three. draw renders the
// text with an index.
func rate(texts [][]byte, draw func(int)) (best float64) {
	for range 3 {
		began, drawn := time.Now(), 0
		for time.Since(began) < leastDrawing {
			for i, text := range texts {
				draw(i)
				drawn += len(text)
			}
		}
		best = max(best, float64(drawn)/1e6/time.Since(began).Seconds())
	}
	return best
}

// sourcesByLanguage returns the beginnings of files of the directories, by the language that the
// index detects.
func sourcesByLanguage(t *testing.T, dirs []string) map[string][][]byte {
	out := map[string][][]byte{}
	add := func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) < leastOfEach || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
			return err
		}
		language := shard.Language(path, text)
		if language != "" && len(out[language]) < mostDrawn {
			out[language] = append(out[language], text[:min(len(text), mostOfEach)])
		}
		return nil
	}

	for _, dir := range dirs {
		if err := filepath.WalkDir(dir, add); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
