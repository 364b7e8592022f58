package lex

import (
	"strings"
	"testing"
)

// colour writes the classes under a text: one letter for each byte.
func colour(l *Lang, text string) string {
	var out []string
	state := State(0)
	for line := range strings.SplitSeq(text, "\n") {
		var spans []Span
		spans, state = l.Line([]byte(line), state, nil)
		row := []byte(strings.Repeat(".", len(line)))
		for _, s := range spans {
			for i := s.Start; i < s.End; i++ {
				row[i] = ".csnktd"[s.Class]
			}
		}
		out = append(out, string(row))
	}
	return strings.Join(out, "\n")
}

func TestHighlighter_coloursEachLanguage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, text, want string }{
		{"Go", "x := `a\nb` // c 1", ".....ss\nss.cccccc"},
		{"Go", "if 'a' /* 1 */ + 2", "kk.sss.ccccccc...n"},
		{"Rust", `r#"a"b"# 'x' fn f<'a>`, `ssssssss.sss.kk......`},
		{"C", "#include <x>\nint a;", "dddddddd....\nttt..."},
		{"Python", "\"\"\"a\nb\"\"\" # c", "ssss\nssss.ccc"},
		{"Shell", "a=$#; # c", "......ccc"},
		{"Text", "don't \"know", "..........."},
		{"Lua", "--[[ a\nb ]] x -- c", "cccccc\ncccc...cccc"},
		{"Julia", "#= a\nb =# x", "cccc\ncccc.."},
		{"Tcl", "set a 1; # c", "kkk...n" + "cccccc"[1:]},
		{"Shell", `echo \" # c "x"`, `........ccccccc`},
		{"Vim Script", "let a = \"x\"\n  \" c", "kkk.....sss\n..ccc"},
		{"YAML", "a: b ;; c # d\n'e'", "..........ccc\nsss"},
		{"Tcl", "upvar #0 x\n # c", "kkkkk..n..\n.ccc"},
		{"TeX", `a \% b % c`, "......" + "." + "ccc"},
		{"Emacs Lisp", `(?\" "s" ?\; a) ; c`, ".....sss........ccc"},
		{"Haskell", "{- a {- b -} c -} d", "ccccccccccccccccc.."},
		{"Perl", "=head1 a\n\nit's =cut\n=cut\n$a=b; =c 'd'", "cccccccc\n\nccccccccc\ncccc\n.........sss"},
		{"HTML", `a "b" don't <p id="x">1 code`, `.............k....sss.......`},
		{"HTML", "<!-- a\n\"b --> \"c\" <p\nid='d\n\ne'>'f'", "cccccc\ncccccc......k\n...ss\n\nss...."},
		{"HTML", "<script src=\"a\">// b </p>\nif /* <\n\n*/ 'c'</Script> if 'd'", ".kkkkkk.....sss.ccccccccc\nkk.cccc\n\ncc.sss..kkkkkk........"},
		{"HTML", "<style>a { b: \"c\" } /*\n</style> 'x'", ".kkkkk........sss...cc\n..kkkkk....."},
		{"HTML", `a < b "c" <!-- d -->"e"`, "..........cccccccccc..."},
		{"XML", "<a>if</a><script>/* a */\n<x:p v=\"1\n2\"> <![CDATA[ a\nb]]>'", ".k.....k..kkkkkk........\n.kkk...ss\nss..sssssssssss\nssss."},
	} {
		if got := colour(For(c.language), c.text); got != c.want {
			t.Errorf("%s %q\n got %q\nwant %q", c.language, c.text, got, c.want)
		}
	}
}

func TestHighlighter_guessesTheStateAtTheStartOfAPart(t *testing.T) {
	t.Parallel()
	l := For("Go")
	if l.Enter([]byte("still a comment */ x")) == 0 || l.Enter([]byte("x /* y */")) != 0 {
		t.Error("a comment that closes before any opens was open before")
	}
	for _, c := range []struct {
		language, part string
		open           bool
	}{
		{"C", " *\n * entry = add(d, NULL);\n * if (entry)\n", true},
		{"C", "\t* if it is NULL\n", true},
		{"C", " *p = NULL;\n", false},
		{"C", "a\n * b\n", false},
		{"Shell", " * if\n", false},
		{"Python", "    the last line of a text.\n    \"\"\"\n    return None\n", true},
		{"Python", "    the last line of a text.\"\"\"\n", true},
		{"Python", "def f():\n    \"\"\"\n    text\n", false},
		{"Python", "def f():\n    \"\"\"text\n", false},
		{"Python", "    x = \"\"\"\n", false},
		{"Python", "    return \"\"\"\n", false},
		{"Python", "\"\"\"\n", false},
		{"Python", "    This requires an active request or application context, and calls\n    :meth:`x`\n", true},
		{"Python", "    if name not in list or not other is None and x:\n", false},
		{"Python", "    raise TypeError(\"this is a text of several words\")  # and a comment of several words\n", false},
		{"Python", "    x()\n    \"\"\"a text of several words\n", false},
		{"C", "   the table is resized while it is read\n   if (x)\n", true},
		{"C", "static const unsigned long long int name = 1;\n", false},
		{"Go", "package lex scans the source code", true},
		{"JavaScript", "  <p>Click here to see more</p>\n", false},
		{"SQL", "select name from people where id in\n", false},
	} {
		if open := For(c.language).Enter([]byte(c.part)) != 0; open != c.open {
			t.Errorf("%s %q: open is %t", c.language, c.part, open)
		}
	}
}

// FuzzHighlighter_spansAreOrderedAndDisjoint checks that spans are in order, within the line and disjoint.
func FuzzHighlighter_spansAreOrderedAndDisjoint(f *testing.F) {
	f.Add("Rust", "r###\"\"# \"##\n'\\", uint16(0))
	f.Fuzz(func(t *testing.T, language, text string, _ uint16) {
		l, state := For(language), State(0)
		for line := range strings.SplitSeq(text, "\n") {
			var spans []Span
			spans, state = l.Line([]byte(line), state, nil)
			at := 0
			for _, s := range spans {
				if s.Start < at || s.End <= s.Start || s.End > len(line) || s.Class == Plain {
					t.Fatalf("%s %q: spans %v", language, line, spans)
				}
				at = s.End
			}
		}
	})
}
