package lex_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"

	"github.com/shoalsearch/shoal/shard/lex"
)

// language is a row of the comparison: extensions, and the names in package lex and in the other
// highlighter.
type language struct{ endings, ours, theirs string }

var languages = []language{
	{".c .h", "C", "C"}, {".cpp .cc", "C++", "C++"}, {".go", "Go", "Go"}, {".rs", "Rust", "Rust"}, {".java", "Java", "Java"}, {".cs", "C#", "C#"},
	{".kt", "Kotlin", "Kotlin"}, {".scala", "Scala", "Scala"}, {".swift", "Swift", "Swift"}, {".dart", "Dart", "Dart"}, {".js", "JavaScript", "JavaScript"},
	{".ts", "TypeScript", "TypeScript"}, {".py", "Python", "Python"}, {".rb", "Ruby", "Ruby"}, {".pl .pm", "Perl", "Perl"}, {".php", "PHP", "PHP"},
	{".sh", "Shell", "Bash"}, {".sql", "SQL", "SQL"}, {".lua", "Lua", "Lua"}, {".hs", "Haskell", "Haskell"}, {".ml", "OCaml", "OCaml"},
	{".el", "Emacs Lisp", "EmacsLisp"}, {".scm", "Scheme", "Scheme"}, {".clj", "Clojure", "Clojure"}, {".erl", "Erlang", "Erlang"}, {".ex", "Elixir", "Elixir"},
	{".r", "R", "R"}, {".jl", "Julia", "Julia"}, {".html", "HTML", "HTML"}, {".xml", "XML", "XML"}, {".css", "CSS", "CSS"}, {".scss", "SCSS", "SCSS"},
	{".json", "JSON", "JSON"}, {".yml .yaml", "YAML", "YAML"}, {".toml", "TOML", "TOML"}, {".mk", "Makefile", "Makefile"}, {".cmake", "CMake", "CMake"},
	{".proto", "Protocol Buffer", "Protocol Buffer"}, {".tcl", "Tcl", "Tcl"}, {".tf", "HCL", "HCL"}, {".vim", "Vim Script", "VimL"},
	{".ps1", "PowerShell", "PowerShell"}, {".zig", "Zig", "Zig"}, {".f90", "Fortran", "Fortran"}, {".pas", "Pascal", "ObjectPascal"},
	{".v", "Verilog", "verilog"}, {".tex", "TeX", "TeX"},
}

// agreed is the least share of comments that both must find. YAML is left out, because here a #
// in a block of text begins a comment.
const agreed = 0.85

// Limits of the comparison, because a grammar takes seconds for a megabyte.
const (
	mostFiles  = 12
	mostBytes  = 60 << 10
	leastBytes = 500
)

// TestHighlighter_agreesWithAGrammarBasedHighlighter compares comments and strings in the files below
// SHOAL_TEST_SOURCES with those of a highlighter that has a grammar for each language, and prints
// a table.
func TestHighlighter_agreesWithAGrammarBasedHighlighter(t *testing.T) {
	dirs := strings.Fields(os.Getenv("SHOAL_TEST_SOURCES"))
	if len(dirs) == 0 {
		t.Skip("NOT RUN: SHOAL_TEST_SOURCES names no directory of sources (make test-colours SOURCES=... does)")
	}
	files := sources(t, dirs)
	fmt.Println("| language | files, bytes | comments | texts | all | ours, MB/s | theirs, MB/s |\n|---|---|---|---|---|---|---|")
	for _, l := range languages {
		s := compareAll(t, l, files)
		if s.files == 0 {
			continue
		}
		fmt.Printf("| %s | %d, %d | %.3f | %.3f | %.4f | %.0f | %.2f |\n", l.ours, s.files, s.bytes,
			ratio(s.both[0], s.either[0]), ratio(s.both[1], s.either[1]), 1-float64(s.differ)/float64(s.bytes), s.rate(s.took[0]), s.rate(s.took[1]))
		if r := ratio(s.both[0], s.either[0]); r < agreed && l.ours != "YAML" {
			t.Errorf("%s: both see %.3f of the comments, want %.2f:\n%s", l.ours, r, agreed, strings.Join(s.shown, "\n"))
		}
	}
}

// compareAll compares the files of a language.
func compareAll(t *testing.T, l language, files map[string][][]byte) *sum {
	s := &sum{}
	other := lexers.Get(l.theirs)
	if other == nil {
		t.Fatalf("there is no grammar %q", l.theirs)
	}
	for ending := range strings.FieldsSeq(l.endings) {
		for _, text := range files[ending] {
			s.compare(t, l.ours, other, text)
		}
	}
	return s
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}

// sources returns files of the directories, by extension.
func sources(t *testing.T, dirs []string) map[string][][]byte {
	out := map[string][][]byte{}
	for _, l := range languages {
		for ending := range strings.FieldsSeq(l.endings) {
			out[ending] = nil
		}
	}

	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			ending := strings.ToLower(filepath.Ext(path))
			if had, known := out[ending]; !known || len(had) >= mostFiles || !d.Type().IsRegular() {
				return nil
			}

			b, err := os.ReadFile(path)
			if err == nil && len(b) >= leastBytes && utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 && bytes.IndexByte(b, '\r') < 0 {
				out[ending] = append(out[ending], b[:min(len(b), mostBytes)])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// sum is the result for the files of a language. The classes are comments and strings.
type sum struct {
	files, bytes, differ int
	both, either         [2]int
	took                 [2]time.Duration
	shown                []string
}

func (s *sum) rate(d time.Duration) float64 { return float64(s.bytes) / 1e6 / d.Seconds() }

func (s *sum) compare(t *testing.T, ours string, other chroma.Lexer, text []byte) {
	var a, b []lex.Class
	var ok bool
	s.took[0] += fastest(func() { a = painted(lex.For(ours), text) })
	s.took[1] += fastest(func() { b, ok = grammar(t, other, text) })
	if !ok {
		return
	}
	s.files, s.bytes = s.files+1, s.bytes+len(text)

	at := -1
	for i, c := range text {
		if c <= ' ' || b[i] == unsure {
			continue // line ends and blanks do not count
		}
		for k, class := range []lex.Class{lex.Comment, lex.String} {
			if a[i] == class || b[i] == class {
				s.either[k]++
			}
			if a[i] == class && b[i] == class {
				s.both[k]++
			}
		}
		if a[i] == b[i] {
			continue
		}
		if s.differ++; (at < 0 || i > at+80) && len(s.shown) < 12 {
			line, _, _ := bytes.Cut(text[bytes.LastIndexByte(text[:i], '\n')+1:], []byte("\n"))
			s.shown = append(s.shown, fmt.Sprintf("at %q: ours %d, theirs %d: %.100s", text[i:min(len(text), i+12)], a[i], b[i], line))
		}
		at = i
	}
}

// fastest returns the shortest duration of three runs.
func fastest(do func()) (least time.Duration) {
	for range 3 {
		began := time.Now()
		do()
		if took := time.Since(began); least == 0 || took < least {
			least = took
		}
	}
	return least
}

// painted returns the class of each byte, only for comments and strings.
func painted(l *lex.Lang, text []byte) []lex.Class {
	out := make([]lex.Class, len(text))
	state, at := lex.State(0), 0
	var spans []lex.Span
	for line := range bytes.Lines(text) {
		spans, state = l.Line(bytes.TrimSuffix(line, []byte("\n")), state, spans[:0])
		for _, s := range spans {
			if s.Class != lex.Comment && s.Class != lex.String {
				continue
			}
			for i := s.Start; i < s.End; i++ {
				out[at+i] = s.Class
			}
		}
		at += len(line)
	}
	return out
}

// unsure are classes in which the two differ on purpose: directives, symbols, expressions,
// interpolations, and keys of JSON. They do not count.
const unsure = lex.Class(99)

func classOf(token chroma.Token) lex.Class {
	switch token.Type {
	case chroma.CommentPreproc, chroma.CommentPreprocFile, chroma.LiteralStringSymbol, chroma.LiteralStringRegex, chroma.LiteralStringInterpol, chroma.LiteralStringAffix,
		chroma.LiteralStringName, chroma.LiteralStringAtom, chroma.LiteralStringHeredoc, chroma.NameTag, chroma.NameVariable, chroma.NameAttribute, chroma.CommentHashbang:
		return unsure
	case chroma.LiteralStringDoc:
		if v := strings.TrimSpace(token.Value); strings.HasPrefix(v, "/") || strings.HasPrefix(v, "*") || strings.HasPrefix(v, "#") {
			return lex.Comment // written as one
		}
	}
	switch {
	case token.Type.InCategory(chroma.Comment):
		return lex.Comment
	case token.Type.InSubCategory(chroma.LiteralString):
		return lex.String
	}
	return lex.Plain
}

// grammar is painted with the other highlighter. ok is false if it loses bytes.
func grammar(t *testing.T, l chroma.Lexer, text []byte) (out []lex.Class, ok bool) {
	it, err := chroma.Coalesce(l).Tokenise(&chroma.TokeniseOptions{State: "root"}, string(text))
	if err != nil {
		t.Log(err)
		return nil, false
	}
	out = make([]lex.Class, 0, len(text)+1) // some grammars need a line end
	for token := it(); token != chroma.EOF; token = it() {
		class := classOf(token)
		for range len(token.Value) {
			out = append(out, class)
		}
	}
	return out, len(out) >= len(text)
}

// TestHighlighter_coloursPiecesLikeTheirFile colours pieces of three lines, as results have them,
// of the files below SHOAL_TEST_SOURCES. It prints how many lines have other colours than in their
// file.
func TestHighlighter_coloursPiecesLikeTheirFile(t *testing.T) {
	dirs := strings.Fields(os.Getenv("SHOAL_TEST_SOURCES"))
	if len(dirs) == 0 {
		t.Skip("NOT RUN: SHOAL_TEST_SOURCES names no directory of sources (make test-colours SOURCES=... does)")
	}
	files := sources(t, dirs)
	fmt.Println("| language | lines | other colours, of 1,000 | without a guess |\n|---|---|---|---|")
	for _, of := range languages {
		l := lex.For(of.ours)
		lines, wrong, plain := 0, 0, 0
		for ending := range strings.FieldsSeq(of.endings) {
			for _, text := range files[ending] {
				n, w, p := pieces(l, text)
				lines, wrong, plain = lines+n, wrong+w, plain+p
			}
		}
		if lines > 0 {
			fmt.Printf("| %s | %d | %.1f | %.1f |\n", of.ours, lines, 1000*ratio(wrong, lines), 1000*ratio(plain, lines))
		}
	}
}

// pieces counts the lines of all pieces of a text, those that have other colours than in the text,
// and those that would if a piece never began within a comment.
func pieces(l *lex.Lang, text []byte) (lines, wrong, plain int) {
	all := bytes.SplitAfter(text, []byte{'\n'})
	whole := make([][]lex.Span, len(all))
	state := lex.State(0)
	for i, line := range all {
		whole[i], state = l.Line(bytes.TrimRight(line, "\n"), state, nil)
	}

	const size = 3
	for first := 0; first+size <= len(all); first++ {
		guessed, none := l.Enter(bytes.Join(all[first:first+size], nil)), lex.State(0)
		for i := first; i < first+size; i++ {
			var spans []lex.Span
			line := bytes.TrimRight(all[i], "\n")
			lines++
			if spans, guessed = l.Line(line, guessed, nil); !slices.Equal(spans, whole[i]) {
				wrong++
			}
			if spans, none = l.Line(line, none, nil); !slices.Equal(spans, whole[i]) {
				plain++
			}
		}
	}
	return lines, wrong, plain
}
