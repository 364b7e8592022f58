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
)

// A sketch never rules out a text with a match, whatever the pattern, and wherever the match is.
func TestSketch_acceptsTextsWithAMatch(t *testing.T) {
	t.Parallel()
	docs := append(randomDocs(7, 30, 3000), randomDocs(8, 3, 200_000)...)
	docs = append(docs, longLines(9)...)
	sketches := make([]*Sketch, len(docs))
	for i, d := range docs {
		sketches[i] = NewSketch(d)
	}

	r := rand.New(rand.NewSource(10))
	matched, ruledOut := 0, 0
	for range 120 {
		expr := randomExpr(r, docs[r.Intn(len(docs))])
		tree, err := syntax.Parse(expr, flags)
		if err != nil {
			continue
		}
		re, err := regexp.Compile("(?m:" + expr + ")")
		if err != nil {
			continue
		}
		f, q := FromRegexp(tree, false), Ask(tree)
		for i, d := range docs {
			may := q.MayMatch(sketches[i])
			switch {
			case !may:
				ruledOut++
				if re.Match(d) {
					t.Fatalf("%q matches document %d, which is ruled out; formula %s", expr, i, f)
				}
			case len(d) < 3000 && re.Match(d):
				matched++
			}
		}
	}
	if matched < 200 || ruledOut < 200 {
		t.Errorf("%d matches and %d documents ruled out: the test says nothing", matched, ruledOut)
	}
}

// The cases are about both ends of a text, runs, and letters that fold beyond ASCII.
func TestMayMatch_isFalseOnlyForTextsWithoutAMatch(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("lorem ipsum dolor\n", 5000)
	for _, c := range []struct {
		text, expr string
		may        bool
	}{
		{"", "needle", false},
		{"", "^$", true},
		{"needle", "^needle$", true},
		{"a needle", "^needle$", false},
		{"a\nneedle\r\n", "^needle$", true},
		{filler + "needle", "needle$", true},
		{filler + "needle", "needles$", false},
		{"needle" + filler, "^needle", true},
		{"a needle" + filler, "^needle", false},
		{"the mas\u212a of", "(?i)mask", true},
		{"the ma\u017fk of", "(?i)mask", true},
		{"the mas of", "(?i)mask", false},
		{"x 12345678 y", "[0-9]{8}", true},
		{"日本", "日本", true},
		{"日本", "本日", false},
		{"one two", "(three|four)", false},
		{"one two", "(three|two)", true},
		{"one", "one.*two", false},
		{"one two", "[r-t]wo", true},
		{"one two", "[x-z]wo", false},
		{"no letter of it", ".*", true},
		{"#define CONTEXT4_INODE", "ext4_[a-z]+_inode", false}, // the trigrams are there, but in another case
		{"#define EXT4_A_INODE", "(?i)ext4_[a-z]+_inode", true},
		{"bookkeeper", "(book)+keep", true},
		{"bookkeeper", "(book){2,}KEEP", false},
		{"keeper", "(book){0,3}keep", true},
		{"keeper", "(book)*(?:keep|lose)", true},
		{"a\xffbc", "a\ufffdbc", true},
		{"abc", "abc", true},
	} {
		q := Ask(parse(t, c.expr))
		if got := q.MayMatch(NewSketch([]byte(c.text))); got != c.may {
			t.Errorf("%q in %.60q: %t, want %t; formula %s, literals %q", c.expr, c.text, got, c.may, q.formula, q.literals)
		}
	}
}

// A sketch is small, and rules out nearly all names that a large text does not have.
func TestSketch_rulesOutTextsWithoutAMatch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(3))
	parts := strings.Fields("status mask fault config pipe plane cursor gamma index data enable reset clock gate mode page table base address queue")
	name := func() string { return parts[r.Intn(len(parts))] + "_" + parts[r.Intn(len(parts))] }
	var text []byte
	for len(text) < 1<<20 {
		text = fmt.Appendf(text, "#define %s_%s 0x%08x\n", strings.ToUpper(name()), strings.ToUpper(name()), r.Uint32())
	}
	s := NewSketch(text)
	if s.Size() > len(text)/7 || NewSketch(nil).Size() > 400 || NewSketch(make([]byte, 1<<24)).Size() > s.Size() {
		t.Errorf("%d bytes for a text of %d", s.Size(), len(text))
	}

	wrong, asked, exact := 0, 0, 0
	for _, verb := range strings.Fields("lock unlock kmalloc kfree schedule register_netdev probe devm_ioremap spin_lock_irqsave list_for_each_entry") {
		for _, noun := range parts {
			asked++
			re := parse(t, verb+"_"+noun+`\(`)
			if FromRegexp(re, false).MayMatch(&s.Set) {
				wrong++
			}
			if Ask(re).MayMatch(s) {
				exact++
			}
		}
	}
	if wrong > asked/20 || exact > 0 {
		t.Errorf("%d of %d names may be there, in their own case %d", wrong, asked, exact)
	}

	// A sketch of random bytes rules out nothing, but its answers are still right.
	noise := make([]byte, 1<<20)
	r.Read(noise)
	copy(noise[1<<19:], "needle")
	if !FromLiteral("needle", false).MayMatch(NewSet(noise)) {
		t.Error("the needle in the noise is ruled out")
	}
}

// Sets are written one behind the other, and a damaged one is refused.
func TestSet_isReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	var all []byte
	var want []*Set
	for _, text := range []string{"", "needle", "\u212a", strings.Repeat("some lines\n", 9000)} {
		want = append(want, NewSet([]byte(text)))
		all = want[len(want)-1].AppendTo(all)
	}
	rest := all
	for i, s := range want {
		got, after, err := ReadSet(rest)
		if err != nil || got.special != s.special || got.trigrams.shift != s.trigrams.shift || !bytes.Equal(got.trigrams.bits, s.trigrams.bits) {
			t.Fatalf("set %d: %v", i, err)
		}
		rest = after
	}
	if len(rest) > 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
	for _, damaged := range [][]byte{nil, {leastSketch}, {mostSketch + 1, 0}, {0}, all[:100]} {
		if _, _, err := ReadSet(damaged); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes that are no set: %v", len(damaged), err)
		}
	}
}

// FuzzSketch_neverRulesOutAMatch searches for a match in a text that its sketch rules out.
func FuzzSketch_neverRulesOutAMatch(f *testing.F) {
	f.Add("foo.*bar", []byte("a foo and a bar\n"), uint32(296))
	f.Add(`(?i)k[0-9]+s$`, []byte("K1234ſ\n"), uint32(1))
	f.Add(`^}$`, []byte("}\r\n"), uint32(304))
	f.Add(`a\s*b[^c]{3,}`, []byte("a\n\n b\xffxyz"), uint32(0))
	f.Add(`[0-9a-f]{12}|é+`, []byte("0123456789ab É"), uint32(288))
	f.Fuzz(func(t *testing.T, expr string, text []byte, at uint32) {
		if len(expr) > 200 || len(text) > 2000 {
			return
		}
		tree, err := syntax.Parse(expr, flags)
		if err != nil {
			return
		}
		re, err := regexp.Compile("(?m:" + expr + ")")
		if err != nil {
			return
		}

		// The text is tested alone and inside a longer text.
		q := Ask(tree)
		before := int(at % 5000)
		long := append(bytes.Repeat([]byte("lorem ipsum\n"), 500)[:before], text...)
		for _, d := range [][]byte{text, long, append(long[:len(long):len(long)], "\nmore\n"...)} {
			if re.Match(d) && !q.MayMatch(NewSketch(d)) {
				t.Fatalf("%q matches %q behind %d bytes, and is ruled out; formula %s, literals %q", expr, text, before, q.formula, q.literals)
			}
		}
	})
}
