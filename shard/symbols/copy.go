package symbols

import (
	"bytes"
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/shard/file"
)

// copyKnown copies the symbols of the documents that older files know.
func (c *collector) copyKnown(ctx context.Context, known []Known) error {
	if len(known) == 0 {
		return nil
	}

	want := map[Key]int{} // documents whose symbols are not known yet
	for doc := range c.docs {
		if key, ok := c.texts.Key(doc); ok {
			want[key] = doc
		}
	}

	for _, k := range known {
		old := copying{c: c, from: k.File, names: make([]uint32, k.File.names), parents: make([]uint32, len(k.File.parents))}
		for doc := range k.Texts.Count {
			key, ok := k.Texts.Key(doc)
			to, wanted := want[key]
			if !ok || !wanted {
				continue
			}
			// Another file may have the symbols that this one lacks.
			if tries := k.File.tries(doc); tries > 0 {
				c.tries[to] = uint8(tries)
			} else {
				old.docs = append(old.docs, copiedDoc{doc, to})
				delete(want, key)
			}
		}

		if err := file.Guard(old.run); err != nil {
			return fmt.Errorf("copy known symbols: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// copying copies symbols from an older file: of its names those that are used, page by
// page, then the rows with their new numbers.
type copying struct {
	c      *collector
	from   *File
	docs   []copiedDoc
	recent Recent

	names   []uint32 // by old number: 0 unused, 1 used, from firstName on the new number
	parents []uint32 // by old number: the new number and one, 0 for none yet
}

// firstName is what copying.names has for new number 0.
const firstName = 2

// copiedDoc is a document: its numbers in the old and in the new shard.
type copiedDoc struct{ from, to int }

// run copies the documents in docs.
func (o *copying) run() error {
	// Which names are used.
	for _, d := range o.docs {
		err := o.from.Rows(d.from, &o.recent, func(r Row) bool {
			o.names[r.Name] = 1
			return true
		})
		if err != nil {
			return err
		}
	}

	if err := o.number(); err != nil {
		return err
	}
	for _, d := range o.docs {
		if err := o.copy(d); err != nil {
			return err
		}
	}
	return nil
}

// number gives new numbers to the names that are used.
func (o *copying) number() error {
	var buf []byte
	var err error
	for p := range o.from.pageName.Len() {
		n := int(o.from.pageName.At(p))
		if buf, err = o.from.page(p, buf); err != nil {
			return err
		}

		// Names are one per line in a page; n is the number of the next.
		for text := buf; len(text) > 0 && n < len(o.names); n++ {
			name, rest, _ := bytes.Cut(text, newline)
			text = rest
			if o.names[n] != 1 {
				continue
			}

			number, ok := o.c.names.number(name, o.c.names.hash(name))
			if !ok {
				return errNoRoom
			}
			o.names[n] = number + firstName
		}
	}
	return nil
}

// copy copies the rows of a document.
func (o *copying) copy(d copiedDoc) error {
	coded, before := []byte{}, Row{}
	var failed error
	err := o.from.Rows(d.from, &o.recent, func(r Row) bool {
		if o.names[r.Name] < firstName {
			failed = o.from.f.Damaged("name %d", r.Name)
			return false
		}

		// Names, kinds and parents get the numbers of the new file.
		r.Name = int(o.names[r.Name] - firstName)
		r.Kind = int(o.c.kindNumberLocked(o.from.kinds[r.Kind]))
		if r.Parent > 0 {
			if r.Parent, failed = o.parent(r.Parent - 1); failed != nil {
				return false
			}
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

	// The rows are the same in number and order, so their extents are, too.
	o.c.docs[d.to] = coded
	o.c.extents[d.to], err = o.from.extentsOf(d.from, nil)
	return err
}

// parent returns the new number of a parent, and one.
func (o *copying) parent(n int) (int, error) {
	if o.parents[n] == 0 {
		p := o.from.parents[n]
		key := parentKey(nil, []byte(p.name), p.kind)
		number, ok := o.c.parents.number(key, o.c.parents.hash(key))
		if !ok {
			return 0, errNoRoom
		}
		o.parents[n] = number + 1
	}
	return int(o.parents[n]), nil
}
