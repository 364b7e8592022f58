package symbols

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSignature_isReadFromTheSource(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for _, c := range []struct{ lang, text, name, want string }{
		{"Go", "package a\n\nfunc Join(a string) error {\n\treturn nil\n}\n", "Join", "func Join(a string) error"},
		{"Go", "func Join(\n\ta string, // the (first\n\tb string,\n) (string, error) {\n\treturn a, nil\n", "Join", "func Join( a string, b string, ) (string, error)"},
		{"Go", "func F(v interface{}) map[string]interface{} {\n\treturn nil", "F", "func F(v interface{}) map[string]interface{}"},
		{"Go", "func F() interface{} { return 1 }\nfunc G()", "F", "func F() interface{}"},
		{"Go", "type R interface {\n\tRead() error\n}", "R", "type R interface"},
		{"Go", "type R interface {\n\tRead() error\n\tClose()\n}", "Read", "Read() error"},
		{"Go", "const sep = \"({[\"\nvar x int", "sep", "const sep = \"({[\""},
		{"C", "int\tadd(int a,\r\n\tint b);\r\nint sub();", "add", "int\tadd(int a, int b)"},
		{"C++", "void A::run()\n{\n\tgo();\n}", "run", "void A::run()"},
		{"C++", "void f() {}\nvoid g();", "f", "void f()"},
		{"Java", "  int read(byte[] b)\n      throws IOException {\n    return 1;", "read", "int read(byte[] b) throws IOException"},
		{"Rust", "pub fn f<'a, T>(x: &'a T) -> bool\nwhere T: Eq,\n{\n", "f", "pub fn f<'a, T>(x: &'a T) -> bool where T: Eq,"},
		{"Python", "def join(a='(',  # the (first\n         b=2):\n    return a", "join", "def join(a='(', b=2):"},
		{"TypeScript", "export function f({a, b}: P): void {\n", "f", "export function f({a, b}: P): void"},
		{"Common Lisp", "(defun join (a b)\n  (list a b))", "join", "(defun join (a b)"},
		{"Go", "const (\n\tRed = iota,\n\tGreen\n)", "Red", "Red = iota,"},
		{"Go", "func Cut(", "Cut", "func Cut("}, // the text ends before the signature does
		{"Go", "func Cut(\n" + strings.Repeat("\n", 20) + "a int) {", "Cut", "func Cut("},
		{"Go", long + " Far(a int) {", "Far", "Far(a int)"},
		{"Go", "func É" + long, "É", "func É" + long[:signatureBytes-7]},
		{"Go", "func " + strings.Repeat("é", 300), "é", "func " + strings.Repeat("é", 97)},
		{"", "a\xff\xfe(b)", "a", "a\xff\xfe(b)"},
	} {
		got := signature(c.lang, []byte(c.text), strings.Index(c.text, c.name))
		if got != c.want {
			t.Errorf("%s %.60q: %q, want %q", c.lang, c.text, got, c.want)
		}
	}
}

// Whatever a file holds, a signature is short, on one line, and has no part of a letter
// that the file has whole.
func FuzzSignature_isShortAndOnOneLine(f *testing.F) {
	f.Add("Go", "func F(\n\ta int,\n) {", 5)
	f.Add("C", "/* ( \n * x */ int f(\"\\", 12)
	f.Add("Python", strings.Repeat("é", 300), 2)
	f.Fuzz(func(t *testing.T, lang, text string, at int) {
		if at < 0 || at > len(text) {
			t.Skip("no place in the text")
		}
		got := signature(lang, []byte(text), at)
		if len(got) > signatureBytes || strings.Contains(got, "\n") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if utf8.ValidString(text) && utf8.RuneStart((text + " ")[at]) && !utf8.ValidString(got) && len(got) > signatureBytes-utf8.UTFMax {
			t.Errorf("a letter was cut: %q", got)
		}
	})
}
