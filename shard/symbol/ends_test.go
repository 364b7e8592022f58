package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func openReal(t testing.TB) *Pool {
	t.Helper()
	p, err := Open(t.Context(), Options{Processes: 1, Timeout: 60 * time.Second})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(p.Close)
	return p
}

// endsOf returns the definitions of several lines in a file, as "first-last name".
func endsOf(t *testing.T, p *Pool, f File) string {
	t.Helper()
	type extent struct {
		first, last uint32
		name        string
	}
	var all []extent
	err := p.Tag(t.Context(), []File{f}, func(s Symbol) {
		if s.End > 0 && s.End != s.Line {
			all = append(all, extent{s.Line, s.End, string(s.Name)})
		}
	}, func(_ int, err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b extent) int { return int(a.first) - int(b.first) })
	var out []string
	for _, e := range all {
		out = append(out, fmt.Sprintf("%d-%d %s", e.first, e.last, e.name))
	}
	return strings.Join(out, ", ")
}

// In these languages ctags tells no ends, so they come from the text.
func TestDefinitionEnds_followTheIndentation(t *testing.T) {
	t.Parallel()
	p := openReal(t)
	for _, c := range []struct{ name, path, language, text, want string }{
		{"rust", "a.rs", "Rust", `
pub struct Shape {
    w: f64,
}

struct Unit;
struct Pair(i32, i32);

impl Shape {
    #[inline]
    pub fn area(&self) -> f64 { self.w }

    pub fn scale<T>(
        &mut self,
        by: T,
    ) -> Result<(), Error>
    where
        T: Into<f64>,
    {
        self.w *= by.into();

        Ok(())
    }
}

trait Named {
    fn name(&self) -> String;
    fn long(
        &self,
    ) -> String;
    fn shown(&self) {
        println!("{}", self.name()); // }
    }
}

mod tests {
    enum E {
        A,
    }
}
`, "2-4 Shape, 9-24 Shape, 13-23 scale, 26-34 Named, 28-30 long, 31-33 shown, 36-40 tests, 37-39 E"},
		{"javascript", "a.js", "JavaScript", `
export function App({
  a,
  b,
}, ref) {
  return a;
}

class A extends B {
  constructor(x) { this.x = x; }

  get size() {
    return 1;
  }
  run(a,
      b) {
    return () => {
      a();
    };
  }
}

module.exports = {
  h: function () {
    return 2;
  },
  k() {
    return 1;
  },
};
`, "2-7 App, 9-21 A, 12-14 size, 15-20 run, 23-30 exports, 24-26 h, 27-29 k"},
		{"typescript", "a.ts", "TypeScript", `
export interface Props<
  A,
  B = string,
> {
  a: string;
  m(): void;
}

export abstract class A<T> implements I {
  constructor(
    private readonly y: number,
  ) {
    super();
  }
  async m(): Promise<void> {
    await 1;
  }
}

namespace N {
  export function f({
    a,
  }: {
    a: number;
  }): number {
    return a;
  }
}

enum E {
  A,
}
`, "2-8 Props, 10-19 A, 11-15 constructor, 16-18 m, 21-29 N, 22-28 f, 31-33 E"},
		{"php", "a.php", "PHP", `<?php
namespace A\B;

function f($a)
{
    return 1;
}

#[Entity]
abstract class C extends D
{
    public $x;

    public function g(
        int $a,
    ): int {
        return 1;
    }
    abstract function h();
    function i($a,
        $b)
    {
    }
}

trait T {
    function t() { return 1; }
}
`, "4-7 f, 10-24 C, 14-18 g, 20-23 i, 26-28 T"},
		{"kotlin", "a.kt", "Kotlin", `package a

class A(
    val x: Int,
) : Base(x) {
    fun f() = 1
    fun g(): Int {
        return 1
    }
    fun h() =
        listOf(1)
            .filter {
                true
            }

    companion object {
        fun k() {
            1
        }
    }
}

data class D(
    val x: Int,
)

interface I {
    fun i()
}
`, "3-21 A, 7-9 g, 10-14 h, 12-14 <lambda>, 16-20 Companion, 17-19 k, 23-25 D, 27-29 I"},
		{"shell", "a.sh", "Shell", `
f() {
  cat <<X
hello
}
X
  echo
}

g()
{
	if x; then
		y
	fi
}

one() { echo; }

in_own_shell() (
	cd /
)
`, "2-8 f, 3-6 X, 10-15 g, 19-21 in_own_shell"},
		{"lua", "a.lua", "Lua", `
function f(a)
  local t = {
    1,
  }
  return t
end

local function g() return 1 end
`, "2-7 f"},

		{"carriage returns", "a.rs", "Rust", "fn f() {\r\n    1;\r\n\r\n    2;\r\n}\r\nfn g() {}\r\n", "1-5 f"},
		{"no newline at the end", "a.rs", "Rust", "fn f() {\n    1\n}", "1-3 f"},
		{"cut short", "a.rs", "Rust", "mod m {\n    fn f() {\n        1\n    }\n", "2-4 f"},
		{"one long line", "a.js", "JavaScript", strings.Repeat("function f(){return{a:1}};", 500), ""},
		{"two in a line", "a.js", "JavaScript", "class A { constructor(x) { this.x = x; }\n  f() {}\n}\n", "1-3 A"},
		{"two braces in a line", "a.rs", "Rust", "mod a { mod b {\n    fn f() {}\n}\n}\n", ""},
		{"text at the margin", "a.js", "JavaScript", "class A {\n  f() {\n    return `\ntext\n`;\n  }\n}\nfunction g() {\n  1;\n}\n", "8-10 g"},
		{"a brace at the margin of a text", "a.js", "JavaScript", "function f() {\n  return `\n}\n  text`;\n}\n", ""},
		{"lines for a preprocessor", "a.rs", "Rust", "mod m {\n    fn f() {\n#if X\n        1;\n//      2;\n    }\n}\n", "1-7 m, 2-6 f"},
		{"braces in a line of their own", "a.ts", "TypeScript", "function f(\n  a: number\n)\n{\n  return a;\n}\n", "1-6 f"},
		{"tabs and spaces that agree", "a.rs", "Rust", "impl A {\n\tfn f() {\n\t    1\n\t}\n}\n", "1-5 A, 2-4 f"},
		{"tabs and spaces that do not", "a.rs", "Rust", "impl A {\n\tfn f() {\n        1\n\t}\n}\n", "1-5 A"},
		{"not set in", "a.sh", "Shell", "f() {\nif x; then\n\ty\nfi\n}\n", ""},
		{"templates", "a.ts", "TypeScript", "class Map<\n  K,\n  V\n> extends Base<K> {\n  get(): V {\n    return 1;\n  }\n}\n", "1-8 Map, 5-7 get"},
		{"what follows a comma", "a.js", "JavaScript", "var o = {\n  a: function() {\n    1;\n  }, b: function() {\n    2;\n  }\n};\n", "1-7 o, 2-4 a, 4-6 b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := endsOf(t, p, File{Path: c.path, Language: c.language, Content: []byte(c.text)}); got != c.want {
				t.Errorf("ends are\n%s, want\n%s, of\n%s", got, c.want, c.text)
			}
		})
	}
}

// If ctags tells an end, the text gives the same end or none.
func TestDefinitionEnds_agreeWithCtags(t *testing.T) {
	t.Parallel()
	p := openReal(t)
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	more, _ := filepath.Glob("../../node/*/*.go")
	all, exact, none := 0, 0, 0
	for _, path := range append(files, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range bothEnds(t, p, File{Path: path, Language: "Go", Content: text}) {
			all++
			switch pair[1] {
			case pair[0]:
				exact++
			case 0:
				none++
			default:
				t.Logf("%s: ends at %d, want %d", path, pair[1], pair[0])
			}
		}
	}
	t.Logf("%d ends of ctags: %d found, %d left open, %d otherwise", all, exact, none, all-exact-none)
	if all < 1000 || exact*100 < all*97 || (all-exact-none)*500 > all {
		t.Errorf("%d ends of ctags: %d found, %d left open", all, exact, none)
	}
}

// bothEnds returns, for the definitions whose end ctags tells, that end and the end found in the
// text.
func bothEnds(t *testing.T, p *Pool, f File) (pairs [][2]uint32) {
	t.Helper()
	var e ends
	err := p.Tag(t.Context(), []File{f}, func(s Symbol) {
		if s.End > s.Line && hasBody(s.Kind) {
			pairs = append(pairs, [2]uint32{s.End})
			s.End = 0
			e.addSymbol(s, nil)
		}
	}, func(_ int, err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	e.finish(f.Content, func(s Symbol) {
		pairs[i][1] = s.End
		i++
	})
	return pairs
}

func TestDefinitionEnds_preferThoseFromCtags(t *testing.T) {
	t.Parallel()
	text := "class A {\n  f() {\n    1\n  }\n  g() {\n    1\n  }\n}\n"
	for _, c := range []struct {
		name    string
		symbols []Symbol
		want    string
	}{
		{"none", []Symbol{{Kind: "class", Line: 1}, {Kind: "method", Line: 2}, {Kind: "method", Line: 5}}, "1-8 2-4 5-7"},
		{"of the method", []Symbol{{Kind: "class", Line: 1}, {Kind: "method", Line: 2, End: 3}}, "1-8 2-3"},
		{"of the class", []Symbol{{Kind: "class", Line: 1, End: 6}, {Kind: "method", Line: 2}, {Kind: "method", Line: 5}}, "1-6 2-4 5-0"},
		{"in any order", []Symbol{{Kind: "method", Line: 5}, {Kind: "method", Line: 2}, {Kind: "class", Line: 1, End: 6}}, "5-0 2-4 1-6"},
		{"other kinds", []Symbol{{Kind: "macro", Line: 1}, {Kind: "method", Line: 2}, {Kind: "member", Line: 5}}, "1-0 2-4 5-0"},
	} {
		var got []string
		use := func(s Symbol) { got = append(got, fmt.Sprintf("%d-%d", s.Line, s.End)) }
		var e ends
		for _, s := range c.symbols {
			e.addSymbol(s, use)
		}
		e.finish([]byte(text), use)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A hostile file has as many definitions as are read, and each stays open as long as possible. That
// is fast unless lines are read again and again.
func TestDefinitionEnds_takeLinearTimeForManyOpenDefinitions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<21)
	var deep strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&deep, "%sf() {\n", strings.Repeat(" ", i))
	}
	for name, text := range map[string]string{
		"deeper and deeper":  deep.String() + "}" + long,
		"side by side":       strings.Repeat("f() {\n  1\n}\n", maxSymbols/2),
		"never closed":       strings.Repeat("f() {\n", maxSymbols/2),
		"in one line":        strings.Repeat("f() {", maxSymbols/2),
		"goes on each other": strings.Repeat("}, f() {\n", maxSymbols/2),
	} {
		var e ends
		line := uint32(1)
		for i := range text {
			switch text[i] {
			case '\n':
				line++
			case 'f':
				e.addSymbol(Symbol{Name: []byte("f"), Kind: "function", Line: line}, nil)
			}
		}
		held, lines := 0, uint32(strings.Count(text, "\n")+1)
		e.finish([]byte(text), func(s Symbol) {
			held++
			if s.End != 0 && (s.End <= s.Line || s.End > lines) {
				t.Fatalf("%s: ends at %d of %d, begins at %d", name, s.End, lines, s.Line)
			}
		})
		if held == 0 {
			t.Errorf("%s: no definitions", name)
		}
	}
}

func TestDefinitionEnds_allocateNothingPerLine(t *testing.T) {
	text := []byte(strings.Repeat("f() {\n  a();\n\n  b(); // c\n}\n", 1000))
	var e ends
	symbol := Symbol{Name: []byte("f"), Kind: "function"}
	use := func(Symbol) {}
	allocated := testing.AllocsPerRun(10, func() {
		e.reset()
		for i := range uint32(1000) {
			symbol.Line = 1 + 5*i
			e.addSymbol(symbol, use)
		}
		e.finish(text, use)
	})
	if allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// FuzzDefinitionEnds_areNestedAndInTheFile checks that ends lie in the file, that ctags' own ends
// stay, that no end is beyond a known definition around it, and that definitions are nested or
// apart.
func FuzzDefinitionEnds_areNestedAndInTheFile(f *testing.F) {
	f.Add("class A {\n  f() {\n  }\n}\n", []byte{1, 0, 2, 0})
	f.Add("fn f(\n  a,\n) -> T\nwhere\n  T: X,\n{\n\t}\n}\n", []byte{1, 0, 3, 7, 4, 0})
	f.Add("a(\n)\n{\n  b() {\n  }, c() {\n }\n}\n> end\n", []byte{1, 0, 2, 0, 3, 0, 4, 0, 5, 3})
	f.Fuzz(func(t *testing.T, text string, marks []byte) {
		var e ends
		var told, got []Symbol
		use := func(s Symbol) { got = append(got, s) }
		for i := 0; i+1 < len(marks) && i < 400; i += 2 {
			s := Symbol{Kind: []string{"method", "property"}[marks[i+1]/3%2], Line: uint32(marks[i]), ParentName: []byte(strings.Repeat("p", int(marks[i+1]%3)))}
			if known := uint32(marks[i+1]) / 16; known > 0 {
				s.End = s.Line + known
			}
			told = append(told, s)
			e.addSymbol(s, use)
		}
		e.finish([]byte(text), use)

		if len(got) != len(told) {
			t.Fatalf("%d symbols of %d", len(got), len(told))
		}
		lines := uint32(strings.Count(text, "\n") + 1)
		for i, s := range got {
			if told[i].End != 0 {
				if s.End != told[i].End {
					t.Fatalf("end %d of ctags became %d", told[i].End, s.End)
				}
				continue
			}
			if s.End == 0 {
				continue
			}
			if s.End <= s.Line || s.End > lines {
				t.Fatalf("%d-%d in a file of %d lines", s.Line, s.End, lines)
			}
			for k, o := range got {
				around := o.Line <= s.Line && s.Line <= o.End && (told[k].End > o.Line || o.Line < s.Line && s.Line < o.End)
				if around && s.End > o.End {
					t.Fatalf("%d-%d reaches out of %d-%d, ctags' own %v", s.Line, s.End, o.Line, o.End, told[k].End > 0)
				}
			}
		}
	})
}
