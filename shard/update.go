package shard

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
)

// Update writes the next generation of the one repository of src from the parts of the present one.
// It reads only blobs that the present parts do not have at the same path, and writes side files
// for what they lose. It folds parts into new shards where that is cheaper. The returned parts
// replace all of old; their files are in the set. Old parts that are missing or damaged are built
// anew.
//
//	present   s1 {a b c d e}     s2 {f}         a push changes the files b and f
//	next      s1, .dead {b}      s3 {b f}       s2 is all dead and dropped
func (s *Set) Update(ctx context.Context, old []Part, src Source, opt BuildOptions) ([]Built, error) {
	opt = opt.withDefaults()
	repos := src.Repositories()
	if len(repos) != 1 {
		return nil, fmt.Errorf("update shards: %d repositories, want 1", len(repos))
	}

	v, _ := s.Acquire(old)
	defer v.Release()

	// Collect the present parts that can be read.
	u := &update{repo: repos[0], src: src, blobs: src.Blobs(), opt: opt}
	for _, m := range v.members {
		if err := m.ready(); err != nil {
			s.quarantine(m.culprit(err), err)
			continue
		}

		if p := newPrior(m, u.repo.ID); p != nil {
			u.prior = append(u.prior, p)
		}
	}

	// Large parts come first: a place that several parts have stays in the largest.
	slices.SortStableFunc(u.prior, func(a, b *prior) int { return cmp.Compare(b.text, a.text) })

	// Folding a part gives its places to other parts or to the delta. That may make the next part
	// worth folding.
	u.match()
	for u.fold() {
		u.match()
	}

	// Parts that stay keep their file; the rest becomes a new file.
	built, err := u.keep(s)
	if err != nil {
		return nil, err
	}

	fresh, err := s.Build(ctx, u.rest(), opt)
	if err != nil {
		return nil, err
	}

	built = append(built, fresh...)

	for _, b := range built {
		if err := s.Add(b.Files()...); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// update is one running call of Update.
type update struct {
	repo  Repository
	src   Source
	blobs []Blob
	opt   BuildOptions
	prior []*prior
	fresh [][]Occurrence // by blob: the places that no kept part has
	delta int64          // bytes of the blobs in fresh
}

// prior is a part of the present generation, and what the next generation needs of it.
type prior struct {
	m           *member
	part        Part
	index       int      // index of the repository in the shard
	want        []uint64 // by occurrence of the shard: its mask in the next generation; 0 means dead
	occurrences int      // number of the repository's occurrences
	alive       int      // number of those that stay alive
	share                // what the repository has of the file
}

// newPrior returns the part of a repository in a member; nil if there is none.
func newPrior(m *member, repo uint32) *prior {
	i, ok := m.sh.repoIndex(repo)
	if !ok || m.repos[i] == nil {
		return nil
	}

	for _, p := range m.parts {
		if p.Repo == repo {
			return &prior{m: m, part: p, index: i, share: m.sh.shareOf(i)}
		}
	}
	return nil
}

// place identifies an occurrence across generations: a blob at a path.
type place struct {
	path string
	oid  string
}

// match assigns each occurrence of the next generation to the part that already has it, otherwise
// to the delta.
func (u *update) match() {
	holders := u.holders()

	u.fresh, u.delta = make([][]Occurrence, len(u.blobs)), 0
	for i, b := range u.blobs {
		for _, o := range b.Occurrences {
			s, ok := holders[place{o.Path, b.OID}]

			// A part that has the blob at this path keeps it; only its revisions may have changed.
			if !ok {
				u.fresh[i] = append(u.fresh[i], o)
				continue
			}

			if s.p.want[s.occ] == 0 {
				s.p.alive++
			}
			s.p.want[s.occ] |= o.Mask
		}
		if u.fresh[i] != nil {
			u.delta += b.Size
		}
	}
}

// holder is an occurrence in a part of the present generation.
type holder struct {
	p   *prior
	occ int
}

// holders maps every place of the present generation to the first part that has it. It resets what
// the parts will have in the next generation.
func (u *update) holders() map[place]holder {
	holders := map[place]holder{}
	for _, p := range u.prior {
		sh := p.m.sh

		// A place that several parts have belongs to the first.
		p.want, p.occurrences, p.alive = make([]uint64, sh.m.occurs), 0, 0
		for d := range sh.m.documents {
			for o := int(sh.docOccur.At(d)); o < int(sh.docOccur.At(d+1)); o++ {
				if int(sh.occRepo.At(o)) != p.index {
					continue
				}

				p.occurrences++
				key := place{string(sh.path(int(sh.occPath.At(o)))), sh.oid(d)}
				if _, taken := holders[key]; !taken {
					holders[key] = holder{p, o}
				}
			}
		}
	}
	return holders
}

// fold drops parts that are better rewritten, and reports whether it dropped any. It drops a part
// that is mostly dead, or the smallest parts if there are too many. A part is folded only with
// others that are together at least a quarter as large, so each byte is rewritten a logarithmic
// number of times.
func (u *update) fold() bool {
	for i, p := range u.prior {
		if dead := p.occurrences - p.alive; float64(dead) > u.opt.DeadLimit*float64(p.occurrences) {
			u.prior = slices.Delete(u.prior, i, i+1)
			return true
		}
	}

	whole := 0 // parts about as large as a slice, which stay
	for whole < len(u.prior) && u.prior[whole].text >= u.opt.SliceBytes/4 {
		whole++
	}
	if len(u.prior)-whole < u.opt.DeltaLimit {
		return false
	}

	// Drop parts from the smallest up. Stop when one is more than four times the sum of those
	// before it and few enough are left.
	sum, keep := u.delta, len(u.prior)
	for keep > whole {
		size := u.prior[keep-1].text
		if size > 4*sum && keep-whole <= u.opt.DeltaLimit/2 {
			break
		}
		sum += size
		keep--
	}

	folded := keep < len(u.prior)
	u.prior = u.prior[:keep]
	return folded
}

// keep writes the side files of the parts that stay, and returns those parts.
func (u *update) keep(s *Set) ([]Built, error) {
	var built []Built
	for _, p := range u.prior {
		// Leave out a part without anything in the next generation.
		if p.alive == 0 {
			continue
		}

		part, err := p.next(s, u.repo)
		if err != nil {
			return nil, err
		}

		b := p.share.built(part, p.m.entry.size, p.m.sh.m)
		b.Occurrences = p.alive
		built = append(built, b)
	}
	return built, nil
}

// next returns the part as the next generation reads it. It writes a side file if that differs from
// the shard. The side file has a bit of the shard for each bit of the next generation, and the
// masks of the occurrences for which that is wrong.
func (p *prior) next(s *Set, repo Repository) (part Part, err error) {
	part, sh := p.part, p.m.sh

	c := change{shard: sh.f.Name(), repo: repo, from: p.sourceBits()}
	same := true // every mask is the one in the shard
	for o, want := range p.want {
		if int(sh.occRepo.At(o)) != p.index {
			continue
		}

		// Most occurrences follow from moving bits: write only the others.
		base := sh.masks.At(int(sh.occMask.At(o)))
		same = same && base == want
		if remap(c.from, base) != want {
			c.occurs = append(c.occurs, uint32(o))
			c.masks = append(c.masks, want)
		}
	}

	// Without a difference the shard needs no side file.
	if same && slices.EqualFunc(repo.Revisions, sh.m.repos[p.index].Revisions, sameRevision) {
		part.Dead = FileID{}
		return part, nil
	}

	part.Dead, _, err = c.write(s.dir, s.versions())
	return part, err
}

func sameRevision(a, b Revision) bool {
	return a.Name == b.Name && a.Commit == b.Commit && a.Bit == b.Bit
}

// sourceBits chooses for each bit of the next generation the bit of the shard that is right for most
// occurrences. If HEAD was bit 0 of the shard and is bit 1 now, and only three files changed,
// from[1] is 0: three exceptions instead of a mask for every file. noBit means that no occurrence
// has the bit.
func (p *prior) sourceBits() []uint8 {
	sh := p.m.sh

	// Distinct pairs of masks are few: count the occurrences of each.
	type pair struct{ base, want uint64 }
	count := map[pair]int{}
	var bases, wants uint64 // unions of the masks
	for o, want := range p.want {
		if int(sh.occRepo.At(o)) == p.index {
			base := sh.masks.At(int(sh.occMask.At(o)))
			count[pair{base, want}]++
			bases |= base
			wants |= want
		}
	}

	from := make([]uint8, maxRevisions)
	for j := range from {
		from[j] = noBit
		if wants>>j&1 == 0 {
			continue
		}

		// A bit must beat noBit, which is right wherever the bit is not wanted.
		best := 0
		for pr, n := range count {
			if pr.want>>j&1 == 0 {
				best += n
			}
		}

		for b := bases; b != 0; b &= b - 1 {
			i, right := bits.TrailingZeros64(b), 0
			for pr, n := range count {
				if pr.want>>j&1 == pr.base>>i&1 {
					right += n
				}
			}

			if right > best {
				best, from[j] = right, uint8(i)
			}
		}
	}
	return from
}

// rest returns a source of the blobs that no index file of the repository has yet. The delta is
// built from them.
func (u *update) rest() Source {
	r := &restSource{u: u}
	for i, occurrences := range u.fresh {
		if occurrences != nil {
			b := u.blobs[i]
			b.Occurrences = occurrences
			r.blobs = append(r.blobs, b)
			r.index = append(r.index, i)
		}
	}
	return r
}

// restSource is a source with some blobs of another source.
type restSource struct {
	u     *update
	blobs []Blob
	index []int // by blob: its index in the other source
}

func (r *restSource) Repositories() []Repository { return []Repository{r.u.repo} }
func (r *restSource) Blobs() []Blob              { return r.blobs }

// Read implements Source. r has only some blobs of the source, so their indexes are translated.
func (r *restSource) Read(ctx context.Context, want []int, use func(i int, content []byte) error) error {
	all := make([]int, len(want))
	back := make(map[int]int, len(want))
	for k, i := range want {
		all[k] = r.index[i]
		back[r.index[i]] = i
	}
	return r.u.src.Read(ctx, all, func(i int, content []byte) error { return use(back[i], content) })
}
