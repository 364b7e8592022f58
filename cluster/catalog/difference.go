package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"strings"
)

// Difference tells how two states differ in one table.
type Difference struct {
	Table string
	Count int      // records that are missing in one state or not equal
	Keys  []string // of the first such records
}

// String names the table, the count and the keys.
func (d Difference) String() string {
	text := fmt.Sprintf("%s (%d)", d.Table, d.Count)
	if len(d.Keys) > 0 {
		text += ": " + strings.Join(d.Keys, ", ")
	}
	if d.Count > len(d.Keys) && len(d.Keys) > 0 {
		text += ", ..."
	}
	return text
}

// Differences returns the tables in which two states differ, each with up to maxNamed keys.
func (v *View) Differences(other *View, maxNamed int) (out []Difference) {
	for name, hashes := range map[string][2]uint64{
		metaKind.name:   {v.metaHash, other.metaHash},
		levelKind.name:  {v.raisedHash, other.raisedHash},
		configKind.name: {v.confHash, other.confHash},
	} {
		if hashes[0] != hashes[1] {
			out = append(out, Difference{Table: name, Count: 1})
		}
	}
	for _, row := range v.rows {
		if d := row.differ(&v.tables, &other.tables, maxNamed); d.Count > 0 {
			out = append(out, d)
		}
	}
	return out
}

// differ implements tableRow. It lists the keys that only one table has, or whose records differ.
func (r *row[K, T]) differ(a, b *tables, maxNamed int) Difference {
	d := Difference{Table: r.kind.name}
	addKey := func(k K) {
		if d.Count++; len(d.Keys) < maxNamed {
			d.Keys = append(d.Keys, keyText(k))
		}
	}
	if r.sum(a) == r.sum(b) {
		return d
	}

	// Walk both tables in key order, side by side.
	nextLeft, stopLeft := iter.Pull2(r.at(a).Tree.All())
	defer stopLeft()
	nextRight, stopRight := iter.Pull2(r.at(b).Tree.All())
	defer stopRight()

	leftKey, left, hasLeft := nextLeft()
	rightKey, right, hasRight := nextRight()
	for hasLeft || hasRight {
		switch {
		case !hasRight || hasLeft && cmp.Less(leftKey, rightKey):
			addKey(leftKey)
			leftKey, left, hasLeft = nextLeft()
		case !hasLeft || cmp.Less(rightKey, leftKey):
			addKey(rightKey)
			rightKey, right, hasRight = nextRight()
		default:
			if left.Hash != right.Hash {
				addKey(leftKey)
			}
			leftKey, left, hasLeft = nextLeft()
			rightKey, right, hasRight = nextRight()
		}
	}
	return d
}

// keyText formats a key for a log line. Binary keys and keys with a zero byte are quoted.
func keyText(k any) string {
	text, ok := k.(string)
	if !ok {
		return fmt.Sprint(k)
	}
	if plain := func(r rune) bool { return r < ' ' || r > '~' }; bytes.IndexFunc([]byte(text), plain) >= 0 {
		return fmt.Sprintf("%+q", text)
	}
	return text
}
