package symbols

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/shoalsearch/shoal/shard/file"
)

// Write finds the symbols of some texts, writes them into a file in dir, and returns its id. It
// copies the symbols of documents that a known file has, and calls tag for all other documents. For
// a document for which tag failed before, it calls tag again only if again is set. If tag reports an
// error for a text, the symbols of that text stay unknown.
func Write(ctx context.Context, dir string, texts Texts, known []Known, again bool, tag Tagger) (file.ID, error) {
	c := &collector{
		texts: texts, tag: tag, docs: make([][]byte, texts.Count), extents: make([][]byte, texts.Count),
		again: again, tries: make([]uint8, texts.Count),
		names: newInterner(), parents: newInterner(), kinds: map[string]uint32{},
	}

	// tagDocuments tags only the documents that have no rows yet.
	if err := c.copyKnown(ctx, known); err != nil {
		return file.ID{}, err
	}

	if err := c.tagDocuments(ctx); err != nil {
		return file.ID{}, err
	}
	return c.writeFile(ctx, dir)
}

// collector collects the symbols of a shard.
type collector struct {
	texts Texts
	tag   Tagger
	docs  [][]byte // by document: its rows, as appendRow writes them; nil while not known

	extents [][]byte // by document: where the definitions of its rows end, as extentWriter writes it

	again bool    // tag documents again for which tag failed before
	tries []uint8 // by document: attempts to tag it that failed, and one more while an attempt runs

	mu        sync.Mutex // guards the fields below
	names     *interner
	parents   *interner // of keys as appendParentKey makes them
	kinds     map[string]uint32
	kindNames []string // by number
	next      int      // the next document to be tagged
	err       error
}

// errNoRoom reports more than 4 GiB of names.
var errNoRoom = errors.New("too many names of symbols")

// A batch is the documents that the tagger gets in one call. Its size in bytes of text is between
// these limits, and each goroutine gets at least batchesPerWorker batches.
const (
	minBatch         = 16 << 10
	maxBatch         = 512 << 10
	batchesPerWorker = 8
)

// tagDocuments tags the documents that have no rows yet, on all cores.
func (c *collector) tagDocuments(ctx context.Context) error {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0) + 1
	batch := min(max(int(c.texts.Bytes)/(workers*batchesPerWorker), minBatch), maxBatch)

	for range workers {
		wg.Go(func() {
			w := tagging{c: c, batch: batch, read: c.texts.Reader()}
			for more := true; more; {
				// Guard turns the fault of reading a truncated mapped file into an error.
				err := file.Guard(func() (err error) {
					more, err = w.tagBatch(ctx)
					return err
				})
				if err != nil {
					c.setError(err)
					return
				}
			}
		})
	}

	wg.Wait()
	return c.err
}

// takeDocument returns the number of the next document to be tagged. It returns false if there is
// none left, or if collecting has failed, as at the end of ctx.
func (c *collector) takeDocument(ctx context.Context) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	// No goroutine writes to documents from next on, so docs and tries may be read here.
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

// setError stores the first error. After it, takeDocument returns no more documents.
func (c *collector) setError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// maxKinds is how many kinds get a number, which has two bytes. All further kinds get that of "".
const maxKinds = 1<<16 - 1

// kindNumberLocked returns the number of a kind. The caller holds c.mu, or no other goroutine uses
// c.
func (c *collector) kindNumberLocked(kind string) uint32 {
	if len(c.kindNames) >= maxKinds {
		kind = "" // no correct tagger has so many kinds
	}

	n, ok := c.kinds[kind]
	if !ok {
		n = uint32(len(c.kindNames))
		c.kinds[kind] = n
		c.kindNames = append(c.kindNames, kind)
	}
	return n
}

// appendParentKey appends the key of a parent in collector.parents: its name, a zero byte, its
// kind.
func appendParentKey(dst, name []byte, kind string) []byte {
	return append(append(append(dst, name...), 0), kind...)
}
