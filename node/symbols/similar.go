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

// maxSimilar is the largest number of symbols examined for similar names.
const maxSimilar = 10_000

// similar adds similar names of symbols to the answer: first those with the same letters in another
// case, then by number of edits, then names that contain it, the shortest first.
//
// A short name may have more similar names than are examined, so the nearest could be missed. Names
// with one edit are therefore searched first, and others only if there are none.
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

	// After an incomplete search, names with two edits may have missed equally near ones.
	most := mostEdits
	if !whole {
		most = 1
	}
	out.Mistyped = len(list) > 0 && list[0].rank <= most
	return nil
}

// longestOneEdit is the longest name for which oneEditExpr is used. For longer names the pieces of
// similarExpr are rare enough.
const longestOneEdit = 32

// oneEditExpr returns an expression for all names that differ by one edit: a removed, replaced or
// inserted letter, or two swapped letters. It returns "" for a name that is too long. For abc:
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

// nearName is a name that is similar to another.
type nearName struct {
	name    string
	rank    int // by likeness, in any case
	letters int // 0 where it has the same letters in another order
	cased   int // edits between the two as they are written; any number above mostCases is the same
}

// mostCases is the largest number of edits of case that are distinguished.
const mostCases = 20

// nearNames returns the similar names among others, the nearest first. Equally near names are
// sorted by whether they have the same letters, and then by case.
func nearNames(name string, others []string) (list []nearName) {
	lower, letters := strings.ToLower(name), lettersOf(name)
	// The index only returns candidates, so measure each.
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

// lettersOf returns the letters of a name in lower case, sorted.
func lettersOf(name string) string {
	letters := []rune(strings.ToLower(name))
	slices.Sort(letters)
	return string(letters)
}

// mostEdits is the largest number of wrong letters in a name.
const mostEdits = 2

// longestNear is the longest name for which similar ones are searched.
const longestNear = 200

// similarExpr returns an expression for names that may be similar. If a name is cut into
// mostEdits+1 pieces, one piece is unchanged whatever the edits are, and near its position.
// Millions of names end in "ction", so either the first letter or everything after it must match
// too. For performEviction:
//
//	^perfo.{8,12}$           the first piece is right
//	^p.{2,6}rmEvi.{3,7}$     the second, and the first letter
//	^p.{7,11}ction$          the third, and the first letter
//	^.{0,2}erfo.{8,12}$      the first piece without its first letter
//	^.{3,7}rmEviction$       everything after the first piece
//	performEviction          it is part of a longer name
//
// A short name has at most one edit and two pieces. Only swapping the letters at their border
// changes both.
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

	// The whole name may be part of a longer one.
	parts = append(parts, regexp.QuoteMeta(name))
	return "(?i)" + strings.Join(parts, "|")
}

// pieceExpr returns an expression for names that contain letters[first:last] unchanged, with the
// other letters changed by at most edits edits.
func pieceExpr(letters []rune, first, last, edits int) string {
	around := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(".{%d,%d}", max(0, n-edits), n+edits)
	}
	return around(first) + regexp.QuoteMeta(string(letters[first:last])) + around(len(letters)-last) + "$"
}

// likeness ranks a similar name, 0 for the nearest. ok is false if it is not similar. Both names
// are in lower case.
func likeness(name, other string) (rank int, ok bool) {
	if name == other {
		return 0, true
	}
	// A short name with half of its letters changed is another name.
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
