package shard

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
)

// Update writes the next generation of the one repository of src, given the
// parts of the present one. It reads only blobs that the present parts do not
// have at the same path, and writes side files for what they lose. It folds parts
// into new shards where that has become cheaper. The parts it returns replace all
// of old; their files are added to the set. Old parts that are missing or damaged
// are built anew.
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

	// What is there already, and can be read.
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

	// Large parts first: a place that several parts have stays in the largest.
	slices.SortStableFunc(u.prior, func(a, b *prior) int { return cmp.Compare(b.text, a.text) })

	// Folding a part gives its places to others or to the delta, which may make
	// the next one worth folding.
	u.match()
	for u.fold() {
		u.match()
	}

	// What stays keeps its file; the rest becomes a new one.
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

// update is one call of Update at work.
type update struct {
	repo  Repository
	src   Source
	blobs []Blob
	opt   BuildOptions
	prior []*prior
	fresh [][]Occurrence // by blob: the places that no kept part has
	delta int64          // bytes of the blobs that have such places
}

// prior is a part of the present generation and what becomes of it.
type prior struct {
	m     *member
	part  Part
	index int      // of the repository in the shard
	want  []uint64 // by occurrence of the shard: its mask in the next generation; 0 where it is dead
	mine  int      // occurrences of the repository
	alive int      // of these, not dead in the next generation
	share          // of the repository in the file
}

// newPrior returns the part of a repository in a member, nil if there is none.
func newPrior(m *member, repo uint32) *prior {
	i, ok := m.sh.place(repo)
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

// place identifies an occurrence across generations: the same blob at the same
// path.
type place struct {
	path string
	oid  string
}

// match assigns each occurrence of the next generation to the part that already
// has it, else to the delta.
func (u *update) match() {
	holders := u.holders()

	u.fresh, u.delta = make([][]Occurrence, len(u.blobs)), 0
	for i, b := range u.blobs {
		for _, o := range b.Occurrences {
			s, ok := holders[place{o.Path, b.OID}]

			// The same blob at the same path is there already: only its revisions may have changed.
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

// holders finds every place of the present generation, in the first part that has
// it, and resets what the parts will have in the next.
func (u *update) holders() map[place]holder {
	holders := map[place]holder{}
	for _, p := range u.prior {
		sh := p.m.sh

		// One occurrence of the shard is one place: the first part that has it keeps it.
		p.want, p.mine, p.alive = make([]uint64, sh.m.occurs), 0, 0
		for d := range sh.m.documents {
			for o := int(sh.docOccur.At(d)); o < int(sh.docOccur.At(d+1)); o++ {
				if int(sh.occRepo.At(o)) != p.index {
					continue
				}

				p.mine++
				key := place{string(sh.path(int(sh.occPath.At(o)))), sh.oid(d)}
				if _, taken := holders[key]; !taken {
					holders[key] = holder{p, o}
				}
			}
		}
	}
	return holders
}

// fold drops parts that are better written anew, and reports whether it dropped
// any: a part that is mostly dead, or the smallest ones when there are too many. A
// part is only folded with others at least a quarter as large as all of them
// together, so each byte is rewritten a logarithmic number of times.
func (u *update) fold() bool {
	for i, p := range u.prior {
		if dead := p.mine - p.alive; float64(dead) > u.opt.DeadLimit*float64(p.mine) {
			u.prior = slices.Delete(u.prior, i, i+1)
			return true
		}
	}

	whole := 0 // parts about as large as slices, which stay
	for whole < len(u.prior) && u.prior[whole].text >= u.opt.SliceBytes/4 {
		whole++
	}
	if len(u.prior)-whole < u.opt.DeltaLimit {
		return false
	}

	// From the smallest up, until one is more than four times the sum of those
	// before it, and few enough are left.
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
		// Nothing of it is in the next generation: it is left out.
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

// next returns the part as the next generation reads it, writing a side file if it
// reads it differently. The side file has a bit of the shard for each bit of the
// next generation, and the masks of the occurrences for which that is wrong.
func (p *prior) next(s *Set, repo Repository) (part Part, err error) {
	part, sh := p.part, p.m.sh

	c := change{shard: sh.f.Name(), repo: repo, from: p.from()}
	same := true // every mask is as in the shard
	for o, want := range p.want {
		if int(sh.occRepo.At(o)) != p.index {
			continue
		}

		// Only what remapping gets wrong is written: for most occurrences the bits just move.
		base := sh.masks.At(int(sh.occMask.At(o)))
		same = same && base == want
		if remap(c.from, base) != want {
			c.occurs = append(c.occurs, uint32(o))
			c.masks = append(c.masks, want)
		}
	}

	// Nothing differs: the shard alone says it.
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

// from chooses for each bit of the next generation the bit of the shard that is
// right for most occurrences. If HEAD was bit 0 of the shard and is bit 1 now, and
// only three files changed, from[1] is 0: three exceptions instead of a mask for
// every file. noBit stands for "no occurrence has it".
func (p *prior) from() []uint8 {
	sh := p.m.sh

	// Few pairs of masks are distinct: count the occurrences of each.
	type pair struct{ base, want uint64 }
	count := map[pair]int{}
	var bases, wants uint64 // their unions
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

		// The measure is noBit, which is right where the bit is not wanted.
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

// rest is the source of what no part has: the delta.
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

// restSource is the source of some blobs of another one.
type restSource struct {
	u     *update
	blobs []Blob
	index []int // of each blob in the other source
}

func (r *restSource) Repositories() []Repository { return []Repository{r.u.repo} }
func (r *restSource) Blobs() []Blob              { return r.blobs }

// Read translates indices to those of the other source and back.
func (r *restSource) Read(ctx context.Context, want []int, use func(i int, content []byte) error) error {
	all := make([]int, len(want))
	back := make(map[int]int, len(want))
	for k, i := range want {
		all[k] = r.index[i]
		back[r.index[i]] = i
	}
	return r.u.src.Read(ctx, all, func(i int, content []byte) error { return use(back[i], content) })
}
