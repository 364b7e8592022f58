package match

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomExpr returns an expression of limited depth with a few letters.
func randomExpr(rng *rand.Rand, depth int) string {
	atoms := []string{
		"a", "b", "ab", "foo", "x_", "k", "s", "é", `\x{212a}`, "[ab]", "[a-c]", "[^a]", "[^a\\n]", `\w`, `\s`, `\d`, "[0-9]", "[A-Z]", ".", "(?s:.)",
		`\n`, `\b`, `\B`, "^", "$", `[é-ü]`, `\pL`, `\W`, `\x{fffd}`, `\x80`, `(?i:ks)`, `(?i:foo)`, "=", `\(`, " ", `\z`, `\A`,
	}
	if depth == 0 || rng.IntN(4) == 0 {
		return atoms[rng.IntN(len(atoms))]
	}
	sub := func() string { return randomExpr(rng, depth-1) }
	switch rng.IntN(8) {
	case 0, 1, 2:
		return sub() + sub()
	case 3:
		return "(?:" + sub() + "|" + sub() + ")"
	case 4:
		return "(" + sub() + ")"
	case 5:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "*?", "+?", "??"}[rng.IntN(6)]
	case 6:
		return "(?:" + sub() + ")" + []string{"{2}", "{1,3}", "{2,}", "{0,2}?", "{9}", "{3,}?"}[rng.IntN(6)]
	}
	return sub() + sub() + sub()
}

// randomText returns a text that often matches and spans many windows.
func randomText(rng *rand.Rand) []byte {
	words := []string{
		"a", "b", "ab", "foo", "FOO", "x_", "k", "K", "\u212a", "s", "\u017f", "é", "ü", "1", "23", "AB", "=", "(", ")", " ", "  ", "\n", "\n\n", "\t",
		"\xff", "\x80", "\xe2\x82", "\xe2\x84", "€", "\xf0\x9f", "😀", "_", "\ufffd", "c", "d", ".", "\u0301", "検", "٣", "я", "$",
		"\r\n", "\r\n\r\n", "\r",
	}
	var b bytes.Buffer
	few := words
	if rng.IntN(2) == 0 {
		few = nil
		for range 1 + rng.IntN(6) {
			few = append(few, words[rng.IntN(len(words))])
		}
	}
	size := []int{5, 40, 130, 300, 900, 5000}[rng.IntN(6)]
	for b.Len() < size {
		if rng.IntN(20) == 0 {
			b.WriteString(strings.Repeat(words[rng.IntN(len(words))], rng.IntN(100)))
		}
		b.WriteString(few[rng.IntN(len(few))])
	}
	return b.Bytes()[:size]
}

func checkGenerated(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	expr := randomExpr(rng, 1+rng.IntN(4))
	for range 3 {
		checkWith(t, expr, Options{Fold: rng.IntN(3) == 0, WordBegins: rng.IntN(3) == 0, WordEnds: rng.IntN(3) == 0}, randomText(rng))
	}
}

func TestMatch_generatedExpressionsAgreeWithRegexp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		checkGenerated(t, seed)
	}
}

func FuzzMatch_generatedExpressionsAgreeWithRegexp(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkGenerated(t, seed) })
}
