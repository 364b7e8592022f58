package symbols

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard/query"
)

// maxSimilar is how many symbols are looked at for similar names.
const maxSimilar = 10_000

// similar adds names of symbols that are like one: the same letters in
// another case, then those that take the fewest changes, then those that have
// it in them, the shortest first.
//
// Of a short name more symbols may be like it than are looked at, so that the nearest
// might be left out: whatever one mistake makes of it is looked for first, and where
// there is such a name, for no other.
func (s *Finder) similar(ctx context.Context, v catalog.Viewer, req SymbolRequest, name string, out *SymbolResponse) error {
	req.Signature = false // names are all that is wanted
	names := map[string]bool{}
	whole := true
	for _, expr := range []string{oneEditExpr(name), similarExpr(name)} {
		if expr == "" {
			continue
		}

		found, err := s.symbols(ctx, v, req, &query.Text{Pattern: expr, Regexp: true, Field: query.Symbol}, maxSimilar)
		if err != nil {
			return err
		}
		for _, f := range found.Files {
			for _, m := range f.Matches {
				names[m.Name] = true
			}
		}
		whole = found.Coverage.Exhaustive()

		delete(names, "")
		if len(names) > 0 {
			break
		}
	}

	list := nearNames(name, slices.Collect(maps.Keys(names)))
	for _, n := range list[:min(len(list), 10)] {
		out.Similar = append(out.Similar, n.name)
	}

	// With two mistakes another name may be as near, among those that were not looked at.
	most := mostEdits
	if !whole {
		most = 1
	}
	out.Mistyped = len(list) > 0 && list[0].rank <= most
	return nil
}

// longestOneEdit is how many letters a name has at most for which oneEditExpr is
// worth its length: of a longer one the pieces of similarExpr are rare.
const longestOneEdit = 32

// oneEditExpr is an expression for the names that one mistake makes of a name, "" for
// none. In place of a letter nothing, another one, or one more stands, or it has
// changed places with the next. For abc:
//
//	^(.{0,2}bc|bac|a.{0,2}c|acb|ab.{0,2})$
func oneEditExpr(name string) string {
	letters := []rune(name)
	if len(letters) > longestOneEdit {
		return ""
	}

	var parts []string
	for i := range letters {
		before, after := string(letters[:i]), string(letters[i+1:])
		parts = append(parts, regexp.QuoteMeta(before)+".{0,2}"+regexp.QuoteMeta(after))
		if i+1 < len(letters) && letters[i] != letters[i+1] {
			parts = append(parts, regexp.QuoteMeta(before+string(letters[i+1])+string(letters[i])+string(letters[i+2:])))
		}
	}
	return "(?i)^(" + strings.Join(parts, "|") + ")$"
}

// nearName is a name that is like another.
type nearName struct {
	name    string
	rank    int // by likeness, in any case
	letters int // 0 where it has the same letters in another order
	cased   int // edits between the two as they are written; any number above mostCases is the same
}

// mostCases is how far the case of letters is told apart, in edits.
const mostCases = 20

// nearNames are those of some names that are like one, the nearest first; of some
// that are as near, those with the same letters, then those that are written in the
// same case.
func nearNames(name string, others []string) (list []nearName) {
	lower, letters := strings.ToLower(name), lettersOf(name)
	// Names of the index are only likely to be like it: each is measured, and once.
	for _, other := range others {
		rank, ok := likeness(lower, strings.ToLower(other))
		if !ok {
			continue
		}

		n := nearName{other, rank, 0, paths.Near(name, other, mostCases)}
		if lettersOf(other) != letters {
			n.letters = 1
		}
		list = append(list, n)
	}

	slices.SortFunc(list, func(a, b nearName) int {
		return cmp.Or(a.rank-b.rank, a.letters-b.letters, a.cased-b.cased, len(a.name)-len(b.name), strings.Compare(a.name, b.name))
	})
	return list
}

// lettersOf is the letters of a name in their own order, all in lower case.
func lettersOf(name string) string {
	letters := []rune(strings.ToLower(name))
	slices.Sort(letters)
	return string(letters)
}

// mostEdits is how many letters of a name may be wrong.
const mostEdits = 2

// longestNear is how many letters a name has at most for which others are near.
const longestNear = 200

// similarExpr is an expression for the names that may be like one. Of a name in
// mostEdits+1 pieces, one piece stays as it is, whichever letters are wrong, and not
// far from its place. Millions of names end in "ction": so the first letter is right
// too, or else what follows it is. For performEviction:
//
//	^perfo.{8,12}$           the first piece is right
//	^p.{2,6}rmEvi.{3,7}$     the second, and the first letter
//	^p.{7,11}ction$          the third
//	^.{0,2}erfo.{8,12}$      all of the first piece but its first letter
//	^.{3,7}rmEviction$       all behind the first piece
//	performEviction          it stands in a longer name
//
// A short name has one mistake at most, and two pieces, which it can only have both
// changed where the letters at their border are exchanged.
func similarExpr(name string) string {
	letters := []rune(name)
	n, third, half := len(letters), len(letters)/(mostEdits+1), len(letters)/2

	var parts []string
	switch {
	case n > longestNear: // nobody mistypes such a name, and expressions count to 1,000 only
	case third >= 2:
		first := "^" + regexp.QuoteMeta(name[:len(string(letters[:1]))])
		parts = append(parts,
			"^"+pieceExpr(letters, 0, third, mostEdits),
			first+pieceExpr(letters[1:], third-1, 2*third-1, mostEdits),
			first+pieceExpr(letters[1:], 2*third-1, n-1, mostEdits),
			"^.{0,2}"+pieceExpr(letters[1:], 0, third-1, mostEdits),
			"^"+pieceExpr(letters, third, n, mostEdits))
	case half >= 2:
		parts = append(parts, "^"+pieceExpr(letters, 0, half, 1), "^"+pieceExpr(letters, half, n, 1))
		swapped := slices.Clone(letters)
		swapped[half-1], swapped[half] = swapped[half], swapped[half-1]
		parts = append(parts, "^"+regexp.QuoteMeta(string(swapped))+"$")
	}

	// Or the whole of it stands in a longer one.
	parts = append(parts, regexp.QuoteMeta(name))
	return "(?i)" + strings.Join(parts, "|")
}

// pieceExpr is an expression for what has the letters first to last-1 of a name as
// they are, with as many letters before and behind them as so many edits leave.
func pieceExpr(letters []rune, first, last, edits int) string {
	around := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(".{%d,%d}", max(0, n-edits), n+edits)
	}
	return around(first) + regexp.QuoteMeta(string(letters[first:last])) + around(len(letters)-last) + "$"
}

// likeness ranks a name that is like another, the nearest first; false for one
// that is not. Both are in lower case.
func likeness(name, other string) (rank int, ok bool) {
	if name == other {
		return 0, true
	}
	// With half of its letters changed a short name is another one.
	if d := paths.Near(name, other, mostEdits); d <= mostEdits && d < len(name)/2 {
		return d, true
	}

	switch i := strings.Index(other, name); {
	case i == 0:
		return mostEdits + 1, true
	case i > 0:
		return mostEdits + 2, true
	}
	return 0, false
}
