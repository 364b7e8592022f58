package tree

import (
	"cmp"
	"iter"
	"strings"

	"github.com/google/btree"
)

// degree of the B-trees. A change copies one path of nodes, each with fewer than 2*degree items.
const degree = 24

// Tree is an ordered map with cheap frozen copies: both sides share nodes until one changes them.
// Only one goroutine may use the live side; any goroutine may read a frozen copy.
type Tree[K cmp.Ordered, V any] struct {
	live   *btree.BTreeG[pair[K, V]]
	frozen *btree.BTreeG[pair[K, V]] // nil: live has changed since the last Freeze
}

type pair[K cmp.Ordered, V any] struct {
	key K
	val V
}

// New returns an empty tree.
func New[K cmp.Ordered, V any]() Tree[K, V] {
	less := func(a, b pair[K, V]) bool { return a.key < b.key }
	return Tree[K, V]{live: btree.NewG(degree, less)}
}

// Freeze returns a read-only copy that later changes do not affect.
func (t *Tree[K, V]) Freeze() Tree[K, V] {
	if t.frozen == nil {
		t.frozen = t.live.Clone()
	}
	return Tree[K, V]{live: t.frozen}
}

// Get returns the value of a key, and whether the key exists.
func (t *Tree[K, V]) Get(k K) (V, bool) {
	p, ok := t.live.Get(pair[K, V]{key: k})
	return p.val, ok
}

// Set stores the value of a key.
func (t *Tree[K, V]) Set(k K, v V) {
	t.frozen = nil
	t.live.ReplaceOrInsert(pair[K, V]{k, v})
}

// Delete removes a key, if it exists.
func (t *Tree[K, V]) Delete(k K) {
	t.frozen = nil
	t.live.Delete(pair[K, V]{key: k})
}

// Len returns the number of keys.
func (t *Tree[K, V]) Len() int { return t.live.Len() }

// All iterates over all pairs by key. The tree must not change meanwhile.
func (t *Tree[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.live.Ascend(func(p pair[K, V]) bool { return yield(p.key, p.val) })
	}
}

// From iterates over the pairs with keys from k on.
func (t *Tree[K, V]) From(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.live.AscendGreaterOrEqual(pair[K, V]{key: k}, func(p pair[K, V]) bool { return yield(p.key, p.val) })
	}
}

// Under iterates over the keys with a prefix, and yields the rest of each key. from is the method
// From of the tree or table.
func Under[V any](from func(string) iter.Seq2[string, V], prefix string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for key, v := range from(prefix) {
			rest, ok := strings.CutPrefix(key, prefix)
			if !ok || !yield(rest, v) {
				return
			}
		}
	}
}

// down iterates backwards over the pairs with keys up to k.
func (t *Tree[K, V]) down(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.live.DescendLessOrEqual(pair[K, V]{key: k}, func(p pair[K, V]) bool { return yield(p.key, p.val) })
	}
}

// Min returns the pair with the least key.
func (t *Tree[K, V]) Min() (K, V, bool) {
	p, ok := t.live.Min()
	return p.key, p.val, ok
}

// Sum returns the sum of all records' hashes, modulo 2^64.
func (t *Table[K, T]) Sum() uint64 { return t.total }

// Same reports whether two frozen tables are equal because nothing changed between them.
func (t *Table[K, T]) Same(other *Table[K, T]) bool { return t.live == other.live }

// Table is a tree of records that snapshots save and the state hash covers. Records are immutable:
// a change sets a new one.
type Table[K cmp.Ordered, T any] struct {
	Tree[K, stored]
	hashOf func(rec any) uint64
	total  uint64 // sum of the hashes of all records, modulo 2^64

	// changed lists the keys that were set or deleted since origin, oldest first. The list is
	// dropped, with a new origin, when a look-up of each key would cost more than a walk over all
	// records.
	changed []K
	origin  *int
}

// minChanged is the number of changed keys that even a small table remembers.
const minChanged = 1024

// stored is a record with its hash. All tables share this type, so that the generic code of trees
// is compiled only once.
type stored struct {
	rec  any // a *T
	Hash uint64
}

// NewTable returns an empty table. hash returns the part of the state hash of a record, a *T.
func NewTable[K cmp.Ordered, T any](hash func(rec any) uint64) Table[K, T] {
	return Table[K, T]{Tree: New[K, stored](), hashOf: hash, origin: new(int)}
}

// Freeze returns a read-only copy that later changes do not affect.
func (t *Table[K, T]) Freeze() Table[K, T] {
	return Table[K, T]{Tree: t.Tree.Freeze(), hashOf: t.hashOf, total: t.total, changed: t.changed, origin: t.origin}
}

// Changed returns the keys whose records may differ from those of another frozen table. A key may
// appear twice. If ok is false, any record may differ.
func (t *Table[K, T]) Changed(other *Table[K, T]) (keys []K, ok bool) {
	if t.origin != other.origin {
		return nil, false
	}
	long, short := t.changed, other.changed
	if len(long) < len(short) {
		long, short = short, long
	}
	return long[len(short):], true
}

// note records that the record of a key changes.
func (t *Table[K, T]) note(k K) {
	if len(t.changed) >= minChanged+t.Len()/4 {
		t.changed, t.origin = nil, new(int)
	}
	t.changed = append(t.changed, k)
}

// Get returns the record of a key, or nil.
func (t *Table[K, T]) Get(k K) *T {
	r, ok := t.Tree.Get(k)
	if !ok {
		return nil
	}
	return r.rec.(*T)
}

// Set stores the record of a key.
func (t *Table[K, T]) Set(k K, rec *T) { t.Add(k, rec, t.hashOf(rec)) }

// Add stores a record whose hash is known.
func (t *Table[K, T]) Add(k K, rec *T, hash uint64) {
	old, _ := t.Tree.Get(k)
	t.total += hash - old.Hash
	t.note(k)
	t.Tree.Set(k, stored{rec, hash})
}

// Delete removes the record of a key, if there is one.
func (t *Table[K, T]) Delete(k K) {
	old, ok := t.Tree.Get(k)
	if !ok {
		return
	}
	t.total -= old.Hash
	t.note(k)
	t.Tree.Delete(k)
}

// Records iterates over the records by key.
func (t *Table[K, T]) Records() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, r := range t.All() {
			if !yield(r.rec.(*T)) {
				return
			}
		}
	}
}

// Where returns the records for which is holds, by key. The caller may change the table while it
// uses the result.
func (t *Table[K, T]) Where(is func(*T) bool) (found []*T) {
	for rec := range t.Records() {
		if is(rec) {
			found = append(found, rec)
		}
	}
	return found
}

// From iterates over the records with keys from k on.
func (t *Table[K, T]) From(k K) iter.Seq2[K, *T] { return recordsOf[K, T](t.Tree.From(k)) }

// Down iterates backwards over the records with keys up to k.
func (t *Table[K, T]) Down(k K) iter.Seq2[K, *T] { return recordsOf[K, T](t.Tree.down(k)) }

// First returns the record with the least key, or nil.
func (t *Table[K, T]) First() *T {
	_, r, ok := t.Tree.Min()
	if !ok {
		return nil
	}
	return r.rec.(*T)
}

func recordsOf[K cmp.Ordered, T any](all iter.Seq2[K, stored]) iter.Seq2[K, *T] {
	return func(yield func(K, *T) bool) {
		for k, r := range all {
			if !yield(k, r.rec.(*T)) {
				return
			}
		}
	}
}
