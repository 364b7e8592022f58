package trigram

import (
	"fmt"
	"math/rand"
	"regexp"
	"strings"
	"testing"
)

// manyDocs makes documents of one unit each from few words, so that there are long lists of every
// kind: words with low numbers are frequent, and some runs of documents lack them.
func manyDocs(r *rand.Rand, n int) [][]byte {
	docs := make([][]byte, n)
	for i := range docs {
		var b strings.Builder
		for range 1 + r.Intn(12) {
			k := int(r.ExpFloat64() * 5)
			if i/700%3 == 1 {
				k += 10 // some slices of a list are empty, others full
			}
			fmt.Fprintf(&b, "%s%s\n", manyWord(k), manyWord(k+r.Intn(3)))
		}
		docs[i] = []byte(b.String())
	}
	return docs
}

func manyWord(k int) string {
	return [...]string{"alpha", "_beta", "gamma ", "delta(", "omega;", "lock_", "irq", "save", "work", "queue"}[k%10] + fmt.Sprint(k/10)
}

// TestCandidates_ofLongListsAreTheDocumentsWithAllTrigrams compares the candidates of literals with the documents
// that have all of their trigrams, and the candidates of expressions with the matches.
func TestCandidates_ofLongListsAreTheDocumentsWithAllTrigrams(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(21))
	docs := manyDocs(r, 9000)
	x, _, firsts := build(t, docs)
	var s Scratch
	var out Bitmap
	for range 200 {
		d := docs[r.Intn(len(docs))]
		from := r.Intn(len(d))
		lit := string(d[from:min(len(d), from+3+r.Intn(14))])
		if len(lit) < 3 {
			continue
		}
		want := 0
		for _, d := range docs {
			if hasTrigrams("\n"+string(d)+"\n\n", lit) {
				want++
			}
		}
		got, err := x.Search(0, FromLiteral(lit, false), nil, &s, &out)
		if err != nil || got < want || got > want && want > cheapToRead {
			t.Fatalf("%q: %d candidates, %v; %d documents have all of its trigrams", lit, got, err, want)
		}
	}
	for _, expr := range []string{`alpha0.*lock_0`, `alpha[0-9].*irq[0-9]`, `(?i)WORK[0-9]queue`, `lock_[0-9]irq`, `[a-z]_beta1`, `work1.*(alpha|irq)1`, `save.*\n.*queue`, `beta0[a-z]+0`, `(alpha0.*irq0|work.*save1)`} {
		checkCovered(t, x, firsts, docs, regexp.MustCompile("(?m:"+expr+")"), FromRegexp(parse(t, expr), false))
	}
}

func hasTrigrams(text, lit string) bool {
	for i := 0; i+3 <= len(lit); i++ {
		if !strings.Contains(text, lit[i:i+3]) {
			return false
		}
	}
	return true
}

// TestPostingList_andIntoAgreesWithIntersection compares andInto with a union and an intersection,
// for lists of every kind, complete and truncated.
func TestPostingList_andIntoAgreesWithIntersection(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(22))
	for round := range 300 {
		units := 1 + r.Intn(SegmentUnits)
		var ids []uint16
		share := []float64{0.0005, 0.01, 0.2, 0.9}[round%4]
		var b, twin, have Bitmap
		for u := range units {
			if r.Float64() < share && (round%3 != 0 || u>>8%5 == 1) {
				ids = append(ids, uint16(u))
				have.Set(uint16(u))
			}
			if r.Intn(3) == 0 {
				b.Set(uint16(u))
			}
		}
		if len(ids) == 0 {
			continue
		}
		var e encoder
		e.reset(units)
		e.addIDs(5, ids)
		s := &segment{units: units, blocks: e.blocks, entries: e.entries, lists: e.lists, touch: func(int, int, int) error { return nil }}
		var w Work
		l, err := s.findList(5, &w)
		if err != nil {
			t.Fatal(err)
		}
		twin = b
		twin.And(&have)
		kept, err := l.filterIDs(b.appendTo(nil), units, &w)
		if err != nil || len(kept) != twin.Count() {
			t.Fatalf("kind %d: filter keeps %d units of %d, %v", l.kind, len(kept), twin.Count(), err)
		}
		if err := l.andInto(&b, units, &w); err != nil || b != twin {
			t.Fatalf("kind %d, %d units: another set than by union; %v", l.kind, len(ids), err)
		}
		if l.kind > kindInline2 && len(l.data) > 0 {
			l.data = l.data[:r.Intn(len(l.data))]
			if err := l.andInto(&b, units, &w); err == nil {
				t.Fatalf("kind %d: %d bytes are enough", l.kind, len(l.data))
			}
		}
	}
}
