package shard

import (
	"encoding/binary"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/shoalsearch/shoal/shard/file"
)

// A .dead file says how a later generation reads the occurrences of one repository in an older
// shard:
//
//	meta     name of the shard, the repository with its revisions in this generation, and
//	         from: for each bit of a mask in this generation, the bit in the shard that it equals
//	occurs   file.Column32: the occurrences for which from gives a wrong mask, sorted
//	masks    file.Column64: their masks in this generation; 0 for a dead occurrence
//
// An example. The shard has HEAD as bit 0, and occurrences 0, 1, 2 with mask 1. A
// push changes the file of occurrence 1, and adds a tag on the old commit as bit 1:
//
//	from     0 0 - - ...    both bits come from bit 0: mask 1 reads as 0b11
//	occurs   1              of occurrence 1 only the tag is left
//	masks    0b10
//
// So a moved branch costs a few bytes for each file that it changed, and a new tag
// on an indexed commit costs nothing.
type deadFile struct {
	f *file.File

	once   sync.Once // guards the fields below
	err    error
	shard  string
	repo   Repository
	from   []uint8
	occurs file.Column32
	masks  file.Column64

	viewed atomic.Pointer[repoView] // the last result of view
}

// The sections of a .dead file.
const (
	secDeadMeta file.SectionID = 1 + iota
	secDeadOccurs
	secDeadMasks
)

// noBit marks an unused bit in from.
const noBit = 255

// change is the content of a .dead file.
type change struct {
	shard  string
	repo   Repository
	from   []uint8 // by bit, maxRevisions of them
	occurs []uint32
	masks  []uint64
}

// write writes a .dead file into dir, and returns its id and size.
func (c *change) write(dir string, v file.Versions) (FileID, int64, error) {
	w, err := file.NewWriter(dir, KindDead, v)
	if err != nil {
		return FileID{}, 0, err
	}

	var e file.Encoder
	e.Text(c.shard)
	appendRepos(&e, []Repository{c.repo})
	e.Text(string(c.from))
	w.Add(secDeadMeta, e.B)

	// Each occurrence that differs has a row. Rows ascend, so that readers can search them.
	var occurs, masks []byte
	for i, o := range c.occurs {
		occurs = binary.LittleEndian.AppendUint32(occurs, o)
		masks = binary.LittleEndian.AppendUint64(masks, c.masks[i])
	}

	w.Add(secDeadOccurs, occurs)
	w.Add(secDeadMasks, masks)
	return w.Finish()
}

// mapBits returns the mask of a generation for a mask of the shard: bit i of the result is bit
// from[i] of mask. For from = {0 0 noBit ...} and mask 0b1 it is 0b11.
func mapBits(from []uint8, mask uint64) uint64 {
	var out uint64
	for i, f := range from {
		if f < maxRevisions && mask>>f&1 != 0 {
			out |= 1 << i
		}
	}
	return out
}

// ready reads and checks the file once. Every other method calls it first.
func (d *deadFile) ready() error {
	d.once.Do(func() {
		d.err = d.f.Blame(d.readSections())
	})
	return d.err
}

// readSections reads and checks the sections of the file. Only ready calls it, once.
func (d *deadFile) readSections() error {
	b, err := d.f.Bytes(secDeadMeta)
	if err != nil {
		return err
	}

	dec := file.NewDecoder(b)
	d.shard = dec.Text()
	repos := readRepos(dec)
	d.from = []uint8(dec.Text())
	if err := dec.Err(); err != nil {
		return err
	}

	if d.occurs, err = d.f.Bytes(secDeadOccurs); err != nil {
		return err
	}
	if d.masks, err = d.f.Bytes(secDeadMasks); err != nil {
		return err
	}

	// Binary search needs ascending rows and columns of equal length.
	if len(repos) != 1 || len(d.from) != maxRevisions || len(d.occurs)%4 != 0 ||
		len(d.masks) != 2*len(d.occurs) ||
		!sort.SliceIsSorted(make([]struct{}, d.occurs.Len()), func(i, j int) bool { return d.occurs.At(i) < d.occurs.At(j) }) {
		return fmt.Errorf("%w: columns do not fit together", ErrDamaged)
	}
	d.repo = repos[0]
	return nil
}

// viewOf returns how to read repository i of the shard as repo, and caches the result. It returns an
// error if the file belongs to another shard or repository.
func (d *deadFile) viewOf(s *shard, i int, repo uint32) (*repoView, error) {
	if err := d.ready(); err != nil {
		return nil, err
	}
	if d.shard != s.f.Name() || d.repo.ID != repo {
		return nil, d.f.Damaged("it belongs to %s", d.shard)
	}

	if v := d.viewed.Load(); v != nil {
		return v, nil
	}

	// Compute each mask of the shard in the generation of this file.
	v := &repoView{id: d.repo.ID, name: d.repo.Name, revisions: d.repo.Revisions, always: ^uint64(0), changed: map[uint32]uint64{}}
	v.masks = make([]uint64, s.masks.Len())
	for k := range v.masks {
		v.masks[k] = mapBits(d.from, s.masks.At(k))
	}

	// Add the occurrences for which that mask is wrong.
	for k := range d.occurs.Len() {
		if int(d.occurs.At(k)) >= s.m.occurs {
			return nil, d.f.Damaged("occurrence out of range")
		}
		v.changed[d.occurs.At(k)] = d.masks.At(k)
	}

	for o := range s.m.occurs {
		if int(s.occRepo.At(o)) != i {
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
