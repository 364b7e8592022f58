package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/shoalsearch/shoal/shard/file"
)

// Pack writes the documents of several parts, usually all the small ones of
// different repositories, into shard files of their own: a search pays for each
// file, and thousands of small ones cost more than what is in them. It reads only
// the parts, never a mirror. The parts it returns replace those given; other parts
// of the same generations may stay beside them. [Set.Symbolize] copies the symbols,
// with the old parts as known ones. The files are not in the set yet: the caller
// first makes sure that something keeps them, then calls Add.
func (s *Set) Pack(ctx context.Context, parts []Part, opt BuildOptions) ([]Built, error) {
	// The parts stay open until the new file is written, whoever removes them meanwhile.
	v, missing := s.Acquire(parts)
	defer v.Release()

	if len(missing) > 0 {
		return nil, fmt.Errorf("pack shards: %s is not here", missing[0].Shard.Name(KindShard))
	}

	src, err := newViewSource(v)
	if err != nil {
		return nil, fmt.Errorf("pack shards: %w", err)
	}
	opt.known = src.known // the limits were applied when the files came in

	built, err := s.Build(ctx, src, opt)
	if err != nil {
		return nil, fmt.Errorf("pack shards: %w", err)
	}
	return built, nil
}

// viewSource is a source with all that is alive in a view.
type viewSource struct {
	repos []Repository
	blobs []Blob
	at    []spot          // of each blob: where its text is
	known map[string]form // by blob id
}

// spot is a document of a member.
type spot struct {
	m   *member
	doc int
}

// newViewSource lists the blobs of a view. Everything is sorted by number or id,
// so that the same parts give the same file.
func newViewSource(v *View) (*viewSource, error) {
	src := &viewSource{known: map[string]form{}}
	places := map[uint32]map[place]uint64{} // by repository
	spots := map[string]spot{}
	infos := map[uint32]Repository{}

	for _, m := range v.members {
		if err := m.ready(); err != nil {
			v.set.quarantine(m.culprit(err), err)
			return nil, err
		}
		src.collect(m, infos, places, spots)
	}

	// Repositories by their ids.
	numbers := map[uint32]int{}
	for _, id := range slices.Sorted(maps.Keys(infos)) {
		numbers[id] = len(src.repos)
		src.repos = append(src.repos, infos[id])
	}

	// Blobs by their object ids.
	blobs := map[string]int{}
	for _, oid := range slices.Sorted(maps.Keys(spots)) {
		sp := spots[oid]
		blobs[oid] = len(src.blobs)
		src.blobs = append(src.blobs, Blob{OID: oid, Size: int64(sp.m.sh.docSize.At(sp.doc))})
		src.at = append(src.at, sp)
	}

	// And where each blob is.
	for _, id := range slices.Sorted(maps.Keys(places)) {
		for key, mask := range places[id] {
			b := &src.blobs[blobs[key.oid]]
			b.Occurrences = append(b.Occurrences, Occurrence{Repo: numbers[id], Path: key.path, Mask: mask})
		}
	}
	return src, nil
}

// collect adds all that is alive in a member.
func (src *viewSource) collect(m *member, infos map[uint32]Repository, places map[uint32]map[place]uint64, spots map[string]spot) {
	// The repositories, as this generation knows them.
	sh := m.sh
	for i, r := range m.repos {
		if r != nil {
			infos[r.id] = Repository{ID: r.id, Name: sh.m.repos[i].Name, Revisions: r.revisions}
			if places[r.id] == nil {
				places[r.id] = map[place]uint64{}
			}
		}
	}

	// The documents, by the occurrences that are alive.
	for d := range sh.m.documents {
		for o := int(sh.docOccur.At(d)); o < int(sh.docOccur.At(d+1)); o++ {
			r := m.repos[sh.occRepo.At(o)]
			if r == nil {
				continue
			}

			mask := r.mask(sh, o)
			if mask == 0 {
				continue
			}

			// A blob at one path of one repository, in these revisions.
			key := place{string(sh.path(int(sh.occPath.At(o)))), sh.oid(d)}
			places[r.id][key] |= mask

			// Elsewhere a blob may have been left out that has content here.
			if known, ok := src.known[key.oid]; !ok || known.skip != indexed {
				src.known[key.oid] = formOf(sh.docSkip[d])
				spots[key.oid] = spot{m, d}
			}
		}
	}
}

func (src *viewSource) Repositories() []Repository { return src.repos }
func (src *viewSource) Blobs() []Blob              { return src.blobs }

// Read decodes the documents.
func (src *viewSource) Read(ctx context.Context, want []int, use func(i int, content []byte) error) error {
	var t text
	for _, i := range want {
		if err := ctx.Err(); err != nil {
			return err
		}

		sp := src.at[i]

		// Mapped memory of a damaged file faults while it is read.
		err := file.Guard(func() error {
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
