package shard

import (
	"encoding/binary"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
)

// A .dead file says how a later generation reads the occurrences that an
// older shard has of one repository:
//
//	meta     name of the shard, the repository with its present revisions,
//	         for each bit of a mask the bit of the shard that it takes over
//	occurs   column32: the occurrences for which that is not the truth, sorted
//	masks    column64: their revisions now; 0 for a dead one
//
// So a moved branch costs a few bytes for each file that it changed, and a
// new tag on an indexed commit costs nothing.
type deadFile struct {
	f *file

	once   sync.Once // guards the fields below
	err    error
	shard  string
	repo   Repository
	from   []uint8
	occurs column32
	masks  column64

	viewed atomic.Pointer[repoView] // what view gave
}

// The sections of a .dead file.
const (
	secDeadMeta sectionID = 1 + iota
	secDeadOccurs
	secDeadMasks
)

// noBit stands in from for a bit that takes over none.
const noBit = 255

// change is what a .dead file is written from.
type change struct {
	shard  string
	repo   Repository
	from   []uint8 // by bit, maxRevisions of them
	occurs []uint32
	masks  []uint64
}

// write writes the file.
func (c *change) write(dir string) (string, int64, error) {
	w, err := newFileWriter(dir, kindDead)
	if err != nil {
		return "", 0, err
	}
	var e encoder
	e.text(c.shard)
	e.repos([]Repository{c.repo})
	e.text(string(c.from))
	w.add(secDeadMeta, e.b)
	var occurs, masks []byte
	for i, o := range c.occurs {
		occurs = binary.LittleEndian.AppendUint32(occurs, o)
		masks = binary.LittleEndian.AppendUint64(masks, c.masks[i])
	}
	w.add(secDeadOccurs, occurs)
	w.add(secDeadMasks, masks)
	return w.finish()
}

// remap moves the bits of a mask of the shard to where from puts them.
func remap(from []uint8, mask uint64) uint64 {
	var out uint64
	for i, f := range from {
		if f < maxRevisions && mask>>f&1 != 0 {
			out |= 1 << i
		}
	}
	return out
}

func (d *deadFile) ready() error {
	d.once.Do(func() {
		if d.err = d.load(); d.err != nil {
			d.err = fmt.Errorf("%s: %w", d.f.name, d.err)
		}
	})
	return d.err
}

func (d *deadFile) load() error {
	b, err := d.f.bytes(secDeadMeta)
	if err != nil {
		return err
	}
	dec := decoder{b: b}
	d.shard = dec.text()
	repos := dec.repos()
	d.from = []uint8(dec.text())
	if dec.err != nil {
		return dec.err
	}
	if d.occurs, err = d.f.bytes(secDeadOccurs); err != nil {
		return err
	}
	if d.masks, err = d.f.bytes(secDeadMasks); err != nil {
		return err
	}
	if len(repos) != 1 || len(d.from) != maxRevisions || len(d.occurs)%4 != 0 ||
		len(d.masks) != 2*len(d.occurs) ||
		!sort.SliceIsSorted(make([]struct{}, d.occurs.len()), func(i, j int) bool { return d.occurs.at(i) < d.occurs.at(j) }) {
		return fmt.Errorf("%w: columns do not fit together", ErrDamaged)
	}
	d.repo = repos[0]
	return nil
}

// view gives the reading of the repository at place i of the shard.
func (d *deadFile) view(s *shard, i int) (*repoView, error) {
	if err := d.ready(); err != nil {
		return nil, err
	}
	if d.shard != s.f.name || d.repo.ID != s.m.repos[i].ID {
		return nil, fmt.Errorf("%s: %w: it belongs to %s", d.f.name, ErrDamaged, d.shard)
	}
	if v := d.viewed.Load(); v != nil {
		return v, nil
	}
	v := &repoView{id: d.repo.ID, revisions: d.repo.Revisions, always: ^uint64(0), changed: map[uint32]uint64{}}
	v.masks = make([]uint64, s.masks.len())
	for k := range v.masks {
		v.masks[k] = remap(d.from, s.masks.at(k))
	}
	for k := range d.occurs.len() {
		if int(d.occurs.at(k)) >= s.m.occurs {
			return nil, fmt.Errorf("%s: %w: occurrence out of range", d.f.name, ErrDamaged)
		}
		v.changed[d.occurs.at(k)] = d.masks.at(k)
	}
	for o := range s.m.occurs {
		if int(s.occRepo.at(o)) != i {
			continue
		}
		if m := v.mask(s, o); m != 0 {
			v.always &= m
			v.ever |= m
		}
	}
	d.viewed.Store(v)
	return v, nil
}
