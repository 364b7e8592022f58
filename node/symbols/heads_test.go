package symbols

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/lex"
)

// Each head as "kind name < types", in the order of the text.
func TestTypeHeads_areReadInEachLanguage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ lang, text, want string }{
		{"Java", "public final class A<T extends X> extends pkg.B<T> implements C, D<E> {", "class A < B C D"},
		{"Java", "record P(int x, N n) implements N {}\ninterface Q extends\n    R,\n    S {\n", "record P < N; interface Q < R S"},
		{"Java", "/* class Z extends N */ class A { // class Y extends N\n", "class A <"},
		{"Java", " * class Z implements N {\n * }\n */\nclass A implements N {", "class A < N"},
		{"Java", "sealed interface S extends N permits A, B {", "interface S < N"},
		{"Java", "enum E implements N { X }", "enum E < N"},
		{"TypeScript", "export abstract class A<T> extends B<T>\n  implements C, ns.D {\n}\ninterface I extends J, K<string> {", "class A < B C D; interface I < J K"},
		{"TypeScript", "const x = class extends B {", "class  < B"},
		{"PHP", "final class A extends \\Acme\\B implements C {\n    use Loggable, T;\n", "class A < B C; use  < Loggable T"},
		{"Scala", "case class A(x: Int) extends B(x) with C\ncase object D extends B\nobject E {", "class A < B C; object D < B; object E <"},
		{"Dart", "class A extends B with C, D implements E {\nmixin M on N {", "class A < B C D E; mixin M < N"},
		{"Kotlin", "class A(\n  private val f: (Int) -> Unit = {},\n) : B<Int>(f), C by f,\n  D {\n", "class A < B C D"},
		{"Kotlin", "object : N {\n", "object  < N"},
		{"Kotlin", "class A\n\nfun f(): N = g()\nclass B @Inject constructor(x: X) : N()\nval n: N = B()\n", "class A <; class B < N"},
		{"Kotlin", "fun interface F : G {\nenum class H(val x: Int) : I {", "interface F < G; class H < I"},
		{"Swift", "extension Foo: Bar, Baz where X: Y {\nfinal class C<T>: D {", "extension Foo < Bar Baz; class C < D"},
		{"C#", "public partial class A<T> : B<T>, IC where T : class, new()\n{\npublic record R(int X) : S(X);", "class A < B IC; record R < S"},
		{"C++", "template <class T> class API A final : public ns::B<T>, private virtual C {\nenum class E : int {\nstruct D;\nstruct F : ::std::G {}", "class T <; class A < B C; struct D <; struct F < G"},
		{"Objective-C", "@interface A : B <P, Q>\n", "interface A < B P Q"},
		{"Python", "class A(B, mod.C[T], metaclass=M(x, y)):\n    pass\nclass D:\n    pass\nclass E(\n    F,  # why\n    G,\n):\n", "class A < B C; class D <; class E < F G"},
		{"Ruby", "class A::B < C::D\n  include E, F\n  extend G::H\n  def x\n", "class B < D; include  < E F; extend  < H"},
		{"Ruby", "class Result < Struct.new(:a, :b)\n  def x\n", "class Result < Struct"},
		{"Rust", "impl<'a, T: Clone> fmt::Display for Foo<'a, T> {\nimpl Foo {\npub trait A: B + 'static + C {", "impl Foo < Display; trait A < B"},
		{"Rust", "#[derive(Clone, serde::Serialize)]\n#[repr(C)]\npub(crate) struct P<T> {", "derive P < Clone Serialize"},
		{"Rust", "unsafe impl<T> Send for &'static mut Pool<T> {}", "impl Pool < Send"},
		{"Solidity", "contract A is B, C {", "contract A < B C"},
		{"Elixir", "  @behaviour GenServer\n", "@behaviour  < GenServer"},
		{"Markdown", "class A extends B {", ""},
	} {
		var got []string
		var open lex.State
		if strings.HasPrefix(tt.text, " *") {
			open = lex.For(tt.lang).After([]byte("/*\n"), 0)
		}
		for _, h := range headsOf(tt.lang, []byte(tt.text), open) {
			one := h.kind + " " + h.name + " <"
			for _, s := range h.supers {
				one += " " + lastPart(s.name)
			}
			got = append(got, one)
		}
		if s := strings.Join(got, "; "); s != tt.want {
			t.Errorf("%s %q:\n got %s\nwant %s", tt.lang, tt.text, s, tt.want)
		}
	}
}

// A part of a file may begin and end anywhere: what is read off it stands where it is said to.
func TestTypeHeads_haveTheRightPositionsInAnyText(t *testing.T) {
	t.Parallel()
	parts := strings.Fields(`class interface impl for trait derive include extends : < > ( ) [ ] { } , ; = -> :: . \ " ' // /* */ # @interface by where A b.C D::E`)
	parts = append(parts, "\n", " ", "ä", "\xff")
	langs := slices.Sorted(maps.Keys(styles))
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var text strings.Builder
		for range r.IntN(30) {
			text.WriteString(parts[r.IntN(len(parts))] + strings.Repeat(" ", r.IntN(2)))
		}
		lang := langs[r.IntN(len(langs))]
		for _, h := range headsOf(lang, []byte(text.String()), 0) {
			for _, s := range h.supers {
				if !strings.HasPrefix(text.String()[s.at:], s.name) {
					t.Fatalf("%s %q: %q is not at %d", lang, text.String(), s.name, s.at)
				}
			}
		}
	}
}
