package trigram

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"unicode/utf8"
)

const flags = syntax.Perl&^syntax.OneLine | syntax.UnicodeGroups

func parse(t testing.TB, expr string) *syntax.Regexp {
	t.Helper()
	re, err := syntax.Parse(expr, flags)
	if err != nil {
		t.Fatal(err)
	}
	return re
}

func TestFormula_hasTheConditionsOfItsExpression(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr, want string
		scope      Scope
	}{
		{`foo`, `"foo"`, ScopeStart},
		{`Foo Bar`, `"foo bar"`, ScopeStart},
		{`if`, `"if"`, ScopeStart},
		{`x`, `all`, ScopeLine},
		{`.*`, `all`, ScopeLine},
		{`foo.*bar`, `"foo" "bar"`, ScopeLine},
		{`foo\s*bar`, `"foo" "bar"`, ScopeStart},
		{`\s*foo\sbar`, `("foo[\t\n\f\r ]bar" | "foo\r\nbar")`, ScopeDocument},
		{`(?i)foo.bar`, `"foo" "bar"`, ScopeLine},
		{`(?i)mask`, `"mask"*`, ScopeStart},
		{`ext4_[a-z]+_inode`, `"ext4_" "[a-z]_inode"`, ScopeLine},
		{`(kmalloc|kzalloc)\(sizeof`, `("kmalloc(sizeof" | "kzalloc(sizeof")`, ScopeStart},
		{`spin_(un)?lock`, `("spin_lock" | "spin_unlock")`, ScopeStart},
		{`[a-z]+_lock\(`, `"[a-z]_lock("`, ScopeLine},
		{`\bv[0-9]+\.[0-9]+\b`, `"v[0-9][.0-9]" "[0-9].[0-9]"`, ScopeLine},
		{`[0-9]{8}`, `digit{8}`, ScopeStart},
		{`0x[0-9a-f]{8}`, `"0x[0-9a-f][0-9a-f]" hex{8}`, ScopeStart},
		{`[A-Z]{20,}`, `upper{20}`, ScopeLine},
		{`copyright.*google`, `"copyright" "google"`, ScopeLine},
		{`fixme|xxx|hack`, `("fixme" | "xxx" | "hack")`, ScopeStart},
		{`^#define [A-Z]+_MAX`, `"\n#define " "[a-z]_max"`, ScopeLine},
		{`^}$`, `"\n}[\n\r]"`, ScopeStart},
		{`^$`, `"\n[\n\r]"`, ScopeStart},
		{`foo$\nbar`, `("foo" "\nbar" | "foo" "\r\nbar")`, ScopeStart},
		{`a|foo`, `all`, ScopeLine},
		{`[^\x00-\x{10FFFF}]`, `none`, ScopeStart},
		{`日本`, `"\xe6\x97\xa5\xe6\x9c\xac"`, ScopeStart},
		{`(?i)é`, `"\xc3[\x89\xa9]"`, ScopeStart},
	} {
		f := FromRegexp(parse(t, c.expr), false)
		if got := f.String(); got != c.want || f.Scope() != c.scope {
			t.Errorf("%s: %s, scope %d; want %s, scope %d", c.expr, got, f.Scope(), c.want, c.scope)
		}
	}
}

// checkCovered fails if a match of a document is not among the candidates.
func checkCovered(t *testing.T, x *Index, firsts []uint32, docs [][]byte, re *regexp.Regexp, f *Formula) (units int) {
	t.Helper()
	var s Scratch
	sets := make([]Bitmap, x.Segments())
	for i := range sets {
		n, err := x.Search(i, f, nil, &s, &sets[i])
		if err != nil {
			t.Fatal(err)
		}
		units += n
	}
	has := func(unit uint32) bool { return sets[unit>>16].Has(uint16(unit)) }
	owner := func(d []byte, p int) uint32 { return min(uint32(p/UnitSize), Units(len(d))-1) }
	for i, d := range docs {
		for _, m := range re.FindAllIndex(d, -1) {
			from, to := owner(d, m[0]), owner(d, m[0])
			switch f.Scope() {
			case ScopeLine:
				lo := strings.LastIndexByte(string(d[:m[0]]), '\n') + 1
				hi := m[1] + strings.IndexByte(string(d[m[1]:])+"\n", '\n')
				from, to = owner(d, lo), owner(d, max(hi-1, lo))
			case ScopeDocument:
				from, to = 0, Units(len(d))-1
			}
			ok := false
			for u := from; u <= to; u++ {
				if has(firsts[i]+u) && !ok && f.Scope() != ScopeDocument {
					checkBegin(t, f, d, m, u, u > 0 && has(firsts[i]+u-1))
				}
				ok = ok || has(firsts[i]+u)
			}
			if !ok {
				t.Fatalf("%q: match %d..%d of document %d (%d bytes, first unit %d) is in no candidate unit; formula %s", re, m[0], m[1], i, len(d), firsts[i], f)
			}
		}
	}
	return units
}

// checkBegin fails if MayBegin denies a match whose first line began before the first candidate
// unit.
func checkBegin(t *testing.T, f *Formula, d []byte, m []int, u uint32, before bool) {
	t.Helper()
	from, _ := Span(len(d), u)
	text := d[from:min(from+UnitSize+Overlap, len(d))]
	end := strings.IndexByte(string(text), '\n')
	starts := m[0] >= from && m[0] <= from+end || f.Scope() == ScopeLine && m[0] <= from+end
	if from == 0 || d[from-1] == '\n' || before || end < 0 || !starts {
		return
	}
	if !f.MayBegin(text, end) {
		t.Fatalf("match %d..%d: the line that reaches into unit %d is held to have none; formula %s", m[0], m[1], u, f)
	}
}

// randomExpr makes an expression from pieces of a document, so that it often matches, also across
// units and lines.
func randomExpr(r *rand.Rand, d []byte) string {
	gaps := []string{".*", ".", `\s*`, `\s+`, `[^;]*`, `(?s:.*)`, `[a-z]*`, `\w+`, `(x|y)?`, "", `\b`, `[0-9]+`, `$\n^`, `(foo|\d+|[ab]c)*`}
	var b strings.Builder
	if r.Intn(3) == 0 {
		b.WriteString("(?i)")
	}
	if r.Intn(6) == 0 {
		b.WriteString("^")
	}
	p := 0
	if len(d) > 0 {
		p = r.Intn(len(d))
	}
	for range 1 + r.Intn(3) {
		n := 1 + r.Intn(8)
		if r.Intn(8) == 0 {
			n = 1 + r.Intn(150)
		}
		end := min(p+n, len(d))
		lit := string(d[min(p, end):end])
		if !utf8.ValidString(lit) {
			lit = strings.ToValidUTF8(lit, "�")
		}
		q := regexp.QuoteMeta(lit)
		switch r.Intn(8) {
		case 0:
			q = "(" + q + "|zzz)"
		case 1:
			q = "(" + q + ")+"
		case 2:
			q = strings.Map(func(c rune) rune {
				if c >= 'a' && c <= 'z' && r.Intn(2) == 0 {
					return c - 'a' + 'A'
				}
				return c
			}, q)
		case 3:
			q = strings.NewReplacer("1", "[0-9]", "o", "[a-z]", "4", `\d`, "K", "[K-M]").Replace(q)
		case 4:
			q = fmt.Sprintf("(%s){1,%d}", q, 1+r.Intn(3))
		}
		b.WriteString(q)
		b.WriteString(gaps[r.Intn(len(gaps))])
		p = end + r.Intn(3)*r.Intn(3000)
	}
	if r.Intn(6) == 0 {
		b.WriteString("$")
	}
	return b.String()
}

func TestCandidates_includeTheUnitsOfEveryMatch(t *testing.T) {
	t.Parallel()
	docs := append(randomDocs(7, 30, 3*UnitSize), randomDocs(8, 4, 12*UnitSize)...)
	docs = append(docs, longLines(9)...)
	x, _, firsts := build(t, docs)
	r := rand.New(rand.NewSource(10))
	for range 200 {
		expr := randomExpr(r, docs[r.Intn(len(docs))])
		tree, err := syntax.Parse(expr, flags)
		if err != nil {
			continue
		}
		re, err := regexp.Compile("(?m:" + expr + ")")
		if err != nil {
			continue
		}
		checkCovered(t, x, firsts, docs, re, FromRegexp(tree, false))
		if strings.HasPrefix(expr, "(?i)") {
			plain, err := syntax.Parse(expr[4:], flags)
			if err == nil {
				checkCovered(t, x, firsts, docs, re, FromRegexp(plain, true))
			}
		}
	}
}

// longLines makes documents with lines over many units, and rare words near the borders of units.
func longLines(seed int64) [][]byte {
	r := rand.New(rand.NewSource(seed))
	var docs [][]byte
	for range 12 {
		d := []byte(strings.Repeat("lorem ipsum, ", 1+r.Intn(2500)))
		for range 6 {
			word := []string{"needle", "Kelvin Kſ", "pin\n", "12345678901", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}[r.Intn(5)]
			at := r.Intn(len(d))
			if r.Intn(2) == 0 {
				at = at/UnitSize*UnitSize + r.Intn(12) - 8
			}
			if at >= 0 && at+len(word) <= len(d) {
				copy(d[at:], word)
			}
		}
		docs = append(docs, d)
	}
	return docs
}

func TestCandidates_ofLiteralsIgnoreCaseOnRequest(t *testing.T) {
	t.Parallel()
	docs := append(randomDocs(11, 40, 2*UnitSize), longLines(12)...)
	x, _, firsts := build(t, docs)
	r := rand.New(rand.NewSource(13))
	for range 150 {
		d := docs[r.Intn(len(docs))]
		p := r.Intn(len(d) + 1)
		lit := strings.ToValidUTF8(string(d[p:min(len(d), p+1+r.Intn(200))]), "")
		if lit == "" || strings.Contains(lit, "�") {
			continue
		}
		checkCovered(t, x, firsts, docs, regexp.MustCompile(regexp.QuoteMeta(lit)), FromLiteral(lit, false))
		checkCovered(t, x, firsts, docs, regexp.MustCompile("(?i)"+regexp.QuoteMeta(strings.ToUpper(lit))), FromLiteral(strings.ToUpper(lit), true))
	}
	raw := []byte("ab\xff\xfecd")
	x, _, firsts = build(t, [][]byte{raw})
	var s Scratch
	var out Bitmap
	for lit, want := range map[string]int{"\xff\xfe": 1, "b\xff": 1, "\xfe\xff": 0, "d": 1, "cd": 1, "\xfe": 1} {
		if n, err := x.Search(0, FromLiteral(lit, true), nil, &s, &out); n != want || err != nil {
			t.Errorf("%q: %d units, %v; want %d", lit, n, err, want)
		}
	}
	_ = firsts
}

func TestCandidates_ofRareLiteralsAreAtMostAFewUnits(t *testing.T) {
	t.Parallel()
	var docs [][]byte
	for i := range 300 {
		docs = append(docs, fmt.Appendf(nil, "func f%03d() {\n\treturn %d\n}\n%s", i, i*7919, strings.Repeat("x := y + z\n", i%7*300)))
	}
	x, _, firsts := build(t, docs)
	for expr, most := range map[string]int{`f123\(`: 1, `f1[0-9]3\(`: 10, `return 791[0-9]$`: 32, `^func f0`: 100, `nothing`: 0, `[0-9]{7}`: 174, `f123.*{`: 1, `f123(?s:.*)7919`: 1} {
		units := checkCovered(t, x, firsts, docs, regexp.MustCompile("(?m:"+expr+")"), FromRegexp(parse(t, expr), false))
		if units > most {
			t.Errorf("%s: %d candidate units, want at most %d", expr, units, most)
		}
	}
}

func TestWriter_writesTheSameBytesAfterARefusedDocument(t *testing.T) {
	t.Parallel()
	var a, b []byte
	for _, refused := range []bool{false, true} {
		w := New(Options{Emit: func(parts ...[]byte) error {
			if refused {
				b = append(b, bytes.Join(parts, nil)...)
			} else {
				a = append(a, bytes.Join(parts, nil)...)
			}
			return nil
		}})
		for i, d := range randomDocs(5, 30, 9000) {
			if refused {
				if _, _, err := w.Add(randomDocs(int64(i), 1, 30000)[0], 5); err != nil && !errors.Is(err, ErrTrigrams) {
					t.Fatal(err)
				} else if err == nil {
					t.Fatal("a document was too simple to be refused: choose another seed")
				}
			}
			if _, _, err := w.Add(d, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	if string(a) != string(b) {
		t.Error("segments differ")
	}
}

func TestCandidates_damagedBytesAreErrors(t *testing.T) {
	t.Parallel()
	docs := randomDocs(3, 400, 6000)
	_, segs, _ := build(t, docs)
	r := rand.New(rand.NewSource(4))
	var s Scratch
	var out Bitmap
	formulas := []*Formula{FromLiteral("struct", true), FromLiteral("if", false), FromRegexp(parse(t, `[0-9]{8}.*foo`), false), FromLiteral("\n", false)}
	for range 500 {
		b := append([]byte(nil), segs[0]...)
		for range 1 + r.Intn(20) {
			b[r.Intn(len(b))] ^= 1 << r.Intn(8)
		}
		if r.Intn(4) == 0 {
			b = b[:r.Intn(len(b))]
		}
		x, err := Open([][]byte{b}, nil)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			continue
		}
		for _, f := range formulas {
			if _, err := x.Search(0, f, nil, &s, &out); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
	}
}

func TestFormula_ofNestedRepetitionsStaysBelowAMegabyte(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{`((a|b){30}x){30}`, `(((a|b)?c){10}){10}`, `(x|yy|zzz|w){64}`, `((foo|bar|baz){3}|(qux|quux){4}){5}`, `(a?){60}(b?){60}`, strings.Repeat("(a|bb", 100) + strings.Repeat(")?", 100)} {
		tree, err := syntax.Parse(expr, flags)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(FromRegexp(tree, false).String()); n > 1<<20 {
			t.Errorf("%s: the formula has %d bytes in print", expr, n)
		}
	}
}

// TestCandidates_touchAllBytesThatTheyRead checks that Touch is called for all bytes that are used,
// and for little more.
func TestCandidates_touchAllBytesThatTheyRead(t *testing.T) {
	t.Parallel()
	_, segs, _ := build(t, randomDocs(4, 2000, 4000))
	bad := errors.New("wrong checksum")
	f := FromLiteral("foo_bar8", false)
	var spans [][2]int
	var denied int // the call that is refused
	touch := func(seg, from, n int) error {
		if from < 0 || n < 0 || from+n > len(segs[seg]) {
			t.Fatalf("touched %d bytes from %d of %d", n, from, len(segs[seg]))
		}
		spans = append(spans, [2]int{from, from + n})
		if len(spans) == denied {
			return bad
		}
		return nil
	}
	search := func() (Bitmap, error) {
		var out Bitmap
		spans = spans[:0]
		x, err := Open(segs, touch)
		if err == nil {
			_, err = x.Search(0, f, nil, new(Scratch), &out)
		}
		return out, err
	}
	want, err := search()
	if err != nil || want.Count() == 0 {
		t.Fatalf("%d units, %v", want.Count(), err)
	}
	// Bytes that were not touched may have any value.
	whole, calls, seen := segs[0], len(spans), 0
	masked := bytes.Repeat([]byte{0xa5}, len(whole))
	for _, s := range spans {
		copy(masked[s[0]:s[1]], whole[s[0]:s[1]])
	}
	for i := range masked {
		if masked[i] == whole[i] {
			seen++
		}
	}
	if seen > len(whole)/2 {
		t.Errorf("%d bytes of %d were touched for one literal", seen, len(whole))
	}
	segs[0] = masked
	if got, err := search(); err != nil || got != want {
		t.Errorf("it depends on bytes that were not touched: %v", err)
	}
	segs[0] = whole
	for denied = 1; denied <= calls; denied++ {
		if _, err := search(); !errors.Is(err, bad) {
			t.Fatalf("refusing touch %d of %d: %v", denied, calls, err)
		}
	}
}

func TestHasByte_reportsOnlyBytesOfTheDocuments(t *testing.T) {
	t.Parallel()
	x, _, _ := build(t, [][]byte{[]byte("Some text\n"), []byte("\r"), []byte("")})
	for b, want := range map[byte]bool{'s': true, 'S': false, '\r': true, '\n': true, 'q': false, 0xFF: false} {
		if got, err := x.HasByte(0, b); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", b, got, err, want)
		}
	}
}
