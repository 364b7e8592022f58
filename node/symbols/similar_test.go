package symbols

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/node/paths"
)

// TestSimilarNames_findEveryMistypedName makes up to two mistakes in names, anywhere, and
// the expression for each has to find the name that was meant.
func TestSimilarNames_findEveryMistypedName(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, right := range []string{"performEvictions", "fsmSnapshot", "Store", "need_to_gc", "vm_swappiness", "größteZahl"} {
		most := mostEdits
		if len([]rune(right)) < 3*(mostEdits+1) {
			most = 1 // of short names: see similarExpr
		}
		for range 400 {
			wrong := mistyped(r, right, 1+r.IntN(most))
			if expr := similarExpr(wrong); !regexp.MustCompile(expr).MatchString(right) {
				t.Fatalf("%s is not found by %s: %s", right, wrong, expr)
			}
		}
	}
}

// mistyped puts a letter in, leaves one out or changes one, some times.
func mistyped(r *rand.Rand, name string, mistakes int) string {
	letters := []rune(name)
	for range mistakes {
		i := r.IntN(len(letters))
		switch r.IntN(3) {
		case 0:
			letters = append(letters[:i:i], append([]rune{'x'}, letters[i:]...)...)
		case 1:
			letters = append(letters[:i:i], letters[i+1:]...)
		default:
			letters[i] = 'x'
		}
	}
	return string(letters)
}

// TestSimilarNames_skipNamesThatOnlyEndAlike: of the names of Linux ten thousand would
// come before the one that was meant.
func TestSimilarNames_skipNamesThatOnlyEndAlike(t *testing.T) {
	t.Parallel()
	expr := regexp.MustCompile(similarExpr("performEviction"))
	for _, other := range []string{"netlink_function", "mod_vmstat_action", "xt_match_section", "performance_counter_of_a_section"} {
		if expr.MatchString(other) {
			t.Errorf("%s is looked for", other)
		}
	}
	if long := strings.Repeat("aVeryLongName", 100); !regexp.MustCompile(similarExpr(long)).MatchString(long + "s") {
		t.Error("a long name is not found in a longer one")
	}
}

// TestSimilarNames_findAllNamesWithOneMistake: an expression finds each name that is one
// mistake away, and none that is more than two away, up to the length at which it is
// worth its own.
func TestSimilarNames_findAllNamesWithOneMistake(t *testing.T) {
	t.Parallel()
	if got, want := oneEditExpr("abc"), "(?i)^(.{0,2}bc|bac|a.{0,2}c|acb|ab.{0,2})$"; got != want {
		t.Errorf("abc: %s, want %s", got, want)
	}

	r := rand.New(rand.NewPCG(3, 4))
	for _, wrong := range []string{"zmaloc", "x.y", "größteZahl", strings.Repeat("n", longestOneEdit)} {
		expr := regexp.MustCompile(oneEditExpr(wrong))
		for range 1000 {
			other := mistyped(r, wrong, 1+r.IntN(3))
			if i := r.IntN(len(wrong) - 1); r.IntN(4) == 0 && wrong[i] < 0x80 && wrong[i+1] < 0x80 {
				other = wrong[:i] + string(wrong[i+1]) + string(wrong[i]) + wrong[i+2:]
			}
			far := paths.Near(strings.ToLower(wrong), strings.ToLower(other), 3)
			if utf8.RuneCountInString(wrong) != len(wrong) && far > 0 {
				continue // Edits counts bytes
			}
			if found := expr.MatchString(other); found && far > 2 || !found && far <= 1 {
				t.Fatalf("%s for %s, %d edits away: found %v", expr, other, far, found)
			}
		}
	}
	if oneEditExpr(strings.Repeat("n", longestOneEdit+1)) != "" {
		t.Error("a long name has an expression")
	}
}

func TestSimilarNames_decideByMistakesAndLength(t *testing.T) {
	t.Parallel()
	for other, want := range map[string]int{"fsmsnapshot": 1, "fsmsnaphot": 0, "fsmsnaphotstore": mostEdits + 1, "myfsmsnaphot": mostEdits, "xyfsmsnaphotz": mostEdits + 2} {
		if got, ok := likeness("fsmsnaphot", other); !ok || got != want {
			t.Errorf("%s: %d %t, want %d", other, got, ok, want)
		}
	}
	if _, ok := likeness("fsmsnaphot", "snapshot"); ok {
		t.Error("another name is like it")
	}
	if !regexp.MustCompile(similarExpr("performEvictons")).MatchString("performEvictions") {
		t.Error("a misspelled name is not looked for")
	}
	// Wherever they are: the name is cut in the middle to be looked for.
	for wrong, right := range map[string]string{"evitc": "evict", "mian": "main", "amin": "main", "mani": "main", "pasre": "parse", "prase": "parse"} {
		if got, ok := likeness(wrong, right); !ok || got != 1 || !regexp.MustCompile(similarExpr(wrong)).MatchString(right) {
			t.Errorf("two letters of a short name in the wrong order, %s: %d %t", wrong, got, ok)
		}
	}

	// Of letters of several bytes, none is cut: half a letter would be in every name.
	if expr := regexp.MustCompile(similarExpr("世界和平")); expr.MatchString("main") || !expr.MatchString("世界你好") {
		t.Errorf("%s", expr)
	}
}
