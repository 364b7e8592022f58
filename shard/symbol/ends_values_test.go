package symbol

import "testing"

// A function that is a value, such as a typed arrow function, has its lines; so has a table. Values that
// fit a line and those of functions have none.
func TestDefinitionEnds_ofValues(t *testing.T) {
	t.Parallel()
	p := openReal(t)
	for _, c := range []struct{ path, language, text, want string }{
		{"a.ts", "TypeScript", `import x from 'y';

export const persistImpl: PersistImpl = (config, baseOptions) => (set, get, api) => {
  let a = 1;
  return a;
};

const short: F = (a) => a + 1;
const typed: F = (a) => {
  return a;
}
export const obj: Conf = {
  a: 1,
  run: (x: number) => {
    return x;
  },
};
const list = [
  1,
  2,
];
export const generic = <T,>(a: T): T => {
  return a;
};
const fn: Handler = async function (a) {
  return a;
};
class A {
  private handler: Handler = (e) => {
    this.x = e;
  };
  static other = async (e) => {
    return e;
  };
  plain: number = 3;
}
export const useStore = create<State>()(
  persist(
    (set) => ({ a: 1 }),
    { name: 'x' },
  ),
);
let lazy: () => number;
lazy = () => {
  return 1;
};
`, "3-6 persistImpl, 9-11 typed, 12-17 obj, 18-21 list, 22-24 generic, 25-27 fn, 28-36 A, 29-31 handler, 37-42 useStore"},
		{"a.js", "JavaScript", `const f = (a) => {
  return a;
};
const g = async (a) =>
  a + 1;
class B {
  handler = (e) => {
    return e;
  };
}
const o = {
  k: (a) => {
    return a;
  },
};
exports.h = (a) => {
  return 1;
};
`, "1-3 f, 4-5 g, 6-10 B, 7-9 handler, 11-15 o, 12-14 k"},
		{"a.py", "Python", `f = lambda a: (
    a + 1
)
g = lambda a: a
OPTIONS = {
    "a": 1,
}
def h():
    pass
`, "1-3 f, 5-7 OPTIONS, 8-9 h"},
		{"a.kt", "Kotlin", `class A {
    fun area() = w *
        h

    fun long(a: Int): String =
        when (a) {
            1 -> "x"
            else -> "y"
        }

    val handler: (Int) -> Unit = { x ->
        println(x)
    }
    val short = { x: Int -> x }
    val lazyValue by lazy {
        compute()
    }
}
`, "1-18 A, 2-3 area, 5-9 long, 11-13 handler, 15-17 lazyValue"},
		{"a.go", "Go", `package a

var handler = func(a int) int {
	return a
}

var table = map[string]int{
	"a": 1,
}
`, "3-5 handler, 7-9 table"},
		{"a.lua", "Lua", `local f = function(a)
  return a
end
M.run = function(a)
  return a
end
`, "1-3 f, 4-6 M.run"},
		{"a.php", "PHP", `<?php
$handler = function ($a) {
    return $a;
};
`, "2-4 handler"},
		{"a.rb", "Ruby", `handler = lambda do |a|
  a
end
HANDLER = lambda { |a|
  a
}
`, "4-6 HANDLER"},
		{"A.cs", "C#", `class A {
    private Func<int, int> handler = (a) => {
        return a;
    };
    public int Area =>
        w * h;
    public int Size() =>
        w;
}
`, "1-9 A, 2-4 handler, 5-6 Area, 7-8 Size"},
		{"A.java", "Java", `class A {
    private final Function<A, B> handler = (a) -> {
        return a;
    };
    static final Map<String, String> M = Map.of(
        "a", "b");
}
`, "1-7 A, 2-4 handler, 5-6 M"},
	} {
		if got := endsOf(t, p, File{Path: c.path, Language: c.language, Content: []byte(c.text)}); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
}
