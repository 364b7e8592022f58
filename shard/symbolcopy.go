package shard

import (
	"bytes"
	"context"
	"fmt"
)

// copyKnown takes over the symbols of the documents that older parts have.
func (y *symbolizer) copyKnown(ctx context.Context, old *View) error {
	y.docs = make([][]byte, y.m.sh.m.documents)
	want := map[place]int{}
	for _, m := range old.members {
		if m.ready() != nil || m.sym == nil {
			continue
		}
		if len(want) == 0 {
			for d := range y.docs {
				if key, ok := y.m.key(d); ok {
					want[key] = d
				}
			}
		}
		c := symbolCopy{y: y, from: m.sym.sym, names: make([]uint32, m.sym.sym.names), parents: make([]uint32, len(m.sym.sym.parents))}
		for d := range m.sh.m.documents {
			key, ok := m.key(d)
			if to, wanted := want[key]; ok && wanted {
				c.docs = append(c.docs, copiedDoc{d, to})
				delete(want, key)
			}
		}
		if err := guarded(c.run); err != nil {
			return fmt.Errorf("copy known symbols: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// symbolCopy copies symbols out of an older file: of its names those that are
// used, page by page, then the rows with their new numbers.
type symbolCopy struct {
	y    *symbolizer
	from *symbolsFile
	docs []copiedDoc
	held heldSymbols

	names   []uint32 // by old number: 0 not used, 1 used, then the new number and 2
	parents []uint32 // by old number: the new one and 1, or 0
}

// copiedDoc is a document by its numbers in the old and in the new shard.
type copiedDoc struct{ from, to int }

func (c *symbolCopy) run() error {
	for _, d := range c.docs {
		err := c.from.rows(d.from, &c.held, func(r symbolRow) bool {
			c.names[r.name] = 1
			return true
		})
		if err != nil {
			return err
		}
	}
	if err := c.number(); err != nil {
		return err
	}
	for _, d := range c.docs {
		if err := c.copy(d); err != nil {
			return err
		}
	}
	return nil
}

// number gives the names that are used their new numbers.
func (c *symbolCopy) number() error {
	var buf []byte
	var err error
	for p := range c.from.pageName.len() {
		n := int(c.from.pageName.at(p))
		if buf, err = c.from.page(p, buf); err != nil {
			return err
		}
		for text := buf; len(text) > 0 && n < len(c.names); n++ {
			name, rest, _ := bytes.Cut(text, newline)
			text = rest
			if c.names[n] != 1 {
				continue
			}
			number, ok := c.y.names.number(name, c.y.names.hash(name))
			if !ok {
				return errNoRoom
			}
			c.names[n] = number + 2
		}
	}
	return nil
}

// copy copies the rows of a document.
func (c *symbolCopy) copy(d copiedDoc) error {
	coded, last := []byte{}, symbolRow{}
	var failed error
	err := c.from.rows(d.from, &c.held, func(r symbolRow) bool {
		if c.names[r.name] < 2 {
			failed = fmt.Errorf("%s: %w: name %d", c.from.f.name, ErrDamaged, r.name)
			return false
		}
		r.name = int(c.names[r.name] - 2)
		r.kind = int(c.y.kindNumber(c.from.kinds[r.kind]))
		if r.parent > 0 {
			if r.parent, failed = c.parent(r.parent - 1); failed != nil {
				return false
			}
		}
		coded = appendRow(coded, last, r)
		last = r
		return true
	})
	c.y.docs[d.to] = coded
	if failed != nil {
		return failed
	}
	return err
}

// parent gives the new number of a parent and one.
func (c *symbolCopy) parent(n int) (int, error) {
	if c.parents[n] == 0 {
		p := c.from.parents[n]
		key := parentKey(nil, []byte(p.name), p.kind)
		number, ok := c.y.parents.number(key, c.y.parents.hash(key))
		if !ok {
			return 0, errNoRoom
		}
		c.parents[n] = number + 1
	}
	return int(c.parents[n]), nil
}
