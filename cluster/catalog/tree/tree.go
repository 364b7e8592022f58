package tree

import (
	"cmp"
	"iter"
	"strings"

	"github.com/google/btree"
)

// degree of the trees: a change copies a few nodes of at most twice as many
// items on the way from the root.
const degree = 24

// Tree is an ordered map that can be frozen at no cost: nodes are shared with
// the frozen copy until one side changes them. The live side belongs to one
// goroutine; frozen copies are read by any.
type Tree[K cmp.Ordered, V any] struct {
	live   *btree.BTreeG[pair[K, V]]
	frozen *btree.BTreeG[pair[K, V]] // nil when live has changed since
}

type pair[K cmp.Ordered, V any] struct {
	key K
	val V
}

// New makes an empty tree.
func New[K cmp.Ordered, V any]() Tree[K, V] {
	less := func(a, b pair[K, V]) bool { return a.key < b.key }
	return Tree[K, V]{live: btree.NewG(degree, less)}
}

// Freeze returns a tree that later changes do not touch. Nothing may be
// set in it.
func (t *Tree[K, V]) Freeze() Tree[K, V] {
	if t.frozen == nil {
		t.frozen = t.live.Clone()
	}
	return Tree[K, V]{live: t.frozen}
}

// Get reports the value of a key, and whether there is one.
func (t *Tree[K, V]) Get(k K) (V, bool) {
	p, ok := t.live.Get(pair[K, V]{key: k})
	return p.val, ok
}

// Set gives a key its value.
func (t *Tree[K, V]) Set(k K, v V) {
	t.frozen = nil
	t.live.ReplaceOrInsert(pair[K, V]{k, v})
}

// Delete takes a key away; one that is not there changes nothing.
func (t *Tree[K, V]) Delete(k K) {
	t.frozen = nil
	t.live.Delete(pair[K, V]{key: k})
}

// Len is the number of keys.
func (t *Tree[K, V]) Len() int { return t.live.Len() }

// All goes through the tree in order. The tree must not change meanwhile.
func (t *Tree[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.live.Ascend(func(p pair[K, V]) bool { return yield(p.key, p.val) })
	}
}

// From goes through the keys that are not less than k, in order.
func (t *Tree[K, V]) From(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.live.AscendGreaterOrEqual(pair[K, V]{key: k}, func(p pair[K, V]) bool { return yield(p.key, p.val) })
	}
}

// Under goes through what follows a prefix in the keys that have it, in order. from is
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

// down goes through the keys that are not greater than k, from there to the first.
func (t *Tree[K, V]) down(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.live.DescendLessOrEqual(pair[K, V]{key: k}, func(p pair[K, V]) bool { return yield(p.key, p.val) })
	}
}

// Min returns the first pair.
func (t *Tree[K, V]) Min() (K, V, bool) {
	p, ok := t.live.Min()
	return p.key, p.val, ok
}

// Sum is the hashes of all records together, modulo 2^64.
func (t *Table[K, T]) Sum() uint64 { return t.total }

// Same reports whether nothing has changed from one frozen table to another.
func (t *Table[K, T]) Same(other *Table[K, T]) bool { return t.live == other.live }

// Table is a tree of records that are saved in snapshots and counted in the
// state hash. Records are immutable: a change sets a new one.
type Table[K cmp.Ordered, T any] struct {
	Tree[K, stored]
	hashOf func(rec any) uint64
	total  uint64 // of the hashes of all records, modulo 2^64

	// changed are the keys that were set or deleted since origin, the oldest first. A
	// frozen table has those until then. They are forgotten, with a new origin, where
	// looking each of them up costs more than going through all records.
	changed []K
	origin  *int
}

// leastChanged is the number of changed keys that a table of any size remembers.
const leastChanged = 1024

// stored is a record in a tree. It is one type for records of all tables: the
// code of a tree is compiled once for each type in it, in each package that
// reads a view.
type stored struct {
	rec  any // *T
	Hash uint64
}

// NewTable makes an empty table. hash is what a record, a *T, adds to the state hash.
func NewTable[K cmp.Ordered, T any](hash func(rec any) uint64) Table[K, T] {
	return Table[K, T]{Tree: New[K, stored](), hashOf: hash, origin: new(int)}
}

// Freeze returns a table that later changes do not touch. Nothing may be set in it.
func (t *Table[K, T]) Freeze() Table[K, T] {
	return Table[K, T]{Tree: t.Tree.Freeze(), hashOf: t.hashOf, total: t.total, changed: t.changed, origin: t.origin}
}

// Changed lists the keys whose records may differ from those of another frozen table,
// some of them more than once. It costs as much as has changed. Without ok, any may.
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

// note remembers that the record of a key changes.
func (t *Table[K, T]) note(k K) {
	if len(t.changed) >= leastChanged+t.Len()/4 {
		t.changed, t.origin = nil, new(int)
	}
	t.changed = append(t.changed, k)
}

// Get returns nil when there is no record of that key.
func (t *Table[K, T]) Get(k K) *T {
	r, ok := t.Tree.Get(k)
	if !ok {
		return nil
	}
	return r.rec.(*T)
}

// Set puts a record in place of the one of its key.
func (t *Table[K, T]) Set(k K, rec *T) { t.Add(k, rec, t.hashOf(rec)) }

// Add is set of a record whose hash is known.
func (t *Table[K, T]) Add(k K, rec *T, hash uint64) {
	old, _ := t.Tree.Get(k)
	t.total += hash - old.Hash
	t.note(k)
	t.Tree.Set(k, stored{rec, hash})
}

// Delete takes the record of a key away; where there is none it changes nothing.
func (t *Table[K, T]) Delete(k K) {
	old, ok := t.Tree.Get(k)
	if !ok {
		return
	}
	t.total -= old.Hash
	t.note(k)
	t.Tree.Delete(k)
}

// Records goes through the records in the order of their keys.
func (t *Table[K, T]) Records() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, r := range t.All() {
			if !yield(r.rec.(*T)) {
				return
			}
		}
	}
}

// Where lists the records for which a condition holds, in the order of their keys. The
// table may change while the caller goes through them.
func (t *Table[K, T]) Where(is func(*T) bool) (found []*T) {
	for rec := range t.Records() {
		if is(rec) {
			found = append(found, rec)
		}
	}
	return found
}

// From goes through the records whose keys are not less than k, in order.
func (t *Table[K, T]) From(k K) iter.Seq2[K, *T] { return recordsOf[K, T](t.Tree.From(k)) }

// Down goes through the records whose keys are not greater than k, from there to the first.
func (t *Table[K, T]) Down(k K) iter.Seq2[K, *T] { return recordsOf[K, T](t.Tree.down(k)) }

// First returns the record of the least key, or nil in an empty table.
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
