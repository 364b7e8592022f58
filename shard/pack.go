package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Pack writes the documents of several parts, usually all small ones of
// different repositories, into shard files of their own: a search pays for
// each file, so thousands of small ones cost more than what is in them.
// Everything is read from the parts, nothing from a mirror. The parts of the
// answer replace those given; other parts of the same generations may stay
// beside them. Symbols are copied by [Set.Symbolize] with the old parts as
// known ones. The files are not in the set yet: the caller says what keeps them,
// then calls Add.
func (s *Set) Pack(ctx context.Context, parts []Part, opt BuildOptions) ([]Built, error) {
	v, missing := s.Acquire(parts)
	defer v.Release()
	if len(missing) > 0 {
		return nil, fmt.Errorf("pack shards: %s is not here", missing[0].Shard)
	}
	src, err := newViewSource(v)
	if err != nil {
		return nil, fmt.Errorf("pack shards: %w", err)
	}
	opt.known = src.known // the limits were applied when the files came in
	built, err := Build(ctx, s.dir, src, opt)
	if err != nil {
		return nil, fmt.Errorf("pack shards: %w", err)
	}
	return built, nil
}

// viewSource is the parts of a view as a source.
type viewSource struct {
	repos []Repository
	blobs []Blob
	at    []spot
	known map[string]skip
}

// spot is a document of a member.
type spot struct {
	m   *member
	doc int
}

func newViewSource(v *View) (*viewSource, error) {
	src := &viewSource{known: map[string]skip{}}
	places := map[uint32]map[place]uint64{} // by repository
	spots := map[string]spot{}
	infos := map[uint32]Repository{}
	for _, m := range v.members {
		if err := m.ready(); err != nil {
			v.set.quarantine(m.bad.name, err)
			return nil, err
		}
		src.collect(m, infos, places, spots)
	}
	numbers := map[uint32]int{}
	for _, id := range slices.Sorted(maps.Keys(infos)) {
		numbers[id] = len(src.repos)
		src.repos = append(src.repos, infos[id])
	}
	blobs := map[string]int{}
	for _, oid := range slices.Sorted(maps.Keys(spots)) {
		sp := spots[oid]
		blobs[oid] = len(src.blobs)
		src.blobs = append(src.blobs, Blob{OID: oid, Size: int64(sp.m.sh.docSize.at(sp.doc))})
		src.at = append(src.at, sp)
	}
	for _, id := range slices.Sorted(maps.Keys(places)) {
		for key, mask := range places[id] {
			b := &src.blobs[blobs[key.oid]]
			b.Occurrences = append(b.Occurrences, Occurrence{Repo: numbers[id], Path: key.path, Mask: mask})
		}
	}
	return src, nil
}

// collect adds what is alive in a member.
func (src *viewSource) collect(m *member, infos map[uint32]Repository, places map[uint32]map[place]uint64, spots map[string]spot) {
	sh := m.sh
	for i, r := range m.repos {
		if r != nil {
			infos[r.id] = Repository{ID: r.id, Name: sh.m.repos[i].Name, Revisions: r.revisions}
			if places[r.id] == nil {
				places[r.id] = map[place]uint64{}
			}
		}
	}
	for d := range sh.m.documents {
		for o := int(sh.docOccur.at(d)); o < int(sh.docOccur.at(d+1)); o++ {
			r := m.repos[sh.occRepo.at(o)]
			if r == nil {
				continue
			}
			mask := r.mask(sh, o)
			if mask == 0 {
				continue
			}
			key := place{string(sh.path(int(sh.occPath.at(o)))), sh.oid(d)}
			places[r.id][key] |= mask
			// One that has content rather than one that was skipped elsewhere.
			if why, ok := src.known[key.oid]; !ok || why != indexed {
				src.known[key.oid] = skip(sh.docSkip[d])
				spots[key.oid] = spot{m, d}
			}
		}
	}
}

func (src *viewSource) Repositories() []Repository { return src.repos }
func (src *viewSource) Blobs() []Blob              { return src.blobs }

// Read decodes documents.
func (src *viewSource) Read(ctx context.Context, want []int, use func(i int, content []byte) error) error {
	var t text
	for _, i := range want {
		if err := ctx.Err(); err != nil {
			return err
		}
		sp := src.at[i]
		err := guarded(func() error {
			t.open(sp.m.sh, sp.doc)
			return t.load(0, t.units-1)
		})
		if err != nil {
			return err
		}
		if err := use(i, t.buf); err != nil {
			return err
		}
	}
	return nil
}
