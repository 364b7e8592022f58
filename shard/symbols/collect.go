package symbols

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/shoalsearch/shoal/shard/file"
)

// Write finds the symbols of some texts and writes them into a file in dir. Symbols of
// documents that older files know are copied instead of tagged. An error of tag for one
// text leaves the symbols of that text unknown; only the end of ctx, or a text that cannot be
// read, ends the whole. Texts whose symbols an older file does not know are tried once more
// with again; else they stay unknown.
func Write(ctx context.Context, dir string, texts Texts, known []Known, again bool, tag Tagger) (file.ID, error) {
	c := &collector{
		texts: texts, tag: tag, docs: make([][]byte, texts.Count), extents: make([][]byte, texts.Count),
		again: again, tries: make([]uint8, texts.Count),
		names: newInterner(), parents: newInterner(), kinds: map[string]uint32{},
	}

	// Known symbols first: a document that has its rows is not tagged any more.
	if err := c.copyKnown(ctx, known); err != nil {
		return file.ID{}, err
	}

	if err := c.run(ctx); err != nil {
		return file.ID{}, err
	}
	return c.write(ctx, dir)
}

// collector collects the symbols of a shard.
type collector struct {
	texts Texts
	tag   Tagger
	docs  [][]byte // by document: its rows, as appendRow writes them; nil while not known

	extents [][]byte // by document: how far its rows last, as extentWriter writes it

	again bool    // try documents that failed before
	tries []uint8 // by document: attempts that failed, or the last is under way

	mu      sync.Mutex // guards the fields below
	names   *interner
	parents *interner // of keys as parentKey makes them
	kinds   map[string]uint32
	kindsBy []string // by number
	next    int      // the next document to be tagged
	err     error
}

// errNoRoom reports more than 4 GiB of names.
var errNoRoom = errors.New("too many names of symbols")

// The amount of text that the tagger gets at once. It is less if other cores would have nothing to
// do.
const (
	leastGroup = 16 << 10
	mostGroup  = 512 << 10
	groupShare = 8 // groups for each goroutine, at least
)

// run tags the documents, on each core one group of them at a time.
func (c *collector) run(ctx context.Context) error {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0) + 1
	group := min(max(int(c.texts.Bytes)/(workers*groupShare), leastGroup), mostGroup)

	for range workers {
		wg.Go(func() {
			w := tagging{c: c, group: group, read: c.texts.Reader()}
			for more := true; more; {
				// Files are mapped: reading one that was cut short is a fault, which becomes an error.
				err := file.Guard(func() (err error) {
					more, err = w.next(ctx)
					return err
				})
				if err != nil {
					c.fail(err)
					return
				}
			}
		})
	}

	wg.Wait()
	return c.err
}

// take returns the next document to be tagged; false when there is none, or an error.
func (c *collector) take(ctx context.Context) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	// Documents from next on are nobody's yet: done writes only those that were taken.
	for c.next < len(c.docs) && (c.docs[c.next] != nil || c.tries[c.next] > 0 && !c.again) {
		c.next++
	}

	if c.err == nil {
		c.err = ctx.Err()
	}

	doc := c.next
	c.next++
	return doc, c.err == nil && doc < len(c.docs)
}

// fail remembers the first error; it ends the collecting.
func (c *collector) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// maxKinds is how many kinds are believed: two bytes hold their numbers, and that of "".
const maxKinds = 1<<16 - 1

// kindNumberLocked returns the number of a kind. c.mu is held, unless nobody else is at
// work.
func (c *collector) kindNumberLocked(kind string) uint32 {
	if len(c.kindsBy) >= maxKinds {
		kind = "" // nobody has so many: this is no list of kinds
	}

	n, ok := c.kinds[kind]
	if !ok {
		n = uint32(len(c.kindsBy))
		c.kinds[kind] = n
		c.kindsBy = append(c.kindsBy, kind)
	}
	return n
}

// parentKey appends what collector.parents has for a parent: its name, a zero, its kind.
func parentKey(dst, name []byte, kind string) []byte {
	return append(append(append(dst, name...), 0), kind...)
}
