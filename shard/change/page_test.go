package change

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// Texts of any length come back, and a search that reads parts of long ones finds what a search of
// whole texts finds.
func TestPages_ofRandomTextsAreReadAndSearchedInParts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 7))
			few := int(seed%2) * dictText // all that a set can have, or nothing
			files := randomFiles(rnd)
			x := indexOf(t, files, few)
			if withSets := len(x.lines.sets) > 0; withSets != (few > 0) || x.lines.len() < 2 {
				t.Fatalf("%d pages, sets of trigrams: %t, want %t", x.lines.len(), withSets, few > 0)
			}
			e := newEvaluation(x, nil, true, nil)
			e.ctx = t.Context()
			for range 12 {
				n := rnd.IntN(len(files))
				if got, err := e.lines.text(uint32(n)); err != nil || !bytes.Equal(got.removed, files[n].Removed) || !bytes.Equal(got.added, files[n].Added) || !slices.Equal(decodeHunks(got.hunks), files[n].Hunks) {
					t.Fatalf("text %d of %d and %d bytes is not as it was written: %v", n, len(files[n].Removed), len(files[n].Added), err)
				}
				for range 3 {
					compareSearches(t, rnd, e, files)
				}
			}
		})
	}
}

// compareSearches draws a pattern from a text, and looks for it in all texts.
func compareSearches(t *testing.T, rnd *rand.Rand, e *evaluation, files []*git.PatchFile) {
	t.Helper()
	text := randomPattern(rnd, files[rnd.IntN(len(files))])
	p, err := compile(text)
	if err != nil {
		t.Fatalf("%q: %v", text.Pattern, err)
	}
	got, err := e.search(&e.lines, p, e.all(true))
	if err != nil {
		t.Fatalf("%q: %v", text.Pattern, err)
	}
	for n, f := range files {
		if want := hunksMatch(f, text); got.set.Contains(uint32(n)) != want {
			t.Errorf("%q in field %d of text %d of %d and %d bytes: %t, want %t", text.Pattern, text.Field, n, len(f.Removed), len(f.Added), !want, want)
		}
	}
}

// hunksMatch reports whether a hunk has a match, by an expression that is run over each alone.
func hunksMatch(f *git.PatchFile, text *query.Text) bool {
	flags, pattern := "(?m)", text.Pattern
	if text.Fold {
		flags = "(?im)"
	}
	if !text.Regexp {
		pattern = regexp.QuoteMeta(pattern)
	}
	re, removed, added := regexp.MustCompile(flags+pattern), f.Removed, f.Added
	for _, h := range f.Hunks {
		if text.Field != query.Added && h.Removed > 0 && re.Match(removed[:h.Removed]) || text.Field != query.Removed && h.Added > 0 && re.Match(added[:h.Added]) {
			return true
		}
		removed, added = removed[h.Removed:], added[h.Added:]
	}
	return false
}

// randomPattern is a literal or an expression that is often near the border of two units.
func randomPattern(rnd *rand.Rand, f *git.PatchFile) *query.Text {
	side := f.Added
	if len(f.Removed) > 0 && rnd.IntN(2) == 0 {
		side = f.Removed
	}
	out := &query.Text{Field: []query.Field{query.Added, query.Removed, query.Content}[rnd.IntN(3)], Fold: rnd.IntN(3) == 0}
	at := rnd.IntN(max(1, len(side)))
	if border := at / 4096 * 4096; rnd.IntN(2) == 0 && border > 100 {
		at = border - rnd.IntN(100)
	}
	if rnd.IntN(4) == 0 { // the end of a hunk
		end := 0
		for _, h := range f.Hunks[:rnd.IntN(len(f.Hunks)+1)] {
			end += h.Added
		}
		side, at = f.Added, max(0, end-1-rnd.IntN(9))
	}
	word := strings.Trim(strings.ToValidUTF8(string(side[min(at, len(side)):min(at+3+rnd.IntN(40), len(side))]), ""), "\n")
	if rnd.IntN(3) > 0 {
		word, _, _ = strings.Cut(word, "\n")
	}
	if out.Pattern = word; word == "" {
		out.Pattern = "nowhere"
	}
	if out.Regexp = rnd.IntN(2) == 0; out.Regexp {
		quoted := regexp.QuoteMeta(out.Pattern)
		out.Pattern = []string{"^" + quoted, quoted + "$", quoted + ".*a", "b.*" + quoted, `\A` + quoted, quoted + `\n?\z`, quoted + `\nab`, quoted + `\n$`, quoted}[rnd.IntN(9)]
	}
	return out
}

// randomFiles are changed files: most are short, some have long lines, and some are long.
func randomFiles(rnd *rand.Rand) (files []*git.PatchFile) {
	for range 60 {
		f := &git.PatchFile{Path: "f", Status: 'M'}
		size := []int{0, 300, 300, 3000, 20_000, 90_000}[rnd.IntN(6)]
		for len(f.Removed)+len(f.Added) < size {
			h := git.PatchHunk{Old: git.DiffRange{Start: rnd.IntN(999)}, New: git.DiffRange{Start: rnd.IntN(999)}}
			removed, added := randomLines(rnd), randomLines(rnd)
			h.Removed, h.Added = len(removed), len(added)
			f.Hunks = append(f.Hunks, h)
			f.Removed, f.Added = append(f.Removed, removed...), append(f.Added, added...)
		}
		files = append(files, f)
	}
	return files
}

func randomLines(rnd *rand.Rand) (lines []byte) {
	for range rnd.IntN(30) {
		for range []int{0, 3, 12, 2000}[min(3, rnd.IntN(60)/15+rnd.IntN(2)*rnd.IntN(2))] / (1 + rnd.IntN(3)) {
			lines = append(lines, []string{"ab ", "alpha ", "be", "Gamma(", "x", "δ"}[rnd.IntN(6)]...)
			if rnd.IntN(30) == 0 {
				lines = fmt.Appendf(lines, "rare%d", rnd.IntN(300))
			}
		}
		lines = append(lines, '\n')
	}
	return lines
}

// indexOf writes a commit that changes some files, and opens its file. Up to few bytes of lines have sets of
// trigrams.
func indexOf(t *testing.T, files []*git.PatchFile, few int) *index {
	t.Helper()
	dir := t.TempDir()
	w, err := newRecorder(dir, 0, func(string) (uint32, bool) { return 0, false })
	if err != nil {
		t.Fatal(err)
	}
	w.lines.few = few
	err = w.Commit(&git.PatchCommit{ID: strings.Repeat("ab", 20), Message: "message"})
	for _, f := range files {
		if err == nil {
			err = w.File(f)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x, err := openIndex(dir, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.close)
	return x
}
