package catalog

import (
	"cmp"
	"iter"

	"github.com/google/btree"
)

// degree of the trees: a change copies a few nodes of at most twice as many
// items on the way from the root.
const degree = 24

// tree is an ordered map that can be frozen at no cost: nodes are shared with
// the frozen copy until one side changes them. The live side belongs to one
// goroutine; frozen copies are read by any.
type tree[K cmp.Ordered, V any] struct {
	live   *btree.BTreeG[pair[K, V]]
	frozen *btree.BTreeG[pair[K, V]] // nil when live has changed since
}

type pair[K cmp.Ordered, V any] struct {
	key K
	val V
}

func newTree[K cmp.Ordered, V any]() tree[K, V] {
	less := func(a, b pair[K, V]) bool { return a.key < b.key }
	return tree[K, V]{live: btree.NewG(degree, less)}
}

// freeze returns a tree that later changes do not touch. Nothing may be
// set in it.
func (t *tree[K, V]) freeze() tree[K, V] {
	if t.frozen == nil {
		t.frozen = t.live.Clone()
	}
	return tree[K, V]{live: t.frozen}
}

func (t *tree[K, V]) get(k K) (V, bool) {
	p, ok := t.live.Get(pair[K, V]{key: k})
	return p.val, ok
}

func (t *tree[K, V]) set(k K, v V) {
	t.frozen = nil
	t.live.ReplaceOrInsert(pair[K, V]{k, v})
}

func (t *tree[K, V]) delete(k K) {
	t.frozen = nil
	t.live.Delete(pair[K, V]{key: k})
}

func (t *tree[K, V]) len() int { return t.live.Len() }

// all goes through the tree in order. The tree must not change meanwhile.
func (t *tree[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.live.Ascend(func(p pair[K, V]) bool { return yield(p.key, p.val) })
	}
}

// from goes through the keys that are not less than k, in order.
func (t *tree[K, V]) from(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.live.AscendGreaterOrEqual(pair[K, V]{key: k}, func(p pair[K, V]) bool { return yield(p.key, p.val) })
	}
}

// down goes through the keys that are not greater than k, from there to the first.
func (t *tree[K, V]) down(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.live.DescendLessOrEqual(pair[K, V]{key: k}, func(p pair[K, V]) bool { return yield(p.key, p.val) })
	}
}

// min returns the first pair.
func (t *tree[K, V]) min() (K, V, bool) {
	p, ok := t.live.Min()
	return p.key, p.val, ok
}

// table is a tree of records that are saved in snapshots and counted in the
// state hash. Records are immutable: a change sets a new one.
type table[K cmp.Ordered, T any] struct {
	tree[K, stored]
	kind *recordKind
	sum  uint64 // of the hashes of all records, modulo 2^64
}

// stored is a record in a tree. It is one type for records of all tables: the
// code of a tree is compiled once for each type in it, in each package that
// reads a view.
type stored struct {
	rec  any // *T
	hash uint64
}

func newTable[K cmp.Ordered, T any](kind *recordKind) table[K, T] {
	return table[K, T]{tree: newTree[K, stored](), kind: kind}
}

func (t *table[K, T]) freeze() table[K, T] {
	return table[K, T]{tree: t.tree.freeze(), kind: t.kind, sum: t.sum}
}

// get returns nil when there is no record of that key.
func (t *table[K, T]) get(k K) *T {
	r, ok := t.tree.get(k)
	if !ok {
		return nil
	}
	return r.rec.(*T)
}

func (t *table[K, T]) set(k K, rec *T) { t.add(k, rec, t.kind.hash(rec)) }

// add is set of a record whose hash is known.
func (t *table[K, T]) add(k K, rec *T, hash uint64) {
	old, _ := t.tree.get(k)
	t.sum += hash - old.hash
	t.tree.set(k, stored{rec, hash})
}

func (t *table[K, T]) delete(k K) {
	old, ok := t.tree.get(k)
	if !ok {
		return
	}
	t.sum -= old.hash
	t.tree.delete(k)
}

// records goes through the records in the order of their keys.
func (t *table[K, T]) records() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, r := range t.all() {
			if !yield(r.rec.(*T)) {
				return
			}
		}
	}
}

// from goes through the records whose keys are not less than k, in order.
func (t *table[K, T]) from(k K) iter.Seq2[K, *T] { return recordsOf[K, T](t.tree.from(k)) }

// down goes through the records whose keys are not greater than k, from there to the first.
func (t *table[K, T]) down(k K) iter.Seq2[K, *T] { return recordsOf[K, T](t.tree.down(k)) }

// first returns the record of the least key, or nil in an empty table.
func (t *table[K, T]) first() *T {
	_, r, ok := t.tree.min()
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
