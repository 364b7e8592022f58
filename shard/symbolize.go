package shard

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// Symbolize writes the symbols side of a part and gives the part with it. The
// file is not in the set yet: the caller says what keeps it, then calls Add. An error of tag for one file costs the symbols of
// that file; only the end of ctx ends the whole. Documents whose symbols are
// known from known parts are copied instead of read.
func (s *Set) Symbolize(ctx context.Context, p Part, known []Part, tag Tagger) (Part, error) {
	p.Symbols = ""
	v, missing := s.Acquire([]Part{p})
	defer v.Release()
	if len(missing) > 0 {
		return p, fmt.Errorf("symbolize: shard %s is not here", p.Shard)
	}
	m := v.members[0]
	if err := m.ready(); err != nil {
		s.quarantine(m.bad.name, err)
		return p, fmt.Errorf("symbolize: %w", err)
	}
	old, _ := s.Acquire(known)
	defer old.Release()
	y := &symbolizer{m: m, tag: tag, names: newInterner(), parents: newInterner(), kinds: map[string]uint32{}}
	if err := y.copyKnown(ctx, old); err != nil {
		return p, fmt.Errorf("symbolize: %w", err)
	}
	if err := y.run(ctx); err != nil {
		return p, fmt.Errorf("symbolize: %w", err)
	}
	name, err := y.write(ctx, s.dir)
	if err != nil {
		return p, fmt.Errorf("symbolize: %w", err)
	}
	p.Symbols = name
	return p, nil
}

// symbolizer collects the symbols of a shard.
type symbolizer struct {
	m    *member
	tag  Tagger
	docs [][]byte // by document: its symbols as appendRow writes them; nil: not yet known

	mu      sync.Mutex // guards the fields below
	names   *interner
	parents *interner // the name, a zero, the kind
	kinds   map[string]uint32
	kindsBy []string
	next    int
	err     error
}

// run tags the documents, as many groups of them at a time as there are cores.
func (y *symbolizer) run(ctx context.Context) error {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0) + 1
	group := min(max(int(y.m.sh.m.textBytes)/(workers*groupShare), leastGroup), mostGroup)
	for range workers {
		wg.Go(func() {
			w := tagging{y: y, group: group}
			for more := true; more; {
				err := guarded(func() (err error) {
					more, err = w.next(ctx)
					return err
				})
				if err != nil {
					y.fail(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return y.err
}

// The text that is handed to the tagger at once. It is less where that would
// leave nothing to the other cores.
const (
	leastGroup = 16 << 10
	mostGroup  = 512 << 10
	groupShare = 8 // groups for each goroutine, at least
)

// take gives the next document that is to be tagged.
func (y *symbolizer) take(ctx context.Context) (int, bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for y.next < len(y.docs) && y.docs[y.next] != nil {
		y.next++
	}
	if y.err == nil {
		y.err = ctx.Err()
	}
	d := y.next
	y.next++
	return d, y.err == nil && d < len(y.docs)
}

func (y *symbolizer) fail(err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.err == nil {
		y.err = err
	}
}

// maxKinds is the number of kinds from which on no new one is believed: two
// bytes hold each of them, and "".
const maxKinds = 1<<16 - 1

// kindNumber gives the number of a kind. The lock is held, or nobody else is
// there.
func (y *symbolizer) kindNumber(kind string) uint32 {
	if len(y.kindsBy) >= maxKinds {
		kind = "" // nobody has so many: something talks nonsense
	}
	n, ok := y.kinds[kind]
	if !ok {
		n = uint32(len(y.kindsBy))
		y.kinds[kind] = n
		y.kindsBy = append(y.kindsBy, kind)
	}
	return n
}

// parentKey is how symbolizer.parents has a parent.
func parentKey(dst, name []byte, kind string) []byte {
	return append(append(append(dst, name...), 0), kind...)
}

// key gives the language and the blob of a document, on which its symbols
// depend; false where the document has no text.
func (m *member) key(d int) (place, bool) {
	o := int(m.sh.docOccur.at(d))
	if o == int(m.sh.docOccur.at(d+1)) || m.sh.docUnit.at(d) == m.sh.docUnit.at(d+1) {
		return place{}, false
	}
	return place{m.sh.m.languages[m.sh.occLang.at(o)], m.sh.oid(d)}, true
}
