package tool

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/symbols"
)

// callSamples has lines of each language that use f: those that call it, and behind
// an empty line those that do not.
var callSamples = map[string]string{
	"C": `
		x = f(1);
		if (!f (a, b)) return;
		p->f(x)

		struct f *p;
		cb = f;
		g(f, 1);
		f.x = 1;
		my_f(1); f2(1);`,
	"C++": `
		auto p = std::make<f>(), q = f<T>(1);
		auto p = f<std::vector<std::pair<int, T>>>(a);
		x.template f<int>(1);
		auto w = f{1};
		auto w = f<int>{1, 2};
		new ns::f;
		return f(1) < 2;

		f<int> x;
		std::vector<f> v;
		if (f < 3 && x > (y)) {
		using ns::f;
		auto g = &f;`,
	"Cuda": `
		f<<<grid, block>>>(a);
		f<T><<<grid, block>>>(a);

		auto k = f;`,
	"Objective-C": `
		[self f];
		[[self x] f:1];
		[a with:b f];
		f(1);
		[t addTarget:self action:@selector(f:)];

		- (void)f:(int)x {
		id x = self.f2;`,
	"C#": `
		f(1);
		var x = f<Dictionary<string, List<T>>>(1);
		new f { A = 1 };
		[f]
		[f(1)]

		public class A : f
		Func<int> g = f;`,
	"Java": `
		this.f(1);
		Lists.<String>f(x);
		f(x);
		@f
		@f(value = 1)
		list.map(Foo::f)
		new f<>(1);
		new f<Map<A, B>>(1);

		import a.b.f;
		f x = y;
		class A extends f {`,
	"Kotlin": `
		lock.f { x }
		lock.f<List<Map<K, V>>> { x }
		f(1) { it }
		if (x) f { 1 } else 2
		is A -> f { 1 }
		val x = f<T>()
		xs.map(::f)
		xs.map(Foo::f)
		@f
		@get:f
		val y = a f b
		x f 3

		class A : f {
		object : f {
		fun a(): f {
		import a.f
		fun <T> Lock.f(x: Int) {
		inline fun f(x: Int)
		val f = 1
		private val f = a`,
	"Swift": `
		f { x in x }
		a.f(1) { $0 }
		try f()
		x.f?()
		@f var x = 1
		#f(1)
		Button(action: #selector(f))
		a.f<T>(1)

		if f {
		if let x = f {
		func a() -> f {
		struct A: f {
		let x: f = 1`,
	"Scala": `
		f(1)
		f { x => x }
		f[Map[K, V]](1)
		xs f y
		new f
		new f[A]
		@f
		x.f
		x.f.g
		case a => f { 1 }

		class A extends f {
		class B extends A with f {
		def a: f = {
		val f = 1`,
	"Groovy": `
		f { x }
		f 'x'
		f name: 1
		f(1)
		xs.each(this.&f)
		@f
		new f()

		def f = 1
		import a.f`,
	"TypeScript": `
		f(1)
		const t = f<AppRouter>();
		const t = f<Map<string, () => void>>({
		x?.f?.(1)
		f!(1)
		@f
		@f()
		new f
		new a.f<T>()
		f` + "`text`" + `

		import { f } from './f';
		export default f;
		const x: f<T> = 1;
		function f(a) {
		async function* f(a) {
		xs.map(f)`,
	"TSX": `
		<f a={1} />
		return <f>
		f<T>(1)

		const x: Array<f> = []
		</f>`,
	"Go": `
		f(1)
		go x.f(1)
		defer f[int](1)
		f[map[string]int](1)

		func f(a int) {
		func (s *S) f(a int) {
		x := f
		var a = f{1}`,
	"Lua": `
		f(1)
		o:f(1)
		f"text"
		f{1}
		f 'x'
		f[[text]]

		local function f(a)
		function M.f(a)
		function M:f(a)
		x = f`,
	"Rust": `
		f!(1);
		f![1];
		f! { 1 }
		a::f!(1);
		f(1)
		x.f::<Vec<Result<A, B>>>()
		x.f::<T>(1)
		#[f]
		#[derive(Debug, f)]
		xs.map(Foo::f)

		macro_rules! f {
		pub fn f(a: u8)
		pub fn f<T>(a: T)
		use a::f;
		let x: f = 1;`,
	"D": `
		f(1);
		f!int(1);
		f!(int, 2)(1);
		xs.f;

		alias g = f;`,
	"Python": `
		f(1)
		x = await a.f (1)
		@f
		@a.b.f
		@f(1)

		def f(a):
		async def f(a):
		class f(Base):
		from a import f
		xs.map(f)
		f.delay`,
	"Julia": `
		f(1)
		f.(xs)
		f{T}(1)
		@f x
		xs |> f

		function f(a)
		map(f, xs)`,
	"PHP": `
		f(1);
		$this->f(1);
		A::f(1);
		new \a\f;
		#[f]

		function f($a) {
		use a\f;
		$f(1)`,
	"Perl": `
		f(1);
		$x->f;
		$x->f(1);
		&f;
		f $x, 1;
		f;

		sub f {
		my $f = 1;`,
	"Ruby": `
		f do |x|
		a.f do
		f { |x| x }
		a.f { x }
		f queue: 1
		f :a, 1
		f "x"
		f x
		f(x)
		x.f
		x.f == 1
		f if y
		f
		xs.map(&:f)
		o.send(:f)
		y = f 1
		f [1]
		f -> { 1 }
		f *args
		f &blk

		def f(a)
		def self.f a
		f = 1
		f == 1
		x ? f : y
		:f
		@f
		{ f: 1 }
		f?(1)
		x.f?
		x.f = 1
		attr_reader :f`,
	"Elixir": `
		f(1)
		x |> f()
		x |> f
		x |> M.f
		f x, 1
		f do
		M.f
		Enum.map(xs, &f/1)
		Enum.map(xs, &M.f/1)

		def f(x) do
		defp f(x), do: 1
		f = 1
		:f
		@f 1`,
	"Erlang": `
		x() -> f(1).
		lists:map(fun f/1, Xs)
		lists:map(fun m:f/1, Xs)
		 m:f(1)
		 ?f

		f(X) ->
		-spec f(x()) -> ok.
		 {f, 1}`,
	"Nim": `
		f(1)
		f 1, 2
		x.f

		proc f(a: int) =
		let f = 1`,
	"Shell": `
		f
		f a b
		x | f
		x && f a
		y=$(f a)
		if f; then
		if ! f a; then
		  f || exit
		start) f ;;
		A=1 B=2 f x
		then f

		f() {
		function f {
		f=1
		echo f
		echo $f
		x -f`,
	"PowerShell": `
		f -a 1
		$x = f 1
		Get-X | f
		$o.f(1)

		function f {
		$f = 1`,
	"Makefile": `
		x := $(call f,a)
		y := $(f)

		f := 1
		f: a`,
	"Tcl": `
		f a
		set x [f a]
		if {[f]} {

		proc f {a} {
		set f 1
		puts $f`,
	"Clojure": `
		(f x)
		(a/f x)
		(-> x (f 1))
		#(f %)

		(defn f [x]
		(map f xs)`,
	"Emacs Lisp": `
		(f x)
		(f)
		(mapcar #'f xs)

		(defun f (x)
		(setq x f)`,
	"Haskell": `
		x = f 1
		x = g (f y)
		x = a ` + "`f`" + ` b
		x = g $ f y
		x = g . f
		  f x >>= g

		f x = 1
		f :: Int -> Int
		import A (f)
		x = f`,
	"OCaml": `
		let x = f 1
		x |> f
		let x = f (1)
		let x = M.f y

		let f x = 1
		let rec f x = 1
		List.map f`,
	"R": `
		f(1)
		a::f(1)
		x %f% y

		f <- function(x) 1
		lapply(x, f)`,
	"SQL": `
		SELECT f(a) FROM t
		CALL f
		EXEC dbo.f 1
		EXECUTE FUNCTION f()

		CREATE FUNCTION f(a int)
		INSERT INTO f (a)
		CREATE TABLE f (a int)
		SELECT f FROM t`,
	"Fortran": `
		call f
		x = f(1)

		subroutine f
		use f`,
	"Pascal": `
		f;
		a.f(1);

		procedure f(a: integer);
		x := f2;`,
	"Assembly": `
		call f
		bl f
		jmp f

		f:
		.globl f`,
	"JSON": `

		{"f": "f(1)"}`,
}

// TestFunctionCalls_areRecognizedInEachLanguage tells calls from other uses in each language.
func TestFunctionCalls_areRecognizedInEachLanguage(t *testing.T) {
	t.Parallel()
	for lang, sample := range callSamples {
		calling, others, _ := strings.Cut(sample, "\n\n")
		for i, text := range []string{calling, others} {
			for line := range strings.Lines(text) {
				line = strings.TrimLeft(strings.TrimRight(line, "\n"), "\t")
				if line == "" {
					continue
				}
				if got, known := calls(lang, "f", []byte(line)); got != (i == 0) || !known {
					t.Errorf("%s %q: calls %v, known %v", lang, line, got, known)
				}
			}
		}
	}
	if len(callSamples) < 30 {
		t.Errorf("only %d languages", len(callSamples))
	}
	if _, known := calls("Brainfuck", "f", []byte("f")); known {
		t.Error("calls of an unknown language are known")
	}
}

// TestFunctionCalls_withParenthesesAreFoundInAllLanguages compares with a plain scan for a name
// before a parenthesis, in lines of random words.
func TestFunctionCalls_withParenthesesAreFoundInAllLanguages(t *testing.T) {
	t.Parallel()
	naive := regexp.MustCompile(`(?:^|[^\w$])f\(`)
	lines := 0
	for _, before := range []string{"x = ", "", "return ", "g(", "a.", "a, ", "-", "!", "[", "x(f) + ", "if (a) "} {
		for _, name := range []string{"f", "ff", "_f", "f2", "$f"} {
			for _, after := range []string{"(1)", "(", "(a, f)", ";", " = 1", ")", "[1]"} {
				line := before + name + after
				lines++
				for _, lang := range []string{"C", "C++", "C#", "Java", "Kotlin", "Swift", "Go", "Rust", "Python", "JavaScript", "Lua", "R", "Dart"} {
					if got, _ := calls(lang, "f", []byte(line)); naive.MatchString(line) && !got {
						t.Errorf("%s %q: no call", lang, line)
					}
				}
			}
		}
	}
	if lines < 300 {
		t.Errorf("only %d lines", lines)
	}
}

// TestFindReferences_countsOtherUsesBesideCalls lists uses where none is a plain call, and counts
// them where some are.
func TestFindReferences_countsOtherUsesBesideCalls(t *testing.T) {
	t.Parallel()
	answer := func(path, lang string, lines ...string) string {
		file := symbols.SymbolFile{Repository: "example.com/acme/app", Path: path, Language: lang}
		for i, line := range lines {
			m := symbols.SymbolMatch{Line: []byte(line)}
			m.Around.Name = "main"
			m.Range.Start.Line = uint32(i + 1)
			file.Matches = append(file.Matches, m)
		}
		row := references(nil, nil)
		row.Params = append(row.Params, maxTokens)
		a, err := row.decode([]byte(`{"symbol":"f","calls":true}`))
		if err != nil {
			t.Fatal(err)
		}
		return (&lookup{Args: a}).references(&symbols.SymbolResponse{Coverage: whole, Files: []symbols.SymbolFile{file}}, nil)
	}

	for _, tt := range []struct{ what, got, want string }{
		{"uses that are no call", answer("a.go", "Go", "f(1)", "x := f", "go(f)"), "1 call of f in 1 file\n"},
		{"are counted", answer("a.go", "Go", "f(1)", "x := f", "go(f)"), "Left out: 2 uses other than a plain call; leave calls out."},
		{"no call", answer("a.go", "Go", "x := f"), "No use of f is a plain call; all uses:\n1 reference of f in 1 file\n"},
		{"calls alone", answer("a.go", "Go", "f(1)"), fmt.Sprintf("main: f(1)\n%s", complete)},
		{"a language without a rule", answer("a.bf", "Brainfuck", "f", "f f"), "2 calls of f in 1 file (2 uses in languages whose calls are not known)\n"},
	} {
		if !strings.Contains(tt.got, tt.want) {
			t.Errorf("%s: want %q in\n%s", tt.what, tt.want, tt.got)
		}
	}
}
