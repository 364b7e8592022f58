package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/shoalsearch/shoal/shard/file"
)

// Pack writes the documents of several parts, usually small ones of different repositories, into
// new shard files, because a search takes time for each file. It reads only the parts, never a
// mirror. The returned parts replace the given ones.
//
// The caller copies the symbols with [Set.Symbolize], with the old parts as known ones. Pack does
// not add the files to the set: the caller must first make sure that Retain keeps them, and then
// call Add.
func (s *Set) Pack(ctx context.Context, parts []Part, opt BuildOptions) ([]Built, error) {
	// The view keeps the parts open until the new file is written, even if somebody removes them.
	v, missing := s.Acquire(parts)
	defer v.Release()

	if len(missing) > 0 {
		return nil, fmt.Errorf("pack shards: %s is not here", missing[0].Shard.Name(KindShard))
	}

	src, err := newViewSource(v)
	if err != nil {
		return nil, fmt.Errorf("pack shards: %w", err)
	}
	opt.known = src.known // keep the decisions about size limits and encodings of the first build

	built, err := s.Build(ctx, src, opt)
	if err != nil {
		return nil, fmt.Errorf("pack shards: %w", err)
	}
	return built, nil
}

// viewSource is a Source with all live documents of a view.
type viewSource struct {
	repos   []Repository
	blobs   []Blob
	sources []textSource    // by blob: the document that has its text
	known   map[string]form // by blob id
}

// textSource is a document of a member.
type textSource struct {
	m   *member
	doc int
}

// newViewSource lists the blobs of a view. Repositories and blobs are sorted by id, so that the same
// parts give the same file. It quarantines a damaged file and returns its error.
func newViewSource(v *View) (*viewSource, error) {
	src := &viewSource{known: map[string]form{}}
	places := map[uint32]map[occurrenceKey]uint64{} // by repository id
	sources := map[string]textSource{}
	infos := map[uint32]Repository{}

	for _, m := range v.members {
		if err := m.ready(); err != nil {
			v.set.report(m, err)
			return nil, err
		}
		src.addMember(m, infos, places, sources)
	}

	// Number the repositories by their ids.
	numbers := map[uint32]int{}
	for _, id := range slices.Sorted(maps.Keys(infos)) {
		numbers[id] = len(src.repos)
		src.repos = append(src.repos, infos[id])
	}

	// Number the blobs by their object ids.
	blobs := map[string]int{}
	for _, oid := range slices.Sorted(maps.Keys(sources)) {
		sp := sources[oid]
		blobs[oid] = len(src.blobs)
		src.blobs = append(src.blobs, Blob{OID: oid, Size: int64(sp.m.sh.docSize.At(sp.doc))})
		src.sources = append(src.sources, sp)
	}

	// Add the occurrences of each blob.
	for _, id := range slices.Sorted(maps.Keys(places)) {
		for key, mask := range places[id] {
			b := &src.blobs[blobs[key.oid]]
			b.Occurrences = append(b.Occurrences, Occurrence{Repo: numbers[id], Path: key.path, Mask: mask})
		}
	}
	return src, nil
}

// addMember adds the repositories of a member to infos, and its documents with a live occurrence to
// places, sources and src.known.
func (src *viewSource) addMember(m *member, infos map[uint32]Repository, places map[uint32]map[occurrenceKey]uint64, sources map[string]textSource) {
	sh := m.sh
	for _, r := range m.repos {
		if r != nil {
			infos[r.id] = Repository{ID: r.id, Name: r.name, Revisions: r.revisions}
			if places[r.id] == nil {
				places[r.id] = map[occurrenceKey]uint64{}
			}
		}
	}

	// Add the documents that have a live occurrence.
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

			key := occurrenceKey{string(sh.path(int(sh.occPath.At(o)))), sh.oid(d)}
			places[r.id][key] |= mask

			// Prefer a document with content, because another member may have left it out.
			if known, ok := src.known[key.oid]; !ok || known.skip != indexed {
				src.known[key.oid] = formOf(sh.docSkip[d])
				sources[key.oid] = textSource{m, d}
			}
		}
	}
}

func (src *viewSource) Repositories() []Repository { return src.repos }
func (src *viewSource) Blobs() []Blob              { return src.blobs }

// Read implements Source: it decodes the documents.
func (src *viewSource) Read(ctx context.Context, want []int, use func(i int, content []byte) error) error {
	var t text
	for _, i := range want {
		if err := ctx.Err(); err != nil {
			return err
		}

		sp := src.sources[i]

		// Reading the mapped memory of a damaged file may fault.
		err := file.Guard(func() error {
			t.moveTo(sp.m.sh, sp.doc)
			return t.decodeUnits(0, t.units-1)
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
