package symbols

import (
	"bytes"
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/shard/file"
)

// copyKnown copies the symbols of each document from the first known file that has them. For a
// document for which tag failed in all known files, it sets c.tries.
func (c *collector) copyKnown(ctx context.Context, known []Known) error {
	if len(known) == 0 {
		return nil
	}

	missing := map[Key]int{} // documents without symbols so far
	for doc := range c.docs {
		if key, ok := c.texts.Key(doc); ok {
			missing[key] = doc
		}
	}

	for _, k := range known {
		old := copying{c: c, from: k.File, names: make([]uint32, k.File.names), parents: make([]uint32, len(k.File.parents))}
		for doc := range k.Texts.Count {
			key, ok := k.Texts.Key(doc)
			to, isMissing := missing[key]
			if !ok || !isMissing {
				continue
			}
			// If tag failed for the document in this file, a later known file may have its symbols.
			if tries := k.File.failedTries(doc); tries > 0 {
				c.tries[to] = uint8(tries)
			} else {
				old.docs = append(old.docs, copiedDoc{doc, to})
				delete(missing, key)
			}
		}

		if err := file.Guard(old.copyDocuments); err != nil {
			return fmt.Errorf("copy known symbols: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// copying copies the symbols of some documents from an older file. First it numbers the names that
// occur in them, page by page. Then it copies the rows, with the new numbers.
type copying struct {
	c      *collector
	from   *File
	docs   []copiedDoc
	recent Recent

	names   []uint32 // by old number: nameUnused, nameUsed, or the new number + firstName
	parents []uint32 // by old number: the new number + 1; 0 if it has none yet
}

// Values of copying.names.
const (
	nameUnused = iota
	nameUsed   // no new number yet
	firstName  // the name has new number 0
)

// copiedDoc is a document: its numbers in the old and in the new shard.
type copiedDoc struct{ from, to int }

// copyDocuments copies the documents in docs.
func (o *copying) copyDocuments() error {
	for _, d := range o.docs {
		err := o.from.Rows(d.from, &o.recent, func(r Row) bool {
			o.names[r.Name] = nameUsed
			return true
		})
		if err != nil {
			return err
		}
	}

	if err := o.renumberNames(); err != nil {
		return err
	}
	for _, d := range o.docs {
		if err := o.copyRows(d); err != nil {
			return err
		}
	}
	return nil
}

// renumberNames gives a new number to each name with nameUsed.
func (o *copying) renumberNames() error {
	var buf []byte
	var err error
	for p := range o.from.pageName.Len() {
		n := int(o.from.pageName.At(p))
		if buf, err = o.from.decodePage(p, buf); err != nil {
			return err
		}

		// A page has one name per line; n is the number of the next.
		for text := buf; len(text) > 0 && n < len(o.names); n++ {
			name, rest, _ := bytes.Cut(text, newline)
			text = rest
			if o.names[n] != nameUsed {
				continue
			}

			number, ok := o.c.names.intern(name, o.c.names.hash(name))
			if !ok {
				return errNoRoom
			}
			o.names[n] = number + firstName
		}
	}
	return nil
}

// copyRows copies the rows of a document.
func (o *copying) copyRows(d copiedDoc) error {
	coded, before := []byte{}, Row{}
	var failed error
	err := o.from.Rows(d.from, &o.recent, func(r Row) bool {
		if o.names[r.Name] < firstName {
			failed = o.from.f.Damaged("name %d", r.Name)
			return false
		}

		// Replace the numbers of name, kind and parent by those in the new file.
		r.Name = int(o.names[r.Name] - firstName)
		r.Kind = int(o.c.kindNumberLocked(o.from.kinds[r.Kind]))
		if r.Parent > 0 {
			number, err := o.renumberParent(r.Parent - 1)
			if failed = err; err != nil {
				return false
			}
			r.Parent = number + 1
		}

		// Rows are differences to the row before.
		coded = appendRow(coded, before, r)
		before = r
		return true
	})

	if failed != nil {
		return failed
	}

	if err != nil {
		return err
	}

	// The order of the rows is unchanged, so their extents are, too.
	o.c.docs[d.to] = coded
	o.c.extents[d.to], err = o.from.decodeExtents(d.from, nil)
	return err
}

// renumberParent returns the new number of a parent by its old one.
func (o *copying) renumberParent(n int) (int, error) {
	if o.parents[n] == 0 {
		p := o.from.parents[n]
		key := appendParentKey(nil, []byte(p.name), p.kind)
		number, ok := o.c.parents.intern(key, o.c.parents.hash(key))
		if !ok {
			return 0, errNoRoom
		}
		o.parents[n] = number + 1
	}
	return int(o.parents[n] - 1), nil
}
